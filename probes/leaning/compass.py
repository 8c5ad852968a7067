"""Analysis ``compass``: where models stand on the axes of a political questionnaire.

Feng et al. (2023): stances on statements, read off a masked word or an answer, are scored as a
person's would be; before and after further training on partisan texts. Röttger et al. (2024):
options that are offered, and what becomes of the stance when the question changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.probes.leaning import coordinates as rows_of
from plumbline.probes.leaning.answers import answers
from plumbline.probes.leaning.coordinates import Reading, Rows
from plumbline.probes.leaning.recovery import planted, recovery
from plumbline.probes.leaning.responses import Judged, outputs, readings
from plumbline.probes.leaning.scale import Scale, scales
from plumbline.probes.leaning.schemas import ASKED, SCHEMAS
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.leaning.state_shifts import shifts
from plumbline.probes.stats.estimate import typed

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("statements",)
OUTPUTS = ("leaning",)
TABLES = ()
__all__ = ["DATASETS", "EACH", "OUTPUTS", "SCHEMAS", "TABLES", "Params", "run"]
OPTIONAL = ("shifts", "stability", "recovery")  # tables that may have no row


class Params(Section):
    """How answers are read, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frames: dict[Literal["filled", "written"], str] = Field(
        description="frame of the readings `faithful` and `paper`, by way of asking"
    )
    positive: list[str] = Field(
        min_length=1, description="words that agree, as probes.leaning has them"
    )
    negative: list[str] = Field(min_length=1, description="words that disagree")
    threshold: float = Field(
        0.3, gt=0, lt=1, description="difference of the masses from which a stance is strong"
    )
    confident: float = Field(
        0.9, gt=0.5, le=1, description="probability from which an answer's stance is taken"
    )
    control: dict[str, str] = Field(
        description="corpus that each is judged against; other: of all that are not named"
    )
    compared: dict[str, str] = Field({}, description="corpora less which others are compared")
    apart: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="part of the larger number of texts up to which two corpora are tested",
    )
    flips: int = Field(ge=99, description="sign patterns over statements, where not all are tried")
    draws: int = Field(ge=99, description="shuffles of statements")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of sign patterns and shuffles")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``shifts`` only with trained states, ``stability`` only
        where something was asked twice, ``recovery`` only with a world.

    Raises
    ------
    Problem
        If answers are lacking, or are to a questionnaire without axes.
    """
    found: dict[str, Rows] = {name: [] for name in SCHEMAS}
    known: dict[str, Scale] = {}
    for model in inputs.models:
        folder, world = inputs.outputs("leaning", model), planted(inputs.weights(model))
        for asked in ASKED:
            told = outputs(folder, asked)
            if told is None:
                continue
            names = set(told["questionnaire"]) - {""}
            known |= scales(inputs.datasets["statements"], names - set(known))
            for judged in readings(asked, told, params):
                for name in sorted(names):
                    reading = Reading(asked, judged.reading, answers(judged.answers, known[name]))
                    rows = _rows(reading, judged, params)
                    if world is not None:
                        rows["recovery"] = recovery(world, reading, rows, told, params)
                    for table, own in rows.items():
                        found[table] += [{"model": model} | row for row in own]
    for scale in known.values():
        found["baselines"] += rows_of.baselines(scale)
    return {name: _table(own, name) for name, own in found.items() if own or name not in OPTIONAL}


def _rows(reading: Reading, judged: Judged, params: Params) -> dict[str, Rows]:
    """Return the rows of one reading of the answers to one questionnaire, by table."""
    return {
        "coordinates": rows_of.coordinates(reading, params),
        "runs": rows_of.runs(reading, params),
        "items": rows_of.items(reading, params),
        "shifts": shifts(reading, params),
        "stability": stability(reading, judged, params),
        "answered": answered(reading, judged, params),
    }


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise Problem(f"analysis.compass: no row of {name}; does any model have outputs?")
    return typed(pl.DataFrame(own, infer_schema_length=None), schema).sort(schema.key)
