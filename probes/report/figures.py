"""Figures in four shapes: forest, curves, scatter and heat map; readable in grey."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.probes.report.panel import (
    FAINT,
    HOLLOW,
    Mark,
    Panel,
    around,
    assemble,
    box,
    key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = dict[str, Any]
    Ends = tuple[float, float]

__all__ = ["FAINT", "Mark", "Panel", "box", "curves", "forest", "heat", "key", "scatter"]


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
    limits: Ends | None = None,
    zero: Mapping[str, float] | None = None,
    spread: bool = False,
) -> str:
    """Draw estimates with intervals, a line for each name, the first on top.

    Parameters
    ----------
    rows
        Keys value, low and high, and those that are named here.
    series, marks
        Key of what is drawn one under the other on a line, and its marks.
    panel, panels
        Key of what is drawn side by side, and its order.
    filled
        Key that says whether the mark is full.
    zero
        The grey line of each panel: the null hypothesis, 0 unless given.
    spread
        Whether all that is on a line has a height of its own.
    """
    rows = [row for row in rows if row["value"] is not None]
    marks = marks or {"": Mark()}
    lines = list(dict.fromkeys(str(row[line]) for row in rows))
    height = {text: at for at, text in enumerate(reversed(lines))}
    used = [name for name in marks if not series or any(row[series] == name for row in rows)]
    cells: dict[tuple[str, str], list[Row]] = {}  # by panel and line
    for row in rows:
        cells.setdefault((row[panel] if panel else "", str(row[line])), []).append(row)
    alone = spread or not series
    most = max([1, *(len(cell) if alone else len(used) for cell in cells.values())])
    zero = dict.fromkeys(panels, 0.0) if zero is None else zero
    ends = limits or _reach(rows, zero)
    several = len(panels) > 1
    size = (190.0 if several else 420.0, min(44.0, 5 + 13.0 * most) * len(lines) + 6)
    yticks = [(at, text) for text, at in height.items()]
    plots = []
    for name in panels:
        reach, label = (-0.6, len(lines) - 0.4), ("" if several else unit, "")
        shown = yticks if name == panels[0] else ()
        plot = Panel(ends, reach, size, name, label, yticks=shown)
        if name in zero:
            plot.spans([(*plot.y, zero[name])], "#bbb", upright=True)
        dots: list[tuple[float, Row]] = []
        for text, at in height.items():
            cell = cells.get((name if panel else "", text), [])
            for n, row in enumerate(cell):
                place = n if alone else used.index(row[series])
                dots.append((at + 0.35 - 0.7 * (place + 0.5) / len(cell if alone else used), row))
        for called, mark in marks.items():
            own = [(y, row) for y, row in dots if not series or row[series] == called]
            _dots(plot, own, mark, filled)
        plots.append(plot)
    values = [row["value"] for row in rows]
    shows = [
        f"{title or unit}. Dots with intervals: {unit}",
        f"Lines: {', '.join(lines)}",
        f"Panels: {', '.join(panels)}" if several else "",
        f"Marks: {', '.join(used)}" if len(used) > 1 else "",
        f"From {min(values):.2f} to {max(values):.2f}" if values else "",
        f"{sum(bool(row[filled]) for row in rows)} filled" if filled else "",
    ]
    entries = [(key(marks[n], marks[n].edge), n or "none") for n in used] if len(used) > 1 else []
    text = ". ".join(filter(None, shows)) + "."
    return assemble([plots], text, title=title, legend=entries, below=unit if several else "")


def _reach(rows: Sequence[Row], zero: Mapping[str, float]) -> Ends:
    """Return ends around numbers, their intervals and the null hypotheses."""
    ends = [row[end] for row in rows for end in ("value", "low", "high")]
    return around([*ends, *zero.values()])


def _dots(plot: Panel, dots: Sequence[tuple[float, Row]], mark: Mark, filled: str) -> None:
    """Draw what has one mark: intervals, and dots that are full, then those that are not."""
    spans = [(r["low"], r["high"], y) for y, r in dots if None not in (r["low"], r["high"])]
    low, high = plot.x
    plot.spans([(max(low, a), min(high, b), y) for a, b, y in spans], mark.edge)
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
) -> str:
    """Draw lines, a panel for each thing; without ``limits`` each has its own vertical axis."""
    plots: list[Panel] = []
    every = [curve for lines in panels.values() for curve in lines]
    across = around(x for curve in every for x in curve.xs)
    for name, lines in panels.items():
        reach = [v for curve in lines for v in (*curve.ys, *curve.lows, *curve.highs)]
        label = labels[1] if len(plots) % columns == 0 else ""
        names = (labels[0], label)
        plot = Panel(across, limits or around(reach), (180.0, 130.0), name, names)
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
) -> str:
    """Draw numbers in shades, darker the larger, white where there is none."""
    size = (46.0 * len(columns), 30.0 * len(rows))
    across = [(c + 0.5, name) for c, name in enumerate(columns)]
    downwards = [(len(rows) - r - 0.5, name) for r, name in enumerate(rows)]
    reach = ((0, len(columns)), (0, len(rows)))
    plot = Panel(*reach, size, slanted=True, xticks=across, yticks=downwards)
    for r, row in enumerate(values):
        for c, value in enumerate(row):
            if value is None:
                continue
            share = min(1.0, max(0.0, (value - ends[0]) / (ends[1] - ends[0])))
            y, level = len(rows) - r - 0.5, round(250 - 220 * share)
            face = f"#{level:02x}{level:02x}{level:02x}"
            plot.rect((c + 0.02, c + 0.98), (y - 0.47, y + 0.47), face)
            look = f'text-anchor="middle" style="fill:{HOLLOW if share > 0.55 else "#000"}"'
            plot.words((c + 0.5, y), f"{round(value, 2) + 0.0:.2f}", look, (0, 4))
    shows = (
        f"{title}. Heat map of {len(rows)} rows by {len(columns)} columns ({', '.join(columns)}); "
        "darker is more."
    )
    return assemble([[plot]], shows, title=title)
