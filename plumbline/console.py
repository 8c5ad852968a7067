"""The command ``plumbline``: a study of one's own model, from a terminal."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from dataclasses import replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.result import Result

REPORT, DEMO = Path("plumbline-results/index.html"), Path("plumbline-demo")
STUDIES = ("politicians", "stereotypes", "values", "nationality", "leaning")
GROUPS = {  # the commands of a checkout, by the name of the group
    "data": ("plumbline.builders", "build, fetch, publish, compare and trace datasets"),
    "pipeline": ("plumbline.probes", "run probes and analyses, simulate, plan, write the report"),
    "validate": ("plumbline.validation", "check datasets with Great Expectations"),
}
KINDS = {  # exports of a checkout, and the names that they take
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


class Parser(argparse.ArgumentParser):
    """A parser that suggests the nearest choice."""

    def error(self, message: str) -> NoReturn:
        """End with the message and a suggestion."""
        choice = re.search(r"invalid choice: '(\S+)' \(choose from (.*)\)", message)
        known = re.findall(r"[\w-]+", choice[2]) if choice else []
        if choice and (near := difflib.get_close_matches(choice[1], known, 1)):
            message = f"no {choice[1]!r}; did you mean {near[0]}?"
        super().error(message)


def _parser() -> Parser:
    parser = Parser(
        prog="plumbline",
        description="Measure social and political bias in language models.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(
        name: str, about: str, run: Callable[[argparse.Namespace], None], example: str = ""
    ) -> Parser:
        made: Parser = commands.add_parser(
            name, help=about, description=f"{about}.", epilog=example and f"example: {example}"
        )
        made.set_defaults(run=run)
        return made

    example = "plumbline run politicians --model ./my-bert --language en"
    one = command("run", "run a study on a model, and print its result", _run, example)
    _add_study(one)
    example = "plumbline compare politicians ./my-bert google-bert/bert-base-uncased"
    both = command("compare", "differences of models over the same items", _compare, example)
    _add_study(both, models=True)
    both.add_argument("--to", type=Path, metavar="FOLDER", help="write tables and figures there")
    both.add_argument("--width", type=float, default=12, help="of figures, in cm (default: 12)")
    for made in (one, both):
        made.add_argument("--controls", action="store_true", help="run the control models too")
    about = "print the kind of a model and the studies that fit it, within seconds"
    checking = command("check", about, _check, "plumbline check ./my-bert")
    checking.add_argument("model", nargs="+", help="folder, or id of the Hugging Face Hub")
    checking.add_argument("--kind", default="", help="masked, causal, seq2seq or classifier")
    about = "list studies, control models, datasets, results or published numbers"
    command("ls", about, _list).add_argument("what", nargs="?", choices=LISTS, default="studies")
    _add_exports(command("export", "write tables and figures for papers, R or Stata", _export))
    page = command("report", "write a page of all results of this folder", _report)
    page.add_argument("--to", type=Path, default=REPORT, metavar="FILE")
    demo = command("demo", "run studies on the control models, on a page for newcomers", _demo)
    demo.add_argument("--model", default="", help="an additional model (default: a public one)")
    demo.add_argument(
        "--to", type=Path, default=DEMO, metavar="FOLDER", help="(default: %(default)s)"
    )
    for name, (_, about) in GROUPS.items():
        commands.add_parser(name, help=f"{about} (in a checkout)", add_help=False)
    cli.options(parser, commands)
    return parser


def _add_exports(parser: Parser) -> None:
    """Add the exports: a study of one's own models, or parts of a checkout."""
    parser.epilog = "example: plumbline export politicians --model my-bert --to paper --width 8"
    exports = parser.add_subparsers(dest="study", metavar="STUDY|" + "|".join(KINDS), required=True)
    for study in STUDIES:
        _add_study(exports.add_parser(study, help=f"the study of {study}, of your models"), False)
    for kind, (about, name) in KINDS.items():
        made = exports.add_parser(kind, help=about, description=f"{about}.")
        made.set_defaults(run=_export_checkout)
        made.add_argument("names", nargs="*", metavar=name, help="default: all that are there")
        made.add_argument("--data", type=Path, default="data", help="folder (default: data)")
        made.add_argument("--formats", default="", help="such as csv,tex,svg; default: all")
    tables: Parser = exports.choices["tables"]
    tables.epilog = "example: plumbline export tables pmi --to paper --where language=en --rows 20"
    latex = tables.add_argument_group("tables in LaTeX")
    latex.add_argument("--columns", default="", help="such as word,gender,value; default: the key")
    latex.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE")
    latex.add_argument("--rows", type=int, default=100, help="at most (default: 100)")
    for made in exports.choices.values():
        made.add_argument("--to", type=Path, required=True, metavar="FOLDER")
        made.add_argument("--width", type=float, default=12, help="of figures, in cm (default: 12)")
        cli.options(made)


