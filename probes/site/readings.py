"""The main numbers of each study, in the faithful reading and the corrected one, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.probes.report.figures import Mark, forest
from plumbline.probes.report.view import Block, Group, Listing, Part, Row, Section, listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.report.tables import Tables
    from plumbline.probes.report.view import Readings

TITLE = "Faithful and corrected, side by side"
MOST = 40  # lines of a figure
NAMES = ("faithful", "corrected")
MARKS = {NAMES[0]: Mark("square", "#fff", "#777"), NAMES[1]: Mark()}
SIDES = Listing(
    "what",
    "faithful; low..high; corrected; low_corrected..high_corrected; difference",
    digits=3,
)


class Line(NamedTuple):
    """One thing that was measured, in both readings: each a value, low and high."""

    model: str
    what: tuple[str, ...]
    faithful: Row
    corrected: Row


def lines(tables: Tables, of: Readings) -> Iterator[Line]:
    """Yield what differs in its reading alone, in the order of the table."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, Row]] = {}
    for row in tables.read(of.source).to_dicts():
        at = (row["model"], tuple(str(row[name]) for name in of.what.split()))
        found.setdefault(at, {})[row["reading"]] = row
    for (model, named), by in found.items():
        if set(of.pair) <= set(by):
            yield Line(model, named, by[of.pair[0]], by[of.pair[1]])


def section(tables: Tables, of: Readings) -> Section:
    """Return figure and table of a study's main numbers, model by model."""
    by: dict[str, list[Line]] = {}
    for line in lines(tables, of):
        by.setdefault(line.model, []).append(line)
    groups = [Group(m, [Block("", _parts(own, of.unit, m))]) for m, own in sorted(by.items())]
    return Section("readings", TITLE, of.about, groups, of.stage)


def _parts(own: list[Line], unit: str, model: str) -> list[Part]:
    """Return figure and table of a model's lines, what all have in common in the title."""
    columns = list(zip(*(line.what for line in own), strict=True))
    same = [len(own) > 1 and len(set(column)) == 1 for column in columns]
    shared = [column[0] for column, alike in zip(columns, same, strict=True) if alike]
    dots: list[Row] = []
    rows: list[dict[str, Any]] = []
    for line in own:
        texts = zip(line.what, same, strict=True)
        what = ", ".join(text for text, alike in texts if not alike)
        pair = (line.faithful, line.corrected)
        for name, row in zip(NAMES, pair, strict=True):
            dots.append({k: row[k] for k in ("value", "low", "high")} | {"what": what, "of": name})
        first, second = (row["value"] for row in pair)
        rows.append(
            {"what": what, "faithful": first, "corrected": second}
            | {"low": line.faithful["low"], "high": line.faithful["high"]}
            | {f"{end}_corrected": line.corrected[end] for end in ("low", "high")}
            | {"difference": None if None in (first, second) else second - first}
        )
    title = ", ".join([model, *shared])
    drawn = ""
    if len(own) <= MOST:
        look = {"line": "what", "series": "of", "marks": MARKS, "zero": {}}
        drawn = forest(dots, unit=f"{unit}, with interval", title=title, **look)  # type: ignore[arg-type]
    caption = f"{unit}: {', '.join(shared)}" if shared else unit
    return [Part(figure=drawn), Part(tables=(listed(SIDES, rows, caption),), beside=True)]
