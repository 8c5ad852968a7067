"""Tables and params of the analyses ``compass``, ``fairness`` and ``ensemble``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.scoring import OPTIONS, UNITS
from plumbline.probes.stats.estimate import Bootstrap, Resampling, estimates

PERIODS = ("all", "before", "from")  # as in training.checkpoints
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")
FORMATS = ("mask", "generation", "multiple_choice")
READINGS = ("faithful", "paper", "corrected", "continuous", "named", "likeliest", "expected")
CONTRASTS = ("base model", "control", "period", "corpora", "polarisation")
REASONS = ("unequal steps", "missing responses", "single model", "single training")
BASELINES = ("random answers", *(f"always {option}" for option in OPTIONS))
COMPARISONS = ("prompts", "suffixes", "paraphrases", "negated", "opposites", "order", "seeds")
ROUNDED = ("faithful", "corrected")


class Compared(Section):
    """Baselines for training runs."""

    control: dict[str, str] = Field(description="baseline by corpus; other: baseline of all others")
    max_size_difference: float = Field(
        0.05, ge=0, lt=1, description="largest relative difference in steps for a test"
    )

    def against(self, corpus: str) -> str:
        """Return the control of a corpus; the control of a control is itself."""
        return self.control.get(corpus, self.control.get("other", corpus))

    def unequal(self, steps: float, others: float) -> bool:
        """Return True if two training runs differ too much in steps for a test."""
        return abs(steps - others) > self.max_size_difference * max(steps, others)


class CompassParams(Compared):
    """Scoring, interval and test settings."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frames: dict[Literal["mask", "generation"], str] = Field(description="of `faithful`, `paper`")
    positive: list[str] = Field(min_length=1, description="words that agree, as in probes.stances")
    negative: list[str] = Field(min_length=1, description="words that disagree")
    threshold: float = Field(0.3, gt=0, lt=1, description="least difference of masses if strong")
    min_confidence: float = Field(0.9, gt=0.5, le=1, description="least probability of a stance")
    contrasts: dict[str, str] = Field({}, description="further baselines, by corpus")
    n_permutations_stability: int = Field(ge=99, description="permutations over statements")
    confidence: float = Field(gt=0.5, lt=1, description="level of the intervals")
    seed: int = Field(ge=0, description="seed of permutations")


class FairnessParams(Compared, Resampling):
    """Positive classes, contrasts, and interval and test settings."""

    positive: dict[str, str] = Field(
        description="positive class, by config of downstream or prefix of its name up to a dash"
    )
    left: list[str] = Field(description="corpora compared, in order, with those in `right`")
    right: list[str] = Field(description="these")
    texts_min: int = Field(20, ge=1, description="least number of test texts of a group or source")

    @model_validator(mode="after")
    def _pairs(self) -> FairnessParams:
        if len(self.left) != len(self.right):
            raise ValueError("left and right: must have equal lengths")
        return self


class EnsembleParams(Bootstrap):
    """Members of the ensembles, and interval settings."""

    partisan: list[str] = Field(
        min_length=2, description="corpora of the partisan ensemble; untrained ones are omitted"
    )
    positive: dict[str, str] = Field(description="positive class, as in fairness")
    max_ensembles: int = Field(100, ge=1, description="largest number of ensembles of one corpus")


SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1}
MODEL = Column("model", "string", "name of the model in params.yaml")
PERIOD = Column(
    "period", "category", "training texts: all; before 2017-01-20; from then", labels=PERIODS
)
TEXTS_SHARE = Column("share", "float64", "share of these texts; 0 for the model itself", **SHARE)
CORPUS = Column("corpus", "string", "training config of `corpora`; empty: the model itself")
EPOCH = Column("epoch", "int32", "passes over the corpus", minimum=0)
QUESTIONNAIRE = Column("questionnaire", "string", "config of `statements`")
AXIS = Column("axis", "string", "axis of the questionnaire")
UNIT = Column("unit", "category", "unit of the value", labels=UNITS)
ABOUT_READING = (
    "faithful: released code; paper; corrected; continuous: without thresholds; for options: "
    "the named, the most probable, or the expected one"
)
READING = Column("reading", "category", ABOUT_READING, labels=READINGS)
FORMAT = Column("response_format", "category", "masked word, text, or option", labels=FORMATS)
STATE = (MODEL, CORPUS, PERIOD, TEXTS_SHARE, EPOCH, QUESTIONNAIRE, FORMAT, READING)
CLUSTER = "statement, with its opposite"
PROMPT = Column("prompt", "string", "frame, and template of multiple_choice; empty: all")


