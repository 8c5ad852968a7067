"""Linear models: categorical factors, and a random intercept."""

import warnings

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import t
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.anova import anova_lm

from plumbline.probes.stats.linear import (
    centred,
    drop,
    dummies,
    estimable,
    jackknife,
    least_squares,
    mixed,
)

SEED = 43
TWO = np.array([[1.0, 0], [1, 0], [1, 1], [1, 1]])


def test_two_groups_worked_by_hand():
    # means 1.5 and 4.5; squares within 0.5 and 4.5, so s2 = 5 / 2 on 2 degrees of freedom
    found = least_squares(np.array([1.0, 2, 3, 6]), TWO)
    assert found.value == pytest.approx([1.5, 3.0])
    half = t.ppf(0.975, 2) * np.sqrt(2.5 * np.array([1 / 2, 1 / 2 + 1 / 2]))
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)
    assert found.freedom.tolist() == [2, 2]


def test_jackknife_worked_by_hand():
    # without 1 the first mean is 2, without 2 it is 1: squared changes 2 * 0.25; the other 2 * 2.25
    found = jackknife(np.array([1.0, 2, 3, 6]), TWO, list("abcd"))
    # the first mean rests on two rows: one degree of freedom, as a mean of two has
    assert found.freedom == pytest.approx([1, 2])
    # of independent errors a mean of two has half of that: Welch's variances, 0.5 / 2 and 4.5 / 2
    half = t.ppf(0.975, [1, 2]) * np.sqrt([0.25, 0.25 + 2.25])
    assert found.high - found.value == pytest.approx(half)


def made(rng):
    """Unbalanced rows of three factors."""
    n = 60
    frame = pd.DataFrame({f: rng.choice(list("abc"), n) for f in ("one", "two", "three")})
    frame["y"] = rng.normal(size=n) + 3 * (frame["one"] == "b") - (frame["two"] == "c")
    columns = [dummies(frame[f].to_list(), "abc") for f in ("one", "two", "three")]
    return frame, np.hstack([np.ones((n, 1)), *columns])


def test_the_same_as_formulas_of_statsmodels():
    frame, design = made(np.random.default_rng(SEED))
    y = frame["y"].to_numpy()
    theirs = smf.ols("y ~ C(one) + C(two) + C(three)", frame).fit()
    mine = least_squares(y, design)
    assert mine.value == pytest.approx(theirs.params.to_numpy())
    assert np.stack([mine.low, mine.high], 1) == pytest.approx(theirs.conf_int().to_numpy())
    assert mine.p == pytest.approx(theirs.pvalues.to_numpy())
    table = anova_lm(theirs, typ=2)
    for i, factor in enumerate(("one", "two", "three")):
        found = drop(y, design, np.array([1 + 2 * i, 2 + 2 * i]))
        row = table.loc[f"C({factor})"]
        assert found.f == pytest.approx(row["F"])
        assert found.p == pytest.approx(row["PR(>F)"])
        assert (found.freedom, found.residual) == (row["df"], table.loc["Residual", "df"])


def test_where_each_cluster_is_a_row_the_jackknife_is_hc3_without_its_excess():
    frame, design = made(np.random.default_rng(SEED))
    y = frame["y"].to_numpy()
    theirs = sm.OLS(y, design).fit(cov_type="HC3")
    mine = jackknife(y, design, [str(i) for i in range(len(y))])
    # what HC3 is, over what it should be, where errors are independent and equal: from leverages
    weights = np.linalg.pinv(design)
    leverage = np.diag(design @ weights)
    large = (weights**2 / (1 - leverage)).sum(axis=1) / (weights**2).sum(axis=1)
    se = (mine.high - mine.value) / t.ppf(0.975, mine.freedom)
    assert se == pytest.approx(theirs.bse / np.sqrt(large))


