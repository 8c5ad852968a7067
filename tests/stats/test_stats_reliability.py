"""Consistency, agreement, items that work otherwise, swapped ranks."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2, norm
from scipy.stats import t as student
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from plumbline.probes.stats.estimate import benjamini_hochberg
from plumbline.probes.stats.reliability import (
    FORMS,
    alpha,
    complete,
    functioning,
    icc,
    odds,
    split_halves,
    stratified,
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


def test_drawn_halves_come_near_all_and_the_interval_holds_them():
    rng = np.random.default_rng(SEED)
    scores = rng.normal(0, 1, (60, 1)) + rng.normal(0, 2, (60, 12))
    every, some = (split_halves(scores, splits) for splits in (500, 100))
    assert some.value == pytest.approx(every.value, abs=0.03)
    assert some.low < alpha(scores).value < some.high


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


def test_the_interval_of_alpha_holds_its_truth():
    rng = np.random.default_rng(SEED)
    truth = 8 / (8 + 2)  # 8 items, variance of cases 1, of errors 2
    held = [
        found.low <= truth <= found.high
        for _ in range(1000)
        for found in [alpha(rng.normal(0, 1, (20, 1)) + rng.normal(0, 2**0.5, (20, 8)))]
    ]
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_row_that_lacks_a_score_is_left_out():
    assert len(complete(np.where(TABLE == 10, np.nan, TABLE))) == 5


def test_the_first_pass_is_the_interaction_of_an_analysis_of_variance():
    import pandas as pd

    rng = np.random.default_rng(SEED)
    scores = rng.normal(0, 1, (6, 2, 4)) + rng.normal(0, 1, (6, 1, 1))
    i, g, c = (a.ravel() for a in np.indices(scores.shape))
    table = pd.DataFrame({"y": scores.ravel(), "i": i, "g": g, "c": c})
    fitted = anova_lm(ols("y ~ C(i)*C(g) + C(i)*C(c) + C(g)*C(c)", table).fit())
    found = functioning(scores)
    assert found.anchors.all()
    assert found.df == fitted.df["Residual"]
    # twice the squared effects, of halves of the difference from all six items, over conditions
    square = 4 * 2 * ((found.effect[:, 1] * 5 / 6 / 2) ** 2).sum() / 5
    assert square == pytest.approx(fitted.mean_sq["C(i):C(g)"])
    assert found.error[0, 0] ** 2 == pytest.approx(fitted.mean_sq["Residual"] / 4 * 2 * (1 + 1 / 5))


@pytest.mark.parametrize("items", [3, 6, 20])
def test_an_item_is_as_far_from_the_rest_as_it_is_planted(items):
    rng = np.random.default_rng(SEED)
    scores = rng.normal(0, 1, (items, 2, 4)) + rng.normal(0, 1, (items, 1, 1))
    moved = scores.copy()
    moved[0, 1] += 0.5
    before, after = functioning(scores), functioning(moved)
    assert before.anchors.all()
    assert after.anchors.all()
    assert after.effect[0, 1] - before.effect[0, 1] == pytest.approx(0.5)


def test_planted_items_are_found_in_their_language_and_the_size_holds_without():
    rng = np.random.default_rng(SEED)
    size, seen, false = [], 0, []
    for _ in range(300):
        base = rng.normal(0, 1, (40, 1, 1)) + rng.normal(0, 0.5, (1, 3, 1))
        base = base + rng.normal(0, 0.7, (1, 1, 5)) + rng.normal(0, 0.5, (40, 1, 5))
        scores = base + rng.normal(0, 0.5, (40, 3, 5))
        size.append((functioning(scores).p <= 0.05).mean())
        scores[[4, 9], 2] += np.array([[1.5], [-1.5]])
        found = functioning(scores)
        adjusted = benjamini_hochberg(found.p.ravel()).reshape(found.p.shape) <= 0.05
        seen += int(adjusted[[4, 9], 2].sum())
        assert found.effect[4, 2] > 0 > found.effect[9, 2]
        clean = np.delete(adjusted, [4, 9], axis=0)
        false.append(clean.sum() / max(1, adjusted.sum()))
    assert 0.03 <= np.mean(size) <= 0.07
    assert seen / 600 > 0.95
    assert np.mean(false) <= 0.07


def test_items_that_are_found_are_no_anchors_for_the_others():
    rng = np.random.default_rng(SEED)
    scores = rng.normal(0, 0.4, (8, 2, 5)) + rng.normal(0, 1, (8, 1, 1))
    scores[:2, 1] += 1.2
    found = functioning(scores)
    assert found.anchors.tolist() == [False] * 2 + [True] * 6
    differences = scores[:, 1] - scores[:, 0]
    rest = differences - differences.mean(axis=0) - differences.mean(axis=1, keepdims=True)
    square = ((rest + differences.mean()) ** 2).sum() / (7 * 4)
    apart = differences.mean(axis=1)
    for item in range(8):
        others = [other for other in range(2, 8) if other != item]
        assert found.effect[item, 1] == pytest.approx(apart[item] - apart[others].mean())
        error = (square / 5 * (1 + 1 / len(others))) ** 0.5
        assert found.error[item, 1] == pytest.approx(error)
        p = 2 * student.sf(abs(found.effect[item, 1]) / error, found.df)
        assert found.p[item, 1] == pytest.approx(p)


def test_one_condition_has_no_error_to_judge_by():
    found = functioning(np.arange(8.0).reshape(4, 2, 1) ** 2)
    assert found.df == 0
    assert np.isnan(found.p).all()


def test_scores_without_chance_are_no_evidence():
    scores = np.zeros((4, 2, 3)) + np.arange(4.0)[:, None, None]
    assert np.isnan(functioning(scores).p).all()
    scores[1, 1] += 1
    assert np.isnan(functioning(scores).p).all()


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


def test_odds_of_agreement_are_those_of_mantel_and_haenszel():
    # Agresti (2002), Categorical Data Analysis, Table 6.9: eight centers, success or failure under
    # drug and control; p. 235: M^2 = 6.38 without correction, odds ratio 2.135, log odds 0.759
    drug = [(11, 25), (16, 4), (14, 5), (2, 14), (6, 11), (1, 10), (1, 4), (4, 2)]
    control = [(10, 27), (22, 10), (7, 12), (1, 16), (0, 12), (0, 10), (1, 8), (6, 1)]
    own, inside, band = [], [], []
    for center, sides in enumerate(zip(drug, control, strict=True)):
        for place, (right, wrong) in enumerate(sides):
            own += [True] * right + [False] * wrong
            inside += [place == 0] * (right + wrong)
            band += [center] * (right + wrong)
    value, error, p = stratified(*map(np.array, (own, inside, band)))
    assert value == pytest.approx(0.759, abs=1e-3)
    assert p == pytest.approx(chi2.sf(6.38, 1), rel=0.01)
    assert error == pytest.approx(0.304, abs=0.005)  # from his interval, 1.18 to 3.87


def answered(rng, items=20, respondents=60, shift=0.0, otherwise=()):
    """Draw answers (items, 2, respondents): abilities in the second group are others by a shift."""
    hard = rng.normal(0, 0.8, (items, 1, 1))
    able = rng.normal(0, 1, (1, 2, respondents)) + np.array([0, shift])[:, None]
    more = np.zeros((items, 2, 1))
    more[: len(otherwise), 1, 0] = otherwise
    return rng.random((items, 2, respondents)) < 1 / (1 + np.exp(hard - able - more))


@pytest.mark.parametrize("shift", [0.0, 0.7, 2.0])
def test_odds_hold_their_size_where_groups_differ_in_all_items(shift):
    rng = np.random.default_rng(SEED)
    p = np.concatenate([odds(answered(rng, shift=shift)).p[:, 1] for _ in range(60)])
    assert np.isfinite(p).mean() > 0.95
    assert 0.03 <= np.mean(p[np.isfinite(p)] <= 0.05) <= 0.07


def test_odds_find_two_planted_items_with_their_sign():
    rng = np.random.default_rng(SEED)
    seen = []
    for _ in range(15):
        found = odds(answered(rng, respondents=90, shift=0.7, otherwise=(2.0, -2.0)))
        adjusted = benjamini_hochberg(found.p[:, 1])
        assert np.abs(found.effect[:, 1][adjusted > 0.05]).max() < 2.5
        seen.append((found.effect[0, 1] > 0 > found.effect[1, 1]) & (adjusted[:2] <= 0.05))
    assert np.mean(seen) >= 0.8


def test_an_item_that_is_found_counts_for_itself():
    """By the model of Rasch its odds, given the number agreed with, are the planted ones exactly.

    So Holland and Thayer (1988); of those who agree with as many of the others they are not.
    """
    rng = np.random.default_rng(SEED)
    effects, held = [], []
    for _ in range(80):
        found = odds(answered(rng, items=8, respondents=150, shift=1.5, otherwise=(-2.0,)))
        if not found.anchors[0] and found.anchors[1:].all():
            effects.append(found.effect[0, 1])
            held.append(abs(found.effect[0, 1] + 2) < 1.96 * found.error[0, 1])
    assert len(effects) > 40
    assert np.mean(effects) == pytest.approx(-2, abs=4 * np.std(effects) / len(effects) ** 0.5)
    assert np.mean(held) > 0.88


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
