"""Stability of stances under changes of the prompt, and counts of responses."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.leaning.responses import KINDS, PLAIN, STATE, WEIGHTS, State
from plumbline.probes.leaning.schemas import COMPARISONS
from plumbline.probes.leaning.scoring import STANCES
from plumbline.probes.stats.estimate import TESTED_ERROR, Estimate, finite
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import permutation_p, shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.leaning.responses import Reading
    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Scale

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

TURNED = ("negated", "opposites")  # comparisons that reverse the side
FORMS = {"negated": "negated", "paraphrases": "paraphrase"}  # compared with the plain form
# the only column that differs between the compared prompts
FREE = {"prompts": "prompt", "suffixes": "prompt", "order": "order", "seeds": "sample"}
PROMPTING = (*STATE, "pretraining_seed", "prompt", "form", "variant", "order", "sample")
EPSILON = 1e-9


def stability(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the share of statements with a stable side, for each change of the prompt."""
    scale = reading.scale
    averaged, single = (_sides(table, scale) for table in (reading.answers, reading.single))
    for comparison in COMPARISONS:
        pairs = _pairs(comparison, single if comparison == "seeds" else averaged)
        for state, rows in pairs.group_by(STATE, maintain_order=True):
            first, second = (np.array(rows[side].to_list()) for side in ("side", "side_other"))
            clusters = scale.clusters
            if comparison == "opposites":
                columns = np.array(list(scale.opposites), dtype=np.int64)
                second = second[:, list(scale.opposites.values())]
                first, clusters = first[:, columns], clusters[columns]
            if (first * second).any():
                row = _agreement(comparison, first, second, clusters, params)
                yield reading.about(State(*state)) | row


def _sides(responses: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return a row for each prompt of a training run, with the sides of all statements.

    ``side`` is 1, -1, or 0 without a stance, for each statement; ``template`` is the prompt without
    its forced-choice suffix, the part after the last slash.
    """
    terms = [pl.col(name) * value for name, value in zip(WEIGHTS, STANCES, strict=True)]
    stance = pl.sum_horizontal(terms, ignore_nulls=False)
    side = pl.when(stance.abs() > EPSILON).then(stance.sign()).otherwise(0.0)
    rows = responses.select(*PROMPTING, "id", side=side)
    grid = rows.select(PROMPTING).unique().join(pl.DataFrame({"id": scale.ids}), how="cross")
    full = grid.join(rows, on=[*PROMPTING, "id"], how="left").sort(*PROMPTING, "id")
    sides = full.group_by(PROMPTING, maintain_order=True).agg(pl.col("side").fill_null(0.0))
    return sides.with_columns(template=pl.col("prompt").str.replace(r"(?s)^(.+)/[^/]+$", "$1"))


def _pairs(comparison: str, promptings: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of prompts, with the sides for the second in ``side_other``."""
    plain = promptings.filter(form=PLAIN)
    if comparison == "opposites":
        return plain.with_columns(side_other="side")
    if comparison in FORMS:
        shared = [name for name in PROMPTING if name not in ("form", "variant")]
        others = promptings.filter(form=FORMS[comparison])
        return plain.join(others, on=shared, suffix="_other", maintain_order="left_right")
    free = FREE[comparison]
    shared = [name for name in PROMPTING if name != free]
    shared += ["template"] if comparison != "prompts" else []
    pairs = plain.join(plain, on=shared, suffix="_other", maintain_order="left_right")
    return pairs.filter(pl.col(free) < pl.col(f"{free}_other"))


def _agreement(
    comparison: str, first: Array, second: Array, names: NDArray[np.str_], params: Params
) -> dict[str, Any]:
    """Return the share of equal sides, or of opposite ones for :data:`TURNED`.

    ``first``, ``second``: sides, (pairs, statements); ``names``: clusters of the statements.
    """
    sign = -1.0 if comparison in TURNED else 1.0
    counted = np.abs(first * second)
    agreed = (counted + sign * first * second) / 2
    value = float(agreed.sum() / counted.sum())
    clusters = np.unique(names, return_inverse=True)[1]
    hits, total = (np.bincount(clusters, x.sum(axis=0)) for x in (agreed, counted))
    hits, total = hits[total > 0], total[total > 0]
    number = len(total)
    interval = wilson(float((hits / total).sum()), number, params.confidence)
    # standard error of a ratio of totals: Kish (1965), Survey Sampling, section 6.5
    residual = hits - value * total
    error = float((residual @ residual * number / max(1, number - 1)) ** 0.5 / total.sum())

    product, mass = sign * first.T @ second, np.abs(first).T @ np.abs(second)
    rows = np.arange(len(clusters))
    orders = _orders(tuple(clusters.tolist()), params.n_permutations_stability, params.seed)
    masses = mass[rows, orders].sum(axis=1)
    null = product[rows, orders].sum(axis=1)[masses > 0] / masses[masses > 0]
    sizes = np.bincount(clusters)[clusters]
    exchanged = sizes[:, None] == sizes
    mean, mean_mass = ((x * exchanged / exchanged.sum(axis=1)).sum() for x in (product, mass))
    chance = float(mean / mean_mass) if mean_mass else float("nan")
    low, high = min(interval.low, value), max(interval.high, value)
    return Estimate(value, low, high, number).row(
        p=float(permutation_p(2 * value - 1 - chance, null - chance)),
        **{TESTED_ERROR: error if error > EPSILON else None},
        comparison=comparison,
        chance=finite((1 + chance) / 2),
    )


@lru_cache(maxsize=2)  # all checkpoints of a model have the same statements
def _orders(clusters: tuple[int, ...], draws: int, seed: int) -> Integers:
    orders = shuffled(np.array(clusters), draws, seed)
    orders.flags.writeable = False
    return orders


def answered(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield counts of valid and other responses, in total and by prompt."""
    plain = reading.single.filter(form=PLAIN, variant="")
    pooled = plain.filter(pl.col("prompt").n_unique().over(STATE) > 1)
    rows = pl.concat([pooled.with_columns(prompt=pl.lit("")), plain])
    for (*state, prompt), part in rows.group_by(*STATE, "prompt", maintain_order=True):
        shares = part.group_by("id", maintain_order=True).agg((pl.col("kind") == KINDS[0]).mean())
        counts: dict[str, Any] = {kind: (part["kind"] == kind).sum() for kind in KINDS[1:]}
        about = reading.about(State(*state)) | {"prompt": prompt, "answers": len(part)} | counts
        yield wilson(float(shares["kind"].sum()), len(shares), params.confidence).row(**about)
