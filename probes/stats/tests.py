"""Permutation tests, of groups, pairs and classifiers; and a test of equivalence."""

from __future__ import annotations

from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import betaln, stdtr, stdtrit

from plumbline.probes.stats.classification import cells, metrics, sign_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

NEAR = 1e-9  # values as large as each other up to rounding count as equally large
TOLERANCE = 1e-7  # two tables as likely as each other up to rounding count as equally likely
BLOCK = 2_000  # relabellings at once: bounds memory
EXACT = 20_000  # up to so many relabellings all are gone through
EXACT_PAIRS = 14  # up to so many pairs that differ all sign patterns are gone through
PATTERNS = 1_024  # of signs at once: bounds memory
EXACT_TEXTS = 12  # up to so many texts that differ all exchanges are gone through


class Permutation(NamedTuple):
    """Differences and p-values of several outcomes, each (outcomes,)."""

    difference: NDArray[np.float64]
    p: NDArray[np.float64]
    exact: NDArray[np.bool_]


def permutation_test(
    first: NDArray[np.float64], second: NDArray[np.float64], replicates: int, seed: int
) -> Permutation:
    """Unpaired two-sided permutation test of mean(first) - mean(second).

    The null is that the two groups are one: every way to split all units into groups of these
    sizes is as likely as the other. The p-value is the share of splits whose difference of means
    is at least as far from 0 as the one seen.

    Parameters
    ----------
    first, second : (n, outcomes) and (m, outcomes) arrays
        A row a unit (the thing that is relabelled), a column an outcome; each is tested alone.
    replicates, seed
        Of the Monte Carlo test, where there is one.

    Returns
    -------
    Permutation
        ``exact`` says for which outcomes all splits were counted: always where the values are 0
        and 1 (the number of ones in a group is hypergeometric), else where there are no more than
        ``EXACT`` splits. Elsewhere splits are drawn, the one seen counts among them, and
        p = (1 + hits) / (1 + replicates), never 0.

    Notes
    -----
    Fisher's exact test sums the outcomes that are no more likely than the one seen. Where the
    groups are equally large the hypergeometric is symmetric and falls off to both sides, so that
    the outcomes no more likely, the differences at least as large, and twice the smaller tail are
    the same: 30 of 100 against 15 of 100 has p = 0.017149 by all three. In groups of different
    sizes they differ; this is the second.

    References
    ----------
    Good (2005), Permutation, Parametric and Bootstrap Tests of Hypotheses; Phipson and Smyth
    (2010), Permutation p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9(1), 39.

    Examples
    --------
    Fisher's tea (Agresti 2002, Table 3.8): 3 of 4 cups guessed right against 1 of 4.

    >>> tea = permutation_test(np.array([[1, 1, 1, 0]]).T, np.array([[1, 0, 0, 0]]).T, 1, 1)
    >>> tea.p.round(4).tolist()
    [0.4857]
    """
    one, two = (np.asarray(group, dtype=np.float64) for group in (first, second))
    if one.ndim != 2 or two.ndim != 2 or one.shape[1] != two.shape[1]:
        raise ValueError("two arrays (units, outcomes) with the same outcomes are needed")
    if not len(one) or not len(two):
        raise ValueError("a group is empty")
    pooled = np.concatenate([one, two])
    if not np.isfinite(pooled).all():
        raise ValueError("a value is not finite")
    n, total = len(one), len(pooled)
    difference: NDArray[np.float64] = one.mean(axis=0) - two.mean(axis=0)
    p = np.ones(pooled.shape[1])
    binary = ((pooled == 0) | (pooled == 1)).all(axis=0)
    for column in np.flatnonzero(binary):
        ones = int(pooled[:, column].sum())
        p[column] = _hypergeometric(int(one[:, column].sum()), ones, n, total)
    rest = np.flatnonzero(~binary)
    few = comb(total, n) <= EXACT
    if len(rest):
        splits = _all(total, n) if few else _drawn(total, n, replicates, seed)
        hits, number = _as_far(pooled[:, rest], difference[rest], n, splits)
        p[rest] = hits / number if few else (1 + hits) / (1 + number)
    return Permutation(difference, p, binary | few)


