"""Comparing versions at commits of a project under DVC, in its cache, its remote, its workspace."""

import json
import shutil
import sys
from pathlib import Path

import pytest
from lib.made_versions import MADE, failed, word, write
from lib.traced import commit, dvc, run

from plumbline.builders.__main__ import main

PIPELINE = """
stages:
  build:
    foreach: [lexica]
    do:
      wdir: ..
      cmd: {python} -c "import shutil; shutil.copytree('made/${{item}}', 'data/datasets/${{item}}')"
      deps:
      - made/${{item}}
      outs:
      - data/datasets/${{item}}
"""


def build(*words) -> None:
    """Make another version of `lexica`, and commit it."""
    shutil.rmtree("made/lexica", ignore_errors=True)
    write("made/lexica", MADE["lexica"], {"en": list(words)})
    dvc("repro", "builders/dvc.yaml")
    commit("a version")


@pytest.fixture(scope="module")
def made(once):
    """A project whose stages build a dataset, with a commit before it and two versions of it."""

    def make(_):
        run("git", "init", "--quiet", "--initial-branch", "main")
        dvc("init", "--quiet")
        Path("builders").mkdir()
        Path(".gitignore").write_text("made\n", "utf-8")
        commit("empty")
        run("git", "tag", "empty")
        Path("builders/dvc.yaml").write_text(PIPELINE.format(python=sys.executable), "utf-8")
        build(word("calm", 0.5), word("odd"))
        run("git", "tag", "v1")
        build(word("calm", 0.25), word("shy"))

    return once("compared", make)


@pytest.fixture
def project(made, tmp_path, monkeypatch):
    """A copy of that project as the working folder."""
    there = tmp_path / "clone"
    shutil.copytree(made, there, symlinks=True)
    monkeypatch.chdir(there)
    return there


def rows(capsys, *words) -> dict:
    status = main(["diff", *words, "--json"])
    said = capsys.readouterr()
    assert status == 0, said.err
    return json.loads(said.out)["configs"]["en"]


def is_expected(found) -> bool:
    """Return whether the difference is that of the first version and the second."""
    changed = [(r["word"], r["before"], r["after"]) for r in found["changes"]["q_positive"]]
    added, removed = ([r["word"] for r in found[f"rows_{way}"]] for way in ("added", "removed"))
    return (changed, added, removed) == ([("calm", 0.5, 0.25)], ["shy"], ["odd"])


@pytest.fixture
def stored(project, tmp_path):
    """The same with a remote that has both versions; `dvc push --all-commits` pushes but one."""
    dvc("remote", "add", "--default", "store", str(tmp_path / "store"))
    for revision in ("v1", "main"):
        run("git", "checkout", "--quiet", revision)
        dvc("checkout")
        dvc("push")
    shutil.rmtree(".dvc/cache")
    return tmp_path / "store"


@pytest.mark.slow
def test_diff_of_commits_reads_the_cache(capsys, project):
    shutil.rmtree("data")
    assert is_expected(rows(capsys, "lexica", "v1", "HEAD"))
    assert "empty" in failed(capsys, "lexica", "empty", "HEAD")


@pytest.mark.slow
def test_diff_of_commits_reads_the_remote_and_changes_no_file(capsys, project, stored):
    shutil.rmtree("data")
    before = sorted(p for p in project.rglob("*") if ".dvc" not in p.parts)
    assert is_expected(rows(capsys, "lexica", "v1", "HEAD"))
    assert sorted(p for p in project.rglob("*") if ".dvc" not in p.parts) == before
    shutil.rmtree(stored)
    shutil.rmtree(".dvc/cache", ignore_errors=True)
    assert "store" in failed(capsys, "lexica", "v1", "HEAD")
