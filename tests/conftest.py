"""What all tests share: a project of one's own, built from the samples."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
TOP = Path(__file__).parent.parent


def copy_project(folder: Path) -> Path:
    """Copy what the commands read: params, pages, samples."""
    shutil.copy(TOP / "params.yaml", folder)
    shutil.copytree(TOP / "docs", folder / "docs")
    shutil.copytree(TOP / "data" / "samples", folder / "data" / "samples")
    return folder


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project with the samples, as the working folder."""
    monkeypatch.chdir(copy_project(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """A project in which all datasets are built and validated; not to be changed."""
    from builders import emotions, politicians, supersenses, words
    from builders.lib.dataset import build
    from validation.run import validate

    folder = copy_project(tmp_path_factory.mktemp("built"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        modules = (emotions, politicians, supersenses, words)
        for module in modules:
            name = module.__name__.removeprefix("builders.")
            build(name, module)
            validate(name)
    finally:
        os.chdir(before)
    return folder
