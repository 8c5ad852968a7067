"""The commands that fetch and prune, in a project under git and DVC."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml
from lib.serving import server
from samples import FACTS, TOP, oxigraph

from plumbline.builders.core.snapshot import Snapshot

DAY = "2026-11-21"
POLITE = {"contact": "tests@example.org"}


def run(*command: str, cwd: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(TOP), "DVC_NO_ANALYTICS": "1"}
    environment.pop("PLUMBLINE_TRACEBACK", None)
    return subprocess.run(
        command, cwd=cwd, env=environment, check=check, capture_output=True, text=True
    )


def builders(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "plumbline.builders", *arguments, cwd=cwd, check=False)


@pytest.fixture
def project(tmp_path):
    """Make a project under git and DVC that holds nothing yet."""
    run("git", "init", "--quiet", cwd=tmp_path)
    run(sys.executable, "-m", "dvc", "init", "--quiet", cwd=tmp_path)
    return tmp_path


def write_sources(project: Path, **sources) -> None:
    tree = {"sources": {"politeness": POLITE} | sources}
    (project / "params.yaml").write_text(yaml.safe_dump(tree), "utf-8")


@pytest.mark.slow
def test_fetch_ends_with_a_snapshot_under_dvc_that_carries_its_provenance(project):
    with oxigraph(*FACTS) as endpoint:
        born = {"born_from": "1900-01-01", "born_to": "2000-12-31", "range_days": 40_000}
        write_sources(project, wikidata={"endpoint": endpoint, "languages": ["en", "fr"]} | born)
        done = builders("fetch", "wikidata", "--date", DAY, cwd=project)
        assert (done.returncode, done.stderr) == (0, "")
        into = project / "data" / "raw" / "wikidata" / DAY
        manifest, pointer = Snapshot.open(into).manifest, into.with_name(f"{DAY}.dvc")
        tree = yaml.safe_load(pointer.read_text("utf-8"))
        assert [out["path"] for out in tree["outs"]] == [DAY]
        keys = ("source", "address", "retrieved", "licence", "citation", "counts")
        assert tree["meta"] == {key: manifest[key] for key in keys}
        assert (manifest["address"], manifest["retrieved"]) == (endpoint, DAY)
        assert f"{DAY}/" not in run("git", "status", "--short", "-uall", cwd=project).stdout
        before = pointer.read_bytes()
        assert builders("fetch", "wikidata", "--date", DAY, cwd=project).returncode == 0
        assert pointer.read_bytes() == before


def test_fetch_twice_at_once_leaves_the_folder_to_the_first(project):
    reached, rest = threading.Event(), threading.Event()

    def act(handler):
        body = (TOP / f"data/samples/social_groups/{DAY}/en.csv").read_bytes()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:9])
        handler.wfile.flush()
        reached.set()
        rest.wait(20)
        handler.wfile.write(body[9:])

    words = ("fetch", "social_groups", "--date", DAY)
    into = project / "data" / "raw" / "social_groups" / DAY
    with server(act) as slow:
        groups = {"files": {"en": f"{slow.at}/en.csv"}, "licence": "CC0-1.0", "citation": "tests"}
        write_sources(project, social_groups=groups)
        command = [sys.executable, "-m", "plumbline.builders", *words]
        environment = os.environ | {"PYTHONPATH": str(TOP)}
        with subprocess.Popen(command, cwd=project, env=environment) as first:
            assert reached.wait(60)
            second = builders(*words, cwd=project)
            rest.set()
        assert (second.returncode, second.stdout, second.stderr.count("\n")) == (1, "", 1)
        assert second.stderr.startswith(f"error: {into.relative_to(project)}: ")
        assert (len(slow.asked), first.returncode) == (1, 0)
    assert Snapshot.open(into).manifest["files"]
    assert sorted(p.name for p in into.parent.iterdir()) == [".gitignore", DAY, f"{DAY}.dvc"]


GRAPH = """
stages:
  make:
    foreach: ${datasets}
    do:
      cmd: mkdir -p data/datasets/${key} && echo ${key} > data/datasets/${key}/rows.txt
      outs:
        - data/datasets/${key}
"""


@pytest.mark.slow
def test_prune_lists_and_removes_what_a_shrunk_foreach_left_behind(project):
    (project / "dvc.yaml").write_text(GRAPH, "utf-8")
    (project / "params.yaml").write_text("datasets:\n  words: {}\n  names: {}\n", "utf-8")
    datasets = project / "data" / "datasets"
    for name in ("words", "people", "names"):  # as the stages of three datasets left them
        (datasets / name).mkdir(parents=True)
        (datasets / name / "rows.txt").write_text(name)
    done = builders("prune", cwd=project)
    assert (done.returncode, done.stdout) == (0, "stale: data/datasets/people\n")
    assert (datasets / "people" / "rows.txt").exists()
    done = builders("prune", "--remove", cwd=project)
    assert (done.returncode, done.stdout) == (0, "removed data/datasets/people\n")
    assert sorted(path.name for path in datasets.iterdir()) == ["names", "words"]
