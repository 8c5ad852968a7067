"""Tables and params of the analyses ``compass``, ``fairness`` and ``ensemble``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.scoring import OPTIONS, UNITS
from plumbline.probes.stats.estimate import ESTIMATE, Bootstrap, Resampling

PERIODS = ("all", "before", "from")  # as training.checkpoints has them, without its models
KEY = ("corpus", "period", "share", "pretraining_seed", "epoch")
FORMATS = ("mask", "generation", "multiple_choice")
READINGS = ("faithful", "paper", "corrected", "continuous", "named", "likeliest", "expected")
CONTRASTS = ("base model", "control", "period", "corpora", "polarisation")
UNEQUAL = "no test: trained for {:g} steps, the other side for {:g}"
BASELINES = ("random answers", *(f"always {option}" for option in OPTIONS))
COMPARISONS = ("prompts", "suffixes", "paraphrases", "negated", "opposites", "order", "seeds")
ROUNDED = ("faithful", "corrected")


class Compared(Section):
    """What trainings are compared with."""

    control: dict[str, str] = Field(
        description="baseline corpus of each; other: of all that are not named"
    )
    max_size_difference: float = Field(
        0.05,
        ge=0,
        lt=1,
        description="part of the larger number of steps up to which two trainings are tested",
    )

    def against(self, corpus: str) -> str:
        """Return the control corpus of a corpus; that of a control is itself."""
        return self.control.get(corpus, self.control.get("other", corpus))

    def unequal(self, steps: float, others: float) -> bool:
        """Return whether two trainings are too unequal to be tested."""
        return abs(steps - others) > self.max_size_difference * max(steps, others)


class CompassParams(Compared):
    """How responses are scored, and how intervals and tests are computed."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    frames: dict[Literal["mask", "generation"], str] = Field(
        description="frame of the readings `faithful` and `paper`, by response format"
    )
    positive: list[str] = Field(
        min_length=1, description="words that agree, as probes.stances has them"
    )
    negative: list[str] = Field(min_length=1, description="words that disagree")
    threshold: float = Field(
        0.3, gt=0, lt=1, description="difference of the masses from which a stance is strong"
    )
    min_confidence: float = Field(
        0.9, gt=0.5, le=1, description="probability from which a response has a stance"
    )
    contrasts: dict[str, str] = Field(
        {}, description="further pairs of corpora: the second is the baseline of the first"
    )
    n_permutations_stability: int = Field(ge=99, description="permutations of statements")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of shuffles")


class FairnessParams(Compared, Resampling):
    """Positive classes and contrasts, and how intervals and tests are computed."""

    positive: dict[str, str] = Field(
        description="the positive class, by config of downstream or by what its name begins "
        "with, up to the first dash"
    )
    left: list[str] = Field(description="corpora that are compared, one by one, with")
    right: list[str] = Field(description="these")
    texts_min: int = Field(
        20, ge=1, description="test texts that a group or source must have to be in the tables"
    )

    @model_validator(mode="after")
    def _pairs(self) -> FairnessParams:
        if len(self.left) != len(self.right):
            raise ValueError("left and right: as many of one as of the other are needed")
        return self


class EnsembleParams(Bootstrap):
    """Members of the ensembles, and how intervals are computed."""

    partisan: list[str] = Field(
        min_length=2, description="corpora of the partisan ensemble; those not trained on are out"
    )
    positive: dict[str, str] = Field(description="the positive class, as in fairness")
    max_ensembles: int = Field(
        100, ge=1, description="ensembles of one corpus at most; all choices if they are no more"
    )

    @model_validator(mode="after")
    def _once(self) -> EnsembleParams:
        if len(set(self.partisan)) < len(self.partisan):
            raise ValueError("partisan: one stands twice")
        return self


