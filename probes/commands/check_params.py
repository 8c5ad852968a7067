"""Check all params, and report all problems at once."""

from __future__ import annotations

import importlib
import itertools
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from plumbline.builders import DATASETS, SOURCES
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import FILE, Params, read
from plumbline.builders.core.params import check as check_sections
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.probes import ALL, ASIDE, EACH, POOLED, PROBES, module_of
from plumbline.probes.commands.families import too_few
from plumbline.probes.core import assignments
from plumbline.probes.models import load
from plumbline.probes.models.params import NAME, VERBS, Model, verbs, worlds
from plumbline.probes.training import checkpoints, pretrain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LOCAL = (".", "/", "data/")  # an id with one of these prefixes is a folder
ABOVE = {  # for each list, the list that must also contain all its models
    "words": "associations",
    "representations": "words",
    "subgroups": "associations",
    "after_training": "completions",
    "finetuned_classifiers": "stances",
}

# Millions of tokens (all, before, from): articles of AllSides, and posts of the paper (Table 8)
NEWS = {"left": (18.6, 9.8, 7.2), "center": (13.1, 3.9, 7.1), "right": (14.1, 6.2, 6.3)}
POSTS = {"left": (35.5, 10.6, 24.8), "center": (33.0, 14.5, 18.5), "right": (47.1, 18.9, 28.2)}
TOKENS = {f"{k}-{side}": n for k, x in (("news", NEWS), ("social", POSTS)) for side, n in x.items()}


def sections() -> dict[str, type[Params]]:
    """Return the class of every section of the params except `models`, by dotted key."""
    from plumbline.builders.fetch.http import Politeness
    from plumbline.builders.release.params import Params as Publish
    from plumbline.probes.stereotypes import waves

    models: dict[str, type[Params]] = {
        "sources.politeness": Politeness,
        "waves": waves.Params,
        "publish": Publish,
        "assignments": assignments.Params,
        "controls": assignments.Controls,
        pretrain.KEY: pretrain.Params,
    }
    modules = {f"sources.{s}": f"plumbline.builders.datasets.{d}.fetch" for s, d in SOURCES.items()}
    modules |= {f"datasets.{d}": f"plumbline.builders.datasets.{d}.build" for d in DATASETS}
    modules |= {f"validation.{d}": f"plumbline.validation.datasets.{d}" for d in DATASETS}
    modules |= {f"analysis.{a}": module_of(a) for a in (*EACH, *ALL, *ASIDE)}
    for key, path in modules.items():
        module: Any = importlib.import_module(path)
        prefix, _, name = key.partition(".")
        if prefix == "datasets" and (hasattr(module, "INPUTS") or hasattr(module, "SOURCES")):
            prefix = "derived"
        models[f"{prefix}.{name}"] = module.Params
    for name in PROBES:
        models[f"probes.{name}"] = importlib.import_module(module_of(name)).Params
    return models


def check() -> None:
    """Validate every section of the params, and report unknown keys.

    Raises
    ------
    UserError
        If there is any problem; the message lists all of them.
    """
    refuse(FILE.name, problems_of(FILE))


def refuse(file: str, problems: Sequence[str]) -> None:
    """Raise UserError if a file has problems; the message lists all of them."""
    if problems:
        raise UserError("\n  ".join([f"{file}: {len(problems)} problem(s) to fix:", *problems]))


def problems_of(path: Path, source: str = FILE.name, *, fetched: bool = True) -> list[str]:
    """Return all problems in a params file.

    Parameters
    ----------
    source
        Name, used in messages, of the file that lists the models.
    fetched
        Whether the snapshots must exist.
    """
    tree, known, problems = read(path), sections(), list[str]()
    names = [name for name in at(tree, "models") if NAME.fullmatch(str(name))]
    try:
        check_sections(known | {f"models.{name}": Model for name in names}, path)
    except UserError as problem:
        problems += map(str.strip, str(problem).splitlines()[1:])
    valid = not problems
    advice = "fetch one (python -m plumbline.builders fetch SOURCE) or `dvc pull` it"
    absent = absent_snapshots(tree) if fetched else {}
    problems += [f"{k}: no whole snapshot in {folder}; {advice}" for k, folder in absent.items()]
    parts = [_models(tree, source), _unknown(tree, known)]
    models = tree.get("models") or {}
    if isinstance(models, dict):
        planted = {name: world.model_dump(exclude_none=True) for name, world in worlds().items()}
        lists = _assigned_lists(tree)
        parts += [_assigned(tree, planted | models, lists), _trained(tree, planted | models, lists)]
        if valid:
            params = {k: cls.model_validate(at(tree, *k.split("."))) for k, cls in known.items()}
            parts += [too_few(params, planted | models, lists, planted)]
    return [*problems, *itertools.chain.from_iterable(parts)]


def corpus_shares(tree: dict[str, Any]) -> Iterator[str]:
    """Yield the share of each corpus that the runs of a model's further pretraining read."""
    with suppress(ValidationError):  # reported with all other problems
        params = pretrain.Params(**at(tree, *pretrain.KEY.split(".")))
        for corpus, sizes in TOKENS.items():
            parts, runs = [], f"{len(params.seeds)} runs on {corpus}"
            for period, millions in zip(get_args(pretrain.Period), sizes, strict=True):
                read = len(params.seeds) * params.tokens(corpus, period) / 1e6 or millions
                parts += [f"{min(1, read / millions):.0%} of {millions:g} million ({period})"]
            yield f"{pretrain.KEY}: {runs} together read of its tokens {', '.join(parts)}"


