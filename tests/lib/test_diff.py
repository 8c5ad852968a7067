"""Comparing two versions: what is told, that it adds up, and that it mirrors."""

from __future__ import annotations

import dataclasses
import json
import random
from datetime import date
from pathlib import Path

import polars as pl
import pytest
from lib.made_versions import (
    ANSWER,
    ESTIMATE,
    MADE,
    answer,
    estimate,
    person,
    suggestion,
    word,
    write,
)

from builders.__main__ import main
from builders.lib.schema import Column, Schema


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told(capsys):
    """Return what compares the folders `a` and `b`, as JSON or as lines."""

    def compared(name, *words, first="./a", second="./b"):
        status = main(["diff", name, first, second, *words])
        said = capsys.readouterr()
        assert status == 0, said.err
        return json.loads(said.out) if "--json" in words else said.out.splitlines()

    return compared


def failed(capsys, *words) -> str:
    assert main(["diff", *words]) == 1
    said = capsys.readouterr()
    assert not said.out
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    return said.err


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
    assert found["rejects"] == [
        {"config": "fr", "reason": "no label", "before": 1, "after": 0},
    ]


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
        "label changed: 1",
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
    page = Path("b/README.md")
    page.write_text(page.read_text("utf-8").replace("'0': male", "'0': man"), "utf-8")
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


def test_an_estimate_is_beyond_when_each_value_is_outside_the_other_interval(told):
    before = [
        estimate("same"),
        estimate("inside", 0, -1, 1),
        estimate("one way", 0, -1, 1),
        estimate("on the end", 0, -1, 1),
        estimate("overlapping", 0, -1, 1),
        estimate("apart", 0, -1, 1),
        estimate("unknown", 0, None, None),
        estimate("gone"),
    ]
    after = [
        estimate("same"),
        estimate("inside", 0.5, -0.5, 1.5),
        estimate("one way", 2, -1, 5),  # outside the old interval, whose value is inside the new
        estimate("on the end", 1, 0.5, 1.5),
        estimate("overlapping", 1.5, 0.75, 2.25),
        estimate("apart", 3, 2, 4),
        estimate("unknown", 9, 8, 10),
        estimate("come"),
    ]
    write("a", ESTIMATE, {"pmi": before})
    write("b", ESTIMATE, {"pmi": after})
    config = told("tables/pmi/tiny", "--json")["configs"]["pmi"]
    assert (config["added"], config["removed"], config["changed"]) == (1, 1, 6)
    assert (config["key"], config["key_from"]) == (["language", "word"], "card")
    found = config["estimates"]["value"]
    assert {n: found[n] for n in ("changed", "judged", "beyond", "disjoint")} == {
        "changed": 6,
        "judged": 5,
        "beyond": 2,
        "disjoint": 1,
    }
    flags = {row["word"]: (row["beyond"], row["disjoint"]) for row in found["rows"]}
    assert flags == {
        "inside": (False, False),
        "one way": (False, False),
        "on the end": (False, False),
        "overlapping": (True, False),
        "apart": (True, True),
        "unknown": (None, None),
    }
    assert found["rows"][0]["word"] == "apart"
    lines = told("tables/pmi/tiny")
    at = lines.index(
        "  value changed: 6 estimates; beyond their intervals: 2, with intervals apart: 1"
    )
    assert lines[at + 1 : at + 4] == [
        "    en apart: 0 (-1 to 1) -> 3 (2 to 4), intervals apart",
        "    en overlapping: 0 (-1 to 1) -> 1.5 (0.75 to 2.25)",
        "    1 without an interval in both",
    ]


def test_adjusted_p_crosses_where_the_report_marks_a_finding(told):
    pairs = {"lost": (0.05, 0.051), "won": (0.06, 0.05), "low": (0.01, 0.04), "high": (0.2, 1)}
    for i, folder in enumerate(("a", "b")):
        rows = [estimate(name, p_bh=pair[i]) for name, pair in pairs.items()]
        write(folder, ESTIMATE, {"pmi": rows})
    crossed = told("tables/pmi/tiny", "--json")["configs"]["pmi"]["adjusted_p_crossed"]["p_bh"]
    assert {row["word"]: row["significant"] for row in crossed} == {"lost": False, "won": True}
    assert "  p_bh crossed 0.05: 1 now below, 1 now above" in told("tables/pmi/tiny")


