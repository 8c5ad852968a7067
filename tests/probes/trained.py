"""Lists of stereotypes before and after trainings, without a model, with shifts that are planted.

Two categories of groups. Words w00 ... carry affects as the lexicon says; the first are positive,
the next negative. A training moves all scores a little, as any training does, and on some corpora
those of positive and negative words of some groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from calibration.stereotypes import completions as made
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs

CATEGORIES = {"liked": 14, "other": 26}
TEMPLATES = made.TEMPLATES[:2]
WORDS, GOOD, BAD, TOP = 90, 12, 12, 40
NAMES = made.names(WORDS)


class Trained(NamedTuple):
    """What is in the files."""

    inputs: Inputs
    groups: list  # (category, group)
    base: np.ndarray  # (groups, templates, words) scores


def carries():
    """Return which words carry which affects, (words, affects); the last ten words are unknown."""
    rng = np.random.default_rng(4)
    found = rng.random((WORDS, len(AFFECTS))) < 0.2
    found[:, AFFECTS.index("positive")] = np.arange(WORDS) < GOOD
    found[:, AFFECTS.index("negative")] = (np.arange(WORDS) >= GOOD) & (
        np.arange(WORDS) < GOOD + BAD
    )
    return found


def trained(
    folder, seed, effects, shares=(0.5, 1.0), seeds=(1, 2), drift=0.5, change=None, articles=None
):
    """Write a model's outputs before and after trainings.

    Parameters
    ----------
    effects
        By corpus: how much the positive words of liked groups rise, and their negative ones fall,
        at the whole share; half of it at half of the share.
    articles
        By corpus: how many it has; 100 of those not named. A step is of eight.
    change
        Called with corpus and scores, in place of drift and effect.
    """
    print("seed", seed)
    rng = np.random.default_rng(seed)
    groups = [(c, f"{c} people {i:02d}") for c, n in CATEGORIES.items() for i in range(n)]
    base = rng.normal(0, 1.5, (len(groups), 1, WORDS)) + rng.normal(0, 0.3, (len(groups), 2, WORDS))
    inputs = made.datasets(folder)
    attributes = [
        [(0, NAMES[(7 * i + j) % WORDS], []) for j in range(3)] for i in range(len(groups))
    ]
    made.write_attributes(inputs, groups, attributes)
    made.write_lexicon(inputs, carries()[: WORDS - 10])
    write(inputs.outputs("completions", "m") / "en/00000.parquet", lists(groups, base))
    liked = np.array([category == "liked" for category, _ in groups])[:, None, None]
    colour = np.zeros(WORDS)
    colour[:GOOD], colour[GOOD : GOOD + BAD] = 1, -1
    for corpus, effect in effects.items():
        for share in shares:
            for number in seeds:
                if change is None:
                    after = base + rng.normal(0, drift, (len(groups), 1, WORDS))
                    after = after + effect * share * liked * colour
                else:
                    after = change(corpus, base)
                n = round(share * (articles or {}).get(corpus, 100))
                table = told(lists(groups, after), corpus, share, number, n)
                name = f"{corpus}-{share:g}-{number}.parquet"
                write(inputs.outputs("after_training", "m") / "en" / name, table)
    return Trained(inputs, groups, base)


def lists(groups, scores, top=TOP):
    return made.table(groups, scores, np.zeros(WORDS), top)


def told(table, corpus, share, number, articles):
    """Put what a training was before its answers."""
    whole = {"tuning_seed": number, "articles": articles, "steps": -(-articles // 8)}
    return table.with_columns(
        corpus=pl.lit(corpus),
        share=pl.lit(share),
        **{name: pl.lit(value, dtype=pl.Int32) for name, value in whole.items()},
    )


def write(path, table):
    path.parent.mkdir(parents=True, exist_ok=True)
    table.write_parquet(path)
