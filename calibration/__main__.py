"""Simulate the tests of analyses: their size, power and coverage, into a table."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from calibration import headlines
from calibration.calibrate import FOLDER, calibrate, older, simulated, those
from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError


def parser() -> argparse.ArgumentParser:
    """Return the command's arguments."""
    made = argparse.ArgumentParser(prog="python -m calibration", description=__doc__)
    made.set_defaults(command="calibrate")
    made.add_argument("analysis", nargs="*", help="default: all, and headlines")
    made.add_argument(
        "--replicates", type=int, default=0, help="tables of each truth (default: of the params)"
    )
    made.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="SHAPE_OR_TRUTH",
        help="of one analysis: simulate these; rows of all others stay as the table has them",
    )
    made.add_argument(
        *("--out", "-o"),
        type=Path,
        default=FOLDER,
        help="folder of the tables (default: %(default)s)",
    )
    made.add_argument(
        "--check",
        action="store_true",
        help="only list the tables that are not of the code and params as they are",
    )
    made.add_argument("--runner", choices=["local", "ray"], default="local", help="where it runs")
    made.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    cli.options(made)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status (``docs/failures.md``)."""
    given = parser().parse_args(arguments)
    return cli.run(given, lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    names = [name for name in given.analysis or those() if name != headlines.NAME]
    if given.replicates and given.replicates < 2:
        raise UserError(f"--replicates {given.replicates}: two at least, or 0 for the params")
    for name in names:
        simulated(name)  # an unknown name is reported before anything is simulated
    if given.only and (given.check or len(names) != 1):
        raise UserError(f"--only {given.only[0]!r}: with one analysis, and without --check")
    if given.check:
        found = {name: cells for name in names if (cells := older(name, given.out))}
        for name, cells in found.items():
            print(f"{name}: not of the code and params as they are: {'; '.join(cells)}")
        if found:
            raise UserError(f"calibrate {' '.join(found)}: to be simulated anew")
        return
    for name in names:
        print(calibrate(name, given.replicates, given.runner, given.workers, given.out, given.only))
    if headlines.NAME in given.analysis or not given.analysis:
        print(headlines.simulate(given.out, given.replicates or headlines.TABLES))


if __name__ == "__main__":
    sys.exit(main())
