"""The command ``plumbline``: run studies on a model from a terminal."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.result import Result

    Arguments = argparse.Namespace

STUDIES = ("politicians", "stereotypes", "values", "nationality", "leaning")
GROUPS = {  # groups of commands that work in a checkout
    "data": ("plumbline.builders", "build, fetch, publish, compare and trace datasets"),
    "pipeline": ("plumbline.probes", "run probes and analyses, plan runs, write the report"),
    "validate": ("plumbline.validation", "check datasets with Great Expectations"),
}
KINDS = {  # what can be exported from a checkout: help text, and metavar of the names
    "tables": ("tables of analyses of a checkout: CSV, parquet, LaTeX, figures", "ANALYSIS"),
    "datasets": ("datasets of a checkout: CSV, parquet", "DATASET"),
    "outputs": ("responses of models of a checkout: CSV, parquet", "PROBE"),
}
LISTS = ("studies", "models", "datasets", "results", "published")
EXAMPLES = """\
examples:
  plumbline demo
  plumbline run politicians --model ./my-bert --language en
  plumbline run values --model google-bert/bert-base-multilingual-cased --language cs
  plumbline compare politicians ./my-bert google-bert/bert-base-uncased --language en
  plumbline check ./my-bert
  plumbline export politicians --model my-bert --to paper --width 8
  plumbline export tables pmi --to paper
  plumbline report
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plumbline",
        description="Measure social and political bias in language models.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, about: str, run: Callable[[Arguments], None]) -> argparse.ArgumentParser:
        epilog = next((e for e in EXAMPLES.splitlines() if f"plumbline {name} " in e), "")
        made = commands.add_parser(
            name, help=about, description=f"{about}.", epilog=epilog and f"example:{epilog}"
        )
        made.set_defaults(run=run)
        return made

    running = command("run", "run a study on a model, and print its result", _run)
    comparing = command("compare", "estimate differences between models", _compare)
    for made in (running, comparing):
        made.add_argument("study", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
        _add_options(made, models=made is comparing)
        made.add_argument("--controls", action="store_true", help="also run the control models")
    comparing.add_argument("--to", type=Path, metavar="FOLDER", help="folder for the exports")
    about = "print the kind of a model and the studies that fit it, within seconds"
    checking = command("check", about, _check)
    checking.add_argument("model", nargs="+", help="folder, or id of the Hugging Face Hub")
    checking.add_argument("--kind", default="", help="masked, causal, seq2seq or classifier")
    about = "list studies, control models, datasets, results or published numbers"
    command("ls", about, _list).add_argument("what", nargs="?", choices=LISTS, default="studies")
    exporting = command("export", "write tables and figures for papers, R or Stata", _export)
    exports = exporting.add_subparsers(
        dest="study", metavar="STUDY|" + "|".join(KINDS), required=True
    )
    for study in STUDIES:
        _add_options(exports.add_parser(study, help=f"results of the study {study} on your models"))
    for kind, (about, name) in KINDS.items():
        made = exports.add_parser(kind, help=about, description=f"{about}.")
        made.set_defaults(run=_export_checkout)
        made.add_argument("names", nargs="*", metavar=name, help="default: all that exist")
        made.add_argument("--data", type=Path, default="data", help="folder (default: data)")
        made.add_argument("--formats", default="", help="formats, as csv,tex,svg (default: all)")
        if kind == "tables":
            made.epilog = "example: plumbline export tables pmi --to paper --rows 20"
            latex = made.add_argument_group("tables in LaTeX")
            latex.add_argument("--columns", default="", help="columns, such as word,gender,value")
            latex.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE")
            latex.add_argument("--rows", type=int, default=100, help="maximum rows (default: 100)")
    for made in exports.choices.values():
        made.add_argument("--to", type=Path, required=True, metavar="FOLDER")
        cli.options(made)
    for made in (comparing, *exports.choices.values()):
        made.add_argument("--width", type=float, default=12, help="figure width, cm (default: 12)")
    reporting = command("report", "write a page with all results of this folder", _report)
    page = Path("plumbline-results/index.html")
    reporting.add_argument("--to", type=Path, default=page, metavar="FILE")
    demo = command("demo", "run studies on control models, and write a page for newcomers", _demo)
    demo.add_argument("--model", default="", help="an additional model (default: a public one)")
    folder, about = Path("plumbline-demo"), "(default: %(default)s)"
    demo.add_argument("--to", type=Path, default=folder, metavar="FOLDER", help=about)
    for name, (_, about) in GROUPS.items():
        commands.add_parser(name, help=f"{about} (in a checkout)", add_help=False)
    cli.options(parser, commands)
    return parser


def _add_options(parser: argparse.ArgumentParser, *, models: bool = False) -> None:
    """Add the options of a study; ``models``: True if models are positional arguments."""
    add = parser.add_argument
    about = "folder, id of the Hub, or a name in plumbline.yaml"
    if models:
        add("model", nargs="+", metavar="MODEL", help=about)
        parser.set_defaults(name="")
    else:
        about += " (default: all of them)"
        add("--model", "-m", action="append", default=[], help=about)
        add("--name", default="", help="name of the model in tables")
    add("--kind", default="", help="default: the kind in its config.json")
    add("--revision", default="", help="branch, tag or commit; default: main")
    add("--language", help="the only language (default: that of the last run, or all)")
    add("--dtype", choices=["float32", "float64", "bfloat16"], help="default: float32")
    about = "folder of a built dataset, or id of a published one, to use instead of the sample"
    add("--dataset", action="append", default=[], metavar="NAME=WHERE", help=about)
    about = "a setting, such as analysis.pmi.min_count=3"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=about)


