"""Commands to pin a model, run a probe on it, analyse the outputs, and write the report."""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError
from plumbline.probes import ALL, EACH, OF_GROUPS, PROBES
from plumbline.probes.core.arithmetic import same_arithmetic

if TYPE_CHECKING:
    from collections.abc import Callable

    Arguments = argparse.Namespace

STAGE = "(a stage of dvc.yaml)"
TRAINS = ("after_training", "finetuned_classifiers", "pretrain")  # sensitive to rounding
TRAINING, MODELS = "plumbline.probes.training.train", "plumbline.probes.models.forward"
IN_PARALLEL = {  # commands that run models in parallel, one core each, and what they import
    "clusters": "plumbline.probes.politicians.clusters",
    "finetuned_classifiers": TRAINING,
    "latent": "plumbline.probes.politicians.latent_model",
    "perplexity": MODELS,
    "pretrain": TRAINING,
    "stances": MODELS,
    "subgroups": "plumbline.probes.politicians.subgroups",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m plumbline.probes", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, about: str, run: Callable[[Arguments], object]
    ) -> Callable[..., argparse.Action]:
        """Add a command, and return the function that adds its arguments."""
        made = commands.add_parser(name, help=about)
        made.set_defaults(run=run)
        return made.add_argument

    overlay = "a file with changes to params.yaml, such as params/full.yaml"
    check = command("check", "check params.yaml and report all problems", _check)
    check("file", nargs="?", type=Path, help=f"with {overlay}")
    use = command("use", "apply the settings of a file to params.yaml and keep its comments", _use)
    use("file", type=Path, help=overlay)
    today = datetime.now(UTC).date().isoformat()
    about = "date that replaces DAY in its snapshots, as YYYY-MM-DD (default: today)"
    for add in (check, use):
        add("--date", default=today, metavar="DAY", help=about)
    about = "mirror from which sources are fetched; no contact is then required"
    use("--mirror", type=Path, metavar="DIR", help=about)
    add = command("pin", "look up missing commits of models on the Hub", _pin)
    add("file", type=Path, help="params.yaml, or a file with models")
    add = command("weights", f"pin the files of a model in params.yaml {STAGE}", _weights)
    add("model", help="name in params.yaml")
    about = (
        f"train a model further on corpora and save checkpoints {STAGE}; several processes: "
        "accelerate launch -m plumbline.probes pretrain MODEL"
    )
    executed = [command("pretrain", about, _pretrain)]
    executed += [command(name, f"{words} {STAGE}", _probe) for name, words in PROBES.items()]
    for add in executed:
        _add_execution(add)
        add("model", nargs="+", help="names of models")
    for name, words in EACH.items():
        add = command(name, f"tables: {words} {STAGE}", _analyse)
        more = "; none: pooled over each group of the params" if name in OF_GROUPS else ""
        add("model", nargs="*" if more else "+", help=f"names of models{more}")
    for name, words in ALL.items():
        command(name, f"tables over all models: {words} {STAGE}", _analyse)
    _add_others(command)
    cli.options(parser, commands)
    return parser


