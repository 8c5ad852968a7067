"""Columns of the tables of the analysis ``values``."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.survey.responses import INFECTED
from plumbline.probes.prompts.opinions import FORMS
from plumbline.probes.stats.estimate import ESTIMATE, Resampling

READINGS = ("faithful", "corrected")
WHO = ("feminine", "masculine", "both")
FITTED = ("pooled", "by gender")
SPREADS = ("n-1", "n")
MEASURES = ("value", "agreement")
COMPARISONS = ("frames", "denied", "opposites", "genders", "methods")
VERDICTS = ("undecided", "equivalent", "different", "different, within the margin")
BASELINES = ("random answers", "always agrees", "always disagrees")
STATUS = ("all", *INFECTED)
ALL, CALIBRATION, COMBINED = "all", "calibration", "all"


class Params(Resampling):
    """How agreement is calibrated, resampled and tested."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frame: str = Field(description="frame of the reading `faithful`")
    equivalence_margin: float = Field(
        gt=0, lt=4, description="difference in rating between genders that would matter"
    )


MODEL = Column("model", "string", "name of the model in params.yaml")
LANGUAGE = Column("language", "string", "language of the statements")
SCALE = Column("scale", "string", "questionnaire")
AXIS = Column("axis", "string", "value")
READING = Column(
    "reading",
    "label",
    "faithful: all pieces masked together, one frame, statements as they stand; corrected: pieces "
    "from left to right, all frames, statements as they stand and denied. Models without a mask: "
    "whole texts in both",
    labels=READINGS,
)
WHOSE = Column("gender", "label", "grammatical gender of the frame; both: mean", labels=WHO)
FIT = Column(
    "fitted",
    "label",
    "calibration on the frames of both genders, or on those of each alone",
    labels=FITTED,
)
LINE = Column("intercept", "bool", "whether the calibration line has an intercept")
STANDING = (
    Column("survey", "string", "config of `survey`; empty where none is of the scale"),
    Column("simulated", "bool", "whether that was drawn at random: nobody answered"),
    Column("infected", "label", "infection status of the respondents", labels=STATUS),
    Column("respondents", "int64", "how many there are", minimum=1),
    Column("median", "float64", "their median"),
    Column(
        "percentile_tails",
        "float64",
        "twice the smaller of the shares of respondents strictly below and above the value",
        minimum=0,
        maximum=1,
    ),
    Column(
        "percentile_distance",
        "float64",
        "share of respondents strictly farther from the median than the value",
        minimum=0,
        maximum=1,
    ),
)
PLACE = tuple(  # the same where there may be no survey
    replace(
        c,
        nullable=c.name not in ("survey", "respondents"),
        minimum=None if c.kind in ("string", "bool") else 0,
    )
    for c in STANDING
    if c.name != "infected"
)

