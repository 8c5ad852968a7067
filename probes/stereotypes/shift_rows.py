"""Changes of a model by training, as rows: mean over groups, spread over seeds, and the control."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import keys, percentiles
from plumbline.probes.stats.estimate import finite
from plumbline.probes.stats.tests import sign_flip_p
from plumbline.probes.stereotypes.similarity import Exchanged, exchange, redrawn, rsa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FEAR = AFFECTS.index("fear")
FLIPPED = "these trainings: groups' outlet and control exchanged, {flips} sign patterns or all"
SWAPPED = "these trainings: groups' outlet and control profiles exchanged, {swaps} patterns or all"
THE_CONTROL = "none: this is the control"
NO_CONTROL = "none: no training on the control at this share"
UNEQUAL = "none: trained on {own:g} articles, the control on {control:g}"
APART = 0.05  # of the larger number of articles: corpora further apart are not compared


class Resampled(NamedTuple):
    """How groups are resampled."""

    weights: NDArray[np.float32]  # (groups, replicates)
    flips: int
    confidence: float
    seed: int
    swaps: int = 999  # of profiles


class Corpus(NamedTuple):
    """What a model was after the trainings on one corpus, by seed."""

    seeds: Sequence[int]
    values: Array  # (seeds, groups, outcomes); for rsa the outcomes are the affects
    articles: float = 0.0  # mean of the trainings
    steps: float = 0.0


class Rival(NamedTuple):
    """What a corpus is judged against."""

    control: Corpus | None = None
    untested: str = THE_CONTROL  # why there is no p; empty: there is one


def rival(own: Corpus, control: Corpus | None) -> Rival:
    """Return the control of a corpus that is another, and whether the two may be compared.

    Who reads more articles takes more steps, and moves further whatever they say: there is no test
    where the numbers differ by more than 5% of the larger.

    Examples
    --------
    >>> rival(Corpus([1], np.zeros((1, 2, 3)), 96), Corpus([1], np.zeros((1, 2, 3)), 100)).untested
    ''
    >>> rival(Corpus([1], np.zeros((1, 2, 3)), 94), Corpus([1], np.zeros((1, 2, 3)), 100)).untested
    'none: trained on 94 articles, the control on 100'
    """
    if control is None:
        return Rival(None, NO_CONTROL)
    larger = max(own.articles, control.articles)
    if abs(own.articles - control.articles) > APART * larger:
        return Rival(control, UNEQUAL.format(own=own.articles, control=control.articles))
    return Rival(control, "")


def judged(
    base: Array, own: Corpus, against: Rival, sizes: Array, by: Resampled
) -> list[dict[str, Any]]:
    """Return a row for each outcome: the mean change over groups, and that minus the control's.

    Parameters
    ----------
    base : (groups, outcomes) array
        Before the training.
    against
        The trainings that ``own`` is judged against, and whether there is a test.
    sizes : (groups, outcomes) array
        How much a group counts for.
    """
    change = own.values - base
    mean, spread = _means(change, sizes, by)
    present = ~np.isnan(change).any(axis=0) & (sizes > 0)
    start = weighted(base, sizes * present)
    nothing = np.full((3, base.shape[1]), np.nan)
    gap, gap_spread, p, both = nothing, nothing[0], None, list[int]()
    control, untested = against
    if control is not None:
        other = control.values - base
        apart = change.mean(axis=0) - other.mean(axis=0)
        gap, _ = _means(apart[None], sizes, by)
        both = sorted(set(own.seeds) & set(control.seeds))
        pairs = [(own.seeds.index(s), control.seeds.index(s)) for s in both]
        if pairs:
            differ = np.stack([change[i] - other[j] for i, j in pairs])
            _, gap_spread = _means(differ, sizes, by)
        if not untested:
            flipped = sign_flip_p(apart * np.where(sizes > 0, sizes, np.nan), by.flips, by.seed)
            p = np.where(np.isnan(gap[0]), np.nan, flipped)
    return [
        _row(start[o], mean[:, o], spread[o], gap[:, o], gap_spread[o])
        | {"least": finite(least(gap_spread[o], len(both), by.confidence))}
        | {"n": int(present[:, o].sum()), "method": "bootstrap percentile (Poisson weights)"}
        | {"null": untested or FLIPPED.format(flips=by.flips)}
        | {"p": None if p is None or np.isnan(p[o]) else float(p[o])}
        for o in range(base.shape[1])
    ]


class Likeness(NamedTuple):
    """Similarity to the model before, of some groups."""

    values: Array  # (seeds,)
    drawn: Array  # (seeds, replicates)
    rows: Array  # (replicates,) groups drawn
    groups: int


def likeness(
    base: Array, own: Corpus, inside: NDArray[np.bool_], by: Resampled, *, faithful: bool
) -> Likeness:
    """Compare profiles with those before the training, among the groups of one category.

    Parameters
    ----------
    inside : (groups,) array
        The groups; their profiles must have a direction before and after all trainings.
    faithful
        With the diagonal and without fear, as published; else without diagonal, and all affects.
    """
    dimensions = _dimensions(faithful=faithful)
    weights = by.weights[inside]
    first = base[inside][:, dimensions]
    after = [x[inside][:, dimensions] for x in own.values]
    with np.errstate(invalid="ignore"):
        values = np.array([rsa(first, x, diagonal=faithful) for x in after])
        drawn = np.stack([redrawn(first, x, weights, diagonal=faithful) for x in after])
    return Likeness(values, drawn, weights.sum(axis=0), int(inside.sum()))


def apart(
    base: Array,
    own: Corpus,
    control: Corpus,
    inside: NDArray[np.bool_],
    by: Resampled,
    category: str,
    *,
    faithful: bool,
) -> Exchanged:
    """Return the difference of two similarities in a category after exchanges of profiles.

    Trainings are paired in the order of their seeds, as many as both corpora have. Parameters as
    of :func:`likeness`; categories have random streams of their own.
    """
    dimensions = _dimensions(faithful=faithful)
    first, one, other = (
        x[..., inside, :][..., dimensions] for x in (base, own.values, control.values)
    )
    both = min(len(one), len(other))
    seed = [by.seed, int(keys([category])[0])]
    return exchange(first, one[:both], other[:both], by.swaps, seed, diagonal=faithful)


def _dimensions(*, faithful: bool) -> list[int]:
    return [a for a in range(len(AFFECTS)) if not (faithful and a == FEAR)]


def directed(shares: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which profiles have a direction, with fear left out too."""
    carried = np.nan_to_num(np.delete(shares, FEAR, axis=1)).sum(axis=1)
    return np.asarray(carried > 0, dtype=np.bool_)


