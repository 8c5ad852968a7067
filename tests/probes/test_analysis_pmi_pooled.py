"""Pooling over models: known answers, models that repeat each other, and who is pooled."""

import json
from math import log

import numpy as np
import polars as pl
import pytest
from test_analysis_pmi import PARAMS as SINGLE
from test_analysis_pmi import SEED, Study, random_lists

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import pmi

PARAMS = SINGLE.model_copy(update={"groups": {"both": ["a", "b"]}, "n_permutations": 999})
NUMBERS = ("value", "low", "high")


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


def cell(table, word, gender, reading=0, **other):
    chosen = table.filter(word=word, gender=gender, reading=reading, **other)
    assert len(chosen) == 1
    return chosen.row(0, named=True)


def test_counts_are_summed_over_models_and_p_is_that_of_all_relabellings(studies):
    # lists of the first man: kind, kind; of the second: kind, calm; of the women: calm, calm
    studies.write(
        "en",
        {
            "a": {"ADJ": ["kind", "kind", "calm", "calm"]},
            "b": {"ADJ": ["kind", "calm", "calm", "calm"]},
        },
        "mmww",
    )
    table = studies.run(n_permutations=20_000)
    row = cell(table, "kind", 0)
    assert (row["count"], row["count_all"], row["people"], row["n"]) == (3, 3, 2, 4)
    assert (row["models"], row["group"], row["family"], row["p"]) == (2, "both", 0, None)
    assert row["value"] == pytest.approx(log(3 * 8 / (3 * 4)), abs=1e-6)
    row = cell(table, "kind", 0, reading=1)
    assert (row["count"], row["people"], row["family"]) == (3, 2, 4)
    # pairs of the four names have 3, 2, 2, 1, 1 or 0 lists with the word: mean 1.5, and as far
    # from it as 3 are 3 and 0: 2 of 6
    assert row["p"] == pytest.approx(1 / 3, abs=0.02)
    assert "20000 drawn" in row["null"]


def test_a_group_of_one_model_has_the_table_of_pmi(studies):
    rng = np.random.default_rng(SEED)
    lists = {"ADJ": random_lists(rng, 40), "VERB": random_lists(rng, 40)}
    studies.write("en", {"a": lists, "b": lists}, "mw" * 20)
    found = studies.run(groups={"alone": ["a"]})
    alone = Inputs(("a",), studies.inputs.datasets, studies.folder)
    single = pmi.run(alone, SINGLE)["pmi"]
    columns = [c for c in single.columns if c not in ("model", "list_length")]
    assert found.select(columns).equals(single.select(columns))
    assert set(found["models"]) == {1}


def test_a_model_pooled_with_itself_is_no_more_certain(studies):
    rng = np.random.default_rng(SEED)
    lists = {"ADJ": random_lists(rng, 60)}
    names = [f"Name {i // 2}" for i in range(60)]
    lists["ADJ"][1::2] = lists["ADJ"][::2]
    studies.write("en", {"a": lists, "b": lists}, "mmww" * 15, names)
    one, two = studies.run(groups={"alone": ["a"]}), studies.run(n_permutations=9999)
    plain = [table.filter(reading=0) for table in (one, two)]
    for number in NUMBERS:
        assert plain[0][number].equals(plain[1][number])
    assert (plain[1]["count"] == 2 * plain[0]["count"]).all()
    assert plain[0]["n"].equals(plain[1]["n"])
    # with as many names of both genders, outcomes as far from the mean are as likely
    tested = [table.filter(reading=1) for table in (one, two)]
    exact, drawn = (table["p"].to_numpy() for table in tested)
    assert (np.abs(exact - drawn) <= 5 * np.sqrt(exact * (1 - exact) / 9999) + 2e-4).all()
    assert len(exact) >= 10
    assert exact.min() < 0.5


