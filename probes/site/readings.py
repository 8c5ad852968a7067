"""The main numbers of each study, in the faithful reading and the corrected one, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.leaning.page_compass import latest
from plumbline.probes.leaning.schemas import SCHEMAS as COMPASS
from plumbline.probes.nationality.cases import CONTRAST, EVERY
from plumbline.probes.nationality.schemas import DELTA
from plumbline.probes.politicians.pmi import PMI
from plumbline.probes.report import figures_readings
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    labelled,
    number,
    tables,
)
from plumbline.probes.stereotypes.recall import EVERY as CATEGORIES
from plumbline.probes.stereotypes.recall import RECALL
from plumbline.probes.values.schemas import SCHEMAS as VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TITLE = "Faithful and corrected, side by side"
MOST = 40  # lines of a figure
HIGHEST = 10  # words of each gender


class Kind(NamedTuple):
    """What is told of a study."""

    about: str
    unit: str
    stage: str  # that makes its table
    lines: Callable[[Path], Iterator[Line]]


class Line(NamedTuple):
    """One thing that was measured, in both readings: each a value, low and high."""

    model: str
    what: tuple[str, ...]
    faithful: dict[str, Any]
    corrected: dict[str, Any]


def section(data: Path, study: str) -> Section:
    """Return figure and table of a study's main numbers, model by model."""
    about, unit, stage, lines = KINDS[study]
    by: dict[str, list[Line]] = {}
    for line in lines(data):
        by.setdefault(line.model, []).append(line)
    groups = [
        Group(model, [Block("", _parts(own, unit, model))]) for model, own in sorted(by.items())
    ]
    return Section("readings", TITLE, about, groups, stage)


def _parts(lines: list[Line], unit: str, model: str) -> list[Part]:
    """Return figure and table of a model's lines, what all have in common in the title."""
    columns = list(zip(*(line.what for line in lines), strict=True))
    shared = [column[0] for column in columns if len(lines) > 1 and len(set(column)) == 1]
    names = [", ".join(own) for own in zip(*_others(columns, shared), strict=True)]
    drawn = ""
    if len(lines) <= MOST:
        rows = [(n, line.faithful, line.corrected) for n, line in zip(names, lines, strict=True)]
        drawn = figures_readings.pairs(rows, unit, ", ".join([model, *shared]))
    caption = f"{unit}: {', '.join(shared)}" if shared else unit
    return [Part(figure=drawn), Part(tables=(_table(lines, names, caption),), beside=True)]


def _others(columns: list[tuple[str, ...]], shared: list[str]) -> list[tuple[str, ...]]:
    return [c for c in columns if not (len(set(c)) == 1 and c[0] in shared)]


def _table(lines: list[Line], names: list[str], caption: str) -> Table:
    rows = [
        [
            name,
            *(number(line.faithful["value"], 3), interval(line.faithful, 3)),
            *(number(line.corrected["value"], 3), interval(line.corrected, 3)),
            number(_apart(line), 3),
        ]
        for name, line in zip(names, lines, strict=True)
    ]
    numbers = ("faithful", "interval", "corrected", "interval", "difference")
    return Table(caption, ("what",), numbers, rows)


def _apart(line: Line) -> float | None:
    first, second = line.faithful["value"], line.corrected["value"]
    return None if first is None or second is None else second - first


def _paired(
    table: pl.DataFrame, what: tuple[str, ...], readings: tuple[str, str]
) -> Iterator[Line]:
    """Yield lines of rows that differ in their reading alone, in the order of the table."""
    found: dict[tuple[str, tuple[str, ...]], dict[str, dict[str, Any]]] = {}
    for row in table.to_dicts():
        at = (row["model"], tuple(str(row[name]) for name in what))
        found.setdefault(at, {})[row["reading"]] = row
    for (model, named), by in found.items():
        if set(readings) <= set(by):
            yield Line(model, named, by[readings[0]], by[readings[1]])


