import numpy as np
from scipy.stats import ks_2samp

from plumbline.probes.politicians.robustness import coarsened, matched

SEED = 59


def test_coarsened():
    assert coarsened(np.arange(8.0), 4).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert coarsened(np.array([5.0, 5, 5, 5, 9]), 4).tolist() == [0, 0, 0, 0, 1]
    assert coarsened(np.array([1.0, np.nan, 2]), 2).tolist() == [0, -1, 1]
    assert coarsened(np.full(3, np.nan), 2).tolist() == [-1] * 3


def test_matched_by_hand():
    strata = np.array([[0], [0], [0], [1], [1], [2], [2]])
    groups = np.array([0, 0, 1, 0, 1, 1, 2])
    kept = matched(strata, groups, (0, 1), 1)
    assert kept[:3].sum() == 2  # one of two men, the one woman
    assert kept[2:5].all()
    assert kept[5:].tolist() == [False, True]  # a woman without a man; the third group stays


def test_matched_lengths():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    groups = rng.integers(0, 2, 2000)
    length = rng.normal(10 + 3 * groups, 3)
    kept = matched(coarsened(length, 12)[:, None], groups, (0, 1), SEED)
    before, after = (
        ks_2samp(length[m & (groups == 0)], length[m & (groups == 1)]).statistic
        for m in (np.ones(2000, dtype=bool), kept)
    )
    assert before > 0.35
    assert after < 0.1
    assert (kept & (groups == 0)).sum() == (kept & (groups == 1)).sum() > 300
