"""Commands: pin a model, run a probe on it, analyse its outputs, write the report."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plumbline.builders.core import cli
from plumbline.probes import ALL, EACH, PROBES


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (:data:`plumbline.builders.core.cli.STATUSES`)."""
    parser = argparse.ArgumentParser(prog="python -m plumbline.probes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _of_params(commands)
    weights = commands.add_parser(
        "weights", help="pin the files of a model of params.yaml (a stage of dvc.yaml)"
    )
    weights.add_argument("model", help="name in params.yaml")
    planting = commands.add_parser(
        "plant", help="train the tiny model of a planted world into data/samples/worlds"
    )
    planting.add_argument("world", help="name in probes/worlds/params.yaml")
    further = commands.add_parser(
        "pretrain",
        help="train a model further on corpora and keep its states (a stage of dvc.yaml); with "
        "several processes: accelerate launch -m plumbline.probes pretrain MODEL",
    )
    further.add_argument("model", nargs="+", help="names of models")
    for name, words in PROBES.items():
        _execution(commands.add_parser(name, help=f"{words} (a stage of dvc.yaml)"))
    for name, words in EACH.items():
        analysis = commands.add_parser(name, help=f"tables: {words} (a stage of dvc.yaml)")
        analysis.add_argument("model", nargs="+", help="names of models")
    for name, words in ALL.items():
        commands.add_parser(name, help=f"tables over all models: {words} (a stage of dvc.yaml)")
    waves = commands.add_parser(
        "waves", help="tables: what changed between two waves of suggestions (a stage of dvc.yaml)"
    )
    waves.add_argument("earlier", nargs="?", help="folder of a wave (default: as in the params)")
    waves.add_argument("later", nargs="?", help="folder of a later wave")
    waves.add_argument("--into", type=Path, help="folder of the tables: data/tables/waves")
    reword = commands.add_parser(
        "paraphrase", help="let a model paraphrase the statements of probes.stances, into a file"
    )
    reword.add_argument("model", help="name in params.yaml")
    reword.add_argument("--prompt", required=True, help="the prompt, with {statement}")
    reword.add_argument("--seeds", type=int, default=5, help="wordings of each (default: 5)")
    reword.add_argument("--tokens", type=int, default=64, help="of a wording at most (default: 64)")
    reword.add_argument("--into", required=True, help="the csv file to write")
    plan = commands.add_parser("plan", help="what the probes would take, before they run")
    plan.add_argument("model", nargs="?", help="name in params.yaml; default: all assigned models")
    plan.add_argument("--seconds", type=float, default=10, help="length of the trial of each")
    plan.add_argument("--study", type=Path, help="plan params.yaml with this file laid over it ...")
    plan.add_argument("--sizes", type=Path, help="... from the sizes that this file assumes")
    commands.add_parser(
        "recovery", help="tables: what of the planted truth the tables find (a stage of dvc.yaml)"
    )
    commands.add_parser("report", help="write data/report (a stage of dvc.yaml)")
    cli.options(parser, commands)
    given = parser.parse_args(arguments)
    return cli.run(given, "probes", lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    from plumbline.probes.core import side_by_side

    plain = not getattr(given, "part", None) and getattr(given, "runner", "local") == "local"
    several = isinstance(getattr(given, "model", None), list) and len(given.model) > 1
    if given.command in side_by_side.LONG and several and plain:
        side_by_side.run(given.command, given.model)
        return
    if given.command in PROBES:
        _probe(given)
    elif given.command in ("check", "use", "pin"):
        _params(given)
    elif given.command == "plant":
        from plumbline.probes.worlds.plant import plant

        print(plant(given.world))
    elif given.command == "recovery":
        from plumbline.probes.core.run_analysis import recover

        print(*recover(), sep="\n")
    elif given.command == "waves":
        _waves(given)
    elif given.command in ALL:
        from plumbline.probes.core.run_analysis import analyse

        print(analyse(given.command))
    elif hasattr(given, "model") and given.command != "plan":
        _of_a_model(given)
    else:
        _of_all(given)


def _waves(given: argparse.Namespace) -> None:
    """Compare two waves of suggestions."""
    from plumbline.builders.core.errors import UserError
    from plumbline.builders.core.params import section
    from plumbline.probes.stereotypes import waves

    params = section("waves", waves.Params)
    if given.earlier and not given.later:
        raise UserError(f"waves {given.earlier}: name two waves, the earlier first, or none")
    if given.earlier:
        params = params.model_copy(update={"earlier": given.earlier, "later": given.later})
    tables = waves.run(None, params)
    waves.write(tables, params, given.into or waves.FOLDER)
    for line in waves.short(tables["waves"]):
        print(line)


def _of_params(commands: Any) -> None:
    """Add the commands that read or change params.yaml."""
    overlay = "a file that is laid over params.yaml, such as params/full.yaml"
    day = datetime.now(UTC).date().isoformat()
    dated = "what DAY stands for in its snapshots, as YYYY-MM-DD (default: today)"
    checking = commands.add_parser("check", help="check params.yaml, all problems at once")
    checking.add_argument("file", nargs="?", type=Path, help=f"with {overlay}")
    checking.add_argument("--date", default=day, metavar="DAY", help=dated)
    using = commands.add_parser("use", help="lay a file over params.yaml, comments kept")
    using.add_argument("file", type=Path, help=overlay)
    using.add_argument("--date", default=day, metavar="DAY", help=dated)
    pinning = commands.add_parser("pin", help="ask the Hub for the commits that models lack")
    pinning.add_argument("file", type=Path, help="params.yaml, or a file with models")


def _params(given: argparse.Namespace) -> None:
    """Read or change params.yaml."""
    if given.command == "check":
        from plumbline.probes.commands.check_params import check
        from plumbline.probes.commands.params_overlay import check_with

        if given.file:
            check_with(given.file, given.date)
        else:
            check()
        print(f"{given.file or 'params.yaml'}: no problem found")
    elif given.command == "use":
        from plumbline.probes.commands.params_overlay import use

        lacking = use(given.file, given.date)
        print(f"params: as {given.file} has it; `git diff` shows what is new")
        for source in lacking:
            print(f"to fetch: python -m plumbline.builders fetch {source} --date {given.date}")
    else:
        from plumbline.probes.commands.pin_revisions import pin

        found = pin(given.file)
        for name, commit in found.written.items():
            print(f"{name}: {commit}")
        print(f"{given.file}: {len(found.written)} pinned, {len(found.there)} were and are there")
        for name in found.pickled:
            print(f"{name}: no safetensors; add the line `pickles: true` (docs/howto/models.md)")


def _of_all(given: argparse.Namespace) -> None:
    """Run a command that names no model."""
    if given.command == "plan" and given.study:
        _planned(given)
    elif given.command == "plan":
        from plumbline.probes.commands.cost import plans, table

        print(table(list(plans(given.seconds, given.model))))
    else:
        from plumbline.builders.core.progress import during
        from plumbline.probes.site import write

        with during("report"):
            folder = write()
        print(folder)


def _planned(given: argparse.Namespace) -> None:
    """Print what a study would take, from sizes that are assumed."""
    from plumbline.builders.core.errors import UserError
    from plumbline.probes.commands.assumed import plans, sizes_in, summary
    from plumbline.probes.commands.cost import table
    from plumbline.probes.commands.params_overlay import composed

    if not given.sizes:
        raise UserError("--study: nothing is built of it yet; give --sizes params/full-sizes.yaml")
    sizes = sizes_in(given.sizes)
    found = list(plans(composed(given.study, "DAY"), sizes))
    print(table(found), summary(found, sizes), sep="\n\n")


def _of_a_model(given: argparse.Namespace) -> None:
    """Run a command that names a model."""
    from plumbline.probes.models.params import model

    names = [given.model] if isinstance(given.model, str) else given.model
    for name in names:
        model(name)  # an unknown name is reported before torch is loaded
    if given.command == "paraphrase":
        from plumbline.probes.leaning.paraphrase import write as reword

        seeds = range(1, given.seeds + 1)
        print(reword(given.model, given.prompt, seeds, given.tokens, Path(given.into)))
    elif given.command == "weights":
        from plumbline.probes.models.files import pin

        print(pin(given.model))
    elif given.command == "pretrain":
        from plumbline.probes.training.distributed import first, launched
        from plumbline.probes.training.pretrain import pretrain

        if not launched():
            from plumbline.probes.core.imports import lean

            lean()
        for name in names:
            folder = pretrain(name)
            if first():
                print(folder)
    else:
        from plumbline.probes.core.run_analysis import analyse

        for name in names:
            print(analyse(given.command, name))


def _execution(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a probe is run; none of them changes what it writes."""
    parser.add_argument("model", nargs="+", help="names of models")
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
    """Run a probe on models."""
    from plumbline.builders.core.errors import UserError
    from plumbline.probes.models.params import model

    part = None
    if given.part:
        numbers = given.part.split("/")
        if len(numbers) != 2 or not all(n.isdigit() for n in numbers):
            raise UserError(f"--part {given.part}: not of the form I/N, such as 3/10")
        part = (int(numbers[0]), int(numbers[1]))
        if not 1 <= part[0] <= part[1]:
            raise UserError(f"--part {given.part}: I must be from 1 to N")
    if given.runner not in ("local", "ray"):
        raise UserError(f"PLUMBLINE_RUNNER: {given.runner!r} is neither local nor ray")
    if not given.workers.isdigit():
        raise UserError(f"--workers {given.workers}: not a number of workers")
    for name in given.model:
        model(name)  # an unknown name is reported before torch is loaded
    from plumbline.probes.core.imports import lean
    from plumbline.probes.core.run_probe import Execution, probe

    lean()
    for name in given.model:
        print(probe(given.command, name, Execution(given.runner, int(given.workers), part)))


if __name__ == "__main__":
    sys.exit(main())
