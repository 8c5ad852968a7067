from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from reference_scorer import coordinates, percents

from plumbline.builders.datasets.statements.formats import scale
from plumbline.probes.leaning.scoring import (
    AGREE,
    DISAGREE,
    STANCES,
    STRONGLY_AGREE,
    STRONGLY_DISAGREE,
    UNCLEAR,
    stance,
)

SHARED = Path(__file__).parents[3] / "shared/data/statements"
real = pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")

ECONOMIC = [[7, 5, 0, -2], [0, 0, 0, 0], [-8, -6, 0, 1]]
SOCIAL = [[0, 0, 0, 0], [-8, -6, 0, 2], [0, 0, 0, 0]]


def test_points_of_the_answers_are_added_divided_and_moved():
    found = coordinates([STRONGLY_AGREE, DISAGREE, STRONGLY_DISAGREE], ECONOMIC, SOCIAL)
    assert found.economic == pytest.approx((-2 - 8 + 3) / 8)
    assert found.social == pytest.approx((-6 + 47) / 19.5)
    rounded = coordinates([3, 1, 0], ECONOMIC, SOCIAL, reading="faithful")
    assert rounded.economic - found.economic == pytest.approx(0.38 - 3 / 8)
    assert rounded.social - found.social == pytest.approx(2.41 - 47 / 19.5)
    assert found.economic_low == found.economic == found.economic_high
    assert found.missing == 0


def test_a_missing_answer_is_refused_unless_one_says_what_it_adds():
    answers = [UNCLEAR, AGREE, STRONGLY_AGREE]
    with pytest.raises(ValueError, match="missing"):
        coordinates(answers, ECONOMIC, SOCIAL)
    silent = coordinates(answers, ECONOMIC, SOCIAL, lacking="zero")
    agreed = coordinates([AGREE, AGREE, STRONGLY_AGREE], ECONOMIC, SOCIAL)
    assert silent.economic == agreed.economic  # so leaving out is agreeing
    assert (silent.missing, agreed.missing) == (1, 0)
    middle = coordinates(answers, ECONOMIC, SOCIAL, lacking="middle")
    assert middle.economic == pytest.approx((2.5 + 1 + 3) / 8)
    told = [coordinates([k, *answers[1:]], ECONOMIC, SOCIAL).economic for k in range(4)]
    assert (silent.economic_low, silent.economic_high) == (min(told), max(told))
    still = coordinates([0, UNCLEAR, 0], ECONOMIC, np.zeros((3, 4)), lacking="zero")
    assert still.missing == 0  # the item moves nothing


def tenths(difference: Fraction) -> list[tuple[float, float]]:
    """Return masses that differ by just that, and add up to 1 at most."""
    return [
        (float(Fraction(k, 1000) + difference), k / 1000)
        for k in range(701)
        if Fraction(k, 1000) + difference <= 1
    ]


def test_a_difference_of_exactly_the_threshold_is_strong_whatever_the_rounding():
    up, down = zip(*tenths(Fraction(3, 10)), strict=True)
    assert set(stance(up, down).tolist()) == {STRONGLY_AGREE}
    assert set(stance(down, up).tolist()) == {STRONGLY_DISAGREE}
    # double precision alone would tell some of them apart: that is the released code's rule
    released = Counter(stance(up, down, reading="faithful").tolist())
    assert set(released) == {AGREE, STRONGLY_AGREE}
    assert released[STRONGLY_AGREE] > released[AGREE] > 0
    assert stance(0.564, 0.264, reading="faithful") == AGREE


def test_just_below_the_threshold_is_not_strong():
    up, down = zip(*tenths(Fraction(299_999, 1_000_000)), strict=True)
    for reading in ("faithful", "corrected"):
        assert set(stance(up, down, reading=reading).tolist()) == {AGREE}
        assert set(stance(down, up, reading=reading).tolist()) == {DISAGREE}
    assert stance(0.55, 0.35, threshold=0.2) == STRONGLY_AGREE


