"""Analysis ``clusters`` on simulated states of words.

States are normal, of unequal spreads along their axes. Some words are in lists of the other gender
too. What a share should be is the mean of what the states of its words tell of their gender.
Simplified: adjectives, two numbers of clusters, two runs of k-means; words deviate to one gender
each; a language for each planted effect; one person of each gender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import expit

from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.core.params import Params
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.cluster_rows import (
    FAITHFUL,
    JOINT,
    LARGEST,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

LANGUAGES = ("en", "es", "fr")
MODEL = "m"


class Shape(Params):
    """Shape of the words of a part of speech, and of their states."""

    men: int = Field(40, ge=5, description="words that deviate to men")
    women: int = Field(40, ge=5, description="words that deviate to women")
    width: int = Field(24, ge=3, description="dimensions of a state")
    both: float = Field(0.6, ge=0, le=1, description="share of words generated for either gender")
    decay: float = Field(0.5, ge=0, description="SD of the nth axis is n to the power of -decay")


SHAPES = {
    "40 words of each gender, 24 dimensions": Shape(),
    "40 words of men, 20 of women, 100 dimensions": Shape(women=20, width=100),
}
TRUTHS = {
    "one cloud": Truth(NULL, "states are normal and have nothing to do with gender"),
    "genders apart": Truth(
        PLANTED, "distance of the genders' means, SDs of the first axis", {"apart": (1, 2, 3)}
    ),
    "topics apart": Truth(
        DECOY,
        "two topics that have nothing to do with gender, one of half the spread",
        {"topics": 4},
    ),
    "forms of a word": Truth(
        DECOY, "words have three forms, alike in state and of one gender", {"forms": 3}
    ),
    "long tails": Truth(DECOY, "one cloud, a tenth of the words spread twice as far", {"tails": 2}),
}
PARAMS: dict[str, Any] = {
    "clusters": [2, 3],
    "n_permutations": 999,
    "seeds": [1, 2],
    "n_simulations": 199,
    "n_bootstrap": 199,
}
ALIKE = 0.8  # correlation of the forms of a word


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    inputs = Inputs((MODEL,), {"politicians": folder / "people"}, folder)
    inputs.datasets["politicians"].mkdir()
    deviations, known = [], []
    for language, apart in zip(LANGUAGES, truth.settings.get("apart", (0.0,)), strict=False):
        women = np.arange(shape.men + shape.women) >= shape.men
        words = [f"adj{n:03d}" for n in range(len(women))]
        points = _states(truth, shape, women, apart, rng)
        deviation = rng.uniform(0.1, 1, len(women))
        for gender in ("male", "female"):
            own = women == (gender == "female")
            deviations.append(
                pl.DataFrame(
                    {
                        "model": MODEL,
                        "language": language,
                        "pos": "ADJ",
                        "word": words,
                        "form": words,
                        "gender": gender,
                        "reading": "smoothed",
                        "unit": "lemma",
                        "value": np.where(own, deviation, -deviation),
                    }
                )
            )
        distance = apart * (points[:, 1] - apart / 2) * 2 ** (2 * shape.decay)
        odds = distance + np.log(shape.women / shape.men)
        chance = expit(odds) if "apart" in truth.settings else np.full(len(odds), women.mean())
        known.append(
            pl.DataFrame({"word": words, "female": chance}).with_columns(
                language=pl.lit(language), apart=pl.lit(float(apart))
            )
        )
        _write_lists(inputs, language, words, _generated(truth, shape, women, rng))
        where = inputs.outputs("representations", MODEL) / language
        where.mkdir(parents=True)
        states = pl.DataFrame({"word": words, "state": points.tolist()})
        states.write_parquet(where / "00000.parquet")
    where = inputs.tables("pmi", MODEL)
    where.mkdir(parents=True)
    pl.concat(deviations).write_parquet(where / "pmi.parquet")
    return Drawn(inputs, (truth, shape, pl.concat(known)))


def _generated(
    truth: Truth, shape: Shape, women: NDArray[np.bool_], rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw for whom words were generated, (words, 2): men, women; forms of a word for the same."""
    word = np.arange(len(women)) // truth.settings.get("forms", 1)
    both = (rng.random(len(women)) < shape.both)[word]
    return np.stack([both | ~women, both | women], axis=1)


