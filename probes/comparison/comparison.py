"""Analysis ``comparison``: differences between the estimates of two models, study by study.

It is run by :func:`plumbline.compare`, not by a stage. Differences are paired by name, group,
statement or text, so that item effects common to both models cancel out.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.comparison.studies import STUDIES, Params
from plumbline.probes.stats.estimate import Table, estimates

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs

COMPARISON = Schema.keyed(
    (
        Column("study", "string", "study of the estimates"),
        Column("first", "string", "first model"),
        Column("second", "string", "second model"),
        Column("language", "string", "language of the prompts; empty if the study has only one"),
        Column("scale", "string", "part of speech, dataset, questionnaire, or config"),
        Column("what", "string", "word, category, value, country, or axis"),
    ),
    *estimates(
        cluster="name, group, statement, text, or word, by study",
        method="95% t interval of paired differences",
        null="0: no difference between models (values without reversed statements are not tested)",
    ),
    Column("family", "int64", "number of tests in the family of p_bh"),
    Column("unit", "string", "unit of the difference"),
    Column("value_first", "float64", "estimate for the first model", nullable=True),
    Column("value_second", "float64", "estimate for the second model", nullable=True),
)
SCHEMAS = {"comparison": COMPARISON}
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models, the first minus the second.

    Returns ``comparison``, see :data:`SCHEMAS`; p is adjusted over all rows of a study.
    """
    table = Table(COMPARISON, params.confidence)
    table.adjust(over=("study",))
    for name, study in STUDIES.items():
        models = [model for model in inputs.models if inputs.outputs(study.probe, model).is_dir()]
        results = {model: study.read(inputs, model, params) for model in models}
        for first, second in combinations(models, 2):
            key = {"study": name, "first": first, "second": second, "unit": study.unit}
            for item in sorted(results[first].keys() & results[second].keys()):
                sides = (results[first][item], results[second][item])
                table.rows += [key | row for row in study.compare(item, *sides, params)]
    return {"comparison": table.frame().sort(COMPARISON.key, maintain_order=True)}
