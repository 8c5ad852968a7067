"""PMI of words and genders: known answers, exact tests, lists that must not be found."""

from math import log

import associated
import numpy as np
import pytest

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import pmi

SEED = 31
PARAMS = pmi.Params(version="1.0.0", smoothing=0.5, min_count=1, n_bootstrap=100)
LETTERS = {"male": "m", "female": "w", "non-binary": "x"}


class Study(associated.Study):
    """Outputs and people written by hand, and the table made of them."""

    lemma = "{} (lemma)"

    def run(self, **changed):
        return pmi.run(self.inputs, PARAMS.model_copy(update=changed))["pmi"]

    def cells(self, **changed):
        """Return the rows of the table, of forms, by language, word, gender and reading."""
        rows = self.run(**changed).filter(unit="form").iter_rows(named=True)
        return {(r["language"], r["word"], LETTERS[r["gender"]], r["reading"]): r for r in rows}


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def write_ten_people(study):
    """Six men, four women. ADJ: 1 and 3 of them kind. VERB: men lead, women wait. fr: all bon."""
    adjectives = ["kind"] + ["strong"] * 5 + ["kind"] * 3 + ["strong"]
    study.write("en", {"ADJ": adjectives, "VERB": ["leads"] * 6 + ["waits"] * 4}, "mmmmmmwwww")
    study.write("fr", {"ADJ": ["bon"] * 10}, "mmmmmmwwww")


def random_lists(rng, people, words=8, length=3):
    forms = np.array([f"word{i}" for i in range(words)])
    chance = rng.dirichlet(np.ones(words))
    draw = (rng.choice(forms, length, replace=False, p=chance) for _ in range(people))
    return [" ".join(listed) for listed in draw]


def test_run_plug_in_worked_by_hand(study):
    write_ten_people(study)
    cells = study.cells()
    for (word, gender), (count, people, value) in {
        ("kind", "m"): (1, 6, log(10 / 24)),
        ("kind", "w"): (3, 4, log(30 / 16)),
        ("strong", "m"): (5, 6, log(50 / 36)),
        ("strong", "w"): (1, 4, log(10 / 24)),
        ("leads", "m"): (6, 6, log(10 / 6)),
        ("leads", "w"): (0, 4, None),
        ("waits", "m"): (0, 6, None),
        ("waits", "w"): (4, 4, log(10 / 4)),
    }.items():
        row = cells["en", word, gender, "plug-in"]
        assert (row["count"], row["people"], row["n"], row["form"]) == (count, people, 10, word)
        assert row["value"] == (value if value is None else pytest.approx(value, abs=1e-6))
        assert row["pos"] == ("ADJ" if word in ("kind", "strong") else "VERB")
    assert cells["fr", "bon", "m", "plug-in"]["value"] == 0
    assert len(cells) == 2 * (8 + 2)


def test_run_smoothed_worked_by_hand(study):
    write_ten_people(study)
    cells = study.cells()
    # half a list more in each of four cells: 12 in all, 7 of men and 5 of women
    for (word, gender), value in {
        ("kind", "m"): log(1.5 * 12 / (5 * 7)),
        ("kind", "w"): log(3.5 * 12 / (5 * 5)),
        ("leads", "w"): log(0.5 * 12 / (7 * 5)),
    }.items():
        row = cells["en", word, gender, "smoothed"]
        assert row["value"] == pytest.approx(value, abs=1e-6)
        assert row["low"] < row["value"] < row["high"]
    assert cells["fr", "bon", "m", "smoothed"]["value"] == 0


def test_run_three_genders_worked_by_hand(study):
    study.write("en", {"ADJ": ["kind", "kind", "calm", "kind", "calm", "calm"]}, "mmmwwx")
    cells = study.cells()
    assert cells["en", "kind", "x", "plug-in"]["value"] is None
    assert cells["en", "calm", "x", "plug-in"]["value"] == pytest.approx(log(6 / 3), abs=1e-6)
    # half a list more in each of six cells: 9 in all, words 4.5 each, genders 4, 3 and 2
    smoothed = cells["en", "kind", "m", "smoothed"]["value"]
    assert smoothed == pytest.approx(log(2.5 * 9 / (4.5 * 4)), abs=1e-6)
    # 1 of 6 people is x: kind or calm with 3 of 6 each, nothing can be rarer
    assert cells["en", "calm", "x", "smoothed"]["p"] == 1


def test_run_p_is_exact_and_adjusted_over_all_words(study):
    write_ten_people(study)
    # ways to choose the 6 men: 4 kind of 10, one or no more likely: 1 * 1 + 4 * 6 + 1 * 15 of 210
    kind, leads = 40 / 210, 1 / 210  # all and only the men lead: 1 of 210
    for (language, word, _, reading), row in study.cells().items():
        if language == "fr" or reading == "plug-in":
            assert row["p"] is row["p_bh"] is row["detectable"] is None
        elif word in ("leads", "waits"):
            assert row["p"] == pytest.approx(leads, rel=1e-5)
            assert row["p_bh"] == pytest.approx(leads * 8 / 4, rel=1e-5)
            assert row["detectable"] > 0
        else:
            assert row["p"] == row["p_bh"] == pytest.approx(kind, rel=1e-5)