SHARE: dict[str, Any] = {"minimum": 0, "maximum": 1}
P: dict[str, Any] = {"nullable": True, **SHARE}
MODEL = Column("model", "string", "name of the model in params.yaml")
TEXTS_SHARE = Column("share", "float64", "part of these texts; 0: the model itself", **SHARE)
STATE = (
    Column("corpus", "string", "config of `corpora` it was trained on; empty: the model"),
    Column("period", "label", "texts trained on: all; before, and from 2017-01-20", labels=PERIODS),
    TEXTS_SHARE,
    Column("epoch", "int32", "times that it had read them", minimum=0),
)
SEED = Column("pretraining_seed", "int32", "of the training", minimum=0)
QUESTIONNAIRE = Column("questionnaire", "string", "config of `statements`")
STATEMENT = Column("id", "string", "statement")
AXIS = Column("axis", "string", "axis of the questionnaire")
UNIT = Column("unit", "label", "of the value", labels=UNITS)
PROMPT = Column("prompt", "string", "frame, and template of multiple_choice; empty: all of them")
READING = Column(
    "reading",
    "label",
    "mask and generation: faithful, as the released code; paper (generation alone); corrected; "
    "continuous, corrected without thresholds. multiple_choice: the option named in the "
    "response; the likeliest; expected, all four by their probability",
    labels=READINGS,
)
PLACE = (
    *(MODEL, *STATE, QUESTIONNAIRE),
    Column(
        "response_format",
        "label",
        "mask: a masked word; generation: a response in words, classified by an NLI model; "
        "multiple_choice: one of four options",
        labels=FORMATS,
    ),
    READING,
)
MOVING = Column("statements", "int64", "statements that move the axis", minimum=1)
MISSING = (
    MOVING,
    Column("missing", "float64", "of them without a response, mean over prompts and seeds"),
    Column("bound_low", "float64", "coordinate if what is missing were answered to move it down"),
    Column("bound_high", "float64", "and up"),
)
PLACED = (*ESTIMATE[:3], *MISSING, *ESTIMATE[3:])
SCHEMAS = {
    "coordinates": Schema.keyed(
        (*PLACE, AXIS),
        *(UNIT, *PLACED),
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
    ),
    "runs": Schema.keyed((*PLACE, SEED, PROMPT, AXIS), UNIT, *PLACED),
    "paraphrased": Schema.keyed(
        (
            *PLACE,
            Column("variant", "string", "paraphrase, by who worded it; empty: as it stands"),
            AXIS,
        ),
        *(UNIT, *PLACED),
        Column("reworded", "int64", "statements that have this wording", minimum=0),
    ),
    "baselines": Schema(
        (
            QUESTIONNAIRE,
            Column("language", "string", "language of its statements"),
            Column(
                "constants",
                "label",
                "faithful: 0.38 and 2.41 are added on the compass; corrected: 3/8 and 47/19.5. The "
                "same on linear scales",
                labels=ROUNDED,
            ),
            Column("baseline", "label", "simulated respondent", labels=BASELINES),
            *(AXIS, UNIT),
            Column("value", "float64", "coordinate; of random answers the mean, exact"),
            Column("sd", "float64", "of random answers the standard deviation, exact; else 0"),
            Column("low", "float64", "of random answers mean - 1.96 sd; else the value"),
            Column("high", "float64", "and mean + 1.96 sd"),
            MOVING,
        ),
        ("questionnaire", "constants", "baseline", "axis"),
    ),
    "items": Schema.keyed(
        (*PLACE, STATEMENT),
        *ESTIMATE,
        *(
            Column(
                f"share_{option.replace(' ', '_')}",
                "float64",
                f"of the responses (prompts, seeds, trainings): {option}",
                **SHARE,
            )
            for option in OPTIONS
        ),
        Column("share_missing", "float64", "and those that are none", **SHARE),
    ),
    "questions": Schema.keyed(
        (
            *(MODEL, *STATE, QUESTIONNAIRE, STATEMENT),
            Column("frame", "string", "prompt"),
            Column("form", "string", "plain: as it stands; negated: that it is not so"),
        ),
        Column("log_odds_nats", "float64", "log-odds of agreeing, mean over trainings"),
    ),
    "shifts": Schema.keyed(
        (
            *PLACE,
            Column(
                "contrast",
                "label",
                "minus the model itself; minus the control corpus; texts from 2017 minus those "
                "before; minus the corpus that it is compared with; how much further it is from "
                "that with texts from 2017 than with those before",
                labels=CONTRASTS,
            ),
            Column("baseline", "string", "corpus, or period, that is taken off; empty: the model"),
            AXIS,
        ),
        *(UNIT, *ESTIMATE),
        Column("seed_sd", "float64", "SD of the shift over its own trainings", nullable=True),
        Column("statements", "int64", "clusters of statements that move the axis", minimum=1),
        Column("steps", "float64", "mean number of steps of the trainings"),
        Column("baseline_steps", "float64", "and on the other side"),
    ),
    "magnitudes": Schema.keyed(
        (
            Column("model", "string", "whose trainings; empty: the mean of all models themselves"),
            Column("domain", "string", "of the corpora, as `news`; empty: without training"),
            QUESTIONNAIRE,
            READING,
            AXIS,
        ),
        UNIT,
        Column("value", "float64", "mean distance from the middle, or of shifts from 0", minimum=0),
        Column("sd", "float64", "over models or corpora", nullable=True),
        Column("n", "int64", "of them", minimum=1),
        Column("chance", "float64", "value of who answers at random; null: a shift", nullable=True),
    ),
    "stability": Schema.keyed(
        (
            *PLACE,
            Column(
                "comparison",
                "label",
                "share of statements with stances on the same side: in two prompts, in a template "
                "with and without a forced-choice suffix, as paraphrased, in two orders of the "
                "options, in two samples. On the other side, as they should be: denied, and its "
                "opposite",
                labels=COMPARISONS,
            ),
        ),
        *ESTIMATE,
        Column("chance", "float64", "that share if the two had nothing to do with each other"),
        Column("pairs", "int64", "of prompts, orders or samples that were compared", minimum=1),
    ),
    "answered": Schema.keyed(
        (*PLACE, PROMPT),
        *ESTIMATE,
        Column("answers", "int64", "responses in all", minimum=1),
        Column("refused", "int64", "of them refused", minimum=0),
        Column("unclear", "int64", "in no option, or not sure enough", minimum=0),
        Column(
            "unlisted",
            "int64",
            "of mask: without a word of either list among the ten; `faithful` takes them for "
            "disagreeing",
            minimum=0,
        ),
    ),
}
PLANTED = "planted"  # config of the outputs: a world's own texts
LEVELS = ("all", "group", "source")  # what texts are taken together by
TASK = Column("task", "string", "config of `downstream`; planted: a world's own texts")
CASE = (MODEL, TASK, Column("reading", "label", "see Readings", labels=ROUNDED))
PERIOD = Column(
    "period", "label", "texts of the corpus: all, before, from 2017-01-20", labels=PERIODS
)
TRAINED_ON = (
    Column("corpus", "string", "corpus of the continued pretraining; empty: the model itself"),
    *(PERIOD, TEXTS_SHARE),
)
GROUP = (
    Column("level", "label", "what texts are taken together by", labels=LEVELS),
    Column("group", "string", "name of the group or source; all: every text"),
)
METRIC = Column("metric", "string", "accuracy, balanced accuracy, F1, macro F1, precision, recall")
FAMILY = Column("family", "int64", "tests adjusted together: all of model, task and reading")
MEASURED = (
    *ESTIMATE,
    Column("runs", "int64", "trainings of the classifier, all seeds", minimum=1),
    Column("sd_runs", "float64", "SD over these; null: one alone, or not finite", nullable=True),
    FAMILY,
)
FAIRNESS = {
    "overall": Schema.keyed((*CASE, *TRAINED_ON, METRIC), *MEASURED),
    "groups": Schema.keyed(
        (*CASE, *TRAINED_ON, *GROUP, METRIC),
        *MEASURED,
        Column("contrast", "float64", "value minus that of all texts", nullable=True),
        Column("contrast_low", "float64", "lower end of its interval", nullable=True),
        Column("contrast_high", "float64", "upper end of its interval", nullable=True),
        Column("published", "float64", "of the paper's RoBERTa (Table 12); else null", **P),
    ),
    "disagreements": Schema.keyed(
        (*(MODEL, TASK, PERIOD, TEXTS_SHARE), Column("id", "string", "text, as in `downstream`")),
        Column("positive", "bool", "whether it is of the positive class"),
        Column("left", "float64", "share of the left's classifiers that call it so", **SHARE),
        Column("right", "float64", "share of the right's, on the other side of one half", **SHARE),
        Column("base_model", "float64", "share of those of the model itself", **P),
        Column("corpora", "strings", "the left's and the right's"),
        Column(
            "positive_rates", "floats", "share of the classifiers of each of them that call it so"
        ),
    ),
    "differences": Schema.keyed(
        (
            *CASE,
            Column("corpus", "string", "corpus of the one that the other is taken from"),
            Column("baseline", "string", "corpus of the other; empty: the model itself"),
            *(PERIOD, TEXTS_SHARE, *GROUP, METRIC),
        ),
        *MEASURED,
        Column("steps", "float64", "mean steps of the further pretraining of the one", minimum=0),
        Column("baseline_steps", "float64", "of the other; 0: the model itself", minimum=0),
    ),
}
WHERE = (
    *(MODEL, TASK),
    Column("reading", "label", "see Readings", labels=ROUNDED),
    Column("period", "label", "texts of the corpora: all, before, from 2017", labels=PERIODS),
    Column("share", "float64", "part of these texts", **SHARE),
)
ENSEMBLE = {
    "scores": Schema.keyed(
        (
            *WHERE,
            Column("ensemble", "string", "what is judged; see Ensembles"),
            Column("vote", "string", "hard, mean probability; empty: single classifiers"),
            METRIC,
        ),
        *ESTIMATE,
        Column("size", "int64", "voters of each", minimum=1),
        Column("ensembles", "int64", "of how many this is the mean", minimum=1),
        Column("sd", "float64", "SD over them; null: one alone", nullable=True),
    ),
    "differences": Schema.keyed(
        (
            *WHERE,
            Column("baseline", "string", "what is taken from the partisan ensemble"),
            Column("vote", "string", "of the partisan ensemble, and of the other if it votes"),
            METRIC,
        ),
        *ESTIMATE,
        Column("size", "int64", "voters of the partisan ensemble", minimum=2),
        Column("baseline_size", "int64", "voters of each of the others", minimum=1),
        FAMILY,
    ),
}
