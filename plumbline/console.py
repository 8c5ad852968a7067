"""The command ``plumbline``: a study of one's own model, from a terminal.

What is asked is kept in ``plumbline.yaml`` of the folder that one works in, responses and tables
in ``plumbline-results``. No file of a checkout is changed.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import re
import shlex
import sys
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from plumbline.builders.core import cli
from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plumbline.result import Result

Run = dict[str, Any]  # study, model, language, and options that are not the defaults
OVERLAY, RESULTS = Path("plumbline.yaml"), Path("plumbline-results")
DEMO = Path("plumbline-demo")
DTYPE = "float32"
RUN = ("study", "model", "language")
OPTIONS = ("dtype", "datasets", "settings")  # in a run where they are not the defaults
FLAGS = {"datasets": "--dataset", "settings": "--set"}
STUDIES = ("politicians", "stereotypes", "values", "nationality", "leaning")
GROUPS = {  # the commands of a checkout, by the name of the group
    "data": ("plumbline.builders", "build, fetch, publish, compare and trace datasets"),
    "pipeline": ("plumbline.probes", "run probes and analyses, simulate, plan, write the report"),
    "validate": ("plumbline.validation", "check datasets with Great Expectations"),
}
KINDS = {  # of what a checkout has, and what their names are
    "tables": ("tables of analyses of a checkout: CSV, parquet, LaTeX, figures", "ANALYSIS"),
    "datasets": ("datasets of a checkout: CSV, parquet", "DATASET"),
    "outputs": ("responses of models of a checkout: CSV, parquet", "PROBE"),
}
LISTS = ("studies", "models", "datasets", "results", "published")
SHELLS = ("bash", "zsh", "fish")
HEAD = "# Written by `plumbline run`: what it is put to. Edit it as you like.\n"
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
    """A parser that says what may have been meant."""

    def error(self, message: str) -> NoReturn:
        """End with the message and the nearest of what there is."""
        said = re.search(r"invalid choice: '(\S+)' \(choose from (.*)\)", message)
        if said:
            wanted, known = said[1], re.findall(r"[\w-]+", said[2])
            near = difflib.get_close_matches(wanted, known, 1)
            meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            message = f"no {wanted!r}; {meant}"
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

    def command(name: str, about: str, run: Callable[[argparse.Namespace], None]) -> Parser:
        made: Parser = commands.add_parser(name, help=about, description=f"{about}.")
        made.set_defaults(run=run)
        return made

    one = command("run", "run a study on a model, and print what is found", _run)
    one.epilog = "example: plumbline run politicians --model ./my-bert --language en"
    _of_a_study(one)
    one.add_argument("--controls", action="store_true", help="run its control models too")
    both = command("compare", "by how much two models differ, over the same items", _compare)
    both.epilog = "example: plumbline compare politicians ./my-bert google-bert/bert-base-uncased"
    _of_a_study(both, models=True)
    both.add_argument("--to", type=Path, metavar="FOLDER", help="write tables and figures there")
    both.add_argument("--width", type=float, default=12, help="of figures, in cm (default: 12)")
    both.add_argument("--controls", action="store_true", help="compare the control models too")
    checking = command(
        "check", "print the kind of a model and the studies that fit it, within seconds", _check
    )
    checking.epilog = "example: plumbline check ./my-bert"
    checking.add_argument("model", nargs="+", help="folder, or id of the Hugging Face Hub")
    checking.add_argument("--kind", default="", help="masked, causal, seq2seq or classifier")
    listing = command(
        "ls", "list studies, control models, datasets, results or what papers report", _list
    )
    listing.add_argument("what", nargs="?", choices=LISTS, default="studies")
    sending = command("export", "write tables and figures for papers, R or Stata", _export)
    _exports(sending)
    page = command("report", "write a page of all results of this folder", _report)
    page.add_argument("--to", type=Path, default=RESULTS / "index.html", metavar="FILE")
    about = "show on the control models what the studies find, on a page for newcomers"
    shown = command("demo", about, _demo)
    shown.add_argument(
        "--model", default="", help="an additional model (default: a small public one)"
    )
    shown.add_argument(
        "--to", type=Path, default=DEMO, metavar="FOLDER", help="(default: %(default)s)"
    )
    completion = command("completion", "print a completion script for a shell", _completion)
    completion.epilog = 'example: eval "$(plumbline completion bash)"'
    completion.add_argument("shell", choices=SHELLS)
    for name, (module, about) in GROUPS.items():
        made = commands.add_parser(name, help=f"{about} (in a checkout)", add_help=False)
        made.set_defaults(module=module)
    cli.options(parser, commands)
    return parser


def _exports(parser: Parser) -> None:
    """Add what can be exported: a study of one's own model, or what a checkout has."""
    parser.epilog = "example: plumbline export politicians --model my-bert --to paper --width 8"
    of = parser.add_subparsers(dest="study", metavar="STUDY|" + "|".join(KINDS), required=True)
    for study in STUDIES:
        made: Parser = of.add_parser(study, help=f"the study of {study}, of your models")
        _of_a_study(made, study=False)
    for kind, (about, name) in KINDS.items():
        made = of.add_parser(kind, help=about, description=f"{about}.")
        made.set_defaults(run=_export_checkout)
        made.add_argument("names", nargs="*", metavar=name, help="default: all that are there")
        made.add_argument("--data", type=Path, default="data", help="folder (default: data)")
        made.add_argument("--formats", default="", help="such as csv,tex,svg; default: all")
    tables: Parser = of.choices["tables"]
    tables.epilog = "example: plumbline export tables pmi --to paper --where language=en --rows 20"
    own = tables.add_argument_group("tables in LaTeX")
    own.add_argument("--columns", default="", help="such as word,gender,value; default: key, value")
    own.add_argument("--where", action="append", default=[], metavar="COLUMN=VALUE")
    own.add_argument("--rows", type=int, default=100, help="at most (default: 100)")
    for name, made in of.choices.items():
        made.add_argument("--to", type=Path, required=True, metavar="FOLDER")
        if name not in ("datasets", "outputs"):
            about = "of figures, in cm (default: 12)"
            made.add_argument("--width", type=float, default=12, help=about)
        cli.options(made)