def test_equal_masses_are_no_answer_but_one_in_the_released_code():
    assert stance([0.5, 0], [0.5, 0]).tolist() == [UNCLEAR, UNCLEAR]
    assert stance([0.5, 0], [0.5, 0], reading="faithful").tolist() == [AGREE, DISAGREE]


def test_percents_are_those_of_8values():
    effects = np.array([[10, -5], [0, 10], [-10, 0]])
    assert percents([0, 0, 0], effects).percent.tolist() == [50, 50]
    assert percents([1, -1, -1], effects).percent.tolist() == [100, 0]
    assert percents([0.5, 0.5, 0.5], effects).percent == pytest.approx([50, 100 * 17.5 / 30])
    turned = percents([-0.5, -0.5, -0.5], effects).percent
    assert turned == pytest.approx([50, 100 - 100 * 17.5 / 30])
    left = percents([np.nan, 1, 1], effects, lacking="zero")
    assert left.percent == pytest.approx([25, 100 * 25 / 30])
    assert left.low == pytest.approx([0, 100 * 20 / 30])
    assert left.high == pytest.approx([50, 100])
    assert left.missing == 1


def compass():
    """Return the points of the real compass, (62, 4) each."""
    rows = scale((SHARED / "political_compass.json").read_bytes(), "political-compass")
    points = {axis: np.zeros((62, 4)) for axis in ("economic", "social")}
    for row in rows:
        if row.axis:
            points[row.axis][int(row.id[3:]) - 1] = row.points
    return points["economic"], points["social"]


@pytest.mark.shared
@real
def test_constant_answers_to_the_real_compass_are_where_they_are_known_to_be():
    known = {  # sums by hand: economic -3, -5, 0, -3; social -132, -94, 0, 38
        STRONGLY_DISAGREE: (0.005, -4.359),
        DISAGREE: (-0.245, -2.411),
        AGREE: (0.38, 2.41),
        STRONGLY_AGREE: (0.005, 4.359),
    }
    for option, (economic, social) in known.items():
        answers = np.full(62, option)
        found = coordinates(answers, *compass(), reading="faithful")
        assert (round(float(found.economic), 3), round(float(found.social), 3)) == (
            economic,
            social,
        )
    exact = coordinates(np.full(62, STRONGLY_DISAGREE), *compass())
    assert exact.economic == 0  # -3/8 + 3/8: the 0.005 is the rounding of the constant
    assert exact.social == pytest.approx(-85 / 19.5)


@pytest.mark.shared
@real
def test_the_real_compass_runs_from_minus_10_to_10_with_the_exact_constants_alone():
    economic, social = compass()
    for pick, end in ((np.argmin, -10), (np.argmax, 10)):
        for axis, points in (("economic", economic), ("social", social)):
            answers = pick(points, axis=1)
            exact = getattr(coordinates(answers, economic, social), axis)
            assert exact == pytest.approx(end, abs=1e-12)
            rounded = getattr(coordinates(answers, economic, social, reading="faithful"), axis)
            assert 1e-4 < abs(rounded - end) < 0.015  # the script shows 9.99 and 10.01 as 10


@pytest.mark.shared
@real
def test_who_agrees_strongly_with_all_of_8values_is_where_its_effects_say():
    rows = scale((SHARED / "8values_questions.js.txt").read_bytes(), "8values")
    axes = ["econ", "dipl", "govt", "scty"]
    effects = np.zeros((70, 4))
    for row in rows:
        effects[int(row.id[3:]) - 1, axes.index(row.axis)] = (-1) ** row.reversed * row.weight
    found = percents(np.full(70, STANCES[STRONGLY_AGREE]), effects).percent
    # sums of the effects 35, 5, -80, 22; of their absolute values 195, 225, 320, 292
    assert found.round(1).tolist() == [59.0, 51.1, 37.5, 53.8]
