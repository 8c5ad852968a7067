"""Analysis ``ensemble`` on simulated classifiers.

Two voters that are split follow the surer one, which is right as often as the other here: a vote
of two is as good as the mean of its voters. What is planted is that one corpus makes better
classifiers, so that a vote over corpora is better than one of the other corpus alone, and worse
than one of this, by half of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
from pydantic import Field
from scipy.special import expit

from calibration.leaning import classified
from calibration.leaning.classified import ClassifiersShape
from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.probes.leaning.ensemble import ITSELF, MEAN, ONE, ONES

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    Tables = dict[str, pl.DataFrame]

CORPORA = ("news-left", "news-right", "social-left")
CONTROL = "social-center"


class EnsembleShape(ClassifiersShape):
    """Shape of what classifiers of a task did, and how many of them vote."""

    voters: int = Field(2, ge=2, le=3, description="partisan corpora")


Shape = EnsembleShape
SHAPES = {
    "2 voters, 3 trainings": Shape(seeds=2),
    "2 voters, 5 trainings": Shape(pretraining=5),
    "3 voters, 10 trainings": Shape(task="hate-en", words=100, each=1, pretraining=10, voters=3),
}
TRUTHS = {
    "trainings": Truth(NULL, "a training's own ability and threshold alone"),
    "texts": Truth(NULL, "luck alone", {"luck": True}),
    "corpus, weak": Truth(PLANTED, "log-odds that one corpus adds", {"effect": 0.5}),
    "corpus": Truth(PLANTED, "log-odds that one corpus adds", {"effect": 1.5}),
    "corpus, strong": Truth(PLANTED, "log-odds that one corpus adds", {"effect": 3.0}),
    "variance": Truth(DECOY, "trainings on one corpus vary twice as much", {"spread": 2.0}),
    "groups": Truth(DECOY, "a group is harder for all", {"harder": -1.0}),
}
PARAMS: dict[str, Any] = {
    "positive": {"hate": "hate", "planted": "hate"},
    "partisan": list(CORPORA),
    "max_ensembles": 20,
    "n_bootstrap": 200,
}
FAMILY = ("model", "task", "reading")


class Known(NamedTuple):
    """What is true of a replicate."""

    shape: Shape
    truth: Truth


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    told = truth.settings
    own = shape
    if "luck" in told:
        still = {"spread": 0.0, "threshold": 0.0, "by_text": 0.0, "hard": 0.0}
        own = shape.model_copy(update=still)
    spread = {"other": own.spread, CORPORA[1]: own.spread * told.get("spread", 1.0)}

    def accuracy(corpus: str, group: str) -> float:
        harder = told.get("harder", 0.0) * (group == classified.GROUPS[0])
        return float(expit(own.ability + harder + told.get("effect", 0.0) * (corpus == CORPORA[0])))

    corpora = (*CORPORA[: own.voters], CONTROL)
    found = classified.drawn(folder, own, accuracy, rng, corpora, spread)
    return Drawn(found.inputs, Known(own, truth))


def outcomes(tables: Tables, drawn: Drawn) -> Tables:
    """Return the rows of each test: against votes of one corpus, and against single classifiers.

    Against the model itself there is a true null where luck alone differs. With three voters the
    mean of the members is no null: any vote is better.
    """
    known: Known = drawn.known
    size, kind = known.shape.voters, known.truth.kind
    step = known.truth.settings.get("effect", 0.0) / size
    others = {ONE.format(name): step for name in CORPORA[1:size]}
    one = pl.col("baseline").is_in([*others, ONE.format(CORPORA[0]), ONES])
    planted = others | {ONE.format(CORPORA[0]): step - known.truth.settings.get("effect", 0.0)}
    told = pl.col("baseline").replace_strict(planted, default=0.0, return_dtype=pl.Float64)
    table = tables["differences"].with_columns(effect=told, reading=pl.lit("corrected"))
    groups = {"one corpus": table.filter(one & (pl.col("baseline_size") == size))}
    if "luck" in known.truth.settings:
        groups["the model itself"] = table.filter(baseline=ITSELF, baseline_size=size)
    if size == 2:
        groups["members, mean"] = table.filter(baseline=MEAN)
    found = {}
    for name, rows in groups.items():
        corrected = rows.partition_by("metric", as_dict=True)
        for (metric,), own in corrected.items():
            if own["p"].count():
                found[f"p, {name}, {metric}"] = outcome(
                    own,
                    effect=pl.col("effect"),
                    target=0.0 if kind != PLANTED else pl.lit(None, pl.Float64),
                    family=FAMILY,
                )
    return found