def _number(name: str, description: str, *, nullable: bool = False, **bounds: Any) -> Column:
    return Column(name, "float64", description, nullable, **bounds)


def _count(name: str, description: str, minimum: int = 0) -> Column:
    return Column(name, "int64", description, minimum=minimum)


SCHEMAS = {
    "coordinates": Schema.keyed(
        (*STATE, AXIS),
        *estimates(
            cluster=CLUSTER,
            method="t over statements and trainings, their variances added (Satterthwaite)",
            null="mean of random responses, or these responses with random sides",
        ),
        UNIT,
        _number("missing", "statements without a response, mean over prompts and seeds"),
        _number("bound_low", "value if all missing responses moved it down"),
        _number("bound_high", "value if all missing responses moved it up"),
    ),
    "runs": Schema.keyed(
        (
            *STATE,
            _count("pretraining_seed", "seed of the training"),
            PROMPT,
            Column("variant", "string", "author of the paraphrase; empty: the original"),
            AXIS,
        ),
        *estimates(cluster=CLUSTER, method="t over statements"),
        UNIT,
    ),
    "baselines": Schema.keyed(
        (
            QUESTIONNAIRE,
            Column(
                "constants",
                "category",
                "offsets on the compass; faithful: 0.38 and 2.41; corrected: 3/8 and 47/19.5",
                labels=ROUNDED,
            ),
            Column("baseline", "category", "simulated respondent", labels=BASELINES),
            AXIS,
        ),
        Column("language", "string", "language of its statements"),
        _number("value", "coordinate; for random answers, the exact mean"),
        _number("sd", "for random answers, the exact standard deviation; else 0"),
        _number("low", "for random answers mean - 1.96 sd; else the value"),
        _number("high", "for random answers mean + 1.96 sd; else the value"),
    ),
    "items": Schema.keyed(
        (*STATE, Column("id", "string", "statement")),
        _number("value", "mean stance from -1 to 1; null: no response", nullable=True),
        _number("share_agreed", "share of agreeing responses, strong or not", **SHARE),
        _number("share_missing", "share of responses without a stance", **SHARE),
    ),
    "shifts": Schema.keyed(
        (
            *STATE,
            Column(
                "contrast",
                "category",
                "subtracted: the model itself; the control corpus; texts before 2017; another "
                "corpus; the distance between corpora with texts before 2017",
                labels=CONTRASTS,
            ),
            Column("baseline", "string", "subtracted corpus or period; empty: the model itself"),
            AXIS,
        ),
        *estimates(
            cluster="training",
            method="t over trainings, variances pooled; Welch's if their numbers differ",
            null="0: no difference over trainings on other texts, same statements and prompts",
        ),
        UNIT,
        Column("reason", "category", "reason for no test", nullable=True, labels=REASONS),
    ),
    "magnitudes": Schema.keyed(
        (
            Column("model", "string", "trained model; empty: mean over untrained models"),
            Column("domain", "string", "domain of the corpora; empty: without training"),
            *(QUESTIONNAIRE, READING, AXIS, UNIT),
        ),
        _number("value", "mean distance from the middle, or mean absolute shift", minimum=0),
        _number("sd", "standard deviation over models or corpora", nullable=True),
        _count("n", "models or corpora", minimum=1),
        _number("chance", "value of random answers; null for shifts", nullable=True),
    ),
    "stability": Schema.keyed(
        (
            *STATE,
            Column(
                "comparison",
                "category",
                "share of statements on the same side: in two prompts, with and without a "
                "forced-choice suffix, ..., in two samples; on the other side: negated, opposites",
                labels=COMPARISONS,
            ),
        ),
        *estimates(
            cluster=CLUSTER,
            method="Wilson score over clusters",
            null="chance agreement: clusters of one side permuted",
        ),
        _number("chance", "expected share under independence"),
    ),
    "answered": Schema.keyed(
        (*STATE, PROMPT),
        *estimates(cluster="statement", method="Wilson score over statements"),
        _count("answers", "total number of responses", minimum=1),
        _count("refused", "refusals"),
        _count("unclear", "responses without an option, or below `min_confidence`"),
        _count("unlisted", "responses without a listed word; faithful: disagree"),
    ),
}
PLANTED = "planted"  # config of the outputs: texts of a world (control model)
LEVELS = ("all", "group", "source")  # subsets of texts
CASE = (MODEL, Column("task", "string", "config of `downstream`; planted: a control's texts"))
CASE_READING = (*CASE, Column("reading", "category", "see Readings", labels=ROUNDED))
GROUP = (
    Column("level", "category", "grouping of the texts", labels=LEVELS),
    Column("group", "string", "name of the group or source; all: every text"),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
TEXT = "text; its word for control models"
DIFFERENCE = estimates(
    cluster=TEXT,
    method="t over texts and trainings (Satterthwaite)",
    null="0: equal on average over trainings and texts; tested for balanced accuracy and F1",
)


def _performance(null: str) -> tuple[Column, ...]:
    return estimates(
        cluster=f"{TEXT}; faithful: training",
        method="bootstrap percentiles; faithful: minus and plus one SD over trainings",
        null=f"{null}; only corrected, balanced accuracy and F1",
    )


FAIRNESS = {
    "overall": Schema.keyed(
        (*CASE_READING, CORPUS, PERIOD, TEXTS_SHARE, METRIC),
        *_performance("predictions at random: classes permuted over texts"),
    ),
    "groups": Schema.keyed(
        (*CASE_READING, CORPUS, PERIOD, TEXTS_SHARE, *GROUP, METRIC),
        *_performance("contrast 0: membership permuted within classes"),
        _number("contrast", "value minus that on all texts", nullable=True),
        _number("contrast_low", "lower end of its interval", nullable=True),
        _number("contrast_high", "upper end of its interval", nullable=True),
    ),
    "disagreements": Schema.keyed(
        (*CASE, PERIOD, TEXTS_SHARE, Column("id", "string", "text, as in `downstream`")),
        Column("positive", "bool", "whether the text is in the positive class"),
        _number("left", "share of left classifiers that predict the positive class", **SHARE),
        _number("right", "the same for right classifiers", **SHARE),
        _number("base_model", "the same for the model itself", nullable=True, **SHARE),
    ),
    "differences": Schema.keyed(
        (
            *(*CASE, CORPUS),
            Column("baseline", "string", "subtracted corpus; empty: the model itself"),
            *(PERIOD, TEXTS_SHARE, *GROUP, METRIC),
        ),
        *DIFFERENCE,
        _count("runs", "trainings of the classifier, all seeds", minimum=1),
    ),
}
ENSEMBLE = {
    "scores": Schema.keyed(
        (
            *(*CASE_READING, PERIOD, TEXTS_SHARE),
            Column("ensemble", "string", "voters or single classifiers; see Ensembles"),
            METRIC,
        ),
        *estimates(
            cluster=f"{TEXT}; faithful: training", method="bootstrap percentiles, these trainings"
        ),
        _count("size", "number of voting classifiers", 1),
    ),
    "differences": Schema.keyed(
        (
            *(*CASE, PERIOD, TEXTS_SHARE),
            Column("baseline", "string", "ensemble subtracted from the partisan one"),
            METRIC,
        ),
        *DIFFERENCE,
        _count(
            "baseline_size", "voters of the baseline; the partisan ensemble has one per corpus", 1
        ),
    ),
}
