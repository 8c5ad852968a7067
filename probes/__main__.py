"""Commands: bring a model, put a probe to it, analyse its outputs, write the report."""

from __future__ import annotations

import argparse
import os
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a :class:`Problem` becomes one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="python -m probes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check", help="check params.yaml and tell all its problems at once")
    for name, words in {
        "weights": "train a world's model, or pin one of the Hub (a stage of dvc.yaml)",
        "associations": "ask a model for words beside names (a stage of dvc.yaml)",
        "pmi": "tables of words and genders from those answers (a stage of dvc.yaml)",
    }.items():
        commands.add_parser(name, help=words).add_argument("model", help="name in params.yaml")
    commands.add_parser("report", help="write data/report (a stage of dvc.yaml)")
    given = parser.parse_args(arguments)

    from builders.lib.problem import Problem

    try:
        _run(given)
    except Problem as problem:
        if os.environ.get("PLUMBLINE_TRACEBACK"):
            raise
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue", file=sys.stderr)
        return 130
    return 0


def _run(given: argparse.Namespace) -> None:
    if given.command == "check":
        from probes.check import check

        check()
        print("params.yaml: no problem found")
        return
    if given.command == "weights":
        from probes.models.weights import bring as command
    elif given.command == "associations":
        from probes.outputs import probe as command
    elif given.command == "pmi":
        from probes.tables import analyse as command
    else:
        from probes.report import write

        print(write())
        return
    from probes.models.params import model

    model(given.model)  # an unknown name is told before torch is loaded
    print(command(given.model))


if __name__ == "__main__":
    sys.exit(main())
