from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plumbline.builders.datasets.emotions.build import AFFECTS, lexicon
from plumbline.probes.stereotypes.emotions import Profiles, differences, means, permuted_affects_p

SEED = 212
SHARED = Path(__file__).parents[3] / "shared/data"
SCORES = SHARED / "published/stereotypes/emotion_scores_bert-base-uncased.parquet"
NRC = SHARED / "lexica/en/nrc_emolex_wordlevel_v0.92.txt"
ORDER = ["negative", "positive", "disgust", "anger", "sadness"]
ORDER += ["fear", "trust", "joy", "surprise", "anticipation"]


def profiles(members, affects):
    """Return the profiles of groups whose words the lexicon has, all of them."""
    members, affects = (np.asarray(x, dtype=np.float32) for x in (members, affects))
    return Profiles(pl.DataFrame(), [], members, affects, members.sum(axis=1))


def drawn(groups=6, words=80, affects=3, seed=SEED):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    return rng.random((groups, words)) < 0.5, rng.random((words, affects)) < 0.3


def test_shares_are_of_covered_words():
    members = [[1, 1, 1], [1, 0, 0], [0, 0, 0]]
    found = profiles(members, [[1, 1], [1, 0], [0, 0]])
    assert found.covered.tolist() == [3, 1, 0]
    assert found.share()[0].tolist() == [2 / 3, 1 / 3]
    assert np.isnan(found.share()[2]).all()


def test_differences_are_from_the_mean_of_the_others_and_sum_to_zero():
    share = np.array([[0.9, 0.2], [0.1, 0.2], [0.2, 0.5]])
    found = differences(share)
    assert found[0].tolist() == pytest.approx([0.9 - 0.15, 0.2 - 0.35])
    assert found.sum(axis=0) == pytest.approx([0, 0])
    without = np.array([[np.nan], [0.1], [0.3]])
    assert differences(without)[1:].ravel().tolist() == pytest.approx([-0.2, 0.2])
    assert np.isnan(differences(without)[0, 0])


def test_words_drawn_again_are_profiles_with_words_repeated():
    members, affects = drawn()
    weights = np.random.default_rng(SEED).poisson(1, (80, 4)).astype(np.float32)
    found = means(members, affects, weights)
    for r in range(4):
        times = weights[:, r].astype(int)
        again = [np.repeat(x, times, axis=-1) for x in (members, affects.T)]
        assert np.array_equal(found[..., r], profiles(again[0], again[1].T).share())


def test_groups_of_the_same_words_do_not_differ():
    affects = np.arange(50)[:, None] % 3 == 0
    assert (permuted_affects_p(profiles(np.ones((3, 50)), affects), 49, SEED) == 1).all()
    assert np.isnan(permuted_affects_p(profiles(np.zeros((3, 50)), affects), 49, SEED)).all()


@pytest.fixture(scope="module")
def published():
    if not (SCORES.is_file() and NRC.is_file()):
        pytest.skip(f"{SCORES} or {NRC} is not there")
    entries = lexicon(NRC.read_bytes())
    nrc = {word: np.array([marks[a] for a in AFFECTS]) for word, _, marks in entries}
    return pl.read_parquet(SCORES), nrc


@pytest.mark.shared
def test_published_words_give_the_published_scores_but_for_serious(published):
    table, nrc = published
    words = sorted({w for ws in table["words"] for w in ws})
    assert [w for w in words if w not in nrc] == ["serious"]  # version 0.92 lacks it
    place = {w: i for i, w in enumerate(words)}
    members = np.zeros((len(table), len(words)), dtype=bool)
    for row, ws in enumerate(table["words"]):
        members[row, [place[w] for w in ws]] = True
    none = np.zeros(len(AFFECTS), dtype=bool)
    column = [AFFECTS.index(name) for name in ORDER]
    affects = np.array([nrc.get(w, none) for w in words])[:, column]
    found = profiles(members, affects)
    carrying = found.members @ found.affects
    gap = np.array(table["scores"].to_list()) / 100 * found.covered[:, None] - carrying
    has = members[:, place["serious"]]
    assert has.sum() == 1583
    assert np.abs(gap[~has]).max() < 1e-9
    # the edition that was used has the word, and with sadness and fear
    wanted = [1.0 if name in ("sadness", "fear") else 0.0 for name in ORDER]
    assert np.abs(gap[has] - wanted).max() < 1e-9
