"""Comparing versions of datasets in their own words, and the command itself."""

import dataclasses
import json
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from lib.made_versions import MADE, compared, failed, person, suggestion, word, write

from plumbline.builders.__main__ import main


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told(capsys):
    """Return what compares the folders `a` and `b`."""
    return partial(compared, capsys)


def people():
    """Write two versions: one person came, one went, one changed gender, two births, a label."""
    born = {"birth_date": date(1950, 1, 1)}
    en = [
        person("Q1", "Ann", "female", **born),
        person("Q2", "Bob", **born, popularity=5),
        person("Q3", "Cid", **born),
        person("Q4", "Dan", **born),
    ]
    fr = [row | {"name": f"{row['name']}-fr"} for row in en[:3]]
    write("a", MADE["politicians"], {"en": en, "fr": fr}, rejects=[("fr", "Q4", "no label")])
    en = [
        person("Q1", "Ann", "female", birth_date=date(1951, 2, 3)),
        person("Q2", "Bob", "female", **born, popularity=9),
        person("Q4", "Dan", birth_date=date(1960, 5, 6)),
        person("Q5", "Eve", "female", **born),
    ]
    fr = [row | {"name": f"{row['name']}-fr"} for row in en]
    fr[0]["name"] = "Anne"
    write("b", MADE["politicians"], {"en": en, "fr": fr}, version="1.1.0")


def test_people_are_told_once_with_the_languages_that_they_changed_in(told):
    people()
    found = told("politicians", "--json")
    assert (found["before"]["version"], found["after"]["version"]) == ("1.0.0", "1.1.0")
    across = found["across_configs"]
    assert across["added"] == [{"qid": "Q5", "name": "Eve", "configs": ["en", "fr"]}]
    assert across["removed"] == [{"qid": "Q3", "name": "Cid", "configs": ["en", "fr"]}]
    changes = across["changes"]
    both = {"configs": ["en", "fr"]}
    assert changes["gender"] == [
        {"qid": "Q2", "name": "Bob", "before": "male", "after": "female"} | both
    ]
    assert changes["birth_date"] == [
        {"qid": "Q1", "name": "Ann", "before": "1950-01-01", "after": "1951-02-03"} | both,
        {
            "qid": "Q4",
            "name": "Dan",
            "before": "1950-01-01",
            "after": "1960-05-06",
            "configs": ["en"],
        },
    ]
    assert changes["name"] == [
        {"qid": "Q1", "before": "Ann-fr", "after": "Anne", "configs": ["fr"]}
    ]
    assert set(changes) == {"gender", "birth_date", "name", "popularity"}
    fr = found["configs"]["fr"]
    assert [row["qid"] for row in fr["rows_added"]] == ["Q4", "Q5"]  # Q4 has a label now
    assert (fr["rows"], fr["added"], fr["removed"], fr["changed"]) == ([3, 4], 2, 1, 2)
    assert (fr["key"], fr["key_from"]) == (["qid"], "schema")
    assert found["rejects"] == [{"config": "fr", "reason": "no label", "before": 1, "after": 0}]


def test_people_in_words(told):
    people()
    lines = told("politicians")
    assert lines[:3] == [
        "datasets/politicians",
        "  before: ./a, a folder, version 1.0.0",
        "  after : ./b, a folder, version 1.1.0",
    ]
    text = "\n".join(lines)
    for line in (
        "people, in all configs together: 1 added, 1 removed",
        "    Q5 Eve (all configs)",
        "gender changed: 1",
        "    Q2 Bob (all configs): male -> female",
        "birth date changed: 2",
        "    Q4 Dan (en): 1950-01-01 -> 1960-05-06",
        "name changed: 1",
        "    Q1 (fr): Ann-fr -> Anne",
        "other columns changed: popularity 1",
        "fr: 3 -> 4 rows: 2 added, 1 removed, 2 changed (named by qid: schema)",
        "  added in this config, but not in all: 1",
        "  fr, no label: 1 -> 0",
    ):
        assert f"{line}\n" in f"{text}\n", line


