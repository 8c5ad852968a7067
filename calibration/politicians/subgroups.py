"""Analysis ``subgroups`` on simulated lists.

Words are positive, negative or neutral. The planted effect is the log-odds of positive words, women
minus men, and minus that for negative words, in nats, separately for natives and others. Natives
have other origins, and therefore other frequent words; they are fewer and rarely old. Popular and
old people have the same words as all others, so these subgroups do not differ from their
complements, although women are rarer in them.

Intervals should cover the mean over ``SAMPLES`` other samples of as many names, since with more
names other words would lead. Simplifications: all words have a sentiment and are in one language,
and there are fewer draws than in the analysis.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibration.politicians import lists
from calibration.politicians.lists import NATIVE
from calibration.truth import Array, Bools, Drawn, Generator, Integers, Tables, Truth, outcomes_by
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.subgroups import AGAINST, CONTRASTS, SUBGROUPS
from plumbline.probes.politicians.words.word_counts import FEMALE, MALE
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.stats.pmi import pmi
from plumbline.probes.stats.shares import shares

Shape = lists.ListsShape
SHAPES = {
    "default run: 99 men, 88 women, 6 others": Shape(men=99, women=88, others=6, words=90),
    "real run, 1 name in 40: 400 men, 90 women": Shape(men=400, women=90),
}
NONE = ((0.0, 0.0), (0.0, 0.0))  # effects for natives and for others, on adjectives and on verbs
TRUTHS = {
    # words differ only in frequency and origin
    "no sentiment goes with a gender": Truth("null"),
    # effects in nats: larger for natives, and halved in half of the tables
    "natives": Truth("planted", nats=((1.2, 0.0), (0.6, 0.15)), sizes=(0.5, 1.0)),
    # subgroups differ in size and in words, but not in gender effects
    "the same everywhere": Truth("decoy", nats=((1.2, 1.2), (0.6, 0.6))),
    # positive words are frequent, especially for natives, but not associated with gender
    "positive words are common": Truth("decoy", common=1.0),
}
SIZE: dict[str, Any] = {"top_k": 100, "top_share": 0.33, "smoothing": 0.5, "min_count": 5}
PARAMS: dict[str, Any] = SIZE | {"min_people": 10, "n_bootstrap": 200, "n_permutations": 1999}
KEYS = {  # keys of each table
    "differences": ["pos", "contrast", "sentiment"],
    "shares": ["pos", "subgroup", "gender", "sentiment"],
    "agreement": ["pos", "contrast"],
}
SAMPLES = 200  # number of other samples of as many names
TOWARDS = np.array([1.0, -1.0, 0.0])  # sign of the effect for women, by sentiment
SIDES = dict(zip(SENTIMENTS, TOWARDS, strict=True))


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    common, nats = truth.get("common", 0.0), truth.get("nats", NONE)
    if "sizes" in truth.settings:
        size = float(rng.choice(truth.settings["sizes"]))
        nats = tuple(tuple(size * one for one in pos) for pos in nats)
    populations, sentiments = zip(*(_words(shape, pos, common) for pos in range(2)), strict=True)
    names, utilities = _names(shape, nats, populations, rng)
    inputs = lists.write_people(folder, names, ("m",))
    lists.write_lists(inputs, "m", names, utilities, shape.length, rng)
    inputs.datasets["lexica"] = lists.write_lexicon(folder / "lexica", list(sentiments))
    return Drawn(inputs, (nats, _means(shape, nats, common)))


def _words(shape: Shape, pos: int, common: float) -> tuple[lists.Population, Integers]:
    """Return the parameters of the lists with a planted effect of 1, and sentiments (words,).

    ``common``: nats by which positive words are more frequent and negative ones rarer; twice as
    many nats in the last origin, where 70% are natives.
    """
    sentiment = np.random.default_rng([11, pos]).permutation(shape.words) % len(SENTIMENTS)
    base = lists.population(shape, TRUTHS["no sentiment goes with a gender"], pos)
    side = TOWARDS[sentiment]
    origin = base.origin + common * np.linspace(0, 1, shape.origins)[:, None] * side
    frequency = base.frequency + common * side
    return base._replace(frequency=frequency, origin=origin, effect=side), sentiment


def _names(
    shape: Shape, planted: Any, populations: tuple[lists.Population, ...], rng: Generator
) -> tuple[lists.Names, list[Array]]:
    """Draw names and return them with the utilities of words for each part of speech."""
    drawn = lists.names(shape, populations[0], rng)
    nats = np.array(planted)[:, np.where(drawn.native, 0, 1)]
    utilities = [
        lists.utilities(parameters, drawn.origin, drawn.side() * effect)
        for parameters, effect in zip(populations, nats, strict=True)
    ]
    return drawn, utilities


@lru_cache(maxsize=16)
def _means(shape: Shape, nats: Any, common: float) -> Tables:
    """Return the mean of each number over other samples of names, by table."""
    words, rng = [_words(shape, pos, common) for pos in range(2)], np.random.default_rng(12)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in KEYS}
    for _ in range(SAMPLES):
        names, utilities = _names(shape, nats, tuple(parameters for parameters, _ in words), rng)
        parts = _parts(names)
        for pos, ((_, sentiment), utility) in enumerate(zip(words, utilities, strict=True)):
            best = lists.best(utility, shape.length, rng)[names.bearer]
            subgroups = [_of_part(best, names, part, sentiment) for part in parts]
            for table, *key, value in _numbers(subgroups):
                rows[table].append((POS[pos], *key, value))
    return {
        name: pl.DataFrame(rows[name], [*keys, "target"], orient="row").group_by(keys).mean()
        for name, keys in KEYS.items()
    }


def _parts(names: lists.Names) -> list[Bools]:
    """Return a membership mask, (people,), for each subgroup."""
    native, old = names.native[names.bearer], names.old[names.bearer]
    order = np.argsort(-names.sitelinks[names.bearer], kind="stable")
    popular = np.argsort(order) < len(order) // 2
    return [native, ~native, popular, ~popular, old, ~old]


def _of_part(
    best: Integers, names: lists.Names, part: Bools, sentiment: Integers
) -> tuple[Array, Array] | None:
    """Return shares, of shape (2, sentiments), and the PMI between genders, of shape (words,)."""
    gender = names.gender[names.bearer][part]
    if min((gender == MALE).sum(), (gender == FEMALE).sum()) < PARAMS["min_people"]:
        return None
    counts = np.bincount((best[part] * 3 + gender[:, None]).ravel(), minlength=3 * len(sentiment))
    cells = counts.reshape(-1, 3)[:, np.unique(gender)].astype(np.float64)
    frequent, seen = cells.sum(axis=1) >= SIZE["min_count"], cells.any(axis=1)
    deviations = np.round(pmi(cells[seen], SIZE["smoothing"])[frequent[seen], :2].T, 10)
    size = max(1, min(SIZE["top_k"], int(SIZE["top_share"] * frequent.sum())))
    between = np.full(len(sentiment), np.nan)
    between[frequent] = deviations[1] - deviations[0]
    return shares(deviations, sentiment[frequent], size, len(SENTIMENTS)), between


def _numbers(subgroups: list[tuple[Array, Array] | None]) -> Iterator[tuple[Any, ...]]:
    """Yield the table, key and value of each number for one part of speech."""
    for name in CONTRASTS:
        parts = [subgroups[SUBGROUPS.index(one)] for one in name.split(AGAINST)]
        present = [part for part in parts if part is not None]
        if len(present) < len(parts):
            continue
        gaps = [share[1] - share[0] for share, _ in present]
        for s, sentiment in enumerate(SENTIMENTS):
            gap = gaps[0][s] - (gaps[1][s] if len(present) > 1 else 0.0)
            yield "differences", name, sentiment, gap
            if len(present) == 1:
                yield "shares", name, "male", sentiment, present[0][0][0, s]
                yield "shares", name, "female", sentiment, present[0][0][1, s]
        if len(present) > 1:
            between = np.stack([between for _, between in present])
            one, two = between[:, ~np.isnan(between).any(axis=0)]
            yield "agreement", name, float(rank_correlations(one, two))


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test.

    The differences within a subgroup and between two subgroups form one family. If all subgroups
    have the same effect, the family contains true findings, and other tests may be false positives
    at the false discovery rate, so their adjusted p-values are not used. The p-values of shares are
    not adjusted. For agreement, the effect is the one common to both subgroups: the geometric mean
    for natives and others, and the effect among all people for the rest.
    """
    nats, means = sample.known
    planted = pl.DataFrame(nats, ["native", "foreign"], orient="row").with_columns(
        pos=pl.Series(POS[:2])
    )
    joined = {
        name: tables[name]
        .join(planted, on="pos", maintain_order="left")
        .join(means[name], on=keys, how="left", maintain_order="left")
        for name, keys in KEYS.items()
        if name in tables
    }
    one, two = pl.col("native"), pl.col("foreign")
    family = ["model"]
    alone = any(one == two != 0 for one, two in nats)
    tests: dict[str, Any] = {"effect": _effect(pl.col("contrast")), "family": family}
    tests["p_adjusted"] = "" if alone else "p_bh"
    labels = {True: "in a subgroup", False: "between subgroups"}
    where = pl.col("contrast").is_in(SUBGROUPS).replace_strict(labels)
    differences = joined["differences"].with_columns(where=where)
    result = outcomes_by(differences, "differences", **tests)
    result |= outcomes_by(differences, "differences {where}", target="target", **tests)
    sign = pl.when(pl.col("gender") == "female").then(1).otherwise(-1)
    effect = _effect(pl.col("subgroup")) * sign + 0.0
    result |= outcomes_by(joined["shares"], "shares", effect=effect, target="target")
    if "agreement" in joined:
        natives = pl.when(pl.col("contrast").str.starts_with(SUBGROUPS[0]))
        overall = sum(NATIVE) / 2 * one + (1 - sum(NATIVE) / 2) * two
        shared = natives.then((one * two).sqrt()).otherwise(overall).round(2)
        how: dict[str, Any] = {"effect": shared, "target": "target", "family": family}
        result |= outcomes_by(joined["agreement"], "agreement", **how)
    return result


def _effect(name: pl.Expr) -> pl.Expr:
    """Return the planted nats in a subgroup, or between two, for the words with a sentiment.

    The result is null for subgroups with mixed effects, and for neutral words if other words have
    an effect.
    """
    native, foreign = pl.col("native"), pl.col("foreign")
    nats = (
        pl.when(name == SUBGROUPS[0])
        .then(native)
        .when(name == SUBGROUPS[1])
        .then(foreign)
        .when(name.is_in(SUBGROUPS))
        .then(pl.when(native == foreign).then(native))
        .when(name.str.starts_with(SUBGROUPS[0]))
        .then((native - foreign).round(6))
        .otherwise(0.0)
    )
    side = pl.col("sentiment").replace_strict(SIDES)
    return pl.when((side != 0) | (nats == 0)).then(nats * side + 0.0)
