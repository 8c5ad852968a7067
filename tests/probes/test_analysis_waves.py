from __future__ import annotations

import gzip
import json
import re
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


def test_counts_ranks_jaccard_and_null_by_hand(tmp_path):
    earlier = {"kids": ["sad", "loud", "shy"], "teens": ["odd"], "sons": [], "elders": ["wise"]}
    later = {"kids": ["loud", "odd", "sad"], "teens": ["odd", "shy"], "sons": [], "boomers": ["x"]}
    found = compared(wave(tmp_path, EARLIER, earlier), wave(tmp_path, DAY, later))
    rows = {row["group"]: row for row in found["waves"] if row["category"] == "age"}
    assert set(rows) == {"kids", "teens", "sons", "*"}  # in both waves
    kids = rows["kids"]
    assert (kids["n_appeared"], kids["n_vanished"], kids["n_retained"]) == (1, 1, 2)
    assert kids["jaccard"] == 2 / 4
    assert kids["rank_change"] == (2 + 1) / 2  # sad 1 to 3, loud 2 to 1
    assert kids["jaccard_low"] is None  # one query
    # sad, loud, shy against odd, shy of teens and nothing of sons
    assert kids["jaccard_null"] == round(1 / (4 + 3), 6)
    assert rows["sons"]["jaccard"] is None
    every = rows["*"]
    assert (every["n_queries"], every["clusters"], every["cluster"]) == (3, 3, "group")
    assert (every["n_appeared"], every["n_vanished"], every["n_retained"]) == (2, 1, 3)
    assert every["jaccard"] == 3 / 6
    # teens: odd against loud, odd, sad of kids and nothing of sons; sons: nothing against both
    assert every["jaccard_null"] == round((1 + 1 + 0) / (4 + 3 + 3 + 1 + 3 + 2), 6)
    changes = {
        (row["group"], row["attribute"]): waves.CHANGES[row["change"]]
        for row in found["suggestions"]
    }
    assert changes == {
        ("kids", "sad"): "retained",
        ("kids", "loud"): "retained",
        ("kids", "shy"): "vanished",
        ("kids", "odd"): "appeared",
        ("teens", "odd"): "retained",
        ("teens", "shy"): "appeared",
    }


def test_key_terms_and_flags_make_no_difference(tmp_path):
    earlier = wave(tmp_path, EARLIER, {"kids": ["good at chess", "ugh"]})
    later = wave(tmp_path, DAY, {"kids": ["good at chess", "loud these days"]})
    found = compared(earlier, later)["suggestions"]
    assert {row["attribute"]: (row["rank_earlier"], row["rank_later"]) for row in found} == {
        "good at chess": (1, 1),
        "ugh": (2, None),
        "loud these days": (None, 2),
    }
    assert {row["query"] for row in found} == {"why are kids so"}


def test_a_wave_and_its_copy_do_not_differ(tmp_path):
    said = {"kids": ["sad", "loud"], "teens": ["odd"]}
    found = compared(wave(tmp_path, EARLIER, said), wave(tmp_path, DAY, said))
    assert {row["jaccard"] for row in found["waves"]} == {1}
    assert {row["rank_change"] for row in found["waves"]} == {0}
    assert {row["change"] for row in found["suggestions"]} == {waves.CHANGES.index("retained")}


def test_the_interval_of_two_clusters_is_that_of_all_resamples():
    # draws give 0 in a quarter, 1/2 in half, 1 in a quarter
    ends = waves.jaccard_interval(np.array([0, 1]), np.array([1, 1]), PARAMS, "x")
    assert ends == (0, 1)
    wide = PARAMS.model_copy(update={"confidence": 0.4})
    assert waves.jaccard_interval(np.array([0, 1]), np.array([1, 1]), wide, "x") == (0.5, 0.5)
    assert waves.jaccard_interval(np.array([1]), np.array([1]), PARAMS, "x") is None
    assert waves.jaccard_interval(np.array([0, 0]), np.array([0, 0]), PARAMS, "x") is None


def test_intervals_cover_the_truth_at_about_their_rate():
    rng = np.random.default_rng(31)
    params = PARAMS.model_copy(update={"n_bootstrap": 400})
    hits = 0
    for draw in range(300):
        share = rng.beta(6, 4, 40)  # groups differ; the mean is 0.6
        either = np.full(40, 12)
        low, high = waves.jaccard_interval(rng.binomial(either, share), either, params, str(draw))
        hits += low <= 0.6 <= high
    assert 0.88 <= hits / 300 <= 0.99


