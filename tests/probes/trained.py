"""Lists of stereotypes before and after trainings, without a model, with shifts that are planted.

Two categories of groups. Words w00 ... carry affects as the lexicon says; the first are positive,
the next negative. A training moves all scores a little, as any training does, and on some corpora
those of positive and negative words of some groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs

CATEGORIES = {"liked": 14, "other": 26}
TEMPLATES = ("why are {group} so", "what makes {group} so")
WORDS, GOOD, BAD, TOP = 90, 12, 12, 40
NAMES = [f"w{i:02d}" for i in range(WORDS)]


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
    inputs = Inputs(
        ("m",), {name: folder / name for name in ("stereotypes", "emotions")}, folder / "data"
    )
    for name in inputs.datasets.values():
        name.mkdir(parents=True)
    same = {"language": "en", "template": TEMPLATES[0], "single_word": True, "flags": []}
    same |= {"source_row": 0}
    said = [
        same
        | {"category": category, "group": group, "attribute": NAMES[(7 * i + j) % WORDS]}
        | {"query": TEMPLATES[0].replace("{group}", group)}
        for i, (category, group) in enumerate(groups)
        for j in range(3)
    ]
    pl.DataFrame(said, schema_overrides={"flags": pl.List(pl.String)}).write_parquet(
        folder / "stereotypes/en.parquet"
    )
    flags = {name: carries()[: WORDS - 10, a] for a, name in enumerate(AFFECTS)}
    known = NAMES[: WORDS - 10]
    pl.DataFrame({"word": known, "english": known} | flags).write_parquet(
        folder / "emotions/en.parquet"
    )
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
    logprobs = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
    tables = []
    for (category, group), of_group in zip(groups, logprobs, strict=True):
        for template, own in zip(TEMPLATES, of_group, strict=True):
            order = np.argsort(-own)[:top]
            words = [NAMES[w] for w in order]
            columns = {"token": words, "word": words}
            columns |= {"starts_word": [True] * top, "rank": np.arange(1, top + 1, dtype=np.int32)}
            columns |= {"logprob_nats": own[order], "logprob_top_nats": own[order]}
            for prior in ("prior_nats", "prior_one_nats", "prior_released_nats"):
                columns[prior] = np.full(top, -4.0)
            tables.append(
                pl.DataFrame(columns).with_columns(
                    category=pl.lit(category),
                    group=pl.lit(group),
                    template=pl.lit(template),
                    query=pl.lit(template.replace("{group}", group)),
                )
            )
    return pl.concat(tables)


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