def test_run_lemma_with_two_forms_counts_once(study):
    # the lists of women have the feminine, of one both; those of men have the masculine
    study.lemma = "bueno"
    study.write("es", {"ADJ": ["bueno"] * 3 + ["buena", "buena", "buena bueno"]}, "mmmwww")
    found = study.run().filter(reading="smoothed")
    lemma, forms = found.filter(unit="lemma"), found.filter(unit="form")
    assert lemma["count"].to_list() == [3, 3]
    assert set(lemma["word"]) == set(lemma["form"]) == {"bueno"}  # that form is in four lists
    assert lemma["value"].to_list() == [0, 0]
    assert lemma["p"].to_list() == [None, None]  # everybody has it
    (buena,) = forms.filter(word="buena", gender="female").iter_rows(named=True)
    assert buena["value"] == pytest.approx(log(3.5 * 9 / (4 * 5)), abs=1e-6)
    assert buena["p"] == pytest.approx(1 / 10, rel=1e-5)  # 2 of 20 relabellings
    assert set(found["list_length"]) == {1}


def test_run_words_below_min_count_count_in_the_total(study):
    lists = ["kind rare", "kind odd", "kind odd", "calm odd", "calm rare", "calm kind"]
    study.write("en", {"ADJ": lists, "VERB": list("abcdef")}, "mmmwww")
    common = study.cells(min_count=3)
    assert {word for _, word, _, _ in common} == {"kind", "calm", "odd"}
    # kind is in 3 of the men's 6 words, 4 of all 12
    for cells in (study.cells(), common):
        value = cells["en", "kind", "m", "plug-in"]["value"]
        assert value == pytest.approx(log(3 * 12 / (4 * 6)), abs=1e-6)
    with pytest.raises(UserError, match="min_count"):
        study.run(min_count=7)


def test_run_namesakes_are_people_and_one_name(study):
    names = ["Bo"] * 4 + ["Ada", "Eva", "Gro", "Liv"]
    study.write("en", {"ADJ": ["kind"] * 4 + ["calm"] * 4}, "mmmmwwww", names)
    row = study.cells()["en", "kind", "m", "plug-in"]
    assert (row["count"], row["people"], row["n"]) == (4, 4, 5)
    assert row["value"] == pytest.approx(log(2), abs=1e-6)
    row = study.cells()["en", "kind", "m", "smoothed"]
    assert (row["count"], row["people"], row["n"]) == (1, 1, 5)
    assert row["value"] == pytest.approx(log(1.5 * 7 / (2 * 2)), abs=1e-6)
    # one man's name and four women's: 1 of the 5 ways to be the man
    assert row["p"] == pytest.approx(1 / 5, rel=1e-5)


@pytest.mark.parametrize("lemma", ["{}", "one"])
def test_run_word_twice_in_a_list_is_refused(study, lemma):
    study.lemma = lemma
    study.write("en", {"ADJ": ["kind calm", "kind odd odd", "calm odd"]}, "mww")
    with pytest.raises(UserError, match="'odd'"):
        study.run()


def test_run_more_bearers_of_a_name_change_only_plug_in(study):
    lists = random_lists(np.random.default_rng(SEED), 12)
    names = [f"Name {i}" for i in range(12)]
    study.write("en", {"ADJ": lists}, "mw" * 6, names)
    alone = study.run()
    study.write(
        "en", {"ADJ": lists + lists[:1] * 300}, "mw" * 6 + "m" * 300, names + names[:1] * 300
    )
    crowded = study.run()
    assert crowded.filter(reading="smoothed").equals(alone.filter(reading="smoothed"))
    assert not crowded.filter(reading="plug-in")["value"].equals(
        alone.filter(reading="plug-in")["value"]
    )
    assert crowded.filter(reading="plug-in")["p"].null_count() == len(crowded) / 2


@pytest.mark.parametrize(("first", "p"), [("a b", None), ("a", 1 / 4)])
def test_run_p_compares_lists_of_one_length(study, first, p):
    # men list two words and women one; with the first man's list as short as those of the women,
    # only he has `a` among the four names with one word: 1 of 4 ways
    lists = [first, "a b", "a c", "b", "c", "b"]
    study.write("en", {"ADJ": lists}, "mmmwww")
    row = study.cells()["en", "a", "m", "smoothed"]
    assert row["p"] == (p if p is None else pytest.approx(p, rel=1e-5))
    assert row["low"] < row["value"] < row["high"]
