"""Variances of means over rows that share texts and names."""

import numpy as np
import pytest

from plumbline.probes.stats.linear import dummies
from plumbline.probes.stats.two_way import between_names, replicated, two_way

SEED = 20261123


def world(rng, countries, texts, draws, names, sd_names, sd_rest, shift=0.0):
    """Return changes and codes of rows: no country differs, but for a shift of the first."""
    own = rng.normal(0, sd_names, (countries, names))
    own[0] += shift
    name = np.argsort(rng.random((texts, countries, names)), axis=2)[:, :, :draws]
    text, country, _ = np.indices(name.shape)
    change = rng.normal(size=(texts, 1, 1)) + own[country, name]
    change = change + rng.normal(0, sd_rest, name.shape)
    codes = (country, text, country * names + name)
    return change.reshape(-1, 1), *(code.ravel() for code in codes)


def against(countries):
    return np.eye(countries) - 1 / countries


def judged(change, country, text, name, contrasts):
    means = np.bincount(country, change[:, 0]) / np.bincount(country)
    found = two_way(change, country, text, [name], contrasts)
    estimate = contrasts @ means
    return estimate, found.p(estimate[:, None])[:, 0], found


def test_it_is_cameron_gelbach_and_millers_where_no_text_has_a_part_of_its_own():
    """Sums over texts, plus over names, minus over both, of residuals that are scaled by CR2."""
    rng = np.random.default_rng(SEED)
    change, country, text, name = world(rng, 1, 40, 3, 10, 2.0, 1.0)
    rest = (change[:, 0] - change.mean()) / len(change)
    parts = []
    for code in (text, name, text * 10 + name):
        levels = dummies([str(c) for c in code], ["", *map(str, np.unique(code))])
        share = levels.mean(axis=0)
        parts.append((((levels.T @ rest) ** 2) / (1 - share)).sum())
    found = judged(change, country, text, name, np.ones((1, 1)))[2]
    assert parts[1] > parts[2]
    assert found.se[0, 0] ** 2 == pytest.approx(parts[0] + parts[1] - parts[2])
    assert found.shared[0, 0] == pytest.approx(parts[1] - parts[2])


def test_names_that_several_countries_share_count_in_all_of_them():
    """The same name in two countries is no difference between them."""
    rng = np.random.default_rng(SEED)
    change, country, text, name = world(rng, 2, 60, 4, 8, 0.0, 0.1)
    shared = name % 8
    change = change + rng.normal(0, 3, 8)[shared][:, None]
    contrasts = np.array([[1.0, -1.0]])
    apart = two_way(change, country, text, [name], contrasts)
    known = two_way(change, country, text, [shared], contrasts)
    assert known.se[0, 0] < 0.2 * apart.se[0, 0]


def test_a_contrast_and_its_opposite_are_one_test_whatever_their_unit():
    rng = np.random.default_rng(SEED)
    change, country, text, name = world(rng, 4, 40, 3, 6, 0.3, 0.3)
    contrast = np.array([[1.0, -0.5, -0.5, 0.0]])
    found, opposite, larger = (
        two_way(change, country, text, [name], factor * contrast) for factor in (1, -1, 3)
    )
    assert found.shared[0, 0] > 0  # so that names have degrees of freedom of their own
    assert opposite.freedom == pytest.approx(found.freedom)
    assert larger.freedom == pytest.approx(found.freedom)
    assert larger.se == pytest.approx(3 * found.se)


def test_first_and_last_names_are_both_counted():
    """With both the variance is that of sums over first names plus sums over last ones."""
    rng = np.random.default_rng(SEED)
    ratios = []
    for _ in range(40):
        text = np.repeat(np.arange(60), 4)
        first, last = rng.integers(0, 12, (2, len(text)))
        own = rng.normal(size=(2, 12))
        change = (own[0][first] + own[1][last] + rng.normal(size=len(text)))[:, None]
        where = (change, 0 * text, text)
        both = two_way(*where, [first, last], np.ones((1, 1))).se[0, 0] ** 2
        ratios.append([both, two_way(*where, [first], np.ones((1, 1))).se[0, 0] ** 2])
    both, one = np.mean(ratios, axis=0)
    assert both == pytest.approx(2 / 12 + 1 / 240, rel=0.25)
    assert one == pytest.approx(1 / 12 + 1 / 240, rel=0.3)


