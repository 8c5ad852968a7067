"""Columns of the tables of the analysis ``values``."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.survey.responses import INFECTED
from plumbline.probes.prompts.opinions import FORMS
from plumbline.probes.stats.estimate import Resampling, estimates

READINGS = ("faithful", "corrected")
WHO = ("feminine", "masculine", "both")
FITTED = OWN, POOLED, LIKELY = "by gender", "pooled", "by gender, likely half"
MEASURES = ("value", "agreement")
COMPARISONS = ("frames", "denied", "opposites", "genders", "methods")
# no test, that of equivalence alone, that of a difference alone, or both at most at their level
VERDICTS = ("undecided", "equivalent", "different", "different, within the margin")
BASELINES = ("random answers", "always agrees", "always disagrees")
STATUS = ("all", *INFECTED)
ALL, CALIBRATION, COMBINED = "all", "calibration", "all"


class Params(Resampling):
    """How agreement is calibrated, resampled and tested."""

    frame: str = Field(description="frame of the reading `faithful`")
    equivalence_margin: float = Field(
        gt=0, lt=4, description="difference in rating between genders that would matter"
    )


SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1}
PAIR = "statement, with its opposite"
BOOTSTRAP = "percentile bootstrap over statements, expanded for few clusters"
MODEL = Column("model", "string", "name of the model in params.yaml")
LANGUAGE = Column("language", "string", "language of the statements")
SCALE = Column("scale", "string", "questionnaire")
READING = Column(
    "reading",
    "category",
    "faithful: all pieces masked together, one frame, statements as they stand; corrected: pieces "
    "from left to right, all frames, statements as they stand and denied. Models without a mask: "
    "whole texts in both",
    labels=READINGS,
)
PLACE = (MODEL, LANGUAGE, SCALE, READING)
AXIS = Column("axis", "string", "value")
AXIS_OR_NONE = Column("axis", "string", "value; empty for calibration")
STATEMENT = Column("id", "string", "statement")
WHOSE = Column("gender", "category", "grammatical gender of the frame; both: mean", labels=WHO)
FORM = Column("form", "category", "statements as they stand, or denied", labels=FORMS)
FIT = Column(
    "fitted",
    "category",
    "by gender: a line for the frames of each gender, as the paper has it; pooled: one for both; "
    "likely half: of each gender, from the apolitical statements that people are likely to share",
    labels=FITTED,
)
SIMULATED = Column("simulated", "bool", "whether that was drawn at random: nobody answered")
INFECTION = Column("infected", "category", "infection status of the respondents", labels=STATUS)

SCHEMAS = {
    "values": Schema.keyed(
        (*(*PLACE, FIT, AXIS, WHOSE),),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="3: a statement is agreed with as much as its opposite; no test where a value has "
            "statements without opposites",
        ),
        Column("sd", "float64", "standard deviation over statements, n - 1", nullable=True),
    ),
    "gender": Schema.keyed(
        (
            *(*PLACE, FIT),
            Column(
                "measure",
                "category",
                "feminine minus masculine rating: value with reversed statements turned round, "
                "agreement as they are",
                labels=MEASURES,
            ),
            Column("axis", "string", f"value, {ALL} of them, or {CALIBRATION}"),
        ),
        *estimates(
            cluster=f"{PAIR}; of {CALIBRATION}: statement",
            method=BOOTSTRAP,
            null="0: gender makes no difference; of `value` no test where a value has statements "
            "without opposites",
        ),
        Column("equivalence_low", "float64", "interval of the two one-sided tests", nullable=True),
        Column("equivalence_high", "float64", "its other end", nullable=True),
        Column(
            "p_equivalence_bh",
            "float64",
            "p of two one-sided t tests, Benjamini-Hochberg; null hypothesis: the difference is "
            "`analysis.values.equivalence_margin` or more, either way",
            nullable=True,
        ),
        Column("verdict", "category", "what both adjusted tests say together", labels=VERDICTS),
    ),
    "standing": Schema(
        (
            *(*PLACE, AXIS, WHOSE),
            Column("survey", "string", "config of `survey`"),
            Column("value", "float64", "the model's", nullable=True),
            Column(
                "percentile",
                "float64",
                "twice the smaller of the shares of respondents strictly below and above the value",
                nullable=True,
                **SHARE,
            ),
        ),
        ("model", "language", "scale", "reading", "axis", "gender", "survey"),
    ),
    "calibration": Schema.keyed(
        (
            *(MODEL, LANGUAGE, READING, FIT, WHOSE),
            Column(
                "frame", "string", f"frame; {COMBINED}: residuals averaged over frames and forms"
            ),
            FORM,
            Column("measure", "string", "slope, sigma, or area under the curve"),
        ),
        *estimates(
            cluster="statement",
            method=BOOTSTRAP,
            null="0.5: likely statements are agreed with no more than unlikely ones (the area "
            "under the curve alone)",
        ),
    ),
    "consistency": Schema.keyed(
        (
            *(MODEL, LANGUAGE, SCALE),
            Column(
                "comparison",
                "category",
                "residuals of the same statements in two frames; as they stand and denied, the "
                "sign turned; of a statement and its opposite, the sign turned; of the genders; of "
                "methods",
                labels=COMPARISONS,
            ),
            Column("first", "string", "one side"),
            Column("second", "string", "the other"),
        ),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="0: unrelated, one side shuffled over statements, opposites together",
        ),
    ),
    "baselines": Schema(
        (
            *(LANGUAGE, SCALE),
            Column("baseline", "category", "simulated respondent", labels=BASELINES),
            AXIS,
            Column("value", "float64", "mean rating after reversal"),
            Column("low", "float64", "of random answers: 2.5% of means are below"),
            Column("high", "float64", "and 2.5% above"),
        ),
        ("language", "scale", "baseline", "axis"),
    ),
    "respondents": Schema(
        (
            Column("survey", "string", "config of `survey`"),
            *(SIMULATED, SCALE, AXIS),
            Column("gender", "string", "gender of the respondents, or all"),
            INFECTION,
            *estimates(cluster="respondent", method="percentile bootstrap over respondents"),
            Column("sd", "float64", "standard deviation over respondents", nullable=True),
        ),
        ("survey", "axis", "gender", "infected"),
    ),
    "answers": Schema.keyed(
        (*PLACE, AXIS_OR_NONE, STATEMENT, WHOSE),
        Column("reversed", "bool", "whether agreeing speaks against the value"),
        Column("rating", "float64", "4 P + 1, nothing turned round", minimum=1, maximum=5),
    ),
    "points": Schema(
        (
            *PLACE,
            Column("questionnaire", "string", "config of `statements`"),
            AXIS_OR_NONE,
            STATEMENT,
            Column(
                "bearing", "float64", "weight in its value; below 0: agreeing speaks against it"
            ),
            Column(
                "cluster", "string", "the statement with its opposite, which are drawn together"
            ),
            WHOSE,
            Column("frame", "string", "frame"),
            FORM,
            Column("disagree_nats", "float64", "log-probability of disagreeing", maximum=0),
            Column("agree_nats", "float64", "log-probability of agreeing", maximum=0),
        ),
        (
            *("model", "language", "scale", "reading", "questionnaire", "axis", "id", "gender"),
            *("frame", "form"),
        ),
    ),
}
