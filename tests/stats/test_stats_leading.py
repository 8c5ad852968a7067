import numpy as np
import pytest
from scipy.stats import spearmanr

from plumbline.probes.stats.leading import deviations, leading, permutation_p, rank_correlations
from plumbline.probes.stats.pmi import pmi

SEED = 77


def test_deviations_are_pmi_replicate_by_replicate():
    print("seed", SEED)
    tables = np.random.default_rng(SEED).integers(0, 30, (6, 3, 5)).astype(float)
    found = deviations(tables, 0.5)
    for r in range(5):
        assert np.array_equal(found[..., r], pmi(tables[..., r], 0.5))


def test_words_that_are_merged_count_as_if_they_were_apart():
    print("seed", SEED)
    counts = np.random.default_rng(SEED).integers(1, 30, (6, 3)).astype(float)
    merged = np.concatenate([counts[:4], counts[4:].sum(axis=0, keepdims=True)])
    found = deviations(merged[:, :, None], 0.5, merged=2)[..., 0]
    assert found == pytest.approx(pmi(counts, 0.5)[:4])


def test_leading_words_worked_by_hand():
    # group 0 prefers words 0, 1, 2 in this order, group 1 the other way round; two classes
    values = np.array([[3.0, 0.0], [2.0, 1.0], [1.0, 2.0], [0.0, 3.0]])[:, :, None]
    found = leading(values, np.array([0, 0, 0, 1]), 2, 2)
    assert found[..., 0].tolist() == [[1.0, 0.0], [0.5, 0.5]]
    everything = leading(values, np.array([0, 0, 0, 1]), 4, 2)
    assert everything[..., 0].tolist() == [[0.75, 0.25]] * 2
    with pytest.raises(ValueError, match="5 largest of 4"):
        leading(values, np.array([0, 0, 0, 1]), 5, 2)


def test_of_equal_deviations_the_first_is_taken():
    values = np.array([1.0, 1.0 + 1e-13, 0.0])[:, None, None]
    assert leading(values, np.array([0, 1, 1]), 1, 2).ravel().tolist() == [1.0, 0.0]


def test_rank_correlations_are_scipys():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    x, y = rng.integers(0, 9, (2, 30, 4)).astype(float)
    found = rank_correlations(x, y)
    assert found == pytest.approx([spearmanr(x[:, r], y[:, r]).statistic for r in range(4)])
    assert np.isnan(rank_correlations(np.ones((3, 1)), x[:3, :1])[0])


def test_permutation_p_counts_the_outcome_seen():
    null = np.arange(-9.0, 10.0)
    assert permutation_p(9.0, null) == 3 / 20
    assert permutation_p(-10.0, null) == 1 / 20
    assert permutation_p(0.0, null) == 1
