"""What classifiers change their mind about with another country's name: the analysis itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.nationality.cases import CONTRAST, EVERY
from plumbline.probes.nationality.schemas import CHANGES, CORRELATIONS, DELTA, MIXED
from plumbline.probes.report import figures_nationality
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    labelled,
    number,
    parts,
)

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "What classifiers make of a name's country"
NOTE = (
    "People in texts get names that are common in a country, and classifiers are asked again. "
    "Change: 100 times the mean of P+ − P− of the counterfactuals, minus that of the originals. "
    "Readings: faithful is the released code's, corrected keeps the gender of the person and "
    "replaces all mentions, placebo swaps a name for another one of the same country. Intervals: "
    "bootstrap over source texts; p: original and counterfactual exchanged. Among countries: "
    "against the mean of all countries, where other texts and other names might have been drawn."
)
WORDS = ("country", "reading")
NUMBERS = ("change", "interval", "p adj.", "among countries", "p adj.", "texts", "names")
SHOWN = "original mean"  # the variant of perplexity that the released code has


def section(data: Path) -> Section:
    """Return the countries of each classifier, ranked, and the correlations with perplexity."""
    path = data / "tables/nationality/delta.parquet"
    groups = []
    if path.is_file():
        delta = labelled(pl.read_parquet(path), DELTA)
        for (model, targets), own in parts(delta, "model", "targets"):
            title = f"{model}, {targets}"
            blocks = [
                Block("", _ranked(own, title)),
                Block(f"{title}: changes by country", [_changes(own)]),
                *_more(data, str(model), str(targets)),
            ]
            groups.append(Group(title, blocks))
    return Section("nationality", TITLE, NOTE, groups, "nationality")


def _ranked(delta: pl.DataFrame, title: str) -> list[Part]:
    own = delta.filter((pl.col("measure") == CONTRAST) & (pl.col("gender") == EVERY))
    placebo = dict(
        own.filter(pl.col("reading") == "placebo").select("country", "value").iter_rows()
    )
    found: list[Part] = []
    for (reading,), rows in parts(own.filter(pl.col("reading") != "placebo"), "reading"):
        drawn = figures_nationality.ranked(rows.to_dicts(), placebo, f"{title}, {reading}")
        found.append(Part(figure=drawn, beside=bool(found)))
    return found


def _changes(delta: pl.DataFrame) -> Part:
    own = delta.filter((pl.col("measure") == CONTRAST) & (pl.col("gender") == EVERY))
    rows = [
        [
            *(row["country"], row["reading"], number(row["value"]), interval(row)),
            *(number(row["p_bh"], 3), number(row["contrast"]), number(row["p_country_bh"], 3)),
            *(str(row["n"]), str(row["names"])),
        ]
        for row in own.sort(
            "reading", "value", "country", descending=[False, True, False]
        ).to_dicts()
    ]
    return Part(tables=(Table("change of P+ − P−, points", WORDS, NUMBERS, rows),))


def _more(data: Path, model: str, targets: str) -> list[Block]:
    """Return predictions, the mixed model and correlations, where there are such tables."""
    found = []
    tables = {
        "predictions by country and class": ("changes", CHANGES, _predictions),
        "beside length and frequency of names": ("mixed", MIXED, _mixed),
        "perplexity and probabilities": ("correlations", CORRELATIONS, _correlations),
    }
    for what, (name, schema, write) in tables.items():
        path = data / f"tables/nationality/{name}.parquet"
        if not path.is_file():
            continue
        table = labelled(pl.read_parquet(path), schema)
        own = table.filter((pl.col("model") == model) & (pl.col("targets") == targets))
        if len(own):
            found.append(Block(f"{model}, {targets}: {what}", [Part(tables=(write(own),))]))
    return found


def _predictions(table: pl.DataFrame) -> Table:
    own = table.filter((pl.col("gender") == EVERY) & (pl.col("reading") != "placebo"))
    rows = [
        [
            *(row["country"], row["class"], row["reading"], number(row["value"], 1)),
            *(interval(row, 1), number(row["p_bh"], 3), str(row["before"]), str(row["after"])),
        ]
        for row in own.sort("country", "class", "reading").to_dicts()
    ]
    numbers = ("percent", "interval", "p adj.", "before", "after")
    return Table(
        "how much more often a class is predicted", ("country", "class", "reading"), numbers, rows
    )


def _mixed(table: pl.DataFrame) -> Table:
    rows = [
        [
            *(row["term"], row["reading"], number(row["value"]), interval(row)),
            *(number(row["p"], 4), number(row["p_bh"], 3), str(row["n"])),
        ]
        for row in table.sort("term", "reading").to_dicts()
    ]
    numbers = ("points", "interval", "p", "p adj.", "names")
    return Table("source texts swept out, names random", ("term", "reading"), numbers, rows)


def _correlations(table: pl.DataFrame) -> Table:
    own = table.filter((pl.col("country") == EVERY) & (pl.col("perplexity") == SHOWN))
    rows = [_cells(row) for row in own.sort("measure", "reading", "scope").to_dicts()]
    caption = f"perplexity: {SHOWN} over tokens"
    return Table(caption, ("measure", "reading", "scope"), ("r", "interval", "texts"), rows)


def _cells(row: dict[str, Any]) -> list[str]:
    where = (row["measure"], row["reading"], row["scope"])
    return [*where, number(row["value"], 3), interval(row, 3), str(row["n"])]
