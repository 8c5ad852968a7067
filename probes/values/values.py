"""Analysis ``values``: the political values that a model seems to have, and what gender does to it.

Al Ali and Libovický (2024): agreement with political statements beyond the habit of agreeing, which
statements about nothing political tell; rated from 1 to 5 and held against a survey.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.probes.stats.estimate import typed
from plumbline.probes.values import ratings as rows_of
from plumbline.probes.values.calibration import fit
from plumbline.probes.values.consistency import consistency
from plumbline.probes.values.ratings import Reading
from plumbline.probes.values.recovery import is_null, planted, recovery
from plumbline.probes.values.responses import Block, Cell, answers, block, statements
from plumbline.probes.values.schemas import SCHEMAS
from plumbline.probes.values.survey import baselines, respondents, standing, surveys

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("statements", "survey")
OUTPUTS = ("agreement",)
TABLES = ()
METHODS = {"faithful": ("together", "sequence"), "corrected": ("l2r", "sequence")}
__all__ = ["DATASETS", "EACH", "OUTPUTS", "SCHEMAS", "TABLES", "Params", "run"]


class Params(Section):
    """How agreement is calibrated, resampled and tested."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frame: str = Field(description="frame of the reading `faithful`")
    bound: float = Field(
        gt=0, lt=4, description="difference in rating between genders that would matter"
    )
    bootstrap: int = Field(ge=100, description="bootstrap replicates over statements")
    draws: int = Field(ge=99, description="random answers, and shuffles")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``recovery`` only with a world.

    Raises
    ------
    Problem
        If a language has no statements for calibration, or none that bear on a value.
    """
    folder = inputs.datasets["statements"]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    every: dict[str, pl.DataFrame] = {}
    for model in inputs.models:
        outputs, world = inputs.outputs("agreement", model), planted(inputs.weights(model))
        for language in sorted(p.name for p in outputs.iterdir() if p.is_dir()):
            about = every.setdefault(language, statements(folder, language))
            answered = answers(outputs, language)
            told = _model(answered, about, world, params)
            for name, own in told.items():
                found[name] += [{"model": model, "language": language} | row for row in own]
    asked = surveys(inputs.datasets["survey"], _all(folder))
    found["standing"] = standing(found["values"], asked)
    found["respondents"] = [row for survey in asked for row in respondents(survey, params)]
    for language, about in sorted(every.items()):
        found["baselines"] += baselines(about.filter(pl.col("axis") != ""), language, asked, params)
    return {
        name: _table(own, name)
        for name, own in found.items()
        if own or name not in ("recovery", "respondents", "standing")
    }


def _all(folder: Path) -> pl.DataFrame:
    columns = ["scale", "id", "axis", "weight", "reversed"]
    return pl.concat(
        pl.read_parquet(folder / f"{config}.parquet", columns=columns)
        for config in parquet.configs(folder)
    )


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise Problem(f"analysis.values: no row of {name}; does any model have outputs?")
    return typed(pl.DataFrame(own, infer_schema_length=None), schema).sort(schema.key)


def _model(
    answered: pl.DataFrame, about: pl.DataFrame, world: pl.DataFrame | None, params: Params
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of one model in one language, by table."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    there = answered["method"].unique().to_list()
    neutral = about.filter(pl.col("polarity").is_not_null())
    bearing = about.filter(pl.col("axis") != "")
    if neutral.is_empty() or bearing.is_empty():
        lacking = "for calibration" if neutral.is_empty() else "that bear on a value"
        raise Problem(
            f"datasets.statements.configs: no statements {lacking} in a language that was asked; "
            "name a questionnaire with them"
        )
    for scale in sorted(set(bearing["scale"])):
        pair = (neutral, bearing.filter(pl.col("scale") == scale))
        for name, methods in METHODS.items():
            method = next(m for m in methods if m in there)
            cells = [Cell(params.frame, "plain")] if name == "faithful" else None
            reading = _reading(name, answered, pair, method, cells, params)
            lines = fit(reading.calibration, reading.weights[:, :1])
            found["values"] += rows_of.values(reading, params)
            found["gender"] += rows_of.gender(reading, params)
            found["calibration"] += rows_of.lines(reading, params)
            found["answers"] += rows_of.answers(reading, lines)
            if name == "faithful":
                found["points"] += rows_of.points(reading)
            if world is not None:
                true = _reading(name, _as_answers(world, method), pair, method, cells, params)
                null = is_null(world)
                for row in recovery(reading, true, null, params):
                    found["recovery"].append({"world": int(null)} | row)
        blocks = {m: _blocks(answered, pair, m) for m in sorted(there, reverse=True)}
        first = next(iter(blocks.values()))
        drawn = [b.weights(params.bootstrap, params.seed) for b in first]
        found["consistency"] += consistency(blocks, (drawn[0], drawn[1]), params)
    for name in ("answers", "points", "calibration", "consistency"):  # of several scales once
        key = [k for k in SCHEMAS[name].key if k not in ("model", "language")]
        found[name] = list({tuple(row[k] for k in key): row for row in found[name]}.values())
    return found


def _blocks(
    answered: pl.DataFrame,
    pair: tuple[pl.DataFrame, pl.DataFrame],
    method: str,
    cells: list[Cell] | None = None,
) -> tuple[Block, Block]:
    return block(answered, pair[0], method, cells), block(answered, pair[1], method, cells)


def _reading(
    name: str,
    answered: pl.DataFrame,
    pair: tuple[pl.DataFrame, pl.DataFrame],
    method: str,
    cells: list[Cell] | None,
    params: Params,
) -> Reading:
    calibration, items = _blocks(answered, pair, method, cells)
    drawn = (b.weights(params.bootstrap, params.seed) for b in (calibration, items))
    return Reading(name, calibration, items, *drawn)


def _as_answers(world: pl.DataFrame, method: str) -> pl.DataFrame:
    """Return what was planted in the shape of answers by a method."""
    return world.with_columns(method=pl.lit(method))