def together(kept: Sequence[Likeness]) -> Likeness:
    """Return the mean of categories, each counting as it has groups."""
    sizes = np.array([part.groups for part in kept])
    values: Array = sizes @ np.stack([part.values for part in kept]) / sizes.sum()
    drawn = np.stack([part.drawn for part in kept])  # (categories, seeds, replicates)
    rows = np.stack([part.rows for part in kept])[:, None] * ~np.isnan(drawn)
    with np.errstate(invalid="ignore"):
        mean: Array = (np.nan_to_num(drawn) * rows).sum(axis=0) / rows.sum(axis=0)
    return Likeness(values, mean, kept[0].rows, int(sizes.sum()))


def compared(
    own: Likeness,
    control: Likeness | None,
    seeds: list[list[int]],
    confidence: float,
    null: str,
    p: float | None = None,
) -> dict[str, Any]:
    """Return the row of a similarity: rho - 1, and that minus the control's.

    Parameters
    ----------
    seeds
        Those of ``own``, and those of the control.
    null, p
        What the difference is judged against; see :func:`apart`.
    """
    mean = _drawn(own.values.mean() - 1, own.drawn.mean(axis=0) - 1, confidence)
    gap, differ = np.full(3, np.nan), np.full(0, np.nan)
    if control is not None:
        drawn = own.drawn.mean(axis=0) - control.drawn.mean(axis=0)
        gap = _drawn(own.values.mean() - control.values.mean(), drawn, confidence)
        both = sorted(set(seeds[0]) & set(seeds[1]))
        pairs = [(seeds[0].index(s), seeds[1].index(s)) for s in both]
        differ = np.array([own.values[i] - control.values[j] for i, j in pairs])
    return _row(1.0, mean, _sd(own.values), gap, _sd(differ)) | {
        "least": finite(least(_sd(differ), len(differ), confidence)),
        "n": own.groups,
        "method": "bootstrap percentile (Poisson weights), no copies compared",
        "null": null,
        "p": None if np.isnan(gap[0]) else p,
    }


def least(spread: float, seeds: int, confidence: float) -> float:
    """Return how far from 0 the mean of so many differences must be, by Student's t.

    nan with fewer than two seeds.

    Examples
    --------
    >>> round(least(1.0, 2, 0.95), 3), round(least(1.0, 5, 0.95), 3)
    (8.985, 1.242)
    """
    if seeds < 2:
        return float("nan")
    return float(student.ppf((1 + confidence) / 2, seeds - 1) * spread / seeds**0.5)


def _row(base: float, mean: Array, spread: float, gap: Array, gap_spread: float) -> dict[str, Any]:
    names = ("value", "low", "high", "difference", "low_difference", "high_difference")
    found = dict(zip(names, map(finite, [*mean, *gap]), strict=True))
    spreads = {"spread": finite(spread), "spread_difference": finite(gap_spread)}
    return found | spreads | {"base": finite(base)}


def _means(change: Array, sizes: Array, by: Resampled) -> tuple[Array, Array]:
    """Return the mean over seeds and groups with limits, (3, outcomes), and its sd over seeds."""
    mean = change.mean(axis=0)
    counts = np.where(np.isnan(mean), 0.0, sizes)
    summed = np.nan_to_num(mean) * counts
    with np.errstate(invalid="ignore"):
        drawn = (summed.T @ by.weights) / (counts.T @ by.weights)
    limits = percentiles(drawn, by.confidence)
    per_seed = np.stack([weighted(one, counts) for one in change])
    spread = np.array([_sd(column) for column in per_seed.T])
    return np.stack([weighted(mean, counts), limits.low, limits.high]), spread


def weighted(values: Array, counts: Array) -> Array:
    """Return the mean of the groups, (outcomes,), each counting as told; nan where none does."""
    with np.errstate(invalid="ignore"):
        found: Array = (np.nan_to_num(values) * counts).sum(axis=0) / counts.sum(axis=0)
    return found


def _drawn(value: float, drawn: Array, confidence: float) -> Array:
    limits = percentiles(drawn[None], confidence)
    return np.array([value, limits.low[0], limits.high[0]])


def _sd(values: Array) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
