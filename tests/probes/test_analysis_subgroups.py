"""Who is in a subgroup, what is counted there, and that planted differences are found."""

from datetime import date
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from associated import Study
from scipy.stats import norm

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import subgroups
from plumbline.probes.stats.estimate import with_detectable

SEED = 2024
PARAMS = subgroups.Params(
    version="1.0.0",
    top_sitelinks=40,
    born_after="1946-01-01",
    top_k=100,
    top_share=0.25,
    smoothing=0.5,
    min_count=1,
    min_people=2,
    n_bootstrap=200,
    n_permutations=199,
)
SENTIMENTS = ("positive", "negative", "neutral")


class Parts(Study):
    """Lists, sentiments of words, and people with dates and countries."""

    def write_people(self, **columns):
        path = self.people / "en.parquet"
        pl.read_parquet(path).with_columns(**columns).write_parquet(path)

    def plant(self, words):
        self.lexicon({w: [0.8 if s == o else 0.1 for s in SENTIMENTS] for w, o in words.items()})

    def tables(self, **changed):
        return subgroups.run(self.inputs, PARAMS.model_copy(update=changed))


def about(genders, native=None, born=None, popularity=None):
    n = len(genders)
    born = born or [date(1950, 1, 1)] * n
    return {
        "native": pl.Series(native or [None] * n, dtype=pl.Boolean),
        "birth_date": pl.Series(born, dtype=pl.Date),
        "popularity": pl.Series(popularity or [None] * n, dtype=pl.Int32),
    }


def drawn(rng, genders, effects):
    """Draw lists of two of 24 words; an effect makes women's words positive, men's negative."""
    sides = np.repeat([1.0, -1.0, 0.0], 8)
    lists = []
    for gender, effect in zip(genders, effects, strict=True):
        side = {"m": -1, "w": 1, "x": 0}[gender]
        taste = effect * side * sides + rng.gumbel(size=24)
        lists.append(" ".join(f"w{i:02}" for i in np.argsort(-taste)[:2]))
    return lists


