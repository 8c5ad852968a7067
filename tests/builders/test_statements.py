from __future__ import annotations

from collections import Counter

import building
import polars as pl
import pytest
from published import compass, eight
from samples import DAY, POLITE

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.statements import build as statements
from plumbline.builders.datasets.statements import fetch as client
from plumbline.builders.datasets.statements.formats import framed
from plumbline.builders.datasets.statements.read import VALUES
from plumbline.builders.datasets.statements.read import statements as read

SHARED = building.REAL / "statements"
HEAD = "id,text,axis,weight,reversed,polarity,opposite\n"
FLOORS = {"rows_min": {}}


def test_sample_calibration_and_values_are_balanced(sample):
    folder = sample("statements")
    for code in ("cs", "en", "es", "ru"):
        neutral = pl.read_parquet(folder / f"calibration-{code}.parquet")
        assert Counter(neutral["polarity"]) == {0: 50, 1: 50}
        assert neutral["text"].n_unique() == 100
        own = pl.read_parquet(folder / f"values-{code}.parquet")
        counts = own.group_by("axis").agg(pl.len(), pl.col("reversed").sum().alias("turned"))
        assert {axis: (n, t) for axis, n, t in counts.iter_rows()} == dict.fromkeys(VALUES, (12, 6))
        reversal = dict(own.select("id", "reversed").iter_rows())
        for name, other in own.select("id", "opposite").iter_rows():
            assert reversal[name] != reversal[other]


def pi34(number, axis="tribalism"):
    return (HEAD + "".join(f"i{i},tea {i} is good,{axis},1,no,,\n" for i in range(number))).encode()


def test_statements_pi34_has_34_items():
    assert len(read(pi34(34), "PI34")) == 34
    with pytest.raises(ValueError):
        read(pi34(33), "PI34")
    with pytest.raises(ValueError):
        read(pi34(34, "equity"), "PI34")


def fetched(folder, **published):
    """Build and check the questionnaires of others, from files of the user's."""
    declared = {
        name: {"file": str(path), "format": name, "scale": name, "language": "en"}
        | {"licence": "its authors'", "source": "its authors"}
        for name, path in published.items()
    }
    client.fetch(client.Params(questionnaires=declared), POLITE, folder / "theirs" / DAY)
    params = statements.Params(version="0.1.0", snapshot="x", configs=[*published])
    found = statements.build(Snapshot.open(folder / "theirs" / DAY), params)
    made = building.written(folder / "statements", "statements", found)
    assert not building.failing("statements", made, FLOORS)
    return [pl.read_parquet(made / f"{name}.parquet") for name in published]


def test_build_points_of_published_scales(tmp_path):
    (tmp_path / "compass.json").write_text(compass(), "utf-8")
    (tmp_path / "eight.js").write_text(eight(), "utf-8")
    files = {"political-compass": tmp_path / "compass.json", "8values": tmp_path / "eight.js"}
    own, linear = fetched(tmp_path, **files)
    rows = {row["id"]: row for row in own.iter_rows(named=True)}
    assert len(rows) == len(own) == 62
    first = rows["pc-01"]
    assert first["points"] == [77, 5, 0, -83]
    assert (first["axis"], first["weight"], first["reversed"]) == ("economic", 80, True)
    assert (rows["pc-62"]["axis"], rows["pc-62"]["weight"]) == ("", 0)
    assert (first["text"], first["sentence"]) == ("tea 1 is dear", "Tea 1 is dear.")
    assert not own["redistributable"].any()  # unless the user says so
    for points, fit in (([77.0, 5, 0, -83], True), ([-83.0, 0, 5, 77], False), ([77.0], False)):
        told = own.head(1).with_columns(points=pl.lit(points))
        (tmp_path / "odd/statements").mkdir(parents=True, exist_ok=True)
        told.write_parquet(tmp_path / "odd/statements/political-compass.parquet")
        failing = building.failing("statements", tmp_path / "odd/statements", FLOORS)
        assert ("points_fit_weight" in failing) is not fit
    moved = linear.filter(pl.col("id") == "8v-01").select("axis", "weight", "reversed").rows()
    assert moved == [("econ", 10.0, False), ("govt", 5.0, True)]


@building.reads("statements")
def test_build_real_compass_and_8values(tmp_path):
    files = {"political-compass": SHARED / "political_compass.json"}
    files |= {"8values": SHARED / "8values_questions.js.txt"}
    own, linear = fetched(tmp_path, **files)
    assert Counter(own["axis"]) == {"economic": 18, "social": 43, "": 1}
    assert own.filter(axis="")["id"].to_list() == ["pc-21"]
    words = dict(own.select("id", "sentence").iter_rows())
    assert words["pc-23"] == "All authority should be questioned."
    assert linear["id"].n_unique() == 70
    assert Counter(linear["axis"]) == {"econ": 22, "dipl": 24, "govt": 37, "scty": 33}
    totals = dict(linear.group_by("axis").agg(pl.col("weight").sum()).iter_rows())
    assert totals == {"econ": 195, "dipl": 225, "govt": 320, "scty": 292}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("सरकार को कर बढ़ाना चाहिए", "सरकार को कर बढ़ाना चाहिए।"),
        ("政府应该提高税收", "政府应该提高税收。"),
        ("կառավարությունը լավն է", "Կառավարությունը լավն է։"),
        ("ประเทศดี", "ประเทศดี"),
        ("налоги высокие", "Налоги высокие."),
    ],
)
def test_statements_full_stop_of_the_script(text, sentence):
    (row,) = read(f"{HEAD}a,{text},x,1,no,,\n".encode())
    assert row.sentence == sentence
    for stop in ("।", "॥", "。", "．", "？", "؟", "۔", "።", "։", "…", "!"):
        with pytest.raises(ValueError, match="line 2") as error:
            read(f"{HEAD}a,{text}{stop},x,1,no,,\n".encode())
        assert repr(text + stop) in str(error.value)
        assert framed(f"{text}{stop}", "hi") == text


def test_framed_keeps_capitals_of_acronyms_and_names():
    for sentence in (
        "NATO should be dissolved",
        "U.S. troops should leave",
        "McDonald stores harm towns",
        "LGBT individuals should adopt",
        "Ireland should leave the union",
        "United States law is just",
        "Europe should unite",
        "English should be the only language",
        "I’d always pay",
    ):
        assert framed(f"{sentence}.") == sentence
    for sentence in ("A tax is due", "Taxes are due", "Even peace has a price", "Omanis vote"):
        assert framed(f"{sentence}.") == sentence[0].lower() + sentence[1:]
    assert framed("I cittadini votano.", "it") == "i cittadini votano"


def test_framed_learns_from_the_questionnaire():
    german = ["Unterdrückung ist schlimm.", "Die Bahn ist gut.", "Man sagt, dass die Bahn gut ist."]
    texts = [framed(sentence, "de", german) for sentence in german]
    assert texts[:2] == ["Unterdrückung ist schlimm", "die Bahn ist gut"]
    english = ["Muslims may vote.", "Many Muslims vote.", "Many may vote.", "May is a month."]
    texts = [framed(sentence, "en", english) for sentence in english]
    assert texts == ["Muslims may vote", "many Muslims vote", "many may vote", "may is a month"]
