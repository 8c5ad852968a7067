from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr

from plumbline.probes.stereotypes.rsa import (
    Params,
    compare,
    cosines,
    expected,
    left_out,
    ranks,
    relabelled,
    similarity,
)

SEED = 211
SHARED = Path(__file__).parents[3] / "shared/data/published/stereotypes"
SCORES = SHARED / "emotion_scores_bert-base-uncased.parquet"
OUTLETS = ["new_yorker", "guardian", "reuters", "fox", "breitbart"]
PARAMS = Params(version="0.1.0", n_permutations=199, seed=SEED)
either = pytest.mark.parametrize("diagonal", [True, False])


def unrelated(groups, dimensions=8, seed=SEED):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return rng.random((groups, dimensions)), rng.random((groups, dimensions))


@either
def test_similarity_is_the_mean_of_scipys_spearman(diagonal):
    a, b = unrelated(12)
    similar = [cosines(x) for x in (a, b)]
    rows = [[m[i] if diagonal else np.delete(m[i], i) for m in similar] for i in range(12)]
    by_hand = np.mean([spearmanr(x, y).statistic for x, y in rows])
    assert similarity(a, b, diagonal=diagonal) == pytest.approx(by_hand, abs=1e-10)
    assert similarity(a, 100 * a, diagonal=diagonal) == 1


def test_similarity_without_variation_or_of_other_groups():
    alike = np.ones((5, 3))
    assert np.isnan(similarity(alike, alike, diagonal=True))
    with pytest.raises(ValueError, match="groups"):
        similarity(alike, np.ones((4, 3)), diagonal=True)


@either
def test_expected_is_the_mean_over_all_relabellings(diagonal):
    a, b = unrelated(6)
    sides = [ranks(x, diagonal=diagonal) for x in (a, b)]
    for strata in ([0] * 6, [0, 0, 0, 1, 1, 2]):
        orders = [list(o) for o in permutations(range(6)) if [strata[i] for i in o] == strata]
        by_hand = np.mean([similarity(a, b[o], diagonal=diagonal) for o in orders])
        assert expected(*sides, strata) == pytest.approx(by_hand, abs=1e-9)
    assert expected(*sides, [0] * 6) == pytest.approx(3 / 7 if diagonal else 0, abs=1e-9)


def test_relabelled_by_hand():
    a, b = unrelated(8)
    null = relabelled(*(ranks(x, diagonal=False) for x in (a, b)), (0,) * 8, 20, SEED)
    rng = np.random.default_rng(SEED)
    orders = [rng.permutation(8) for _ in range(20)]
    anew = [similarity(a, b[order], diagonal=False) for order in orders]
    assert null == pytest.approx(np.array(anew), abs=1e-9)


@either
def test_left_out_by_hand(diagonal):
    a, b = unrelated(9)
    a[4], b[7], b[8] = a[2], b[1], b[1]  # ties
    anew = [similarity(np.delete(a, i, 0), np.delete(b, i, 0), diagonal=diagonal) for i in range(9)]
    assert left_out(a, b, diagonal=diagonal) == pytest.approx(anew, abs=1e-11)


def test_compare_intervals():
    a, b = unrelated(20)
    near = compare(a, a + 0.2 * b, PARAMS, diagonal=False)
    assert near.estimate.low < near.estimate.value < near.estimate.high <= 1
    assert near.p == 1 / 200
    same = compare(a, a, PARAMS, diagonal=False).estimate
    assert same.value == 1
    assert np.isnan([same.low, same.high]).all()


@pytest.mark.parametrize("groups", [2, 3])
def test_compare_few_groups_has_no_test(groups):
    found = compare(*unrelated(groups), PARAMS, diagonal=False)
    assert np.isnan(found.estimate.value) == (groups == 2)
    assert np.isnan([found.p, found.estimate.low, found.estimate.high]).all()
    assert found.estimate.n == groups


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
        return round(similarity(*pair, diagonal=True), 2) - 1

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
