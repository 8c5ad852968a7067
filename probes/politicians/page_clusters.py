"""Words of a gender in a model's states: the analysis ``clusters``, as Figure 5."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.politicians.clusters import FITS, JOINT, MEASURES, SHARES, WORDS
from plumbline.probes.politicians.pmi import PMI
from plumbline.probes.report import figures
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
    tables,
)

if TYPE_CHECKING:
    from pathlib import Path

NOTE = (
    "k-means over the last hidden states of the words that deviate most to each gender. Star: the "
    "number of clusters with the largest silhouette, which the figure shows. Inertia: best run, "
    "and range over seeds. Silhouette: bootstrap over words; judged against one normal cloud of "
    "the same mean and covariance. Stability: adjusted Rand index of pairs of seeds, and its "
    "range. A silhouette near 0 is no cluster, however stable. Genders that are not here were left "
    "out for want of people, which is no finding of no pattern."
)


def section(data: Path) -> Section:
    """Return figures and measures for each model, language and part of speech."""
    groups = []
    folder = data / "tables/clusters"
    for name, fits in tables(data, "clusters", "fits", FITS):
        words = labelled(pl.read_parquet(folder / name / "words.parquet"), WORDS)
        shares = labelled(pl.read_parquet(folder / name / "shares.parquet"), SHARES)
        blocks = []
        for (language, pos), part in parts(fits, "language", "pos"):
            here = (pl.col("language") == language) & (pl.col("pos") == pos)
            title = f"{name}, {language}, {pos}"
            people = _counts(data / "tables/pmi" / name / "pmi.parquet", language)
            found = _parts(part, words.filter(here), shares.filter(here), people, title)
            blocks.append(Block(title, found))
        groups.append(Group(name, blocks))
    title = "Words of each gender in the model's states (Figure 5)"
    return Section("clusters", title, NOTE, groups, "clusters")


def _parts(
    fits: pl.DataFrame,
    words: pl.DataFrame,
    shares: pl.DataFrame,
    people: dict[str, int],
    title: str,
) -> list[Part]:
    found = []
    for (group,), own in parts(fits, "group"):
        places = words.filter(pl.col("group") == group).sort("word")
        shown = [_measures(own)]
        if group == JOINT and len(shares):
            shown.append(_genders(shares))
        heading = f"{group} ({own['words'][0]} words{_people(people, group)})"
        drawn = figures.clusters(places, f"{title}, {group}") if len(places) else ""
        found.append(Part(heading, drawn, tables=tuple(shown)))
    return found[-1:] + found[:-1] if found[-1].heading.startswith(JOINT) else found


def _counts(path: Path, language: str) -> dict[str, int]:
    """Return how many people of each gender the deviations of the words are of."""
    if not path.is_file():
        return {}
    table = labelled(pl.read_parquet(path, columns=["language", "gender", "people"]), PMI)
    here = table.filter(pl.col("language") == language)
    return dict(here.select("gender", "people").unique().iter_rows())


def _people(people: dict[str, int], group: str) -> str:
    return f", {people[group]:,} people" if group in people else ""


def _measures(fits: pl.DataFrame) -> Table:
    rows = []
    for (clusters,), part in parts(fits, "clusters"):
        by: dict[str, dict[str, Any]] = {r["measure"]: r for r in part.to_dicts()}
        chosen = "*" if by["silhouette"]["chosen"] else ""
        cells = [f"{number(by[m]['value'])} ({interval(by[m])})" for m in MEASURES]
        p = [number(by["silhouette"]["p"], 3), number(by["silhouette"]["p_bh"], 3)]
        rows.append([f"{clusters}{chosen}", *cells, *p])
    return Table("", ("clusters",), (*MEASURES, "p of silhouette", "p adj."), rows)


def _genders(shares: pl.DataFrame) -> Table:
    rows = [
        [
            str(r["part"]),
            r["gender"],
            f"{r['count']} of {r['words']}",
            number(r["value"]),
            interval(r),
            number(r["expected"]),
            number(r["p"], 4),
            number(r["p_bh"], 3),
        ]
        for r in shares.sort("part", "gender").to_dicts()
    ]
    numbers = ("words", "share", "interval", "expected", "p", "p adj.")
    return Table("Genders in the clusters of all words", ("cluster", "gender"), numbers, rows)
