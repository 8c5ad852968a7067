"""Columns of the tables of the analysis ``ensemble``."""

from __future__ import annotations

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.fairness_schemas import PERIODS
from plumbline.probes.stats.estimate import ESTIMATE

READINGS = ("faithful", "corrected")
WHERE = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("task", "string", "config of `downstream`; planted: a world's own texts"),
    Column("reading", "label", "see Readings", labels=READINGS),
    Column("period", "label", "texts of the corpora: all, before, from 2017", labels=PERIODS),
    Column("share", "float64", "part of these texts", minimum=0, maximum=1),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
SCORES = Schema(
    columns=(
        *WHERE,
        Column("ensemble", "string", "what is judged; see Ensembles"),
        Column("vote", "string", "hard, mean probability; empty: single classifiers"),
        METRIC,
        *ESTIMATE,
        Column("size", "int64", "voters of each", minimum=1),
        Column("ensembles", "int64", "of how many this is the mean", minimum=1),
        Column("sd", "float64", "SD over them; null: one alone", nullable=True),
    ),
    key=("model", "task", "reading", "period", "share", "ensemble", "vote", "metric"),
)
DIFFERENCES = Schema(
    columns=(
        *WHERE,
        Column("against", "string", "what is taken from the partisan ensemble"),
        Column("vote", "string", "of the partisan ensemble, and of the other if it votes"),
        METRIC,
        *ESTIMATE,
        Column("size", "int64", "voters of the partisan ensemble", minimum=2),
        Column("size_against", "int64", "voters of each of the others", minimum=1),
        Column("family", "int64", "tests adjusted together: all of model, task and reading"),
        Column("trainings_low", "float64", "lower end over texts and trainings", nullable=True),
        Column("trainings_high", "float64", "upper end over texts and trainings", nullable=True),
        Column(
            "p_trainings",
            "float64",
            "two-sided p, other texts and other trainings might have been drawn; null: too few",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("p_trainings_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
    ),
    key=("model", "task", "reading", "period", "share", "against", "vote", "metric"),
)
SCHEMAS = {"scores": SCORES, "differences": DIFFERENCES}
