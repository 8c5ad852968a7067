import random
from itertools import combinations

import numpy as np
import pytest
from pydantic import ValidationError

from plumbline.builders.datasets.corpora import near_duplicates


def runs(text: str, words: int) -> set[str]:
    """Return the runs of words themselves, to hold the hashed ones to."""
    found = text.lower().split()
    return {" ".join(found[i : i + words]) for i in range(max(1, len(found) - words + 1))}


def test_hashed_runs_have_the_index_of_the_runs_themselves():
    rng = random.Random(7)
    print("seed 7")
    few = [f"word{n}" for n in range(12)]  # so that runs repeat and texts share them
    for _ in range(300):
        k = rng.randint(1, 6)
        a, b = (" ".join(rng.choices(few, k=rng.randint(1, 30))) for _ in range(2))
        own, other = runs(a, k), runs(b, k)
        if min(len(a.split()), len(b.split())) >= k:
            exact = len(own & other) / len(own | other)
            assert (
                near_duplicates.jaccard(
                    near_duplicates.shingles(a, k), near_duplicates.shingles(b, k)
                )
                == exact
            )
        assert len(near_duplicates.shingles(a, k)) == len(own)


@pytest.mark.parametrize(
    ("a", "b", "words", "index"),
    [
        ("a b c d e f", "a b c d e f", 5, 1),
        ("A b, c d: e -- f!", "a b c d e f", 5, 1),
        ("a b c d e f", "a b c d e g", 5, 1 / 3),
        ("a b", "b a", 5, 0),
        ("a b", "b a", 1, 1),
        ("a a a a a a", "a a a a a", 5, 1),
        ("a b c", "a b c d", 5, 0),  # shorter than a run: one run, of its own length
    ],
)
def test_known_indices(a, b, words, index):
    assert (
        near_duplicates.jaccard(
            near_duplicates.shingles(a, words), near_duplicates.shingles(b, words)
        )
        == index
    )


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 1.0])
def test_bands_find_pairs_at_the_threshold_with_the_recall_they_promise(threshold):
    number, rows = near_duplicates.bands(threshold, 128)
    assert number * rows <= 128
    assert 1 - (1 - threshold**rows) ** number >= near_duplicates.RECALL
    assert (
        1 - (1 - threshold ** (rows + 1)) ** (128 // (rows + 1)) < near_duplicates.RECALL
        or rows == 128
    )


def test_every_pair_that_is_alike_shares_a_bucket_and_others_hardly_do():
    rng = random.Random(4)
    print("seed 4")
    params = near_duplicates.Params(words=1)
    signer = near_duplicates.Signer(params)
    texts = []
    for _ in range(150):
        own = [f"{rng.random()}" for _ in range(60)]
        texts += [" ".join(own), " ".join([*own[:54], *(f"{rng.random()}" for _ in range(6))])]
    found = near_duplicates.buckets(
        np.stack([signer.sign(t) for t in texts]), 0.8
    )  # 54 of 66: 0.818
    together = {(a, b) for a, b in combinations(sorted(found), 2) if set(found[a]) & set(found[b])}
    assert {(n, n + 1) for n in range(0, 300, 2)} <= together
    assert len(together) < 155  # of 44,850 pairs


@pytest.mark.slow
def test_signatures_are_the_same_in_any_process():
    import subprocess
    import sys

    code = (
        "from plumbline.builders.datasets.corpora import near_duplicates as near;"
        "print(near.Signer(near.Params()).sign('a b c d e f')[:9])"
    )
    env = {"PYTHONHASHSEED": "2", "PYTHONPATH": "."}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    own = near_duplicates.Signer(near_duplicates.Params()).sign("a b c d e f")[:9]
    assert done.stdout == f"{own}\n"


def sets(*texts: str) -> dict:
    return {i: near_duplicates.shingles(text, 1) for i, text in enumerate(texts)}


def compared(texts: list[str], corpus: list[int]) -> near_duplicates.NearDuplicates:
    """Compare texts that all share a bucket, in their order, at 0.8."""
    places = {i: [(0, 0)] for i in range(len(texts))}
    return near_duplicates.compare(range(len(texts)), corpus, places, sets(*texts), 0.8)


def test_the_first_of_a_corpus_stays():
    found = compared(["a b c", "c b a", "d", "a c b"], [0, 0, 0, 0])
    assert (found.same, found.leaks) == ({1: 0, 3: 0}, {})


def test_a_leak_is_told_on_both_sides_and_its_copies_are_duplicates():
    found = compared(["a b c", "c b a", "a c b", "a b c"], [0, 1, 0, 1])
    assert found.leaks == {0: {1, 3}, 1: {0}, 3: {0}}
    assert found.same == {2: 0}


def test_alike_is_not_transitive_and_chains_are_not_followed():
    words = [f"w{n}" for n in range(12)]
    first, middle, last = words[:10], words[1:11], words[2:]  # 9/11 to the next, 8/12 to the other
    found = compared([" ".join(t) for t in (first, middle, last)], [0, 0, 0])
    assert found.same == {1: 0}


@pytest.mark.parametrize("wrong", [{"threshold": 0}, {"threshold": 1.1}, {"words": 0}])
def test_params_that_mean_nothing_are_refused(wrong):
    with pytest.raises(ValidationError):
        near_duplicates.Params(**wrong)
