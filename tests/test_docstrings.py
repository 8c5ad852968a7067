"""Examples of docstrings are right, wherever they stand."""

import doctest
import importlib
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
FOLDERS = ("builders", "probes", "validation", "plumbline")
FILES = sorted(
    path.relative_to(TOP)
    for folder in FOLDERS
    for path in (TOP / folder).rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_docstring_examples(file):
    name = ".".join(file.with_suffix("").parts)
    module = importlib.import_module(name if file.parts[0] == "plumbline" else f"plumbline.{name}")
    found = doctest.testmod(module)
    assert found.failed == 0
    assert found.attempted