def _of_a_study(parser: Parser, *, study: bool = True, models: bool = False) -> None:
    """Add what a study is put to models with.

    ``study``: it is an argument; ``models``: they are arguments too, not options.
    """
    if study:
        parser.add_argument("study", choices=STUDIES, metavar="STUDY", help=", ".join(STUDIES))
    about = "folder, id of the Hub, or a name in plumbline.yaml"
    if models:
        parser.add_argument("model", nargs="+", metavar="MODEL", help=about)
        parser.set_defaults(name="")
    else:
        every = f"{about}; default: all models there"
        parser.add_argument(*("--model", "-m"), action="append", default=[], help=every)
        parser.add_argument("--name", default="", help="name of the model in tables")
    parser.add_argument("--kind", default="", help="default: as its config.json says")
    parser.add_argument("--revision", default="", help="branch, tag or commit; default: main")
    parser.add_argument("--language", help="the only language to run; default: as before, or all")
    parser.add_argument("--dtype", choices=[DTYPE, "float64", "bfloat16"], help=f"default: {DTYPE}")
    parser.add_argument(
        "--dataset",
        action="append",
        default=[],
        metavar="NAME=WHERE",
        help="a folder of a built dataset, or the id of a published one, in place of the sample",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting, such as analysis.pmi.min_count=3",
    )


def _run(given: argparse.Namespace) -> None:
    models, runs = _runs(given)
    for result in [_result(models, run) for run in runs]:
        print(result.summary)
        for note in result.notes:
            print(f"  note: {note}")
        print(f"  tables: {result.folder / 'data/tables'}")
        _print_controls(result, given)


def _print_controls(result: Result, given: argparse.Namespace) -> None:
    for control in (result.controls if given.controls else {}).values():
        print(f"  control: {control.summary}")
        for note in control.notes:
            print(f"    note: {note}")


def _compare(given: argparse.Namespace) -> None:
    from plumbline.comparing import FEWEST, between

    if len(given.model) < FEWEST:
        raise UserError("compare: name two models or more; the others are compared with the first")
    models, runs = _runs(given, again=True)
    same, *others = ({key: run.get(key) for key in ("language", *OPTIONS)} for run in runs)
    if any(other != same for other in others):
        raise UserError(
            f"compare: {'; '.join(map(_named, runs))}: options differ; name those of the "
            "comparison (--language, --dtype, --set, --dataset)"
        )
    found = between(given.study, [_result(models, run) for run in runs], same)
    print(found.summary)
    for path in found.export(given.to, width=given.width) if given.to else ():
        print(path)
    _print_controls(found, given)


