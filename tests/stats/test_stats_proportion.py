from math import sqrt

import numpy as np
import pytest

from plumbline.probes.stats.intervals import newcombe, wilson

SEED = 1998


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


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((0, 10), (0, 20), -0.1611, 0.2775),
        ((0, 10), (0, 10), -0.2775, 0.2775),
        ((10, 10), (0, 20), 0.6791, 1.0000),
        ((10, 10), (0, 10), 0.6075, 1.0000),
    ],
)
def test_newcombe_1998_differences_table_2_method_10(first, second, low, high):
    found = newcombe((first[0], second[0]), (first[1], second[1]))
    assert found.value == pytest.approx(first[0] / first[1] - second[0] / second[1])
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_swapping_the_groups_mirrors_the_interval():
    there, back = newcombe((12, 30), (40, 55)), newcombe((30, 12), (55, 40))
    assert there.value == pytest.approx(-back.value)
    assert there.low == pytest.approx(-back.high)
    assert there.high == pytest.approx(-back.low)
    assert there.n == 95


def coverage(draw, truth, n):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    held = 0
    for _ in range(2000):
        sums = tuple(draw(rng, share, size).sum() for share, size in zip(truth, n, strict=True))
        found = newcombe(sums, n)
        held += found.low <= truth[0] - truth[1] <= found.high
    return held / 2000


@pytest.mark.parametrize("truth", [(0.05, 0.05), (0.3, 0.1), (0.02, 0.2)])
def test_intervals_hold_the_difference_at_their_nominal_rate(truth):
    held = coverage(lambda rng, share, size: rng.random(size) < share, truth, (100, 100))
    assert 0.93 <= held <= 0.985


def test_intervals_of_parts_are_too_wide_rather_than_too_narrow():
    def draw(rng, share, size):
        return rng.beta(2 * share, 2 * (1 - share), size)

    assert coverage(draw, (0.3, 0.15), (100, 100)) > 0.98
