"""Checking the whole of params.yaml at once."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from builders.lib.params import Params, read
from builders.lib.params import check as check_sections
from builders.lib.problem import Problem
from probes.models.params import Model

OWN = {"suite", "run"}


def sections() -> dict[str, type[Params]]:
    """Return the model of every section of params.yaml, by dotted key, models left out."""
    from builders.lib.http import Politeness

    found: dict[str, type[Params]] = {"sources.politeness": Politeness}
    for prefix, folder, package in (
        ("sources", "builders/sources", "builders.sources"),
        ("datasets", "builders", "builders"),
        ("validation", "validation", "validation"),
        ("analysis", "probes/analysis", "probes.analysis"),
    ):
        top = Path(__file__).parent.parent / folder
        for path in sorted(top.glob("*.py")):
            if not path.stem.startswith("_") and path.stem not in OWN:
                module: Any = importlib.import_module(f"{package}.{path.stem}")
                found[f"{prefix}.{path.stem}"] = module.Params
    from probes import associations

    found["probes.associations"] = associations.Params
    return found


def check() -> None:
    """Validate every section, and that no key is there that nothing reads.

    Raises
    ------
    Problem
        One message with all problems.
    """
    tree = read()
    known = sections()
    for name in tree.get("models") or {}:
        known[f"models.{name}"] = Model
    problems: list[str] = []
    try:
        check_sections(known)
    except Problem as problem:
        problems += str(problem).splitlines()[1:]
    tops = {key.split(".")[0] for key in known}
    for top, value in tree.items():
        if top not in tops:
            problems.append(f"  {top}: unknown section; see docs/params.md for the ones that exist")
        elif isinstance(value, dict):
            own = {key.split(".", 1)[1] for key in known if key.startswith(f"{top}.")}
            for name in value:
                if name not in own:
                    problems.append(f"  {top}.{name}: unknown; there are {', '.join(sorted(own))}")
    if problems:
        raise Problem("\n".join([f"params.yaml: {len(problems)} problem(s) to mend:", *problems]))