def test_codes_are_compared_by_what_they_stand_for(told):
    schema = MADE["politicians"]
    turned = tuple(
        dataclasses.replace(c, labels=("female", "male", "non-binary")) if c.name == "gender" else c
        for c in schema.columns
    )
    write("a", schema, {"en": [{"qid": "Q1", "gender": 0}, {"qid": "Q2", "gender": 1}]})
    rows = {"en": [{"qid": "Q1", "gender": 1}, {"qid": "Q2", "gender": 1}]}
    write("b", dataclasses.replace(schema, columns=turned), rows)
    en = told("politicians", "--json")["configs"]["en"]
    assert en["columns_retyped"] == {
        "gender": ["label: male, female, non-binary", "label: female, male, non-binary"]
    }
    assert [(r["qid"], r["before"], r["after"]) for r in en["changes"]["gender"]] == [
        ("Q2", "female", "male")
    ]


def test_the_same_bytes_under_other_labels_differ(told):
    write("a", MADE["politicians"], {"en": [{"qid": "Q1", "gender": 0}]})
    write("b", MADE["politicians"], {"en": [{"qid": "Q1", "gender": 0}]})
    facts = Path("b/build.json")
    facts.write_text(facts.read_text("utf-8").replace('"male"', '"man"'), "utf-8")
    assert Path("a/en.parquet").read_bytes() == Path("b/en.parquet").read_bytes()
    en = told("politicians", "--json")["configs"]["en"]
    assert [(r["before"], r["after"]) for r in en["changes"]["gender"]] == [("male", "man")]


def test_words_whose_sentiment_moved_come_largest_first_and_turned_ones_again(told):
    before = [word("calm", 0.5, 0.25), word("loud", 0.25, 0.5), word("odd"), word("shy", 0.5)]
    after = [word("calm", 0.625, 0.25), word("loud", 0.75, 0.25), word("odd", 0.125), word("wry")]
    write("a", MADE["lexica"], {"en": before})
    write("b", MADE["lexica"], {"en": after})
    found = told("lexica", "--json")["configs"]["en"]
    assert found["sentiment"]["of"] == "q_positive - q_negative"
    rows = [(r["word"], r["before"], r["after"], r["turned"]) for r in found["sentiment"]["moved"]]
    assert rows == [
        ("loud", -0.25, 0.5, True),
        ("calm", 0.25, 0.375, False),
        ("odd", 0.0, 0.125, False),
    ]
    assert [r["moved"] for r in found["sentiment"]["moved"]] == [0.75, 0.125, 0.125]
    assert [[r["word"] for r in found[f"rows_{way}"]] for way in ("added", "removed")] == [
        ["wry"],
        ["shy"],
    ]
    lines = told("lexica")
    turned = lines.index("  its sign turned: 1")
    assert lines[turned + 1] == "    loud: -0.25 -> 0.5 (+0.75)"


def test_emotions_move_from_negative_to_positive(told):
    write("a", MADE["emotions"], {"en": [{"word": "x", "negative": True}, {"word": "y"}]})
    write(
        "b", MADE["emotions"], {"en": [{"word": "x", "positive": True}, {"word": "y", "joy": True}]}
    )
    found = told("emotions", "--json")["configs"]["en"]
    assert [(r["word"], r["moved"], r["turned"]) for r in found["sentiment"]["moved"]] == [
        ("x", 2, True)
    ]
    assert found["changed_by_column"] == {"joy": 1, "positive": 1, "negative": 1}


