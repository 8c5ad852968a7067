import numpy as np
import pytest
from scipy.stats import false_discovery_control

from plumbline.probes.stats.multiplicity import benjamini_hochberg, bonferroni

# Benjamini and Hochberg (1995), section 3.1: thrombolysis after myocardial infarction
PUBLISHED = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
    *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]
SEED = 20240611


def test_rejects_the_four_hypotheses_of_the_published_example():
    adjusted = benjamini_hochberg(np.array(PUBLISHED))
    assert (adjusted <= 0.05).tolist() == [True] * 4 + [False] * 11
    # by hand: 15 p(i) / i, and the smallest of those at or above i
    assert adjusted[0] == pytest.approx(15 * 0.0001)
    assert adjusted[3] == pytest.approx(15 * 0.0095 / 4)
    assert adjusted[4] == pytest.approx(15 * 0.0201 / 5)
    assert adjusted[5] == adjusted[6] == pytest.approx(15 * 0.0298 / 7)
    assert adjusted[14] == 1


def test_ties_and_steps_worked_by_hand():
    adjusted = benjamini_hochberg(np.array([0.02, 0.5, 0.02, 0.01]))
    # sorted .01 .02 .02 .5, times 4 over rank: .04 .04 .02667 .5; then minima from the right
    assert adjusted == pytest.approx([0.08 / 3, 0.5, 0.08 / 3, 0.08 / 3])


def test_one_test_is_its_own_family_and_none_is_none():
    assert benjamini_hochberg(np.array([0.03])).tolist() == [0.03]
    assert benjamini_hochberg(np.array([])).tolist() == []


def test_invariants_on_random_families_with_ties():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(200):
        p = np.round(rng.random(int(rng.integers(1, 60))) ** 2, int(rng.integers(1, 5)))
        adjusted = benjamini_hochberg(p)
        assert adjusted == pytest.approx(false_discovery_control(p, method="bh"), abs=1e-12)
        assert (adjusted >= p).all()
        assert (adjusted <= 1).all()
        assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
        assert all(len(set(adjusted[p == tie])) == 1 for tie in p)
        shuffle = rng.permutation(len(p))
        assert (benjamini_hochberg(p[shuffle]) == adjusted[shuffle]).all()


@pytest.mark.parametrize("wrong", [[0.1, 1.1], [-0.01], [0.1, float("nan")], [[0.1, 0.2]], 0.3])
def test_what_is_not_a_vector_of_p_values_is_refused(wrong):
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg(np.array(wrong))
    with pytest.raises(ValueError, match="between 0 and 1"):
        bonferroni(np.array(wrong))


def test_bonferroni_of_thirteen_classes():
    # 0.05 / 13 is 0.003846: at or below it and no further a class is significant
    p = np.array([0.0038, 0.0039, *[0.5] * 11])
    adjusted = bonferroni(p)
    assert adjusted[:2] == pytest.approx([0.0494, 0.0507])
    assert (adjusted[2:] == 1).all()
    assert bonferroni(np.array([])).tolist() == []


def test_bonferroni_is_never_below_benjamini_hochberg_and_alike_for_the_smallest():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(100):
        p = rng.random(int(rng.integers(1, 40))) ** 3
        strict, rate = bonferroni(p), benjamini_hochberg(p)
        assert (strict >= rate - 1e-15).all()
        assert ((strict <= 0.05) == (p <= 0.05 / len(p))).all()