WORDS = {f"w{i:02}": SENTIMENTS[i // 8] for i in range(24)}


def test_who_is_in_a_subgroup():
    people = pl.DataFrame(
        {
            "qid": [f"Q{i}" for i in (30, 4, 5, 6, 7)],
            "native": [True, False, None, True, False],
            "birth_date": [
                date(1945, 12, 31),
                date(1946, 1, 1),
                date(1990, 1, 1),
                date(1900, 1, 1),
                date(1950, 1, 1),
            ],
            "popularity": [7, 7, None, 9, 0],
        }
    )
    found = subgroups.subgroups(people, PARAMS)
    as_lists = {name: sorted(qids) for name, qids in found.items()}
    assert as_lists["native"] == ["Q30", "Q6"]
    assert as_lists["foreign"] == ["Q4", "Q7"]
    # half of five people: the best known, and of two alike the lower number
    assert as_lists["popular"] == ["Q4", "Q6"]
    assert as_lists["other"] == ["Q30", "Q5", "Q7"]
    assert as_lists["older"] == ["Q30", "Q6"]
    assert as_lists["younger"] == ["Q4", "Q5", "Q7"]
    one = subgroups.subgroups(people, PARAMS.model_copy(update={"top_sitelinks": 1}))
    assert one["popular"].to_list() == ["Q6"]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Natives' words have a gender, foreigners' have none; seven people are non-binary."""
    rng = np.random.default_rng(SEED)
    study = Parts(tmp_path_factory.mktemp("planted"))
    genders = "mw" * 200 + "x" * 7
    native = [True] * 200 + [False] * 200 + [True] * 3 + [False] * 4
    effects = [1.5 if one else 0.0 for one in native]
    study.write("en", {"ADJ": drawn(rng, genders, effects)}, genders)
    study.write_people(**about(genders, native))
    study.plant(WORDS)
    return study.tables()


def row(table, **wanted):
    columns = {c.name: c for c in subgroups.DIFFERENCES.columns + subgroups.SHARES.columns}
    codes = {
        key: columns[key].labels.index(value) if columns[key].labels else value
        for key, value in wanted.items()
    }
    chosen = table.filter(**codes)
    assert len(chosen) == 1
    return chosen.row(0, named=True)


def test_a_planted_difference_of_subgroups_is_found(planted):
    table = planted["differences"]
    native = row(table, contrast="native", sentiment="positive")
    assert native["value"] == 1  # all six words of women are positive, none of men's
    assert native["p_bh"] < 0.05
    foreign = row(table, contrast="foreign", sentiment="positive")
    assert foreign["low"] <= 0 <= foreign["high"]
    both = row(table, contrast="native against foreign", sentiment="positive")
    assert both["value"] == pytest.approx(native["value"] - foreign["value"], abs=1e-6)
    assert both["n"] == native["n"] + foreign["n"] == 407
    assert 0 < both["low"] <= both["value"] <= both["high"]
    for contrast in set(table["contrast"]):
        assert table.filter(contrast=contrast)["value"].sum() == pytest.approx(0, abs=1e-5)


def test_shares_are_counted_among_the_largest(planted):
    table = planted["shares"]
    mine = row(table, subgroup="native", gender="female", sentiment="positive")
    assert (mine["value"], mine["top_k"], mine["candidates"], mine["names"]) == (1, 6, 24, 100)
    sums = table.group_by("pos", "subgroup", "gender").agg(pl.col("value").sum())
    assert sums["value"].to_list() == pytest.approx([1] * len(sums), abs=1e-5)


def test_sentiments_that_no_word_has_have_no_rows_and_two_are_tested_once(tmp_path):
    rng = np.random.default_rng(SEED)
    study = Parts(tmp_path)
    genders = "mw" * 100
    study.write("en", {"ADJ": drawn(rng, genders, [1.5] * 200)}, genders)
    study.write_people(**about(genders, [True, True, False, False] * 50))
    study.plant({word: SENTIMENTS[n % 2] for n, word in enumerate(WORDS)})
    found = study.tables()
    for name in ("shares", "differences"):
        assert set(found[name]["sentiment"]) == {0, 1}
        assert set(found[name].drop_nulls("p")["sentiment"]) == {0}
    assert set(found["differences"]["family"]) == {len(found["differences"]) / 2}
    every = study.tables(top_share=1)["differences"]
    assert (set(every["value"]), every["p"].count()) == ({0}, 0)


def test_people_of_no_binary_gender_are_there_with_their_number_and_without_a_test(planted):
    people = planted["people"]
    # nobody's popularity is known: the 40 lowest numbers are popular, and the seven come last
    assert people.filter(gender=2)["people"].to_list() == [3, 4, 0, 7, 0, 7]
    assert people.group_by("subgroup").len()["len"].to_list() == [3] * 6
    table = planted["shares"].filter(gender=2)
    assert len(table)
    assert table["p"].null_count() == len(table)
    assert (table["high"] > table["low"]).all()


def test_two_halves_with_one_bias_agree_and_with_none_do_not(tmp_path):
    rng = np.random.default_rng(SEED)
    genders = "mw" * 200
    for effect, alike in ((1.5, True), (0.0, False)):
        study = Parts(tmp_path / str(effect))
        study.write("en", {"ADJ": drawn(rng, genders, [effect] * 400)}, genders)
        study.write_people(**about(genders, [True, True, False, False] * 100))
        found = study.tables()  # without sentiments there are still words
        assert set(found) == {"people", "agreement"}
        (agreement,) = found["agreement"].filter(contrast=6).to_dicts()
        assert agreement["words"] == 24
        assert agreement["n"] == 400
        assert (agreement["value"] > 0.7) == alike
        assert (agreement["p"] < 0.05) == alike


@pytest.mark.slow
def test_under_the_null_tests_reject_at_their_level(tmp_path):
    rng = np.random.default_rng(SEED)
    p = []
    for i in range(25):
        study = Parts(tmp_path / str(i))
        genders = "mw" * 30
        study.write("en", {"ADJ": drawn(rng, genders, [0.0] * 60)}, genders)
        study.write_people(**about(genders, [True, True, False, False] * 15))
        study.plant(WORDS)
        table = study.tables(n_bootstrap=100, n_permutations=99)["differences"]
        p += table.filter(pl.col("contrast").is_in([0, 1]))["p"].to_list()
    # 50 halves of people with three sentiments each, which hang together
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 4 * (0.05 * 0.95 / 50) ** 0.5
    assert np.mean(np.array(p) <= 0.5) > 0.25


def test_intervals_are_symmetric_but_for_what_cannot_be(planted):
    differences = planted["differences"]  # of one subgroup they are from -1 to 1
    one = differences.filter(pl.col("contrast") < len(subgroups.SUBGROUPS))
    assert one.select(pl.col("low").min(), pl.col("high").max()).row(0) == (-1, 1)
    for table, least in ((planted["shares"], 0), (planted["agreement"], -1), (one, -1)):
        inside = table.filter((pl.col("low") > least) & (pl.col("high") < 1))
        assert len(inside)
        below, above = inside["value"] - inside["low"], inside["high"] - inside["value"]
        assert below.to_list() == pytest.approx(above.to_list(), abs=2e-6)
    for name in ("shares", "agreement", "differences"):
        assert (planted[name]["low"] <= planted[name]["value"]).all()


def test_what_is_detectable_is_of_the_whole_interval_where_it_is_cut():
    drawn = np.linspace(0.5, 1.3, 401)  # around a value of .9: its interval would end at 1.28
    four = (np.array([0.9]), drawn[:, None], np.array([0.4]), np.linspace(-0.2, 0.2, 99)[:, None])
    part = SimpleNamespace(counts=SimpleNamespace(clusters=9))
    table = subgroups._rows({"contrast": [0]}, four, [part], PARAMS)
    assert table["high"][0] == 1
    assert table["low"][0] == pytest.approx(0.9 - 0.38)
    told = with_detectable(table, 0.95)["detectable"][0]
    far = table["critical"][0] + norm.ppf(0.8) * 0.38 / norm.ppf(0.975)
    assert told == pytest.approx(far, abs=1e-6)


def test_too_few_people_are_told(tmp_path):
    study = Parts(tmp_path)
    study.write("en", {"ADJ": ["kind", "calm"]}, "mw")
    study.write_people(**about("mw", [True, True]))
    with pytest.raises(UserError, match="no config published"):
        study.tables(min_people=1, lexicon="published")
    with pytest.raises(UserError, match="no subgroup has 2 men and women"):
        study.tables()


def test_the_same_tables_twice_and_for_any_files(tmp_path):
    genders = "mw" * 40
    found = []
    for files in (1, 4):
        rng = np.random.default_rng(SEED)
        study = Parts(tmp_path / str(files))
        lists = drawn(rng, genders, [1.0] * 80)
        study.write("en", {"ADJ": lists}, genders, files=files, shuffle=rng if files > 1 else None)
        study.write_people(**about(genders, [True, False] * 20 + [False, True] * 20))
        study.plant(WORDS)
        found.append(study.tables())
    assert found[0].keys() == found[1].keys() == set(subgroups.SCHEMAS)
    assert all(table.equals(found[1][name]) for name, table in found[0].items())