def _hypergeometric(seen: int, ones: int, n: int, total: int) -> float:
    """Return the probability of a difference of shares at least as large, in whole numbers."""
    m = total - n
    support = np.arange(max(0, ones - m), min(ones, n) + 1)
    distance = np.abs(support * m - (ones - support) * n)
    extreme = distance >= abs(seen * m - (ones - seen) * n)
    weights = _hypergeometric_weights(support, total, ones, n)
    return float(weights[extreme].sum() / weights.sum())


def _as_far(
    pooled: NDArray[np.float64],
    difference: NDArray[np.float64],
    n: int,
    splits: Iterator[NDArray[np.float64]],
) -> tuple[NDArray[np.int64], int]:
    """Count splits that are at least as far from 0, and all splits."""
    total = len(pooled)
    sums = pooled.sum(axis=0)
    scale = np.abs(pooled).max(axis=0)
    hits = np.zeros(len(difference), dtype=np.int64)
    number = 0
    for members in splits:  # (splits, units), 1 where a unit falls into the first group
        inside = members @ pooled
        found = inside / n - (sums - inside) / (total - n)
        hits += (np.abs(found) >= np.abs(difference) - NEAR * scale).sum(axis=0)
        number += len(members)
    return hits, number


def _all(total: int, n: int) -> Iterator[NDArray[np.float64]]:
    every = combinations(range(total), n)
    while chosen := list(islice(every, BLOCK)):
        members = np.zeros((len(chosen), total))
        np.put_along_axis(members, np.array(chosen), 1.0, axis=1)
        yield members


