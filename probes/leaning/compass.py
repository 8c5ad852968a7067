"""Analysis ``compass``: where models stand on the axes of a political questionnaire.

Feng et al. (2023): stances on statements, read off a masked word or an answer, are scored as a
person's would be; before and after further training on partisan texts. Röttger et al. (2024):
options that are offered, and what becomes of the stance when the question changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.probes.leaning import coordinates as rows_of
from plumbline.probes.leaning.coordinates import Reading, Rows
from plumbline.probes.leaning.responses import NEGATED, PLAIN, STATE, answers, outputs, readings
from plumbline.probes.leaning.schemas import ASKED, SCHEMAS
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import Scale, scales
from plumbline.probes.leaning.stability import answered, stability
from plumbline.probes.prompts.leaning import FORMS
from plumbline.probes.stats.estimate import adjusted, finite, typed

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("statements",)
OUTPUTS = ("leaning",)
TABLES = ()
OPTIONAL = ("questions", "shifts", "stability")  # tables that may have no row
__all__ = ["DATASETS", "EACH", "OUTPUTS", "SCHEMAS", "TABLES", "Params", "run"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``questions`` only of masked models, ``shifts`` only with
        trained states, ``stability`` only where something was prompted twice.

    Raises
    ------
    Problem
        If responses are missing, or are to a questionnaire without axes.
    """
    found: dict[str, Rows] = {name: [] for name in SCHEMAS}
    known: dict[str, Scale] = {}
    for model in inputs.models:
        for asked in ASKED:
            told = outputs(inputs.outputs("leaning", model), asked)
            if told is None:
                continue
            names = set(told["questionnaire"]) - {""}
            known |= scales(inputs.datasets["statements"], names - set(known))
            tables = {"questions": _questions(told)} if asked == "filled" else {}
            for judged in readings(asked, told, params):
                for name in sorted(names):
                    own = Reading(asked, judged.reading, answers(judged.answers, known[name]))
                    for table, rows in (
                        ("coordinates", rows_of.coordinates(own, params)),
                        ("runs", rows_of.runs(own, params)),
                        ("items", rows_of.items(own, params)),
                        ("shifts", rows_of.shifts(own, params)),
                        ("stability", stability(own, judged, params)),
                        ("answered", answered(own, judged, params)),
                    ):
                        tables.setdefault(table, []).extend(rows)
            for table, rows in tables.items():
                found[table] += [{"model": model} | row for row in rows]
    for scale in known.values():
        found["baselines"] += rows_of.baselines(scale)
    return {name: _table(own, name) for name, own in found.items() if own or name not in OPTIONAL}


def _questions(told: pl.DataFrame) -> Rows:
    """Return the log-odds of agreeing with each statement in each prompt, as it is and denied."""
    real = told.filter(pl.col("form").is_in([PLAIN, NEGATED]) & (pl.col("variant") == ""))
    key = [*STATE, "questionnaire", "id", "frame", "form"]
    odds = (pl.col("agree_nats") - pl.col("disagree_nats")).mean()
    rows = real.group_by(key).agg(log_odds_nats=odds).sort(key).to_dicts()
    return [
        row | {"form": FORMS[row["form"]], "log_odds_nats": finite(row["log_odds_nats"])}
        for row in rows
    ]


def _table(own: list[dict[str, Any]], name: str) -> pl.DataFrame:
    """Return rows as a table, in the order of its key."""
    schema = SCHEMAS[name]
    if not own:
        raise Problem(f"analysis.compass: no row of {name}; does any model have outputs?")
    table = pl.DataFrame(own, infer_schema_length=None)
    for column in {"shifts": ("p", "p_seeds")}.get(name, ("p",)):
        if "p" in table.columns:
            table = adjusted(table, column, ("model", "questionnaire", "asked", "reading"))
    return typed(table, schema).sort(schema.key)
