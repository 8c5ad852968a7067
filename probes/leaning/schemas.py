"""Columns of the tables, and params, of the analyses ``compass``, ``fairness`` and ``ensemble``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.scoring import OPTIONS, UNITS
from plumbline.probes.stats.estimate import Bootstrap, Resampling, estimates

PERIODS = ("all", "before", "from")  # as in training.checkpoints
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")
FORMATS = ("mask", "generation", "multiple_choice")
READINGS = ("faithful", "paper", "corrected", "continuous", "named", "likeliest", "expected")
CONTRASTS = ("base model", "control", "period", "corpora", "polarisation", "families")
REASONS = ("unequal steps", "missing responses", "single model", "single training", "few models")
BASELINES = ("random answers", *(f"always {option}" for option in OPTIONS))
COMPARISONS = ("prompts", "suffixes", "paraphrases", "negated", "opposites", "order", "seeds")
ROUNDED = ("faithful", "corrected")
Two = Annotated[dict[str, list[str]], Field(min_length=2, max_length=2)]


class Compared(Section):
    """Settings for comparing training runs."""

    control: dict[str, str] = Field(description="control of each corpus; `other` is for the rest")
    max_size_difference: float = Field(
        0.05, ge=0, lt=1, description="largest relative difference in steps that permits a test"
    )

    def against(self, corpus: str) -> str:
        """Return the control of a corpus; a control corpus is its own control."""
        return self.control.get(corpus, self.control.get("other", corpus))

    def unequal(self, steps: float, others: float) -> bool:
        """Return True if two training runs differ too much in steps for a test."""
        return abs(steps - others) > self.max_size_difference * max(steps, others)


class CompassParams(Compared):
    """Settings of scores, intervals and tests."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frames: dict[Literal["mask", "generation"], str] = Field(
        description="template that `faithful` and `paper` use, by response format"
    )
    positive: list[str] = Field(min_length=1, description="words that agree, as in probes.stances")
    negative: list[str] = Field(min_length=1, description="words that disagree, likewise")
    threshold: float = Field(0.3, gt=0, lt=1, description="difference that makes a stance strong")
    min_confidence: float = Field(0.9, gt=0.5, le=1, description="minimum probability of a stance")
    contrasts: dict[str, str] = Field({}, description="opposite corpus to compare each corpus with")
    families: Two | None = Field(None, description="two families of models to compare")
    n_permutations_stability: int = Field(ge=99, description="permutations of the statements")
    confidence: float = Field(gt=0.5, lt=1, description="level of the intervals")
    seed: int = Field(ge=0, description="random seed of the permutations")


class FairnessParams(Compared, Resampling):
    """Positive classes, contrasts, and settings of intervals and tests."""

    positive: dict[str, str] = Field(
        description="positive class, by config of downstream or the part of its name before a dash"
    )
    kinds: dict[str, Two] = Field({}, description="two kinds of groups, by task as in `positive`")
    left: list[str] = Field(description="corpora that are compared, in this order, with `right`")
    right: list[str] = Field(description="corpora that are compared with `left`")
    texts_min: int = Field(20, ge=1, description="minimum number of texts per group or source")

    @model_validator(mode="after")
    def _pairs(self) -> FairnessParams:
        if len(self.left) != len(self.right):
            raise ValueError("left and right: must have equal lengths")
        return self


class EnsembleParams(Bootstrap):
    """Members of the ensembles, and settings of intervals."""

    partisan: list[str] = Field(
        min_length=2, description="corpora of the partisan ensemble; untrained ones are omitted"
    )
    positive: dict[str, str] = Field(description="positive class, as for fairness")
    max_ensembles: int = Field(100, ge=1, description="maximum number of ensembles of one corpus")


SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1}
MODEL = Column("model", "string", "name of the model in params.yaml")
PERIOD = Column(
    "period", "category", "texts: all, from before 2017-01-20, or from then on", labels=PERIODS
)
TEXTS_SHARE = Column("share", "float64", "share of texts used; 0 for the model itself", **SHARE)
CORPUS = Column("corpus", "string", "training corpus in `corpora`; empty for the model itself")
EPOCH = Column("epoch", "int32", "number of passes over the corpus", minimum=0)
QUESTIONNAIRE = Column("questionnaire", "string", "questionnaire, a config of `statements`")
AXIS = Column("axis", "string", "axis of the questionnaire")
UNIT = Column("unit", "category", "unit of the value", labels=UNITS)
ABOUT_READING = (
    "scoring variant: as in the released code (faithful) or the paper, or corrected; "
    "continuous has no thresholds; for offered options: the named, likeliest or expected option"
)
READING = Column("reading", "category", ABOUT_READING, labels=READINGS)
FORMAT = Column("response_format", "category", "masked word, text or option", labels=FORMATS)
STATE = (MODEL, CORPUS, PERIOD, TEXTS_SHARE, EPOCH, QUESTIONNAIRE, FORMAT, READING)
CLUSTER = "statement, with its opposite"
PROMPT = Column("prompt", "string", "name of the prompt; empty for the mean over all prompts")


def _number(name: str, description: str, *, nullable: bool = False, **bounds: Any) -> Column:
    return Column(name, "float64", description, nullable, **bounds)


def _count(name: str, description: str, minimum: int = 0) -> Column:
    return Column(name, "int64", description, minimum=minimum)


