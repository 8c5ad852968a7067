"""Pooling over models: known answers, models that repeat each other, and who is pooled."""

import json
from math import log

import numpy as np
import pytest
from test_analysis_pmi import PARAMS as SINGLE
from test_analysis_pmi import SEED, Study, random_lists

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import pmi

PARAMS = SINGLE.model_copy(update={"groups": {"both": ["a", "b"]}, "n_permutations": 999})


class Studies:
    """Two models that were asked about the same people."""

    def __init__(self, folder):
        self.folder = folder
        self.one = {name: Study(folder, name) for name in ("a", "b")}
        self.inputs = Inputs(("a", "b"), {"politicians": folder / "people"}, folder)

    def write(self, language, lists_of, genders, names=None):
        for name, lists in lists_of.items():
            self.one[name].write(language, lists, genders, names)

    def run(self, table="pooled", **changed):
        return pmi.pooled(self.inputs, PARAMS.model_copy(update=changed))[table]


@pytest.fixture
def studies(tmp_path):
    return Studies(tmp_path)


def cell(table, word, gender, reading="plug-in", **other):
    (row,) = table.filter(word=word, gender=gender, reading=reading, **other).iter_rows(named=True)
    return row


def test_pooled_adds_counts_and_permutes_names(studies):
    # lists of the first man: kind, kind; of the second: kind, calm; of the women: calm, calm
    lists = {
        "a": {"ADJ": ["kind", "kind", "calm", "calm"]},
        "b": {"ADJ": ["kind", "calm", "calm", "calm"]},
    }
    studies.write("en", lists, "mmww")
    table = studies.run(n_permutations=20_000)
    row = cell(table, "kind", "male")
    assert (row["count"], row["people"], row["n"]) == (3, 2, 4)
    assert (row["members"], row["group"], row["p"]) == ("a, b", "both", None)
    assert row["value"] == pytest.approx(log(3 * 8 / (3 * 4)), abs=1e-6)
    # pairs of the four names have 3, 2, 2, 1, 1 or 0 lists with the word: mean 1.5, and as far
    # from it as 3 are 3 and 0: 2 of 6
    p = cell(table, "kind", "male", "smoothed")["p"]
    assert p == pytest.approx(1 / 3, abs=0.02)


def test_pooled_one_model_has_the_table_of_pmi(studies):
    rng = np.random.default_rng(SEED)
    lists = {"ADJ": random_lists(rng, 40), "VERB": random_lists(rng, 40)}
    studies.write("en", {"a": lists, "b": lists}, "mw" * 20)
    found = studies.run(groups={"alone": ["a"]})
    alone = Inputs(("a",), studies.inputs.datasets, studies.folder)
    single = pmi.run(alone, SINGLE)["pmi"]
    columns = [c for c in single.columns if c in found.columns]
    assert found.select(columns).equals(single.select(columns))


def test_differences_worked_by_hand(studies):
    # women: calm in 4 of 5 entries; men: kind in 6 of 9
    lists = {
        "a": {"ADJ": ["kind", "kind", "kind calm", "calm", "calm"]},
        "b": {"ADJ": ["kind calm", "kind", "kind calm", "kind calm", "calm"]},
    }
    studies.write("en", lists, "mmmww")
    found = studies.run("differences").filter(unit="form", reading="plug-in")
    assert found["word"].to_list() == ["kind", "calm"]  # the largest first
    expected = [log(1 / 5 / (6 / 9)), log(4 / 5 / (3 / 9))]
    assert found["value"].to_list() == pytest.approx(expected, abs=1e-6)
    studies.write("en", {name: {"ADJ": ["kind"] * 4} for name in "ab"}, "mmmm")
    assert studies.run("differences").is_empty()


def test_differences_words_of_one_gender_rank_first(studies):
    # a: only women; f: only men, two of whom have one name; c: only somebody non-binary
    lists = {m: {"ADJ": ["a b", "a b", "a b", "a d", "b d", "f d", "f d", "c d"]} for m in "ab"}
    studies.write("en", lists, "wwwwmmmx", [*"ABCDEF", "F", "G"])
    found = studies.run("differences", groups={"one": ["a"]}).filter(unit="form")
    columns = ["word", "rank", "count_female", "count_male", "value"]
    plain = found.filter(reading="plug-in").select(columns).rows()
    assert plain[:2] == [("a", 1, 4, 0, None), ("f", 2, 0, 2, None)]  # shares 4 of 8, 2 of 6
    assert [row[:4] for row in plain[2:]] == [("d", 3, 1, 3), ("b", 4, 3, 1), ("c", 5, 0, 0)]
    values = [log(1 / 8 / (3 / 6)), log(3 / 8 / (1 / 6))]
    assert [row[4] for row in plain[2:4]] == pytest.approx(values, abs=1e-6)
    # half an entry more for each of five words: 8 of women and 4 of men's distinct names
    smoothed = found.filter(reading="smoothed").rows_by_key("word", named=True, unique=True)
    assert [smoothed["f"][name] for name in columns[2:4]] == [0, 1]
    assert smoothed["a"]["value"] == pytest.approx(log(4.5 / 10.5 / (0.5 / 6.5)), abs=1e-6)
    assert smoothed["c"]["value"] is smoothed["c"]["low"] is None
    assert sorted(row["rank"] for row in smoothed.values()) == [1, 2, 3, 4, 5]


def test_pooled_all_leaves_worlds_out(studies):
    studies.write("en", {"a": {"ADJ": ["kind"] * 4}, "b": {"ADJ": ["calm"] * 4}}, "mmww")
    (studies.one["b"].weights / "world.json").write_text(json.dumps({}), encoding="utf-8")
    found = studies.run(groups={"all": "all", "named": ["b", "a"]})
    assert set(found.filter(group="all", unit="form")["word"]) == {"kind"}
    assert set(found.filter(group="named", unit="form")["word"]) == {"kind", "calm"}


@pytest.mark.parametrize("changed", [{"groups": {"odd": ["a", "c"]}}, {"min_count": 9}])
def test_pooled_refuses(studies, changed):
    studies.write("en", {"a": {"ADJ": ["kind"] * 4}, "b": {"ADJ": ["kind"] * 4}}, "mmww")
    with pytest.raises(UserError, match=next(iter(changed))):
        studies.run(**changed)