def _add_others(command: Callable[..., Callable[..., argparse.Action]]) -> None:
    """Add the commands waves, import, annotate, plan, recovery and report."""
    about = f"tables of changes between two waves of suggestions {STAGE}"
    add = command("waves", about, _waves)
    add("earlier", nargs="?", help="folder of a wave (default: as in the params)")
    add("later", nargs="?", help="folder of a later wave")
    add("--into", type=Path, help="folder of the tables: data/tables/waves")
    about = "make the tables of stereotypes or of the compass from other people's outputs"
    add = command("import", about, _import)
    pair = {"type": _pair, "metavar": "NAME=FILE"}
    add("lists", nargs="*", **pair, help="words of each query, as JSON or CSV")
    about = "CSV file with the percentage of each affect, by group"
    add("--profiles", action="append", default=[], **pair, help=about)
    scores = ("typicality", "probability", "logprob")
    about = "scores of the lists (default: typicality, nats)"
    add("--scores", choices=scores, default=scores[0], help=about)
    add("--answers", action="append", default=[], **pair, help="answers, as CSV or JSON lines")
    add("--questionnaire", default="political-compass", help="config of `statements` (answers)")
    about = "name of a column in the files of answers, such as id=pct_id"
    pair["metavar"] = "NAME=COLUMN"
    add("--column", action="append", default=[], **pair, help=about)
    add("--into", type=Path, required=True, help="folder of outputs and tables")
    about = "sample a model's answers for people to label, or compare labelled sheets"
    add = command("annotate", about, _annotate)
    add("model", help="name in params.yaml")
    add("sheets", nargs="*", type=Path, help="labelled sheets to compare; none: sample answers")
    add("--into", type=Path, help="folder of the sheets to be labelled")
    add("--answers", type=int, default=110, help="number of answers to label (default: 110)")
    add("--annotators", type=int, default=3, help="number of sheets (default: 3)")
    add = command("plan", "estimate prompts, disk space and hours of the probes", _plan)
    add("model", nargs="?", default="", help="name in params.yaml; default: all")
    add("--seconds", type=float, default=10, help="duration of each trial")
    about = f"tables of known effects and their estimates {STAGE}"
    command("recovery", about, _recovery)
    command("report", f"write the report to data/report {STAGE}", _report)


def _add_execution(add: Callable[..., argparse.Action]) -> None:
    """Add the execution options, which do not change the outputs."""
    runner = os.environ.get("PLUMBLINE_RUNNER", "local")
    about = "local processes or a Ray cluster (default: PLUMBLINE_RUNNER, or local)"
    add("--runner", choices=["local", "ray"], default=runner, help=about)
    workers = os.environ.get("PLUMBLINE_WORKERS", "0")
    about = "processes on the cluster; 0: one per GPU, or all cores but one (PLUMBLINE_WORKERS)"
    add("--workers", type=int, default=workers, help=about)
    about = (
        "only every N-th shard or training, starting with the I-th (for job arrays); once all "
        "parts are done, the command without this option completes the outputs"
    )
    add("--part", type=_part, metavar="I/N", help=about)


def _pair(text: str) -> tuple[str, Path]:
    name, _, file = text.partition("=")
    if not (name and file):
        raise argparse.ArgumentTypeError(f"{text}: write NAME=FILE")
    return name, Path(file)


def _part(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text}: not of the form I/N, such as 3/10")
    return int(part), int(parts)


def _check(arguments: Arguments) -> None:
    from plumbline.probes.commands import check_params, params_overlay

    if arguments.file:
        tree = params_overlay.composed(arguments.file, arguments.date)
        print(*check_params.corpus_shares(tree), sep="\n", flush=True)
        params_overlay.check_with(arguments.file, arguments.date)
    else:
        check_params.check()
    print(f"{arguments.file or 'params.yaml'}: no problem found")


def _use(arguments: Arguments) -> None:
    from plumbline.probes.commands.params_overlay import use

    sources = use(arguments.file, arguments.date, mirror=arguments.mirror is not None)
    print(f"params: set as in {arguments.file}; `git diff` shows the changes")
    options = f"--date {arguments.date}"
    options += f" --mirror {arguments.mirror}" if arguments.mirror else ""
    for source in sources:
        print(f"to fetch: python -m plumbline.builders fetch {source} {options}")


def _pin(arguments: Arguments) -> None:
    from plumbline.probes.commands.params_overlay import pin

    print(*pin(arguments.file), sep="\n")


def _weights(arguments: Arguments) -> None:
    from plumbline.probes.models.load import pin

    print(pin(arguments.model))


def _import(arguments: Arguments) -> None:
    from plumbline.probes.commands.import_outputs import run, run_answers

    lists, profiles, answers = map(dict, (arguments.lists, arguments.profiles, arguments.answers))
    folders = []
    if answers:
        columns = {name: str(column) for name, column in arguments.column}
        folders.append(run_answers(answers, arguments.questionnaire, columns, arguments.into))
    if lists or profiles or not answers:
        folders.append(run(lists, profiles, arguments.into, arguments.scores))
    for folder in chain(*folders):
        print(folder)


