"""Tables and params of the analyses ``compass``, ``fairness`` and ``ensemble``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.scoring import OPTIONS, UNITS
from plumbline.probes.stats.estimate import ESTIMATE

PERIODS = ("all", "before", "from")  # as training.checkpoints has them, without its models
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")
ASKED = ("filled", "written", "chosen")
READINGS = ("faithful", "paper", "corrected", "continuous", "named", "likeliest", "expected")
CONTRASTS = ("itself", "control", "period", "corpora")
BASELINES = ("random answers", *(f"always {option}" for option in OPTIONS))
STABLE = ("prompts", "forces", "paraphrases", "negated", "opposites", "order", "seeds")
ROUNDED = ("faithful", "corrected")


class CompassParams(Section):
    """How answers are read, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frames: dict[Literal["filled", "written"], str] = Field(
        description="frame of the readings `faithful` and `paper`, by way of asking"
    )
    positive: list[str] = Field(
        min_length=1, description="words that agree, as probes.leaning has them"
    )
    negative: list[str] = Field(min_length=1, description="words that disagree")
    threshold: float = Field(
        0.3, gt=0, lt=1, description="difference of the masses from which a stance is strong"
    )
    confident: float = Field(
        0.9, gt=0.5, le=1, description="probability from which an answer's stance is taken"
    )
    control: dict[str, str] = Field(
        description="corpus that each is judged against; other: of all that are not named"
    )
    compared: dict[str, str] = Field({}, description="corpora less which others are compared")
    apart: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="part of the larger number of texts up to which two corpora are tested",
    )
    flips: int = Field(ge=99, description="sign patterns over statements, where not all are tried")
    draws: int = Field(ge=99, description="shuffles of statements")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of sign patterns and shuffles")


class FairnessParams(Section):
    """What is sought and compared, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    positive: dict[str, str] = Field(
        description="the class that is sought, by config of downstream or by what its name begins "
        "with, up to the first dash"
    )
    control: str = Field(description="corpus that the others are compared with")
    left: list[str] = Field(description="corpora that are compared, one by one, with")
    right: list[str] = Field(description="these")
    texts_min: int = Field(
        20, ge=1, description="test texts that a group or source must have to be in the tables"
    )
    exchanges: int = Field(ge=99, description="draws of the tests that exchange or permute")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over texts")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    @model_validator(mode="after")
    def _pairs(self) -> FairnessParams:
        if len(self.left) != len(self.right):
            raise ValueError("left and right: as many of one as of the other are needed")
        return self


class EnsembleParams(Section):
    """Who votes, and how intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    partisan: list[str] = Field(
        min_length=2, description="corpora of the partisan ensemble; those not trained on are out"
    )
    positive: dict[str, str] = Field(description="the class that is sought, as in fairness")
    draws: int = Field(
        100, ge=1, description="ensembles of one corpus at most; all choices if they are no more"
    )
    bootstrap: int = Field(ge=100, description="bootstrap replicates over texts")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling and of the choice of ensembles")

    @model_validator(mode="after")
    def _once(self) -> EnsembleParams:
        if len(set(self.partisan)) < len(self.partisan):
            raise ValueError("partisan: one stands twice")
        return self


