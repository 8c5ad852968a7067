"""Tracing rows back: on a small project, on a model, and on our own tables."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest
import yaml

from plumbline.builders.__main__ import main
from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import fingerprint
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import digest, write_manifest
from plumbline.builders.versions.trace import trace

TOP = Path(__file__).parent.parent.parent
SNAPSHOT = "data/samples/toy/2026-01-02"
DATASET = "data/datasets/toy"
OUTPUTS = "data/outputs/probe/model"
TABLE = "data/tables/counts/model"
FILE = f"{TABLE}/en.parquet"
MANIFEST = f"{SNAPSHOT}/manifest.json"
FACTS = {
    "source": "toy",
    "address": "https://example.org/words.csv",
    "retrieved": "2026-01-02",
    "licence": "CC0-1.0",
    "citation": "the tests",
    "request": {"query": "SELECT ?word"},
}
SCHEMA = Schema.keyed(
    [Column("word", "string", "x")],
    Column("kind", "label", "x", labels=("noun", "verb")),
    Column("value", "float64", "x"),
)


def write(folder: str, made_of: str, sha256: str, path="{config}.parquet") -> str:
    """Write a folder of rows that states what it was made of, and return its fingerprint."""
    frame = pl.DataFrame({"word": ["a", "b"], "kind": [0, 1], "value": [1.0, 2.0]})
    file = Path(folder) / path.format(config="en").replace("*", "0")
    file.parent.mkdir(parents=True)
    parquet.write_table(frame, parquet.carrying(SCHEMA.arrow(), {made_of: sha256}), file)
    origin = front_matter.Origin([], "make it", "1.2.0")
    front_matter.write(Path(folder), {"en": SCHEMA}, origin, path)
    return fingerprint(Path(folder))


def write_lock(out: str, dep: str, **more) -> None:
    deps = [{"path": dep, "md5": "0"}, {"path": "builders/make.py", "md5": "2"}]
    stage = {"cmd": "make", "deps": deps, "outs": [{"path": out, "md5": "1"}]} | more
    tree = {"schema": "2.0", "stages": {"build": stage}}
    Path("dvc.lock").write_text(yaml.safe_dump(tree), "utf-8")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def _project():
    """A project of a snapshot, dataset, outputs and table."""
    Path(SNAPSHOT).mkdir(parents=True)
    Path(SNAPSHOT, "words.csv").write_text("a\nb\n", "utf-8")
    write_manifest(Path(SNAPSHOT), FACTS | {"counts": {"words": 2}})
    dataset = write(DATASET, MANIFEST, digest(Path(MANIFEST)))
    outputs = write(OUTPUTS, DATASET, dataset, "{config}/*.parquet")
    write(TABLE, OUTPUTS, outputs)
    write_lock(TABLE, OUTPUTS, params={"params.yaml": {"analysis.counts": {"factor": 1}}})


def nodes(found) -> dict:
    return {node.path: node for node in found.nodes}


@pytest.mark.usefixtures("_project")
def test_trace_chain_from_a_row_to_its_snapshot():
    traced = trace(f"{FILE}#1")
    assert traced.row == {"number": 1, "word": "b", "kind": "verb", "value": 2.0}
    chain = nodes(traced)
    assert {path: node.inputs for path, node in chain.items()} == {
        TABLE: {OUTPUTS: fingerprint(Path(OUTPUTS))},
        OUTPUTS: {DATASET: fingerprint(Path(DATASET))},
        DATASET: {MANIFEST: digest(Path(MANIFEST))},
        MANIFEST: {},
    }
    assert {node.state for node in traced.nodes} == {"unchanged"}
    table, snapshot = chain[TABLE].facts, chain[MANIFEST].facts
    assert (table["version"], table["command"]) == ("1.2.0", "make it")
    assert table["params"] == {"analysis.counts": {"factor": 1}}
    assert table["code"] == {"builders/make.py": "2"}
    assert snapshot["files"].keys() == {"words.csv"}
    assert {key: snapshot[key] for key in FACTS} == FACTS


@pytest.mark.usefixtures("_project")
def test_trace_inputs_that_changed_or_are_missing():
    shutil.copyfile(FILE, f"{DATASET}/fr.parquet")
    chain = nodes(trace(FILE))
    assert [chain[p].state for p in (TABLE, OUTPUTS, DATASET)] == [*["unchanged"] * 2, "changed"]
    shutil.rmtree(OUTPUTS)
    assert nodes(trace(FILE))[OUTPUTS].state == "missing"


@pytest.mark.usefixtures("_project")
def test_trace_text_and_json(capsys):
    assert main(["trace", f"{FILE}#word=b", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["row"]["number"] == 1
    assert [node["path"] for node in tree["nodes"]] == [TABLE, OUTPUTS, DATASET, MANIFEST]
    assert main(["trace", f"{FILE}#word=b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"            {MANIFEST} [{digest(Path(MANIFEST))[:16]}]" in lines
    for fact in ("retrieved: 2026-01-02", "request: query: SELECT ?word", "licence: CC0-1.0"):
        assert f"              {fact}" in lines


@pytest.mark.usefixtures("_project")
@pytest.mark.parametrize("named", ["nowhere.parquet", f"{FILE}#-1", f"{FILE}#colour=red"])
def test_trace_bad_input_is_one_sentence(capsys, named):
    assert main(["trace", named]) == 1
    done = capsys.readouterr()
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert named.partition("#")[0] in done.err


def test_trace_world_to_its_datasets_and_a_missing_snapshot():
    world, pointer = Path("data/samples/worlds/one"), Path("data/raw/toy/2026-01-02.dvc")
    facts = {"id": "one", "revision": "r", "world": "toys", "parameters": {"seed": 3}}
    for path, body in (
        (world / "manifest.json", json.dumps(facts | {"datasets": {"toy": "ab"}})),
        (pointer, yaml.safe_dump({"meta": {"source": "toy", "retrieved": "2026-01-02"}})),
    ):
        path.parent.mkdir(parents=True)
        path.write_text(body, "utf-8")
    write_lock(DATASET, "data/raw/toy/2026-01-02")
    chain = nodes(trace(str(world)))
    assert chain[str(world)].facts == facts
    assert (chain[DATASET].sha256, chain[DATASET].state) == ("ab", "missing")
    snapshot = chain["data/raw/toy/2026-01-02"]
    assert (snapshot.state, snapshot.facts["retrieved"]) == ("missing", "2026-01-02")
    with pytest.raises(UserError):
        trace(f"{world}#0")


@pytest.mark.slow
@pytest.mark.skipif(
    not (TOP / "data/tables/pmi/world-planted").is_dir(), reason="the pipeline was not run here"
)
def test_every_table_here_ends_at_snapshots_and_models(monkeypatch):
    monkeypatch.chdir(TOP)
    folders = [path.parent for path in sorted(Path("data/tables").rglob("build.json"))]
    for folder in folders:
        if folder.is_relative_to("data/tables/calibration"):  # a command makes it of code
            continue
        for node in trace(str(folder)).nodes:
            if not node.inputs:
                assert {"retrieved", "address"} <= {*node.facts} or "revision" in node.facts, node