def _write_lists(
    inputs: Inputs, language: str, words: list[str], members: NDArray[np.bool_]
) -> None:
    """Write the lists of a man and of a woman."""
    people = pl.DataFrame({"qid": ["Q1", "Q2"], "name": ["Name 1", "Name 2"]})
    people = people.with_columns(gender=pl.Series([columns.MALE, columns.FEMALE]))
    people.write_parquet(inputs.datasets["politicians"] / f"{language}.parquet")
    row, person = np.nonzero(members)
    where = inputs.outputs("associations", MODEL) / language
    where.mkdir(parents=True)
    listed = pl.Series("word", words, dtype=pl.String).gather(row)
    pl.DataFrame(
        {"qid": people["qid"].gather(person), "word": listed, "lemma": listed}
    ).with_columns(pos=pl.lit("ADJ"), frame=pl.lit("bare")).write_parquet(
        where / "00000.parquet"
    )


def _states(
    truth: Truth, shape: Shape, women: NDArray[np.bool_], apart: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return states, (words, width)."""
    spread = np.arange(1, shape.width + 1) ** -shape.decay
    forms = truth.settings.get("forms", 1)
    points = rng.normal(size=(len(women), shape.width))
    if forms > 1:  # of one word follow each other, and so are of one gender
        word = np.arange(len(women)) // forms
        common = rng.normal(size=(len(women), shape.width))[word]
        points = ALIKE**0.5 * common + (1 - ALIKE) ** 0.5 * points
    if "tails" in truth.settings:
        points *= np.where(rng.random((len(women), 1)) < 0.1, truth.settings["tails"], 1)
    if "topics" in truth.settings:
        topic = rng.random((len(women), 1)) < 0.5
        points *= np.where(topic, 0.5, 1)
        points[:, :1] += topic * truth.settings["topics"]
    points *= spread
    points[:, 1] += women * apart  # not along the widest axis
    return points


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of both tests; that the genders of a cluster differ has no sign by itself."""
    truth, shape, known = drawn.known
    planted = known.select("language", "apart").unique()
    fits = tables["fits"].filter(reading=LARGEST).join(planted, on="language")
    fits = fits.filter(pl.col("measure") == "silhouette")
    fits = fits.with_columns(pl.col("value", "low", "high") - pl.col("expected"))
    joint = pl.col("group") == JOINT
    apart: pl.Expr = pl.when(joint).then("apart").otherwise(0.0)
    if "topics" in truth.settings or "forms" in truth.settings:
        apart = pl.lit(None, pl.Float64)  # there are clusters
    found = {
        f"fits: silhouette, {k} clusters": outcome(fits.filter(clusters=k), effect=apart)
        for k in PARAMS["clusters"]
    } | {"fits: silhouette": outcome(fits, effect=apart, family=["model"], by_mean=False)}
    shares = _expected(tables, shape, known).join(planted, on="language")
    shares = shares.with_columns(pl.col("value", "low", "high", "true") - pl.col("expected"))
    none = pl.lit(None, pl.Float64)
    target, true = ("target", "true") if truth.kind == PLANTED else (pl.lit(0.0),) * 2
    for name, reading in (("shares", LARGEST), ("shares: faithful", FAITHFUL)):
        own = shares.filter(reading=reading).with_columns(target=target, true=true)
        effect = pl.col("target").sign() * pl.col("apart") + 0.0
        tested = own.with_columns(low=none, high=none)
        found[name] = outcome(tested, effect=effect, target=pl.col("target"), family=["model"])
        within = own.with_columns(p=none, p_bh=none)
        found[f"{name}, interval"] = outcome(within, effect=effect, target=pl.col("true"))
    return found


def _expected(tables: dict[str, pl.DataFrame], shape: Shape, known: pl.DataFrame) -> pl.DataFrame:
    """Return the shares of clusters with what is ``true`` of them, given which words are there.

    ``target``: that less what is true of all words, which those that were drawn differ from.
    """
    both, own = shape.both, pl.col("female")
    words = tables["words"].filter(group=JOINT).join(known, on=["language", "word"])
    chances = {"women": both + (1 - both) * own, "men": 1 - (1 - both) * own}  # of being listed
    alone = pl.col("reading") == LARGEST
    sides = {"women": own, "men": 1 - own}
    each = {name: pl.when(alone).then(own).otherwise(chances[name]) for name, own in sides.items()}
    whole = {f"all_{name}": own.mean().over("language", "reading") for name, own in each.items()}
    words = words.with_columns(**each, **whole)
    by = ["language", "reading", "cluster_id"]
    told = words.group_by(by).agg(pl.col(*each, *whole).mean())
    female = pl.col("gender") == "female"
    shares = tables["shares"].join(told, on=by, maintain_order="left")
    true, over_all = (
        pl.when(female).then(women).otherwise(men) / (women + men)
        for women, men in ((pl.col(f"{of}women"), pl.col(f"{of}men")) for of in ("", "all_"))
    )
    return shares.with_columns(true=true, target=true - over_all)
