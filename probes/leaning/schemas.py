"""Columns of the tables of the analysis ``compass``."""

from __future__ import annotations

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.scale import UNITS
from plumbline.probes.leaning.scoring import OPTIONS
from plumbline.probes.stats.estimate import ESTIMATE
from plumbline.probes.worlds.recovery import RECOVERY

PERIODS = ("all", "before", "from")  # as in probes/checkpoints.py, without its models
ASKED = ("filled", "written", "chosen")
READINGS = ("faithful", "paper", "corrected", "continuous", "named", "likeliest", "expected")
CONTRASTS = ("itself", "control", "period", "corpora")
BASELINES = ("random answers", *(f"always {option}" for option in OPTIONS))
STABLE = ("prompts", "forces", "paraphrases", "negated", "opposites", "order", "seeds")
ROUNDED = ("faithful", "corrected")

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
    "shifts": SHIFTS,
    "stability": STABILITY,
    "answered": ANSWERED,
    "recovery": RECOVERY,
}
