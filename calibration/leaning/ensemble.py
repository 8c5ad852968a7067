"""Analysis ``ensemble`` on simulated classifiers.

If two voters disagree, the vote follows the more certain one. In the simulation, the more certain
voter is right as often as the other, so a vote of two is as accurate as its members are on average.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field
from scipy.special import expit

from calibration.leaning import classified
from calibration.leaning.classified import ClassifiersShape
from calibration.truth import Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.probes.leaning.ensemble import ITSELF, MEAN, ONE, ONES

CORPORA = ("news-left", "news-right", "social-left")
CONTROL = "social-center"


class Shape(ClassifiersShape):
    """Shape of the outputs of a task's classifiers, and the number of voters."""

    voters: int = Field(2, ge=2, le=3, description="partisan corpora")


SHAPES = {
    "2 voters, 3 trainings": Shape(seeds=2),
    "2 voters, 5 trainings": Shape(pretraining=5),
    "3 voters, 10 trainings": Shape(task="hate-en", words=100, each=1, pretraining=10, voters=3),
}
LUCK = {"spread": 0.0, "threshold": 0.0, "by_text": 0.0, "hard": 0.0}
TRUTHS = {
    # training runs differ in ability and threshold by chance
    "trainings": Truth("null"),
    # classifiers differ by chance alone
    "texts": Truth("null", luck=True, shape=LUCK),
    # training runs on one corpus vary twice as much
    "variance": Truth("decoy", spread=2.0),
    # one group is harder for all classifiers
    "groups": Truth("decoy", harder=-1.0),
}
PARAMS: dict[str, Any] = {
    "positive": {"hate": "hate", "planted": "hate"},
    "partisan": list(CORPORA),
    "max_ensembles": 20,
    "n_bootstrap": 200,
}
NO_DIFFERENCE: dict[str, Any] = {"effect": 0.0, "target": 0.0, "family": ("model", "task")}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""

    def accuracy(_: str, group: str) -> float:
        harder = truth.get("harder", 0.0) * (group == classified.GROUPS[0])
        return float(expit(shape.ability + harder))

    corpora = (*CORPORA[: shape.voters], CONTROL)
    spread = {CORPORA[1]: shape.spread * truth.get("spread", 1.0)}
    answers = classified.write(folder, shape, accuracy, rng, corpora, spread=spread)
    return Drawn(answers.inputs, None, truth, shape)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, against votes within a corpus and against single classifiers.

    A vote is as good as the pretrained model only if classifiers differ by chance alone. A vote of
    three is always better than the mean of its members.
    """
    voters, table = sample.shape.voters, tables["differences"]
    names = [*(ONE.format(name) for name in CORPORA[:voters]), ONES]
    groups = {"one corpus": table.filter(pl.col("baseline").is_in(names), baseline_size=voters)}
    if sample.truth.get("luck"):
        groups["the model itself"] = table.filter(baseline=ITSELF, baseline_size=voters)
    if voters == 2:
        groups["members, mean"] = table.filter(baseline=MEAN)
    result: Tables = {}
    for name, rows in groups.items():
        several = rows.filter(pl.col("p").count().over("metric") > 0)
        result |= outcomes_by(several, f"p, {name}, {{metric}}", **NO_DIFFERENCE)
    return result
