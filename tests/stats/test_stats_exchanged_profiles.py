"""Exchanging profiles between two descriptions: by hand against the estimator, and rates."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from plumbline.probes.stereotypes.similarity import EXACT, Exchanged, exchange, rsa, together


def profiles(groups, seed, trainings=2):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return rng.random((groups, 5)), *rng.random((2, trainings, groups, 5))


@pytest.mark.parametrize("diagonal", [True, False])
def test_every_pattern_is_the_difference_of_two_similarities(diagonal):
    base, one, other = profiles(4, 1)
    wanted = []
    for pattern in product([False, True], repeat=4):
        over = np.array(pattern)[None, :, None]
        mixed, rest = np.where(over, other, one), np.where(over, one, other)
        wanted.append(
            np.mean(
                [
                    rsa(base, m, diagonal=diagonal) - rsa(base, r, diagonal=diagonal)
                    for m, r in zip(mixed, rest, strict=True)
                ]
            )
        )
    found = exchange(base, one, other, 99, [1], diagonal=diagonal)
    assert sorted(found.drawn) == pytest.approx(sorted(wanted), abs=1e-9)
    assert found.seen == pytest.approx(wanted[0], abs=1e-9)
    assert found.p() == np.mean(np.abs(wanted) >= abs(wanted[0]) - 1e-9)


def test_many_groups_have_drawn_patterns_and_never_p_0():
    groups = EXACT + 1
    base, _, other = profiles(groups, 2)
    found = exchange(base, np.stack([base, base]), other, 199, [2], diagonal=False)
    assert (len(found.drawn), found.exact) == (199, False)
    assert found.p() == 1 / 200
    again = exchange(base, np.stack([base, base]), other, 199, [2], diagonal=False)
    assert (again.drawn == found.drawn).all()


def test_equal_descriptions_never_differ():
    base, one, _ = profiles(5, 3)
    assert exchange(base, one, one, 99, [1], diagonal=False).p() == 1


def test_two_groups_have_no_similarity_and_differ_never():
    base, one, other = profiles(2, 4)
    assert exchange(base, one, other, 99, [1], diagonal=True) == Exchanged(0, np.zeros(1), True)


def test_categories_together_are_all_pairs_of_their_patterns_weighted_by_size():
    one = Exchanged(1.0, np.array([1.0, -1.0]), exact=True)
    two = Exchanged(4.0, np.array([4.0, -4.0, 0.0, 0.0]), exact=True)
    both = together([one, two], [3, 1], 99, 1)
    assert both.seen == 1.75
    assert both.exact
    wanted = [0.75 * x + 0.25 * y for x in one.drawn for y in two.drawn]
    assert sorted(both.drawn) == sorted(wanted)
    assert both.p() == 2 / 8
    many = together([one, two._replace(exact=False)], [3, 1], 4, 1)
    assert (len(many.drawn), many.exact) == (4, False)
    assert set(np.abs(many.drawn)) <= set(np.abs(wanted))
