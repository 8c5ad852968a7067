"""Consistency and agreement."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from plumbline.probes.stats.reliability import (
    FORMS,
    alpha,
    icc,
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
