"""Validating several datasets, in a process for each core.

A module of its own, without Great Expectations, as processes that start import it by its name.
"""

from __future__ import annotations

import os

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.progress import during, each


def validate(names: list[str]) -> None:
    """Validate datasets and print a line for each.

    Raises UserError with all that failed: one that does must not hide what the others say.
    """
    processes = min(len(os.sched_getaffinity(0)), len(names))
    if processes > 1:
        found = dict(each(_problem, [(name,) for name in names], processes))
        problems = [found[place] for place in range(len(names))]
    else:
        problems = [_problem(name) for name in names]
    if failed := "\n".join(filter(None, problems)):
        raise UserError(failed)


def _problem(name: str) -> str:
    from plumbline.validation import run

    with during(f"validating {name}"):
        try:
            report = run.validate(name)
        except UserError as problem:
            return str(problem)
    number = sum(len(table["expectations"]) for table in report["tables"].values())
    print(f"{name}: {number} expectations met, {report['warnings']} warning(s)", flush=True)
    return ""
