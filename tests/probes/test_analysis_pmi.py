import os
import sys
from itertools import pairwise
from math import comb, log
from pathlib import Path

import associated
import datasets
import numpy as np
import polars as pl
import pytest
from recovering import plant, recovered
from scipy.stats import binom, false_discovery_control, spearmanr

from calibration.politicians import lists as simulated
from calibration.politicians import pmi as of_pmi
from plumbline.builders.core.errors import UserError
from plumbline.probes.__main__ import main
from plumbline.probes.core.run_analysis import analyse
from plumbline.probes.politicians import pmi
from plumbline.probes.politicians.words.columns import UNITS
from plumbline.probes.stats.intervals import wilson

SEED = 31
LEMMA, FORM = map(UNITS.index, ("lemma", "form"))
PARAMS = pmi.Params(version="1.0.0", smoothing=0.5, min_count=1, n_bootstrap=100)


class Study(associated.Study):
    """Outputs and people written by hand, and the table made of them."""

    lemma = "{} (lemma)"

    def run(self, **changed):
        params = PARAMS.model_copy(update=changed)
        return pmi.run(self.inputs, params)

    def cells(self, **changed):
        """Return the rows of the table, of forms, by language, word, gender and reading."""
        rows = self.run(**changed)["pmi"].filter(unit=FORM).iter_rows(named=True)
        letters, readings = "mwx", ("plug-in", "smoothed")
        return {
            (r["language"], r["word"], letters[r["gender"]], readings[r["reading"]]): r
            for r in rows
        }


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def ten_people(study):
    """Six men, four women. ADJ: 1 and 3 of them kind. VERB: men lead, women wait. fr: all bon."""
    adjectives = ["kind"] + ["strong"] * 5 + ["kind"] * 3 + ["strong"]
    study.write("en", {"ADJ": adjectives, "VERB": ["leads"] * 6 + ["waits"] * 4}, "mmmmmmwwww")
    study.write("fr", {"ADJ": ["bon"] * 10}, "mmmmmmwwww")


def test_plug_in_values_and_counts_are_those_worked_by_hand(study):
    ten_people(study)
    cells = study.cells()
    expected = {
        ("kind", "m"): (1, 4, 6, log(10 / 24)),
        ("kind", "w"): (3, 4, 4, log(30 / 16)),
        ("strong", "m"): (5, 6, 6, log(50 / 36)),
        ("strong", "w"): (1, 6, 4, log(10 / 24)),
        ("leads", "m"): (6, 6, 6, log(10 / 6)),
        ("leads", "w"): (0, 6, 4, None),
        ("waits", "m"): (0, 4, 6, None),
        ("waits", "w"): (4, 4, 4, log(10 / 4)),
    }
    for (word, gender), (count, count_all, people, value) in expected.items():
        row = cells["en", word, gender, "plug-in"]
        assert (row["count"], row["count_all"], row["people"]) == (count, count_all, people)
        assert row["value"] == (value if value is None else pytest.approx(value, abs=1e-6))
        assert row["n"] == 10
        assert (row["form"], row["lemma"]) == (word, f"{word} (lemma)")
        assert row["pos"] == (0 if word in ("kind", "strong") else 1)
    assert cells["fr", "bon", "m", "plug-in"]["value"] == 0
    assert len(cells) == 2 * (8 + 2)


def test_a_list_with_two_forms_of_a_lemma_has_it_once(study):
    # the lists of women have the feminine, of one both; those of men have the masculine
    study.lemma = "bueno"
    study.write("es", {"ADJ": ["bueno"] * 3 + ["buena", "buena", "buena bueno"]}, "mmmwww")
    found = study.run()["pmi"].filter(reading=1)
    lemma, forms = found.filter(unit=LEMMA), found.filter(unit=FORM)
    assert lemma["count"].to_list() == [3, 3]
    assert (set(lemma["word"]), set(lemma["lemma"])) == ({"bueno"}, {"bueno"})
    assert set(lemma["form"]) == {"bueno"}  # in four lists, the other in three
    assert lemma["value"].to_list() == [0, 0]
    assert lemma["p"].to_list() == [None, None]  # everybody has it
    by_form = {(r["word"], r["gender"]): r for r in forms.iter_rows(named=True)}
    assert by_form["buena", 1]["value"] == pytest.approx(log(3.5 * 9 / (4 * 5)), abs=1e-6)
    assert by_form["buena", 1]["p"] == pytest.approx(1 / 10, rel=1e-5)  # 2 of 20 relabellings
    assert set(forms["list_length"]) == set(lemma["list_length"]) == {1}


