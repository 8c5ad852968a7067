"""Record the runs of a working folder, with their models and options, in ``plumbline.yaml``.

Responses and tables are stored in ``plumbline-results``; no file of a checkout is changed.
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

Run = dict[str, Any]  # study, model, language, and the options that differ from the defaults
FILE, RESULTS = Path("plumbline.yaml"), Path("plumbline-results")
HEAD = "# Written by `plumbline run`: models and runs. Edit it as you like.\n"
KEY = ("study", "model", "language")
OPTIONS = ("dtype", "datasets", "settings")
WEIGHTS = ("kind", "revision")
FLAGS = {"datasets": "--dataset", "settings": "--set"}
DTYPE = "float32"


def read() -> dict[str, Any]:
    """Return the models, datasets, settings and runs recorded in the working folder."""
    empty: dict[str, Any] = {"models": {}, "datasets": {}, "settings": {}, "runs": []}
    stored = parse(FILE) if FILE.is_file() else {}
    if unknown := sorted(set(stored) - set(empty)):
        raise UserError(f"{FILE}: unknown {', '.join(unknown)}; available: {', '.join(empty)}")
    return {key: stored.get(key) or value for key, value in empty.items()}


def plan(arguments: argparse.Namespace, *, again: bool = False) -> tuple[dict[str, Any], list[Run]]:
    """Return all recorded models, and one run for each model named by a command.

    ``again``: True if a command without options repeats the last run of the model.
    """
    folder = read()
    models, runs = folder["models"], []
    if arguments.name and len(arguments.model) != 1:
        raise UserError("--name: requires exactly one --model")
    if not arguments.model and not models:
        raise UserError("no model is named; use --model with a folder or a Hub id")
    options = _options(folder, arguments)
    again = again and not (arguments.dtype or arguments.dataset or arguments.set)
    for model in arguments.model or list(models):
        recorded = models.get(model, {})
        weights = {key: getattr(arguments, key) or recorded.get(key, "") for key in WEIGHTS}
        name = arguments.name or (model if recorded else "")
        target = find(recorded.get("id", model), name=name, **weights)
        entry = target.entry or {}
        pinned = models.setdefault(target.name, entry) if entry else {}
        if not recorded and pinned.get("id") != entry.get("id"):
            raise UserError(f"{FILE}: {target.name} names {pinned['id']}; set another --name")
        run: Run = {"study": arguments.study, "model": target.name}
        run |= {"language": arguments.language} if arguments.language else {}
        last: Run = next((r for r in reversed(folder["runs"]) if run.items() <= r.items()), {})
        run["language"] = arguments.language or last.get("language")
        run |= {key: entry[key] for key in WEIGHTS if entry.get(key) != pinned.get(key)}
        repeated = {key: last[key] for key in OPTIONS if key in last}
        runs.append(run | (repeated if again and last else options))
    return models, runs


def execute(models: dict[str, Any], run: Run) -> Result:
    """Execute a run and record it; each set of options has its own folder."""
    study, name, language = (run[key] for key in KEY)
    entry = models.get(name, {"id": name})
    options = {key: value for key, value in run.items() if key not in KEY}
    text = json.dumps(options, sort_keys=True, default=str).encode()
    digest = hashlib.sha256(text).hexdigest()[:8] if options else ""
    into = RESULTS / "-".join(filter(None, (study, name, language, digest)))
    options = {key: entry.get(key, "") for key in WEIGHTS} | options
    result = ask(study, entry["id"], name=name, language=language, into=into, **options)
    with FileLock(RESULTS / ".lock"):  # other commands may have added runs in the meantime
        folder = read()
        if name in models:
            folder["models"].setdefault(name, entry)
        folder["runs"] = [recorded for recorded in folder["runs"] if recorded != run] + [run]
        written = HEAD + yaml.safe_dump(folder, sort_keys=False, allow_unicode=True)
        write_bytes(FILE, written.encode())
    return result


def label(run: Run) -> str:
    """Format the model, language and options of a run as command-line arguments."""
    words = [run["model"]]
    for key, value in run.items():
        if value and key not in KEY[:2]:
            pairs = value.items() if isinstance(value, dict) else ()
            texts = [f"{k}={v if isinstance(v, str) else json.dumps(v)}" for k, v in pairs]
            for text in texts or [value]:
                words += [FLAGS.get(key, f"--{key}"), text]
    return shlex.join(words)


def pairs_of(texts: list[str], option: str) -> list[tuple[str, str]]:
    """Split arguments of the form NAME=VALUE."""
    pairs = [(name, value) for name, _, value in (text.partition("=") for text in texts)]
    for text, pair in zip(texts, pairs, strict=True):
        if not all(pair):
            raise UserError(f"{option} {text}: must have the form NAME=VALUE")
    return pairs


def _options(folder: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the non-default options set by a command and by the working folder."""
    settings = {}
    for key, text in pairs_of(arguments.set, "--set"):
        try:
            settings[key] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UserError(f"--set: {text}: not a valid YAML value") from error
    options = {
        "dtype": arguments.dtype if arguments.dtype != DTYPE else None,
        "datasets": folder["datasets"] | dict(pairs_of(arguments.dataset, "--dataset")),
        "settings": folder["settings"] | settings,
    }
    return {key: value for key, value in options.items() if value}
