"""The runs of a working folder: models, and the options of each study, in ``plumbline.yaml``.

Responses and tables are in ``plumbline-results``. No file of a checkout is changed.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from filelock import FileLock

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import parse
from plumbline.builders.core.snapshot import write_bytes
from plumbline.models import find
from plumbline.studies import ask

if TYPE_CHECKING:
    import argparse

    from plumbline.result import Result

Run = dict[str, Any]  # study, model, language, and options other than the defaults
FILE, RESULTS = Path("plumbline.yaml"), Path("plumbline-results")
HEAD = "# Written by `plumbline run`: models and runs. Edit it as you like.\n"
KEY = ("study", "model", "language")
OPTIONS = ("dtype", "datasets", "settings")
FLAGS = {"datasets": "--dataset", "settings": "--set"}
DTYPE = "float32"


def read() -> dict[str, Any]:
    """Return models, datasets, settings and runs of the folder."""
    empty: dict[str, Any] = {"models": {}, "datasets": {}, "settings": {}, "runs": []}
    found = parse(FILE) if FILE.is_file() else {}
    if unknown := sorted(set(found) - set(empty)):
        raise UserError(f"{FILE}: unknown {', '.join(unknown)}; there are {', '.join(empty)}")
    return {key: found.get(key) or value for key, value in empty.items()}


def plan(given: argparse.Namespace, *, again: bool = False) -> tuple[dict[str, Any], list[Run]]:
    """Return the models of the folder and of a command, and a run for each that it names.

    Parameters
    ----------
    given
        Arguments of the command.
    again
        Whether a command without options repeats the model's last run.
    """
    folder = read()
    models, runs = folder["models"], []
    if given.name and len(given.model) != 1:
        raise UserError("--name: give exactly one --model with it")
    if not given.model and not models:
        raise UserError("name a model: --model FOLDER, or an id of the Hugging Face Hub")
    options = _options(folder, given)
    again = again and not (given.dtype or given.dataset or given.set)
    for model in given.model or list(models):
        recorded = models.get(model, {})
        how = {key: getattr(given, key) or recorded.get(key, "") for key in ("kind", "revision")}
        name = given.name or (model if recorded else "")
        found = find(recorded.get("id", model), name=name, **how)
        entry = found.entry or {}
        pinned = models.setdefault(found.name, entry) if entry else {}
        if not recorded and pinned.get("id") != entry.get("id"):
            raise UserError(f"{FILE}: {found.name} is {pinned['id']}; give {model} a --name")
        wanted = {"study": given.study, "model": found.name}
        wanted |= {"language": given.language} if given.language else {}
        earlier = [run for run in folder["runs"] if wanted.items() <= run.items()]
        last: Run = earlier[-1] if earlier else {}
        run = wanted | {"language": given.language or last.get("language")}
        run |= {key: entry[key] for key in how if entry.get(key) != pinned.get(key)}
        repeated = {key: last[key] for key in OPTIONS if key in last}
        runs.append(run | (repeated if again and last else options))
    return models, runs


def execute(models: dict[str, Any], run: Run) -> Result:
    """Return the result of a run, and record it; each set of options has a folder of its own."""
    entry = models.get(run["model"], {"id": run["model"]})
    options = {key: value for key, value in run.items() if key not in KEY}
    text = json.dumps(options, sort_keys=True, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()[:8] if options else ""
    study, name, language = (run[key] for key in KEY)
    into = RESULTS / "-".join(filter(None, (study, name, language, digest)))
    how = {key: entry.get(key, "") for key in ("kind", "revision")} | options
    result = ask(study, entry["id"], name=name, language=language, into=into, **how)
    _record(models.get(name), run)
    return result


def label(run: Run) -> str:
    """Return the model of a run with its language and options, as arguments of a command."""
    words = [run["model"]]
    for key, value in run.items():
        if value and key not in KEY[:2]:
            pairs = value.items() if isinstance(value, dict) else ()
            texts = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in pairs]
            for text in texts or [value]:
                words += [FLAGS.get(key, f"--{key}"), text]
    return shlex.join(words)


def pair(text: str, option: str) -> tuple[str, str]:
    """Return name and value of an argument NAME=VALUE."""
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise UserError(f"{option} {text}: write NAME=VALUE")
    return name, value


def _options(folder: dict[str, Any], given: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a command, over those of the folder, that are not the defaults."""
    datasets = dict(pair(text, "--dataset") for text in given.dataset)
    settings = {}
    for key, text in (pair(text, "--set") for text in given.set):
        try:
            settings[key] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UserError(f"--set: {text}: not a value in YAML") from error
    options = {
        "dtype": given.dtype if given.dtype != DTYPE else None,
        "datasets": folder["datasets"] | datasets,
        "settings": folder["settings"] | settings,
    }
    return {key: value for key, value in options.items() if value}


def _record(entry: dict[str, Any] | None, run: Run) -> None:
    """Record a run as the last one, and its model, in the file as it is now on disk."""
    with FileLock(RESULTS / ".lock"):  # other commands may have recorded theirs
        folder = read()
        if entry:
            folder["models"].setdefault(run["model"], entry)
        folder["runs"] = [other for other in folder["runs"] if other != run] + [run]
        text = HEAD + yaml.safe_dump(folder, sort_keys=False, allow_unicode=True)
        write_bytes(FILE, text.encode())
