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


PAIR = "statement, with its opposite"
BOOTSTRAP = "percentile bootstrap over statements, expanded for few clusters"


def _text(name: str, description: str) -> Column:
    return Column(name, "string", description)


def _number(name: str, description: str, *, nullable: bool = False, **bounds: Any) -> Column:
    return Column(name, "float64", description, nullable, **bounds)


def _category(name: str, labels: tuple[str, ...], description: str) -> Column:
    return Column(name, "category", description, labels=labels)


MODEL = _text("model", "name of the model in params.yaml")
LANGUAGE = _text("language", "language of the statements")
SCALE = _text("scale", "questionnaire")
READING = _category(
    "reading",
    READINGS,
    "faithful: all pieces masked together, one frame, statements as they stand; corrected: pieces "
    "from left to right, all frames, statements as they stand and denied. Models without a mask: "
    "whole texts in both",
)
PLACE = (MODEL, LANGUAGE, SCALE, READING)
AXIS = _text("axis", "value")
AXIS_OR_NONE = _text("axis", "value; empty for calibration")
STATEMENT = _text("id", "statement")
WHOSE = _category("gender", WHO, "grammatical gender of the frame; both: mean")
FORM = _category("form", FORMS, "statements as they stand, or denied")
FIT = _category(
    "fitted",
    FITTED,
    "by gender: a line for the frames of each gender, as the paper has it; pooled: one for both; "
    "likely half: of each gender, from the apolitical statements that people are likely to share",
)
SURVEY = _text("survey", "config of `survey`")

SCHEMAS = {
    "values": Schema.keyed(
        (*PLACE, FIT, AXIS, WHOSE),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="3: a statement is agreed with as much as its opposite; no test where a value has "
            "statements without opposites",
        ),
        _number("sd", "standard deviation over statements, n - 1", nullable=True),
    ),
    "gender": Schema.keyed(
        (
            *(*PLACE, FIT),
            _category(
                "measure",
                MEASURES,
                "feminine minus masculine rating: value with reversed statements turned round, "
                "agreement as they are",
            ),
            _text("axis", f"value, {ALL} of them, or {CALIBRATION}"),
        ),
        *estimates(
            cluster=f"{PAIR}; of {CALIBRATION}: statement",
            method=BOOTSTRAP,
            null="0: gender makes no difference; of `value` no test where a value has statements "
            "without opposites",
        ),
        _number("equivalence_low", "interval of the two one-sided tests", nullable=True),
        _number("equivalence_high", "its other end", nullable=True),
        _number(
            "p_equivalence_bh",
            "p of two one-sided t tests, Benjamini-Hochberg; null hypothesis: the difference is "
            "`analysis.values.equivalence_margin` or more, either way",
            nullable=True,
        ),
        _category("verdict", VERDICTS, "conclusion of both adjusted tests together"),
    ),
    "standing": Schema.keyed(
        (*PLACE, AXIS, WHOSE, SURVEY),
        _number("value", "the model's", nullable=True),
        _number(
            "percentile",
            "twice the smaller of the shares of respondents strictly below and above the value",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
    ),
    "calibration": Schema.keyed(
        (
            *(MODEL, LANGUAGE, READING, FIT, WHOSE),
            _text("frame", f"frame; {COMBINED}: residuals averaged over frames and forms"),
            FORM,
            _text("measure", "slope, sigma, or area under the curve"),
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
            _category(
                "comparison",
                COMPARISONS,
                "residuals of the same statements in two frames; as they stand and denied, the "
                "sign turned; of a statement and its opposite, the sign turned; of the genders; of "
                "methods",
            ),
            _text("first", "one side"),
            _text("second", "the other"),
        ),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="0: unrelated, one side shuffled over statements, opposites together",
        ),
    ),
    "baselines": Schema.keyed(
        (LANGUAGE, SCALE, _category("baseline", BASELINES, "simulated respondent"), AXIS),
        _number("value", "mean rating after reversal"),
        _number("low", "of random answers: 2.5% of means are below"),
        _number("high", "and 2.5% above"),
    ),
    "respondents": Schema(
        (
            *(SURVEY, SCALE, AXIS),
            Column("simulated", "bool", "whether that was drawn at random: nobody answered"),
            _text("gender", "gender of the respondents, or all"),
            _category("infected", STATUS, "infection status of the respondents"),
            *estimates(cluster="respondent", method="percentile bootstrap over respondents"),
            _number("sd", "standard deviation over respondents", nullable=True),
        ),
        ("survey", "axis", "gender", "infected"),
    ),
    "answers": Schema.keyed(
        (*PLACE, AXIS_OR_NONE, STATEMENT, WHOSE),
        Column("reversed", "bool", "whether agreeing speaks against the value"),
        _number("rating", "4 P + 1, nothing turned round", minimum=1, maximum=5),
    ),
    "points": Schema.keyed(
        (
            *(*PLACE, _text("questionnaire", "config of `statements`"), AXIS_OR_NONE, STATEMENT),
            *(WHOSE, _text("frame", "frame"), FORM),
        ),
        _number("bearing", "weight in its value; below 0: agreeing speaks against it"),
        _text("cluster", "the statement with its opposite, which are drawn together"),
        _number("disagree_nats", "log-probability of disagreeing", maximum=0),
        _number("agree_nats", "log-probability of agreeing", maximum=0),
    ),
}
