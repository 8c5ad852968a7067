"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plumbline.probes.controls.recovery import RECOVERY
from plumbline.probes.politicians.recovery.clusters import cluster_rows
from plumbline.probes.politicians.recovery.control import Control, Params, planted
from plumbline.probes.politicians.recovery.latent import latent_rows
from plumbline.probes.politicians.recovery.lexicon_evaluation import lexicon_rows
from plumbline.probes.politicians.recovery.shares import (
    robustness_rows,
    sentiment_rows,
    subgroup_rows,
)
from plumbline.probes.politicians.recovery.together import (
    anova_rows,
    average_rows,
    pooled_rows,
)
from plumbline.probes.politicians.recovery.words import pmi_rows, supersense_rows
from plumbline.probes.stats.estimate import Table

if TYPE_CHECKING:
    import polars as pl

    from plumbline.probes.core.run_analysis import Inputs

ROWS = {
    "pmi": pmi_rows,
    "latent": latent_rows,
    "sentiment": sentiment_rows,
    "supersenses": supersense_rows,
    "clusters": cluster_rows,
    "subgroups": subgroup_rows,
    "robustness": robustness_rows,
}
OF_SEVERAL = {"pmi": pooled_rows, "averages": average_rows, "anova": anova_rows}
OF_TEXTS = "lexicon_evaluation"  # of no model: what is planted is in the texts
TABLES = (*ROWS, *(name for name in OF_SEVERAL if name not in ROWS), OF_TEXTS)
DATASETS = ("words",)
SCHEMAS = dict.fromkeys(TABLES, RECOVERY)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables of every world of names with what was planted in it.

    Returned: a table for each analysis that some world has tables of; columns as in
    :data:`SCHEMAS`.
    """
    truths = {
        model: planted(inputs.weights(model), inputs.datasets.get("words"))
        for model in inputs.models
    }
    found = {}
    for analysis in TABLES:
        table = Table(RECOVERY, params.confidence)
        controls = [
            Control(inputs, model, truth, table, params)
            for model, truth in truths.items()
            if truth is not None
        ]
        for control in controls if analysis in ROWS else ():
            ROWS[analysis](control)
        if controls and analysis in OF_SEVERAL:
            OF_SEVERAL[analysis](controls)
        if table.rows:
            found[analysis] = table.frame()
    table = Table(RECOVERY, params.confidence)
    lexicon_rows(inputs, params, table)
    return found | ({OF_TEXTS: table.frame()} if table.rows else {})
