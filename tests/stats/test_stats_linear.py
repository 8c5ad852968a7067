import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import t
from statsmodels.stats.anova import anova_lm

from plumbline.probes.stats.linear import drop, dummies, estimable, jackknife, least_squares

SEED = 43
TWO = np.array([[1.0, 0], [1, 0], [1, 1], [1, 1]])


def test_two_groups_worked_by_hand():
    # means 1.5 and 4.5; squares within 0.5 and 4.5, so s2 = 5 / 2 on 2 degrees of freedom
    found = least_squares(np.array([1.0, 2, 3, 6]), TWO)
    assert found.value == pytest.approx([1.5, 3.0])
    half = t.ppf(0.975, 2) * np.sqrt(2.5 * np.array([1 / 2, 1 / 2 + 1 / 2]))
    assert found.high - found.value == pytest.approx(half)
    assert found.value - found.low == pytest.approx(half)
    assert found.freedom == 2


def test_jackknife_worked_by_hand():
    # without 1 the first mean is 2, without 2 it is 1: squared changes 2 * 0.25; the other 2 * 2.25
    found = jackknife(np.array([1.0, 2, 3, 6]), TWO, list("abcd"))
    assert found.freedom == 2
    half = t.ppf(0.975, 2) * np.sqrt([0.5, 0.5 + 4.5])
    assert found.high - found.value == pytest.approx(half)


def made(rng):
    """Unbalanced rows of three factors."""
    n = 60
    frame = pd.DataFrame({f: rng.choice(list("abc"), n) for f in ("one", "two", "three")})
    frame["y"] = rng.normal(size=n) + 3 * (frame["one"] == "b") - (frame["two"] == "c")
    columns = [dummies(frame[f].to_list(), "abc") for f in ("one", "two", "three")]
    return frame, np.hstack([np.ones((n, 1)), *columns])


def test_the_same_as_formulas_of_statsmodels():
    print("seed", SEED)
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


def test_where_each_cluster_is_a_row_the_jackknife_is_hc3():
    print("seed", SEED)
    frame, design = made(np.random.default_rng(SEED))
    y = frame["y"].to_numpy()
    theirs = sm.OLS(y, design).fit(cov_type="HC3")
    mine = jackknife(y, design, [str(i) for i in range(len(y))])
    assert (mine.high - mine.value) / t.ppf(0.975, mine.freedom) == pytest.approx(theirs.bse)


def test_intervals_hold_the_truth_where_clusters_share_their_errors():
    """Twelve clusters of five rows, one of two treatments for each cluster."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    clusters = np.repeat(np.arange(12), 5)
    design = np.stack([np.ones(60), clusters % 2], axis=1)
    held = np.zeros(2)
    for _ in range(300):
        y = 2.0 * (clusters % 2) + rng.normal(size=12)[clusters] + 0.5 * rng.normal(size=60)
        for i, fit in enumerate((least_squares(y, design), jackknife(y, design, clusters))):
            held[i] += fit.low[1] <= 2.0 <= fit.high[1]
    assert held[0] / 300 < 0.8  # equal, independent errors are assumed and are not there
    assert held[1] / 300 > 0.91


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
