"""Tracing rows back: on a small project that DVC made, on a model, and on our own locks."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml
from lib import traced
from lib.traced import DATASET, OUTPUTS, SNAPSHOT, TABLE

from plumbline.builders.__main__ import main
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import fingerprint
from plumbline.builders.core.snapshot import digest
from plumbline.builders.versions.trace import trace

TOP = Path(__file__).parent.parent.parent
FILE = f"{TABLE}/en.parquet"
MANIFEST = f"{SNAPSHOT}/manifest.json"


@pytest.fixture(scope="module")
def made(once):
    """Return a project of a snapshot, dataset, outputs and table, under DVC."""

    def make(_):
        traced.start()
        traced.repro()

    return once("traced", make)


@pytest.fixture
def _project(made, tmp_path, monkeypatch):
    """A copy of that project, as the working folder."""
    shutil.copytree(made, tmp_path / "project", symlinks=True)
    monkeypatch.chdir(tmp_path / "project")


def nodes(found) -> dict:
    return {node.path: node for node in found.nodes}


@pytest.mark.slow
@pytest.mark.usefixtures("_project")
def test_trace_chain_from_a_row_to_its_snapshot():
    found = trace(f"{FILE}#1")
    assert found.row == {
        "number": 1,
        "word": "b",
        "len": 2,
        "value": 2.0,
        "kind": "verb",
        "language": "en",
        "model": "model",
    }
    chain = nodes(found)
    manifest = digest(Path(MANIFEST))
    assert {path: node.inputs for path, node in chain.items()} == {
        TABLE: {OUTPUTS: fingerprint(Path(OUTPUTS))},
        OUTPUTS: {DATASET: fingerprint(Path(DATASET))},
        DATASET: {MANIFEST: manifest},
        MANIFEST: {},
    }
    assert {node.state for node in found.nodes} == {"unchanged"}
    table, snapshot = chain[TABLE].facts, chain[MANIFEST].facts
    assert (table["version"], table["command"]) == ("1.2.0", "make it")
    assert table["params"] == {"analysis.counts": {"version": "0.3.0", "factor": 1}}
    md5 = hashlib.md5(Path("builders/make.py").read_bytes()).hexdigest()
    assert table["code"] == {"builders/make.py": md5}
    assert snapshot["files"].keys() == {"words.csv"}
    stated = ("source", "address", "retrieved", "licence", "citation", "request")
    assert [snapshot[key] for key in stated] == [traced.MANIFEST[key] for key in stated]


@pytest.mark.slow
@pytest.mark.usefixtures("_project")
def test_trace_inputs_that_changed_or_are_missing():
    shutil.rmtree(OUTPUTS)
    chain = nodes(trace(FILE))
    assert (chain[TABLE].state, chain[OUTPUTS].state) == ("unchanged", "missing")
    assert chain[OUTPUTS].sha256 in trace(FILE).nodes[0].inputs.values()


@pytest.mark.slow
@pytest.mark.usefixtures("_project")
def test_trace_text_and_json(capsys):
    assert main(["trace", f"{FILE}#word=b", "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["row"]["number"] == 1
    assert [node["path"] for node in tree["nodes"]] == [TABLE, OUTPUTS, DATASET, MANIFEST]
    assert tree["nodes"][3]["facts"]["request"] == {"query": "SELECT ?word"}
    assert main(["trace", f"{FILE}#word=b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"            {MANIFEST} [{digest(Path(MANIFEST))[:16]}]" in lines
    for fact in ("retrieved: 2026-01-02", "request: query: SELECT ?word", "licence: CC0-1.0"):
        assert f"              {fact}" in lines


@pytest.mark.slow
@pytest.mark.usefixtures("_project")
@pytest.mark.parametrize("named", ["nowhere.parquet", f"{FILE}#-1", f"{FILE}#colour=red"])
def test_trace_bad_input_is_one_sentence(capsys, named):
    assert main(["trace", named]) == 1
    done = capsys.readouterr()
    assert (done.out, done.err.count("\n")) == ("", 1)
    assert named.partition("#")[0] in done.err


def test_trace_a_world_to_its_datasets_and_a_snapshot_that_is_not_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    world, pointer = Path("data/samples/worlds/one"), Path("data/raw/toy/2026-01-02.dvc")
    facts = {"id": "one", "revision": "r", "world": "toys", "parameters": {"seed": 3}}
    for path, body in (
        (world / "manifest.json", json.dumps(facts | {"datasets": {"toy": "ab"}})),
        (pointer, yaml.safe_dump({"meta": {"source": "toy", "retrieved": "2026-01-02"}})),
        ("dvc.lock", lock("data/datasets/toy", "data/raw/toy/2026-01-02")),
    ):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(body, "utf-8")
    chain = nodes(trace(str(world)))
    assert chain[str(world)].facts == facts
    toy = chain["data/datasets/toy"]
    assert (toy.sha256, toy.state) == ("ab", "missing")
    snapshot = chain["data/raw/toy/2026-01-02"]
    assert snapshot.state == "missing"
    assert snapshot.facts["retrieved"] == "2026-01-02"
    with pytest.raises(UserError):
        trace(f"{world}#0")


def lock(out: str, dep: str) -> str:
    parts = {"deps": [{"path": dep, "md5": "0"}], "outs": [{"path": out, "md5": "1"}]}
    return yaml.safe_dump({"schema": "2.0", "stages": {"build": {"cmd": "make"} | parts}})


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