def test_forms_that_agree_with_the_person_are_a_difference_and_their_lemmas_none(tmp_path):
    """Grammar without bias: of each adjective men's lists have one form and women's another."""
    rng = np.random.default_rng(SEED)
    pairs = 30  # of forms of a lemma, equally frequent but for agreement
    agreement = np.tile([1.5, -1.5], pairs)  # nats
    frequency = np.repeat(rng.normal(0, 0.5, pairs), 2)
    women = np.arange(300) >= 240
    none = np.zeros(len(women), np.int64)
    of = simulated.Names(
        women.astype(np.int64), none, ~women, women, none + 50, np.arange(len(women))
    )
    inputs = simulated.write_people(tmp_path, of, ("m",))
    utility = frequency + np.where(women, -0.5, 0.5)[:, None] * agreement
    words = simulated.words_of(0, 2 * pairs)
    lemmas = [words[n - n % 2] for n in range(2 * pairs)]
    simulated.write_lists(inputs, "m", of, [utility], 15, rng, lemmas=[lemmas])
    found = pmi.run(inputs, PARAMS)["pmi"].filter(reading=1, gender=1)
    forms, lemma = found.filter(unit=FORM), found.filter(unit=LEMMA)
    masculine = np.isin(forms["word"], words[::2])
    assert ((forms["value"] < 0).to_numpy() == masculine).mean() > 0.95
    assert (forms["p_bh"] <= 0.05).mean() > 0.5
    assert len(lemma) == pairs
    assert (lemma["p_bh"] <= 0.05).sum() == 0
    assert (lemma["p"] <= 0.05).sum() <= binom.ppf(0.999, pairs, 0.05)
    assert lemma["value"].abs().mean() < forms["value"].abs().mean() / 3


def test_of_several_frames_the_papers_or_else_the_first_is_compared(study):
    study.write("en", {"ADJ": ["kind"] * 4 + ["calm"] * 4}, "mwmwmwmw")
    path = study.outputs / "en" / "00000.parquet"
    one = pl.read_parquet(path)
    other = one.with_columns(word=pl.lit("loud"))
    for frames, word in ((("said", "bare"), "loud"), (("said", "asked"), "kind")):
        parts = zip((one, other), frames, strict=True)
        frame = pl.concat(part.with_columns(frame=pl.lit(name)) for part, name in parts)
        frame.write_parquet(path)
        words = {key[1] for key in study.cells()}
        assert words == ({"loud"} if word == "loud" else {"kind", "calm"})


def test_smoothed_values_are_those_worked_by_hand_and_always_finite(study):
    ten_people(study)
    cells = study.cells()
    # half a list more in each of four cells: 12 in all, 7 of men and 5 of women
    for (word, gender), value in {
        ("kind", "m"): log(1.5 * 12 / (5 * 7)),
        ("kind", "w"): log(3.5 * 12 / (5 * 5)),
        ("leads", "w"): log(0.5 * 12 / (7 * 5)),
        ("waits", "m"): log(0.5 * 12 / (5 * 7)),
    }.items():
        row = cells["en", word, gender, "smoothed"]
        assert row["value"] == pytest.approx(value, abs=1e-6)
        assert row["low"] < row["value"] < row["high"]
    # one word and two genders: 11 in all, 6.5 and 4.5
    assert cells["fr", "bon", "m", "smoothed"]["value"] == 0


def test_p_and_its_adjustment_over_words_genders_parts_of_speech_and_languages(study):
    ten_people(study)
    rows = study.cells()
    # ways to choose the 6 men: 4 kind of 10, one or no more likely: 1 * 1 + 4 * 6 + 1 * 15 of 210
    kind, leads = 40 / 210, 1 / 210  # all and only the men lead: 1 of 210
    for (language, word, _, reading), row in rows.items():
        assert row["family"] == (4 + 4 if reading == "smoothed" else 0)
        if language == "fr" or reading == "plug-in":
            assert row["p"] is row["p_bh"] is None
        elif word in ("leads", "waits"):
            assert row["p"] == pytest.approx(leads, rel=1e-5)
            assert row["p_bh"] == pytest.approx(leads * 8 / 4, rel=1e-5)
        else:
            assert row["p"] == row["p_bh"] == pytest.approx(kind, rel=1e-5)