def test_a_country_of_one_name_has_no_p_and_constant_rows_none_either():
    text = np.repeat(np.arange(10), 2)
    country = np.tile([0, 1], 10)
    values = np.column_stack([np.arange(20.0), country, np.zeros(20)])
    name = np.where(country == 0, 0, 1 + text % 5)
    found = two_way(values, country, text, [name], np.eye(2))
    assert np.isnan(found.se[0]).all()
    assert not np.isnan(found.se[1]).any()
    p = found.p(np.array([[9.5, 0.0, 0.0], [10.5, 1.0, 0.0]]))
    assert np.isnan(p[0]).all()
    assert np.isnan(p[1, 1])  # the same in all rows: no spread, no evidence
    assert p[1, 2] == 1


@pytest.mark.parametrize("few", [2, 6])
def test_a_country_in_few_texts_leaves_the_others_their_size_and_their_power(few):
    rng = np.random.default_rng(SEED)
    shape = (13, 53, 2, 10, 0.3, 1.0)  # countries, texts, draws, names; SD of names, of the rest
    contrasts = against(13)

    def without(rows):
        kept = (rows[1] < 12) | (rows[2] < few)
        return judged(*(each[kept] for each in rows), contrasts)

    null = [without(world(rng, *shape)) for _ in range(80)]
    p = np.array([found[1] for found in null])
    assert 0.02 <= (p[:, :12] <= 0.05).mean() <= 0.085
    assert (p[:, 12] <= 0.05).mean() <= 0.085
    sd = np.std([found[0][:12] for found in null])
    moved = [without(world(rng, *shape, 3 * sd))[1][0] for _ in range(60)]
    assert np.mean(np.array(moved) <= 0.05) > 0.4


def test_contrasts_with_a_country_that_has_no_error_have_none_and_the_others_do():
    rng = np.random.default_rng(SEED)
    change, country, text, name = world(rng, 4, 20, 2, 6, 0.3, 1.0)
    name = np.where(country == 3, 18, name)  # of one name
    kept = (country != 2) | (text == 0)  # in one text
    change, country, text, name = (each[kept] for each in (change, country, text, name))
    there = replicated(country, text, [name], 4)
    assert there.tolist() == [True, True, False, False]
    of_two = np.array([[0.5, -0.5, 0, 0], [-0.5, 0.5, 0, 0]])
    every, some = (judged(change, country, text, name, c)[1] for c in (against(4), of_two))
    assert np.isnan(every).all()
    assert not np.isnan(some).any()


def test_few_names_on_both_sides_leave_few_degrees_of_freedom():
    """Of five names against five, by freedom of texts, p of .001 are ten times too frequent."""
    seed, texts, countries, each = 20261128, 53, 13, 5
    rng = np.random.default_rng(seed)
    found, before = [], []
    for _ in range(300):
        text, country = np.indices((texts, countries)).reshape(2, -1)[:, rng.random(689) < 0.56]
        sides = [rng.integers(each, size=len(text)) + country * each for _ in range(2)]
        one, other = rng.normal(0, 0.7, (2, countries * each))
        change = one[sides[0]] - other[sides[1]] + rng.normal(0, 2**0.5, len(text))
        tested = two_way(change[:, None], country, text, sides, np.eye(countries))
        mean = np.bincount(country, change) / np.bincount(country)
        before.append(tested.p(mean[:, None]))
        freedom = between_names(tested.freedom, country, sides)
        found.append(tested._replace(freedom=freedom).p(mean[:, None]))
    shares = [[np.mean(np.stack(p) <= level) for level in (0.05, 0.001)] for p in (found, before)]
    assert 0.02 < shares[0][0] < 0.06, f"seed {seed}: {shares}"
    assert shares[0][1] < 0.003 < 0.006 < shares[1][1], f"seed {seed}: {shares}"
