"""Analysis ``values``: the political values that a model seems to have, and what gender does to it.

Al Ali and Libovický (2024): agreement with political statements beyond the habit of agreeing, which
statements about nothing political tell; rated from 1 to 5 and held against a survey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.probes.stats.estimate import adjusted, typed
from plumbline.probes.values import ratings as rows_of
from plumbline.probes.values.calibration import fit
from plumbline.probes.values.consistency import consistency
from plumbline.probes.values.ratings import Reading
from plumbline.probes.values.responses import Cell, answers, block, statements
from plumbline.probes.values.schemas import SCHEMAS, Params
from plumbline.probes.values.survey import baselines, respondents, standing, surveys

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("statements", "survey")
OUTPUTS = ("agreement",)
TABLES = ()
METHODS = {"faithful": ("together", "sequence"), "corrected": ("l2r", "sequence")}
OPTIONAL = ("respondents", "standing")  # tables that may have no row
FAMILIES = {  # columns that are equal in tests that are adjusted together
    "values": ("model", "language", "scale", "reading"),
    "gender": ("model", "language", "scale", "reading", "fitted"),
    "calibration": ("model", "language", "reading"),
    "consistency": ("model", "language", "scale"),
}
__all__ = ["DATASETS", "EACH", "OUTPUTS", "SCHEMAS", "TABLES", "Params", "run"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If a language has no statements for calibration, or none that bear on a value.
    """
    folder = inputs.datasets["statements"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    every: dict[str, pl.DataFrame] = {}
    for model in inputs.models:
        outputs = inputs.outputs("agreement", model)
        for language in sorted(p.name for p in outputs.iterdir() if p.is_dir()):
            about = every.setdefault(language, statements(folder, language))
            for name, own in _model(answers(outputs, language), about, params).items():
                found[name] += [{"model": model, "language": language} | row for row in own]
    people = surveys(inputs.datasets["survey"], statements(folder))
    found["standing"] = standing(found["values"], people)
    found["respondents"] = [row for survey in people for row in respondents(survey, params)]
    for language, about in sorted(every.items()):
        bearing = about.filter(pl.col("axis") != "")
        found["baselines"] += baselines(bearing, language, people, params)
    return {name: _table(own, name) for name, own in found.items() if own or name not in OPTIONAL}


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise Problem(f"analysis.values: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    if name in FAMILIES:
        table = adjusted(table, over=FAMILIES[name])
    if name == "gender":
        table = adjusted(table, "p_equivalence", FAMILIES[name])
        both = table.select("p_bh", "p_equivalence_bh").iter_rows()
        table = table.with_columns(verdict=pl.Series([rows_of.verdict(*p) for p in both]))
    return typed(table, schema).sort(schema.key)


def _model(
    answered: pl.DataFrame, about: pl.DataFrame, params: Params
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of one model in one language, by table."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    there = answered["method"].unique().to_list()
    neutral = about.filter(pl.col("polarity").is_not_null())
    bearing = about.filter(pl.col("axis") != "")
    if neutral.is_empty() or bearing.is_empty():
        missing = "for calibration" if neutral.is_empty() else "that bear on a value"
        raise Problem(
            f"datasets.statements.configs: no statements {missing} in a language of the outputs; "
            "name a questionnaire with them"
        )
    for scale in sorted(set(bearing["scale"])):
        pair = (neutral, bearing.filter(pl.col("scale") == scale))
        for name, methods in METHODS.items():
            method = next(m for m in methods if m in there)
            cells = [Cell(params.frame, "plain")] if name == "faithful" else None
            blocks = [block(answered, part, method, cells) for part in pair]
            drawn = [b.weights(params.bootstrap, params.seed) for b in blocks]
            reading = Reading(name, blocks[0], blocks[1], drawn[0], drawn[1])
            found["values"] += rows_of.values(reading, params)
            found["gender"] += rows_of.gender(reading, params)
            found["calibration"] += rows_of.lines(reading, params)
            found["answers"] += rows_of.answers(
                reading, fit(reading.calibration, reading.weights[:, :1])
            )
            found["points"] += rows_of.points(reading)
        sides = {
            m: (block(answered, pair[0], m), block(answered, pair[1], m))
            for m in sorted(there, reverse=True)
        }
        found["consistency"] += consistency(sides, (drawn[0], drawn[1]), params)
    for name in ("answers", "points", "calibration", "consistency"):  # of several scales once
        key = [k for k in SCHEMAS[name].key if k not in ("model", "language")]
        found[name] = list({tuple(row[k] for k in key): row for row in found[name]}.values())
    return found
