"""The difference of PMI with women and with men: exact values, order, intervals over names."""

import math

import associated
import numpy as np
import polars as pl
import pytest

from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.columns import OF_PMI
from plumbline.probes.politicians.words.gender_difference import differences
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts

SEED = 11


def counted(folder, lists, genders):
    study = associated.Study(folder)
    study.write("en", {"ADJ": lists}, genders)
    ((_, source, path), _) = word_counts.sources(study.inputs, study.model)
    return word_counts.count(source, word_counts.read_people(path))


def rows(counts, reading="plug-in"):
    chosen = np.arange(len(counts.words))
    draws = bootstrap_counts(counts, chosen, 200, 1)
    found = differences(counts, chosen, draws, 0.5, 1, 0.95)
    own = found.filter(pl.col("reading") == OF_PMI.index(reading))
    return {row["word"]: row for row in own.iter_rows(named=True)}


def test_the_difference_is_the_log_ratio_of_shares_and_ranked_by_its_size(tmp_path):
    # women: 4 of 8 entries are a, 2 are b, 2 are c; men: 1, 2 and 3 of 6
    lists = ["a b", "a c", "a b", "a c", "c b", "c b", "c a"]
    counts = counted(tmp_path, lists, "wwwwmmm")
    found = rows(counts)
    assert found["a"]["value"] == pytest.approx(math.log((4 / 8) / (1 / 6)), abs=1e-6)
    assert found["b"]["value"] == pytest.approx(math.log((2 / 8) / (2 / 6)), abs=1e-6)
    assert found["c"]["value"] == pytest.approx(math.log((2 / 8) / (3 / 6)), abs=1e-6)
    assert [word for word, _ in sorted(found.items(), key=lambda kv: kv[1]["rank"])] == [*"acb"]
    assert (found["a"]["count_female"], found["a"]["count_male"]) == (4, 1)
    more = rows(counts, "smoothed")
    assert more["a"]["value"] == pytest.approx(math.log((4.5 / 9.5) / (1.5 / 7.5)), abs=1e-6)


def test_a_word_that_no_man_has_comes_last_in_the_plug_in_and_is_finite_when_smoothed(tmp_path):
    counts = counted(tmp_path, ["a b", "a b", "b c", "b c"], "wwmm")
    found = rows(counts)
    assert found["a"]["value"] is None
    assert found["b"]["rank"] == 1
    assert rows(counts, "smoothed")["a"]["value"] == pytest.approx(math.log(2.5 / 0.5), abs=1e-6)


def test_intervals_over_names_hold_the_planted_difference(tmp_path):
    """Word 0 is in the lists of 6 in 10 women and 3 in 10 men, beside one of nine others."""
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    held = []
    for trial in range(40):
        folder = tmp_path / str(trial)
        folder.mkdir()
        genders = "w" * 60 + "m" * 120
        chance = {"w": 0.6, "m": 0.3}
        lists = [
            " ".join(["w0"] * (rng.random() < chance[g]) + [f"w{rng.integers(1, 10)}"])
            for g in genders
        ]
        row = rows(counted(folder, lists, genders), "smoothed")["w0"]
        true = math.log((0.6 / 1.6) / (0.3 / 1.3))
        held.append(row["low"] <= true <= row["high"])
    assert sum(held) >= 34  # of 40 at .95, fewer in 4 of 1,000


def test_without_men_there_is_no_difference(tmp_path):
    counts = counted(tmp_path, ["a b", "b c"], "ww")
    chosen = np.arange(len(counts.words))
    found = differences(counts, chosen, bootstrap_counts(counts, chosen, 200, 1), 0.5, 1, 0.95)
    assert found.is_empty()
