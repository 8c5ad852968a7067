import random
from itertools import combinations

import pytest

from plumbline.builders.datasets.corpora import near_duplicates
from plumbline.builders.datasets.corpora.near_duplicates import compare, jaccard, shingles


@pytest.mark.parametrize(
    ("a", "b", "words", "index"),
    [
        ("A b, c d: e -- f!", "a b c d e f", 5, 1),
        ("a b c d e f", "a b c d e g", 5, 1 / 3),
        ("a b", "b a", 5, 0),
        ("a b", "b a", 1, 1),
        ("a a a a a a", "a a a a a", 5, 1),
        ("a b c", "a b c d", 5, 0),  # shorter than a run: one run, of its own length
    ],
)
def test_jaccard_known_indices(monkeypatch, a, b, words, index):
    monkeypatch.setattr(near_duplicates, "WORDS", words)
    assert jaccard(shingles(a), shingles(b)) == index


def test_buckets_recall_and_precision(monkeypatch):
    rng = random.Random(4)
    print("seed 4")
    monkeypatch.setattr(near_duplicates, "WORDS", 1)
    texts = []
    for _ in range(150):
        own = [f"{rng.random()}" for _ in range(60)]
        texts += [" ".join(own), " ".join([*own[:54], *(f"{rng.random()}" for _ in range(6))])]
    found = near_duplicates.buckets(texts)  # 54 of 66: 0.818
    together = {(a, b) for a, b in combinations(sorted(found), 2) if set(found[a]) & set(found[b])}
    assert {(n, n + 1) for n in range(0, 300, 2)} <= together
    assert len(together) < 155  # of 44,850 pairs


def test_compare_keeps_the_first(monkeypatch):
    monkeypatch.setattr(near_duplicates, "WORDS", 1)
    found = compare(["a b c", "c b a", "d", "a c b"], [0, 0, 0, 0])
    assert (found.duplicates, found.leaks) == ({1: 0, 3: 0}, {})


def test_compare_leaks_and_duplicates(monkeypatch):
    monkeypatch.setattr(near_duplicates, "WORDS", 1)
    found = compare(["a b c", "c b a", "a c b", "a b c"], [0, 1, 0, 1])
    assert found.leaks == {0: {1, 3}, 1: {0}, 3: {0}}
    assert found.duplicates == {2: 0}