def test_the_default_waves_give_the_same_tables_every_time(project, capsys):
    assert main(["waves"]) == 0
    said = capsys.readouterr().out
    assert len(said.splitlines()) == 3 * (1 + 9)  # engines by all and nine categories
    first = {p.name: p.read_bytes() for p in waves.FOLDER.iterdir()}
    assert set(first) == {"waves.parquet", "suggestions.parquet", "README.md", "build.json"}
    folders = [f"data/samples/autocomplete/{day}" for day in (EARLIER, DAY)]
    assert main(["waves", *folders, "--into", "again"]) == 0
    assert {p.name: p.read_bytes() for p in Path("again").iterdir()} == first


def test_the_sample_waves_drift_and_groups_are_their_own():
    rows = pl.DataFrame(compared(*WAVES)["waves"], infer_schema_length=None)
    engines = rows.filter(category="*")
    assert engines["engine"].to_list() == ["duckduckgo", "google", "yahoo"]
    assert (engines["jaccard_low"] > engines["jaccard_null"]).all()
    assert (engines["jaccard"] < 1).all()
    assert (engines["rank_change"] > 0).all()
    assert (rows["n_retained"] + rows["n_appeared"] == rows["n_later"]).all()
    assert (rows["n_retained"] + rows["n_vanished"] == rows["n_earlier"]).all()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere", str(WAVES[1])], "nowhere: no such snapshot"),
        ([str(WAVES[0])], "name two waves, the earlier first, or none"),
        ([str(WAVES[1]), str(WAVES[0])], "name the earlier wave first"),
        ([str(SAMPLES / "ud" / DAY), str(WAVES[1])], "not a wave of autocomplete"),
    ],
)
def test_what_cannot_be_compared_is_told_in_one_sentence(project, capsys, words, told):
    assert main(["waves", *words]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
    assert not waves.FOLDER.exists()


def test_waves_that_overlap_or_took_too_long_are_no_two_times(tmp_path):
    said = {"kids": ["sad"]}
    days = ("2026-11-01", "2026-11-10")
    one, two = (wave(tmp_path, day, said) for day in days)

    def answered(folder, first, last):
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        manifest["request"]["answered"] = {"first": first, "last": last}
        (folder / MANIFEST).write_text(json.dumps(manifest), "utf-8")

    answered(one, "2026-11-01T00:00:00Z", "2026-11-07T23:00:00Z")
    answered(two, "2026-11-10T00:00:00Z", "2026-11-12T00:00:00Z")
    assert compared(one, two)["waves"]
    answered(two, "2026-11-07T22:00:00Z", "2026-11-12T00:00:00Z")
    with pytest.raises(UserError, match="still being answered on 2026-11-07 23:00"):
        compared(one, two)
    answered(two, "2026-11-10T00:00:00Z", "2026-11-18T00:00:00Z")
    with pytest.raises(UserError, match=r"from 2026-11-10 to 2026-11-18.*longest_days"):
        compared(one, two)


@pytest.mark.parametrize("lacking", ["engine given up", "engine", "group"])
def test_waves_without_a_common_query_are_told(tmp_path, lacking):
    earlier = wave(tmp_path, EARLIER, {"kids": ["sad"]})
    group = "teens" if lacking == "group" else "kids"
    engine = "yahoo" if lacking == "engine" else "google"
    later = wave(tmp_path, DAY, {group: ["sad"]}, engine)
    if lacking == "engine given up":
        manifest = json.loads((later / MANIFEST).read_text("utf-8"))
        manifest["request"]["absent"] = {"google/en": "given up"}
        (later / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(UserError, match="no engine got the same query in both"):
        compared(earlier, later)


@pytest.mark.parametrize(
    ("part", "name", "field", "value"),
    [("locales", "en", "gl", "gb"), ("engines", "google", "format", "firefox")],
)
def test_waves_that_were_asked_in_different_ways_are_told(tmp_path, part, name, field, value):
    earlier, later = (wave(tmp_path, day, {"kids": ["sad"]}) for day in (EARLIER, DAY))
    facts = json.loads((later / MANIFEST).read_bytes())
    facts["request"]["groups"] = {"en": "elsewhere.csv"}  # of no account
    facts["request"]["locales"]["fr"] = {"language": "fr"}
    (later / MANIFEST).write_text(json.dumps(facts), "utf-8")
    assert compared(earlier, later)["waves"]
    facts["request"][part][name][field] = value
    (later / MANIFEST).write_text(json.dumps(facts), "utf-8")
    with pytest.raises(UserError, match=rf"{part}\.{name}\.{field} .*{re.escape(repr(value))}"):
        compared(earlier, later)