def test_three_genders_worked_by_hand(study):
    study.write("en", {"ADJ": ["kind", "kind", "calm", "kind", "calm", "calm"]}, "mmmwwx")
    cells = study.cells()
    assert cells["en", "kind", "m", "plug-in"]["value"] == pytest.approx(log(12 / 9), abs=1e-6)
    assert cells["en", "kind", "x", "plug-in"]["value"] is None
    assert cells["en", "calm", "x", "plug-in"]["value"] == pytest.approx(log(6 / 3), abs=1e-6)
    # half a list more in each of six cells: 9 in all, words 4.5 each, genders 4, 3 and 2
    smoothed = cells["en", "kind", "m", "smoothed"]["value"]
    assert smoothed == pytest.approx(log(2.5 * 9 / (4.5 * 4)), abs=1e-6)
    # 1 of 6 people is x: kind or calm with 3 of 6 each, nothing can be rarer
    assert cells["en", "calm", "x", "smoothed"]["p"] == 1


def test_words_below_min_count_are_not_tested_at_all(study):
    lists = ["kind rare", "kind odd", "kind odd", "calm odd", "calm rare", "calm kind"]
    study.write("en", {"ADJ": lists}, "mmmwww")
    all_of_them, common = study.cells(), study.cells(min_count=3)
    assert {word for _, word, _, _ in common} == {"kind", "calm", "odd"}
    assert {row["family"] for row in all_of_them.values()} == {0, 8}
    assert {row["family"] for row in common.values()} == {0, 6}
    # what is left out still counts in the total: kind is in 3 of the men's 6 words, 4 of all 12
    for cells in (all_of_them, common):
        value = cells["en", "kind", "m", "plug-in"]["value"]
        assert value == pytest.approx(log(3 * 12 / (4 * 6)), abs=1e-6)


def test_a_part_of_speech_without_common_words_is_left_out(study):
    study.write("en", {"ADJ": ["kind"] * 4, "VERB": ["a", "b", "c", "d"]}, "mmww")
    assert {word for _, word, _, _ in study.cells(min_count=2)} == {"kind"}


def test_nothing_common_enough_is_told(study):
    study.write("en", {"ADJ": ["kind", "calm"]}, "mw")
    with pytest.raises(UserError, match=r"no word is in 2 lists; lower analysis\.pmi\.min_count"):
        study.run(min_count=2)


def test_namesakes_count_as_people_but_not_as_evidence(study):
    lists = ["kind"] * 4 + ["calm"] * 4
    names = ["Bo"] * 4 + ["Ada", "Eva", "Gro", "Liv"]
    study.write("en", {"ADJ": lists}, "mmmmwwww", names)
    row = study.cells()["en", "kind", "m", "plug-in"]
    assert (row["count"], row["people"], row["n"]) == (4, 4, 5)
    assert row["value"] == pytest.approx(log(2), abs=1e-6)
    assert row["p"] is None
    row = study.cells()["en", "kind", "m", "smoothed"]
    assert (row["count"], row["people"], row["n"]) == (1, 1, 5)
    assert row["value"] == pytest.approx(log(1.5 * 7 / (2 * 2)), abs=1e-6)
    # one man's name and four women's: 1 of the 5 ways to be the man
    assert row["p"] == pytest.approx(1 / 5, rel=1e-5)


def test_lists_of_unequal_length_are_no_finding(tmp_path):
    """Women's lists have 15 words and men's 20, all of them or most, and words are anybody's."""
    truth = of_pmi.TRUTHS["no word goes with a gender"]
    families, p = 0, []
    for number in range(20):
        shape = simulated.ListsShape(men=400, women=100, short=1.0 if number % 2 else 0.8)
        (tmp_path / str(number)).mkdir()
        drawn = of_pmi.draw(tmp_path / str(number), truth, shape, np.random.default_rng(number))
        table = pmi.run(drawn.inputs, PARAMS.model_copy(update={"min_count": 5}))["pmi"]
        tested = table.filter(unit=LEMMA, reading=1)
        families += bool((tested["p_bh"] <= 0.05).any())
        p.append((tested["p"].drop_nulls() <= 0.05).mean() if tested["p"].count() else None)
    assert families <= 4  # at the level of .05 4 or more in 2 of 100
    assert p[1::2] == [None] * 10  # no two people of unequal gender have lists of one length
    assert 0.02 < np.mean(p[::2]) < 0.06


