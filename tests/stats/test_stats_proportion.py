from math import sqrt

import pytest

from probes.stats.proportion import wilson


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_newcombe_1998_table_1_method_3(hits, n, low, high):
    found = wilson(hits, n)
    assert found.value == hits / n
    assert found.n == n
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_limits_are_where_the_score_test_just_rejects():
    found = wilson(7, 40, confidence=0.9)
    for limit in (found.low, found.high):
        z = (7 / 40 - limit) / sqrt(limit * (1 - limit) / 40)
        assert abs(z) == pytest.approx(1.6448536269514722)  # 95% point of the normal


def test_all_and_none_mirror_each_other_and_stay_within_0_and_1():
    none, every = wilson(0, 12), wilson(12, 12)
    assert 0 <= none.low < 1e-15
    assert 1 - 1e-15 < every.high <= 1
    assert none.high == pytest.approx(1 - every.low)


@pytest.mark.parametrize(("hits", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_what_is_no_proportion_is_refused(hits, n):
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(hits, n)
