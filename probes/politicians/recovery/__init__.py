"""Recovery in the study ``politicians``: comparison of tables with planted effects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.controls.compare import PARAMS, Comparison, Params
from plumbline.probes.politicians.recovery import shares, words
from plumbline.probes.politicians.recovery.truth import truth

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs

ONE_WORLD = {
    "pmi": words.pmi_rows,
    "latent": words.latent_rows,
    "sentiment": shares.sentiment_rows,
    "supersenses": words.supersense_rows,
    "clusters": words.cluster_rows,
    "subgroups": shares.subgroup_rows,
}
SEVERAL_WORLDS = {
    "pmi": words.pooled_rows,
    "averages": shares.average_rows,
    "anova": shares.anova_rows,
}
TEXTS = "lexicon_evaluation"  # no model is analysed; effects are planted in texts
TABLES = (*dict.fromkeys([*ONE_WORLD, *SEVERAL_WORLDS]), TEXTS)
DATASETS = ("words",)
__all__ = ["DATASETS", "TABLES", "run", "truth"]


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of each control model with its planted effects, by analysis."""
    worlds = [world for model in inputs.models if (world := truth(inputs, model))]
    comparisons = {analysis: Comparison(params) for analysis in TABLES}
    for analysis, compare in ONE_WORLD.items():
        for world in worlds:
            comparisons[analysis].at = world.key
            compare(comparisons[analysis], world)
    for analysis, compare_all in SEVERAL_WORLDS.items():
        compare_all(comparisons[analysis], worlds)
    words.lexicon_rows(comparisons[TEXTS], inputs)
    return {name: rows.frame() for name, rows in comparisons.items() if rows.rows}