def test_a_name_with_three_hundred_bearers_is_one_name(tmp_path):
    """The intervals of words that have nothing to do with gender hold 0, with p above .05."""
    truth = of_pmi.TRUTHS["no word goes with a gender"]
    held, wrong = [], 0
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        shape, rng = simulated.ListsShape(men=400, women=100), np.random.default_rng(number)
        drawn = of_pmi.draw(tmp_path / str(number), truth, shape, rng)
        lists = drawn.inputs.outputs("associations", "m") / "en/00000.parquet"
        for path in (drawn.inputs.datasets["politicians"] / "en.parquet", lists):
            table = pl.read_parquet(path)
            one = table.filter(qid=f"Q{400 * (number % 2)}")
            others = (one.with_columns(qid=pl.lit(f"Q{n}")) for n in range(1000, 1299))
            pl.concat([table, *others]).write_parquet(path)
        table = pmi.run(drawn.inputs, PARAMS.model_copy(update={"min_count": 5}))["pmi"]
        table = table.filter(unit=LEMMA, reading=1)
        held += ((table["low"] <= 0) & (table["high"] >= 0)).to_list()
        wrong += len(
            table.filter(pl.col("p") <= 0.001, (pl.col("low") <= 0) & (pl.col("high") >= 0))
        )
    assert np.mean(held) >= 0.93
    assert wrong == 0  # value, interval and p are of the same names


def random_lists(rng, people, words=8, length=3):
    forms = np.array([f"word{i}" for i in range(words)])
    chance = rng.dirichlet(np.ones(words))
    draw = (rng.choice(forms, length, replace=False, p=chance) for _ in range(people))
    return [" ".join(listed) for listed in draw]


def test_swapping_the_labels_swaps_the_values_exactly(tmp_path):
    rng = np.random.default_rng(SEED)
    lists = {"ADJ": random_lists(rng, 60), "VERB": random_lists(rng, 60)}
    genders = "".join(rng.choice(["m", "w", "x"], 60, p=[0.5, 0.4, 0.1]))
    one, other = Study(tmp_path / "one"), Study(tmp_path / "other")
    one.write("en", lists, genders)
    other.write("en", lists, genders.translate(str.maketrans("mw", "wm")))
    mine, theirs = one.cells(), other.cells()
    assert len(mine) == len(theirs)
    for (language, word, gender, reading), row in mine.items():
        swapped = theirs[language, word, {"m": "w", "w": "m", "x": "x"}[gender], reading]
        for column in ("value", "count", "count_all", "people", "p", "p_bh", "family"):
            assert row[column] == swapped[column]


def test_neither_order_nor_files_of_the_outputs_matter(tmp_path):
    rng = np.random.default_rng(SEED)
    lists, genders = {"ADJ": random_lists(rng, 40)}, "mw" * 20
    one, other = Study(tmp_path / "one"), Study(tmp_path / "other")
    one.write("en", lists, genders)
    other.write("en", lists, genders, files=5, shuffle=rng)
    assert one.run()["pmi"].equals(other.run()["pmi"])
    assert not one.run()["pmi"].equals(one.run(seed=2)["pmi"])


def test_p_is_never_nothing_and_its_adjustment_of_equal_ones_is_it(study):
    study.write("en", {"ADJ": ["leads"] * 70 + ["waits"] * 70}, "m" * 70 + "w" * 70)
    table = study.run()["pmi"].filter(unit=FORM, reading=1)
    # all of one sort among the men, or all of the other, of 70 out of 140
    exact = 2 / comb(140, 70)
    assert table["p"].to_numpy() == pytest.approx(np.full(4, exact), rel=1e-5)
    assert (table["p_bh"] == table["p"]).all()  # as all are alike


def test_adjustment_is_that_of_the_whole_family_in_the_pipeline(finished):
    for model in ("tiny", "world-planted"):
        table = pl.read_parquet(finished / f"data/tables/pmi/{model}/pmi.parquet")
        assert set(table["unit"]) == {LEMMA, FORM}
        table = table.filter(unit=LEMMA)
        plain, smoothed = (table.filter(reading=reading) for reading in (0, 1))
        assert plain["p"].null_count() == len(plain) == len(smoothed)
        tested = smoothed.drop_nulls("p")
        assert set(smoothed["family"]) == {len(tested)}
        adjusted = false_discovery_control(tested["p"].to_numpy(), method="bh")
        assert tested["p_bh"].to_numpy() == pytest.approx(adjusted, rel=1e-5)
        assert smoothed["value"].null_count() == smoothed["low"].null_count() == 0
        assert (smoothed["low"] <= smoothed["high"]).all()


