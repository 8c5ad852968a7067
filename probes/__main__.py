"""Commands: bring a model, put a probe to it, analyse its outputs, write the report."""

from __future__ import annotations

import argparse
import os
import sys

from probes import ALL, EACH, PROBES


def main(arguments: list[str] | None = None) -> int:
    """Run one command; a :class:`Problem` becomes one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="python -m probes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("check", help="check params.yaml and tell all its problems at once")
    weights = commands.add_parser(
        "weights", help="train a world's model, or pin one of the Hub (a stage of dvc.yaml)"
    )
    weights.add_argument("model", help="name in params.yaml")
    further = commands.add_parser(
        "pretrain",
        help="train a model further on corpora and keep its states (a stage of dvc.yaml); with "
        "several processes: accelerate launch -m probes pretrain MODEL",
    )
    further.add_argument("model", help="name in params.yaml")
    for name, words in PROBES.items():
        _execution(commands.add_parser(name, help=f"{words} (a stage of dvc.yaml)"))
    for name, words in EACH.items():
        analysis = commands.add_parser(name, help=f"tables: {words} (a stage of dvc.yaml)")
        analysis.add_argument("model", help="name in params.yaml")
    for name, words in ALL.items():
        commands.add_parser(name, help=f"tables over all models: {words} (a stage of dvc.yaml)")
    plan = commands.add_parser("plan", help="tell what the probes would take, before they run")
    plan.add_argument("model", nargs="?", help="name in params.yaml; default: all that are asked")
    plan.add_argument("--seconds", type=float, default=10, help="length of the trial of each")
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
    if given.command == "plan":
        from probes.plan import plans, table

        print(table(list(plans(given.seconds, given.model))))
        return
    if given.command in PROBES:
        _probe(given)
        return
    if given.command == "report":
        from probes.report import write

        print(write())
        return
    if given.command in ALL:
        from probes.tables import analyse

        print(analyse(given.command))
        return
    from probes.models.params import model

    model(given.model)  # an unknown name is told before torch is loaded
    if given.command == "weights":
        from probes.models.weights import bring

        print(bring(given.model))
    elif given.command == "pretrain":
        from probes.models.processes import first
        from probes.pretrain import pretrain

        folder = pretrain(given.model)
        if first():
            print(folder)
    else:
        from probes.tables import analyse

        print(analyse(given.command, given.model))


def _execution(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a probe is run; none of them changes what it writes."""
    parser.add_argument("model", help="name in params.yaml")
    parser.add_argument(
        "--runner",
        choices=["local", "ray"],
        default=os.environ.get("PLUMBLINE_RUNNER", "local"),
        help="this process, or a Ray cluster (default: PLUMBLINE_RUNNER, or local)",
    )
    parser.add_argument(
        "--workers",
        default=os.environ.get("PLUMBLINE_WORKERS", "0"),
        help="actors on the cluster; 0: one a GPU, or all cores but one (PLUMBLINE_WORKERS)",
    )
    parser.add_argument(
        "--part",
        metavar="I/N",
        help="only every N-th shard, from the I-th on: for job arrays; the command without it, "
        "once all parts are done, finishes the outputs",
    )


def _probe(given: argparse.Namespace) -> None:
    """Put a probe to a model."""
    from builders.lib.problem import Problem
    from probes.models.params import model

    part = None
    if given.part:
        numbers = given.part.split("/")
        if len(numbers) != 2 or not all(n.isdigit() for n in numbers):
            raise Problem(f"--part {given.part}: not of the form I/N, such as 3/10")
        part = (int(numbers[0]), int(numbers[1]))
        if not 1 <= part[0] <= part[1]:
            raise Problem(f"--part {given.part}: I must be from 1 to N")
    if given.runner not in ("local", "ray"):
        raise Problem(f"PLUMBLINE_RUNNER: {given.runner!r} is neither local nor ray")
    if not given.workers.isdigit():
        raise Problem(f"--workers {given.workers}: not a number of workers")
    model(given.model)  # an unknown name is told before torch is loaded
    from probes.outputs import Execution, probe

    print(probe(given.command, given.model, Execution(given.runner, int(given.workers), part)))


if __name__ == "__main__":
    sys.exit(main())
