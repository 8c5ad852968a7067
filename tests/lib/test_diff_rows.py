"""Comparing versions of outputs, tables and any dataset: rules, counts that add up, mirrors."""

import importlib
import random
from functools import partial

import polars as pl
import pytest
from lib.made_versions import ANSWER, ESTIMATE, answer, compared, estimate, write

from plumbline.builders import DATASETS
from plumbline.builders.__main__ import main
from plumbline.builders.core.schema import Column, Schema


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def told(capsys):
    """Return what compares the folders `a` and `b`."""
    return partial(compared, capsys)


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


def test_infinity_is_null_in_json(told):
    write("a", PLAIN, {"one": [{"id": "1", "weight": 1.0}]})
    write("b", PLAIN, {"one": [{"id": "1", "weight": float("inf")}]})
    changes = told("anything", "--json")["configs"]["one"]["changes"]
    assert changes == {"weight": [{"id": "1", "before": 1.0, "after": None}]}
    assert "    1: 1 -> inf (+inf)" in told("anything")


def test_every_key_and_role_is_of_a_column():
    for name in DATASETS:
        schema = importlib.import_module(f"plumbline.builders.datasets.{name}.build").SCHEMA
        has = {c.name for c in schema.columns}
        assert {*schema.key, *(schema.sentiment or ())} <= has, name
        told = [len(schema.role(role)) for role in ("group", "text", "engines", "ranks")]
        assert told in ([0, 0, 0, 0], [1, 2, 1, 1]), name


def invented(seed: int) -> list[dict]:
    """Return rows of which some have a key that others have too."""
    dice = random.Random(seed)
    rows = []
    for _ in range(200):
        row = {"id": str(dice.randrange(150)), "text": dice.choice(["a", "b", None])}
        row |= {"size": dice.choice([1, 2, None]), "weight": dice.choice([0.5, float("nan")])}
        rows.append(row | {"flags": dice.choice([None, [], ["x"]])})
    return rows


def test_counts_add_up_and_the_other_way_round_is_the_mirror(told):
    write("a", PLAIN, {"one": invented(1), "two": invented(1)[:7]})
    write("b", PLAIN, {"one": invented(2)[:190], "three": []})
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


def test_long_lists_are_cut_unless_all_is_asked_for(told):
    write("a", PLAIN, {"one": []})
    write("b", PLAIN, {"one": [{"id": f"{n:02}"} for n in range(25)]})
    short, whole = told("anything"), told("anything", "--all")
    assert short[-1] == "    and 15 more"
    assert sum(line.startswith("    ") for line in short) == 11
    assert whole[-1] == "    24"
    assert sum(line.startswith("    ") for line in whole) == 25
