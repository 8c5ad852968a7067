from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from plumbline.probes.stereotypes.similarity import (
    compare,
    cosines,
    expected,
    left_out,
    relabelled,
    rsa,
)

SEED = 211
SHARED = Path(__file__).parents[3] / "shared/data/published/stereotypes"
SCORES = SHARED / "emotion_scores_bert-base-uncased.parquet"
OUTLETS = ["new_yorker", "guardian", "reuters", "fox", "breitbart"]


def unrelated(groups, dimensions=8, seed=SEED):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return rng.random((groups, dimensions)), rng.random((groups, dimensions))


@pytest.mark.parametrize("diagonal", [True, False])
def test_rsa_is_the_mean_of_scipys_spearman(diagonal):
    a, b = unrelated(12)
    similar = [cosines(x) for x in (a, b)]
    rows = [[m[i] if diagonal else np.delete(m[i], i) for m in similar] for i in range(12)]
    by_hand = np.mean([spearmanr(x, y).statistic for x, y in rows])
    assert rsa(a, b, diagonal=diagonal) == pytest.approx(by_hand, abs=1e-10)


@pytest.mark.parametrize("diagonal", [True, False])
def test_rsa_of_itself_is_one(diagonal):
    a, _ = unrelated(9)
    assert rsa(a, a, diagonal=diagonal) == 1
    assert rsa(a, 100 * a, diagonal=diagonal) == 1


def test_rsa_worked_by_hand():
    # at angles of 0, 10, 30 and 80 degrees, and of 0, 30, 10 and 80: the second and third swapped
    angles = np.radians([[0, 10, 30, 80], [0, 30, 10, 80]])
    a, b = (np.stack([np.cos(x), np.sin(x)], axis=1) for x in angles)
    # nearest first, of row 0: 1 2 3 against 2 1 3, rho 0.5; of row 1: 0 2 3 against 2 0 3, 0.5;
    # of row 2: 1 0 3 against 0 1 3, 0.5; of row 3: 2 1 0 against 1 2 0, 0.5
    assert rsa(a, b, diagonal=False) == 0.5
    # with the diagonal 4 ranks, the first the same in both, two neighbours swapped: 0.8
    assert rsa(a, b, diagonal=True) == pytest.approx(0.8)


@pytest.mark.parametrize("groups", [4, 9, 40])
def test_expected_with_the_diagonal(groups):
    a, b = unrelated(groups)
    assert expected(a, b, diagonal=True) == pytest.approx(3 / (groups + 1))
    assert expected(a, b, diagonal=False) == pytest.approx(0, abs=1e-12)


def test_relabelled_by_hand():
    a, b = unrelated(8)
    null = relabelled(a, b, diagonal=False, n_permutations=20, seed=SEED)
    rng = np.random.default_rng(SEED)
    orders = [rng.permutation(8) for _ in range(20)]
    anew = [rsa(a, b[order], diagonal=False) for order in orders]
    assert null == pytest.approx(np.array(anew), abs=1e-9)


@pytest.mark.parametrize("diagonal", [True, False])
def test_left_out_by_hand(diagonal):
    a, b = unrelated(9)
    a[4], b[7], b[8] = a[2], b[1], b[1]  # ties
    anew = [rsa(np.delete(a, i, 0), np.delete(b, i, 0), diagonal=diagonal) for i in range(9)]
    assert left_out(a, b, diagonal=diagonal) == pytest.approx(anew, abs=1e-11)


def test_compare_intervals():
    a, b = unrelated(20)
    how = {"diagonal": False, "n_permutations": 199, "seed": SEED}
    near = compare(a, a + 0.2 * b, **how)
    assert near.estimate.low < near.estimate.value < near.estimate.high <= 1
    assert near.p == 1 / 200
    same = compare(a, a, **how).estimate
    assert same.value == 1
    assert np.isnan([same.low, same.high]).all()


def test_compare_two_groups_has_no_value():
    a, b = unrelated(2)
    found = compare(a, b, diagonal=True, n_permutations=9, seed=1)
    assert np.isnan([found.estimate.value, found.estimate.low, found.expected]).all()
    assert np.isnan(found.p)
    assert found.estimate.n == 2


def test_compare_three_groups_has_no_test():
    a, b = unrelated(3)
    found = compare(a, b, diagonal=False, n_permutations=199, seed=1)
    assert np.isfinite(found.estimate.value)
    assert np.isnan([found.p, found.estimate.low, found.estimate.high]).all()


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.slow
def test_within_strata_the_mean_is_that_of_relabellings_and_what_strata_share_is_no_evidence(
    diagonal,
):
    rng, strata = np.random.default_rng(SEED), np.repeat([0, 1, 2], [1, 8, 11])
    how = {"diagonal": diagonal, "n_permutations": 999, "seed": SEED}
    p = {True: [], False: []}
    for _ in range(20):
        shift = rng.normal(0, 2, (3, 10))[strata]
        a, b = (shift + rng.normal(0, 1, (20, 10)) for _ in range(2))
        for within, values in p.items():
            found = compare(a, b, strata=strata if within else None, **how)
            values.append(found.p)
    null = relabelled(a, b, strata=strata, **how)
    error = null.std() / len(null) ** 0.5
    assert abs(null.mean() - expected(a, b, diagonal=diagonal, strata=strata)) < 4 * error
    assert max(p[False]) < 0.05
    assert np.mean(np.array(p[True]) <= 0.05) < 0.3
    alike = np.ones((5, 3))
    assert np.isnan(rsa(alike, alike, diagonal=True))
    with pytest.raises(ValueError, match="groups"):
        rsa(a, alike, diagonal=True)


@pytest.fixture(scope="module")
def shifts():
    """Return rho - 1 of the base model and each outlet, (outlets, categories)."""
    if not SCORES.is_file():
        pytest.skip(f"{SCORES} is not there")
    table = pl.read_parquet(SCORES).sort("category", "group")

    def vectors(source, category):
        rows = table.filter((pl.col("source") == source) & (pl.col("category") == category))
        return np.array(rows["scores"].to_list())

    def shift(outlet, category):
        pair = (vectors(s, category) for s in ("bert-base-uncased", outlet))
        return round(rsa(*pair, diagonal=True), 2) - 1

    categories = table["category"].unique().sort().to_list()
    return np.array([[shift(outlet, c) for c in categories] for outlet in OUTLETS])


@pytest.mark.shared
def test_rsa_gives_the_released_figure(shifts):
    # RochelleChoenni/stereotypes_in_lms, visualizations/error_plot.py: BERT, all of the articles
    means = [-0.42444444, -0.32777778, -0.57222222, -0.33222222, -0.33111111]
    spreads = [0.1512989, 0.11659786, 0.06106059, 0.10633049, 0.16495416]
    assert shifts.shape == (5, 9)
    assert shifts.mean(axis=1) == pytest.approx(means, abs=6e-9)
    assert shifts.std(axis=1) == pytest.approx(spreads, abs=6e-9)
