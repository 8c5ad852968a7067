"""A model of one's own: a planted world's files in a folder without a word about worlds."""

import os
import shutil
import subprocess
import sys

import pytest
from imports import TOP

WORLDS = TOP / "data/samples/worlds"


def copied(world, into):
    """Copy a planted world's model as anybody would have saved it."""
    shutil.copytree(WORLDS / world, into)
    (into / "manifest.json").unlink()
    return into


def command(*words, **environment):
    """Run the command ``plumbline`` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "plumbline", *words],
        env=os.environ | {"PYTHONPATH": str(TOP)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def imported(code, *modules):
    """Run code in a process of its own; return which of some modules it imports, and its lines."""
    code = f"import sys\n{code}\nprint(*sorted({{*{modules}}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    return last.split(), lines


@pytest.fixture(scope="session")
def own_home(tmp_path_factory):
    """Datasets and results of these tests, and not the user's."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def elsewhere(own_home, tmp_path, monkeypatch):
    """Work in an empty folder, as a user does."""
    monkeypatch.setenv("PLUMBLINE_HOME", str(own_home))
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def mine(tmp_path):
    """A masked model of one's own, with a planted bias."""
    return copied("world-planted", tmp_path / "my.bert")
