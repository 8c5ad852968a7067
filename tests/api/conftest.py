"""A model of one's own: a planted world's files in a folder without a word about worlds."""

import shutil

import pytest
from imports import TOP

WORLDS = TOP / "data/samples/worlds"


def copied(world, into):
    """Copy a planted world's model as anybody would have saved it."""
    shutil.copytree(WORLDS / world, into)
    (into / "manifest.json").unlink()
    return into


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