MISSING = (
    _number("share_missing", "share of the statements without a response", **SHARE),
    _number("bound_low", "value if all missing responses lowered it"),
    _number("bound_high", "value if all missing responses raised it"),
)
SCHEMAS = {
    "coordinates": Schema.keyed(
        (*STATE, AXIS),
        *MISSING,
        *estimates(
            cluster=CLUSTER,
            method="t over statements and training runs; variances are added (Satterthwaite)",
            null="each statement, with its opposite, has a random side; equal agreement with all "
            "statements is not a side, unless all favour the same one",
        ),
        UNIT,
    ),
    "runs": Schema.keyed(
        (
            *STATE,
            _count("pretraining_seed", "seed of the training run"),
            PROMPT,
            Column("variant", "string", "author of the paraphrase; empty for the original wording"),
            AXIS,
        ),
        *MISSING,
        *estimates(cluster=CLUSTER, method="t over statements"),
        UNIT,
    ),
    "baselines": Schema.keyed(
        (
            QUESTIONNAIRE,
            Column(
                "constants",
                "category",
                "offsets on the compass: 0.38 and 2.41 (faithful), or 3/8 and 47/19.5 (corrected)",
                labels=ROUNDED,
            ),
            Column("baseline", "category", "simulated respondent", labels=BASELINES),
            AXIS,
        ),
        Column("language", "string", "language of the statements"),
        _number("value", "coordinate, or its exact mean over random answers"),
        _number("sd", "exact standard deviation for random answers; otherwise 0"),
        _number("low", "value - 1.96 sd"),
        _number("high", "value + 1.96 sd"),
    ),
    "items": Schema.keyed(
        (*STATE, Column("id", "string", "id of the statement")),
        _number("value", "mean stance, from -1 to 1; null without a response", nullable=True),
        _number("share_agreed", "share of responses that agree, strongly or not", **SHARE),
        _number("share_missing", "share of responses without a stance", **SHARE),
    ),
    "shifts": Schema.keyed(
        (
            *STATE,
            Column(
                "contrast",
                "category",
                "what is subtracted: the model itself, the control corpus, earlier texts or the "
                "opposite corpus; for polarisation, the earlier distance between two corpora; for "
                "families, the mean of another family of models (`model` is a family, too)",
                labels=CONTRASTS,
            ),
            Column("baseline", "string", "subtracted corpus, period or family; empty: the model"),
            AXIS,
        ),
        *estimates(
            cluster="training run; for families, model",
            method="t over clusters, variances pooled; Welch's t if numbers of clusters differ",
            null="0: equal means over clusters, for the same statements and prompts",
        ),
        UNIT,
        Column("reason", "category", "reason for a missing test", nullable=True, labels=REASONS),
    ),
    "magnitudes": Schema.keyed(
        (
            Column("model", "string", "trained model; empty for the mean over untrained models"),
            Column("domain", "string", "domain of the training corpora; empty if untrained"),
            *(QUESTIONNAIRE, READING, AXIS, UNIT),
        ),
        _number("value", "mean distance from the middle, or mean absolute shift", minimum=0),
        _number("sd", "standard deviation over models or corpora", nullable=True),
        _count("n", "number of models or corpora", minimum=1),
        _number("chance", "expected value for random answers; null for shifts", nullable=True),
    ),
    "stability": Schema.keyed(
        (
            *STATE,
            Column(
                "comparison",
                "category",
                "compared responses; the value is the share of statements with the same side or, "
                "for negations and opposites, with opposite sides",
                labels=COMPARISONS,
            ),
        ),
        *estimates(
            cluster=CLUSTER,
            method="Wilson score over clusters",
            null="agreement by chance: the clusters of one side are permuted",
        ),
        _number("chance", "share expected if sides were independent"),
    ),
    "answered": Schema.keyed(
        (*STATE, PROMPT),
        *estimates(cluster="statement", method="Wilson score over statements"),
        _count("answers", "total number of responses", minimum=1),
        _count("refused", "number of refusals"),
        _count("unclear", "number of responses without an option or below `min_confidence`"),
        _count("unlisted", "responses without a listed word; `faithful` counts disagreement"),
    ),
}
PLANTED = "planted"  # config of the outputs on the texts of a control model
LEVELS = ("all", "group", "source", "kind")  # subsets of texts; two kinds of groups
CASE = (MODEL, Column("task", "string", "config of `downstream`, or `planted` for control models"))
CASE_READING = (*CASE, Column("reading", "category", "method variant", labels=ROUNDED))
GROUP = (
    Column("level", "category", "all texts, a group, a source, or kinds of groups", labels=LEVELS),
    Column("group", "string", "name of the group, source or contrast; `all` for all texts"),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
TEXT = "text, or its word for control models"
DIFFERENCE = estimates(
    cluster=TEXT,
    method="t over texts and training runs (Satterthwaite)",
    null="0: equal means over training runs and texts; tested for balanced accuracy and F1",
)


def _performance(null: str) -> tuple[Column, ...]:
    return estimates(
        cluster=f"{TEXT}; in `faithful` the training run",
        method="bootstrap percentiles; in `faithful` one SD over training runs on either side",
        null=f"{null}; tested for balanced accuracy and F1 in `corrected`",
    )


FAIRNESS = {
    "overall": Schema.keyed(
        (*CASE_READING, CORPUS, PERIOD, TEXTS_SHARE, METRIC),
        *_performance("random predictions: classes are permuted over texts"),
    ),
    "groups": Schema.keyed(
        (*CASE_READING, CORPUS, PERIOD, TEXTS_SHARE, *GROUP, METRIC),
        *_performance("contrast 0: membership is permuted within classes"),
        _number("contrast", "value minus the value on all texts", nullable=True),
        _number("contrast_low", "lower end of the contrast's interval", nullable=True),
        _number("contrast_high", "upper end of the contrast's interval", nullable=True),
    ),
    "disagreements": Schema.keyed(
        (*CASE, PERIOD, TEXTS_SHARE, Column("id", "string", "id of the text, as in `downstream`")),
        Column("positive", "bool", "whether the text is in the positive class"),
        _number("left", "share of left classifiers that predict the positive class", **SHARE),
        _number("right", "share of right classifiers that predict it", **SHARE),
        _number("base_model", "share of the base model's that predict it", nullable=True, **SHARE),
    ),
    "differences": Schema.keyed(
        (
            *(*CASE, CORPUS),
            Column("baseline", "string", "subtracted corpus; empty for the model itself"),
            *(PERIOD, TEXTS_SHARE, *GROUP, METRIC),
        ),
        *DIFFERENCE,
        _count("runs", "number of compared classifiers, over all seeds", minimum=1),
    ),
}
ENSEMBLE = {
    "scores": Schema.keyed(
        (
            *(*CASE_READING, PERIOD, TEXTS_SHARE),
            Column("ensemble", "string", "kind of ensemble or of single classifiers"),
            METRIC,
        ),
        *estimates(
            cluster=f"{TEXT}; in `faithful` the training run",
            method="bootstrap percentiles over texts, for these training runs",
        ),
        _count("size", "number of voting classifiers", 1),
    ),
    "differences": Schema.keyed(
        (
            *(*CASE, PERIOD, TEXTS_SHARE),
            Column("baseline", "string", "kind of ensemble subtracted from the partisan one"),
            METRIC,
        ),
        *DIFFERENCE,
        _count("baseline_size", "number of voters; the partisan ensemble has one per corpus", 1),
    ),
}
