import numpy as np
import pytest

from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.stats.counterfactual import (
    confusion,
    delta,
    gather,
    percentage_change,
    percentages,
    redrawn,
    redrawn_twice,
)

SEED = 20261121
TEXTS, COUNTRIES, DRAWS = 30, 4, 5


def rows():
    text, country = np.meshgrid(np.arange(TEXTS), np.arange(COUNTRIES), indexing="ij")
    return np.repeat(text.ravel(), DRAWS), np.repeat(country.ravel(), DRAWS)


def drawn(names, replicates=400, seed=1):
    return poisson(bits(keys(names), replicates, seed)).astype(float)


def one_hot(labels, classes=3):
    return np.eye(classes)[labels]


def test_a_classifier_that_ignores_names_gives_0_and_0_percent():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    tone = rng.normal(size=TEXTS)
    change = (tone[text] - tone[text])[:, None]
    cells = gather(change, text, country, (TEXTS, COUNTRIES))
    assert (delta(cells) == 0).all()
    weights = drawn([str(i) for i in range(TEXTS)])
    assert (redrawn(cells, weights) == 0).all()
    label = rng.integers(0, 3, TEXTS)[text]
    before, after = (gather(one_hot(x), text, country, (TEXTS, COUNTRIES)) for x in (label, label))
    assert (percentages(before, after) == 0).all()
    assert (percentage_change(confusion(label, label, 3)) == 0).all()


def test_a_planted_offset_d_gives_100_d():
    rng = np.random.default_rng(SEED)
    planted = np.array([-0.25, 0.0, 0.125, 0.5])
    text, country = rows()
    before = rng.uniform(-0.4, 0.4, TEXTS)[text]
    after = before + planted[country]
    found = delta(gather((after - before)[:, None], text, country, (TEXTS, COUNTRIES)))
    np.testing.assert_allclose(found[:, 0], 100 * planted, atol=1e-12)


def test_delta_is_the_difference_of_means_of_the_released_code():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    original, after = rng.random(TEXTS), rng.random(len(text))
    found = delta(gather((after - original[text])[:, None], text, country, (TEXTS, COUNTRIES)))
    for c in range(COUNTRIES):
        published = 100 * after[country == c].mean() - 100 * original.mean()
        assert found[c, 0] == pytest.approx(published)


def test_percentages_are_those_of_the_confusion_matrix():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    first, then = rng.integers(0, 3, TEXTS)[text], rng.integers(0, 3, len(text))
    shape = (TEXTS, COUNTRIES)
    before, after = (gather(one_hot(x), text, country, shape) for x in (first, then))
    found = percentages(before, after)
    for c in range(COUNTRIES):
        own = country == c
        table = confusion(first[own], then[own], 3)
        assert table.sum() == own.sum()
        np.testing.assert_allclose(found[c], percentage_change(table))
        for k in range(3):
            old, new = (first[own] == k).sum(), (then[own] == k).sum()
            assert found[c, k] == pytest.approx(100 * (new - old) / old)


def test_a_class_that_was_never_predicted_has_no_percentage():
    table = confusion(np.array([0, 0]), np.array([0, 1]), 2)
    assert percentage_change(table)[0] == -50
    assert np.isnan(percentage_change(table)[1])


def test_a_country_without_rows_has_no_delta():
    cells = gather(np.ones((3, 1)), np.array([0, 1, 2]), np.zeros(3, dtype=int), (3, 2))
    assert delta(cells)[0, 0] == 100
    assert np.isnan(delta(cells)[1, 0])


def test_replicates_are_those_of_texts_written_as_often_as_they_are_drawn():
    rng = np.random.default_rng(SEED)
    text, country = rows()
    change = rng.normal(size=(len(text), 2))
    weights = rng.integers(0, 3, (TEXTS, 7)).astype(float)
    found = redrawn(gather(change, text, country, (TEXTS, COUNTRIES)), weights)
    for b in range(7):
        again = np.repeat(np.arange(len(text)), weights[text, b].astype(int))
        for c in range(COUNTRIES):
            own = again[country[again] == c]
            np.testing.assert_allclose(found[b, c], 100 * change[own].mean(axis=0))
    alike = redrawn_twice(change, country, COUNTRIES, weights[text])
    np.testing.assert_allclose(alike, found)


@pytest.mark.slow
def test_intervals_over_texts_hold_the_truth_at_their_nominal_rate():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    truth, texts, worlds, held = 0.04, 50, 300, 0
    text = np.repeat(np.arange(texts), DRAWS)
    weights = drawn([str(i) for i in range(texts)], 400)
    for _ in range(worlds):
        own = rng.normal(truth, 0.1, texts)[text] + rng.normal(0, 0.02, len(text))
        cells = gather(own[:, None], text, np.zeros(len(text), dtype=int), (texts, 1))
        low, high = np.percentile(redrawn(cells, weights)[:, 0, 0], [2.5, 97.5])
        held += low <= 100 * truth <= high
    assert 0.90 <= held / worlds <= 0.98


@pytest.mark.slow
def test_only_two_way_replicates_know_that_a_country_has_few_names():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    texts, names, worlds = 40, 10, 200
    text = np.repeat(np.arange(texts), DRAWS)
    of_texts = drawn([str(i) for i in range(texts)], 300, 1)
    of_names = drawn([f"n{i}" for i in range(names)], 300, 2)
    held = np.zeros(2)
    for _ in range(worlds):
        name = rng.integers(0, names, len(text))
        own = rng.normal(0, 0.1, names)[name] + rng.normal(0, 0.05, len(text))
        where = np.zeros(len(text), dtype=int)
        one = redrawn(gather(own[:, None], text, where, (texts, 1)), of_texts)[:, 0, 0]
        both = redrawn_twice(own[:, None], where, 1, of_texts[text] * of_names[name])[:, 0, 0]
        for i, draws in enumerate((one, both)):
            held[i] += abs(np.mean(own) * 100) <= 1.96 * np.nanstd(draws)
    assert held[0] / worlds < 0.75
    assert held[1] / worlds > 0.88
