import numpy as np
import pytest
from scipy.stats import pearsonr

from plumbline.probes.stats.counterfactual import moments, pooled, scores, within

SEED = 20261121


def issue():
    """Return the example of the issue: ppl = 10 S + z, p = 2 S - z."""
    s, z = (a.ravel() for a in np.meshgrid(np.arange(5.0), [-1.5, -0.5, 0.5, 1.5]))
    return s, 10 * s + z, 2 * s - z, (s.astype(int), np.zeros(20, dtype=int), (5, 1))


def test_the_example_rises_over_all_texts_and_falls_within_each():
    s, ppl, p, where = issue()
    assert pooled(moments(ppl, p, *where))[0] == pytest.approx(38.75 / np.sqrt(201.25 * 9.25))
    assert round(pooled(moments(ppl, p, *where))[0], 3) == 0.898
    assert pooled(moments(ppl - 10 * s, p - 2 * s, *where))[0] == pytest.approx(-1)
    assert within(moments(ppl, p, *where))[0] == pytest.approx(-1)


def test_taking_one_value_off_a_text_changes_nothing_within():
    rng = np.random.default_rng(SEED)
    _, ppl, p, where = issue()
    ppl, p = ppl + rng.normal(size=20), p + rng.normal(size=20)
    off, other = (rng.normal(0, 50, 5)[where[0]] for _ in range(2))
    before, after = moments(ppl, p, *where), moments(ppl - off, p - other, *where)
    np.testing.assert_allclose(within(before), within(after), atol=1e-9)
    assert abs(pooled(before) - pooled(after))[0] > 0.01


def test_an_original_far_from_its_counterfactuals_spoils_the_pooled_correlation_alone():
    _, ppl, p, where = issue()
    rng = np.random.default_rng(SEED)
    first, then = (rng.normal(0, 5, 5)[where[0]] for _ in range(2))
    subtracted = moments(ppl - first, p - then, *where)
    assert within(subtracted)[0] == pytest.approx(-1)
    assert pooled(subtracted)[0] > -0.9


def test_pooled_is_pearsons_in_every_group():
    rng = np.random.default_rng(SEED)
    x, y = rng.normal(1e4, 1, 300), rng.normal(size=300)
    y += 0.3 * x
    text, country = rng.integers(0, 10, 300), rng.integers(0, 3, 300)
    found = pooled(moments(x, y, text, country, (10, 3)))
    for c in range(3):
        own = country == c
        assert found[c] == pytest.approx(pearsonr(x[own], y[own]).statistic, abs=1e-9)


def test_within_is_fishers_average_weighted_by_n_minus_3():
    rng = np.random.default_rng(SEED)
    sizes = [4, 9, 30]
    text = np.repeat(np.arange(3), sizes)
    x, y = rng.normal(size=(2, 43))
    each = [pearsonr(x[text == t], y[text == t]).statistic for t in range(3)]
    expected = np.tanh(np.average(np.arctanh(each), weights=np.array(sizes) - 3))
    found = within(moments(x, y, text, np.zeros(43, dtype=int), (3, 1)))
    assert found[0] == pytest.approx(expected)


def test_texts_that_are_too_few_or_flat_do_not_count():
    text = np.repeat(np.arange(3), [3, 5, 5])
    x = np.array([1.0, 2, 3, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5])
    y = np.array([1.0, 2, 3, 1, 2, 3, 4, 5, 5, 3, 4, 1, 2])
    z, n = scores(moments(x, y, text, np.zeros(13, dtype=int), (3, 1)))
    assert n[:, 0].tolist() == [0, 0, 2]
    assert z[2, 0] == pytest.approx(np.arctanh(pearsonr(x[8:], y[8:]).statistic))
    alone = moments(x[:8], y[:8], text[:8], np.zeros(8, dtype=int), (2, 1))
    assert np.isnan(within(alone)[0])


def test_replicates_are_those_of_texts_written_as_often_as_they_are_drawn():
    rng = np.random.default_rng(SEED)
    text = np.repeat(np.arange(8), 6)
    x = rng.normal(size=48)
    y = 0.5 * x + rng.normal(size=48)
    found = moments(x, y, text, np.zeros(48, dtype=int), (8, 1))
    weights = rng.integers(0, 3, (8, 5)).astype(float)
    drawn, each = pooled(found, weights), within(found, weights)
    for b in range(5):
        again = np.repeat(np.arange(48), weights[text, b].astype(int))
        assert drawn[b, 0] == pytest.approx(pearsonr(x[again], y[again]).statistic)
        own = np.repeat(np.arange(8), weights[:, b].astype(int))
        z = [np.arctanh(pearsonr(x[text == t], y[text == t]).statistic) for t in own]
        assert each[b, 0] == pytest.approx(np.tanh(np.mean(z)))