def test_a_value_that_all_rows_share_is_told_in_one_line(told):
    for folder in ("a", "b"):
        rows = [estimate(w, model=f"model-{folder}") for w in ("x", "y", "z")]
        write(folder, ESTIMATE, {"pmi": rows})
    lines = told("tables/pmi/tiny")
    assert "  model: model-a -> model-b in all 3 rows" in lines


def test_answers_are_matched_by_word_and_measured_in_nats(told):
    write("a", ANSWER, {"en": [answer(1, "x", -1, -1, -2), answer(2, "y", -2), answer(3, "z", -3)]})
    write(
        "b",
        ANSWER,
        {"en": [answer(1, "y", -1.5), answer(2, "x", -2.25, -1, -2.5), answer(3, "w", -9)]},
    )
    found = told("outputs/associations/tiny", "--json")["configs"]["en"]
    assert found["key"] == ["qid", "pos", "frame", "word"]
    assert (found["added"], found["removed"]) == (1, 1)
    assert found["nats"] == {
        "logprob_nats": {"numbers": 2, "median": 0.875, "largest": 1.25},
        "words_nats": {"numbers": 1, "median": 0.5, "largest": 0.5},
    }
    assert found["changed_by_column"]["rank"] == 2
    lines = told("outputs/associations/tiny")
    assert "  logprob_nats: 2 numbers differ, by at most 1.25 nats, median 0.875" in lines


PLAIN = Schema(
    columns=(
        Column("id", "string", "x"),
        Column("text", "string", "x", nullable=True),
        Column("size", "int32", "x", nullable=True),
        Column("flags", "strings", "x", nullable=True),
        Column("weight", "float64", "x", nullable=True),
    ),
    key=("id",),
)


def test_a_dataset_without_a_module_is_compared_by_its_card(told):
    columns = (*PLAIN.columns[:2], Column("size", "float64", "x"), Column("new", "bool", "x"))
    write(
        "a", PLAIN, {"one": [{"id": "1", "size": 2}, {"id": "2", "size": 3}], "old": [{"id": "1"}]}
    )
    rows = [{"id": "1", "size": 2.0}, {"id": "2", "size": 3.5}]
    write("b", Schema(columns, ("id",)), {"one": rows, "late": rows})
    found = told("gone_dataset", "--json")
    assert (found["configs_added"], found["configs_removed"]) == ({"late": 2}, {"old": 1})
    one = found["configs"]["one"]
    assert (one["key"], one["key_from"]) == (["id"], "card")
    assert one["columns_added"] == {"new": "boolean"}
    assert one["columns_removed"] == {"flags": "list(string)", "weight": "float64"}
    assert one["columns_retyped"] == {"size": ["int32", "float64"]}
    assert one["changes"] == {"size": [{"id": "2", "before": 3, "after": 3.5}]}
    lines = told("gone_dataset")
    for line in (
        "config added: late, 2 rows",
        "config removed: old, 1 rows",
        "  column added: new (boolean)",
        "  column of another type: size, int32 -> float64",
        "  size changed: 1",
        "    2: 3 -> 3.5 (+0.5)",
    ):
        assert line in lines, line


def test_without_a_card_columns_of_text_name_a_row_and_else_its_place(told, project):
    for folder in ("a", "b"):
        (project / folder).mkdir()
        rows = {"name": ["x", "y"], "n": [1, 2 if folder == "a" else 3]}
        pl.DataFrame(rows).write_parquet(f"{folder}/named.parquet")
        pl.DataFrame({"n": rows["n"]}).write_parquet(f"{folder}/numbers.parquet")
    found = told("anything", "--json")["configs"]
    assert (found["named"]["key"], found["named"]["key_from"]) == (["name"], "all columns of text")
    assert found["named"]["changes"]["n"] == [{"name": "y", "before": 2, "after": 3}]
    assert found["numbers"]["key_from"] == "order of the rows"
    assert found["numbers"]["changes"]["n"] == [{"row": 2, "before": 2, "after": 3}]


