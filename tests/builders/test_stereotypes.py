from __future__ import annotations

import csv
import gzip
import json
import shutil
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pytest
import whole
from samples import DAY, SAMPLES, TOP

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.snapshot import MANIFEST, write_manifest
from plumbline.builders.datasets.social_groups.read import Query, groups
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.builders.datasets.stereotypes import engines
from plumbline.builders.datasets.stereotypes.build import chosen, published
from plumbline.builders.datasets.stereotypes.clean import Cleaning, flags
from plumbline.validation.run import validate

SHARED = building.REAL
REAL = SHARED / "stereotypes/stereo_dataset.csv"
REAL_SINGLE = SHARED / "stereotypes/single_word_stereo_dataset.csv"
WAVE = SAMPLES / "autocomplete" / DAY
PARAMS = whole.tree()["datasets"]["stereotypes"]
RULES = Cleaning(**PARAMS["cleaning"]["en"])


def built_from(folder: Path, odd: str = "", **said: list[str]) -> list[Row | Reject]:
    """Build from one query about kids, and what each engine suggests, or an odd line."""
    group = "category,group,name,kind\nage,kids,kids,people\n"
    files = {"groups/en.csv": group}
    query = "why are kids so"
    for engine, texts in said.items():
        line = {"query": query, "body": json.dumps([query, texts], ensure_ascii=False)}
        packed = gzip.compress(f"{odd or json.dumps(line)}\n".encode(), mtime=0)
        files[f"answers/{engine}/en.jsonl.gz"] = packed
    request = {
        "locales": {"en": {"language": "en"}},
        "engines": {engine: {"format": "list"} for engine in said},
        "templates": {"en": {"people": ["why are {group} so"]}},
        "spelling": "paper",
        "published": {},
    }
    found = building.snapshot(folder, "autocomplete", files, request, "2026-01-02")
    params = stereotypes.Params(**PARAMS | {"published": []})
    return list(stereotypes.build(found, params))


@pytest.mark.parametrize("line", ['{"query": "why are kids so"}', '{"body": "[]"}', "[]", "3"])
def test_build_refuses_an_answer_without_query_or_body(tmp_path, line):
    with pytest.raises(UserError, match=r"yahoo/en\.jsonl"):
        built_from(tmp_path, line, yahoo=["why are kids so noisy"])


def test_build_engines_that_agree_share_a_row(tmp_path):
    found = built_from(
        tmp_path,
        yahoo=["why are kids so noisy", "why are kids so mean"],
        google=["why are kids so mean"],
    )
    assert [(r.values["attribute"], r.values["engines"], r.values["ranks"]) for r in found] == [
        ("mean", ["google", "yahoo"], [1, 2]),
        ("noisy", ["yahoo"], [1]),
    ]
    assert {row.values["wave"] for row in found} == {"2026-01-02"}
    assert {row.values["query"] for row in found} == {"why are kids so"}
    assert {row.values["template"] for row in found} == {"why are {group} so"}


def test_build_rejects_rewritten_queries(tmp_path):
    texts = [
        "Why are KIDS so  noisy?",
        "why are kids so noisy",
        "why are kids so",
        "why do kids shout so",
        "why are kids sour",
    ]
    found = built_from(tmp_path, google=texts)
    rows, rejects = building.parted(found)
    assert [row.values["attribute"] for row in rows] == ["noisy"]
    assert [(r.reason, r.detail) for r in rejects] == [
        ("a second time", texts[1]),
        ("nothing added", texts[2]),
        ("prompt rewritten", texts[3]),
        ("prompt rewritten", texts[4]),
    ]


def completes(group: str, text: str, template: str = "why are {group} so") -> bool:
    """Return whether a suggestion completes the query of a group."""
    query = Query(template.replace("{group}", group), "kind", group, template)
    return not stereotypes._completion(engines.Suggestion(text, 1), query)[0]


