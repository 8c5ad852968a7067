from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from samples import DAY, EARLIER, SAMPLES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, write_manifest
from plumbline.probes.__main__ import main
from plumbline.probes.stereotypes import waves

PARAMS = waves.Params(version="0.1.0", earlier="a", later="b")
WAVES = [SAMPLES / "autocomplete" / day for day in (EARLIER, DAY)]


def wave(folder: Path, day: str, said: dict[str, list[str]], engine: str = "google") -> Path:
    """Write a wave of one engine: completions of "why are GROUP so", for each group."""
    folder = folder / day
    lines = ["category,group,name,kind", *(f"age,{group},{group},people" for group in said)]
    (folder / "groups").mkdir(parents=True)
    (folder / "groups" / "en.csv").write_text("\n".join(lines) + "\n", "utf-8")
    path = folder / "answers" / engine / "en.jsonl.gz"
    path.parent.mkdir(parents=True)
    answers = []
    for group, ends in said.items():
        query = f"why are {group} so"
        body = json.dumps([query, [f"{query} {end}" for end in ends]])
        answers.append(json.dumps({"query": query, "body": body}) + "\n")
    path.write_bytes(gzip.compress("".join(answers).encode(), mtime=0))
    request = {
        "locales": {"en": {"language": "en"}},
        "engines": {engine: {"format": "list"}},
        "templates": {"en": {"people": ["why are {group} so"]}},
        "spelling": "paper",
        "published": {},
    }
    facts = {"address": "t", "retrieved": day, "licence": "x", "citation": "t"}
    write_manifest(folder, facts | {"source": "autocomplete", "request": request, "counts": {}})
    return folder


def compared(earlier: Path, later: Path) -> dict[str, list[dict]]:
    params = PARAMS.model_copy(update={"earlier": str(earlier), "later": str(later)})
    return {name: table.to_dicts() for name, table in waves.run(None, params).items()}


def test_run_counts_jaccard_and_other_groups_by_hand(tmp_path):
    earlier = {"kids": ["sad", "loud", "shy"], "teens": ["odd"], "sons": [], "elders": ["wise"]}
    later = {"kids": ["loud", "odd", "sad"], "teens": ["odd", "shy"], "sons": [], "boomers": ["x"]}
    found = compared(wave(tmp_path, EARLIER, earlier), wave(tmp_path, DAY, later))
    rows = {row["group"]: row for row in found["waves"] if row["category"] == "age"}
    assert set(rows) == {"kids", "teens", "sons", "*"}  # in both waves
    kids = rows["kids"]
    assert (kids["appeared"], kids["vanished"], kids["retained"]) == (1, 1, 2)
    assert (kids["value"], kids["low"], kids["n"]) == (2 / 4, None, 1)  # one query
    # sad, loud, shy against odd, shy of teens and nothing of sons
    assert kids["other_groups"] == round(1 / (4 + 3), 6)
    assert rows["sons"]["value"] is None
    every = rows["*"]
    assert (every["appeared"], every["vanished"], every["retained"]) == (2, 1, 3)
    assert (every["value"], every["n"]) == (3 / 6, 3)
    # teens: odd against loud, odd, sad of kids and nothing of sons; sons: nothing against both
    assert every["other_groups"] == round((1 + 1 + 0) / (4 + 3 + 3 + 1 + 3 + 2), 6)
    changes = {(row["group"], row["attribute"]): row["change"] for row in found["suggestions"]}
    assert changes == {
        ("kids", "sad"): "retained",
        ("kids", "loud"): "retained",
        ("kids", "shy"): "vanished",
        ("kids", "odd"): "appeared",
        ("teens", "odd"): "retained",
        ("teens", "shy"): "appeared",
    }


def test_run_key_terms_and_flags_make_no_difference(tmp_path):
    earlier = wave(tmp_path, EARLIER, {"kids": ["good at chess", "ugh"]})
    later = wave(tmp_path, DAY, {"kids": ["good at chess", "loud these days"]})
    found = compared(earlier, later)["suggestions"]
    assert {row["attribute"]: row["change"] for row in found} == {
        "good at chess": "retained",
        "ugh": "vanished",
        "loud these days": "appeared",
    }
    assert {row["query"] for row in found} == {"why are kids so"}


