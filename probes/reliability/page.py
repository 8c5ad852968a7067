"""The page of reliability: what the scores of each study vary with."""

from __future__ import annotations

from functools import cache

import polars as pl

from plumbline.builders.core.params import STUDIES
from plumbline.probes import PROBES, module_of
from plumbline.probes.report import figures
from plumbline.probes.report.tables import Source, Tables, parts
from plumbline.probes.report.view import Place, study

PLACE = ("study", "probe", "measure", "scale", "language", "model")
POOLED = {"model": "all models", "language": "all languages"}  # in place of an empty name
LARGEST = 3  # parts in a sentence
REACH = 1.6  # of the axis, in largest values: intervals of few levels have no end worth drawing
UNIT = "standard deviation of scores of {}, with 95% interval, cut at the edge"


@cache
def table(name: str) -> Source:
    """Return what reads a table of the analysis, with the study that each probe is of."""

    def read(tables: Tables) -> pl.DataFrame:
        found = tables.read(f"reliability/{name}")
        if not found.columns:
            return found
        of = {probe: module_of(probe).split(".")[2] for probe in PROBES}
        named = [pl.col(c).replace("", text) for c, text in POOLED.items() if c in found.columns]
        return found.with_columns(
            pl.col("probe").replace_strict(of, return_dtype=pl.Enum(STUDIES)).alias("study"), *named
        )

    return read


def sentences(tables: Tables) -> pl.DataFrame:
    """Return for each study what its scores vary with."""
    told = tables.read(table("parts"))
    rows = [
        {"study": of, "varies": varies(own)}
        for (of,), own in (parts(told, "study") if len(told) else ())
    ]
    return pl.DataFrame(rows)


def varies(own: pl.DataFrame) -> str:
    """Say which parts of variance are largest: medians over measures, languages and models."""
    single = own.filter(~pl.col("model").is_in([*POOLED.values()]))
    single = single.filter(~pl.col("language").is_in([*POOLED.values()]))
    known = single.drop_nulls("share")
    if known.is_empty():
        why = single.filter(pl.col("reason") != "")["reason"].mode().sort()
        return f"No number: {why[0] if len(why) else 'scores do not vary'}."
    largest = known.group_by("term").agg(pl.median("share"))
    largest = largest.sort(["share", "term"], descending=[True, False]).head(LARGEST)
    shares = ", ".join(f"{term} {share:.0%}" for term, share in largest.iter_rows() if share)
    number = known.select(PLACE).n_unique()
    return f"Scores vary with {shares} of the variance (n = {number})."


def reasons(tables: Tables) -> pl.DataFrame:
    """Return how often there is no number, and why."""
    kinds = {"parts": "term", "consistency": "items"}
    found = [
        own.filter(pl.col("reason") != "").select(
            "study", "reason", table=pl.lit(name), of=pl.col(column).cast(pl.String)
        )
        for name, column in kinds.items()
        if len(own := tables.read(table(name)))
    ]
    if not found:
        return pl.DataFrame()
    by = ["study", "table", "of", "reason"]
    return pl.concat(found).group_by(by).len("number").sort(by)


def _parts(own: pl.DataFrame, place: Place) -> figures.Forest | str:
    """Draw standard deviations: roots of parts and of the ends of their intervals."""
    ends = pl.col("value"), pl.col("low").fill_null(0), pl.col("high").fill_null(float("inf"))
    rows = own.drop_nulls("value").with_columns(end.clip(0).sqrt() for end in ends).to_dicts()
    if not rows:
        return ""
    rows.sort(key=lambda row: (row["term"] == "rest", row["term"].count(" x "), row["term"]))
    models = list(dict.fromkeys(row["model"] for row in rows))
    measure = ", ".join(filter(None, (rows[0]["measure"], rows[0]["scale"])))
    top = REACH * max(row["value"] for row in rows) or 1.0
    of = {"title": place.title, "panel": "model", "panels": models, "limits": (0.0, top)}
    return figures.shared(rows, line="term", unit=UNIT.format(measure), **of)


STUDY = study(__file__, globals())
