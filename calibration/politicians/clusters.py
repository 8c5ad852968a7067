"""Analysis ``clusters`` on simulated hidden states of words.

States are normally distributed, with unequal variances along their axes. Some words are in the
lists of both genders. The true share of a cluster is the mean probability, given their states, that
its words belong to a gender. Simplifications: there are only adjectives, two numbers of clusters,
two k-means runs and one person per gender; each word deviates towards one gender; each effect has
its own language.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit

from calibration.truth import Array, Bools, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.words import word_counts

LANGUAGES = ("en", "es", "fr")
MODEL = "m"


class Shape(Params):
    """Shape of the words of a part of speech, and of their states."""

    men: int = Field(40, description="number of words that deviate towards men")
    women: int = Field(40, description="number of words that deviate towards women")
    width: int = Field(24, description="number of dimensions of a state")
    both: float = Field(0.6, description="share of words generated for either gender")
    decay: float = Field(0.5, description="SD of the nth axis is n to the power of -decay")


SHAPES = {
    "40 words of each gender, 24 dimensions": Shape(),
    "40 words of men, 20 of women, 100 dimensions": Shape(women=20, width=100),
}
TRUTHS = {
    # states are normally distributed and independent of gender
    "one cloud": Truth("null"),
    # distance between the means of the genders, in SDs of the first axis
    "genders apart": Truth("planted", apart=(1, 2, 3)),
    # two topics that are independent of gender; one has half the spread
    "topics apart": Truth("decoy", topics=4),
    # one cloud, with twice the spread for a tenth of the words
    "long tails": Truth("decoy", tails=2),
}
PARAMS: dict[str, Any] = {
    "clusters": [2, 3],
    "n_permutations": 999,
    "seeds": [1, 2],
    "n_simulations": 199,
    "n_bootstrap": 199,
}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    inputs = Inputs((MODEL,), {"politicians": folder / "people"}, folder)
    deviations, truths = [], []
    for language, gap in zip(LANGUAGES, truth.get("apart", (0.0,)), strict=False):
        women = np.arange(shape.men + shape.women) >= shape.men
        words = [f"adj{n:03d}" for n in range(len(women))]
        points = _states(truth, shape, women, gap, rng)
        deviation = rng.uniform(0.1, 1, len(women))
        for gender in (word_counts.MALE, word_counts.FEMALE):
            deviates = women == (gender == word_counts.FEMALE)
            codes = {"reading": "smoothed", "unit": "lemma", "pos": "ADJ"}
            value = np.where(deviates, deviation, -deviation)
            table = {"word": words, "form": words, "value": value}
            table |= {"model": MODEL, "language": language, "gender": GENDERS[gender]} | codes
            deviations.append(pl.DataFrame(table))
        distance = gap * (points[:, 1] - gap / 2) * 2 ** (2 * shape.decay)
        odds = distance + np.log(shape.women / shape.men)
        chance = expit(odds) if "apart" in truth.settings else np.full(len(odds), women.mean())
        row = {"word": words, "female": chance, "language": language, "apart": float(gap)}
        truths.append(pl.DataFrame(row))
        both = rng.random(len(women)) < shape.both  # words generated for either gender
        members = np.stack([both | ~women, both | women], axis=1)
        _write_lists(inputs, language, words, members)
        states = pl.DataFrame({"word": words, "state": points.tolist()})
        path = inputs.outputs("representations", MODEL) / language / "00000.parquet"
        states.write_parquet(path, mkdir=True)
    pl.concat(deviations).write_parquet(inputs.tables("pmi", MODEL) / "pmi.parquet", mkdir=True)
    return Drawn(inputs, pl.concat(truths), truth, shape)


def _write_lists(inputs: Inputs, language: str, words: list[str], members: Bools) -> None:
    """Write the lists of a man and a woman; ``members``, (words, 2), states who has each word."""
    genders = [word_counts.MALE, word_counts.FEMALE]
    people = {"qid": ["Q1", "Q2"], "name": ["Name 1", "Name 2"], "gender": genders}
    pl.DataFrame(people).write_parquet(
        inputs.datasets["politicians"] / f"{language}.parquet", mkdir=True
    )
    row, person = np.nonzero(members)
    spelled = pl.Series("word", words, dtype=pl.String).gather(row)
    lists = {"qid": np.array(people["qid"])[person], "word": spelled, "lemma": spelled}
    path = inputs.outputs("associations", MODEL) / language / "00000.parquet"
    pl.DataFrame(lists | {"pos": "ADJ", "frame": "bare"}).write_parquet(path, mkdir=True)


def _states(truth: Truth, shape: Shape, women: Bools, gap: float, rng: Generator) -> Array:
    """Draw the states, an array of shape (words, width)."""
    spread = np.arange(1, shape.width + 1) ** -shape.decay
    points = rng.normal(size=(len(women), shape.width))
    if "tails" in truth.settings:
        points *= np.where(rng.random((len(women), 1)) < 0.1, truth.settings["tails"], 1)
    if "topics" in truth.settings:
        topic = rng.random((len(women), 1)) < 0.5
        points *= np.where(topic, 0.5, 1)
        points[:, :1] += topic * truth.settings["topics"]
    points *= spread
    points[:, 1] += women * gap  # any axis but the widest
    return points


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of both tests; the gender difference of a cluster has no sign."""
    _, true, truth, shape, _ = sample
    gaps, result = true.select("language", "apart").unique(), Tables()
    if truth.kind == "null" or "tails" in truth.settings:  # otherwise there are clusters
        fits = tables["fits"].filter(measure="silhouette", reading="largest")
        result = outcomes_by(fits, "fits: silhouette, {clusters} clusters", effect=0.0)
        result |= outcomes_by(fits, "fits: silhouette", effect=0.0, family=["model"])
    shares = _expected(tables, shape, true).join(gaps, on="language")
    shares = shares.with_columns(pl.col("value", "low", "high", "true") - pl.col("expected"))
    planted = truth.kind == "planted"
    effect = pl.col("over_all").sign() * pl.col("apart") if planted else 0.0
    target = "true" if planted else 0.0
    for test, reading in (("shares", "largest"), ("shares: faithful", "faithful")):
        rows = shares.filter(reading=reading)
        if not planted:
            how: dict[str, Any] = {"family": ["model"], "interval": ["value"]}
            result |= outcomes_by(rows, test, effect=0.0, **how)
        result |= outcomes_by(rows, f"{test}, interval", effect=effect, target=target, p="")
    return result