def _drawn(total: int, n: int, replicates: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    labels = np.zeros(total)
    labels[:n] = 1.0
    for start in range(0, replicates, BLOCK):
        size = min(BLOCK, replicates - start)
        yield rng.permuted(np.broadcast_to(labels, (size, total)), axis=1)


def fisher_p(with_word: NDArray[np.int64], group_sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Exact two-sided p-values under permutation of the group labels over the names.

    All names have lists of one length, so permuting labels leaves everything fixed but how many
    names with the word fall into the group: hypergeometric. The p-value is the probability of
    all outcomes no more likely than the one seen; the same as Fisher's exact test.

    Parameters
    ----------
    with_word : (words, groups) array
        Names whose list has the word.
    group_sizes : (groups,) array
        Names in each group.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Agresti (2002), Categorical Data
    Analysis, section 3.5.1.

    Examples
    --------
    Fisher's tea (Agresti 2002, Table 3.8): 3 of 4 cups guessed right.

    >>> p = fisher_p(np.array([[3, 1]]), np.array([4, 4]))
    >>> p.round(4).tolist()
    [[0.4857, 0.4857]]
    """
    names = int(group_sizes.sum())
    result = np.ones(with_word.shape)
    for g, size in enumerate(group_sizes):
        for having in np.unique(with_word.sum(axis=1)):
            rows = np.flatnonzero(with_word.sum(axis=1) == having)
            support = np.arange(max(0, having + size - names), min(having, size) + 1)
            if not len(support):
                continue
            mass = _hypergeometric_weights(support, names, int(having), int(size))
            order = np.argsort(mass, kind="stable")
            running = np.cumsum(mass[order])
            seen = mass[with_word[rows, g] - support[0]]
            last = np.searchsorted(mass[order], seen * (1 + TOLERANCE), side="right")
            result[rows, g] = running[last - 1] / running[-1]
    return result


def _hypergeometric_weights(
    support: NDArray[np.int64], total: int, ones: int, n: int
) -> NDArray[np.float64]:
    """Return what probabilities are proportional to; SciPy's take a second to import."""
    rest = total - ones - n
    log = -betaln(support + 1, ones - support + 1) - betaln(n - support + 1, rest + support + 1)
    result: NDArray[np.float64] = np.exp(log - log.max())
    return result


def permutation_p(seen: float, null: NDArray[np.float64]) -> float:
    """Return the two-sided p-value: the share of outcomes as far from 0 as the one seen, or more.

    The one seen is one of them, so that p is never 0 (Phipson and Smyth 2010, equation 2).

    Examples
    --------
    >>> permutation_p(0.2, np.array([0.1, -0.2, 0.0]))
    0.5
    """
    return float((1 + (np.abs(null) >= abs(seen) - 1e-9).sum()) / (1 + len(null)))


def permuted_sums_p(
    times: NDArray[np.int64],
    sums: NDArray[np.int64],
    sizes: NDArray[np.int64],
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Two-sided p-values under permutation of the group labels over the units.

    A unit (a name) has a word in 0, 1, 2, ... lists, one of each model; the statistic is the sum
    over the units of a group. Permuting labels moves all lists of a unit together: how many units
    with 0, 1, 2, ... lists fall into a group is multivariate hypergeometric, from which
    ``permutations`` outcomes are drawn. The p-value is the share of outcomes, the one seen
    included, at least as far from the mean as the one seen; it is valid for any number of them. If
    no unit has more than one list it is :func:`fisher_p`, exact.

    Parameters
    ----------
    times : (words, m + 1) array
        How many units have the word in 0, 1, ... m lists.
    sums : (words, groups) array
        Lists of a group's units that have the word.
    sizes : (groups,) array
        Units in each group.

    References
    ----------
    Phipson and Smyth (2010), Stat. Appl. Genet. Mol. Biol. 9(1), equation 2.
    """
    if not times[:, 2:].any():
        return fisher_p(sums, sizes)
    rng = np.random.default_rng(seed)
    number = np.arange(times.shape[1])
    result = np.ones(sums.shape)
    for w, units in enumerate(times):
        there = np.flatnonzero(units)
        for g, size in enumerate(sizes):
            drawn = rng.multivariate_hypergeometric(
                units[there], int(size), permutations, method="marginals"
            )
            # whole numbers, the number of units times the distance: nothing is lost to rounding
            middle = int(size) * int(units @ number)
            total = int(units.sum())
            far = np.abs(drawn @ number[there] * total - middle)
            seen = abs(int(sums[w, g]) * total - middle)
            result[w, g] = (1 + int((far >= seen).sum())) / (permutations + 1)
    return result


def sign_flip_p(differences: NDArray[np.float64], flips: int, seed: int) -> NDArray[np.float64]:
    """Test whether paired differences are 0 on average; return two-sided p-values, (outcomes,).

    The null is that the two members of a pair may be exchanged: the sign of each difference is as
    likely one way as the other, independently of the other pairs. The p-value is the share of sign
    patterns whose sum is at least as far from 0 as the one seen.

    Parameters
    ----------
    differences : (pairs, outcomes) array
        One member of a pair minus the other, times the weight of the pair where pairs have
        weights. A pair's outcomes flip together; each outcome is tested alone. nan: the pair lacks
        that outcome.
    flips, seed
        Patterns drawn where more than ``EXACT_PAIRS`` pairs differ in some outcome; the pattern
        seen is then one of them, and p = (1 + hits) / (1 + flips), never 0. Else all are gone
        through.

    Returns
    -------
    (outcomes,) array
        1 where no pair differs.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Permutation
    p-values should never be zero, Stat. Appl. Genet. Mol. Biol. 9(1), 39.

    Examples
    --------
    All three pairs differ the same way: two of the eight patterns are as extreme.

    >>> sign_flip_p(np.array([[1.0], [2.0], [3.0]]), 99, 1).tolist()
    [0.25]
    """
    values = np.nan_to_num(np.asarray(differences, dtype=np.float64))
    values = values[(values != 0).any(axis=1)]
    seen = np.abs(values.sum(axis=0)) - NEAR * np.abs(values).sum(axis=0)
    hits = np.zeros(values.shape[1])
    exact = len(values) <= EXACT_PAIRS
    number = 0
    for signs in _signs(len(values)) if exact else _drawn_signs(len(values), flips, seed):
        hits += (np.abs(signs @ values) >= seen).sum(axis=0)
        number += len(signs)
    p: NDArray[np.float64] = hits / number if exact else (1 + hits) / (1 + number)
    return p


def _signs(pairs: int) -> Iterator[NDArray[np.float64]]:
    """Yield every pattern of signs once."""
    for start in range(0, 2**pairs, PATTERNS):
        numbers = np.arange(start, min(2**pairs, start + PATTERNS))[:, None]
        yield (1 - 2 * ((numbers >> np.arange(pairs)) & 1)).astype(np.float64)


def _drawn_signs(pairs: int, flips: int, seed: int) -> Iterator[NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    for start in range(0, flips, PATTERNS):
        size = min(PATTERNS, flips - start)
        yield (1 - 2 * rng.integers(0, 2, (size, pairs))).astype(np.float64)


def chance_p(
    true: Bools,
    predicted: Bools,
    draws: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether classifiers do as well as if predictions had been dealt out at random.

    The null is that texts of both classes get the same predictions: the classes are permuted among
    the texts (or clusters of texts), the predictions of all runs staying together. The statistic
    is the mean over runs.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    predicted : (runs, texts)
        Whether each run calls it so.
    clusters : (texts,), optional
        Number of the cluster that each text is of, from 0, all of one class; each is its own
        without.

    Returns
    -------
    (6,) array
        Twice the smaller tail, the order seen counted among the ``draws`` + 1, in the order of
        :data:`plumbline.probes.stats.classification.METRICS`; nan where a measure is.
    """
    unit = np.arange(len(true)) if clusters is None else clusters
    dealt = _dealt(_of_units(true, unit), [np.arange(unit.max() + 1)], draws, seed)[unit]
    hits = predicted.astype(np.float64) @ dealt  # (runs, draws)
    called, positives = predicted.sum(axis=1, keepdims=True), dealt.sum(axis=0)
    counts = [hits, called - hits, positives - hits, len(true) - positives - called + hits]
    return _two_sided(metrics(np.stack(counts, axis=-1)).mean(axis=0))


def membership_p(
    true: Bools,
    predicted: Bools,
    member: Bools,
    draws: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether classifiers do otherwise on a group of texts than on all texts.

    The null is that, of texts of one class, those of the group get the same predictions as the
    others: who is of the group is permuted within each class, so that a group with other shares of
    the classes is not for this alone another one. The statistic is the difference between the
    group and all texts of the mean over runs.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    predicted : (runs, texts)
        Whether each run calls it so.
    member : (texts,)
        Whether it is of the group.
    clusters : (texts,), optional
        As in :func:`chance_p`, all of one class and in the group or not; they are permuted whole.

    Returns
    -------
    (6,) array
        Twice the smaller tail, as in :func:`chance_p`.
    """
    unit = np.arange(len(true)) if clusters is None else clusters
    positive = _of_units(true, unit)
    strata = [np.flatnonzero(positive), np.flatnonzero(~positive)]
    dealt = _dealt(_of_units(member, unit), strata, draws, seed)[unit]
    return _two_sided(metrics(cells(true, predicted, dealt)).mean(axis=0))


def _of_units(values: Bools, unit: NDArray[np.int64]) -> Bools:
    """Return the value of each unit, which its texts share."""
    found = np.zeros(unit.max() + 1, dtype=np.bool_)
    found[unit] = values
    if (found[unit] != values).any():
        raise ValueError("texts of a cluster must be of one class, and in the group or not")
    return found


def _dealt(marked: Bools, strata: list[NDArray[np.int64]], draws: int, seed: int) -> Floats:
    """Return marks as they are and permuted within strata of units, (units, 1 + draws)."""
    rng = np.random.default_rng(seed)
    found = np.zeros((len(marked), draws + 1))
    found[marked, 0] = 1
    for own in strata:
        number = int(marked[own].sum())
        places = rng.permuted(np.tile(own, (draws, 1)), axis=1)[:, :number]
        np.put_along_axis(found[:, 1:], places.T, 1, axis=0)
    return found


def _two_sided(values: Floats) -> Floats:
    """Return twice the smaller tail of the first of several values, (draws + 1, measures)."""
    tails = [(side >= side[0] - NEAR).mean(axis=0) for side in (values, -values)]
    return np.where(np.isnan(values[0]), np.nan, np.minimum(1, 2 * np.minimum(*tails)))


def mcnemar(one: Bools, other: Bools) -> float:
    """Test whether two classifiers are right equally often; return the exact two-sided p-value.

    The null is that of the texts that one of them alone has right each has half.

    Parameters
    ----------
    one, other : (texts,)
        Whether each has the text right.

    References
    ----------
    McNemar (1947), Psychometrika 12, p. 153-157; the exact form is a sign test.

    Examples
    --------
    One alone is right on nine texts, the other alone on one: 2 (1 + 10) / 2^10.

    >>> one = np.array([True] * 9 + [False] + [True] * 20)
    >>> round(mcnemar(one, np.array([False] * 9 + [True] + [True] * 20)), 6)
    0.021484
    """
    alone, lost = int((one & ~other).sum()), int((other & ~one).sum())
    return sign_p(alone, lost)


def exchange_p(
    true: Bools,
    one: Bools,
    other: Bools,
    exchanges: int,
    seed: int,
    clusters: NDArray[np.int64] | None = None,
) -> Floats:
    """Test whether two classifiers do equally well, each trained several times.

    The null is that which is which does not matter: the predictions of both for a text may be
    exchanged, those of all runs together, each text (or cluster of texts) by itself. The statistic
    is the difference of the mean over runs of each measure.

    Parameters
    ----------
    true : (texts,)
        Whether each is of the positive class.
    one, other : (runs, texts)
        Whether each run calls it so; run by run in pairs.
    clusters : (texts,), optional
        Number of the cluster that each text is of, from 0; each is its own without.
    exchanges, seed
        Choices of clusters drawn where more than ``EXACT_TEXTS`` differ: the one seen is then one
        of them, and p = (1 + hits) / (1 + exchanges). Else all are gone through.

    Returns
    -------
    (6,) array
        Two-sided p-values in the order of ``classification.METRICS``; nan where a
        measure is.

    References
    ----------
    Yeh (2000), More accurate tests for the statistical significance of result differences,
    COLING, section 3.3; Noreen (1989), Computer-Intensive Methods for Testing Hypotheses.

    Examples
    --------
    Right on three texts of three against none: two of the eight exchanges are as extreme.

    >>> true = np.array([True, True, True])
    >>> exchange_p(true, true[None], ~true[None], 99, 1)[0]
    np.float64(0.25)
    """
    differ = np.flatnonzero((one != other).any(axis=0))
    units, unit = np.unique(differ if clusters is None else clusters[differ], return_inverse=True)
    exact = len(units) <= EXACT_TEXTS
    if exact:
        numbers = np.arange(2 ** len(units))[:, None]
        swapped = ((numbers >> np.arange(len(units))) & 1).astype(np.float64)
    else:
        drawn = np.random.default_rng(seed).integers(0, 2, (exchanges, len(units)))
        swapped = np.concatenate([np.zeros((1, len(units))), drawn])  # as they are first
    swapped = swapped[:, unit]
    before = [cells(true, side) for side in (one, other)]
    own, others = (cells(true[differ], side[:, differ], swapped.T) for side in (one, other))
    moved = others - own
    first, second = (metrics(before[0] + moved), metrics(before[1] - moved))
    apart = np.abs((first - second).mean(axis=0))  # (exchanges, measures)
    p = (apart >= apart[0] - NEAR).mean(axis=0)
    return np.where(np.isnan(apart[0]), np.nan, p)


class Equivalence(NamedTuple):
    """What two one-sided tests say of a mean difference."""

    mean: float
    low: float  # the interval of confidence 1 - 2 level: inside the bounds if p is at most level
    high: float
    p: float  # the larger of the two
    p_difference: float  # two-sided, of the t test against 0
    n: int


def tost(differences: NDArray[np.float64], bound: float, level: float = 0.05) -> Equivalence:
    """Test whether a mean difference lies strictly between -bound and bound.

    The null is that it does not: |mean| >= bound. Two one-sided t tests over pairs, which are
    taken as independent draws from a normal distribution.

    Parameters
    ----------
    differences : (pairs,) array
        One member of each pair minus the other.
    bound
        The smallest difference that would matter, chosen before looking.
    level
        Of each test.

    Raises
    ------
    ValueError
        If there are fewer than two pairs, or the bound is not positive.

    References
    ----------
    Schuirmann (1987), A comparison of the two one-sided tests procedure and the power approach,
    J. Pharmacokinet. Biopharm. 15(6), section 3.

    Examples
    --------
    Mean 0.02, standard error 0.0183, bound 0.1: t = 6.57 and -4.38 on 3 degrees of freedom.

    >>> found = tost(np.array([-0.02, 0.0, 0.04, 0.06]), 0.1)
    >>> round(found.mean, 3), round(found.p, 4)
    (0.02, 0.011)
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError("needs a vector of two differences at least")
    if not bound > 0:
        raise ValueError("the bound must be positive")
    n, mean = len(values), float(values.mean())
    error = float(values.std(ddof=1)) / np.sqrt(n)
    if error == 0:
        return Equivalence(mean, mean, mean, float(abs(mean) >= bound), float(mean == 0), n)
    above, below = (mean + bound) / error, (mean - bound) / error
    p = max(float(stdtr(n - 1, -above)), float(stdtr(n - 1, below)))
    reach = float(stdtrit(n - 1, 1 - level)) * error
    apart = 2 * float(stdtr(n - 1, -abs(mean / error)))
    return Equivalence(mean, mean - reach, mean + reach, p, apart, n)
