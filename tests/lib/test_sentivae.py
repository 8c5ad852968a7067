import numpy as np
import pytest

from plumbline.builders.datasets.lexica.sentivae import Fits, View, fit, misplaced

SEED = 20
WORDS = 80
ALL = np.arange(WORDS)
QUICK = {"steps": 600, "leave_out": False, "draws": 4}


def spearman(one, other) -> float:
    return float(np.corrcoef(one.argsort().argsort(), other.argsort().argsort())[0, 1])


def planted(sign: float = 1.0):
    """Return latent sentiments and what three views with known emissions say of parts of them."""
    draw = np.random.default_rng(SEED)
    latent = draw.uniform(-1, 1, WORDS)
    latent[:6] = [1, 1, 1, -1, -1, -1]  # the anchors
    clear = np.abs(latent) > 0.3
    binary = ALL[clear & (draw.random(WORDS) < 0.8) | (ALL < 6)]
    rated = ALL[(draw.random(WORDS) < 0.7) | (ALL < 6)]
    judged = ALL[(draw.random(WORDS) < 0.8) | (ALL < 6)]
    noise = draw.normal(0, 0.1, len(rated))
    counts = np.stack(
        [draw.multinomial(10, np.exp(-((c - x) ** 2) / 0.2) / np.exp(-((c - x) ** 2) / 0.2).sum())
         for x in latent[judged] for c in [np.array([-1.0, 0, 1])]]
    )  # fmt: skip
    lists = (latent[binary] > 0) == (draw.random(len(binary)) < 0.95)
    views = [
        View("bernoulli", binary, np.where(sign > 0, lists, ~lists)[:, None].astype(float)),
        View("normal", rated, sign * np.clip(latent[rated] + noise, -1, 1)[:, None]),
        View("multinomial", judged, counts[:, :: int(sign)].astype(float)),
    ]
    return latent, views


def anchored(positive: list[int], negative: list[int], words: int = WORDS):
    anchors = np.full(words, -1)
    anchors[positive], anchors[negative] = 0, 1
    return anchors


ANCHORS = anchored([0, 1, 2], [3, 4, 5])


@pytest.fixture(scope="module")
def recovered():
    print("seed", SEED)
    latent, views = planted()
    known = sum(np.isin(ALL, v.words).astype(int) for v in views)
    return latent, views, known, fit(views, ANCHORS, seeds=[1, 2], **QUICK)


def test_every_view_of_a_word_adds_exactly_one_unit_of_mass(recovered):
    _, _, known, found = recovered
    assert np.allclose(found.beta.sum(-1) - 3, known, atol=1e-12)
    assert (found.beta >= 1).all()
    assert np.array_equal(found.beta[:, known == 0], np.ones_like(found.beta[:, known == 0]))


def test_a_planted_sentiment_is_recovered(recovered):
    latent, _, known, found = recovered
    q = found.beta / found.beta.sum(-1, keepdims=True)
    for one in q:
        side = (one[:, 0] - one[:, 1])[known == 3]
        assert spearman(side, latent[known == 3]) > 0.9


def test_clear_words_lie_on_their_axes_and_the_middle_is_neutral(recovered):
    latent, _, known, found = recovered
    axis = found.beta.mean(0).argmax(-1)
    assert set(axis[(latent > 0.8) & (known == 3)]) == {0}
    assert set(axis[(latent < -0.8) & (known == 3)]) == {1}
    middle = axis[(np.abs(latent) < 0.15) & (known >= 2)]
    assert (middle == 2).mean() > 0.7


def two_lists(words: int = 80):
    """Two lists that agree, but on the last ten words; a third says neutral of every fourth."""
    sign = np.arange(words) % 2 == 0
    other = sign.copy()
    other[-10:] = ~other[-10:]
    judged = np.eye(3)[np.where(np.arange(words) % 4 < 2, sign, 2).astype(int)]
    every = np.arange(words)
    return [
        View("bernoulli", every, sign[:, None].astype(float)),
        View("bernoulli", every, other[:, None].astype(float)),
        View("multinomial", every[:40], judged[:40]),
    ]


@pytest.mark.slow
def test_agreeing_views_concentrate_more_than_conflicting_ones():
    beta = fit(two_lists(), anchored([0, 4], [1, 5], 80), seeds=[1], **QUICK).beta[0]
    agreeing, conflicting = beta[40:70].max(-1), beta[70:].max(-1)
    assert agreeing.min() > conflicting.max() + 0.3


def test_fits_without_a_view_lose_its_mass_and_no_other():
    views = two_lists()
    found = fit(views, anchored([0, 4], [1, 5], 80), seeds=[1, 2], steps=20, draws=1)
    assert found.left_out == (None, None, 0, 1, 2)
    mass = found.beta.sum(-1) - 3
    assert np.allclose(mass[0], [3] * 40 + [2] * 40)
    assert np.allclose(mass[2], [2] * 40 + [1] * 40)
    assert np.allclose(mass[4], 2)


def test_axes_without_the_largest_share_of_their_anchors_are_told():
    beta = np.array([[[3.0, 1, 1], [1, 1.2, 1.8], [1, 1, 1]], [[1, 1, 1.5], [1, 3, 1], [1, 1, 1]]])
    fits = Fits(beta, (None, 0))
    assert misplaced(fits, np.array([0, 1, -1])) == ["negative"]
    assert misplaced(fits, np.array([0, -1, 1])) == ["negative"]
    assert misplaced(fits, np.array([0, 2, -1])) == []
