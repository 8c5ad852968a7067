"""All params as one tree, and as one file: for projects that a test has of its own.

The controls stand among the assignments there, so that a test has one list of models to change.
"""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plumbline.builders.core.params import read

TOP = Path(__file__).parents[1]


@cache
def _read() -> dict[str, Any]:
    found = read(TOP / "params.yaml")
    worlds = found.pop("controls")  # here models like any other
    for name, models in found["assignments"].items():
        models.extend(worlds.get(name, []))
    found["controls"] = {"sets": []}
    found["publish"]["contact"] = "tests@example.org"  # without one nothing is published
    return found


@cache
def _pickled() -> bytes:
    return pickle.dumps(_read())


@cache
def _written() -> str:
    form = {"allow_unicode": True, "sort_keys": False, "width": 10_000}
    return yaml.dump(_read(), Dumper=yaml.CSafeDumper, **form)


def tree() -> dict[str, Any]:
    """Return the project's params, to be changed at will."""
    return pickle.loads(_pickled())  # a tenth of the time of a deep copy


def write(folder: Path) -> Path:
    """Write the project's params into one file of a folder."""
    path = folder / "params.yaml"
    path.write_text(_written(), encoding="utf-8")
    return path
