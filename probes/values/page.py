"""Values that models seem to have, and grammatical gender: the analysis ``values``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.probes.report import figures_values
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
from plumbline.probes.values.schemas import SCHEMAS

if TYPE_CHECKING:
    from pathlib import Path

TITLE = "What models agree with, and whether gender matters"
NOTE = (
    "How far a model agrees with political statements beyond its habit of agreeing, which "
    "statements about nothing political tell: the line of the figure. Ratings from 1 to 5, 3 is "
    "the habit itself. Gender: the same sentences said by a woman or a man; 'equivalent' means "
    "that a difference as large as the bound is rejected, which a large p alone never shows. "
    "Read first how often a likely statement is agreed with more than an unlikely one: at one "
    "half, the model does not understand the question, and the rest says nothing."
)
MEASURE = ("slope", "sigma (n-1)", "likely above unlikely")


def section(data: Path) -> Section:
    """Return the calibration, the values and the tests of gender of each model."""
    folder = data / "tables/values"
    groups = []
    if (folder / "values.parquet").is_file():
        found = {
            name: labelled(pl.read_parquet(folder / f"{name}.parquet"), schema)
            for name, schema in SCHEMAS.items()
            if (folder / f"{name}.parquet").is_file()
        }
        for (model,), own in parts(found["values"], "model"):
            blocks = [
                Block(f"{model}, {language}, {scale}", _parts(found, part, model, language, scale))
                for (language, scale), part in parts(own, "language", "scale")
            ]
            groups.append(Group(model, blocks))
    return Section("values", TITLE, NOTE, groups, "values")


def _parts(
    found: dict[str, pl.DataFrame], values: pl.DataFrame, model: str, language: str, scale: str
) -> list[Part]:
    here = (pl.col("model") == model) & (pl.col("language") == language)
    lines = found["calibration"].filter(
        here & (pl.col("fitted") == "pooled") & ~pl.col("intercept")
    )
    points = found["points"].filter(
        here & (pl.col("reading") == "faithful") & pl.col("scale").is_in([scale, "calibration"])
    )
    values = values.filter(
        (pl.col("fitted") == "pooled") & ~pl.col("intercept") & (pl.col("spread") == "n-1")
    )
    people, about = _survey(found, scale)
    title = f"{model}, {language}"
    result = [
        Part(
            figure=_scatter(points, lines, title),
            caption="One frame, as the paper has it. Marks far from the line are strong opinions.",
            tables=(_lines(lines),),
        )
    ]
    for n, ((reading,), own) in enumerate(parts(values, "reading")):
        rows = own.filter(pl.col("gender") != "both").to_dicts()
        drawn = figures_values.values(rows, people, about, f"{title}, {reading}")
        heading = f"values, {reading}"
        result.append(Part(heading, drawn, tables=(_values(own),), beside=n > 0))
    gender = found["gender"].filter(
        here
        & (pl.col("scale") == scale)
        & (pl.col("fitted") == "pooled")
        & ((pl.col("measure") == "value") | (pl.col("axis") == "calibration"))
    )
    consistent = found["consistency"].filter(here & (pl.col("scale") == scale))
    return [*result, Part(tables=(_gender(gender), _consistency(consistent)))]


def _survey(found: dict[str, pl.DataFrame], scale: str) -> tuple[dict[str, dict[str, float]], str]:
    """Return quartiles of all respondents of the first survey of a scale, and what it is."""
    table = found.get("respondents")
    if table is None:
        return {}, ""
    own = table.filter(
        (pl.col("scale") == scale) & (pl.col("gender") == "all") & (pl.col("infected") == "all")
    )
    if own.is_empty():
        return {}, ""
    first = own["survey"][0]
    rows = own.filter(pl.col("survey") == first).to_dicts()
    said = f"the SIMULATED survey {first!r}" if rows[0]["simulated"] else f"the survey {first!r}"
    return {row["axis"]: row for row in rows}, said


def _scatter(points: pl.DataFrame, lines: pl.DataFrame, title: str) -> str:
    own = lines.filter(pl.col("reading") == "faithful")
    at = {row["measure"]: row["value"] for row in own.to_dicts()}
    rows = points.with_columns(calibration=pl.col("scale") == "calibration").to_dicts()
    return figures_values.calibration(rows, at["slope"], at["sigma (n-1)"], title)


def _lines(lines: pl.DataFrame) -> Table:
    rows = [
        [
            *(r["reading"], r["frame"], r["form"], r["measure"]),
            *(number(r["value"], 3), interval(r, 3), number(r["p"], 4), str(r["n"])),
        ]
        for r in lines.sort("reading", "measure", "frame", "form").to_dicts()
        if r["measure"] in MEASURE
    ]
    words = ("reading", "frame", "form", "measure")
    return Table("calibration", words, ("value", "interval", "p", "statements"), rows)


def _values(values: pl.DataFrame) -> Table:
    rows = [
        [
            *(r["axis"], r["gender"], number(r["value"]), number(r["sd"]), interval(r)),
            *(number(r["p"], 4), number(r["p_bh"], 3), str(r["items"])),
        ]
        for r in values.sort("axis", "gender").to_dicts()
    ]
    numbers = ("mean", "SD", "interval", "p, random answers", "p adj.", "statements")
    return Table("", ("value", "gender"), numbers, rows)


def _gender(table: pl.DataFrame) -> Table:
    rows: list[list[str]] = [
        [
            *(r["axis"], r["reading"], r["verdict"], number(r["value"], 3), interval(r, 3)),
            *(number(r["p"], 4), number(r["p_bh"], 3), number(r["bound"], 2)),
            *(interval(_equivalence(r), 3), number(r["p_equivalence_bh"], 3), str(r["n"])),
        ]
        for r in table.sort("reading", "axis").to_dicts()
    ]
    numbers = (
        *("feminine − masculine", "interval", "p", "p adj.", "bound", "interval of the tests"),
        *("p equivalence adj.", "clusters"),
    )
    return Table("gender", ("value", "reading", "verdict"), numbers, rows)


def _equivalence(row: dict[str, Any]) -> dict[str, Any]:
    return {"low": row["equivalence_low"], "high": row["equivalence_high"]}


def _consistency(table: pl.DataFrame) -> Table:
    rows = [
        [
            *(r["compared"], f"{r['first']} – {r['second']}", number(r["value"])),
            *(interval(r), number(r["spearman"]), number(r["p_bh"], 3), str(r["n"])),
        ]
        for r in table.sort("compared", "first", "second").to_dicts()
    ]
    numbers = ("Pearson", "interval", "Spearman", "p adj.", "clusters")
    return Table("does the model agree with itself?", ("compared", "sides"), numbers, rows)