def test_what_the_rows_do_not_tell_apart_has_no_number():
    twins = np.array([[1.0, 0, 0, 0], [1, 1, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
    assert estimable(twins).tolist() == [True, False, False, True]
    found = least_squares(np.array([1.0, 2, 3, 4, 5]), twins)
    assert np.isnan(found.value).tolist() == [False, True, True, False]
    assert np.isnan(drop(np.array([1.0, 2, 3, 4, 5]), twins, np.array([1])).p)


def test_without_residual_degrees_of_freedom_there_are_values_alone():
    found = least_squares(np.array([1.0, 3.0]), np.array([[1.0, 0], [1, 1]]))
    assert found.value == pytest.approx([1, 2])
    assert np.isnan(found.low).all()
    assert np.isnan(found.p).all()
    assert np.isnan(
        jackknife(np.array([1.0, 3.0]), np.array([[1.0, 0], [1, 1]]), ["a", "b"]).high
    ).all()


def test_a_coefficient_that_rests_on_one_cluster_has_no_jackknife():
    design = np.array([[1.0, 0], [1, 0], [1, 0], [1, 1]])
    found = jackknife(np.array([1.0, 2, 4, 9]), design, list("abcd"))
    assert np.isnan(found.low).tolist() == [False, True]
    assert found.value == pytest.approx([7 / 3, 9 - 7 / 3])


SEED_MIXED = 20261121


def sample(groups=40, each=6, sd=1.5, seed=SEED_MIXED):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    between = rng.normal(size=groups)[group]
    design = np.column_stack([np.ones(len(group)), between, rng.normal(size=len(group))])
    response = design @ [2.0, 0.5, -1.0] + rng.normal(0, sd, groups)[group]
    return response + rng.normal(size=len(group)), design, group


def fitted(response, design, group, absorbed=0):
    _, group = np.unique(group, return_inverse=True)
    both = np.column_stack([design, response])
    sums = np.stack([both[group == g].sum(axis=0) for g in range(group.max() + 1)])
    return mixed(sums, both.T @ both, np.bincount(group).astype(float), absorbed)


def test_it_agrees_with_statsmodels():
    response, design, group = sample()
    found = fitted(response, design, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = MixedLM(response, design, group).fit(reml=True)
    np.testing.assert_allclose(found.coefficients, other.fe_params, atol=1e-4)
    assert found.between == pytest.approx(float(other.cov_re[0, 0]), rel=1e-2)
    assert found.residual == pytest.approx(other.scale, rel=1e-2)


def test_without_differences_between_groups_it_is_least_squares():
    response, design, group = sample(sd=0.0, seed=SEED_MIXED + 3)
    rest = response - design @ [2.0, 0.5, -1.0]
    flat = response - (rest - centred(rest, group))
    found = fitted(flat, design, group)
    np.testing.assert_allclose(found.coefficients, OLS(flat, design).fit().params, atol=1e-3)
    assert found.between < 1e-4
    rest = float(((flat - design @ found.coefficients) ** 2).sum())
    assert found.residual == pytest.approx(rest / (len(flat) - 3), rel=1e-3)
    spent = fitted(flat, design, group, absorbed=20)
    assert spent.residual == pytest.approx(rest / (len(flat) - 3 - 20), rel=1e-3)


def test_centring_takes_away_what_a_text_has_in_common():
    rng = np.random.default_rng(SEED_MIXED)
    group = np.repeat(np.arange(5), 4)
    values = rng.normal(size=(20, 2))
    shifted = values + rng.normal(0, 100, (5, 2))[group]
    np.testing.assert_allclose(centred(values, group), centred(shifted, group), atol=1e-9)
    assert np.abs(np.bincount(group, weights=centred(values, group)[:, 0])).max() < 1e-9


def restricted(log, response, design, group):
    """-2 log of the restricted likelihood up to a constant, by the covariance matrix itself."""
    alike = group[:, None] == group[None, :]
    covariance = np.eye(len(group)) + np.exp(log) * alike
    inverse = np.linalg.inv(covariance)
    inside = design.T @ inverse @ design
    rest = response - design @ np.linalg.solve(inside, design.T @ inverse @ response)
    freedom = len(response) - design.shape[1]
    spent = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(inside)[1]
    return freedom * np.log(rest @ inverse @ rest) + spent


@pytest.mark.slow
def test_of_two_maxima_of_the_likelihood_the_larger_is_taken():
    print("seed 1")
    rng = np.random.default_rng(1)
    for _ in range(150):  # few, unequal groups: some of these have two maxima
        sizes = rng.integers(1, 12, rng.integers(3, 8))
        group = np.repeat(np.arange(len(sizes)), sizes)
        if len(group) < 6:
            continue
        design = np.column_stack([rng.normal(size=len(group)), (group % 2) - 0.5])
        own = rng.normal(size=len(sizes)) * rng.choice([0, 0.3, 1, 5])
        response = design @ [1, 0.5] + own[group] + rng.standard_t(2, size=len(group))
        found = fitted(response, design, group)
        at = np.log(found.between / found.residual)
        least = min(restricted(x, response, design, group) for x in np.linspace(-12, 8, 201))
        assert restricted(at, response, design, group) <= least + 1e-6


def test_a_single_group_has_no_variance_between_groups():
    rng = np.random.default_rng(2)
    design = np.column_stack([np.ones(12), rng.normal(size=12)])
    found = fitted(rng.normal(size=12), design, np.zeros(12, dtype=np.int64))
    assert found.between / found.residual == pytest.approx(np.exp(-12))