def _add_study(parser: Parser, study: bool = True, *, models: bool = False) -> None:
    """Add the options of a study.

    ``study``: it is an argument; ``models``: they are arguments too, not options.
    """
    add = parser.add_argument
    if study:
        add("study", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
    about = "folder, id of the Hub, or a name in plumbline.yaml"
    if models:
        add("model", nargs="+", metavar="MODEL", help=about)
        parser.set_defaults(name="")
    else:
        about += "; default: all models there"
        add("--model", "-m", action="append", default=[], help=about)
        add("--name", default="", help="name of the model in tables")
    add("--kind", default="", help="default: as its config.json says")
    add("--revision", default="", help="branch, tag or commit; default: main")
    add("--language", help="the only language to run; default: as before, or all")
    add("--dtype", choices=["float32", "float64", "bfloat16"], help="default: float32")
    about = "a folder of a built dataset, or the id of a published one, in place of the sample"
    add("--dataset", action="append", default=[], metavar="NAME=WHERE", help=about)
    about = "a setting, such as analysis.pmi.min_count=3"
    add("--set", action="append", default=[], metavar="KEY=VALUE", help=about)


def _run(given: argparse.Namespace) -> None:
    from plumbline import runs

    models, planned = runs.plan(given)
    for run in planned:
        result = runs.execute(models, run)
        _print(result, given)
        print(f"  tables: {result.folder / 'data/tables'}")


def _print(result: Result, given: argparse.Namespace) -> None:
    """Print a result with its notes and, if wanted, its controls."""
    print(result.summary)
    for note in result.notes:
        print(f"  note: {note}")
    for control in (result.controls if given.controls else {}).values():
        print(f"  control: {control.summary}")
        for note in control.notes:
            print(f"    note: {note}")


def _compare(given: argparse.Namespace) -> None:
    from plumbline import runs
    from plumbline.comparing import FEWEST, between

    if len(given.model) < FEWEST:
        raise UserError("compare: name two models or more; the others are compared with the first")
    models, planned = runs.plan(given, again=True)
    same, *others = ({k: run.get(k) for k in ("language", *runs.OPTIONS)} for run in planned)
    if any(other != same for other in others):
        raise UserError(
            f"compare: {'; '.join(map(runs.label, planned))}: options differ; name those of the "
            "comparison (--language, --dtype, --set, --dataset)"
        )
    result = between(given.study, [runs.execute(models, run) for run in planned], same)
    _print(result, given)
    for path in result.export(given.to, width=given.width) if given.to else ():
        print(path)


def _check(given: argparse.Namespace) -> None:
    from plumbline.models import find
    from plumbline.studies import fitting

    for model in given.model:
        kind = find(model, kind=given.kind).kind
        print(f"{model}: {kind}; studies that fit: {', '.join(fitting(kind))}")


def _list(given: argparse.Namespace) -> None:
    from plumbline import runs, studies
    from plumbline.builders import DATASETS
    from plumbline.reference import published

    lists: dict[str, Callable[[], list[str]]] = {
        "studies": lambda: [f"{name:12} {s.about}" for name, s in studies.STUDIES.items()],
        "models": lambda: [
            *runs.read()["models"],
            *(f"{name}  (control)" for name in studies.control_models()),
        ],
        "datasets": lambda: list(DATASETS),
        "results": lambda: [f"{run['study']} {runs.label(run)}" for run in runs.read()["runs"]],
        "published": lambda: ["\t".join(map(str, row)) for row in published().iter_rows()],
    }
    for line in lists[given.what]():
        print(line)


def _export(given: argparse.Namespace) -> None:
    from plumbline import runs

    models, planned = runs.plan(given, again=True)
    for run in planned:
        result = runs.execute(models, run)
        for path in result.export(given.to / result.study / result.model, width=given.width):
            print(path)


def _export_checkout(given: argparse.Namespace) -> None:
    from plumbline.checkout import export
    from plumbline.latex import Selection
    from plumbline.runs import pair

    options: dict[str, Any] = {"data": given.data, "formats": _split(given.formats)}
    if given.study == "tables":
        where: dict[str, list[str]] = {}
        for name, value in (pair(text, "--where") for text in given.where):
            where.setdefault(name, []).append(value)
        options["selection"] = Selection(_split(given.columns), where, given.rows)
    for path in export(given.study, given.names, given.to, width=given.width, **options):
        print(path)


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _report(given: argparse.Namespace) -> None:
    from plumbline import page, runs

    folder = runs.read()
    if not folder["runs"]:
        raise UserError("no study has been run here yet: plumbline run STUDY --model FOLDER")
    results, notes = [], []
    keys = [tuple(run[key] for key in runs.KEY) for run in folder["runs"]]
    for run, key in zip(folder["runs"], keys, strict=True):
        dtype = {"dtype": run.get("dtype", runs.DTYPE)} if keys.count(key) > 1 else {}
        try:
            result = runs.execute(folder["models"], run)
            results.append(replace(result, model=runs.label(run | dtype)))
        except UserError as error:
            notes.append(f"left out: {run['study']} {runs.label(run)}: {error}")
    print(page.write(results, given.to, "".join(f"<p>{escape(note)}</p>" for note in notes)))
    for note in notes:
        print(f"  note: {note}")


def _demo(given: argparse.Namespace) -> None:
    from plumbline.demo import write

    made = write(given.to, given.model)
    print(made.public)
    print(f"open in a browser: {made.page}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (``docs/failures.md``)."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in GROUPS:
        status: int = import_module(f"{GROUPS[words[0]][0]}.__main__").main(words[1:])
        return status
    parser = _parser()
    given = parser.parse_args(words)
    if given.version:
        from importlib.metadata import version

        print(version("plumbline"))
        return cli.FINE
    if not given.command:
        parser.print_help()
        return cli.FINE
    return cli.run(given, lambda: given.run(given))
