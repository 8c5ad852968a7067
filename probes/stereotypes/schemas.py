"""What the study's analyses share, and the columns of the tables of ``shift``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.stats.estimate import ESTIMATE, Bootstrap
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.training_effects import EMOTION, FATES, GROUP, KEPT, RECALL

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

EVERY = "all"  # categories together
LEVEL = 0.05  # of p_bh
FAITHFUL, CORRECTED = "rsa faithful", "rsa corrected"
MEASURES = (EMOTION, RECALL, KEPT, FAITHFUL, CORRECTED)


class GroupBootstrap(Bootstrap):
    """Tables whose intervals resample groups, or words."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")

    def weights(self, units: Sequence[str]) -> NDArray[np.float32]:
        """Return how often each group or word is in each replicate, (units, replicates)."""
        return poisson(bits(keys(units), self.bootstrap, self.seed))


WHERE = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("language", "string", "language of the lists"),
    Column("ranking", "label", "what lists are ranked by", labels=typicality.READINGS),
    Column("corpus", "string", "outlet, or control, that the model was trained on"),
    Column("share", "float64", "part of its articles", minimum=0, maximum=1),
)
WHAT = (
    Column("category", "string", f"category of social groups, or {EVERY}"),
    Column("measure", "label", "what is compared with the model before", labels=MEASURES),
    Column("outcome", "string", "affect; or config of `stereotypes` and k; or words followed"),
)
SIZES = (
    Column("articles", "float64", "articles trained on, mean of the trainings", minimum=1),
    Column("steps", "float64", "steps of the training, mean of the trainings", minimum=1),
)
SPREAD = "standard deviation of it over seeds; null with one seed"

SHIFTS = Schema(
    columns=(
        *WHERE,
        *WHAT,
        Column("base", "float64", "mean before the training", nullable=True),
        *ESTIMATE,
        Column("seeds", "int64", "trainings that value is the mean of", minimum=1),
        *SIZES,
        Column("spread", "float64", SPREAD, nullable=True),
        Column(
            "difference",
            "float64",
            "value minus that of the control at the same share; what p is a test of",
            nullable=True,
        ),
        Column("low_difference", "float64", "lower end of its interval", nullable=True),
        Column("high_difference", "float64", "upper end of it", nullable=True),
        Column("spread_difference", "float64", SPREAD, nullable=True),
        Column(
            "least",
            "float64",
            "half the width of Student's interval of the difference over the seeds that both have; "
            "null with one seed",
            nullable=True,
        ),
        Column(
            "significant",
            "bool",
            f"p_bh is at most {LEVEL} and the difference further from 0 than `least`",
        ),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=0),
    ),
    key=("model", "language", "ranking", "corpus", "share", "category", "measure", "outcome"),
)
RUNS = Schema(
    columns=(
        *WHERE,
        Column("tuning_seed", "int32", "seed of the training"),
        Column("articles", "int32", "articles trained on", minimum=1),
        Column("steps", "int32", "steps of the training", minimum=1),
        *WHAT,
        Column("base", "float64", "mean before the training", nullable=True),
        Column("change", "float64", "mean after it, minus base", nullable=True),
    ),
    key=(*SHIFTS.key[:5], "tuning_seed", *SHIFTS.key[5:]),
)
GROUPS = Schema(
    columns=(
        *WHERE,
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group"),
        *WHAT[1:],
        Column("base", "float64", "before the training", nullable=True),
        Column("change", "float64", "mean over seeds of after minus before", nullable=True),
        Column("smallest", "float64", "of the changes of all seeds", nullable=True),
        Column("largest", "float64", "of them", nullable=True),
        Column("seeds", "int64", "trainings", minimum=1),
        Column("difference", "float64", "change minus that by the control", nullable=True),
    ),
    key=("model", "language", "ranking", "corpus", "share", *GROUP, "measure", "outcome"),
)
SEEDS = Schema(
    columns=(
        *WHERE,
        Column("category", "string", f"category of social groups, or {EVERY}"),
        *WHAT[2:],
        Column("seed", "int32", "seed of a training on the control"),
        Column("other_seed", "int32", "seed of another, in the place of its control"),
        Column("n", "int64", "groups", minimum=1),
        Column("difference", "float64", "change by the one minus that by the other", nullable=True),
        Column(
            "p", "float64", "of it, tested as corpora are: no corpus differs", minimum=0, maximum=1
        ),
    ),
    key=(*SHIFTS.key[:6], "outcome", "seed", "other_seed"),
)
ATTRIBUTES = Schema(
    columns=(
        *WHERE,
        *(Column(n, "string", d) for n, d in (("category", "category"), ("group", "social group"))),
        Column("query", "string", "the template with the group"),
        Column("word", "string", "the word, casefolded"),
        Column("fate", "label", "of the word among the followed ones", labels=FATES),
        Column("place_before", "int64", "rank before the training; null: not there", nullable=True),
        Column("place_after", "float64", "mean rank after it, where there", nullable=True),
        Column("seeds_with", "int64", "trainings after which it is there", minimum=0),
        Column("seeds", "int64", "trainings", minimum=1),
        Column("positive", "bool", "the lexicon calls it positive; null: not in it", nullable=True),
        Column("negative", "bool", "the lexicon calls it negative", nullable=True),
    ),
    key=("model", "language", "ranking", "corpus", "share", *GROUP, "query", "word"),
)
SCHEMAS = {
    "shifts": SHIFTS,
    "runs": RUNS,
    "groups": GROUPS,
    "attributes": ATTRIBUTES,
    "seeds": SEEDS,
}
