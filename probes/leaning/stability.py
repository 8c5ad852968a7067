"""Whether a model stays on one side of a statement when the prompt changes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.leaning.responses import (
    ANSWERED,
    NEGATED,
    NOT_CLEAR,
    PARAPHRASE,
    PLAIN,
    REFUSED,
    STATE,
    UNLISTED,
    WEIGHTS,
    State,
)
from plumbline.probes.leaning.schemas import COMPARISONS
from plumbline.probes.leaning.scoring import STANCES
from plumbline.probes.stats.estimate import TESTED_ERROR, Estimate, finite
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.leaning.responses import Reading
    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Scale

    Array = NDArray[np.float64]
    Places = NDArray[np.int64]

TURNED = ("negated", "opposites")  # where a response must change sides
FREE = {  # in what alone two promptings differ
    "prompts": "prompt",
    "suffixes": "prompt",
    "order": "order",
    "seeds": "sample",
}
OTHER = {"negated": NEGATED, "paraphrases": PARAPHRASE}  # form that is held against the plain one
WAY = (*STATE, "pretraining_seed", "prompt", "form", "variant", "order", "sample")
EPSILON = 1e-9


def stability(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the share of statements that stay on their side, for each change of the prompt."""
    scale = reading.scale
    ways, single = (_sides(table, scale) for table in (reading.answers, reading.single))
    for comparison in COMPARISONS:
        pairs = _pairs(comparison, single if comparison == "seeds" else ways)
        for state, own in pairs.group_by(STATE, maintain_order=True):
            one, two = (np.array(own[side].to_list()) for side in ("side", "side_other"))
            places = np.arange(len(scale.ids))
            if comparison == "opposites":
                places = np.array(list(scale.opposites), dtype=np.int64)
                one, two = one[:, places], one[:, list(scale.opposites.values())]
            clusters = np.array(scale.clusters)[places]
            if (np.abs(one) * np.abs(two)).any():
                row = _agreement(comparison, one, two, clusters, params)
                yield reading.about(State(*state)) | row | {"pairs": len(own)}