def at(tree: Any, *keys: str) -> dict[str, Any]:
    """Return a section of the params, or an empty dict if it is missing or not a mapping."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def _unknown(tree: dict[str, Any], classes: dict[str, type[Params]]) -> Iterator[str]:
    sectioned = {key.split(".")[0] for key in classes if "." in key}
    known = sorted({"models", *sectioned, *classes})
    keys = [*map(str, tree), *(f"{top}.{name}" for top in sectioned for name in at(tree, top))]
    for key in sorted({*keys} - {*known}):
        above, _, last = key.rpartition(".")
        among = {n.rpartition(".")[2]: n for n in known if n.rpartition(".")[0] == above}
        hint = "".join(f"; did you mean {among[n]}?" for n in get_close_matches(last, among, 1))
        yield f"{key}: unknown section{hint}; docs/params.md lists all sections"


def _models(tree: dict[str, Any], file: str) -> Iterator[str]:
    """Yield problems with models' names, with missing commits, and with configs of local models."""
    if not isinstance(tree.get("models") or {}, dict):
        yield "models: needs entries, each a name with id and revision, or endpoint"
    unpinned = []
    for name in at(tree, "models"):
        if name in worlds():
            yield f"models.{name}: a control model has this name; rename the entry"
        if not NAME.fullmatch(str(name)) or name == POOLED:
            yield f"models.{name}: a name has letters, digits, - and _ only, and is not {POOLED}"
        entry = at(tree, "models", name)
        where, kind = entry.get("id"), entry.get("kind", "masked")
        if not isinstance(where, str):
            continue
        if not where.startswith(LOCAL):
            unpinned += [] if entry.get("revision") else [name]
        elif kind in VERBS:
            try:
                load.look(Path(where), f"models.{name}: {where}", kind)
            except UserError as problem:
                yield str(problem)
    if unpinned:
        which = f"{len(unpinned)} on the Hub without a commit ({', '.join(map(str, unpinned))})"
        command = f"`python -m plumbline.probes pin {file}`"
        yield f"models: {which}; {command} looks the commits up on the Hub and adds them"


def named_snapshots(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the folder of each snapshot named in the params, by dotted key."""
    named = {
        f"datasets.{name}.snapshot": at(tree, "datasets", name).get("snapshot")
        for name in at(tree, "datasets")
    }
    for name in at(tree, "derived"):
        for source, folder in at(tree, "derived", name, "snapshots").items():
            named[f"derived.{name}.snapshots.{source}"] = folder
    return named | {f"waves.{end}": at(tree, "waves").get(end) for end in ("earlier", "later")}


def absent_snapshots(tree: dict[str, Any]) -> dict[str, str]:
    """Return the snapshots that are named in the params but missing."""
    return {
        key: folder
        for key, folder in named_snapshots(tree).items()
        if isinstance(folder, str) and not (Path(folder) / MANIFEST).is_file()
    }


def _assigned_lists(tree: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the models of each probe: the user's, and the control models if they are run."""
    controls, merged = at(tree, "controls"), dict[str, list[Any]]()
    for lists in (at(tree, "assignments"), controls if controls.get("sets") else {}):
        for name, models in lists.items():
            if name != "sets" and isinstance(models, list):
                merged[name] = [*merged.get(name, []), *models]
    return merged


def _assigned(
    tree: dict[str, Any], models: dict[str, Any], lists: dict[str, list[Any]]
) -> Iterator[str]:
    """Yield problems with assigned models that are missing or unsuitable for a probe."""
    for probe, names in lists.items():
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"assignments.{probe}: {name} is listed twice, or also as a control"
        needed = verbs(importlib.import_module(module_of(probe)).VERB) if probe in PROBES else None
        above = ABOVE.get(probe)
        for name in names:
            top = "assignments" if name in at(tree, "assignments").get(probe, ()) else "controls"
            key = f"{top}.{probe}"
            if name not in models:
                yield f"{key}: no {name!r} under models; available: {', '.join(map(str, models))}"
                continue
            kind = at(models, name).get("kind", "masked")
            if needed and kind in VERBS and not needed & VERBS[kind]:
                yield f"{key}: {name} is of kind {kind}, which cannot {' or '.join(sorted(needed))}"
            if above and name not in (lists.get(above) or ()):
                yield f"{key}: {name} must be in {top}.{above} too"
    judge = at(tree, "probes", "stances", "generation").get("nli_model")
    if lists.get("stances") and judge and judge not in models:
        yield f"probes.stances.generation.nli_model: no {judge!r} under models"


def _trained(
    tree: dict[str, Any], models: dict[str, Any], lists: dict[str, list[Any]]
) -> Iterator[str]:
    """Yield problems with the models and corpora of further pretraining."""
    training = at(tree, *pretrain.KEY.split("."))
    corpora, where = training.get("corpora"), f"{pretrain.KEY}.corpora"
    if not isinstance(corpora, dict):
        return
    for name, chosen in corpora.items():
        if name not in models and name != checkpoints.OTHER:
            yield f"{where}: no {name!r} under models; available: {', '.join(models)}"
        for corpus in chosen if isinstance(chosen, list) else []:
            if corpus not in CONFIGS:
                yield f"{where}.{name}: no {corpus!r} in corpora; available: {', '.join(CONFIGS)}"
    rates = training.get("learning_rate")
    for name in lists.get("stances", ()):
        kind, chosen = at(models, name).get("kind", "masked"), corpora.get(name)
        if chosen is None:  # a stage depends only on the entry of its own model
            yield f"{where}: no entry for {name} of assignments.stances; write []"
        elif chosen and kind not in pretrain.TRAINED:
            yield f"{where}: {name} is of kind {kind}, which cannot be trained further; write []"
        elif chosen and isinstance(rates, dict) and not {name, checkpoints.OTHER} & set(rates):
            yield f"{pretrain.KEY}.learning_rate: no entry for {name} or other; add one"
