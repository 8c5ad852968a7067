import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import fisher_exact

from plumbline.probes.stats import shares
from plumbline.probes.stats.tests import fisher_p, permutation_p

SEED = 41


def test_thirty_against_fifteen_of_a_hundred():
    p = fisher_p(np.array([[30, 15]]), np.array([100, 100]))[0, 0]
    assert p == pytest.approx(0.017149, abs=5e-7)
    assert p == pytest.approx(fisher_exact([[30, 15], [70, 85]]).pvalue, rel=1e-9)


def test_of_equal_deviations_the_first_is_taken():
    assert shares.largest(np.array([1.0, 3.0, 3.0, 1.0]), 3).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="5 largest of 4"):
        shares.largest(np.zeros(4), 5)


def by_hand():
    """Three men with words 0 and 1, three women with words 2 and 3; one man has 2 for 1."""
    rows = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    return csr_array(np.array(rows, dtype=np.float64)), np.array([0, 0, 0, 1, 1, 1])


def test_shares_worked_by_hand():
    # men: 0 (3 of 3), 1 (2 of 2), 2 (1 of 4), 3 (0 of 3); women: 3, 2, 1, 0
    # half a list more in each cell: 0 and 1 first for men, 3 and 2 for women
    lists, groups = by_hand()
    found = shares.of_names(lists, groups, np.array([0, 1, 1, 2]), 2, 3, 0.5)
    assert found.tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    found = shares.of_names(lists, groups, np.array([0, 1, 1, 2]), 1, 3, 0.5)
    assert found.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_all_words_are_the_base_for_everybody():
    lists, groups = by_hand()
    found = shares.resampled(lists, groups, np.array([0, 1, 1, 2]), 4, 3, 0.5, 20, SEED)
    assert found.shape == (20, 2, 3)
    assert (found == [0.25, 0.5, 0.25]).all()


def drawn(rng, names, words, effect, mood=0.0, length=10):
    """Return lists whose odds depend on gender (effect) and on a name's mood, and their classes."""
    classes = np.arange(words) % 3
    side = np.array([1.0, -1.0, 0.0])[classes]
    groups = np.arange(names) % 2
    taste = rng.normal(0, 1, (names, words)) + (groups - 0.5)[:, None] * effect * side
    taste += mood * rng.normal(0, 1, (names, 1)) * side
    best = np.argsort(-taste, axis=1)[:, :length]
    lists = np.zeros((names, words))
    np.put_along_axis(lists, best, 1, axis=1)
    return csr_array(lists), groups, classes


def p_of(lists, groups, classes, size, seed):
    seen = shares.of_names(lists, groups, classes, size, 3, 0.5)
    null = shares.permuted(lists, groups, classes, size, 3, 0.5, 199, seed)
    by_name = permutation_p(seen[0, 0] - seen[1, 0], null[:, 0, 0] - null[:, 1, 0])
    hits = np.rint(seen[:, 0] * size).astype(np.int64)
    return by_name, fisher_p(hits[None], np.array([size, size]))[0, 0]


def test_what_is_planted_is_found():
    print("seed", SEED)
    lists, groups, classes = drawn(np.random.default_rng(SEED), 200, 60, 1.5)
    seen = shares.of_names(lists, groups, classes, 20, 3, 0.5)
    assert seen[1, 0] > 0.9  # the second group has the first class
    assert seen[0, 1] > 0.9
    by_name, by_word = p_of(lists, groups, classes, 20, SEED)
    assert by_name == 1 / 200
    assert by_word < 1e-6


def test_permuting_words_finds_too_much_where_names_have_moods_and_permuting_names_does_not():
    """No gender has to do with anything here, but a name likes or dislikes all positive words."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    found = np.array([p_of(*drawn(rng, 60, 60, 0.0, mood=1.0), 20, i) for i in range(120)])
    by_name, by_word = (found <= 0.05).mean(axis=0)
    assert by_name < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 120)
    assert by_word > 0.25


def test_permuting_leaves_a_third_group_as_it_is():
    lists, groups = by_hand()
    third = csr_array(np.vstack([lists.toarray(), [[0, 0, 0, 1.0]]]))
    given = (np.array([0, 1, 1, 2]), 1, 3, 0.5, 30, SEED)
    found = shares.permuted(third, np.array([*groups, 2]), *given)
    assert (found[:, 2] == [0, 0, 1]).all()
    assert len(np.unique(found[:, 0], axis=0)) > 1


def test_blocks_do_not_matter(monkeypatch):
    print("seed", SEED)
    lists, groups, classes = drawn(np.random.default_rng(SEED), 30, 12, 0.5)
    given = (lists, groups, classes, 4, 3, 0.5, 25, SEED)
    once = shares.permuted(*given)
    monkeypatch.setattr(shares, "WEIGHTS", 200)
    assert (shares.permuted(*given) == once).all()


def test_a_symmetric_interval_has_the_estimate_in_its_middle_and_stays_a_share():
    drawn = np.linspace(0.5, 0.7, 101)  # all on one side of the estimate
    low, high = shares.symmetric(drawn, 0.75, 0.95, 0.0)
    assert (low + high) / 2 == pytest.approx(0.75)
    assert high - 0.75 == pytest.approx(0.25 - 0.05 * 0.2)  # 0.51 is as far as 95 in 100 go
    assert shares.symmetric(drawn, 0.9, 0.95, 0.0)[1] == 1
    assert shares.symmetric(-drawn, -0.9, 0.95, -1.0)[0] == -1
