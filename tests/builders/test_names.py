from __future__ import annotations

import json
from pathlib import Path

import building
import polars as pl
import pytest
from samples import DAY, POLITE, REAL_NAMES, real_names_params

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.names import build as names
from plumbline.builders.datasets.names import fetch as client
from plumbline.builders.readers import gazetteer
from plumbline.builders.readers.name_lists import BEARERS, KINDS, List

TERMS = {"licence": "CC0-1.0", "citation": "the project"}
HEAD = "country,kind,rank,name\n"


def snapshot(folder: Path, *lists: tuple[dict, str]) -> Snapshot:
    declared = []
    for entry, text in lists:
        path = folder / f"{entry['name']}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        declared.append(List(address=str(path), **TERMS, **entry))
    client.fetch(client.Params(lists=declared), POLITE, folder / DAY)
    return Snapshot.open(folder / DAY)


def made(found: Snapshot, **changes):
    params = names.Params(**{"version": "0.1.0", "snapshot": "x", "usable_min": 1} | changes)
    return building.parted(names.build(found, params))


def test_build_default_names(sample):
    frames = {p.stem: pl.read_parquet(p) for p in sample("names").glob("??.parquet")}
    assert len(frames) == 13
    assert sum(map(len, frames.values())) == 472
    frame = frames["cn"]
    flagged = dict(frame.filter(pl.col("flags").list.len() > 0).select("name", "flags").iter_rows())
    assert flagged["Go"] == ["word"]
    czech = frames["cz"].filter(kind=KINDS.index("last"))
    bearers = dict(czech.select("name", "bearer").iter_rows())
    assert BEARERS[bearers["Nováková"]] == "female"
    assert BEARERS[bearers["Novák"]] == "male"


def test_build_merges_lists_by_best_rank(tmp_path):
    columns = {k: k for k in ("country", "kind", "rank", "name", "count")}
    one = "country,kind,rank,name,count\nfr,male,1,Jean,\nfr,male,2,Luc,\nfr,male,3,Ali,\n"
    two = "country,kind,rank,name,count\nFR,male,1,Ali,70\nFrance,male,2,Jean,60\n"
    found = snapshot(
        tmp_path,
        ({"name": "one", "columns": columns}, one),
        ({"name": "two", "columns": columns}, two),
    )
    rows, rejects = made(found, countries=["fr"])
    assert not rejects
    kept = [(r.values["name"], r.values["rank"], r.values["count"]) for r in rows]
    # Jean and Ali are first in a list each, in two lists each; 70 people are more than 60
    assert kept == [("Ali", 1, 70), ("Jean", 2, 60), ("Luc", 3, None)]
    assert rows[0].values["sources"] == ["one", "two"]


def test_build_nested_and_flat_lists(tmp_path):
    nested = {"Czech_Republic": {"male": ["Novák", "Král"], "female": ["Nováková", "Král"]}}
    nested["Atlantis"] = {"male": ["Kida"], "female": []}
    flat = {"men": ["Ann-Marie’s", "Bob"], "dogs": ["Rex"]}
    found = snapshot(
        tmp_path,
        ({"name": "eu", "format": "nested", "kind": "last"}, json.dumps(nested)),
        (
            {"name": "all", "format": "flat", "country": "zz", "kinds": {"men": "male"}},
            json.dumps(flat),
        ),
    )
    rows, rejects = made(found)
    kept = {(r.config, r.values["name"]): BEARERS[r.values["bearer"]] for r in rows}
    # the Czech list has no first names; so the country is told to have too few
    assert kept == {("zz", "Ann-Marie's"): "any", ("zz", "Bob"): "any"}
    reasons = {(r.key, r.reason): r.number for r in rejects}
    assert reasons["eu/Atlantis/male/1", "of no country that is known"] == 1
    assert reasons["cz", "of a country with too few names of a kind"] == 3
    rows, _ = made(found, countries=["cz"])
    kept = {r.values["name"]: BEARERS[r.values["bearer"]] for r in rows}
    assert kept == {"Novák": "male", "Nováková": "female", "Král": "any"}


def test_build_flags_unusable_names(tmp_path):
    listed = ["Gó", "Chad", "Иван", "J.", "X Æ A-12", "Jean-Luc", "O'Neil", "Nguyễn", "Al"]
    text = HEAD + "".join(f"vn,male,{i},{n}\n" for i, n in enumerate(listed, start=1))
    found = snapshot(tmp_path, ({"name": "one"}, text))
    rows, _ = made(found, countries=["vn"], words=["GO"])
    flags = {r.values["name"]: r.values["flags"] for r in rows}
    assert {n for n, f in flags.items() if not f} == {"Jean-Luc", "O'Neil", "Nguyễn", "Al"}
    assert flags["Gó"] == ["word"]
    assert flags["Chad"] == ["place"]
    assert flags["J."] == ["short"]
    assert flags["X Æ A-12"] == ["letters"]
    assert flags["Иван"] == ["script"]


def test_build_native_spellings_are_found_and_never_inserted(tmp_path):
    columns = {key: key for key in ("country", "kind", "rank", "name", "native")}
    text = "country,kind,rank,name,native\nru,male,1,Ivan,Иван\nfr,male,1,Jose,José\n"
    found = snapshot(tmp_path, ({"name": "one", "columns": columns}, text))
    rows, _ = made(found, countries=["fr", "ru", "zz"])
    known = gazetteer.load(building.written(tmp_path / "names", "names", rows))
    assert known.men == {"Ivan", "Иван", "Jose"}
    assert known.by_country["ru"]["male"] == ("Ivan",)


@pytest.mark.shared
@pytest.mark.skipif(not REAL_NAMES.is_dir(), reason="no shared data beside the checkout")
@pytest.mark.slow
def test_build_real_lists_of_names(tmp_path):
    client.fetch(real_names_params(), POLITE, tmp_path / DAY)
    found = Snapshot.open(tmp_path / DAY)
    assert found.manifest["counts"]["forenames"] == 2480
    assert found.manifest["counts"]["surnames"] == 2576
    assert found.manifest["counts"]["checklist"] == 5393 + 8052 + 9926
    rows, rejects = made(found, usable_min=5)
    countries = {row.config for row in rows} - {"zz"}
    assert {"us", "fr", "jp", "no", "cz", "tr", "in", "lt"} < countries
    assert len(countries) > 60
    places = {r.key.split("/")[1] for r in rejects if r.reason == "of no country that is known"}
    named = {"Scotland", "Northern Ireland", "Basque Country, Spain", "Catalonia, Spain"}
    assert places == named
    czech = {r.values["name"]: r.values for r in rows if r.config == "cz"}
    assert BEARERS[czech["Novák"]["bearer"]] in ("male", "any")
    # nothing is lost: every entry is a row, was merged into one, or is among the rejects
    inputs = sum(found.manifest["counts"].values())
    assert inputs >= len(rows) + sum(r.number for r in rejects)
    usable = [r for r in rows if not r.values["flags"]]
    assert len(usable) > 0.95 * len(rows)