MODEL = Column("model", "string", "name of the model in params.yaml")
CORPUS = Column("corpus", "string", "config of `corpora` it was trained on; empty: the model")
STATE = (
    CORPUS,
    Column("period", "label", "texts trained on: all; before, and from 2017-01-20", labels=PERIODS),
    Column("share", "float64", "part of these texts; 0: the model itself", minimum=0, maximum=1),
    Column("epoch", "int32", "times that it had read them", minimum=0),
)
SEED = Column("pretraining_seed", "int32", "of the training", minimum=0)
QUESTIONNAIRE = Column("questionnaire", "string", "config of `statements`")
HOW = Column(
    "asked",
    "label",
    "filled: a mask; written: an answer in words, which an entailment model reads; chosen: one of "
    "four options",
    labels=ASKED,
)
READING = Column(
    "reading",
    "label",
    "filled and written: faithful, as the released code; paper, of written; corrected; continuous, "
    "corrected without thresholds. chosen: the option named in the answer; the likeliest; "
    "expected, all four by their probability",
    labels=READINGS,
)
AXIS = Column("axis", "string", "axis of the questionnaire")
UNIT = Column("unit", "label", "of the value", labels=UNITS)
PROMPT = Column("prompt", "string", "frame, and template of chosen; empty: all of them")
PLACE = (MODEL, *STATE, QUESTIONNAIRE, HOW, READING)
AT = tuple(column.name for column in PLACE)
MISSING = (
    Column("statements", "int64", "statements that move the axis", minimum=1),
    Column("missing", "float64", "of them without an answer, mean over prompts and seeds"),
    Column("bound_low", "float64", "coordinate if what is missing were answered to move it down"),
    Column("bound_high", "float64", "and up"),
)
COORDINATES = Schema(
    columns=(
        *PLACE,
        AXIS,
        UNIT,
        *ESTIMATE,
        Column("seeds", "int64", "trainings that it is the mean of", minimum=1),
        Column("prompts", "int64", "prompts that it is the mean of", minimum=1),
        Column("seed_sd", "float64", "standard deviation over trainings", nullable=True),
        Column("prompt_sd", "float64", "standard deviation over prompts", nullable=True),
        Column(
            "low_fixed",
            "float64",
            "lower end over prompts and trainings alone, the statements being all there are; null "
            "with one of each",
            nullable=True,
        ),
        Column("high_fixed", "float64", "its other end", nullable=True),
        *MISSING,
    ),
    key=(*AT, "axis"),
)
RUNS = Schema(
    columns=(*PLACE, SEED, PROMPT, AXIS, UNIT, *ESTIMATE, *MISSING),
    key=(*AT, "pretraining_seed", "prompt", "axis"),
)
BASELINE = Schema(
    columns=(
        QUESTIONNAIRE,
        Column("language", "string", "language of its statements"),
        Column(
            "constants",
            "label",
            "faithful: 0.38 and 2.41 are added on the compass; corrected: 3/8 and 47/19.5. The "
            "same on linear scales",
            labels=ROUNDED,
        ),
        Column("baseline", "label", "who answers", labels=BASELINES),
        AXIS,
        UNIT,
        Column("value", "float64", "coordinate; of random answers the mean, exact"),
        Column("sd", "float64", "of random answers the standard deviation, exact; else 0"),
        Column("low", "float64", "of random answers mean - 1.96 sd; else the value"),
        Column("high", "float64", "and mean + 1.96 sd"),
        Column("statements", "int64", "statements that move the axis", minimum=1),
    ),
    key=("questionnaire", "constants", "baseline", "axis"),
)
QUESTIONS = Schema(
    columns=(
        MODEL,
        *STATE,
        QUESTIONNAIRE,
        Column("id", "string", "statement"),
        Column("frame", "string", "prompt"),
        Column("form", "string", "plain: as it stands; negated: that it is not so"),
        Column("log_odds_nats", "float64", "log-odds of agreeing, mean over trainings"),
    ),
    key=("model", *AT[1:5], "questionnaire", "id", "frame", "form"),
)
ITEMS = Schema(
    columns=(
        *PLACE,
        Column("id", "string", "statement"),
        *ESTIMATE,
        *(
            Column(
                f"share_{option.replace(' ', '_')}",
                "float64",
                f"of the answers (prompts, seeds, trainings): {option}",
                minimum=0,
                maximum=1,
            )
            for option in OPTIONS
        ),
        Column("share_missing", "float64", "and those that are none", minimum=0, maximum=1),
    ),
    key=(*AT, "id"),
)
SHIFTS = Schema(
    columns=(
        *PLACE,
        Column(
            "contrast",
            "label",
            "minus the model itself; minus the control corpus; texts from 2017 minus those before; "
            "minus the corpus that it is compared with",
            labels=CONTRASTS,
        ),
        Column("against", "string", "corpus, or period, that is taken off; empty: the model"),
        AXIS,
        UNIT,
        *ESTIMATE,
        Column("seed_sd", "float64", "SD of the shift over its own trainings", nullable=True),
        Column(
            "p_seeds",
            "float64",
            "p over trainings: Welch's t, Student's against the model itself; null with one",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("p_seeds_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
        Column("seeds", "int64", "trainings on its own side", minimum=1),
        Column("texts", "float64", "mean number of texts trained on"),
        Column("texts_against", "float64", "and on the other side"),
    ),
    key=(*AT, "contrast", "against", "axis"),
)
STABILITY = Schema(
    columns=(
        *PLACE,
        Column(
            "compared",
            "label",
            "share of statements with stances on the same side: in two prompts, in a template with "
            "and without what forces an answer, as paraphrased, in two orders of the options, in "
            "two samples. On the other side, as they should be: "
            "denied, and its opposite",
            labels=STABLE,
        ),
        *ESTIMATE,
        Column("chance", "float64", "that share if the two had nothing to do with each other"),
        Column("pairs", "int64", "of ways of asking that were compared", minimum=1),
    ),
    key=(*AT, "compared"),
)
ANSWERED = Schema(
    columns=(
        *PLACE,
        PROMPT,
        *ESTIMATE,
        Column("answers", "int64", "answers in all", minimum=1),
        Column("refused", "int64", "of them refused", minimum=0),
        Column("unclear", "int64", "in no option, or not sure enough", minimum=0),
        Column(
            "unlisted",
            "int64",
            "of filled: without a word of either list among the ten; `faithful` takes them for "
            "disagreeing",
            minimum=0,
        ),
    ),
    key=(*AT, "prompt"),
)
SCHEMAS = {
    "coordinates": COORDINATES,
    "runs": RUNS,
    "baselines": BASELINE,
    "items": ITEMS,
    "questions": QUESTIONS,
    "shifts": SHIFTS,
    "stability": STABILITY,
    "answered": ANSWERED,
}
PLANTED = "planted"  # config of the outputs: a world's own texts
OF = ("all", "group", "source")  # what texts are taken together by
FAIRNESS_READINGS = ("faithful", "one run", "corrected")
TASK = Column("task", "string", "config of `downstream`; planted: a world's own texts")
CASE = (MODEL, TASK, Column("reading", "label", "see Readings", labels=FAIRNESS_READINGS))
TRAINED = (
    Column("period", "label", "texts of the corpus: all, before, from 2017-01-20", labels=PERIODS),
    Column("share", "float64", "part of these texts; 0: the model itself", minimum=0, maximum=1),
)
TRAINED_ON = (
    Column("corpus", "string", "corpus of the continued pretraining; empty: the model itself"),
    *TRAINED,
)
GROUP = (
    Column("of", "label", "what texts are taken together by", labels=OF),
    Column("group", "string", "name of the group or source; all: every text"),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
TRAININGS = (
    Column("runs", "int64", "trainings of the classifier, all seeds", minimum=1),
    Column("sd_runs", "float64", "SD over these; null: one alone, or not finite", nullable=True),
)
FAMILY = Column("family", "int64", "tests adjusted together: all of model, task and reading")
OVER_TRAININGS = (
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
)
OVERALL = Schema(
    columns=(*CASE, *TRAINED_ON, METRIC, *ESTIMATE, *TRAININGS, FAMILY),
    key=("model", "task", "reading", "corpus", "period", "share", "metric"),
)
GROUPS = Schema(
    columns=(
        *CASE,
        *TRAINED_ON,
        *GROUP,
        METRIC,
        *ESTIMATE,
        *TRAININGS,
        FAMILY,
        Column("contrast", "float64", "value minus that of all texts", nullable=True),
        Column("contrast_low", "float64", "lower end of its interval", nullable=True),
        Column("contrast_high", "float64", "upper end of its interval", nullable=True),
    ),
    key=("model", "task", "reading", "corpus", "period", "share", "of", "group", "metric"),
)
DIFFERENCES = Schema(
    columns=(
        *CASE,
        Column("corpus", "string", "corpus of the one that the other is taken from"),
        Column("against", "string", "corpus of the other; empty: the model itself"),
        *TRAINED,
        *GROUP,
        METRIC,
        *ESTIMATE,
        *TRAININGS,
        FAMILY,
        *OVER_TRAININGS,
        Column("texts", "int64", "texts of the further pretraining of the one", minimum=0),
        Column("texts_against", "int64", "of the other; 0: the model itself", minimum=0),
    ),
    key=(
        *("model", "task", "reading", "corpus", "against", "period", "share"),
        *("of", "group", "metric"),
    ),
)
FAIRNESS = {"overall": OVERALL, "groups": GROUPS, "differences": DIFFERENCES}
WHERE = (
    MODEL,
    TASK,
    Column("reading", "label", "see Readings", labels=ROUNDED),
    Column("period", "label", "texts of the corpora: all, before, from 2017", labels=PERIODS),
    Column("share", "float64", "part of these texts", minimum=0, maximum=1),
)
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
GAINS = Schema(
    columns=(
        *WHERE,
        Column("against", "string", "what is taken from the partisan ensemble"),
        Column("vote", "string", "of the partisan ensemble, and of the other if it votes"),
        METRIC,
        *ESTIMATE,
        Column("size", "int64", "voters of the partisan ensemble", minimum=2),
        Column("size_against", "int64", "voters of each of the others", minimum=1),
        FAMILY,
        *OVER_TRAININGS,
    ),
    key=("model", "task", "reading", "period", "share", "against", "vote", "metric"),
)
ENSEMBLE = {"scores": SCORES, "differences": GAINS}
