"""Permutation tests for groups, pairs and classifiers.

All tests are two-sided. Monte Carlo tests include the observed outcome: p = (1 + hits) / (1 +
draws) is never 0 (Phipson and Smyth 2010, Permutation p-values should never be zero, Stat. Appl.
Genet. Mol. Biol. 9(1), 39, equation 2). For exact tests, see Good (2005), Permutation, Parametric
and Bootstrap Tests of Hypotheses.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr

from plumbline.probes.stats.classification import cells, metrics
from plumbline.probes.stats.estimate import LEVEL

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEAR = 1e-9  # absolute tolerance for ties between values
TOLERANCE = 1e-7  # relative tolerance for ties between probabilities
LEAST = 1e-60  # outcomes that are less likely are dropped from a distribution of sums
EXACT = 20_000  # maximum number of permutations that are enumerated
FEW = 20  # number of outcomes in a tail from which its probability can be estimated
STEEP = 60.0  # maximum slope of an exponentially tilted distribution


class Permutation(NamedTuple):
    """Differences and p-values, as arrays with one value per outcome."""

    difference: Floats
    p: Floats
    exact: Bools
    least_p: Floats  # smallest possible p-value


def permutation_test(first: Floats, second: Floats, replicates: int, seed: int) -> Permutation:
    """Test mean(first) - mean(second) by an unpaired permutation test.

    The null hypothesis is that group labels are exchangeable: all splits of the units into groups
    of these sizes are equally likely. The p-value is the share of splits whose difference of means
    is at least as far from 0 as the observed one. The test is exact (``exact``) if all values are 0
    or 1, as the number of ones in a group is then hypergeometric, or if there are at most ``EXACT``
    splits; otherwise splits are sampled.

    Fisher's exact test sums the probabilities of outcomes that are no more likely than the observed
    one. For groups of equal size, its p-value equals that of this test and twice the smaller tail;
    for unequal sizes, all three differ.

    Parameters
    ----------
    first, second : (n, outcomes) and (m, outcomes) arrays
        One row per unit, one column per outcome; outcomes are tested separately.
    replicates, seed
        Number of splits and seed of the Monte Carlo test.

    Examples
    --------
    Fisher's tea (Agresti 2002, Categorical Data Analysis, Table 3.8): 3 of 4 cups versus 1 of 4.

    >>> tea = permutation_test(np.array([[1, 1, 1, 0]]).T, np.array([[1, 0, 0, 0]]).T, 1, 1)
    >>> tea.p.round(4).tolist()
    [0.4857]
    """
    first, second = (np.asarray(group, dtype=np.float64) for group in (first, second))
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError("permutation_test: arrays (units, outcomes) must have equal outcomes")
    if not len(first) or not len(second):
        raise ValueError("permutation_test: a group is empty")
    pooled = np.concatenate([first, second])
    if not np.isfinite(pooled).all():
        raise ValueError("permutation_test: a value is not finite")
    n, m, total = len(first), len(second), len(pooled)
    difference: Floats = first.mean(axis=0) - second.mean(axis=0)
    p, least = np.ones((2, pooled.shape[1]))
    binary = ((pooled == 0) | (pooled == 1)).all(axis=0)
    for column in np.flatnonzero(binary):
        ones, seen = int(pooled[:, column].sum()), int(first[:, column].sum())
        support, mass = _hypergeometric(total, ones, n)
        mass = mass / mass.sum()
        distances = np.abs(support * m - (ones - support) * n)  # difference of shares times n m
        p[column] = mass[distances >= abs(seen * m - (ones - seen) * n)].sum()
        least[column] = mass[distances == distances.max()].sum()
    few = comb(total, n) <= EXACT
    if (other_columns := ~binary).any():
        if few:
            chosen = np.array(list(combinations(range(total), n)))
            splits = np.zeros((len(chosen), total))
            np.put_along_axis(splits, chosen, 1.0, axis=1)
        else:
            labels = np.tile(np.arange(total) < n, (replicates, 1)).astype(np.float64)
            splits = np.random.default_rng(seed).permuted(labels, axis=1)
        values = pooled[:, other_columns]
        observed = np.abs(difference[other_columns]) - NEAR * np.abs(values).max(axis=0)
        centred = (values - values.mean(axis=0)) * (total / (n * m))
        null = np.abs(splits @ centred)
        hits, sampled = (null >= observed).sum(axis=0), int(not few)  # one is the observed split
        p[other_columns] = (hits + sampled) / (len(null) + sampled)
        furthest = (null >= null.max(axis=0) - NEAR).sum(axis=0)
        least[other_columns] = furthest / len(null) if few else 1 / (1 + len(null))
    return Permutation(difference, p, binary | few, least)


@lru_cache(maxsize=4_096)
def _hypergeometric(total: int, ones: int, n: int) -> tuple[Integers, Floats]:
    """Return support and pmf of the number of ones among ``n`` of ``total`` units."""
    from scipy.stats import hypergeom  # the import takes half a second

    support = np.arange(max(0, ones + n - total), min(ones, n) + 1)
    mass: Floats = hypergeom.pmf(support, total, ones, n)
    for array in (support, mass):  # the cached array is shared by all callers
        array.setflags(write=False)
    return support, mass


def fisher_p(with_word: Integers, group_sizes: Integers) -> Floats:
    """Return exact p-values, of shape (words, groups), if group labels are permuted over names.

    All lists have the same length, so the number of a group's names that have a word is
    hypergeometric. The p-value is the probability of all outcomes that are no more likely than the
    observed one, as in Fisher's exact test.

    Parameters
    ----------
    with_word : (words, groups) array
        Number of names whose list contains the word.
    group_sizes : (groups,) array
        Number of names in each group.

    Examples
    --------
    Fisher's tea (The Design of Experiments, 1935; Agresti 2002, Table 3.8): 3 of 4 correct.

    >>> fisher_p(np.array([[3, 1]]), np.array([4, 4])).round(4).tolist()
    [[0.4857, 0.4857]]
    """
    names = int(group_sizes.sum())
    having = with_word.sum(axis=1)
    result = np.ones(with_word.shape)
    for g, size in enumerate(group_sizes):
        for ones in np.unique(having):
            support, mass = _hypergeometric(names, int(ones), int(size))
            rows = np.flatnonzero(having == ones)
            ranked = np.sort(mass)
            seen = mass[with_word[rows, g] - support[0]]
            last = np.searchsorted(ranked, seen * (1 + TOLERANCE), side="right")
            running = np.cumsum(ranked)
            result[rows, g] = running[last - 1] / running[-1]
    return result


def permutation_p(seen: ArrayLike, null: Floats, *, relative: bool = False) -> Floats:
    """Return Monte Carlo p-values, the shares of outcomes at least as far from 0 as observed.

    Parameters
    ----------
    seen : (...) array
    null : (..., draws) array
        Outcomes under the null hypothesis.
    relative
        If True, the tolerance ``NEAR`` is relative to the observed outcome.

    Examples
    --------
    >>> float(permutation_p(0.2, np.array([0.1, -0.2, 0.0])))
    0.5
    """
    distance = np.abs(seen)
    least = distance * (1 - NEAR) if relative else distance - NEAR
    hits = (np.abs(null) >= np.asarray(least)[..., None]).sum(axis=-1)
    return np.asarray((1 + hits) / (1 + null.shape[-1]))


def possible_p(seen: ArrayLike, null: Floats) -> Floats:
    """Return :func:`permutation_p`, or nan where no outcome can be significant.

    The result is nan if even the outcome furthest from 0 has a p-value above ``LEVEL``, for example
    because outcomes are constant or there are only two or three groups.

    Examples
    --------
    >>> float(possible_p(1.0, np.array([1.0, -1.0] * 50)))
    nan
    """
    furthest = np.maximum(np.abs(seen), np.abs(null).max(axis=-1, initial=0.0))
    possible = permutation_p(furthest, null) <= LEVEL
    return np.where(possible, permutation_p(seen, null), np.nan)


def permuted_sums_p(
    times: Integers, sums: Integers, sizes: Integers, permutations: int, seed: int
) -> Floats:
    """Return p-values, of shape (words, groups), if group labels are permuted within strata.

    A unit (a name) has one list per model, and 0, 1, 2, ... of its lists contain a word; the
    statistic is the sum of these numbers over the units of a group. Permuting labels moves all
    lists of a unit together: the numbers of a stratum's units in a group that have the word in 0,
    1, 2, ... lists are multivariate hypergeometric. If no unit has more than one list, the
    distribution of the sum over strata is exact, and the p-value is the probability of all outcomes
    that are no more likely than the observed one (for one stratum, :func:`fisher_p`), but at least
    ``LEAST``. Otherwise ``permutations`` outcomes are sampled, and the p-value is the share of
    outcomes, including the observed one, that are at least as far from the mean; if fewer than
    ``FEW`` are, it is the sum of two tail probabilities (:func:`tail_of_sum`), which can be small
    enough for a family of any size. The p-value is nan if only one outcome is possible.

    Parameters
    ----------
    times : (words, strata, m + 1) array
        Number of units that have the word in 0, 1, ... m lists.
    sums : (words, groups) array
        Number of lists of a group's units that contain the word.
    sizes : (strata, groups) array
        Number of units in each group.
    """
    rng = np.random.default_rng(seed)
    exact, number = not times[:, :, 2:].any(), np.arange(times.shape[2])
    totals, groups = sizes.sum(axis=1), sizes.shape[1]
    means = times @ number / totals
    result = np.full(sums.shape, np.nan)
    for w, g in product(range(len(times)), range(groups)):
        group_size, seen = sizes[:, g], int(sums[w, g])
        if groups == 2 and g:
            result[w, g] = result[w, 0]  # with two groups, the sums are complementary
        elif exact:
            result[w, g] = _p_of_sum(seen, times[w, :, -1], group_size, totals)
        else:
            null, free = np.zeros(permutations), np.flatnonzero(group_size * (totals - group_size))
            for s in free:
                present = np.flatnonzero(times[w, s])
                if len(present) > 1:
                    units = rng.multivariate_hypergeometric(
                        times[w, s, present], group_size[s], permutations, method="marginals"
                    )
                    null += units @ number[present] - group_size[s] * means[w, s]
            if np.ptp(null):
                far, mean = abs(seen - group_size @ means[w]), group_size[free] @ means[w, free]
                result[w, g] = permutation_p(far, null)
                if result[w, g] * (1 + permutations) <= FEW:
                    arguments = times[w, free], group_size[free]
                    upper = tail_of_sum(*arguments, number, mean + far)
                    lower = tail_of_sum(*arguments, -number, far - mean)
                    result[w, g] = max(upper + lower, LEAST)
    return result


def tail_of_sum(times: Integers, sizes: Integers, values: Integers, least: float) -> float:
    """Return the probability that the values of sampled units add up to at least ``least``.

    From each stratum, some but not all units are sampled without replacement. The probability is a
    saddlepoint approximation, whose relative error is small even for tiny probabilities: Skovgaard
    (1987), Saddlepoint expansions for conditional distributions, J. Appl. Probab. 24, 875-887, with
    the second continuity correction of Daniels (1987), Tail probability approximations, Int. Stat.
    Rev. 55, 37-48. It is 0 if no sample has such a sum.

    ``times``: numbers of units, of shape (strata, kinds). ``sizes``: numbers of sampled units, of
    shape (strata,). ``values``: integer values of the kinds, of shape (kinds,).
    """
    from scipy.optimize import brentq  # the import takes half a second

    size, step = sizes[:, None].astype(np.float64), int(np.gcd.reduce(values[times.any(axis=0)]))
    steps, target = values / step, np.ceil(least / step - NEAR) - 0.5

    def tilted(slope: float) -> tuple[float, float, float, float]:
        """Return exponent, mean, variance and log determinant of an exponentially tilted sum."""
        ends = np.multiply.outer([-1.0, 1.0], np.full_like(size, np.abs(slope * steps).max() + 50))
        for _ in range(60):
            middle = ends.mean(axis=0)
            large = (times * expit(middle + slope * steps)).sum(axis=1, keepdims=True) > size
            ends = np.where(np.stack([~large, large]), middle, ends)
        chance = expit(middle + slope * steps)
        spread = times * chance * (1 - chance)
        of_size, shared = spread.sum(axis=1), spread @ steps
        exponent = (times * np.logaddexp(0, middle + slope * steps)).sum()
        exponent -= slope * target + (middle * size).sum()
        variance = (spread @ steps**2 - shared**2 / of_size).sum()
        return exponent, (times * chance @ steps).sum(), variance, np.log(of_size).sum()

    start = tilted(0.0)
    if not tilted(-STEEP)[1] < target < tilted(STEEP)[1]:
        return float(start[1] > target)
    slope = brentq(lambda tilt: tilted(tilt)[1] - target, -STEEP, STEEP)
    exponent, _, variance, determinant = tilted(slope)
    root = np.sign(slope) * np.sqrt(2 * (start[0] - exponent))
    ratio = 2 * np.sinh(slope / 2) * np.sqrt(variance * np.exp(determinant - start[3]))
    density = np.exp(-(root**2) / 2) / np.sqrt(2 * np.pi)
    return float(np.clip(ndtr(-root) - density * (1 / root - 1 / ratio), 0.0, 1.0))


def _p_of_sum(seen: int, ones: Integers, sizes: Integers, totals: Integers) -> float:
    """Return the p-value of a sum of hypergeometric numbers over strata; nan if it is constant.

    ``seen``: number of the ``ones`` that are among the ``sizes`` units of a group, over all strata.
    """
    first, mass = 0, np.ones(1)
    for stratum in zip(totals.tolist(), ones.tolist(), sizes.tolist(), strict=True):
        support, added = _hypergeometric(*stratum)
        if len(added) > 1 < len(mass):
            (old,), (new,) = np.nonzero(mass > LEAST), np.nonzero(added > LEAST)
            first, mass = first + int(old[0]), mass[old[0] : old[-1] + 1]
            support, added = support[new[0] :], added[new[0] : new[-1] + 1]
        first, mass = first + int(support[0]), np.convolve(mass, added)
    if len(mass) == 1:
        return float("nan")
    likely = mass[seen - first] if 0 <= seen - first < len(mass) else 0.0
    return max(float(mass[mass <= likely * (1 + TOLERANCE)].sum() / mass.sum()), LEAST)


def chance_p(
    true: Bools, predicted: Bools, draws: int, seed: int, clusters: Integers | None = None
) -> Floats:
    """Test whether classifiers perform differently from random predictions, by metric.

    Each p is twice the smaller tail of ``draws`` + 1 permutations, including the observed order.
    The p-values are in the order of ``classification.METRICS``, and nan for undefined metrics. The
    null hypothesis is that predictions are independent of the classes: classes are permuted over
    texts (or clusters of texts), jointly for all runs. The statistic is the mean over runs.

    Parameters
    ----------
    true : (texts,), predicted : (runs, texts)
        As in :func:`plumbline.probes.stats.classification.cells`.
    clusters : (texts,), optional
        Cluster number of each text, from 0; the texts of a cluster must have the same class. By
        default, each text is a cluster.
    """
    classes = dealt(true, np.ones_like(true), draws, seed, clusters)
    hits = predicted.astype(np.float64) @ classes  # (runs, draws)
    called, positives = predicted.sum(axis=1, keepdims=True), classes.sum(axis=0)
    counts = [hits, called - hits, positives - hits, len(true) - positives - called + hits]
    return two_tailed(metrics(np.stack(counts, axis=-1)).mean(axis=0))


def of_members(true: Bools, predicted: Bools, members: Floats) -> Floats:
    """Return the mean over runs of each metric on a group of texts, for each draw of the group.

    Input of :func:`two_tailed` for a test of equal performance on the group and on all texts. The
    null hypothesis is that predictions are independent of group membership within a class:
    membership is permuted within classes, so different class shares alone have no effect.

    Parameters
    ----------
    true : (texts,), predicted : (runs, texts)
        As in :func:`plumbline.probes.stats.classification.cells`.
    members : (texts, 1 + draws)
        Indicators from :func:`dealt`, with the classes as strata; the observed group comes first.

    Returns
    -------
    Array (1 + draws, 6), in the order of ``classification.METRICS``; nan for undefined metrics.
    """
    result: Floats = metrics(cells(true, predicted, members)).mean(axis=0)
    return result


def dealt(
    marked: Bools, stratum: Bools, draws: int, seed: int, clusters: Integers | None = None
) -> Floats:
    """Return observed marks and permutations within two strata, of shape (texts, 1 + draws).

    ``clusters``: cluster number of each text; each cluster is permuted as a unit.

    Raises ValueError if the texts of a cluster differ in mark or stratum.
    """
    unit = np.arange(len(marked)) if clusters is None else clusters
    rng = np.random.default_rng(seed)
    marks, strata = np.zeros((2, unit.max() + 1), dtype=np.bool_)
    marks[unit], strata[unit] = marked, stratum
    if (marks[unit] != marked).any() or (strata[unit] != stratum).any():
        raise ValueError("dealt: texts of a cluster must be of one class, all in the group or none")
    result = np.zeros((len(marks), draws + 1))
    result[marks, 0] = 1
    for units in (np.flatnonzero(strata), np.flatnonzero(~strata)):
        places = rng.permuted(np.tile(units, (draws, 1)), axis=1)[:, : int(marks[units].sum())]
        np.put_along_axis(result[:, 1:], places.T, 1, axis=0)
    return result[unit]


def two_tailed(values: Floats) -> Floats:
    """Return twice the smaller tail of the first draw among all draws, for each metric."""
    tails = [(side >= side[0] - NEAR).mean(axis=0) for side in (values, -values)]
    return np.where(np.isnan(values[0]), np.nan, np.minimum(1, 2 * np.minimum(*tails)))


def shuffled(clusters: Integers, draws: int, seed: int) -> Integers:
    """Return random orders of units that keep clusters together, of shape (draws, units).

    Clusters of equal size are permuted, as are the units within each cluster. The units of a
    cluster stay together because they are dependent.
    """
    rng = np.random.default_rng(seed)
    orders = np.empty((draws, len(clusters)), dtype=np.int64)
    sizes, order = np.bincount(clusters)[clusters], np.argsort(clusters, kind="stable")
    for size in np.unique(sizes):
        block = order[sizes[order] == size].reshape(-1, size)
        permuted = rng.permuted(np.tile(np.arange(len(block)), (draws, 1)), axis=1)
        orders[:, block.ravel()] = rng.permuted(block[permuted], axis=2).reshape(draws, -1)
    return orders