def _sides(found: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return each prompting of every statement after one training, a row each.

    ``side`` has for each statement 1, -1, or 0 where there is none.
    """
    stance = pl.sum_horizontal(
        *(pl.col(name) * value for name, value in zip(WEIGHTS, STANCES, strict=True)),
        ignore_nulls=False,
    )
    side = pl.when(stance.abs() > EPSILON).then(stance.sign()).otherwise(0.0)
    own = found.select(*WAY, "id", side=side)
    every = own.select(WAY).unique().join(pl.DataFrame({"id": scale.ids}), how="cross")
    full = every.join(own, on=[*WAY, "id"], how="left").with_columns(pl.col("side").fill_null(0.0))
    ways = full.sort(*WAY, "id").group_by(WAY, maintain_order=True).agg("side")
    # a prompt without the name of its forced-choice suffix, behind the last slash
    template = pl.col("prompt").str.replace(r"(?s)^(.+)/[^/]+$", "$1")
    return ways.with_columns(template=template)


def _pairs(comparison: str, ways: pl.DataFrame) -> pl.DataFrame:
    """Return promptings that are compared, two in a row, the second one's ``side_other``."""
    plain = ways.filter(pl.col("form") == PLAIN)
    if comparison == "opposites":
        return plain.with_columns(side_other="side")
    free = FREE.get(comparison, "form")
    apart = {free, "side", *{"form": ("variant",), "prompt": ("template",)}.get(free, ())}
    same = [name for name in ways.columns if name not in apart]
    same += ["template"] if comparison == "suffixes" else []
    others = ways.filter(pl.col("form") == OTHER.get(comparison, PLAIN))
    pairs = plain.join(others, on=same, suffix="_other", maintain_order="left_right")
    if comparison in OTHER:
        return pairs
    return pairs.filter(pl.col(free) < pl.col(f"{free}_other"))


def _agreement(
    comparison: str, one: Array, two: Array, clusters: NDArray[np.str_], params: Params
) -> dict[str, Any]:
    """Return how often sides, (pairs, statements), are alike, or opposed where they should be."""
    sign = -1.0 if comparison in TURNED else 1.0
    counted = np.abs(one) * np.abs(two)
    held = (counted + sign * one * two) / 2
    place = np.unique(clusters, return_inverse=True)[1]
    of, total = (np.bincount(place, x.sum(axis=0)) for x in (held, counted))
    shares = of[total > 0] / total[total > 0]
    value = float(held.sum() / counted.sum())
    found = wilson(float(shares.sum()), len(shares), params.confidence)
    product, both = one.T @ two, np.abs(one).T @ np.abs(two)
    blocks, how = _blocks(place), (params.n_permutations_stability, params.seed)
    drawn, rows = _shuffled(tuple(place.tolist()), *how), np.arange(one.shape[1])
    mass = both[rows, drawn].sum(axis=1)
    null = sign * product[rows, drawn].sum(axis=1)[mass > 0] / mass[mass > 0]
    mean, of_all = (
        sum(table[np.ix_(b.ravel(), b.ravel())].sum() / b.size for b in blocks)
        for table in (product, both)
    )
    chance = sign * float(mean / of_all) if of_all else float("nan")
    # of a ratio of totals (Kish 1965, Survey Sampling, section 6.5); Wilson's is of one hit each
    rest, number = (of - value * total)[total > 0], len(shares)
    error = float((rest @ rest * number / max(1, number - 1)) ** 0.5 / total.sum())
    low, high = min(found.low, value), max(found.high, value)
    return Estimate(value, low, high, len(shares)).row(
        p=float(permutation_p(2 * value - 1 - chance, null - chance)),
        **{TESTED_ERROR: error if error > EPSILON else None},
        comparison=comparison,
        chance=finite((1 + chance) / 2),
    )


def _blocks(place: Places) -> list[Places]:
    """Return the places of statements by cluster, an array (clusters, size) for each size."""
    sizes = np.bincount(place)
    order = np.argsort(place, kind="stable")
    return [
        order[np.isin(place[order], np.flatnonzero(sizes == size))].reshape(-1, size)
        for size in sorted(set(sizes.tolist()))
    ]


@lru_cache(maxsize=2)  # all states of a model are asked the same statements
def _shuffled(place: tuple[int, ...], draws: int, seed: int) -> Places:
    """Return orders of the statements, of which each is in a cluster, (draws, statements).

    Clusters change places with others of their size, and the statements of one with each other: a
    statement and its opposite are answered together, and stay together.
    """
    rng = np.random.default_rng(seed)
    found = np.empty((draws, len(place)), dtype=np.int64)
    for block in _blocks(np.array(place)):
        moved = rng.permuted(np.tile(np.arange(len(block)), (draws, 1)), axis=1)
        found[:, block.ravel()] = rng.permuted(block[moved], axis=2).reshape(draws, -1)
    found.flags.writeable = False
    return found


def answered(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield how many responses are valid, and what the others were, of all prompts and of each."""
    own = reading.single.filter((pl.col("form") == PLAIN) & (pl.col("variant") == ""))
    several = own.filter(pl.col("prompt").n_unique().over(STATE) > 1)
    every = pl.concat([several.with_columns(prompt=pl.lit("")), own])
    for (*state, prompt), part in every.group_by(*STATE, "prompt", maintain_order=True):
        kinds = part["kind"]
        shares = part.group_by("id", maintain_order=True).agg((pl.col("kind") == ANSWERED).mean())
        found = wilson(float(shares["kind"].sum()), len(shares), params.confidence)
        yield found.row(
            **reading.about(State(*state)),
            prompt=prompt,
            answers=len(part),
            refused=(kinds == REFUSED).sum(),
            unclear=(kinds == NOT_CLEAR).sum(),
            unlisted=(kinds == UNLISTED).sum(),
        )