def _expected(tables: Tables, shape: Shape, true: pl.DataFrame) -> pl.DataFrame:
    """Return the shares of clusters with their true values given their words (column ``true``).

    ``over_all`` is the true value minus that of all words.
    """
    both, p = shape.both, pl.col("female")
    words = tables["words"].filter(group="together").join(true, on=["language", "word"])
    # probability that each word is listed
    chances = {"women": both + (1 - both) * p, "men": 1 - (1 - both) * p}
    alone = pl.col("reading") == "largest"
    sides = {"women": p, "men": 1 - p}
    weights = {name: pl.when(alone).then(p).otherwise(chances[name]) for name, p in sides.items()}
    totals = {f"all_{name}": p.mean().over("language", "reading") for name, p in weights.items()}
    words = words.with_columns(**weights, **totals)
    by = ["language", "reading", "cluster_id"]
    expected = words.group_by(by).agg(pl.col(*weights, *totals).mean())
    female = pl.col("gender") == "female"
    shares = tables["shares"].join(expected, on=by, maintain_order="left")
    exact, over_all = (
        pl.when(female).then(women).otherwise(men) / (women + men)
        for women, men in (
            (pl.col(f"{prefix}women"), pl.col(f"{prefix}men")) for prefix in ("", "all_")
        )
    )
    return shares.with_columns(true=exact, over_all=exact - over_all)
