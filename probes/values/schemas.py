"""Table columns of the analysis ``values``."""

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
# neither test is significant, equivalence alone, a difference alone, or both
VERDICTS = ("undecided", "equivalent", "different", "different, within the margin")
BASELINES = ("random answers", "always agrees", "always disagrees")
ALL, CALIBRATION, COMBINED = "all", "calibration", "all"


class Params(Resampling):
    """Calibration, resampling and test settings."""

    frame: str = Field(description="template of the reading `faithful`")
    equivalence_margin: float = Field(
        gt=0, lt=4, description="smallest relevant difference in rating between genders"
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
    "faithful: all tokens masked together, one template, plain statements; corrected: tokens from "
    "left to right, all templates, plain and denied statements. Models without a mask: full texts",
)
PLACE = (MODEL, LANGUAGE, SCALE, READING)
AXIS = _text("axis", "value")
AXIS_OR_NONE = _text("axis", "value; empty for calibration")
STATEMENT = _text("id", "statement")
WHOSE = _category("gender", WHO, "grammatical gender of the template; both: mean")
FORM = _category("form", FORMS, "plain or denied statements")
FIT = _category(
    "fitted",
    FITTED,
    "by gender: a line for the frames of each gender, as in the paper; pooled: one line; likely "
    "half: by gender, fitted to the apolitical statements that people are likely to share",
)
SURVEY = _text("survey", "config of `survey`")

SCHEMAS = {
    "values": Schema.keyed(
        (*PLACE, FIT, AXIS, WHOSE),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="3: equal agreement with a statement and its opposite; no test if a value has "
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
                "feminine minus masculine rating; value: reversed statements are reversed; "
                "agreement: they are not",
            ),
            _text("axis", f"value, {ALL} of them, or {CALIBRATION}"),
        ),
        *estimates(
            cluster=f"{PAIR}; for {CALIBRATION}: statement",
            method=BOOTSTRAP,
            null="0: no effect of gender; no test of `value` if a value has statements without "
            "opposites",
        ),
        _number(
            "equivalence_low", "lower end of the interval of the two one-sided tests", nullable=True
        ),
        _number("equivalence_high", "upper end of the interval", nullable=True),
        _number(
            "p_equivalence_bh",
            "p of two one-sided t tests, Benjamini-Hochberg; null hypothesis: the difference is "
            "at least `analysis.values.equivalence_margin` in size",
            nullable=True,
        ),
        _category("verdict", VERDICTS, "conclusion of both adjusted tests together"),
    ),
    "standing": Schema.keyed(
        (*PLACE, AXIS, WHOSE, SURVEY),
        _number("value", "value of the model", nullable=True),
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
            null="0.5: equal agreement with likely and unlikely statements (only for the area "
            "under the curve)",
        ),
    ),
    "consistency": Schema.keyed(
        (
            *(MODEL, LANGUAGE, SCALE),
            _category(
                "comparison",
                COMPARISONS,
                "correlated residuals: of two frames; plain and denied, sign turned; of a "
                "statement and its opposite, sign turned; of the genders; of two methods",
            ),
            _text("first", "one side"),
            _text("second", "the other side"),
        ),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="0: independent, one side permuted over statements, opposites together",
        ),
    ),
    "baselines": Schema.keyed(
        (LANGUAGE, SCALE, _category("baseline", BASELINES, "simulated respondent"), AXIS),
        _number("value", "mean rating after reversal"),
        _number("low", "2.5% quantile of the means of random answers"),
        _number("high", "97.5% quantile"),
    ),
    "respondents": Schema(
        (
            *(SURVEY, SCALE, AXIS),
            Column("simulated", "bool", "whether the responses are simulated at random"),
            _text("gender", "gender of the respondents, or all"),
            _category("infected", ("all", *INFECTED), "infection status of the respondents"),
            *estimates(cluster="respondent", method="percentile bootstrap over respondents"),
            _number("sd", "standard deviation over respondents", nullable=True),
        ),
        ("survey", "axis", "gender", "infected"),
    ),
    "answers": Schema.keyed(
        (*PLACE, AXIS_OR_NONE, STATEMENT, WHOSE),
        Column("reversed", "bool", "whether agreement is against the value"),
        _number("rating", "4 P + 1, never reversed", minimum=1, maximum=5),
    ),
    "points": Schema.keyed(
        (
            *(*PLACE, _text("questionnaire", "config of `statements`"), AXIS_OR_NONE, STATEMENT),
            *(WHOSE, _text("frame", "frame"), FORM),
        ),
        _number("bearing", "weight in its value; negative if agreement is against it"),
        _text("cluster", "statement with its opposite, resampled together"),
        _number("disagree_nats", "log-probability of disagreeing", maximum=0),
        _number("agree_nats", "log-probability of agreeing", maximum=0),
    ),
}