def test_jaccard_interval_of_two_clusters_is_that_of_all_resamples():
    # draws give 0 in a quarter, 1/2 in half, 1 in a quarter
    ends = waves.jaccard_interval(np.array([0, 1]), np.array([1, 1]), PARAMS, "x")
    assert ends == (0, 1)
    wide = PARAMS.model_copy(update={"confidence": 0.4})
    assert waves.jaccard_interval(np.array([0, 1]), np.array([1, 1]), wide, "x") == (0.5, 0.5)
    assert np.isnan(waves.jaccard_interval(np.array([1]), np.array([1]), PARAMS, "x")).all()
    assert np.isnan(waves.jaccard_interval(np.zeros(2, int), np.zeros(2, int), PARAMS, "x")).all()


def test_waves_command_writes_the_same_tables_every_time(project, capsys):
    assert main(["waves"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3 * (1 + 9)  # engines by all and categories
    first = {p.name: p.read_bytes() for p in waves.FOLDER.iterdir()}
    assert set(first) == {"waves.parquet", "suggestions.parquet", "README.md", "build.json"}
    rows = pl.read_parquet(waves.FOLDER / "waves.parquet").filter(category="*")
    assert rows["engine"].to_list() == ["duckduckgo", "google", "yahoo"]
    assert (rows["low"] > rows["other_groups"]).all()
    assert (rows["value"] < 1).all()
    folders = [f"data/samples/autocomplete/{day}" for day in (EARLIER, DAY)]
    assert main(["waves", *folders, "--into", "again"]) == 0
    assert {p.name: p.read_bytes() for p in Path("again").iterdir()} == first


@pytest.mark.parametrize(
    "words",
    [
        ["nowhere", str(WAVES[1])],
        [str(WAVES[1]), str(WAVES[0])],
        [str(SAMPLES / "ud" / DAY), str(WAVES[1])],
    ],
)
def test_waves_command_reports_what_cannot_be_compared(project, capsys, words):
    assert main(["waves", *words]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not waves.FOLDER.exists()


def test_open_waves_that_overlap_or_took_too_long_is_an_error(tmp_path):
    days = ("2026-11-01", "2026-11-10")
    one, two = (wave(tmp_path, day, {"kids": ["sad"]}) for day in days)

    def answered(folder, first, last):
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        manifest["request"]["answered"] = {"first": first, "last": last}
        (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")

    answered(one, "2026-11-01T00:00:00Z", "2026-11-07T23:00:00Z")
    answered(two, "2026-11-10T00:00:00Z", "2026-11-12T00:00:00Z")
    assert compared(one, two)["waves"]
    answered(two, "2026-11-07T22:00:00Z", "2026-11-12T00:00:00Z")
    with pytest.raises(UserError):
        compared(one, two)
    answered(two, "2026-11-10T00:00:00Z", "2026-11-18T00:00:00Z")
    with pytest.raises(UserError):
        compared(one, two)


@pytest.mark.parametrize("difference", ["engine given up", "engine", "group", "address"])
def test_run_waves_of_other_requests_are_an_error(tmp_path, difference):
    earlier = wave(tmp_path, EARLIER, {"kids": ["sad"]})
    group = "teens" if difference == "group" else "kids"
    engine = "yahoo" if difference == "engine" else "google"
    later = wave(tmp_path, DAY, {group: ["sad"]}, engine)
    facts = json.loads((later / MANIFEST).read_bytes())
    if difference == "engine given up":
        facts["request"]["absent"] = {"google/en": "given up"}
    if difference == "address":
        facts["request"]["locales"]["en"]["gl"] = "gb"
    (later / MANIFEST).write_text(json.dumps(facts), "utf-8")
    with pytest.raises(UserError):
        compared(earlier, later)
