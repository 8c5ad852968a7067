"""Gender and sentiment among parts of the people: the analysis ``subgroups``, Figures 7 to 9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.politicians.subgroups import AGREEMENT, DIFFERENCES, PAIRS, PEOPLE, SHARES
from plumbline.probes.report import figures
from plumbline.probes.report.view import (
    LEVEL,
    Block,
    Group,
    Part,
    Section,
    Table,
    interval,
    labelled,
    number,
    parts,
    tables,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.builders.core.schema import Schema

NOTE = (
    "Shares of sentiments among the words that deviate most towards each gender, in parts of the "
    "people beside all others of the language. Star: men and women differ within the part, "
    "adjusted p at most 0.05. Intervals: Bayesian bootstrap over distinct names; p: genders "
    "permuted over them, adjusted over all differences of the model. Agreement: Spearman's "
    "correlation, over words, of PMI female minus male in both parts. Non-binary people are few: "
    "intervals without a test, which is no sign of no pattern; read their number first."
)


def section(data: Path) -> Section:
    """Return, for each model, its people, and figures and tables of each pair of subgroups."""
    groups = []
    folder = data / "tables/subgroups"
    for name, people in tables(data, "subgroups", "people", PEOPLE):
        shares = _read(folder / name / "shares.parquet", SHARES)
        differences = _read(folder / name / "differences.parquet", DIFFERENCES)
        agreement = _read(folder / name / "agreement.parquet", AGREEMENT)
        blocks = [Block("", [Part(tables=(_people(people),))])]
        for pair in PAIRS:
            between = f"{pair[0]} against {pair[1]}"
            here = _marked(shares.filter(pl.col("subgroup").is_in(pair)), differences, people)
            tested = differences.filter(pl.col("contrast").is_in([*pair, between]))
            alike = agreement.filter(pl.col("contrast") == between)
            found = [_drawn(part, f"{pos}, {between}") for (pos,), part in parts(here, "pos")]
            found += [Part(tables=(table,)) for table in _tests(tested, alike)]
            if found:
                blocks.append(Block(f"{name}, {between}", found))
        groups.append(Group(name, blocks))
    title = "Parts of the people (Figures 7 to 9)"
    return Section("subgroups", title, NOTE, groups, "subgroups")


def _read(path: Path, schema: Schema) -> pl.DataFrame:
    """Return a table; without rows where it is not there."""
    if path.is_file():
        return labelled(pl.read_parquet(path), schema)
    empty = pl.from_arrow(schema.arrow().empty_table())
    assert isinstance(empty, pl.DataFrame)
    return labelled(empty, schema)


def _people(people: pl.DataFrame) -> Table:
    rows = []
    for (language, subgroup), part in parts(people, "language", "subgroup"):
        of = {r["gender"]: f"{r['people']:,} ({r['names']:,})" for r in part.to_dicts()}
        rows.append([language, subgroup, *(of.get(g, "–") for g in GENDERS)])
    return Table("People (distinct names)", ("language", "part of the people"), GENDERS, rows)


def _marked(shares: pl.DataFrame, differences: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Add what the lines of the figure are called, and whether men and women differ."""
    wide = people.group_by("language", "subgroup").agg(
        pl.col("people").filter(pl.col("gender") == g).sum().alias(g) for g in GENDERS
    )
    tested = differences.select(
        "language", "pos", pl.col("contrast").cast(pl.String).alias("of"), "sentiment", apart="p_bh"
    )
    return (
        shares.with_columns(of=pl.col("subgroup").cast(pl.String))
        .join(tested, on=["language", "pos", "of", "sentiment"], how="left")
        .join(wide, on=["language", "subgroup"], how="left")
        .with_columns(
            significant=(pl.col("apart") <= LEVEL).fill_null(value=False),
            label=pl.format("{}, {}\n(n {} m, {} f, {} nb)", "language", "of", *GENDERS),
        )
    )


def _drawn(shares: pl.DataFrame, title: str) -> Part:
    rows = shares.sort("language", "subgroup", "gender", "sentiment").to_dicts()
    caption = "n: men, women, and non-binary people."
    return Part(figure=figures.subgroups(rows, title), caption=caption)


def _tests(differences: pl.DataFrame, agreement: pl.DataFrame) -> Iterator[Table]:
    if len(differences):
        keys = ("language", "pos", "contrast", "sentiment")
        rows = [
            [
                *(r[k] for k in keys),
                number(r["value"]),
                interval(r),
                f"{r['n']:,}",
                number(r["p"], 4),
                number(r["p_bh"], 3),
            ]
            for r in differences.sort(keys).to_dicts()
        ]
        caption = "Share female minus male; of two parts: that of the first minus the second"
        words = ("language", "part of speech", "in", "sentiment")
        yield Table(caption, words, ("difference", "interval", "names", "p", "p adj."), rows)
    if len(agreement):
        rows = [
            [
                r["language"],
                r["pos"],
                str(r["words"]),
                number(r["value"]),
                interval(r),
                f"{r['n']:,}",
                number(r["p"], 4),
                number(r["p_bh"], 3),
            ]
            for r in agreement.sort("language", "pos").to_dicts()
        ]
        where = ("language", "part of speech")
        numbers = ("words", "correlation", "interval", "names", "p", "p adj.")
        yield Table("Agreement of both parts", where, numbers, rows)
