"""Consistency, agreement, swapped ranks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import norm

from plumbline.probes.stats.reliability import (
    FORMS,
    alpha,
    complete,
    icc,
    split_halves,
    swap_chance,
)

SEED = 7
# Shrout and Fleiss (1979), Table 2: six targets, four judges
TABLE = np.array(
    [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float
)
# their Table 4, and the limits that psych::ICC of R gives for these ratings
PUBLISHED = {
    "ICC(1,1)": (0.17, -0.133, 0.723),
    "ICC(2,1)": (0.29, 0.019, 0.761),
    "ICC(3,1)": (0.71, 0.342, 0.946),
    "ICC(1,k)": (0.44, -0.884, 0.912),
    "ICC(2,k)": (0.62, 0.071, 0.927),
    "ICC(3,k)": (0.91, 0.676, 0.986),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_six_of_shrout_and_fleiss(form):
    value, low, high = PUBLISHED[form]
    found = icc(TABLE)[form]
    assert round(found.value, 2) == value
    assert found[1:3] == pytest.approx((low, high), abs=0.001)
    assert found.n == 6


def test_raters_who_agree_agree():
    found = icc(np.arange(5.0)[:, None] + np.zeros((5, 3)))
    assert [form.value for form in found.values()] == [1.0] * 6
    assert all(np.isnan(form.value) for form in icc(np.ones((4, 3))).values())
    with pytest.raises(ValueError, match="two targets"):
        icc(np.where(TABLE == 10, np.nan, TABLE))


def test_alpha_is_that_of_variances_and_the_mean_of_all_guttman_halves():
    variances, total = TABLE.var(axis=0, ddof=1).sum(), TABLE.sum(axis=1).var(ddof=1)
    assert alpha(TABLE).value == pytest.approx(4 / 3 * (1 - variances / total))
    # Cronbach (1951): the mean of 4 cov / var over all halves
    halves = [(c, [j for j in range(4) if j not in c]) for c in combinations(range(4), 2)]
    cov = [np.cov(TABLE[:, c].sum(1), TABLE[:, d].sum(1))[0, 1] for c, d in halves]
    assert alpha(TABLE).value == pytest.approx(4 * np.mean(cov) / total)


def test_halves_are_stepped_up_by_spearman_and_brown():
    r = [
        np.corrcoef(TABLE[:, list(c)].sum(1), TABLE[:, [j for j in range(4) if j not in c]].sum(1))
        for c in ((0, 1), (0, 2), (0, 3))
    ]
    stepped = [2 * m[0, 1] / (1 + m[0, 1]) for m in r]
    assert split_halves(TABLE, draws=20).value == pytest.approx(np.mean(stepped))


@pytest.mark.parametrize("items", [3, 4, 5])
def test_halves_of_parallel_items_have_their_alpha_of_odd_numbers_too(items):
    rng = np.random.default_rng(SEED)
    drawn = rng.normal(0, 1, (40, items))
    white = np.linalg.qr(drawn - drawn.mean(axis=0))[0]  # of mean 0, orthogonal
    scores = white @ np.linalg.cholesky(0.5 + 0.5 * np.eye(items)).T  # all correlate by .5
    whole = items * 0.5 / (1 + (items - 1) * 0.5)
    assert split_halves(scores, draws=20).value == pytest.approx(whole)
    assert alpha(scores).value == pytest.approx(whole)


def test_halves_that_are_opposites_end_at_minus_one_and_no_interval_leaves_its_scale():
    opposites = split_halves(np.array([[1.0, -1], [2, -2], [4, -4], [8, -8]]), draws=50)
    assert opposites[:3] == (-1, -1, -1)
    # each item is the opposite of the other two together, up to the last digit
    known = np.array([[1.0, 2, 3], [2, 1, 3], [3, 2, 1], [1, 3, 2]])
    print("SEED", SEED)
    rng = np.random.default_rng(SEED)
    for scores in (known, *(rng.normal(size=(n, 4)) for n in (4, 5, 8) for _ in range(10))):
        found = split_halves(scores, draws=100)
        assert -1 <= found.low <= found.value <= found.high <= 1


def test_split_halves_draws_of_one_case_are_no_noise_of_rounding():
    cases = np.array([0.1, 0.7, 1.9, 2.3])
    parallel = split_halves(cases[:, None] * np.array([1.0, 1.1, 0.9, 1.3]))
    assert parallel[:3] == pytest.approx((1, 1, 1))  # in each draw that has two cases
    constant = split_halves(np.full((4, 3), 0.1) + 0.2)
    assert np.isnan(constant[:3]).all()
    three = split_halves(np.array([[0.11, 0.1, 0.12], [0.7, 0.71, 0.7], [1.9, 1.92, 1.93]]))
    assert three.value > 0.99
    assert np.isnan(three[1:3]).all()  # a quarter of the draws has one case


def test_a_row_that_lacks_a_score_is_left_out():
    assert len(complete(np.where(TABLE == 10, np.nan, TABLE))) == 5


def test_cases_that_are_alike_have_no_reliability():
    ratings = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0], [2.0, 1.0]])
    found = icc(ratings)  # the mean squares are 0 and 2 / 3 of four cases, two raters
    assert found["ICC(3,1)"].value == pytest.approx(-1)
    several = [found[form].value for form in ("ICC(1,k)", "ICC(2,k)", "ICC(3,k)")]
    assert np.isnan(several).all()  # (0 - 2 / 3) / 0: not infinitely unreliable, nor 4


@pytest.mark.parametrize("shape", [(10, 5), (62, 10), (20, 3)])
def test_scores_that_rounding_alone_tells_apart_have_no_reliability(shape):
    for level in (1 / 3, 0.1, 0.7, 2.3):
        assert np.isnan(np.array([form[:3] for form in icc(np.full(shape, level)).values()])).all()
    raters = np.linspace(0.1, 0.9, shape[1]) ** 2  # which rate all targets alike
    found = icc(np.tile(raters, (shape[0], 1)))
    assert np.isnan([found[name].value for name in ("ICC(3,1)", "ICC(3,k)", "ICC(1,k)")]).all()
    ratings = np.random.default_rng(SEED).normal(size=shape)
    level = icc(ratings - ratings.mean(axis=1, keepdims=True))  # targets have one mean
    assert np.isnan([level[name].value for name in ("ICC(1,k)", "ICC(3,k)")]).all()
    same = icc(np.add.outer(ratings[:, 0], raters))
    assert same["ICC(3,1)"].value == pytest.approx(1)


def swaps(differences):
    """Return what is predicted on average for true differences, and how often ranks swap."""
    rng = np.random.default_rng(SEED)
    chances, swapped = [], []
    for true in differences(rng, 3000):
        one, two = (
            true
            + rng.normal(0, 1, (20, 1))
            + rng.normal(0, 0.5, (1, 8))
            + rng.normal(0, 1, (20, 8))
            for _ in range(2)
        )
        chances.append(swap_chance(one, drawn=(True, True)).value)
        swapped.append(one.mean() * two.mean() < 0)
    return np.mean(chances), np.mean(swapped)


def test_ranks_swap_as_often_as_is_predicted():
    predicted, seen = swaps(lambda rng, n: rng.uniform(-2, 2, n))
    assert seen == pytest.approx(predicted, abs=0.02)


def test_ranks_of_models_that_are_close_swap_more_often_than_is_predicted():
    error = (1 / 20 + 0.25 / 8 + 1 / 160) ** 0.5  # of a mean difference, and the SD of true ones
    predicted, seen = swaps(lambda rng, n: rng.normal(0, error, n))
    # a seen difference over sqrt(2) errors is then standard normal: the mean of its tail is 1 / 4;
    # and two seen ones correlate by 1 / 2: their signs differ in 1 / 3
    assert predicted == pytest.approx(1 / 4, abs=0.02)
    assert seen == pytest.approx(1 / 3, abs=0.02)
    predicted, seen = swaps(lambda rng, n: np.zeros(n))
    # over sqrt(2) errors it is then normal with variance 1 / 2
    assert predicted == pytest.approx(0.5 - np.arctan(0.5**0.5) / np.pi, abs=0.02)
    assert seen == pytest.approx(1 / 2, abs=0.02)


def test_what_comes_again_does_not_swap_ranks():
    own = np.array([[1.0, 3.0], [5.0, 7.0]])
    again = swap_chance(own, drawn=(False, True)).value
    # over columns alone: means 3 and 5, standard error 1
    assert again == pytest.approx(swap_chance(np.array([3.0, 5.0]), drawn=(True,)).value)
    assert again < swap_chance(own, drawn=(True, True)).value < norm.cdf(0)
    assert np.isnan(swap_chance(np.array([1.0]), drawn=(True,)).value)
    assert np.isnan(swap_chance(np.ones((3, 4)), drawn=(True, True)).value)  # nothing to judge by
