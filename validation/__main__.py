"""Commands: validate a dataset, render the Data Docs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from plumbline.builders.core import cli

NAMES = sorted(p.stem for p in (Path(__file__).parent / "datasets").glob("[a-z]*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (:data:`plumbline.builders.core.cli.STATUSES`)."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.validation", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in NAMES:
        commands.add_parser(name, help=f"validate the dataset {name} (a stage of dvc.yaml)")
    commands.add_parser("docs", help="render the Data Docs of all datasets under data/docs")
    cli.options(parser, commands)
    given = parser.parse_args(arguments)
    return cli.run(given, "validation", lambda: _run(given.command))


def _run(name: str) -> None:
    from plumbline.builders.core.progress import during
    from plumbline.validation import run

    if name == "docs":
        with during("validation docs"):
            print(run.render(NAMES))
        return
    with during(f"validating {name}"):
        report = run.validate(name)
    number = sum(len(t["expectations"]) for t in report["tables"].values())
    print(f"{name}: {number} expectations met, {report['warnings']} warning(s)")


if __name__ == "__main__":
    sys.exit(main())
