"""Commands: validate datasets, render the Data Docs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from plumbline.builders.core import cli

NAMES = sorted(p.stem for p in (Path(__file__).parent / "datasets").glob("[a-z]*.py"))
FEW = 5  # datasets for which a second process is not worth its start


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (:data:`plumbline.builders.core.cli.STATUSES`)."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.validation", description=__doc__)
    parser.add_argument(
        "command",
        nargs="+",
        choices=[*NAMES, "docs"],
        metavar="NAME",
        help="datasets to validate, in one process (a stage of dvc.yaml), or docs: render the Data "
        f"Docs of all of them under data/docs. Datasets: {', '.join(NAMES)}",
    )
    cli.options(parser)
    given = parser.parse_args(arguments)
    return cli.run(given, "validation", lambda: _run(given.command))


def _run(names: list[str]) -> None:
    from plumbline.builders.core.errors import UserError
    from plumbline.builders.core.progress import during
    from plumbline.validation import run

    if "docs" in names:
        with during("validation docs"):
            print(run.render(NAMES))
        return
    cores = len(os.sched_getaffinity(0))
    if cores > 1 and len(names) > FEW:  # shares of the datasets, in a process each
        start = [sys.executable, "-m", "plumbline.validation"]
        running = [subprocess.Popen([*start, *names[i::cores]]) for i in range(cores)]  # noqa: S603
        statuses = [process.wait() for process in running]  # of all, though one has failed
        if any(statuses):
            raise UserError("not all datasets are as they should be: see above")
        return
    failed = []
    for name in names:  # one that fails must not hide what the others say
        with during(f"validating {name}"):
            try:
                report = run.validate(name)
            except UserError as problem:
                failed.append(str(problem))
                continue
        number = sum(len(t["expectations"]) for t in report["tables"].values())
        print(f"{name}: {number} expectations met, {report['warnings']} warning(s)")
    if failed:
        raise UserError("\n".join(failed))


if __name__ == "__main__":
    sys.exit(main())
