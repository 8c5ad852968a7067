"""Figures in five shapes: forest, curves, scatter, heat map and slopes; readable in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.probes.report.panel import (
    FAINT,
    GREY,
    HOLLOW,
    Mark,
    Panel,
    around,
    assemble,
    box,
    key,
    wide,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    Row = dict[str, Any]
    Ends = tuple[float, float]

__all__ = ["FAINT", "Mark", "Panel", "box", "curves", "forest", "heat", "key", "scatter", "shared"]
__all__ += ["Curve", "Forest", "Points", "slopes"]


class Curve(NamedTuple):
    """Numbers along an axis; with a mark intervals are whiskers, without one they are a band."""

    label: str
    xs: Sequence[float]
    ys: Sequence[float | None]
    stroke: str = "#000"
    dash: str = ""
    mark: Mark | None = None
    lows: Sequence[float | None] = ()
    highs: Sequence[float | None] = ()


class Forest(NamedTuple):
    """A forest plot that is not drawn yet: all of a unit in a section share one axis."""

    rows: Sequence[Row]
    look: Mapping[str, Any]  # what :func:`forest` is given besides

    @property
    def unit(self) -> str:
        """Return what its axis shows."""
        return str(self.look["unit"])

    @property
    def ends(self) -> Ends:
        """Return the ends of the axis that it would have alone."""
        return self.look.get("limits") or _reach(self.rows, self.look.get("zero"))

    def draw(self, ends: Ends) -> str:
        """Draw it on an axis between these ends."""
        return forest(self.rows, **{**self.look, "limits": ends})


def shared(rows: Sequence[Row], **look: Any) -> Forest:
    """Return a forest plot, see :func:`forest`, to be drawn on the axis of its section."""
    return Forest(rows, look)


class Points(NamedTuple):
    """Points of one look in a plane, each (x, y), with whiskers (low, high) along both axes."""

    label: str
    at: Sequence[Ends]
    mark: Mark
    across: Sequence[Ends | None] = ()
    along: Sequence[Ends | None] = ()
    size: float = 4


def forest(
    rows: Sequence[Row],
    *,
    line: str,
    unit: str,
    title: str = "",
    series: str = "",
    marks: Mapping[str, Mark] | None = None,
    panel: str = "",
    panels: Sequence[str] = ("",),
    filled: str = "",
    starred: str = "",
    base: str = "",
    bold: Collection[str] = (),
    quartiles: Mapping[str, tuple[float, float, float]] | None = None,
    limits: Ends | None = None,
    ticks_at: Sequence[tuple[float, str]] | None = None,
    zero: Mapping[str, float] | None = None,
    spread: bool = False,
    legend: Sequence[tuple[str, str]] = (),
) -> str:
    """Draw numbers with intervals, a line for each name, the first on top.

    ``rows``: keys value, low and high, and those that are named here.
    ``series``, ``marks``: what stands one under the other on a line, with its mark.
    ``panel``, ``panels``: what stands side by side, and in which order.
    ``filled``, ``starred``, ``base``: whether the mark is full; whether a star stands to the right;
    where a grey line stands.
    ``quartiles``: a grey bar behind a line: low, median, high.
    ``zero``: what numbers of a panel are held against; 0 unless given.
    ``spread``: whether all that stands on a line has a height of its own.
    """
    rows = [row for row in rows if row["value"] is not None]
    marks = marks or {"": Mark()}
    lines = list(dict.fromkeys(str(row[line]) for row in rows))
    height = {text: at for at, text in enumerate(reversed(lines))}
    used = [name for name in marks if not series or any(row[series] == name for row in rows)]
    own: dict[tuple[str, str], list[Row]] = {}  # by panel and line
    for row in rows:
        own.setdefault((row[panel] if panel else "", str(row[line])), []).append(row)
    alone = spread or not series
    most = max([1, *(len(of) if alone else len(used) for of in own.values())])
    zero = dict.fromkeys(panels, 0.0) if zero is None else zero
    ends = limits or _reach(rows, zero)
    several = len(panels) > 1
    size = (190.0 if several else 420.0, min(44.0, 5 + 13.0 * most) * len(lines) + 6)
    plots = []
    for name in panels:
        plot = Panel(
            *(ends, (-0.6, len(lines) - 0.4), size, name, ("" if several else unit, ""), ticks_at),
            yticks=[(at, text) for text, at in height.items()] if name == panels[0] else (),
            bold=bold,
        )
        for text, (low, middle, high) in (quartiles or {}).items():
            if text in lines:
                at = height[text]
                plot.rect((low, high), (at - 0.4, at + 0.4), FAINT)
                plot.spans([(at - 0.4, at + 0.4, middle)], GREY, upright=True)
        if name in zero:
            plot.spans([(*plot.y, zero[name])], "#bbb", upright=True)
        here: list[tuple[float, Row]] = []
        for text, at in height.items():
            of = own.get((name if panel else "", text), [])
            for n, row in enumerate(of):
                place = n if alone else used.index(row[series])
                here.append((at + 0.35 - 0.7 * (place + 0.5) / len(of if alone else used), row))
        bases = [(round(y) - 0.42, round(y) + 0.42, r[base]) for y, r in here if base]
        plot.spans([ends for ends in bases if ends[2] is not None], "#aaa", upright=True)
        for y in {round(y) for y, row in here if starred and row[starred]}:
            plot.words((ends[1], y), "*", 'font-size="16"', (2, 7))
        for called, mark in marks.items():
            dots = [(y, r) for y, r in here if not series or r[series] == called]
            _dots(plot, dots, mark, filled)
        plots.append(plot)
    values = [row["value"] for row in rows]
    counted = [(name, what) for name, what in ((filled, "filled"), (starred, "starred")) if name]
    shows = [
        f"{title or unit}. Dots with intervals: {unit}",
        f"Lines: {', '.join(lines)}",
        f"Panels: {', '.join(panels)}" if several else "",
        f"Marks: {', '.join(used)}" if len(used) > 1 else "",
        f"From {min(values):.2f} to {max(values):.2f}" if values else "",
        *(f"{sum(bool(row[name]) for row in rows)} {what}" for name, what in counted),
    ]
    entries = [(key(marks[n], marks[n].edge), n or "none") for n in used] if len(used) > 1 else []
    return assemble(
        *([plots], ". ".join(filter(None, shows)) + "."),
        title=title,
        legend=[*entries, *legend],
        below=unit if several else "",
    )


def _reach(rows: Sequence[Row], zero: Mapping[str, float] | None) -> Ends:
    """Return ends around numbers, their intervals and what they are held against."""
    held = [0.0] if zero is None else zero.values()
    known = [
        row[end] for row in rows for end in ("value", "low", "high") if row["value"] is not None
    ]
    return around([*known, *held])


def _dots(plot: Panel, dots: Sequence[tuple[float, Row]], mark: Mark, filled: str) -> None:
    """Draw what has one mark: intervals, and dots that are full, then those that are not."""
    whole = [(r["low"], r["high"], y) for y, r in dots if None not in (r["low"], r["high"])]
    low, high = plot.x
    plot.spans([(max(low, a), min(high, b), y) for a, b, y in whole], mark.edge)
    for full in (True, False):
        at = [(r["value"], y) for y, r in dots if (not filled or bool(r[filled])) == full]
        plot.marks(at, mark if full else mark._replace(face=HOLLOW))


def curves(
    panels: Mapping[str, Sequence[Curve]],
    *,
    labels: tuple[str, str],
    title: str = "",
    columns: int = 3,
    limits: Ends | None = None,
    levels: Mapping[str, float] | None = None,
    own: bool = False,
    ticks_at: Sequence[float] | None = None,
) -> str:
    """Draw lines, a panel for each thing.

    ``levels``: by panel, where a grey line stands.
    ``own``: whether each panel has limits of its own, and its name beside its vertical axis.
    """
    plots: list[Panel] = []
    every = [c for lines in panels.values() for c in lines]
    across = around(x for c in every for x in c.xs)
    for name, lines in panels.items():
        reach = [v for c in (lines if own else every) for v in (*c.ys, *c.lows, *c.highs)]
        level = (levels or {}).get(name)
        vertical = name if own else labels[1] if len(plots) % columns == 0 else ""
        plot = Panel(
            *(across, limits or around([*reach, level])),
            (240.0, 190.0) if own else (180.0, 130.0),
            title="" if own else name,
            labels=(labels[0], vertical),
            xticks=None if ticks_at is None else [(x, f"{x:g}") for x in ticks_at],
        )
        if level is not None:
            plot.spans([(*plot.x, level)], "#bbb")
        for curve in lines:
            _curve(plot, curve)
        plots.append(plot)
    entries = {c.label: (key(c.mark, c.stroke, c.dash), c.label) for c in every if c.label}
    grid = [plots[i : i + columns] for i in range(0, len(plots), columns)]
    shows = (
        f"{title}. Curves of {labels[1]} against {labels[0]}, a panel for each of "
        f"{', '.join(panels)}. Lines: {', '.join(entries)}."
    )
    return assemble(grid, shows, title=title, legend=list(entries.values()))


def _curve(plot: Panel, curve: Curve) -> None:
    ends = zip(curve.xs, curve.lows, curve.highs, strict=False)
    limits = [(x, low, high) for x, low, high in ends if low is not None and high is not None]
    if curve.mark:
        plot.spans([(low, high, x) for x, low, high in limits], curve.stroke, upright=True)
    elif limits:
        edge = [(x, low) for x, low, _ in limits] + [(x, high) for x, _, high in reversed(limits)]
        plot.path(edge, f'fill="{FAINT}"')
    at = [(x, y) for x, y in zip(curve.xs, curve.ys, strict=True) if y is not None]
    if at:
        plot.path(at, f'stroke="{curve.stroke}" stroke-dasharray="{curve.dash}"')
    if curve.mark:
        plot.marks(at, curve.mark)


def scatter(
    panels: Mapping[str, Sequence[Points]],
    *,
    labels: tuple[str, str],
    title: str = "",
    under: Callable[[Panel], None] | None = None,
    reach: Sequence[Ends] = (),
    legend: Sequence[tuple[str, str]] = (),
    size: tuple[float, float] = (360.0, 260.0),
) -> str:
    """Draw points in a plane, a panel for each thing.

    ``under``: draws what lies under the points.
    ``reach``: further points that must be inside of the panels.
    """
    every = [points for own in panels.values() for points in own]
    xs, ys = [p[0] for p in reach], [p[1] for p in reach]
    for points in every:
        xs += [p[0] for p in points.at] + [v for ends in points.across if ends for v in ends]
        ys += [p[1] for p in points.at] + [v for ends in points.along if ends for v in ends]
    plots: list[Panel] = []
    for name, own in panels.items():
        sides = (labels[0], labels[1] if not plots else "")
        plot = Panel(around(xs), around(ys), size, title=name, labels=sides)
        if under:
            under(plot)
        for points in own:
            ends = zip(points.at, points.across, strict=False)
            plot.spans([(*e, at[1]) for at, e in ends if e], points.mark.edge)
            ends = zip(points.at, points.along, strict=False)
            plot.spans([(*e, at[0]) for at, e in ends if e], points.mark.edge, upright=True)
            plot.marks(points.at, points.mark, points.size)
        plots.append(plot)
    entries = {points.label: (key(points.mark), points.label) for points in every}
    shows = (
        f"{title or 'Scatter plot'}. {sum(len(points.at) for points in every)} points: {labels[0]} "
        f"from left to right, {labels[1]} upwards. Marks: {', '.join(entries)}."
    )
    return assemble([plots], shows, title=title, legend=[*entries.values(), *legend])


def heat(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    ends: Ends,
    title: str = "",
    marked: Collection[tuple[int, int]] = (),
    numbers: bool = False,
    unit: str = "",
) -> str:
    """Draw numbers as shades, darker the larger, white where there is none.

    ``marked``: row and column of cells with a dot.
    ``numbers``: whether the numbers are written into the cells.
    """
    side = (46.0, 30.0) if numbers else (34.0, 16.0)
    size = (side[0] * len(columns), side[1] * len(rows))
    across = [(c + 0.5, name) for c, name in enumerate(columns)]
    downwards = [(len(rows) - r - 0.5, name) for r, name in enumerate(rows)]
    ends_of = ((0, len(columns)), (0, len(rows)))
    plot = Panel(*ends_of, size, slanted=True, xticks=across, yticks=downwards)
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            if value is None:
                continue
            share = min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
            y = len(rows) - r - 0.5
            plot.rect((c + 0.02, c + 0.98), (y - 0.47, y + 0.47), _shade(share))
            ink = HOLLOW if share > 0.55 else "#000"
            if numbers:
                look = f'text-anchor="middle" style="fill:{ink}"'
                plot.words((c + 0.5, y), f"{round(value, 2) + 0.0:.2f}", look, (0, 4))
            if (r, c) in marked:
                plot.marks([(c + 0.5, y)], Mark("circle", ink, ink), 2)
    steps = [ends[0] + (ends[1] - ends[0]) * i / 4 for i in range(5)] if unit else []
    scale = [(box(_shade(i / 4)), f"{step:g}") for i, step in enumerate(steps)]
    scale += [("", unit)] if unit else []
    shows = (
        f"{title}. Heat map of {len(rows)} rows by {len(columns)} columns ({', '.join(columns)}); "
        f"darker is more. {len(marked)} cells have a dot."
    )
    return assemble([[plot]], shows, title=title, legend=scale)


def _shade(share: float) -> str:
    level = round(250 - 220 * share)
    return f"#{level:02x}{level:02x}{level:02x}"


def slopes(
    panels: Mapping[str, tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]]],
    title: str,
) -> str:
    """Draw lists of words before and after, what is in both joined by lines.

    ``panels``: by name: both lists in their order, each word with the look of its text.
    """
    plots = []
    longest = max(len(side) for sides in panels.values() for side in sides)
    reach = max(wide(word) for sides in panels.values() for side in sides for word, _ in side)
    for name, (before, after) in panels.items():
        size = (2 * reach + 60, 15.0 * longest)
        plot = Panel((0, size[0]), (-longest, 0.5), size, title=name, xticks=(), yticks=())
        right = {word: -i for i, (word, _) in enumerate(after)}
        for i, (word, look) in enumerate(before):
            plot.words((reach, -i), word, f'text-anchor="end" {look}', (0, 4))
            if word in right:
                ends = [(reach + 4, -i), (size[0] - reach - 4, right[word])]
                plot.path(ends, 'stroke="#aaa" class="joined"')
        for i, (word, look) in enumerate(after):
            plot.words((size[0] - reach, -i), word, look, (0, 4))
        plots.append(plot)
    grid = [plots[i : i + 3] for i in range(0, len(plots), 3)]
    shows = f"{title}. Lists of words before and after, shared words joined: {', '.join(panels)}."
    return assemble(grid, shows, title=title)
