"""Analysis ``latent`` on simulated lists.

The true value of an estimate is defined as the mean of the same fits to expected counts;
unpenalised values are not considered. Simplifications: there are two pairs of weights, 50 steps,
few words and one part of speech. The planted effects differ between sentiments and words.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from calibration.politicians import lists, meanings
from calibration.truth import Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.core.params import section
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians import latent, latent_model
from plumbline.probes.politicians.words import word_counts

Shape = meanings.MeaningsShape
SHAPES = {
    "4 men to a woman, 200 names": Shape(men=160, women=40, words=40, length=10, shared=0),
    "as many women, 200 names": Shape(men=100, women=100, words=40, length=10, shared=0),
}
TRUTHS = {
    # words differ only in frequency and origin
    "no word goes with a gender": Truth("null"),
    # log-odds of single words
    "words planted": Truth("planted", words=(0.6, 1.2, 2.4)),
    # log-odds of the words of a sentiment
    "sentiments planted": Truth("planted", effects=(0.8,)),
    # the genders differ in origin, on which the words depend
    "origin": Truth("decoy", origin=0.5),
}
PARAMS: dict[str, Any] = {
    "l1": [1e-4],
    "posterior": [1e-2, 1.0],
    "steps": 50,
    "seeds": [1],
    "n_bootstrap": 99,
}

GENDER = ("male", "female")
SAMPLES = 400  # number of samples of names from which expected counts are computed
PARTS = {"latent": ["word", "sentiment", "gender"], "words": ["word", "gender"]}
PARTS |= {"shares": ["sentiment", "gender"], "tilt": []}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate; all replicates have the same words."""
    return Drawn(meanings.write(folder, shape, _cells(truth, shape), rng), _known(shape, truth))


def _cells(truth: Truth, shape: Shape) -> list[meanings.Cell]:
    fixed = np.random.default_rng([9, shape.words])
    return meanings.cells(shape, truth, fixed)[:1]


@lru_cache(maxsize=8)
def _known(shape: Shape, truth: Truth) -> Tables:
    """Return the true values of each table."""
    (cell,) = _cells(truth, shape)
    rng = np.random.default_rng([10, shape.words])
    counts = meanings.counts(cell, shape, SAMPLES, rng).mean(axis=0)
    if truth.kind == "null":  # exactly
        people = np.array([shape.men, shape.women])
        counts = counts.sum(axis=1, keepdims=True) * people / people.sum()
    params = section("analysis.latent", latent.Params).model_copy(update=PARAMS)
    seen = counts + params.smoothing
    fits = latent_model.fit(
        seen[None],
        cell.q,
        *latent_model.grid(params.l1, params.posterior),
        latent_model.Schedule(params.steps, params.learning_rate),
    )
    true = latent_model.average(fits, len(fits.phi))
    words = lists.words_of(cell.pos, shape.words)
    axes = {"word": words, "sentiment": list(SENTIMENTS), "gender": GENDER}
    odds = np.log(true.sentiments[0, 0] / true.sentiments[0, 1])
    values = {
        "latent": true.eta[0].transpose(2, 0, 1),
        "words": true.words[0].T,
        "shares": true.sentiments[0],
        "tilt": np.array(odds[1] - odds[0]),
    }
    return {
        name: word_counts.rows_of(
            {key: axes[key] for key in keys} or {"word": [""]}, [np.atleast_1d(values[name])]
        ).select(*keys, target="value")
        for name, keys in PARTS.items()
    }


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of all intervals."""
    result: Tables = {}
    for name, keys in PARTS.items():
        how = {"on": keys} if keys else {"how": "cross"}
        table = tables[name].join(sample.known[name], **how)
        result |= outcomes_by(table, name, effect=0.0, target="target", p="")
    return result
