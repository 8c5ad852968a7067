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
# significant tests: none, only of equivalence, only of a difference, both
VERDICTS = ("undecided", "equivalent", "different", "different, within the margin")
BASELINES = ("random answers", "always agrees", "always disagrees")
ALL, CALIBRATION, COMBINED = "all", "calibration", "all"


class Params(Resampling):
    """Settings of the calibration, resampling and tests."""

    frame: str = Field(description="template used by `faithful`")
    equivalence_margin: float = Field(
        gt=0, lt=4, description="smallest difference in rating between genders that matters"
    )


PAIR = "statement, with its opposite"
BOOTSTRAP = "percentile bootstrap over statements, expanded for few clusters"


def _text(name: str, description: str) -> Column:
    return Column(name, "string", description)


def _number(name: str, description: str, *, nullable: bool = False, **bounds: Any) -> Column:
    return Column(name, "float64", description, nullable, **bounds)


def _category(name: str, labels: tuple[str, ...], description: str) -> Column:
    return Column(name, "category", description, labels=labels)


SHARE = {"minimum": 0, "maximum": 1}
MODEL = _text("model", "name of the model in params.yaml")
LANGUAGE = _text("language", "language of the statements")
SCALE = _text("scale", "questionnaire scale")
READING = _category(
    "reading",
    READINGS,
    "faithful: one template, plain statements, all tokens masked together; corrected: all "
    "templates, plain and negated statements, tokens from left to right. Causal models: full text",
)
PLACE = (MODEL, LANGUAGE, SCALE, READING)
AXIS = _text("axis", "political value")
AXIS_OR_NONE = _text("axis", "political value; empty for calibration")
STATEMENT = _text("id", "id of the statement")
WHOSE = _category("gender", WHO, "grammatical gender of the template; both: mean over genders")
FORM = _category("form", FORMS, "whether statements are plain or negated")
FIT = _category(
    "fitted",
    FITTED,
    "calibration: one line for the templates of each gender, as in the paper, or one for both "
    "(pooled); likely half: fitted only to statements with which people are likely to agree",
)
SURVEY = _text("survey", "config of `survey`")

SCHEMAS = {
    "values": Schema.keyed(
        (*PLACE, FIT, AXIS, WHOSE),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="3: equal agreement with a statement and its opposite; no test if statements of "
            "the value have no opposites",
        ),
        _number("sd", "standard deviation over statements (n - 1)", nullable=True),
    ),
    "gender": Schema.keyed(
        (
            *(*PLACE, FIT),
            _category(
                "measure",
                MEASURES,
                "rating in feminine minus masculine templates, in the direction of the value or of "
                "agreement (plain statements only; with negated ones, a habit of agreeing cancels)",
            ),
            _text("axis", f"political value, {ALL} values, or {CALIBRATION} (apolitical)"),
        ),
        *estimates(
            cluster=f"{PAIR}; for {CALIBRATION}: statement",
            method=BOOTSTRAP,
            null="0: no effect of gender; no test of `value` if statements have no opposites",
        ),
        _number("equivalence_low", "lower end of the equivalence test's interval", nullable=True),
        _number("equivalence_high", "upper end of the equivalence test's interval", nullable=True),
        _number(
            "p_equivalence_bh",
            "Benjamini-Hochberg p of two one-sided t tests; null hypothesis: the difference is at "
            "least `analysis.values.equivalence_margin` in size",
            nullable=True,
        ),
        _category("verdict", VERDICTS, "conclusion from both adjusted tests"),
    ),
    "standing": Schema.keyed(
        (*PLACE, AXIS, WHOSE, SURVEY),
        _number("value", "mean rating of the model", nullable=True),
        _number(
            "percentile",
            "twice the smaller share of respondents' means strictly below or above the value",
            nullable=True,
            **SHARE,
        ),
        _number("percentile_answers", "the same among single answers", nullable=True, **SHARE),
    ),
    "calibration": Schema.keyed(
        (
            *(MODEL, LANGUAGE, READING, FIT, WHOSE),
            _text("frame", f"template; {COMBINED}: mean over templates and forms"),
            FORM,
            _text("measure", "slope, sigma, correlation (Pearson), or likely above unlikely (AUC)"),
        ),
        *estimates(
            cluster="statement",
            method=BOOTSTRAP,
            null="0.5 for the area: equal agreement with likely and unlikely statements",
        ),
    ),
    "consistency": Schema.keyed(
        (
            *(MODEL, LANGUAGE, SCALE),
            _category(
                "comparison",
                COMPARISONS,
                "what is correlated: residuals in two templates, of two genders or by two methods, "
                "or of a statement and, with reversed sign, its negation (denied) or opposite",
            ),
            _text("first", "first side of the comparison"),
            _text("second", "second side of the comparison"),
        ),
        *estimates(
            cluster=PAIR,
            method=BOOTSTRAP,
            null="0: independence; one side is permuted over statements, with opposites together",
        ),
    ),
    "baselines": Schema.keyed(
        (LANGUAGE, SCALE, _category("baseline", BASELINES, "simulated respondent"), AXIS),
        _number("value", "mean rating in the direction of the value"),
        _number("low", "2.5% quantile for random answers, otherwise the value"),
        _number("high", "97.5% quantile for random answers, otherwise the value"),
    ),
    "respondents": Schema(
        (
            *(SURVEY, SCALE, AXIS),
            Column("simulated", "bool", "whether the responses are simulated at random"),
            _text("gender", "gender of the respondents, or all of them"),
            _category("infected", ("all", *INFECTED), "infection status of the respondents"),
            *estimates(cluster="respondent", method="percentile bootstrap over respondents"),
            _number("sd", "standard deviation over respondents", nullable=True),
        ),
        ("survey", "axis", "gender", "infected"),
    ),
    "answers": Schema.keyed(
        (*PLACE, AXIS_OR_NONE, STATEMENT, WHOSE),
        Column("reversed", "bool", "whether agreeing is against the value"),
        _number(
            "rating",
            "rating from 1 to 5, never reversed; null if neither the response nor the calibration "
            "deviates from the line, as for constant responses",
            nullable=True,
            minimum=1,
            maximum=5,
        ),
    ),
    "points": Schema.keyed(
        (
            *(*PLACE, _text("questionnaire", "config of `statements`"), AXIS_OR_NONE, STATEMENT),
            *(WHOSE, _text("frame", "template"), FORM),
        ),
        _number("bearing", "weight in the value; negative if agreeing is against it"),
        _text("cluster", "cluster of the statement and its opposite, which are resampled together"),
        _number("disagree_nats", "log-probability of disagreeing", maximum=0),
        _number("agree_nats", "log-probability of agreeing", maximum=0),
    ),
}
