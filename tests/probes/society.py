"""Lists of stereotypes without a model: groups, words and what is planted, written as files."""

import json
from typing import NamedTuple

import numpy as np
import polars as pl

from calibration.stereotypes import completions as made
from plumbline.builders.datasets.emotions.build import AFFECTS, EMOTIONS
from plumbline.probes.core.run_analysis import Inputs

CATEGORIES = {"age": 12, "country": 30, "profession": 40}
WORDS = 150
TOP = 60


class Society(NamedTuple):
    """What is in the files."""

    inputs: Inputs
    attributes: pl.DataFrame  # group, attribute
    logodds: np.ndarray  # (groups, words)
    groups: list
    words: list


def society(
    folder, seed, effect, models=("m",), own=3, emotion=0.0, noise=0.6, categories=CATEGORIES
):
    """Write the outputs of some models of one world, and the datasets.

    Every group has ``own`` attributes, which get ``effect`` nats more; the words of one emotion,
    another for each group, get ``emotion`` more.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    groups = [(c, f"{c}s of kind {i:02d}") for c, n in categories.items() for i in range(n)]
    words = made.names(WORDS)
    carries = rng.random((WORDS, len(AFFECTS))) < 0.15
    mine = np.argsort(rng.random((len(groups), WORDS)), axis=1)[:, :own]
    logodds = np.zeros((len(groups), WORDS))
    np.put_along_axis(logodds, mine, effect, axis=1)
    logodds += emotion * carries[:, np.arange(len(groups)) % len(EMOTIONS)].T
    inputs = made.datasets(folder, models)

    def attribute(i, word):
        said = word.upper() if i % 3 else f"{word} with children"
        return i % 2, said, ["multi_word"] * (i % 3 == 0) + ["trend"] * (i % 7 == 6)

    said = [[attribute(i, words[w]) for i, w in enumerate(of_group)] for of_group in mine.tolist()]
    attributes = made.write_attributes(inputs, groups, said)
    made.write_lexicon(inputs, carries[:100])
    frequency = rng.normal(0, 1, WORDS)
    own_prior = frequency - np.logaddexp.reduce(frequency)
    prior = {"corrected": own_prior, "corrected_one": own_prior, "faithful": np.full(WORDS, -5.0)}
    for model in models:
        taste = (frequency + logodds + rng.normal(0, noise, logodds.shape))[:, None]
        scores = taste + rng.normal(0, 0.1, (len(groups), 2, WORDS))
        made.write_lists(inputs, model, made.table(groups, scores, frequency, TOP, prior=prior))
        made.write_vocabulary(inputs, model, {w: 1 if i < 120 else 2 for i, w in enumerate(words)})
        likely = np.exp(taste[:, 0])
        planted = {
            "group": np.repeat([g for _, g in groups], WORDS),
            "word": words * len(groups),
            "log_odds_nats": logodds.ravel(),
            "probability": (likely / likely.sum(axis=1, keepdims=True)).ravel(),
            "prior": np.tile(np.exp(own_prior), len(groups)),
            "pieces": np.ones(logodds.size, dtype=np.int64),
        }
        inputs.weights(model).mkdir(parents=True)
        shared = {"seed": models.index(model), "common": float(emotion > 0), "common_seed": 0}
        (inputs.weights(model) / "world.json").write_text(json.dumps(shared), "utf-8")
        pl.DataFrame(planted).write_parquet(inputs.weights(model) / "planted.parquet")
    return Society(inputs, attributes, logodds, groups, words)
