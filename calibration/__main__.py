"""Simulate the tests of analyses and write tables of their size, familywise error and coverage."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from calibration import headlines
from calibration.calibrate import FOLDER, calibrate, simulated_analyses, simulation_of
from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError


def parser() -> argparse.ArgumentParser:
    """Return the command-line parser."""
    result = argparse.ArgumentParser(prog="python -m calibration", description=__doc__)
    result.set_defaults(command="calibrate")
    result.add_argument("analysis", nargs="*", help="default: all, and headlines")
    result.add_argument(
        "--replicates", type=int, default=0, help="tables of each truth (default: in the params)"
    )
    result.add_argument(
        *("--out", "-o"),
        type=Path,
        default=FOLDER,
        help="folder of the tables (default: %(default)s)",
    )
    result.add_argument("--workers", type=int, default=0, help="processes; 0: one a core")
    cli.options(result)
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status (``docs/failures.md``)."""
    options = parser().parse_args(arguments)
    return cli.run(options, lambda: _run(options))


def _run(options: argparse.Namespace) -> None:
    names = options.analysis or [*simulated_analyses(), headlines.NAME]
    if options.replicates and options.replicates < 2:
        raise UserError(f"--replicates {options.replicates}: must be at least 2, or 0 (params)")
    analyses = [name for name in names if name != headlines.NAME]
    for name in analyses:
        simulation_of(name)  # an unknown name is reported before any simulation starts
    for name in analyses:
        print(calibrate(name, options.replicates, options.workers, options.out))
    if headlines.NAME in names:
        print(
            headlines.simulate(options.out, options.replicates or headlines.TABLES, options.workers)
        )


if __name__ == "__main__":
    sys.exit(main())