def _options(overlay: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a command, over those of the folder, that are not the defaults."""
    settings = {key: _value(text) for key, text in (_pair(text, "--set") for text in given.set)}
    options = {
        "dtype": given.dtype if given.dtype != DTYPE else None,
        "datasets": overlay["datasets"] | dict(_pair(text, "--dataset") for text in given.dataset),
        "settings": overlay["settings"] | settings,
    }
    return {key: value for key, value in options.items() if value}


def _runs(given: argparse.Namespace, *, again: bool = False) -> tuple[dict[str, Any], list[Run]]:
    """Return the models of the folder and of the command, and a run for each that is named.

    ``again``: a command without options has those of the model's last run.
    """
    from plumbline.models import find

    overlay = _overlay()
    models, runs = overlay["models"], []
    if given.name and len(given.model) != 1:
        raise UserError("--name: give exactly one --model with it")
    if not given.model and not models:
        raise UserError("name a model: --model FOLDER, or an id of the Hugging Face Hub")
    options = _options(overlay, given)
    again = again and not (given.dtype or given.dataset or given.set)
    for model in given.model or list(models):
        entry = models.get(model, {})
        how = {key: getattr(given, key) or entry.get(key, "") for key in ("kind", "revision")}
        name = given.name or (model if entry else "")
        found = find(entry.get("id", model), name=name, **how)
        own = found.entry or {}
        pinned = models.setdefault(found.name, own) if own else {}
        if not entry and pinned.get("id") != own.get("id"):
            raise UserError(f"{OVERLAY}: {found.name} is {pinned['id']}; give {model} a --name")
        wanted = {"study": given.study, "model": found.name}
        wanted |= {"language": given.language} if given.language else {}
        earlier = (run for run in reversed(overlay["runs"]) if wanted.items() <= run.items())
        before: Run = next(earlier, {})
        run = wanted | {"language": given.language or before.get("language")}
        run |= {key: own[key] for key in how if own.get(key) != pinned.get(key)}
        last = {key: before[key] for key in OPTIONS if key in before}
        runs.append(run | (last if again and before else options))
    return models, runs


def _result(models: dict[str, Any], run: Run) -> Result:
    """Return the result of a run, and record it; runs with other options have other folders."""
    from plumbline.studies import ask

    entry = models.get(run["model"], {"id": run["model"]})  # or a control model
    options = {key: value for key, value in run.items() if key not in RUN}
    text = json.dumps(options, sort_keys=True, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()[:8] if options else ""
    study, name, language = (run[key] for key in RUN)
    into = RESULTS / "-".join(filter(None, (study, name, language, digest)))
    how = {key: entry.get(key, "") for key in ("kind", "revision")} | options
    result = ask(study, entry["id"], name=name, language=language, into=into, **how)
    _keep(models.get(name), run)
    return result


def _named(run: Run) -> str:
    """Return the model of a run with its language and options, as a command has them."""
    words = [run["model"]]
    for key, value in run.items():
        if value and key not in RUN[:2]:
            pairs = value.items() if isinstance(value, dict) else ()
            texts = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in pairs]
            words += [w for text in texts or [value] for w in (FLAGS.get(key, f"--{key}"), text)]
    return shlex.join(words)


def _overlay() -> dict[str, Any]:
    from plumbline.builders.core.params import parse

    empty: dict[str, Any] = {"models": {}, "datasets": {}, "settings": {}, "runs": []}
    found = parse(OVERLAY) if OVERLAY.is_file() else {}
    if unknown := sorted(set(found) - set(empty)):
        raise UserError(f"{OVERLAY}: unknown {', '.join(unknown)}; there are {', '.join(empty)}")
    return {key: found.get(key) or value for key, value in empty.items()}


def _keep(entry: dict[str, Any] | None, run: Run) -> None:
    """Record a run as the last one, and its model, in the overlay as it is now on disk."""
    import yaml
    from filelock import FileLock

    from plumbline.builders.core.snapshot import write_bytes

    with FileLock(RESULTS / ".lock"):  # other commands may have recorded theirs
        overlay = _overlay()
        if entry:
            overlay["models"].setdefault(run["model"], entry)
        overlay["runs"] = [other for other in overlay["runs"] if other != run] + [run]
        text = HEAD + yaml.safe_dump(overlay, sort_keys=False, allow_unicode=True)
        write_bytes(OVERLAY, text.encode())


def _pair(text: str, option: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise UserError(f"{option} {text}: write NAME=VALUE")
    return name, value


def _value(text: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UserError(f"--set: {text}: not a value in YAML") from error


def _check(given: argparse.Namespace) -> None:
    from plumbline.models import find
    from plumbline.studies import fitting

    for model in given.model:
        found = find(model, kind=given.kind)
        fits = ", ".join(fitting(found.kind))
        print(f"{model}: {found.kind}; studies that fit: {fits}")


def _list(given: argparse.Namespace) -> None:
    from plumbline import studies

    if given.what == "studies":
        for name, study in studies.STUDIES.items():
            print(f"{name:12} {study.about}")
    elif given.what == "models":
        print(*_overlay()["models"], sep="\n", end="\n" if _overlay()["models"] else "")
        print(*(f"{name}  (control)" for name in studies.control_models()), sep="\n")
    elif given.what == "published":
        from plumbline.reference import published

        for row in published().iter_rows():
            print(*row, sep="\t")
    elif given.what == "datasets":
        from plumbline.builders import DATASETS

        print(*DATASETS, sep="\n")
    else:
        for run in _overlay()["runs"]:
            print(run["study"], _named(run))


def _export(given: argparse.Namespace) -> None:
    models, runs = _runs(given, again=True)
    for result in [_result(models, run) for run in runs]:
        for path in result.export(given.to / result.study / result.model, width=given.width):
            print(path)


def _export_checkout(given: argparse.Namespace) -> None:
    from plumbline.checkout import export
    from plumbline.latex import Selection

    chosen: dict[str, Any] = {}
    if given.study == "tables":
        where: dict[str, list[str]] = {}
        for name, value in (_pair(text, "--where") for text in given.where):
            where.setdefault(name, []).append(value)
        chosen["selection"] = Selection(_listed(given.columns), where, given.rows)
        chosen["width"] = given.width
    formats = _listed(given.formats)
    made = export(given.study, given.names, given.to, data=given.data, formats=formats, **chosen)
    for path in made:
        print(path)


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _report(given: argparse.Namespace) -> None:
    from plumbline.page import write

    overlay = _overlay()
    runs, results, notes = overlay["runs"], [], []
    if not runs:
        raise UserError("no study has been run here yet: plumbline run STUDY --model FOLDER")
    for run in runs:
        several = sum(all(other[key] == run[key] for key in RUN) for other in runs) > 1
        shown = _named(run | {"dtype": run.get("dtype", DTYPE)} if several else run)
        try:
            results.append(replace(_result(overlay["models"], run), model=shown))
        except UserError as error:
            notes.append(f"left out: {run['study']} {_named(run)}: {error}")
    before = "".join(f"<p>{escape(note)}</p>" for note in notes)
    print(write(results, given.to, before))
    for note in notes:
        print(f"  note: {note}")


def _demo(given: argparse.Namespace) -> None:
    from plumbline.demo import write

    made = write(given.to, given.model)
    print(made.public)
    print(f"open in a browser: {made.page}")


def _completion(given: argparse.Namespace) -> None:
    commands = ["run", "compare", "check", "ls", "export", "report", "demo", "completion"]
    commands += GROUPS
    words = " ".join([*commands, *STUDIES, *LISTS, *KINDS])
    if given.shell == "fish":
        print(f"complete -c plumbline -f -a '{words}'")
        return
    if given.shell == "zsh":
        print("autoload -U +X bashcompinit && bashcompinit")
    print(f"complete -o default -W '{words}' plumbline")


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit status (``docs/failures.md``)."""
    words = sys.argv[1:] if arguments is None else arguments
    if words and words[0] in GROUPS:
        from importlib import import_module

        module, _ = GROUPS[words[0]]
        status: int = import_module(f"{module}.__main__").main(words[1:])
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
