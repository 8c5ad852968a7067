"""t tests of a mean, and of its equivalence with 0."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from plumbline.probes.stats.intervals import equivalence, mean_p


def tost(values, bound):
    error = values.std(ddof=1) / len(values) ** 0.5
    return equivalence(values.mean(), error, len(values) - 1, bound)


def test_it_is_the_larger_of_two_one_sided_t_tests():
    values = np.array([0.12, -0.03, 0.05, 0.07, -0.02, 0.1])
    for bound in (0.05, 0.1, 0.3):
        above = ttest_1samp(values, -bound, alternative="greater").pvalue
        below = ttest_1samp(values, bound, alternative="less").pvalue
        assert tost(values, bound).p == pytest.approx(max(above, below))
    low, high = ttest_1samp(values, 0).confidence_interval(0.9)
    found = tost(values, 0.1)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert mean_p(values) == pytest.approx(ttest_1samp(values, 0).pvalue)


def test_pairs_without_spread_are_no_evidence():
    for values, equal, different in (
        (0.0, np.nan, 1.0),
        (0.05, np.nan, np.nan),
        (0.1, 1.0, np.nan),
    ):
        found = np.full(4, values)
        np.testing.assert_array_equal([tost(found, 0.1).p, mean_p(found)], [equal, different])
