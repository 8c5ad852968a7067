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
SHARES = SHARED / "emotion_scores_bert-base-uncased_shares.parquet"
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


# Figure 5, from RochelleChoenni/stereotypes_in_lms, visualizations/error_plot.py: for each share of
# the articles, the mean and the standard deviation over categories, in the order of OUTLETS
FIGURE_5 = """
1    -.42444444 -.32777778 -.57222222 -.33222222 -.33111111
1    .1512989 .11659786 .06106059 .10633049 .16495416
.5   -.41875 -.435 -.385 -.4 -.43
.5   .13815186 .17535678 .08261356 .14603082 .2209638
.25  -.45125 -.3525 -.365 -.34625 -.36625
.25  .1287864 .16199923 .11011358 .16717786 .12883492
.1   -.34125 -.33375 -.30625 -.29375 -.31625
.1   .12190544 .1362844 .1089653 .11179641 .0793627
"""


@pytest.mark.shared
@pytest.mark.parametrize("share", [1, 0.5, 0.25, 0.1])
def test_similarity_of_released_profiles_is_that_of_figure_5(share):
    path = SCORES if share == 1 else SHARES
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    key = ["category", "group"]
    base = pl.read_parquet(SCORES).filter(source="bert-base-uncased").select(*key, a="scores")
    after = pl.read_parquet(path)
    both = base.join(after if share == 1 else after.filter(share=share), on=key).sort(key)

    def change(outlet, category):
        rows = both.filter(source=outlet, category=category)
        return (
            round(similarity(*(np.stack(rows[x]) for x in ("a", "scores")), diagonal=True), 2) - 1
        )

    categories = set(both["category"]) - ({"country"} if share < 1 else set())  # eight, or nine
    changes = [[change(outlet, category) for category in sorted(categories)] for outlet in OUTLETS]
    figure = np.loadtxt(FIGURE_5.splitlines())
    mean, spread = figure[figure[:, 0] == share, 1:]
    assert np.mean(changes, axis=1) == pytest.approx(mean, abs=6e-9)
    assert np.std(changes, axis=1) == pytest.approx(spread, abs=6e-9)
