import gzip
import json
from itertools import permutations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stereotypes.recall import chance, exchange_lists, hits

SEED = 213
SHARED = Path(__file__).parents[3] / "shared/data"
LISTS = SHARED / "published/stereotypes/bert-base-uncased-corrected.json.gz"
KNOWN = SHARED / "stereotypes/single_word_stereo_dataset.csv"


def test_hits_rise_with_k():
    ranks, groups = np.array([2, 5, 0, 1, 9]), np.array([0, 0, 0, 1, 1])
    found = hits(ranks, groups, 3, 6)
    assert found.tolist() == [[0, 1, 1, 1, 2, 2], [1, 1, 1, 1, 1, 1], [0] * 6]
    value, _, _ = clustered(found, np.array([3, 2, 0]))
    assert value.tolist() == pytest.approx([0.2, 0.4, 0.4, 0.4, 0.6, 0.6])


def test_chance_by_enumeration():
    length, listed = 5, [0, 1, 2, 3]
    found = chance(np.array(listed), np.full(4, length), length)
    for row, times in enumerate(listed):
        first = [min((o[i] for i in range(times)), default=9) for o in permutations(range(length))]
        by_hand = [np.mean([f < k for f in first]) for k in range(1, length + 1)]
        assert found[row] == pytest.approx(by_hand)


def test_lists_shorter_than_k_hold_all_they_have():
    assert chance(np.array([1]), np.array([2]), 4).tolist() == [[0.5, 1, 1, 1]]


def test_exchanged_lists_by_enumeration():
    table = np.array([[[2.0], [0.0], [1.0]], [[1.0], [3.0], [0.0]]])  # two groups, three lists
    found = exchange_lists(table, np.array([0, 1]), 6000, SEED)
    ways = [table[0, a, 0] + table[1, b, 0] for a, b in permutations(range(3), 2)]
    values, counts = np.unique(found, return_counts=True)
    shares = {v: ways.count(v) / 6 for v in set(ways)}
    assert values.tolist() == sorted(shares)
    assert (counts / 6000).tolist() == pytest.approx([shares[v] for v in values], abs=0.03)
    with pytest.raises(ValueError):
        exchange_lists(table, np.array([1, 1]), 9, SEED)


@pytest.mark.shared
def test_the_authors_filter_drops_a_group_that_they_misspelt():
    if not (LISTS.is_file() and KNOWN.is_file()):
        pytest.skip(f"{LISTS} or {KNOWN} is not there")
    lists = json.loads(gzip.decompress(LISTS.read_bytes()))
    known = pl.read_csv(KNOWN, separator="\t").with_columns(pl.all().str.strip_chars())
    known = known.filter(target_category="age")
    assert {"millennials", "millenials"} <= set(known["target_group"])
    # their list of groups has the other spelling only, so that 14 rows are never counted
    kept = known.filter(pl.col("target_group") != "millennials").select("input", "completion")
    place = {q: {w: i for i, (w, _) in enumerate(ranked, 1)} for q, ranked in lists.items()}
    ranks = np.array([place[query].get(word, 0) for query, word in kept.iter_rows()])
    assert len(ranks) == 137
    found = hits(ranks, np.zeros(len(ranks), dtype=np.int64), 1, 200)
    value, _, _ = clustered(found, np.array([len(ranks)]))
    assert round(value[99], 3) == 0.467