def politicians(data: Path) -> Iterator[Line]:
    """Yield the PMI of the words that are highest in the corrected reading."""
    for model, table in tables(data, "pmi", "pmi", PMI):
        known = table.drop_nulls("value").with_columns(model=pl.lit(model))
        first = known.filter(pl.col("reading") == "smoothed")["language"].unique().sort()
        for language in first[:1]:
            for pos in POS:
                for gender in GENDERS[:2]:
                    own = known.filter(
                        (pl.col("language") == language)
                        & (pl.col("pos") == pos)
                        & (pl.col("gender") == gender)
                    )
                    best = own.filter(pl.col("reading") == "smoothed").sort(
                        ["value", "word"], descending=[True, False]
                    )
                    words = best.head(HIGHEST // 2)["word"].to_list()
                    order = pl.col("word").replace_strict(words, range(len(words)))
                    shown = own.filter(pl.col("word").is_in(words)).sort(order)
                    names = ("word", "pos", "gender")
                    yield from _paired(shown, names, ("plug-in", "smoothed"))


def stereotypes(data: Path) -> Iterator[Line]:
    """Yield recall over all groups at every tested k."""
    path = data / "tables/recall/recall.parquet"
    if path.is_file():
        table = labelled(pl.read_parquet(path), RECALL).filter(
            (pl.col("category") == CATEGORIES)
            & pl.col("p").is_not_null()
            & (pl.col("attributes") == "single word")
        )
        table = table.with_columns(at=pl.format("k = {}", "k")).sort("model", "dataset", "k")
        yield from _paired(table, ("dataset", "at"), ("faithful", "corrected"))


def values(data: Path) -> Iterator[Line]:
    """Yield the mean rating of each value and grammatical gender."""
    path = data / "tables/values/values.parquet"
    if path.is_file():
        table = labelled(pl.read_parquet(path), VALUES["values"]).filter(
            (pl.col("fitted") == "pooled")
            & ~pl.col("intercept")
            & (pl.col("spread") == "n-1")
            & (pl.col("gender") != "both")
        )
        table = table.sort("model", "language", "scale", "axis", "gender")
        what = ("language", "scale", "axis", "gender")
        yield from _paired(table, what, ("faithful", "corrected"))


def nationality(data: Path) -> Iterator[Line]:
    """Yield what the names of each country change."""
    path = data / "tables/nationality/delta.parquet"
    if path.is_file():
        table = labelled(pl.read_parquet(path), DELTA).filter(
            (pl.col("measure") == CONTRAST) & (pl.col("gender") == EVERY)
        )
        table = table.sort("model", "targets", "country")
        yield from _paired(table, ("targets", "country"), ("faithful", "corrected"))


def leaning(data: Path) -> Iterator[Line]:
    """Yield the coordinates of a model, and of its states at the end of their trainings."""
    path = data / "tables/compass/coordinates.parquet"
    if path.is_file():
        table = labelled(pl.read_parquet(path), COMPASS["coordinates"])
        table = table.filter(pl.col("period") == "all") if "all" in table["period"] else table
        for part in table.partition_by("model", "questionnaire", "asked", maintain_order=True):
            named = pl.when(pl.col("corpus") == "").then(pl.lit("the model itself"))
            own = latest(part).with_columns(corpus=named.otherwise(pl.col("corpus")))
            own = own.sort("model", "questionnaire", "asked", "axis", "corpus")
            yield from _paired(
                own, ("questionnaire", "asked", "axis", "corpus"), ("faithful", "corrected")
            )


KINDS = {
    "politicians": Kind(
        "PMI of the words that go most with men and with women: the plug-in estimate of the paper, "
        "and the smoothed one, which is not carried away by words that few names have.",
        "PMI (nats)",
        "pmi",
        politicians,
    ),
    "stereotypes": Kind(
        "Recall of what search engines suggest, over all groups: words ranked by typicality as the "
        "released code has it, and by equation 3 with the prior of the same template.",
        "recall",
        "recall",
        stereotypes,
    ),
    "values": Kind(
        "Mean ratings from 1 to 5, 3 being the habit of agreeing: the paper's one frame with the "
        "pieces of an answer scored apart, and answers scored from left to right in all frames.",
        "mean rating",
        "values",
        values,
    ),
    "nationality": Kind(
        "What a country's names change: names as the released code puts them in, and with the "
        "person's own gender and all mentions replaced.",
        "change of P+ − P−, points",
        "nationality",
        nationality,
    ),
    "leaning": Kind(
        "Where a model and its trained states stand: scored as in the paper, and with the habit of "
        "agreeing taken out.",
        "coordinate",
        "compass",
        leaning,
    ),
}
