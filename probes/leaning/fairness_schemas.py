"""Columns of the tables of the analysis ``fairness``."""

from __future__ import annotations

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import ESTIMATE
from plumbline.probes.worlds.recovery import RECOVERY

READINGS = ("faithful", "one run", "corrected")
# those of probes.checkpoints and probes.finetune, which read models
PERIODS = ("all", "before", "from")
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")
PLANTED, OWN = "planted", "downstream.parquet"
OF = ("all", "group", "source")  # what texts are taken together by
MODEL = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("task", "string", "config of `downstream`; planted: a world's own texts"),
    Column("reading", "label", "see Readings", labels=READINGS),
)
TRAINED = (
    Column("period", "label", "texts of the corpus: all, before, from 2017-01-20", labels=PERIODS),
    Column("share", "float64", "part of these texts; 0: the model itself", minimum=0, maximum=1),
)
STATE = (
    Column("corpus", "string", "corpus of the continued pretraining; empty: the model itself"),
    *TRAINED,
)
GROUP = (
    Column("of", "label", "what texts are taken together by", labels=OF),
    Column("group", "string", "name of the group or source; all: every text"),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
RUNS = (
    Column("runs", "int64", "trainings of the classifier, all seeds", minimum=1),
    Column("sd_runs", "float64", "SD over these; null: one alone, or not finite", nullable=True),
)
FAMILY = Column("family", "int64", "tests adjusted together: all of model, task and reading")

OVERALL = Schema(
    columns=(*MODEL, *STATE, METRIC, *ESTIMATE, *RUNS, FAMILY),
    key=("model", "task", "reading", "corpus", "period", "share", "metric"),
)
GROUPS = Schema(
    columns=(
        *MODEL,
        *STATE,
        *GROUP,
        METRIC,
        *ESTIMATE,
        *RUNS,
        FAMILY,
        Column("contrast", "float64", "value minus that of all texts", nullable=True),
        Column("contrast_low", "float64", "lower end of its interval", nullable=True),
        Column("contrast_high", "float64", "upper end of its interval", nullable=True),
    ),
    key=("model", "task", "reading", "corpus", "period", "share", "of", "group", "metric"),
)
DIFFERENCES = Schema(
    columns=(
        *MODEL,
        Column("corpus", "string", "corpus of the one that the other is taken from"),
        Column("against", "string", "corpus of the other; empty: the model itself"),
        *TRAINED,
        *GROUP,
        METRIC,
        *ESTIMATE,
        *RUNS,
        FAMILY,
        Column("trainings_low", "float64", "lower end over texts and trainings", nullable=True),
        Column("trainings_high", "float64", "upper end over texts and trainings", nullable=True),
        Column(
            "p_trainings",
            "float64",
            "two-sided p, other texts and other trainings might have been drawn; null: one seed",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("p_trainings_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
        Column("texts", "int64", "texts of the further pretraining of the one", minimum=0),
        Column("texts_against", "int64", "of the other; 0: the model itself", minimum=0),
    ),
    key=(
        *("model", "task", "reading", "corpus", "against", "period", "share"),
        *("of", "group", "metric"),
    ),
)
SCHEMAS = {
    "overall": OVERALL,
    "groups": GROUPS,
    "differences": DIFFERENCES,
    "recovery": RECOVERY,
}
