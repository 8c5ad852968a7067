from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from plumbline.probes.stats.classification import VOTES, majority_accuracy, vote


@pytest.mark.parametrize("kind", VOTES)
@pytest.mark.parametrize("voters", [2, 3, 4, 7])
def test_an_ensemble_of_identical_models_is_the_model(kind, voters):
    print("seed 2")
    one = np.random.default_rng(2).random(200)
    one[:2] = 0.5
    found = vote(np.tile(one, (voters, 1)), kind)
    assert (found == (one > 0.5)).all()


@pytest.mark.parametrize("p", [0.5, 0.6, 0.75, 0.9])
def test_three_independent_models_are_right_in_three_p_squared_minus_two_p_cubed(p):
    # all texts at once: each pattern of right and wrong with its probability; the truth is positive
    patterns = np.array(list(product([0.0, 1.0], repeat=3)))
    chance = np.where(patterns > 0, p, 1 - p).prod(axis=1)
    right = vote(patterns.T, "hard")
    assert chance @ right == pytest.approx(3 * p**2 - 2 * p**3)
    assert majority_accuracy(p, 3) == pytest.approx(3 * p**2 - 2 * p**3)


@pytest.mark.parametrize("voters", [1, 3, 5, 7])
def test_the_accuracy_of_a_majority_is_that_of_all_patterns(voters):
    patterns = np.array(list(product([0.0, 1.0], repeat=voters)))
    chance = np.where(patterns > 0, 0.7, 0.3).prod(axis=1)
    assert majority_accuracy(0.7, voters) == pytest.approx(chance @ vote(patterns.T, "hard"))


def test_an_even_number_of_voters_has_no_majority_by_itself():
    with pytest.raises(ValueError, match="even number"):
        majority_accuracy(0.7, 4)
    ties = np.array([[0.9, 0.6, 0.5], [0.4, 0.1, 0.5]])
    assert vote(ties, "hard").tolist() == [True, False, False]  # by the mean; one half is not above


def test_hard_and_mean_votes_differ_where_one_is_sure():
    three = np.array([[0.45], [0.45], [0.95]])
    assert (vote(three, "hard")[0], vote(three, "mean probability")[0]) == (False, True)


def test_several_ensembles_vote_at_once():
    print("seed 4")
    many = np.random.default_rng(4).random((5, 3, 20))
    for kind in VOTES:
        whole = vote(many, kind)
        assert (whole == np.stack([vote(own, kind) for own in many])).all()
