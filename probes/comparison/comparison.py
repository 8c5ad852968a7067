"""Analysis ``comparison``: differences between the estimates of two models, study by study.

No stage runs it, see :func:`plumbline.compare`. Differences are taken within a name, a group, a
statement or a text first, so that effects of an item on both models cancel out.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.comparison import (
    leaning,
    nationality,
    politicians,
    stereotypes,
    values,
)
from plumbline.probes.comparison.difference import Params
from plumbline.probes.stats.estimate import DF, adjusted, estimates, finite, typed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from plumbline.probes.comparison.difference import Difference
    from plumbline.probes.core.run_analysis import Inputs

STUDIES: dict[str, ModuleType] = {
    module.__name__.rpartition(".")[2]: module
    for module in (politicians, stereotypes, values, nationality, leaning)
}
FAMILY = ("study",)
COMPARISON = Schema.keyed(
    (
        Column("study", "string", "whose finding it is"),
        Column("first", "string", "a model"),
        Column("second", "string", "another"),
        Column("language", "string", "language of the prompts; empty: the study has one"),
        Column("scale", "string", "part of speech, dataset, questionnaire, or config"),
        Column("what", "string", "word, category, value, country, or axis"),
    ),
    *estimates(
        cluster="name, group, statement, text, or word, by study",
        method="95% t interval of paired differences",
        null="0: both models alike (values whose statements have no opposites are not tested)",
    ),
    Column("family", "int64", "tests in the family that p_bh is taken over"),
    Column("unit", "string", "of the difference"),
    Column("value_first", "float64", "finding about the first model", nullable=True),
    Column("value_second", "float64", "finding about the second", nullable=True),
)
SCHEMAS = {"comparison": COMPARISON}
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models, the one that is named first minus the other.

    Returned: ``comparison``, see :data:`SCHEMAS`; p is adjusted over all rows of a study.
    """
    rows = []
    for study, module in STUDIES.items():
        there = [m for m in inputs.models if inputs.outputs(module.PROBE, m).is_dir()]
        told = {model: module.read(inputs, model, params) for model in there}
        for pair in combinations(there, 2):
            one, other = (told[model] for model in pair)
            for place in sorted(set(one) & set(other)):
                found = module.apart(place, one[place], other[place], params)
                rows += [_row(study, pair, each, module) for each in found]
    if not rows:
        return {"comparison": pl.DataFrame(pl.from_arrow(COMPARISON.arrow().empty_table()))}
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = adjusted(table.with_columns(pl.col("p").cast(pl.Float64)), over=FAMILY)
    table = typed(table, COMPARISON, params.confidence)
    return {"comparison": table.sort(COMPARISON.key, maintain_order=True)}


def _row(
    study: str, models: Sequence[str], found: Difference, module: ModuleType
) -> dict[str, object]:
    second = found.first - found.estimate.value
    row = found.estimate.row(
        p=found.p,
        study=study,
        first=models[0],
        second=models[1],
        language=found.language,
        scale=found.scale,
        what=found.what,
        unit=module.UNIT,
        value_first=finite(found.first),
        value_second=finite(second),
    )
    return row | {DF: found.freedom}
