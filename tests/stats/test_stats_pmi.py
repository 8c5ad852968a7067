import itertools
from collections import Counter
from fractions import Fraction
from math import comb, inf, log

import numpy as np
import pytest
from scipy.sparse import csr_array

from plumbline.probes.stats import bootstrap as resampling
from plumbline.probes.stats.pmi import intervals, pmi, weighted
from plumbline.probes.stats.tests import fisher_p

SEED = 4711


def bootstrap(lists, groups, clusters, smoothing, replicates, seed, confidence=0.95):
    """Resample clusters, numbers from 0 on, and return the intervals of PMI."""
    bits = resampling.bits(np.arange(clusters.max() + 1).astype(np.uint64), replicates, seed)
    weights = resampling.exponential(bits) if smoothing else resampling.poisson(bits)
    draws = weighted(lists, groups, int(groups.max()) + 1, weights[clusters])
    if smoothing:
        draws /= resampling.GRAIN
    return intervals(draws, smoothing, seed, confidence)


def test_pmi_worked_by_hand():
    # 10 lists of one word: "kind" for 1 man and 3 women, "strong" for 5 men and 1 woman
    found = pmi(np.array([[1, 3], [5, 1]]))
    assert found == pytest.approx(
        np.array([[log(10 / 24), log(30 / 16)], [log(50 / 36), log(10 / 24)]])
    )


def test_pmi_smoothed_worked_by_hand():
    # one half more in each of the four cells: total 12, rows 5 and 7, columns 7 and 5
    found = pmi(np.array([[1, 3], [5, 1]]), smoothing=0.5)
    assert found[0] == pytest.approx([log(1.5 * 12 / (5 * 7)), log(3.5 * 12 / (5 * 5))])
    assert found[1] == pytest.approx([log(5.5 * 12 / (7 * 7)), log(1.5 * 12 / (7 * 5))])


def test_pmi_implies_probabilities_that_sum_to_one():
    rng = np.random.default_rng(SEED)
    for _ in range(100):
        counts = rng.integers(0, 40, (int(rng.integers(2, 12)), int(rng.integers(2, 5)))) * 1.0
        counts[0, 0] = 0
        counts[:, -1] += 1  # no empty word
        counts[-1] += 1  # no empty group
        share = counts.sum(axis=0) / counts.sum()
        assert (np.exp(pmi(counts)) @ share) == pytest.approx(np.ones(len(counts)))


def test_pmi_of_empty_cells():
    counts = np.array([[0, 4, 2], [3, 0, 5], [1, 1, 1]])
    assert ((pmi(counts) == -inf) == (counts == 0)).all()
    assert np.isfinite(pmi(counts, smoothing=0.5)).all()


def test_pmi_of_independence_is_zero():
    words, groups = np.array([2.0, 3.0, 10.0]), np.array([1.0, 4.0])
    assert pmi(np.outer(words, groups)) == pytest.approx(np.zeros((3, 2)), abs=1e-12)


def test_fisher_p_of_30_against_15_of_100():
    # two-sided Fisher p published for this table; and once more in whole numbers
    p = fisher_p(np.array([[30, 15]]), np.array([100, 100]))
    assert p[0] == pytest.approx([0.017149, 0.017149], abs=5e-7)
    ways = [comb(45, x) * comb(155, 100 - x) for x in range(46)]
    assert p[0, 0] == pytest.approx(
        float(Fraction(sum(w for w in ways if w <= ways[30]), sum(ways)))
    )


def test_fisher_p_of_three_groups_by_enumeration():
    labels = (0, 1, 1, 1, 2, 2, 2)
    sizes = np.bincount(labels)
    for having in range(1, len(labels)):
        has = [1] * having + [0] * (len(labels) - having)
        seen = np.array(
            [sum(h for h, x in zip(has, labels, strict=True) if x == g) for g in range(len(sizes))]
        )
        for g in range(len(sizes)):
            outcomes = Counter(
                sum(h for h, x in zip(has, relabelled, strict=True) if x == g)
                for relabelled in itertools.permutations(labels)
            )
            as_rare = sum(n for n in outcomes.values() if n <= outcomes[seen[g]])
            p = fisher_p(seen[None, :], sizes)[0, g]
            assert p == pytest.approx(as_rare / outcomes.total()), (having, g)


def test_fisher_p_is_one_where_nothing_varies():
    sizes = np.array([3, 2, 0])
    assert (fisher_p(np.array([[3, 2, 0], [0, 0, 0]]), sizes) == 1).all()


def test_intervals_of_small_counts():
    words = np.array([0] * 10 + [1] * 9 + [0])
    lists = csr_array(np.eye(2)[words])
    genders = np.repeat([0, 1], 10)
    plain = bootstrap(lists, genders, np.arange(20), 0.0, 400, 1)
    assert plain.low[1, 0] == plain.high[1, 0] == -inf  # never counted: no width at all
    assert plain.low[0, 1] == -inf  # counted once: left out of more than 1 in 40 draws
    assert np.isfinite(plain.high[0, 1])
    smoothed = bootstrap(lists, genders, np.arange(20), 0.5, 400, 1)
    assert np.isfinite(smoothed.low).all()
    assert np.isfinite(smoothed.high).all()
    assert (smoothed.low < pmi(np.array([[10, 1], [0, 9]]), 0.5)).all()


def test_intervals_smoothed_are_those_of_a_dirichlet():
    """Exponential weights and a Gamma add up to Gamma(count + smoothing) in every cell."""
    counts = np.array([[3, 1], [2, 4], [0, 2]])
    cells = [(w, g) for w in range(3) for g in range(2) for _ in range(counts[w, g])]
    words, genders = (np.array(column) for column in zip(*cells, strict=True))
    found = bootstrap(csr_array(np.eye(3)[words]), genders, np.arange(12), 0.5, 40_000, 1)
    drawn = np.random.default_rng(SEED).dirichlet((counts + 0.5).ravel(), 400_000)
    values = pmi(drawn.reshape(-1, 3, 2))
    # as far apart as the errors of both simulations: four parts in a thousand of the draws
    for share, limit in ((0.025, found.low), (0.975, found.high)):
        near, far = (np.quantile(values, share + step, axis=0) for step in (-0.004, 0.004))
        assert (near < limit).all()
        assert (limit < far).all()


def test_pmi_of_merged_words():
    counts = np.random.default_rng(77).integers(1, 30, (6, 3)).astype(float)
    merged = np.concatenate([counts[:4], counts[4:].sum(axis=0, keepdims=True)])
    assert pmi(merged, 0.5, merged=2)[:4] == pytest.approx(pmi(counts, 0.5)[:4])
