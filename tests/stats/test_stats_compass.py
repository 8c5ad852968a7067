"""The rule that turns two masses into one of four options."""

from collections import Counter
from fractions import Fraction

from plumbline.probes.leaning.scoring import (
    AGREE,
    DISAGREE,
    STRONGLY_AGREE,
    STRONGLY_DISAGREE,
    UNCLEAR,
    stance,
)


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
