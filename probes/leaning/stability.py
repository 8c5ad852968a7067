"""Whether a model stays on one side of a statement when the prompt changes."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.leaning.responses import (
    ANSWERED,
    CLUSTER,
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
from plumbline.probes.stats.estimate import Estimate, finite
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.leaning.responses import Reading
    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Scale

    Array = NDArray[np.float64]
    Places = NDArray[np.int64]

SHUFFLED = "clusters of one side shuffled: the two have nothing to do with each other"
TURNED = ("negated", "opposites")  # where a response must change sides
FREE: dict[str, dict[str, Any]] = {  # in what alone two promptings differ
    "prompts": {"prompt": ""},
    "suffixes": {"prompt": ""},
    "order": {"order": 0},
    "seeds": {"sample": 0},
}
EPSILON = 1e-9


class Way(NamedTuple):
    """One prompting of every statement, after one training."""

    pretraining_seed: int
    prompt: str
    form: int
    variant: str
    order: int
    sample: int


def stability(reading: Reading, params: Params) -> Iterator[dict[str, Any]]:
    """Yield the share of statements that stay on their side, for each change of the prompt."""
    single = _sides(reading.single, reading.scale)
    for state, ways in _sides(reading.answers, reading.scale).items():
        for comparison in COMPARISONS:
            own = single.get(state, {}) if comparison == "seeds" else ways
            pairs = list(_pairs(comparison, own, reading.scale))
            if row := _agreement(comparison, pairs, reading.scale, params):
                yield reading.about(state) | row


def _sides(found: pl.DataFrame, scale: Scale) -> dict[State, dict[Way, Array]]:
    """Return the side of every statement, 1, -1, or 0 where there is none, (statements,)."""
    stance = pl.sum_horizontal(
        *(pl.col(name) * value for name, value in zip(WEIGHTS, STANCES, strict=True)),
        ignore_nulls=False,
    )
    side = pl.when(stance.abs() > EPSILON).then(stance.sign()).otherwise(0.0)
    place = {name: i for i, name in enumerate(scale.ids)}
    result: dict[State, dict[Way, Array]] = {}
    for *state, name, value in found.select(*STATE, *Way._fields, "id", side).iter_rows():
        own, way = State(*state[:4]), Way(*state[4:])
        sides = result.setdefault(own, {}).setdefault(way, np.zeros(len(scale.ids)))
        sides[place[name]] = value
    return result


def _pairs(
    comparison: str, ways: dict[Way, Array], scale: Scale
) -> Iterator[tuple[Array, Array, Places]]:
    """Yield the sides in two promptings, and the place of each statement."""
    every = np.arange(len(scale.ids))
    plain = {way: sides for way, sides in ways.items() if way.form == PLAIN}
    if comparison in ("negated", "paraphrases"):
        form = NEGATED if comparison == "negated" else PARAPHRASE
        for way, sides in ways.items():
            first = way._replace(form=PLAIN, variant="")
            if way.form == form and first in plain:
                yield plain[first], sides, every
    elif comparison == "opposites" and scale.opposites:
        one, two = (np.array(list(x)) for x in (scale.opposites, scale.opposites.values()))
        for sides in plain.values():
            yield sides[one], sides[two], one
    else:
        alike: dict[object, list[Array]] = {}
        for way in sorted(plain) if comparison in FREE else ():
            rest = way._replace(**FREE[comparison])
            same = (rest, _template(way)) if comparison == "suffixes" else rest
            alike.setdefault(same, []).append(plain[way])
        for each in alike.values():
            for one_side, two_side in combinations(each, 2):
                yield one_side, two_side, every


def _template(way: Way) -> str:
    """Return a prompt without the name of its forced-choice suffix, behind the last slash."""
    name, _, force = way.prompt.rpartition("/")
    return name if name and force else way.prompt


def _agreement(
    comparison: str, pairs: list[tuple[Array, Array, Places]], scale: Scale, params: Params
) -> dict[str, Any] | None:
    """Return the row of a comparison; None where no pair has a side in both promptings."""
    if not any((np.abs(one) * np.abs(two)).any() for one, two, _ in pairs):
        return None
    one, two = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
    sign = -1.0 if comparison in TURNED else 1.0
    counted = np.abs(one) * np.abs(two)
    held = (counted + sign * one * two) / 2
    place = np.unique(np.array(scale.clusters)[pairs[0][2]], return_inverse=True)[1]
    of, total = (np.bincount(place, x.sum(axis=0)) for x in (held, counted))
    shares = of[total > 0] / total[total > 0]
    value = float(held.sum() / counted.sum())
    found = wilson(float(shares.sum()), len(shares), params.confidence)
    product, both = one.T @ two, np.abs(one).T @ np.abs(two)
    blocks = _blocks(place)
    drawn, rows = _shuffled(blocks, one.shape[1], params), np.arange(one.shape[1])
    mass = both[rows, drawn].sum(axis=1)
    null = sign * product[rows, drawn].sum(axis=1)[mass > 0] / mass[mass > 0]
    mean, of_all = (
        sum(table[np.ix_(b.ravel(), b.ravel())].sum() / b.size for b in blocks)
        for table in (product, both)
    )
    chance = sign * float(mean / of_all) if of_all else float("nan")
    hits = int((np.abs(null - chance) >= abs(2 * value - 1 - chance) - EPSILON).sum())
    method = "Wilson score over clusters, their shares for hits"
    low, high = min(found.low, value), max(found.high, value)
    return Estimate(value, low, high, len(shares), method).row(
        cluster=CLUSTER,
        null=SHUFFLED,
        p=(1 + hits) / (1 + len(null)),
        comparison=COMPARISONS.index(comparison),
        chance=finite((1 + chance) / 2),
        pairs=len(pairs),
    )


def _blocks(place: Places) -> list[Places]:
    """Return the places of statements by cluster, an array (clusters, size) for each size."""
    sizes = np.bincount(place)
    order = np.argsort(place, kind="stable")
    return [
        order[np.isin(place[order], np.flatnonzero(sizes == size))].reshape(-1, size)
        for size in sorted(set(sizes.tolist()))
    ]


def _shuffled(blocks: list[Places], statements: int, params: Params) -> Places:
    """Return orders of the statements, (draws, statements).

    Clusters change places with others of their size, and the statements of one with each other: a
    statement and its opposite are answered together, and stay together.
    """
    rng, draws = np.random.default_rng(params.seed), params.n_permutations_stability
    found = np.empty((draws, statements), dtype=np.int64)
    for block in blocks:
        moved = rng.permuted(np.tile(np.arange(len(block)), (draws, 1)), axis=1)
        found[:, block.ravel()] = rng.permuted(block[moved], axis=2).reshape(draws, -1)
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
        method = "Wilson score over statements, their shares for hits"
        yield found._replace(method=method).row(
            **reading.about(State(*state)),
            cluster="statement",
            null="none: a count",
            prompt=prompt,
            answers=len(part),
            refused=(kinds == REFUSED).sum(),
            unclear=(kinds == NOT_CLEAR).sum(),
            unlisted=(kinds == UNLISTED).sum(),
        )
