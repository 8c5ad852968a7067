"""Recovery measures: description, question and pass criterion of each.

Measures are keys of the recovery tables; the schema, the dataset card and the report use them.
"""

from __future__ import annotations

from typing import NamedTuple

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.report.view import LEVEL

FOUND, ORDER, HOLD, SILENT = QUESTIONS = (
    "is what was planted found?",
    "in its order?",
    "do intervals hold the truth?",
    "silent where nothing is planted?",
)
YES, UNCLEAR, NO = "yes", "unclear", "no"
MARGIN = 0.1  # tolerance for errors, as no model learns the planted effects completely


class Measure(NamedTuple):
    """A recovery measure and its pass criteria.

    ``planted`` and ``null`` are the criteria of the positive and the negative control: the required
    position of the number, or of its interval, relative to ``expected``; "" if the measure is not
    judged.
    """

    description: str
    question: str = ""  # for the positive control; for the negative control, it is SILENT
    expected: float | None = None  # if None, the row contains the planted value
    planted: str = ""
    null: str = ""


MEASURES = {
    "rank_correlation": Measure(
        "Spearman correlation of planted and measured values", ORDER, 0, "above"
    ),
    "correlation": Measure("Pearson correlation of planted and measured", ORDER, 0, "above"),
    "slope": Measure("slope of measured on planted effects", FOUND, 1, "within margin"),
    "sign_agreement": Measure("share of estimates with the planted sign", FOUND, 0.5, "above"),
    "power": Measure(
        "share of planted effects with the planted sign and an adjusted p of at most .05",
        *(FOUND, 0.8, "at least"),
    ),
    "error": Measure(
        "mean distance from the planted value", FOUND, 0, "within margin", "within margin"
    ),
    "difference_from_lists": Measure(
        "mean recall minus that with the lists of other groups", FOUND, 0, "above", "includes"
    ),
    "similarity": Measure(
        "similarity to a control that shares half of the words, minus that to unrelated ones",
        *(FOUND, 0, "above", "includes"),
    ),
    "tone_shift": Measure(
        "mean shift of positive minus negative words, in the direction of the articles' tone",
        *(FOUND, 0, "above", "includes"),
    ),
    "coverage": Measure(
        "share of intervals that include the planted value", HOLD, 0.95, "not below", "not below"
    ),
    "discoveries": Measure("share of tests with p of at most .05", "", LEVEL, "", "not above"),
    "discoveries_bh": Measure("share of adjusted p of at most .05", "", LEVEL, "", "not above"),
    "discoveries_bonferroni": Measure(
        "share of tests with p of at most .05 after Bonferroni's adjustment",
        *("", LEVEL, "", "not above"),
    ),
    "false_discoveries": Measure(
        "share of tests of absent effects with p of at most .05",
        *(SILENT, LEVEL, "not above", "not above"),
    ),
    "false_discoveries_bh": Measure(
        "share of tests of absent effects with an adjusted p of at most .05",
        *(SILENT, LEVEL, "not above", "not above"),
    ),
    "any_discovery": Measure(
        "whether any test of a control has an adjusted p of at most .05", "", LEVEL, "", "not above"
    ),
    "estimate": Measure("an estimate to compare with the planted value"),
    "direction": Measure("an estimate to compare with the planted sign"),
    "distance": Measure("mean absolute distance from the planted value, in its unit", "", 0),
    "inside_random": Measure("share of checkpoints inside the band of random responses", "", 0.95),
    "beyond_margin": Measure("share of values whose whole interval is beyond the margin"),
    "label_agreement": Measure("share of words whose likeliest sentiment is the planted one"),
    "divergence": Measure("largest KL divergence of a word's sentiments from the lexicon's", "", 0),
}
ADJUSTED = frozenset({"discoveries_bh", "discoveries_bonferroni", "any_discovery"})
ADJUSTED |= {"false_discoveries_bh"}
TESTS = ADJUSTED | {"discoveries", "false_discoveries"}  # measures that count p-values
RECOVERY = Schema.keyed(
    (
        Column("study", "string", "study"),
        Column("analysis", "string", "analysis whose table is compared"),
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the lists, or name of the task"),
        Column(
            "measure",
            "string",
            "; ".join(f"{name}: {measure.description}" for name, measure in MEASURES.items()),
        ),
        Column("reading", "string", "reading (method variant); empty if there is only one"),
        Column("item", "string", "item, such as a word or category; empty for all items"),
    ),
    Column("world", "string", "kind of control: planted (with known biases) or null (without)"),
    Column("value", "float64", "value of the measure; null if not finite", nullable=True),
    Column("low", "float64", "lower end of the interval; null if not finite", nullable=True),
    Column("high", "float64", "upper end of the interval; null if not finite", nullable=True),
    Column("n", "int64", "number of independent clusters", minimum=0),
    Column("cluster", "string", "independent unit"),
    Column("expected", "float64", "reference value; null if there is none", nullable=True),
)


def question(measure: str, world: str) -> str:
    """Return the question that a measure answers for a control; "" if it is not judged."""
    declared = MEASURES[measure]
    if not getattr(declared, world):
        return ""
    return declared.question if world == "planted" or declared.question == HOLD else SILENT


def verdict(measure: str, world: str, value: float, low: float | None, high: float | None) -> str:
    """Judge a number by its interval or, if it has none, by its value.

    Examples
    --------
    >>> verdict("coverage", "planted", 0.9, 0.8, 0.96)
    'yes'
    >>> verdict("sign_agreement", "planted", 0.7, 0.4, 0.9)
    'unclear'
    """
    declared = MEASURES[measure]
    criterion, expected = getattr(declared, world), declared.expected or 0.0
    least, most = (value if end is None else end for end in (low, high))
    bounded = low is not None and high is not None
    unclear = {
        "within margin": not bounded
        or any(least <= expected + end <= most for end in (-MARGIN, MARGIN)),
        "above": value > expected and (low is None or low <= expected),
        "at least": value < expected and high is not None and high >= expected,
    }
    passed = {
        "within margin": abs(value - expected) < MARGIN,
        "above": value > expected,
        "at least": value >= expected,
        "not below": most >= expected,
        "not above": least <= expected,
        "includes": bounded and least <= expected <= most,
    }
    if unclear.get(criterion):
        return UNCLEAR
    return YES if passed[criterion] else NO
