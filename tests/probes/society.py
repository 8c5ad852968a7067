"""Lists of stereotypes without a model: groups, words and what is planted, written as files."""

from typing import NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS, EMOTIONS
from plumbline.probes.core.run_analysis import Inputs

CATEGORIES = {"age": 12, "country": 30, "profession": 40}
TEMPLATES = ("why are {group} so", "how come {group} are so")
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
    words = [f"w{i:03d}" for i in range(WORDS)]
    carries = rng.random((WORDS, len(AFFECTS))) < 0.15
    mine = np.argsort(rng.random((len(groups), WORDS)), axis=1)[:, :own]
    logodds = np.zeros((len(groups), WORDS))
    np.put_along_axis(logodds, mine, effect, axis=1)
    logodds += emotion * carries[:, np.arange(len(groups)) % len(EMOTIONS)].T
    inputs = Inputs(
        models, {name: folder / name for name in ("stereotypes", "emotions")}, folder / "data"
    )
    said = [
        {
            "category": c,
            "group": g,
            "language": "en",
            "template": TEMPLATES[i % 2],
            "query": TEMPLATES[i % 2].replace("{group}", g),
            "attribute": words[w].upper() if i % 3 else f"{words[w]} with children",
            "single_word": bool(i % 3),
            "flags": ["multi_word"] * (i % 3 == 0) + ["trend"] * (i % 7 == 6),
        }
        for row, (c, g) in enumerate(groups)
        for i, w in enumerate(mine[row].tolist())
    ]
    attributes = pl.DataFrame(said)
    for name in inputs.datasets.values():
        name.mkdir(parents=True)
    attributes.write_parquet(folder / "stereotypes/en.parquet")
    attributes.head(0).write_parquet(folder / "stereotypes/rejects.parquet")
    flags = {name: carries[:100, a] for a, name in enumerate(AFFECTS)}
    lexicon = pl.DataFrame({"word": words[:100], "english": words[:100]} | flags)
    lexicon.write_parquet(folder / "emotions/en.parquet")
    frequency = rng.normal(0, 1, WORDS)
    for model in models:
        taste = rng.normal(0, noise, logodds.shape)
        _write(inputs, model, groups, words, frequency, logodds + taste, rng)
        planted = {
            "group": np.repeat([g for _, g in groups], WORDS),
            "word": words * len(groups),
            "log_odds_nats": logodds.ravel(),
        }
        inputs.weights(model).mkdir(parents=True)
        pl.DataFrame(planted).write_parquet(inputs.weights(model) / "planted.parquet")
    return Society(inputs, attributes, logodds, groups, words)


def _write(inputs, model, groups, words, frequency, taste, rng):
    prior = frequency - np.logaddexp.reduce(frequency)
    rows = []
    for row, (category, group) in enumerate(groups):
        for template in TEMPLATES:
            scores = frequency + taste[row] + rng.normal(0, 0.1, WORDS)
            scores -= np.logaddexp.reduce(scores)
            order = np.argsort(-scores)[:TOP]
            rows.append(
                pl.DataFrame(
                    {
                        "token": [words[w] for w in order],
                        "word": [words[w] for w in order],
                        "starts_word": [True] * TOP,
                        "rank": np.arange(1, TOP + 1, dtype=np.int32),
                        "logprob_nats": scores[order],
                        "logprob_top_nats": scores[order] - np.logaddexp.reduce(scores[order]),
                        "prior_nats": prior[order],
                        "prior_one_nats": prior[order],
                        "prior_released_nats": np.full(TOP, -5.0),
                    }
                ).with_columns(
                    category=pl.lit(category),
                    group=pl.lit(group),
                    template=pl.lit(template),
                    query=pl.lit(template.replace("{group}", group)),
                )
            )
    folder = inputs.outputs("completions", model)
    (folder / "en").mkdir(parents=True)
    half = len(rows) // 2
    pl.concat(rows[:half]).write_parquet(folder / "en/00000.parquet")
    pl.concat(rows[half:]).write_parquet(folder / "en/00001.parquet")
    (folder / "vocabulary").mkdir()
    spelled = {"attribute": words, "pieces": [1 if i < 120 else 2 for i in range(WORDS)]}
    pl.DataFrame(spelled).write_parquet(folder / "vocabulary/en.parquet")
