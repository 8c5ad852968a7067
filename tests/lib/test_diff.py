"""Comparing two versions by key and column, and the command itself."""

import dataclasses
from functools import partial

import pytest
from lib.made_versions import ESTIMATE, MADE, compared, estimate, failed, person, write

from plumbline.builders.__main__ import main
from plumbline.builders.core.schema import Column, Schema

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


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def diff(capsys):
    """Return what compares the folders `a` and `b`."""
    return partial(compared, capsys)


def people():
    """Write two versions: one person is new, one is gone, one has another gender."""
    rows = [person("Q1", "Ann", "female"), person("Q2", "Bob", popularity=5), person("Q3", "Cid")]
    write("a", MADE["politicians"], {"en": rows}, rejects=[("en", "Q4", "no label")])
    rows = [
        person("Q1", "Ann", "female"),
        person("Q2", "Bob", "female", popularity=9),
        person("Q5", "Eve", "female"),
    ]
    write("b", MADE["politicians"], {"en": rows, "fr": rows[:1]}, version="1.1.0")


@pytest.mark.parametrize("body", ["[" * 100_000, "[]", "3", "null", "{}", '{"schemas": 3}', "a"])
def test_diff_of_a_version_with_a_damaged_build_json_is_an_error(project, capsys, body):
    people()
    (project / "b/build.json").write_text(body)
    assert main(["diff", "politicians", "./a", "./b"]) == 1
    assert "b/build.json" in capsys.readouterr().err


def test_diff_rows_added_removed_and_changed_by_column(diff):
    people()
    tree = diff("politicians", "--json")
    assert tree["differs"] is True
    assert (tree["before"]["version"], tree["after"]["version"]) == ("1.0.0", "1.1.0")
    assert (tree["configs_added"], tree["configs_removed"]) == ({"fr": 1}, {})
    assert tree["rejects"] == [{"config": "en", "reason": "no label", "before": 1, "after": 0}]
    en = tree["configs"]["en"]
    assert (en["rows"], en["added"], en["removed"], en["changed"]) == ([3, 3], 1, 1, 1)
    assert en["key"] == ["qid"]
    assert en["rows_added"] == [{"qid": "Q5", "name": "Eve"}]
    assert en["rows_removed"] == [{"qid": "Q3", "name": "Cid"}]
    assert en["changed_by_column"] == {"gender": 1, "popularity": 1}
    bob = {"qid": "Q2", "name": "Bob"}
    assert en["changes"]["gender"] == [bob | {"before": "male", "after": "female"}]
    assert en["changes"]["popularity"] == [bob | {"before": 5, "after": 9}]
    lines = diff("politicians")
    assert "en: 3 -> 3 rows: 1 added, 1 removed, 1 changed (key: qid)" in lines
    for line in (
        "    Q5 Eve",
        "    Q3 Cid",
        "    Q2 Bob: male -> female",
        "  en, no label: 1 -> 0",
    ):
        assert line in lines


def test_diff_labels_are_compared_by_name(diff):
    schema = MADE["politicians"]
    turned = tuple(
        dataclasses.replace(c, labels=("female", "male", "non-binary")) if c.name == "gender" else c
        for c in schema.columns
    )
    write("a", schema, {"en": [{"qid": "Q1", "gender": 0}, {"qid": "Q2", "gender": 1}]})
    rows = {"en": [{"qid": "Q1", "gender": 1}, {"qid": "Q2", "gender": 1}]}
    write("b", dataclasses.replace(schema, columns=turned), rows)
    en = diff("politicians", "--json")["configs"]["en"]
    assert [*en["columns_retyped"]] == ["gender"]
    assert [(r["qid"], r["before"], r["after"]) for r in en["changes"]["gender"]] == [
        ("Q2", "female", "male")
    ]


def test_diff_estimates_that_left_each_others_interval(diff):
    after = {
        "same": (0, -1, 1),
        "inside": (0.5, -0.5, 1.5),
        "one way": (2, -1, 5),  # outside the old interval, whose value is inside the new
        "on the end": (1, 0.5, 1.5),
        "overlapping": (1.5, 0.75, 2.25),
        "disjoint": (3, 2, 4),
        "unknown": (9, None, None),
    }
    write("a", ESTIMATE, {"pmi": [estimate(name, 0, -1, 1) for name in after]})
    write("b", ESTIMATE, {"pmi": [estimate(name, *ends) for name, ends in after.items()]})
    estimates = diff("tables/pmi/tiny", "--json")["configs"]["pmi"]["estimates"]
    assert (estimates["changed"], estimates["judged"], estimates["beyond"]) == (6, 5, 2)
    assert [row["word"] for row in estimates["rows"]] == ["disjoint", "overlapping"]
    assert "    en disjoint: 0 [-1, 1] -> 3 [2, 4]" in diff("tables/pmi/tiny")


def test_diff_columns_added_removed_and_retyped(diff):
    columns = (*PLAIN.columns[:2], Column("size", "float64", "x"), Column("new", "bool", "x"))
    write("a", PLAIN, {"one": [{"id": "1", "size": 2}, {"id": "2", "size": 3}]})
    rows = [{"id": "1", "size": 2.0}, {"id": "2", "size": 3.5}]
    write("b", Schema(columns, ("id",)), {"one": rows})
    one = diff("gone_dataset", "--json")["configs"]["one"]
    assert one["columns_added"] == {"new": "boolean"}
    assert one["columns_removed"] == {"flags": "list(string)", "weight": "float64"}
    assert one["columns_retyped"] == {"size": ["int32", "float64"]}
    assert one["changes"] == {"size": [{"id": "2", "before": 3, "after": 3.5}]}


def test_diff_status_and_selected_configs(diff, capsys):
    people()
    assert main(["diff", "politicians", "./a", "./b"]) == 0
    assert main(["diff", "politicians", "./a", "./b", "--exit-code"]) == 1
    assert main(["diff", "politicians", "./a", "./a", "--exit-code"]) == 0
    capsys.readouterr()
    tree = diff("politicians", "--json", "--config", "fr")
    assert (tree["configs"], tree["configs_added"]) == ({}, {"fr": 1})
    assert "de" in failed(capsys, "politicians", "./a", "./b", "--config", "de")


@pytest.mark.parametrize("value", ["./nowhere", "./broken"])
def test_diff_bad_input_is_one_sentence(capsys, project, value):
    people()
    (project / "broken").mkdir()
    (project / "broken/en.parquet").write_bytes(b"PAR1 not")
    assert value.removeprefix("./") in failed(capsys, "politicians", "./a", value)
