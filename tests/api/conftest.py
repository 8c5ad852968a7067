"""Fixtures: a user's model, which is a control model without its manifest, and a clean home."""

import os
import shutil
import subprocess
import sys

import pytest
from imports import TOP

WORLDS = TOP / "data/samples/worlds"


def copied(world, into):
    """Copy a control model as a user would have saved it."""
    shutil.copytree(WORLDS / world, into)
    (into / "manifest.json").unlink()
    return into


def command(*words, **environment):
    """Run the command ``plumbline``, and return the finished process."""
    return subprocess.run(
        [sys.executable, "-m", "plumbline", *words],
        env=os.environ | {"PYTHONPATH": str(TOP)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def imported(code, *modules):
    """Run code in its own process; return which modules it imported, and its output lines."""
    code = f"import sys\n{code}\nprint(*sorted({{*{modules}}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    return last.split(), lines


@pytest.fixture(scope="session")
def own_home(tmp_path_factory):
    """Return a folder for datasets and results, in place of the user's cache."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def elsewhere(own_home, tmp_path, monkeypatch):
    """Work in an empty folder, as a user would."""
    monkeypatch.setenv("PLUMBLINE_HOME", str(own_home))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mine(tmp_path):
    """Return a user's masked model with a known bias."""
    return copied("world-planted", tmp_path / "my.bert")
