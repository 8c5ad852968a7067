"""Commands: pin a model, run a probe on it, analyse its outputs, write the report."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError
from plumbline.probes import ALL, EACH, OF_GROUPS, PROBES
from plumbline.probes.core.arithmetic import same_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

STAGE = "(a stage of dvc.yaml)"
TRAINS = ("after_training", "finetuned_classifiers")  # whose weights depend on the last bits


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plumbline.probes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, about: str, run: Callable[[argparse.Namespace], object]
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=about)
        made.set_defaults(run=run)
        return made

    _overlay(
        command("check", "check params.yaml, all problems at once", _check),
        command("use", "apply the settings of a file to params.yaml, keeping its comments", _use),
    )
    pinning = command("pin", "look up missing commits of models on the Hub", _pin)
    pinning.add_argument("file", type=Path, help="params.yaml, or a file with models")
    weights = command("weights", f"pin the files of a model of params.yaml {STAGE}", _of_a_model)
    weights.add_argument("model", help="name in params.yaml")
    about = (
        f"train a model further on corpora and keep its states {STAGE}; with several processes: "
        "accelerate launch -m plumbline.probes pretrain MODEL"
    )
    several = [_execution(command("pretrain", about, _of_a_model))]
    several += [_execution(command(n, f"{words} {STAGE}", _probe)) for n, words in PROBES.items()]
    several += [
        command(name, f"tables: {words} {STAGE}", _of_a_model) for name, words in EACH.items()
    ]
    for one in several:
        _models(one)
    for name, words in ALL.items():
        command(name, f"tables over all models: {words} {STAGE}", _analyse)
    about = f"tables: what changed between two waves of suggestions {STAGE}"
    waves = command("waves", about, _waves)
    waves.add_argument("earlier", nargs="?", help="folder of a wave (default: as in the params)")
    waves.add_argument("later", nargs="?", help="folder of a later wave")
    waves.add_argument("--into", type=Path, help="folder of the tables: data/tables/waves")
    _importing(command("import", "tables of the study stereotypes, of others' outputs", _import))
    about = "draw written answers of a model for people to label, or compare labelled sheets"
    _annotating(command("annotate", about, _annotate))
    plan = command("plan", "prompts, disk space and hours of the probes, before they run", _plan)
    plan.add_argument("model", nargs="?", default="", help="name in params.yaml; default: all")
    plan.add_argument("--seconds", type=float, default=10, help="length of the trial of each")
    about = f"tables: how much of the planted truth the tables recover {STAGE}"
    command("recovery", about, _recovery)
    command("report", f"write data/report {STAGE}", _report)
    cli.options(parser, commands)
    return parser


def _models(parser: argparse.ArgumentParser) -> None:
    pooled = parser.prog.split()[-1] in OF_GROUPS
    more = "; none: those of each group of the params, pooled" if pooled else ""
    parser.add_argument("model", nargs="*" if pooled else "+", help=f"names of models{more}")


def _overlay(checking: argparse.ArgumentParser, using: argparse.ArgumentParser) -> None:
    """Add the arguments of ``check`` and ``use``: a file, and how its snapshots are fetched."""
    overlay = "a file that is laid over params.yaml, such as params/full.yaml"
    checking.add_argument("file", nargs="?", type=Path, help=f"with {overlay}")
    using.add_argument("file", type=Path, help=overlay)
    today = datetime.now(UTC).date().isoformat()
    about = "date in place of DAY in its snapshots, as YYYY-MM-DD (default: today)"
    for dated in (checking, using):
        dated.add_argument("--date", default=today, metavar="DAY", help=about)
    about = "the sources will be fetched from this mirror: no contact is required"
    using.add_argument("--mirror", type=Path, metavar="DIR", help=about)


def _annotating(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``annotate``."""
    parser.add_argument("model", help="name in params.yaml")
    parser.add_argument("sheets", nargs="*", type=Path, help="labelled sheets; none: draw")
    parser.add_argument("--into", type=Path, help="folder of the sheets to be labelled")
    parser.add_argument("--answers", type=int, default=110, help="to label (default: 110)")
    parser.add_argument("--annotators", type=int, default=3, help="sheets (default: 3)")


def _importing(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``import``."""
    about = "words of each query: JSON or CSV"
    parser.add_argument("lists", nargs="*", type=_pair, metavar="NAME=FILE", help=about)
    about = "CSV: percent of each affect, by group"
    parser.add_argument(
        "--profiles", action="append", default=[], type=_pair, metavar="NAME=FILE", help=about
    )
    scores = ("typicality", "probability", "logprob")
    about = "scores of the lists (default: typicality, nats)"
    parser.add_argument("--scores", choices=scores, default=scores[0], help=about)
    parser.add_argument("--into", type=Path, required=True, help="folder of outputs and tables")


def _pair(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not (name and file):
        raise argparse.ArgumentTypeError(f"{text}: write NAME=FILE")
    return name, Path(file)


def _import(given: argparse.Namespace) -> None:
    from plumbline.probes.commands.import_outputs import run

    for folder in run(dict(given.lists), dict(given.profiles), given.into, given.scores):
        print(folder)


def _execution(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options of execution; none of them changes what is written."""
    runner = os.environ.get("PLUMBLINE_RUNNER", "local")
    about = "this process, or a Ray cluster (default: PLUMBLINE_RUNNER, or local)"
    parser.add_argument("--runner", choices=["local", "ray"], default=runner, help=about)
    workers = os.environ.get("PLUMBLINE_WORKERS", "0")
    about = "actors on the cluster; 0: one a GPU, or all cores but one (PLUMBLINE_WORKERS)"
    parser.add_argument("--workers", type=int, default=workers, help=about)
    about = (
        "only every N-th shard or training, from the I-th on: for job arrays; the command without "
        "it, once all parts are done, finishes the outputs"
    )
    parser.add_argument("--part", type=_part, metavar="I/N", help=about)
    return parser


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text}: not of the form I/N, such as 3/10")
    return int(part), int(parts)