def _require_models(arguments: Arguments) -> list[str]:
    """Return the models named in a command, checking the names before torch is loaded."""
    from plumbline.probes.models.params import model

    names: list[str] = getattr(arguments, "model", [])
    for name in names:
        model(name)
    return names


def _pretrain(arguments: Arguments) -> None:
    names = _require_models(arguments)
    from plumbline.probes.training.distributed import first
    from plumbline.probes.training.pretrain import pretrain

    spread = None
    if arguments.runner == "ray" and not arguments.part:
        from plumbline.probes.core.ray_runner import each

        spread = partial(each, workers=arguments.workers, gpu=True)
    for name in names:
        folder = pretrain(name, arguments.part or (1, 1), spread)
        if first():
            print(folder)


def _probe(arguments: Arguments) -> None:
    names = _require_models(arguments)
    from plumbline.probes.core.run_probe import Execution, probe

    execution = Execution(arguments.runner, arguments.workers, arguments.part)
    for name in names:
        print(probe(arguments.command, name, execution))


def _analyse(arguments: Arguments) -> None:
    names = _require_models(arguments)
    from plumbline.probes.core.run_analysis import analyse

    for model in names or [""]:
        print(analyse(arguments.command, model))


def _waves(arguments: Arguments) -> None:
    from plumbline.builders.core.params import section
    from plumbline.probes.stereotypes import waves

    params, earlier = section("waves", waves.Params), arguments.earlier
    if earlier and not arguments.later:
        raise UserError(f"waves {earlier}: the later wave is missing; name both or none")
    if earlier:
        params = params.model_copy(update={"earlier": earlier, "later": arguments.later})
    tables = waves.run(None, params)
    waves.write(tables, params, arguments.into or waves.FOLDER)
    print(*waves.short(tables["waves"]), sep="\n")


def _plan(arguments: Arguments) -> None:
    from plumbline.probes.commands import cost

    if not arguments.seconds > 0:
        raise UserError(f"--seconds: {arguments.seconds:g}; a trial must last more than 0 seconds")
    print(cost.table(arguments.seconds, arguments.model))


def _annotate(arguments: Arguments) -> None:
    from plumbline.probes.leaning.annotate import draw, score

    model, into = arguments.model, arguments.into
    if arguments.sheets:
        result = score(model, arguments.sheets)
        sides = f"{result.clear} with a side to most; kappa {result.kappa:.2f}"
        print(f"{result.answers} answers, {sides}")
        for reading, right in result.accuracy.items():
            print(f"judge, {reading}: {right:.2f} of these right")
    elif into:
        print(*draw(model, into, arguments.answers, arguments.annotators), sep="\n")
    else:
        raise UserError("annotate: give --into FOLDER to sample answers, or sheets to compare")


def _recovery(_: Arguments) -> None:
    from plumbline.probes.controls.compare import recover

    print(recover())


def _report(_: Arguments) -> None:
    from plumbline.builders.core.errors import during
    from plumbline.probes.site.build import write

    with during("report"):
        folder = write()
    print(folder)


def _run(arguments: Arguments) -> None:
    models = getattr(arguments, "model", None)
    local = (
        not getattr(arguments, "part", None) and getattr(arguments, "runner", "local") == "local"
    )
    multiple = isinstance(models, list) and len(models) > 1
    if arguments.command in TRAINS or arguments.command in (*EACH, *ALL):
        same_arithmetic(training=arguments.command in TRAINS)
    if arguments.command in IN_PARALLEL and multiple and local:
        from plumbline.probes.core.run_probe import run_models

        preload = IN_PARALLEL[arguments.command]
        run_models(arguments.command, models, preload)  # type: ignore[arg-type]
    else:
        arguments.run(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (``docs/failures.md``)."""
    parsed = _parser().parse_args(arguments)
    return cli.run(parsed, lambda: _run(parsed))


if __name__ == "__main__":
    sys.exit(main())
