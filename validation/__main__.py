"""Commands: validate a dataset, render the Data Docs."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

NAMES = sorted(
    p.stem
    for p in Path(__file__).parent.glob("*.py")
    if not p.stem.startswith("_") and p.stem not in ("run", "suite")
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a failed expectation becomes a message and status 1."""
    parser = argparse.ArgumentParser(prog="python -m validation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in NAMES:
        commands.add_parser(name, help=f"validate the dataset {name} (a stage of dvc.yaml)")
    commands.add_parser("docs", help="render the Data Docs of all datasets under data/docs")
    given = parser.parse_args(arguments)

    from builders.lib.problem import Problem

    try:
        from validation import run

        if given.command == "docs":
            print(run.render(NAMES))
        else:
            report = run.validate(given.command)
            number = sum(len(t["expectations"]) for t in report["tables"].values())
            print(f"{given.command}: {number} expectations met, {report['warnings']} warning(s)")
    except Problem as problem:
        if os.environ.get("PLUMBLINE_TRACEBACK"):
            raise
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