def _check(given: argparse.Namespace) -> None:
    from plumbline.probes.commands import check_params, params_overlay

    if given.file:
        params_overlay.check_with(given.file, given.date)
    else:
        check_params.check()
    print(f"{given.file or 'params.yaml'}: no problem found")


def _use(given: argparse.Namespace) -> None:
    from plumbline.probes.commands.params_overlay import use

    lacking = use(given.file, given.date, mirror=given.mirror is not None)
    print(f"params: as {given.file} has it; `git diff` shows what is new")
    read = f" --mirror {given.mirror}" if given.mirror else ""
    for source in lacking:
        print(f"to fetch: python -m plumbline.builders fetch {source} --date {given.date}{read}")


def _pin(given: argparse.Namespace) -> None:
    from plumbline.probes.commands.pin_revisions import pin

    found = pin(given.file)
    for name, commit in found.written.items():
        print(f"{name}: {commit}")
    print(f"{given.file}: {len(found.written)} pinned, {len(found.there)} were and are there")
    for name in found.pickled:
        print(f"{name}: no safetensors; add the line `pickles: true` (docs/howto/models.md)")


def _of_a_model(given: argparse.Namespace) -> None:
    """Run a command that names models, but for probes."""
    from plumbline.probes.models.params import model

    names = [given.model] if isinstance(given.model, str) else given.model
    for name in names:
        model(name)  # an unknown name is reported before torch is loaded
    if given.command == "weights":
        from plumbline.probes.models.load import pin

        print(pin(given.model))
    elif given.command == "pretrain":
        _pretrain(given, names)
    else:
        _analyse(given)


def _pretrain(given: argparse.Namespace, names: list[str]) -> None:
    same_arithmetic(training=True)
    from plumbline.probes.training.distributed import first
    from plumbline.probes.training.pretrain import pretrain

    spread = None
    if given.runner == "ray" and not given.part:
        from plumbline.probes.core.ray_runner import each

        spread = partial(each, workers=given.workers, gpu=True)
    for name in names:
        folder = pretrain(name, given.part or (1, 1), spread)
        if first():
            print(folder)


def _probe(given: argparse.Namespace) -> None:
    """Run a probe; processes that ``accelerate launch`` started share its shards."""
    from plumbline.probes.models.params import model

    if given.command in TRAINS:
        same_arithmetic(training=True)
    part, workers = given.part, given.workers
    for name in given.model:
        model(name)  # an unknown name is reported before torch is loaded
    from plumbline.probes.training.distributed import accelerator, each_alone, first, launched

    if launched():
        accelerator()  # before anything is loaded: it chooses this process's device
    from plumbline.probes.core.run_probe import Execution, probe

    for name in given.model:
        if launched():
            with each_alone() as (index, number):
                i, n = part or (1, 1)
                own = (i + index * n, n * number)
                done = probe(given.command, name, Execution(given.runner, workers, own))
            if part and first():
                print(done)
            if part or not first():
                continue
        print(probe(given.command, name, Execution(given.runner, workers, part)))


def _analyse(given: argparse.Namespace) -> None:
    from plumbline.probes.core.run_analysis import analyse

    same_arithmetic()
    for model in getattr(given, "model", None) or [""]:
        print(analyse(given.command, model))


def _waves(given: argparse.Namespace) -> None:
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


def _plan(given: argparse.Namespace) -> None:
    from plumbline.probes.commands import cost

    if not given.seconds > 0:
        raise UserError(f"--seconds: {given.seconds:g}; a trial has to last more than 0 seconds")
    print(cost.table(list(cost.plans(given.seconds, given.model))))


def _annotate(given: argparse.Namespace) -> None:
    from plumbline.probes.leaning.annotate import draw, score

    if given.sheets:
        found = score(given.model, given.sheets)
        print(
            f"{found.answers} answers, {found.clear} with a side to most; kappa {found.kappa:.2f}"
        )
        for reading, right in found.accuracy.items():
            print(f"judge, {reading}: {right:.2f} of these right")
    elif given.into:
        print(*draw(given.model, given.into, given.answers, given.annotators), sep="\n")
    else:
        raise UserError("annotate: --into FOLDER to draw answers, or labelled sheets to compare")


def _recovery(_: argparse.Namespace) -> None:
    from plumbline.probes.controls.recover import recover

    print(recover())


def _report(_: argparse.Namespace) -> None:
    from plumbline.builders.core.progress import during
    from plumbline.probes.site import write

    with during("report"):
        folder = write()
    print(folder)


def _run(given: argparse.Namespace) -> None:
    from plumbline.probes.core import local_runner

    plain = not getattr(given, "part", None) and getattr(given, "runner", "local") == "local"
    several = isinstance(getattr(given, "model", None), list) and len(given.model) > 1
    if given.command in local_runner.LONG and several and plain:
        local_runner.run_models(given.command, given.model)
    else:
        given.run(given)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (``docs/failures.md``)."""
    given = _parser().parse_args(arguments)
    return cli.run(given, lambda: _run(given))


if __name__ == "__main__":
    sys.exit(main())
