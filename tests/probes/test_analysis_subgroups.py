"""Who is in a subgroup, what is counted there, and that planted differences are found."""

from datetime import date

import numpy as np
import polars as pl
import pytest
from associated import Study

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians import subgroups

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


def test_subgroups_members():
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
    (found,) = table.filter(**wanted).iter_rows(named=True)
    return found


def test_run_planted_difference_of_subgroups(planted):
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


def test_run_shares_are_counted_among_the_largest(planted):
    table = planted["shares"]
    mine = row(table, subgroup="native", gender="female", sentiment="positive")
    assert (mine["value"], mine["top_k"], mine["candidates"], mine["n"]) == (1, 6, 24, 203)
    sums = table.group_by("pos", "subgroup", "gender").agg(pl.col("value").sum())
    assert sums["value"].to_list() == pytest.approx([1] * len(sums), abs=1e-5)


@pytest.mark.parametrize("effect", [1.5, 0.0])
def test_run_agreement_of_halves_with_one_bias_or_none(tmp_path, effect):
    rng = np.random.default_rng(SEED)
    genders = "mw" * 200
    study = Parts(tmp_path)
    study.write("en", {"ADJ": drawn(rng, genders, [effect] * 400)}, genders)
    study.write_people(**about(genders, [True, True, False, False] * 100))
    found = study.tables()  # without sentiments there are still words
    assert set(found) == {"people", "agreement"}
    agreement = row(found["agreement"], contrast="native against foreign")
    assert agreement["n"] == 400
    assert (agreement["value"] > 0.7) == (agreement["p"] < 0.05) == (effect > 0)
    assert agreement["detectable"] > 0


@pytest.mark.parametrize("changed", [{"min_people": 1, "lexicon": "published"}, {}])
def test_run_refuses(tmp_path, changed):
    study = Parts(tmp_path)
    study.write("en", {"ADJ": ["kind", "calm"]}, "mw")
    study.write_people(**about("mw", [True, True]))
    with pytest.raises(UserError, match=changed.get("lexicon", "min_people")):
        study.tables(**changed)