def test_completion_of_a_group_within_a_word_of_another():
    entries = groups((SAMPLES / "social_groups" / DAY / "en.csv").read_bytes())
    names = [entry.group.lower() for entry in entries]
    pairs = [(a, b) for a in names for b in names if a in b and f" {a} " not in f" {b} "]
    assert len(pairs) == 64
    for group, other in [*pairs, *((b, a) for a, b in pairs)]:
        assert completes(group, f"Why are the {group.title()} so mean?")
        assert not completes(group, f"why are {other} so mean"), (group, other)


@pytest.mark.parametrize(
    ("attribute", "told"),
    [
        ("noisy", []),
        ("sleepiness", ["not_adjective"]),
        ("mean nowadays", ["multi_word", "trend"]),
        ("common", ["neutral"]),
    ],
)
def test_flags_of_each_rule(attribute, told):
    assert flags(attribute, RULES) == told


@building.reads("stereotypes")
def test_build_real_published_file_has_the_published_counts(project):
    folder = Path("real")
    shutil.copytree(WAVE, folder)
    shutil.copy(REAL, folder / "published/choenni2021.csv")
    shutil.copy(REAL_SINGLE, folder / "published/choenni2021.single_words.csv")
    facts = json.loads((folder / MANIFEST).read_text("utf-8"))
    facts["request"]["published"]["choenni2021"]["single_words"] = "as collected"
    write_manifest(folder, facts)
    text = Path("params.yaml").read_text("utf-8").replace(WAVE.relative_to(TOP).as_posix(), "real")
    Path("params.yaml").write_text(text, "utf-8")
    build("stereotypes", stereotypes)
    validate("stereotypes")
    rows = pl.read_parquet("data/datasets/stereotypes/choenni2021.parquet")
    assert len(rows) == 2099
    assert rows["group"].n_unique() == 274
    assert dict(Counter(rows["category"])) == {
        "profession": 713,
        "race": 412,
        "country": 396,
        "gender": 198,
        "age": 171,
        "lifestyle": 123,
        "political": 50,
        "religion": 36,
    }
    assert dict(Counter(rows["engines"].explode())) == {
        "multiple": 998,
        "google": 560,
        "yahoo": 342,
        "duckduckgo": 199,
    }
    single = rows.filter(pl.col("single_word"))
    assert (len(single), single["group"].n_unique()) == (1886, 263)
    theirs = published(REAL_SINGLE.read_bytes())
    bars = {"google": 503, "yahoo": 302, "duckduckgo": 170, "multiple": 911}  # Figure 8
    assert Counter(row.engine for row in theirs) == bars
    assert Counter(single.select("query", "category", "group", "attribute").iter_rows()) == Counter(
        row[1:5] for row in theirs
    )


@building.reads("stereotypes")
def test_flags_agree_with_the_authors_hand_cleaning():
    rows = published(REAL.read_bytes())
    kept = chosen(rows, published(REAL_SINGLE.read_bytes()))
    told = {
        row.number: flags(row.attribute, RULES, "" if row.template.endswith(" so") else "so")
        for row in rows
    }
    flagged = sum(bool(told[number]) for number in kept)
    dropped = sum(bool(told[row.number]) for row in rows if row.number not in kept)
    assert flagged <= 0.01 * len(kept), "the rules speak against what the authors kept"
    assert dropped >= 0.9 * (len(rows) - len(kept)), "the rules miss what the authors left out"


def test_flags_of_suggestions_labelled_by_hand():
    with (Path(__file__).parents[1] / "expected/suggestions.csv").open(encoding="utf-8") as file:
        rows = [
            (bool(flags(r["suggestion"], RULES)), r["stereotype"] == "0")
            for r in csv.DictReader(file)
        ]
    flagged, wrong = sum(told for told, _ in rows), sum(bad for _, bad in rows)
    right = sum(told and bad for told, bad in rows)
    assert len(rows) >= 200
    assert right == flagged  # of those that the rules flag, none is an adjective of the group
    assert right >= 0.5 * wrong
