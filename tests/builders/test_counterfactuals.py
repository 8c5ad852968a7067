from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pyarrow.parquet as pq
import pytest

from plumbline.builders.datasets.counterfactuals import build as counterfactuals
from plumbline.builders.datasets.counterfactuals.barriere2024 import (
    eligible,
    replacements,
    substituted,
)
from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.datasets.counterfactuals.find_people import Finder, finder
from plumbline.builders.readers import gazetteer

TOP = Path(__file__).parents[2]
ORIGINAL, FAITHFUL, CORRECTED, PLACEBO = range(len(READINGS))
PERSONS = Path("data/samples/facts/persons")


@pytest.fixture
def made(sample):
    """A project in which the three datasets are built; not to be changed."""
    return sample("counterfactuals").parents[2]


@pytest.fixture
def own(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path / "own", symlinks=True)
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


def rows(folder: Path) -> pl.DataFrame:
    return pl.read_parquet(folder / "data/datasets/counterfactuals/sentiment-en.parquet")


def built(folder: Path, **changes):
    inputs = {name: folder / "data/datasets" / name for name in counterfactuals.INPUTS}
    params = counterfactuals.Params(version="0.1.0", **({"replacements": 2} | changes))
    found, rejects = building.parted(counterfactuals.build(inputs, params))
    return [row.values for row in found], rejects


def test_build_has_all_readings_for_all_countries(made):
    frame = rows(made)
    texts = frame.filter(reading=ORIGINAL)
    assert len(texts) == 54  # of 55 by the page of targets: one shouts
    sizes = frame.group_by("target", "country", "reading").len()
    for reading, number in ((FAITHFUL, 8), (CORRECTED, 4), (PLACEBO, 2)):
        part = sizes.filter(reading=reading)
        assert set(part["len"]) == {number}
        assert part["country"].n_unique() == 13
    assert sizes.filter(reading=FAITHFUL)["target"].n_unique() == 54


def test_build_names_match_country_and_gender(made):
    known = gazetteer.load(made / "data/datasets/names")
    for row in rows(made).filter(pl.col("reading") != ORIGINAL).to_dicts():
        names_ = known.by_country[row["country"]]
        first = row["name"].split(" ")[0]
        gender = GENDERS[row["gender"]]
        pool = names_["last"] if gender == "unknown" else names_[gender]
        assert first in pool, row
        if " " in row["name"]:
            assert row["name"].split(" ", 1)[1] in names_[f"last:{gender}"]


def test_build_genders_by_reading(made):
    jennifer = rows(made).filter(entity="Jennifer")
    both = Counter(jennifer.filter(reading=FAITHFUL)["gender"].to_list())
    assert both == {0: 13 * 4, 1: 13 * 4}
    assert set(jennifer.filter(reading=CORRECTED)["gender"]) == {GENDERS.index("female")}


def test_build_keeps_possessives(made):
    frame = rows(made)
    james = frame.filter(entity="James", reading=CORRECTED)
    assert len(james)
    for row in james.to_dicts():
        name = row["name"]
        possessive = "'" if name[-1] == "s" else "'s"
        assert row["text"].startswith(f"{name}{possessive} bike was stolen")
        assert f"Poor {name}, he" in row["text"]
    pair = frame.filter(pl.col("text").str.contains("painting the fence"), reading=CORRECTED)
    assert set(pair["entity"]) == {"Olivia", "Harry"}  # they take turns


@pytest.mark.slow
def test_build_depends_on_the_seed_alone(made):
    one, again, other = (built(made, seed=seed, countries=["fr"])[0] for seed in (1, 1, 2))
    assert one == again
    assert [row["name"] for row in one] != [row["name"] for row in other]


def test_barriere2024_follows_the_released_code(made):
    known = gazetteer.load(made / "data/datasets/names")
    entities = ["Michael", "Emily Wilson", "Emily Qwerty", "Trump", "McDonald", "DANIEL", "Emily W"]
    chosen = eligible(entities, known.men | known.women, known.last)
    assert chosen == ["Michael", "Emily Wilson", "DANIEL", "Emily W"]
    text = "Emily Wilson? Emily! #Emily"
    assert substituted(text, "Emily Wilson", "Wei Li") == "Wei Li? Emily! #Emily"
    assert substituted(text, "Emily", "Wei") == "Wei Wilson? Wei! #Wei"
    pairs = list(replacements(["Emily Wilson", "Bob"], ["A", "B"], ["C"], 6, "key"))
    assert len(pairs) == 6
    assert {e for e, _ in pairs} == {"Emily Wilson", "Bob"}
    assert all(re.fullmatch("[AB] C" if " " in e else "[AB]", n) for e, n in pairs)


@pytest.mark.parametrize(
    ("text", "people", "language"),
    [
        ("J. Williams met T. A. Moore.", ["J. Williams", "T. A. Moore"], "en"),
        ("They saw Wilson. Brown bread is fine.", [], "en"),
        ("El bar Manuel, con Manuel.", ["Manuel"], "es"),
        ("Heute kommt Becker mit Anna Becker.", ["Becker", "Anna Becker"], "de"),
        ("Hoje em São Paulo, com Paulo.", ["Paulo"], "pt"),
    ],
)
def test_finder_initials_titles_and_places(made, text, people, language):
    known = gazetteer.load(made / "data/datasets/names")
    spans = next(iter(finder(Finder(), known, language)([text])))
    assert [text[slice(*span)] for span in spans] == people


def test_build_rejects_texts_where_a_name_would_stay(own):
    path = own / "data/datasets/targets/sentiment-en.parquet"
    frame = pl.read_parquet(path)
    first = (
        pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("Mary sang. #TeamMary")).otherwise("text")
    )
    pq.write_table(frame.with_columns(text=first).to_arrow().cast(pq.read_schema(path)), path)
    found, rejects = built(own, countries=["fr"])
    ident = frame["id"][0]
    assert {row["reading"] for row in found if row["target"] == ident} == {ORIGINAL, FAITHFUL}
    assert [reject.key for reject in rejects if reject.reason.startswith("person of")] == [ident]


@pytest.mark.slow
@pytest.mark.parametrize("folder", [PERSONS, PERSONS.with_name("persons_unseen")], ids=str)
def test_find_people_precision_and_recall(own, folder):
    words = [sys.executable, str(TOP / "benchmarks/people.py"), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    said = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in said.splitlines()[2:]]
    assert {name for name, *_ in rows} == {path.stem for path in folder.iterdir()} | {"all"}
    for name, precision, _, _, _, right, found, marked in rows:
        assert int(right) <= min(int(found), int(marked))
        assert float(precision) >= (0.85 if name == "all" or folder == PERSONS else 0.8), name
        assert int(marked) >= (300 if name == "all" else 30)