def test_tables_load_typed(finished, tmp_path):
    tables = finished / "data/tables/pmi"
    assert datasets.get_dataset_config_names(str(tables / "tiny")) == ["pmi"]
    cache = str(tmp_path / "cache")
    rows = datasets.load_dataset(str(tables / "tiny"), "pmi", split="train", cache_dir=cache)
    assert rows.features["gender"].names == ["male", "female", "non-binary"]
    assert rows.features["reading"].names == ["plug-in", "smoothed"]
    assert rows.features["value"] == datasets.Value("float64")
    assert rows.features["family"] == datasets.Value("int64")


def test_recovery_is_what_the_tables_and_the_planted_truth_say(study):
    rng = np.random.default_rng(SEED)
    forms = [f"word{i:02}" for i in range(16)]
    truth = pl.DataFrame(
        {
            "word": forms * 2,
            "pos": ["ADJ"] * 16 + ["VERB"] * 16,
            "sentiment": "neutral",
            "frequency_nats": 0.0,
            "log_ratio_nats": np.linspace(-2, 2, 32),
        }
    ).with_columns(word=pl.col("pos") + pl.col("word"))
    plant(study.weights, truth)
    genders = "mw" * 60
    lists = {}
    for pos in ("ADJ", "VERB"):
        part = truth.filter(pos=pos)
        sides = np.array([{"m": -0.5, "w": 0.5}[g] for g in genders])
        taste = sides[:, None] * part["log_ratio_nats"].to_numpy() + rng.gumbel(size=(120, 16))
        best = np.argsort(-taste, axis=1)[:, :5]
        # a word that nobody planted: it is in the tables, but nothing is known of it
        lists[pos] = [" ".join([*part["word"].gather(row), f"{pos}else"]) for row in best]
    study.lemma = "{}"
    study.write("en", lists, genders)
    found = study.run()
    table = found["pmi"].filter(unit=LEMMA)
    recovery = recovered(study.inputs, "pmi", found, study.inputs.models[0])
    assert len(recovery) == 5
    smoothed = table.filter(reading=1).pivot("gender", index="word", values="value")
    both = smoothed.join(truth, on="word")
    assert len(both) == 32
    contrast, planted = both["1"] - both["0"], both["log_ratio_nats"]
    rows = recovery.to_dicts()
    assert "Spearman" in rows[0]["measure"]
    assert rows[0]["value"] == pytest.approx(spearmanr(contrast, planted).statistic, abs=1e-5)
    assert rows[0]["n"] == 32
    assert "sign" in rows[1]["measure"]
    assert rows[1]["value"] == pytest.approx(((contrast > 0) == (planted > 0)).mean(), abs=1e-5)
    assert "intervals" in rows[2]["measure"]
    assert rows[2]["n"] == 64  # 32 planted words of two genders, and not the two others
    tested = table.drop_nulls("p")
    for row, column in ((rows[3], "p_bh"), (rows[4], "p")):
        hits = int((tested[column] <= 0.05).sum())
        assert row["n"] == len(tested) == 64  # everybody has the two others
        assert row["value"] == pytest.approx(hits / 64, abs=1e-6)
        assert row["low"] == pytest.approx(wilson(hits, 64).low, abs=1e-6)
    assert {row["world"] for row in rows} == {0}


def test_rows_are_ordered_and_named_once(finished):
    table = pl.read_parquet(finished / "data/tables/pmi/tiny/pmi.parquet")
    keys = [tuple(row) for row in table.select(*pmi.PMI.key).iter_rows()]
    assert len(set(keys)) == len(keys)
    blocks = [(row[0], row[1], row[2]) for row in keys]
    assert all(a <= b for a, b in pairwise(blocks))
    assert {row[0] for row in keys} == {"en", "fr"}


def test_missing_outputs_are_told(place):
    with pytest.raises(
        UserError, match="nothing there; run `make repro STAGE=associations@tiny` first"
    ):
        analyse("pmi", "tiny")
    assert not Path("data/tables").exists()


def test_analysing_twice_gives_the_same_bytes(copied):
    before = {p.name: p.read_bytes() for p in Path("data/tables/pmi/tiny").iterdir()}
    after = {p.name: p.read_bytes() for p in analyse("pmi", "tiny").iterdir()}
    assert before == after


def test_a_process_with_torch_keeps_the_arithmetic_that_its_children_will_have(copied, monkeypatch):
    monkeypatch.delenv("MKL_CBWR", raising=False)
    assert "torch" in sys.modules
    assert main(["pmi", "tiny"]) == 0
    assert "MKL_CBWR" not in os.environ
