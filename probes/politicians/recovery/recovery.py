"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.controls.compare import PARAMS, Comparison, Params
from plumbline.probes.controls.measures import RECOVERY
from plumbline.probes.politicians.recovery.shares import (
    anova_rows,
    average_rows,
    robustness_rows,
    sentiment_rows,
    subgroup_rows,
)
from plumbline.probes.politicians.recovery.truth import truth
from plumbline.probes.politicians.recovery.words import (
    cluster_rows,
    latent_rows,
    lexicon_rows,
    pmi_rows,
    pooled_rows,
    supersense_rows,
)

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs

ONE_WORLD = {
    "pmi": pmi_rows,
    "latent": latent_rows,
    "sentiment": sentiment_rows,
    "supersenses": supersense_rows,
    "clusters": cluster_rows,
    "subgroups": subgroup_rows,
    "robustness": robustness_rows,
}
SEVERAL_WORLDS = {"pmi": pooled_rows, "averages": average_rows, "anova": anova_rows}
TEXTS = "lexicon_evaluation"  # of no model: what is planted is in the texts
TABLES = (*ONE_WORLD, *(name for name in SEVERAL_WORLDS if name not in ONE_WORLD), TEXTS)
DATASETS = ("words",)
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world of names with what was planted in it, by analysis."""
    worlds = [world for model in inputs.models if (world := truth(inputs, model))]
    comparisons = {analysis: Comparison(params) for analysis in TABLES}
    for analysis, rows in comparisons.items():
        for world in worlds if analysis in ONE_WORLD else ():
            rows.at = world.key
            ONE_WORLD[analysis](rows, world)
        for language in sorted({world.settings.language for world in worlds}):
            own = [world for world in worlds if world.settings.language == language]
            if analysis == "pmi":
                pooled_rows(rows, own)
        if worlds and analysis in ("averages", "anova"):
            SEVERAL_WORLDS[analysis](rows, worlds)
    lexicon_rows(comparisons[TEXTS], inputs)
    return {name: rows.frame() for name, rows in comparisons.items() if rows.rows}
