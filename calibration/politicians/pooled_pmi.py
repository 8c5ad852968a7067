"""Analysis ``pmi`` for a group of models, on simulated lists about the same people.

The effects of words and origins are similar in all models but not equal, and each name has its own
effects on words in all models. The lists of a name in several models are therefore dependent, so a
pooled count has fewer independent lists than it counts. The true value of an interval is the PMI of
the expected counts of all models. For simplicity, all models have the same words.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field

from calibration.politicians import lists
from calibration.politicians.pmi import by_reading, known
from calibration.truth import Drawn, Generator, Tables, Truth
from plumbline.probes.politicians.words.word_counts import FEMALE

if TYPE_CHECKING:
    import polars as pl


class Shape(lists.ListsShape):
    """Shape of the lists that several models generate about the same people."""

    models: int = Field(3, ge=2, description="number of models in the group")
    apart: float = Field(0.5, ge=0, description="SD of log-frequencies between models, nats")
    own: float = Field(
        1.0, ge=0, description="SD of the effects of single names, equal in all models, nats"
    )


SHAPES = {
    "default run's people, 3 models": Shape(men=99, women=88, others=6, words=90),
    "real run's, 1 name in 40, 3 models": Shape(men=400, women=90),
    "lists of 15 and 20, many bearers": Shape(men=400, women=100, short=0.8, zipf=1.6),
}
TRUTHS = {
    # single names have effects in all models
    "no word goes with a gender": Truth("null"),
    # log-odds, equal in all models
    "words planted": Truth("planted", effects=(0.4, 0.8, 1.4)),
    # words associated with women in one model are associated with men in another
    "opposite models": Truth("decoy", effects=(0.8,), opposite=True),
    # models agree on the words for women's names, but not on those for men's
    "women alike": Truth("decoy", agree=False),
}
PARAMS: dict[str, Any] = {"groups": {"all": "all"}, "n_bootstrap": 200, "n_permutations": 999}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    parameters = [_models(shape, truth, pos) for pos in range(2)]
    drawn = lists.names(shape, parameters[0][0], rng)
    models = tuple(f"m{k}" for k in range(shape.models))
    inputs = lists.write_people(folder, drawn, models)
    size = (2, len(drawn.gender), shape.words)
    shared = rng.normal(0, shape.own, size)
    agree = truth.get("agree", True) | (drawn.gender == FEMALE)[:, None]
    for k, model in enumerate(models):
        by_name = np.where(agree, shared, rng.normal(0, shape.own, size))
        utilities = [
            lists.utilities(by_model[k], drawn.origin, drawn.side()) + by_name[pos]
            for pos, by_model in enumerate(parameters)
        ]
        lists.write_lists(inputs, model, drawn, utilities, shape.length, rng)
    return Drawn(inputs, _known(shape, truth))


def _models(shape: Shape, truth: Truth, pos: int) -> list[lists.Population]:
    """Return the parameters of each model's lists.

    Two opposite models differ only in this, so the pool associates no word with a gender.
    """
    base = lists.population(shape, truth, pos)
    result = []
    for k in range(shape.models):
        opposite = truth.get("opposite", False)
        rng = np.random.default_rng([9, pos, k // 2 if opposite else k])
        sign = ((1.0, -1.0)[k % 2] if k < shape.models // 2 * 2 else 0.0) if opposite else 1.0
        frequency = base.frequency + rng.normal(0, shape.apart, shape.words)
        origin = base.origin + rng.normal(0, shape.apart * shape.taste, base.origin.shape)
        result.append(base._replace(frequency=frequency, origin=origin, effect=sign * base.effect))
    return result


@lru_cache(maxsize=8)
def _known(shape: Shape, truth: Truth) -> pl.DataFrame:
    """Return the true values for each word and gender (see :func:`..pmi.known`)."""
    chances = []
    for pos in range(2):
        rng = np.random.default_rng([10, pos])
        models = _models(shape, truth, pos)
        chance = sum(lists.expected_of(part, shape, rng, shape.own) for part in models)
        effect = lists.population(shape, truth, pos).effect
        effect = effect * 0.0 if truth.get("opposite") else effect
        chances.append((effect, np.asarray(chance)))
    return known(shape, chances)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test, one per word and gender, by variant."""
    return by_reading(tables["pooled"], sample, "pooled_pmi", "group")