def test_suggestions_by_engine_however_they_are_cut(told):
    before = [
        suggestion("cats", "why are cats so", "calm", google=1, yahoo=2),
        suggestion("cats", "why are cats so", "very shy", google=2),
        suggestion("dogs", "why are dogs so", "loud", google=1),
    ]
    after = [
        suggestion("cats", "why are cats so", "calm", google=3),
        suggestion("cats", "why are cats so very", "shy", google=2),
        suggestion("dogs", "why are dogs so", "soft", yahoo=1),
    ]
    write("a", MADE["stereotypes"], {"en": before})
    write("b", MADE["stereotypes"], {"en": after})
    found = told("stereotypes", "--json")["configs"]["en"]["suggestions"]
    assert found["kept"] == {"google": 2}
    assert found["moved"] == [
        {
            "group": "cats",
            "text": "why are cats so calm",
            "engine": "google",
            "before": 1,
            "after": 3,
            "moved": 2,
        }
    ]
    appeared, vanished = (
        [(r["text"], r["engine"], r["rank"]) for r in found[way]]
        for way in ("appeared", "vanished")
    )
    assert appeared == [("why are dogs so soft", "yahoo", 1)]
    assert vanished == [("why are cats so calm", "yahoo", 2), ("why are dogs so loud", "google", 1)]
    lines = told("stereotypes")
    assert "  suggestions of google: 0 appeared, 1 vanished, 1 moved; 2 in both" in lines
    assert "  suggestions of yahoo: 1 appeared, 1 vanished, 0 moved; 0 in both" in lines


PUBLISHED = {"category": "c", "group": "cats", "query": "q", "engines": ["multiple"], "ranks": []}


def test_published_suggestions_have_no_rank_to_move(told):
    rows = [PUBLISHED | {"attribute": a, "source_row": n} for n, a in enumerate(("x", "y"), 1)]
    write("a", MADE["stereotypes"], {"choenni2021": rows})
    write("b", MADE["stereotypes"], {"choenni2021": rows[:1]})
    found = told("stereotypes", "--json")["configs"]["choenni2021"]["suggestions"]
    assert found["kept"] == {"multiple": 1}
    assert [(r["text"], r["rank"]) for r in found["vanished"]] == [("q y", None)]
    assert set(found) == {"kept", "vanished"}


def test_a_thing_does_not_differ_from_itself(told, capsys):
    people()
    found = told("politicians", "--json", second="./a")
    assert found["differs"] is False
    assert told("politicians", second="./a")[-1] == "nothing differs: 2 configs, 7 rows"
    for config in found["configs"].values():
        assert (config["added"], config["removed"], config["changed"]) == (0, 0, 0)


def test_the_status_tells_of_differences_only_when_asked(capsys):
    people()
    assert main(["diff", "politicians", "./a", "./b"]) == 0
    assert main(["diff", "politicians", "./a", "./b", "--exit-code"]) == 1
    assert main(["diff", "politicians", "./a", "./a", "--exit-code"]) == 0
    assert "error" not in capsys.readouterr().err


def test_only_the_configs_that_are_named(told, capsys):
    people()
    found = told("politicians", "--json", "--config", "fr")
    assert set(found["configs"]) == {"fr"}
    assert [r["qid"] for r in found["across_configs"]["added"]] == ["Q4", "Q5"]
    told_off = failed(capsys, "politicians", "./a", "./b", "--config", "de")
    assert "--config de: in neither version; there are en, fr" in told_off


@pytest.mark.parametrize(
    ("words", "told_off"),
    [
        (["politicians", "./a", "./nowhere"], "no such version"),
        (["politicians", "./a", "example/words"], "OWNER/NAME@TAG"),
        (["politicians", "./a", "workspace"], "not in the workspace"),
        (["politicians", "./a", "./empty"], "no parquet file there"),
        (["politicians", "./a", "./broken"], "cannot be read as parquet"),
        (["outputs/associations", "./a", "./b"], "not a folder for this; name a dataset, "),
    ],
)
def test_bad_input_is_one_sentence(capsys, project, words, told_off):
    people()
    (project / "empty").mkdir()
    (project / "broken").mkdir()
    (project / "broken/en.parquet").write_bytes(b"PAR1 not")
    assert told_off in failed(capsys, *words)


def test_names_are_as_publish_takes_them(capsys, project):
    people()
    for name in ("politicians", "datasets/politicians", "data/datasets/politicians"):
        where = project / "data/datasets/politicians"
        if not where.exists():
            where.parent.mkdir(parents=True)
            (project / "a").rename(where)
        for given in (name, f"{name}/", str(where)):
            assert main(["diff", given, "workspace", "./b", "--json"]) == 0
            found = json.loads(capsys.readouterr().out)
            assert found["name"] == "datasets/politicians"
            assert found["configs"]["en"]["key_from"] == "schema"
