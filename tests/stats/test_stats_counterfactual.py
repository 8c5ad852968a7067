"""Changes from texts to their counterfactuals, and their correlations."""

import numpy as np
import pytest
from scipy.stats import pearsonr

from plumbline.probes.stats.counterfactual import (
    delta,
    gather,
    moments,
    percentages,
    pooled,
    scores,
)

SEED = 20261121
TEXTS, COUNTRIES, DRAWS = 30, 4, 5


def rows():
    text, country = np.meshgrid(np.arange(TEXTS), np.arange(COUNTRIES), indexing="ij")
    return np.repeat(text.ravel(), DRAWS), np.repeat(country.ravel(), DRAWS)


def one_hot(labels, classes=3):
    return np.eye(classes)[labels]


def test_delta_is_the_difference_of_means_of_the_released_code():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    original, after = rng.random(TEXTS), rng.random(len(text))
    found = delta(gather((after - original[text])[:, None], text, country, (TEXTS, COUNTRIES)))
    for c in range(COUNTRIES):
        published = 100 * after[country == c].mean() - 100 * original.mean()
        assert found[c, 0] == pytest.approx(published)


def test_percentages_are_of_the_numbers_of_predictions():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    first, then = rng.integers(0, 3, TEXTS)[text], rng.integers(0, 3, len(text))
    shape = (TEXTS, COUNTRIES)
    before, after = (gather(one_hot(x), text, country, shape) for x in (first, then))
    found = percentages(before, after)
    for c in range(COUNTRIES):
        own = country == c
        for k in range(3):
            old, new = (first[own] == k).sum(), (then[own] == k).sum()
            assert found[c, k] == pytest.approx(100 * (new - old) / old)


def test_a_class_that_was_never_predicted_has_no_percentage():
    where = np.array([0, 1]), np.array([0, 0]), (2, 1)
    before, after = (gather(one_hot(np.array(x), 2), *where) for x in ([0, 0], [0, 1]))
    assert percentages(before, after)[0, 0] == -50
    assert np.isnan(percentages(before, after)[0, 1])


def test_a_country_without_rows_has_no_delta():
    cells = gather(np.ones((3, 1)), np.array([0, 1, 2]), np.zeros(3, dtype=int), (3, 2))
    assert delta(cells)[0, 0] == 100
    assert np.isnan(delta(cells)[1, 0])


def issue():
    """Return the example of the issue: ppl = 10 S + z, p = 2 S - z."""
    s, z = (a.ravel() for a in np.meshgrid(np.arange(5.0), [-1.5, -0.5, 0.5, 1.5]))
    return s, 10 * s + z, 2 * s - z, (s.astype(int), np.zeros(20, dtype=int), (5, 1))


def test_the_example_rises_over_all_texts_and_falls_within_each():
    s, ppl, p, where = issue()
    assert pooled(moments(ppl, p, *where))[0] == pytest.approx(38.75 / np.sqrt(201.25 * 9.25))
    assert pooled(moments(ppl - 10 * s, p - 2 * s, *where))[0] == pytest.approx(-1)
    assert np.tanh(scores(moments(ppl, p, *where))[0]) == pytest.approx(-1)


def test_pooled_is_pearsons_in_every_group():
    rng = np.random.default_rng(SEED)
    x, y = rng.normal(1e4, 1, 300), rng.normal(size=300)
    y += 0.3 * x
    text, country = rng.integers(0, 10, 300), rng.integers(0, 3, 300)
    found = pooled(moments(x, y, text, country, (10, 3)))
    for c in range(3):
        own = country == c
        assert found[c] == pytest.approx(pearsonr(x[own], y[own]).statistic, abs=1e-9)


def test_scores_are_fishers_z_and_n_minus_3():
    rng = np.random.default_rng(SEED)
    sizes = [4, 9, 30]
    text = np.repeat(np.arange(3), sizes)
    x, y = rng.normal(size=(2, 43))
    each = [pearsonr(x[text == t], y[text == t]).statistic for t in range(3)]
    z, n = scores(moments(x, y, text, np.zeros(43, dtype=int), (3, 1)))
    assert z[:, 0] == pytest.approx(np.arctanh(each))
    assert n[:, 0].tolist() == [1, 6, 27]


def test_texts_that_are_too_few_or_flat_do_not_count():
    text = np.repeat(np.arange(3), [3, 5, 5])
    x = np.array([1.0, 2, 3, 1, 1, 1, 1, 1, 1, 2, 3, 4, 5])
    y = np.array([1.0, 2, 3, 1, 2, 3, 4, 5, 5, 3, 4, 1, 2])
    z, n = scores(moments(x, y, text, np.zeros(13, dtype=int), (3, 1)))
    assert n[:, 0].tolist() == [0, 0, 2]
    assert z[2, 0] == pytest.approx(np.arctanh(pearsonr(x[8:], y[8:]).statistic))
