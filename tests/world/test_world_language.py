import numpy as np
import pytest

from plumbline.probes.politicians.recovery.truth import Planted, expected_counts, tastes
from plumbline.probes.stats.pmi import pmi
from worlds.politicians import World, allot, plant

SEED = 90210
WORDS = [f"word{i}" for i in range(30)]


def planted(log_ratio, frequency=None):
    n = len(log_ratio)
    frequency = np.zeros(n) if frequency is None else frequency
    kinds = np.zeros(n, dtype=np.int64)
    names = tuple(WORDS[:n])
    return Planted(names, frequency, np.array(log_ratio, dtype=float), kinds, ("",) * n)


def drawn(world, seed, classes=()):
    """Plant thirty words whose sentiments take turns."""
    classes = classes or [""] * len(WORDS)
    return plant(WORDS, np.arange(30) % 3, classes, world, np.random.default_rng(seed))


def test_allot_worked_by_hand():
    # of 10: exactly 3.3, 3.3, 3.4 -> 3, 3, 3 and one more for the largest remainder;
    # of 10: exactly 1.8, 2.7, 5.5 -> 1, 2, 5 and one more for .8 and for .7;
    # of 10: exactly 2.5, 5.0, 2.5 -> 2, 5, 2 and one more for the first of two alike
    shares = np.array([[0.33, 0.33, 0.34], [0.18, 0.27, 0.55], [0.25, 0.5, 0.25]])
    assert allot(shares, 10).tolist() == [[3, 3, 4], [2, 3, 5], [3, 5, 2]]


def test_tastes_are_probabilities_that_lean_as_planted():
    print("seed", SEED)
    genders = ["male", "female", "non-binary"] * 2000
    truth = planted([1.5, -1.5, 0.0, 0.0])
    chances = tastes(truth, genders, 0.5, np.random.default_rng(SEED))
    assert chances.shape == (6000, 4)
    assert chances.sum(axis=1) == pytest.approx(np.ones(6000))
    odds = np.log(chances[:, 0] / chances[:, 2])
    male, female, other = (odds[i::3].mean() for i in range(3))
    # log-odds against a neutral word: -ratio/2, +ratio/2 and 0, with noise 0.7 / sqrt(2000)
    assert [male, female, other] == pytest.approx([-0.75, 0.75, 0.0], abs=0.08)
    assert chances[1::3, 1].mean() < chances[0::3, 1].mean()


def test_plant_is_seeded_and_has_all_parts(settings):
    world = World(**settings)
    one, same, other = (drawn(world, seed) for seed in (3, 3, 4))
    assert (one.log_ratio == same.log_ratio).all()
    assert (one.frequency == same.frequency).all()
    assert (one.log_ratio != other.log_ratio).any()
    # without effects of single words the log-ratio is the sentiment's: half of 1.6, up or down
    plain = drawn(World(**settings | {"word_effect": 0}), 3)
    assert (plain.log_ratio == np.array([0.8, -0.8, 0.0])[plain.sentiment]).all()


def test_plant_effects_of_supersenses(settings):
    alone = {"word_effect": 0, "sentiment_effect": 0, "supersense_effect": 0.7}
    classes = ["adj.mind", "adj.body", ""] * 10
    found = drawn(World(**settings | alone), 3, classes).log_ratio.reshape(10, 3)
    assert (found == found[0]).all()
    mind, body, none = found[0]
    assert none == 0
    assert len({mind, body, none}) == 3
    twice = drawn(World(**settings | alone | {"supersense_effect": 1.4}), 3, classes).log_ratio
    assert twice[:2] == pytest.approx([2 * mind, 2 * body])


def test_plant_null_world_has_no_log_ratios(settings):
    world = World(**settings | {"word_effect": 0, "sentiment_effect": 0})
    assert world.null
    truth = drawn(world, 3, ["adj.mind"] * 30)
    assert (truth.log_ratio == 0).all()
    assert len(set(truth.frequency)) == len(WORDS)
    for effect in ("word_effect", "sentiment_effect", "supersense_effect"):
        nothing = {"word_effect": 0, "sentiment_effect": 0, "supersense_effect": 0}
        assert not World(**settings | nothing | {effect: 0.1}).null


def test_expected_counts_have_the_planted_signs():
    print("seed", SEED)
    shares = {"male": 0.5, "female": 0.5}
    alike = expected_counts(planted([0.0] * 6), shares, 0.8, 2, SEED)
    assert alike == pytest.approx(np.full((6, 2), 0.5 * 2 / 6), abs=0.01)
    ratio = np.array([1.2, -1.2, 0.6, -0.6, 0.0, 0.0])
    contrast = np.diff(pmi(expected_counts(planted(ratio), shares, 0.8, 2, SEED)))[:, 0]
    assert (np.argsort(contrast[:5]) == np.argsort(ratio[:5])).all()
    assert (np.sign(contrast[:4]) == np.sign(ratio[:4])).all()
    # men and women mirror each other here
    assert contrast[:2].sum() == pytest.approx(0, abs=0.1)