def test_null_is_like_null_and_no_number_like_itself(told):
    rows = [{"id": "1", "weight": float("nan")}, {"id": "2"}, {"id": "3", "flags": ["a"]}]
    write("a", PLAIN, {"one": rows})
    write("b", PLAIN, {"one": [*rows[:2], rows[2] | {"flags": ["a", "b"]}, {"id": "4"}]})
    one = told("anything", "--json")["configs"]["one"]
    assert one["changes"] == {"flags": [{"id": "3", "before": ["a"], "after": ["a", "b"]}]}
    assert one["changed"] == 1


def invented(seed: int) -> list[dict]:
    """Return rows of which some have a key that others have too."""
    dice = random.Random(seed)
    rows = []
    for _ in range(200):
        row = {"id": str(dice.randrange(150)), "text": dice.choice(["a", "b", None])}
        row |= {"size": dice.choice([1, 2, None]), "weight": dice.choice([0.5, float("nan")])}
        rows.append(row | {"flags": dice.choice([None, [], ["x"]])})
    return rows


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_counts_add_up_and_the_other_way_round_is_the_mirror(told, seed):
    write("a", PLAIN, {"one": invented(seed), "two": invented(seed)[:7]})
    write("b", PLAIN, {"one": invented(seed + 10)[:190], "three": []})
    there = told("anything", "--json")
    back = told("anything", "--json", first="./b", second="./a")
    one, mirror = there["configs"]["one"], back["configs"]["one"]
    assert one["rows"] == [200, 190]
    assert one["rows"][1] == one["rows"][0] + one["added"] - one["removed"]
    assert one["repeated_keys"] > 0
    assert len(one["rows_added"]) == one["added"] > 0
    assert mirror["rows"] == one["rows"][::-1]
    assert mirror["rows_added"] == one["rows_removed"]
    assert mirror["rows_removed"] == one["rows_added"]
    assert mirror["changed"] == one["changed"] > 0
    turned = {
        column: [row | {"before": row["after"], "after": row["before"]} for row in rows]
        for column, rows in one["changes"].items()
    }
    assert mirror["changes"] == turned
    assert back["configs_added"] == there["configs_removed"] == {"two": 7}
    assert back["configs_removed"] == there["configs_added"] == {"three": 0}


def test_the_order_of_rows_and_of_files_is_no_difference(told, capsys):
    rows = [{"id": str(n), "size": n} for n in range(50)]
    write("a", PLAIN, {"one": rows})
    write("b", PLAIN, {"one": rows[::-1]})
    assert told("anything", "--json")["differs"] is False
    assert main(["diff", "anything", "./a", "./b", "--exit-code"]) == 0


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


def test_long_lists_are_cut_unless_all_is_asked_for(told):
    write("a", PLAIN, {"one": []})
    write("b", PLAIN, {"one": [{"id": f"{n:02}"} for n in range(25)]})
    short, whole = told("anything"), told("anything", "--all")
    assert short[-1] == "    and 15 more"
    assert sum(line.startswith("    ") for line in short) == 11
    assert whole[-1] == "    24"
    assert sum(line.startswith("    ") for line in whole) == 25


@pytest.mark.parametrize(
    ("words", "told_off"),
    [
        (["politicians", "./a", "./nowhere"], "no such version"),
        (["politicians", "./a", "example/words"], "OWNER/NAME@TAG"),
        (["politicians", "./a", "workspace"], "not in the workspace"),
        (["politicians", "./a", "./empty"], "no parquet file there"),
        (["politicians", "./a", "./broken"], "cannot be read as parquet"),
        (["outputs/associations", "./a", "./b"], "nothing that can be compared"),
        (["data/pretrained/a/b", "./a", "./b"], "nothing that can be compared"),
        (["../politicians", "./a", "./b"], "nothing that can be compared"),
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
