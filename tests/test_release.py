"""The notes of a release."""

from __future__ import annotations

import importlib.util

import pytest
from imports import TOP

PYPROJECT = '[project]\nname = "x"\nversion = "1.2.0"\n'
NEWEST = "## [1.2.0] - 2027-01-02\n\n### Added\n\n- One.\n"
CHANGES = f"# Changelog\n\n{NEWEST}\n## [1.1.0] - 2026-01-02\n\n- Two.\n"


@pytest.fixture
def notes():
    spec = importlib.util.spec_from_file_location("release", TOP / "requirements/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.notes


def project(folder, changes=CHANGES, citation="1.2.0"):
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "CHANGELOG.md").write_text(changes)
    (folder / "CITATION.cff").write_text(f"title: x\nversion: {citation}\n")
    return folder


def test_notes_are_the_section_of_the_version(notes, tmp_path):
    assert notes(project(tmp_path)) == "### Added\n\n- One.\n"


@pytest.mark.parametrize(
    "other", [{"changes": "# Changelog\n\n## Unreleased\n"}, {"citation": "1.1.0"}]
)
def test_notes_of_another_version_are_refused(notes, tmp_path, other):
    with pytest.raises(SystemExit):
        notes(project(tmp_path, **other))


def test_notes_of_this_version_exist(notes):
    assert "### Added" in notes(TOP)