def test_differences_are_those_of_the_counts_of_all_models(studies):
    # women: calm in 4 of 5 entries; men: kind in 6 of 9
    studies.write(
        "en",
        {
            "a": {"ADJ": ["kind", "kind", "kind calm", "calm", "calm"]},
            "b": {"ADJ": ["kind calm", "kind", "kind calm", "kind calm", "calm"]},
        },
        "mmmww",
    )
    found = studies.run("differences").filter(unit=1, reading=0)
    rows = {row["word"]: row for row in found.iter_rows(named=True)}
    assert (rows["calm"]["count_female"], rows["calm"]["count_male"]) == (4, 3)
    assert (rows["kind"]["count_female"], rows["kind"]["count_male"]) == (1, 6)
    assert rows["calm"]["value"] == pytest.approx(log(4 / 5 / (3 / 9)), abs=1e-6)
    assert rows["kind"]["value"] == pytest.approx(log(1 / 5 / (6 / 9)), abs=1e-6)
    assert (rows["kind"]["rank"], rows["calm"]["rank"], rows["kind"]["models"]) == (1, 2, 2)
    studies.write("en", {name: {"ADJ": ["kind"] * 4} for name in "ab"}, "mmmm")
    assert studies.run("differences").is_empty()


def test_languages_have_the_models_that_were_asked_in_them(studies):
    studies.write("en", {"a": {"ADJ": ["kind"] * 4}, "b": {"ADJ": ["kind"] * 4}}, "mmww")
    studies.write("fr", {"b": {"ADJ": ["bon"] * 4}}, "mmww")
    found = studies.run()
    assert cell(found, "kind", 0)["models"] == 2
    assert cell(found, "bon", 0)["models"] == 1
    assert found["group"].unique().to_list() == ["both"]


def test_all_leaves_worlds_out_unless_they_are_named(studies):
    studies.write("en", {"a": {"ADJ": ["kind"] * 4}, "b": {"ADJ": ["calm"] * 4}}, "mmww")
    (studies.one["b"].weights / "world.json").write_text(json.dumps({}), encoding="utf-8")
    groups = {"all": "all", "named": ["b", "a"]}
    found = studies.run(groups=groups)
    assert set(found.filter(group="all", unit=1)["word"]) == {"kind"}
    assert set(found.filter(group="named", unit=1)["word"]) == {"kind", "calm"}
    assert found["group"].to_list() == sorted(found["group"].to_list())
    # each group is a family of its own
    assert set(found.filter(group="all", reading=1)["family"]) == {0}  # everybody has its word
    assert set(found.filter(group="named", reading=1)["family"]) == {0}


def test_a_group_with_a_model_without_outputs_is_refused(studies):
    studies.write("en", {"a": {"ADJ": ["kind"] * 4}, "b": {"ADJ": ["kind"] * 4}}, "mmww")
    with pytest.raises(UserError, match=r"pmi\.groups\.odd: c not under .*there are a, b"):
        studies.run(groups={"odd": ["a", "c"]})
    with pytest.raises(UserError, match=r"pmi\.min_count: no word is in 9 lists"):
        studies.run(min_count=9)


def test_in_the_pipeline_the_counts_of_worlds_add_up(finished):
    table = pl.read_parquet(finished / "data/tables/pmi/pooled/pooled.parquet")
    assert set(table["group"]) == {"all", "worlds"}
    table = table.filter(group="worlds")
    assert set(table["models"]) == {2}
    key = ["pos", "unit", "word", "gender", "reading"]
    both = table.select(*key, "count", "people")
    for world in ("planted", "null"):
        one = pl.read_parquet(finished / f"data/tables/pmi/world-{world}/pmi.parquet")
        one = one.select(
            *key, pl.col("count").alias(world), pl.col("people").alias(f"{world} people")
        )
        both = both.join(one, on=key)  # words common in both
    assert len(both) >= 12
    assert (both["count"] == both["planted"] + both["null"]).all()
    assert both["people"].equals(both["planted people"].alias("people"))