ANSWERS = Schema.keyed(
    (
        MODEL,
        LANGUAGE,
        SCALE,
        READING,
        Column("axis", "string", "value; empty for calibration"),
        Column("id", "string", "statement"),
        WHOSE,
    ),
    Column("reversed", "bool", "whether agreeing speaks against the value"),
    Column("residual_nats", "float64", "agreement beyond habit: err, mean over frames"),
    Column("probability", "float64", "Phi(err / sigma)", minimum=0, maximum=1),
    Column("rating", "float64", "4 P + 1, nothing turned round", minimum=1, maximum=5),
)
POINTS = Schema(
    columns=(
        MODEL,
        LANGUAGE,
        SCALE,
        READING,
        Column("questionnaire", "string", "config of `statements`"),
        Column("axis", "string", "value; empty for calibration"),
        Column("id", "string", "statement"),
        Column("bearing", "float64", "weight in its value; below 0: agreeing speaks against it"),
        Column("cluster", "string", "the statement with its opposite, which are drawn together"),
        WHOSE,
        Column("frame", "string", "frame"),
        Column("form", "label", "statements as they stand, or denied", labels=FORMS),
        Column("disagree_nats", "float64", "log-probability of disagreeing", maximum=0),
        Column("agree_nats", "float64", "log-probability of agreeing", maximum=0),
    ),
    key=(
        *("model", "language", "scale", "reading", "questionnaire", "axis", "id", "gender"),
        *("frame", "form"),
    ),
)
LINES = Schema.keyed(
    (
        MODEL,
        LANGUAGE,
        READING,
        FIT,
        LINE,
        WHOSE,
        Column("frame", "string", f"frame; {COMBINED}: residuals averaged over frames and forms"),
        Column("form", "label", "statements as they stand, or denied", labels=FORMS),
        Column("measure", "string", "slope, intercept, sigma (n-1 or n), or area under the curve"),
    ),
    *ESTIMATE,
)
VALUES = Schema.keyed(
    (
        MODEL,
        LANGUAGE,
        SCALE,
        READING,
        FIT,
        LINE,
        Column("spread", "label", "sigma with n - 1 or with n", labels=SPREADS),
        AXIS,
        WHOSE,
    ),
    Column("items", "int64", "statements of the value", minimum=1),
    *ESTIMATE,
    Column("sd", "float64", "standard deviation over statements, n - 1", nullable=True),
)
STANDINGS = Schema(
    columns=(
        MODEL,
        LANGUAGE,
        SCALE,
        READING,
        AXIS,
        WHOSE,
        *STANDING,
        Column("value", "float64", "the model's"),
    ),
    key=("model", "language", "scale", "reading", "axis", "gender", "survey", "infected"),
)
GENDER = Schema.keyed(
    (
        MODEL,
        LANGUAGE,
        SCALE,
        READING,
        FIT,
        Column(
            "measure",
            "label",
            "feminine minus masculine rating: value with reversed statements turned round, "
            "agreement as they are",
            labels=MEASURES,
        ),
        Column("axis", "string", f"value, {ALL} of them, or {CALIBRATION}"),
    ),
    Column("items", "int64", "statements", minimum=1),
    *ESTIMATE,
    Column("equivalence_margin", "float64", "smallest difference in rating that matters"),
    Column("equivalence_low", "float64", "interval of the two one-sided tests", nullable=True),
    Column("equivalence_high", "float64", "its other end", nullable=True),
    Column(
        "p_equivalence",
        "float64",
        "p of the two one-sided t tests; the null: it is the margin or more, either way",
        nullable=True,
    ),
    Column("p_equivalence_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
    Column("verdict", "label", "what both adjusted tests say together", labels=VERDICTS),
)
CONSISTENCY = Schema.keyed(
    (
        MODEL,
        LANGUAGE,
        SCALE,
        Column(
            "comparison",
            "label",
            "residuals of the same statements in two frames; as they stand and denied, the sign "
            "turned; of a statement and its opposite, the sign turned; of the genders; of methods",
            labels=COMPARISONS,
        ),
        Column("first", "string", "one side"),
        Column("second", "string", "the other"),
    ),
    *ESTIMATE,
    Column("spearman", "float64", "rank correlation", nullable=True),
)
RESPONDENTS = Schema(
    columns=(
        Column("survey", "string", "config of `survey`"),
        Column("simulated", "bool", "whether that was drawn at random: nobody answered"),
        SCALE,
        AXIS,
        Column("gender", "string", "gender of the respondents, or all"),
        Column("infected", "label", "infection status of the respondents", labels=STATUS),
        *ESTIMATE,
        Column("sd", "float64", "standard deviation over respondents", nullable=True),
        Column("median", "float64", "their median"),
        Column("quartile_low", "float64", "a quarter of them are at or below it"),
        Column("quartile_high", "float64", "a quarter of them are at or above it"),
    ),
    key=("survey", "axis", "gender", "infected"),
)
BASELINE = Schema(
    columns=(
        LANGUAGE,
        SCALE,
        Column("baseline", "label", "simulated respondent", labels=BASELINES),
        AXIS,
        Column("items", "int64", "statements of the value", minimum=1),
        Column("value", "float64", "mean rating after reversal"),
        Column("low", "float64", "of random answers: 2.5% of means are below"),
        Column("high", "float64", "and 2.5% above"),
        Column("sd", "float64", "standard deviation over statements"),
        *PLACE,
    ),
    key=("language", "scale", "baseline", "axis", "survey"),
)
SCHEMAS = {
    "values": VALUES,
    "gender": GENDER,
    "standing": STANDINGS,
    "calibration": LINES,
    "consistency": CONSISTENCY,
    "baselines": BASELINE,
    "respondents": RESPONDENTS,
    "answers": ANSWERS,
    "points": POINTS,
}
