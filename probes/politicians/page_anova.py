"""How shares go with architecture, size and language: the analysis ``anova``, Tables 5 and 8."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.politicians import sentiment
from plumbline.probes.politicians.anova import COEFFICIENTS, TESTS
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
)
from plumbline.probes.worlds.politicians import SENTIMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTE = (
    "Linear models with treatment coding of the shares above, in percent: two-way (family, size) "
    "in each language, three-way (and language) over models that were asked in several. A "
    "coefficient is the difference from the reference level. Intervals: t of least squares, as in "
    "the paper, and of a jackknife over models, which errors may be unequal and clustered for. "
    "Star: adjusted p at most 0.05, over all coefficients of one ranking and reading. Where the "
    "models there are do not tell, the reason stands in place of the number. Worlds and real "
    "models are never mixed."
)


def section(data: Path) -> Section:
    """Return coefficients and tests of every design, ranking, reading and part of speech."""
    groups = []
    path = data / "tables/anova/coefficients.parquet"
    if path.is_file():
        table = labelled(pl.read_parquet(path), COEFFICIENTS)
        tests = labelled(pl.read_parquet(path.parent / "tests.parquet"), TESTS)
        names = _names(data / "tables/sentiment/shares.parquet")
        for (models,), own in parts(table, "models"):
            keys = ("design", "language", "deviation", "reading", "pos")
            blocks = []
            for values, part in parts(own, *keys):
                here = pl.all_horizontal(
                    pl.col("models") == models,
                    *(pl.col(k) == v for k, v in zip(keys, values, strict=True)),
                )
                blocks.append(
                    Block(", ".join(values), list(_parts(part, tests.filter(here), names)))
                )
            groups.append(Group(models, blocks))
    title = "Shares by architecture, size and language (Tables 5 and 8)"
    return Section("anova", title, NOTE, groups, "anova")


def _names(path: Path) -> dict[str, str]:
    """Return how many distinct names of a gender, non-binary above all, are behind the shares."""
    if not path.is_file():
        return {}
    shares = labelled(pl.read_parquet(path), sentiment.SHARES)
    found = {}
    for (gender,), part in parts(shares, "gender"):
        ends = [part["names"].min(), part["names"].max()]
        found[gender] = f" (distinct names: {' to '.join(dict.fromkeys(map(str, ends)))})"
    return found


def _parts(table: pl.DataFrame, tests: pl.DataFrame, names: dict[str, str]) -> Iterator[Part]:
    for (response,), own in parts(table, "response"):
        rows = [
            _coefficient(part.to_dicts(), kind)
            for (_, _, kind), part in parts(own, "factor", "level", "interval")
        ]
        size = f"{max(own['rows'])} shares, {max(own['freedom'])} residual degrees of freedom"
        words = ("term", "interval", "why not")
        fitted = Table(f"Coefficients, percent ({size})", words, SENTIMENTS, rows)
        here = tests.filter(pl.col("response") == response)
        judged = [_test(part.to_dicts(), factor) for (factor,), part in parts(here, "factor")]
        words = ("factor", "degrees of freedom", "why not")
        tested = Table("F of each factor, given the others (type II)", words, SENTIMENTS, judged)
        yield Part(response + names.get(response, ""), tables=(fitted, tested))


def _coefficient(rows: list[dict[str, Any]], kind: str) -> list[str]:
    """Return the cells of a term: its three coefficients, or why there are none."""
    one = rows[0]
    term = one["factor"]
    if one["level"] and one["level"] != one["reference"]:
        term = f"{one['factor']}: {one['level']} against {one['reference']}"
    cells = {
        r["sentiment"]: "–"
        if r["value"] is None
        else f"{number(r['value'])} ({interval(r)}){_star(r['p_bh'])}"
        for r in rows
    }
    return [term, kind, _reasons(rows), *(cells[s] for s in SENTIMENTS)]


def _test(rows: list[dict[str, Any]], factor: str) -> list[str]:
    cells = {
        r["sentiment"]: "–"
        if r["f"] is None
        else f"{number(r['f'])} (p {number(r['p'], 4)}, adj. {number(r['p_bh'], 3)})"
        for r in rows
    }
    freedom = f"{rows[0]['freedom']} and {rows[0]['residual']}"
    return [factor, freedom, _reasons(rows), *(cells[s] for s in SENTIMENTS)]


def _reasons(rows: list[dict[str, Any]]) -> str:
    return "; ".join(sorted({r["reason"] for r in rows if r["reason"]}))


def _star(p: float | None) -> str:
    return "*" if p is not None and p <= LEVEL else ""