def _run(arguments: Arguments) -> None:
    from plumbline import runs

    models, planned = runs.plan(arguments)
    for run in planned:
        result = runs.execute(models, run)
        _print(result, arguments)
        print(f"  tables: {result.folder / 'data/tables'}")


def _print(result: Result, arguments: Arguments) -> None:
    """Print a result with its notes and, if requested, its controls."""
    print(result.summary)
    for note in result.notes:
        print(f"  note: {note}")
    for control in (result.controls if arguments.controls else {}).values():
        print(f"  control: {control.summary}")
        for note in control.notes:
            print(f"    note: {note}")


def _compare(arguments: Arguments) -> None:
    from plumbline import runs
    from plumbline.comparing import between, require_models

    require_models([], len(arguments.model))
    models, planned = runs.plan(arguments, again=True)
    options, *others = ({k: run.get(k) for k in ("language", *runs.OPTIONS)} for run in planned)
    if any(settings != options for settings in others):
        raise UserError(
            f"compare: {'; '.join(map(runs.label, planned))}: options differ; set the "
            "options of the comparison (--language, --dtype, --set, --dataset)"
        )
    result = between(arguments.study, [runs.execute(models, run) for run in planned], options)
    _print(result, arguments)
    for path in result.export(arguments.to, width=arguments.width) if arguments.to else ():
        print(path)


def _check(arguments: Arguments) -> None:
    from plumbline.models import find
    from plumbline.studies import fitting

    for model in arguments.model:
        kind = find(model, kind=arguments.kind).kind
        print(f"{model}: {kind}; studies that fit: {', '.join(fitting(kind))}")


def _list(arguments: Arguments) -> None:
    from plumbline import runs, studies, workspace
    from plumbline.builders import DATASETS
    from plumbline.reference import published

    lines: list[str] = []
    if arguments.what == "studies":
        lines = [f"{name:12} {study.about}" for name, study in studies.STUDIES.items()]
    elif arguments.what == "models":
        controls = sorted(path.parent.name for path in workspace.WORLDS.glob("*/manifest.json"))
        lines = [*runs.read()["models"], *(f"{name}  (control)" for name in controls)]
    elif arguments.what == "datasets":
        lines = list(DATASETS)
    elif arguments.what == "results":
        lines = [f"{run['study']} {runs.label(run)}" for run in runs.read()["runs"]]
    else:
        lines = ["\t".join(map(str, row)) for row in published().iter_rows()]
    print(*lines, sep="\n")


def _export(arguments: Arguments) -> None:
    from plumbline import runs

    models, planned = runs.plan(arguments, again=True)
    for run in planned:
        result = runs.execute(models, run)
        folder = arguments.to / result.study / result.model
        print(*result.export(folder, width=arguments.width), sep="\n")


def _export_checkout(arguments: Arguments) -> None:
    from plumbline.checkout import export
    from plumbline.latex import Selection
    from plumbline.runs import pairs_of

    formats = list(filter(None, arguments.formats.split(",")))
    options: dict[str, Any] = {"data": arguments.data, "formats": formats}
    if arguments.study == "tables":
        where: dict[str, list[str]] = {}
        for name, value in pairs_of(arguments.where, "--where"):
            where.setdefault(name, []).append(value)
        columns = list(filter(None, arguments.columns.split(",")))
        options["selection"] = Selection(columns, where, arguments.rows)
    for path in export(
        arguments.study, arguments.names, arguments.to, width=arguments.width, **options
    ):
        print(path)


def _report(arguments: Arguments) -> None:
    from plumbline import page, runs

    folder = runs.read()
    if not folder["runs"]:
        raise UserError("no study has been run here; use `plumbline run STUDY --model FOLDER`")
    results, notes = [], []
    for run in folder["runs"]:
        try:
            result = runs.execute(folder["models"], run)
            results.append(replace(result, model=runs.label(run)))
        except UserError as error:
            notes.append(f"left out: {run['study']} {runs.label(run)}: {error}")
    before = "".join(f"<p>{escape(note)}</p>" for note in notes)
    print(page.write(results, arguments.to, before))
    for note in notes:
        print(f"  note: {note}")


def _demo(arguments: Arguments) -> None:
    from plumbline.page import write_demo

    page, public = write_demo(arguments.to, arguments.model)
    print(public)
    print(f"open in a browser: {page}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (``docs/failures.md``)."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in GROUPS:
        status: int = import_module(f"{GROUPS[words[0]][0]}.__main__").main(words[1:])
        return status
    parser = _parser()
    parsed = parser.parse_args(words)
    if parsed.version:
        from importlib.metadata import version

        print(version("plumbline"))
    elif parsed.command:
        return cli.run(parsed, lambda: parsed.run(parsed))
    else:
        parser.print_help()
    return cli.FINE
