"""Checking the whole of params.yaml at once."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from plumbline.builders import DATASETS, SOURCES
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import FILE, Params, read
from plumbline.builders.core.params import check as check_sections
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.corpora.build import CONFIGS
from plumbline.probes import ALL, EACH, PROBES, module_of
from plumbline.probes.core import assignments
from plumbline.probes.models.params import NAME, VERBS, Model, verbs, worlds
from plumbline.probes.training import pretrain

WHOLE = ("models", "assignments", "controls", "drift", "publish")  # sections without sections
LOCAL = (".", "/", "data/")  # an id that begins so is a folder
# The list of `assignments` that another one is a part of, where that is not associations.
ABOVE = {  # list whose models one list is of
    "words": "associations",
    "representations": "words",
    "subgroups": "associations",
    "robustness": "words",
    "finetuned": "stereotypes",
    "finetune": "leaning",
}


def sections() -> dict[str, type[Params]]:
    """Return the model of every section of params.yaml, by dotted key, models left out."""
    from plumbline.builders.fetch.http import Politeness
    from plumbline.builders.release import publish
    from plumbline.probes.stereotypes import waves as drift

    found: dict[str, type[Params]] = {
        "sources.politeness": Politeness,
        "drift": drift.Params,
        "publish": publish.Params,
        "assignments": assignments.Params,
        "controls": assignments.Controls,
        pretrain.KEY: pretrain.Params,
    }
    modules = {f"sources.{s}": f"plumbline.builders.datasets.{d}.fetch" for s, d in SOURCES.items()}
    modules |= {f"datasets.{d}": f"plumbline.builders.datasets.{d}.build" for d in DATASETS}
    modules |= {f"validation.{d}": f"plumbline.validation.datasets.{d}" for d in DATASETS}
    modules |= {f"analysis.{a}": module_of(a) for a in (*EACH, *ALL)}
    for key, path in modules.items():
        module: Any = importlib.import_module(path)
        prefix, _, name = key.partition(".")
        if prefix == "datasets" and (hasattr(module, "INPUTS") or hasattr(module, "SOURCES")):
            prefix = "derived"
        found[f"{prefix}.{name}"] = module.Params
    for name in PROBES:
        found[f"probes.{name}"] = importlib.import_module(module_of(name)).Params
    return found


def check(path: Path = FILE, *, source: str | None = None, fetched: bool = True) -> None:
    """Validate every section, and that no key is there that nothing reads.

    Parameters
    ----------
    source
        The file that the models stand in, where it is another one: the one to be told.
    fetched
        Whether the snapshots must be there.

    Raises
    ------
    Problem
        One message with all problems.
    """
    tree = read(path)
    known = sections()
    models, problems = _models(tree)
    known |= models
    try:
        check_sections(known, path)
    except Problem as problem:
        problems += str(problem).splitlines()[1:]
    problems += _unpinned(tree, source or FILE.name)
    problems += _snapshots(tree) if fetched else []
    problems += _assigned(tree)
    problems += _trained(tree)
    tops = {"models", *(key.split(".")[0] for key in known)}
    for top, value in tree.items():
        if top not in tops:
            problems.append(f"  {top}: unknown section; see docs/params.md for the ones that exist")
        elif isinstance(value, dict):
            own = {key.split(".", 1)[1] for key in known if key.startswith(f"{top}.")}
            for name in value:
                if name not in own and top not in (
                    "models",
                    "assignments",
                    "controls",
                    "drift",
                    "publish",
                ):
                    problems.append(f"  {top}.{name}: unknown; there are {', '.join(sorted(own))}")
    if problems:
        raise Problem("\n".join([f"params.yaml: {len(problems)} problem(s) to mend:", *problems]))


def _models(tree: dict[str, Any]) -> tuple[dict[str, type[Params]], list[str]]:
    """Return the sections of the models, and what is wrong with their names."""
    models = tree.get("models") or {}
    if not isinstance(models, dict):
        return {}, ["  models: needs entries, each a name with id and revision, or endpoint"]
    good = [name for name in models if NAME.fullmatch(str(name))]
    bad = [name for name in models if name not in good]
    problems = [f"  models.{name}: a name has letters, digits, - and _ only" for name in bad]
    return {f"models.{name}": Model for name in good}, problems


def there(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Return the entries of all models, planted worlds among them; None if params have no such."""
    models = tree.get("models") or {}
    if not isinstance(models, dict):
        return None
    return {name: world.model_dump(exclude_none=True) for name, world in worlds().items()} | models


def _unpinned(tree: dict[str, Any], file: str) -> list[str]:
    """Return the command that looks up the commits that models lack, if any does."""
    models = tree.get("models")
    lacking = [
        name
        for name, entry in (models if isinstance(models, dict) else {}).items()
        if isinstance(entry, dict) and lacks_commit(entry)
    ]
    if not lacking:
        return []
    told = f"  models: {len(lacking)} of the Hub without a commit ({', '.join(lacking)}); "
    return [
        told
        + f"`python -m plumbline.probes pin {file}` asks the Hub for them and writes them there"
    ]


def lacks_commit(entry: dict[str, Any]) -> bool:
    """Return whether an entry names a model of the Hub and no commit."""
    name = entry.get("id")
    return isinstance(name, str) and not entry.get("revision") and not name.startswith(LOCAL)


def named_snapshots(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the folders of snapshots that params name, by key."""
    datasets = tree.get("datasets")
    named = {
        f"datasets.{name}.snapshot": entry.get("snapshot") if isinstance(entry, dict) else None
        for name, entry in (datasets if isinstance(datasets, dict) else {}).items()
    }
    derived = tree.get("derived")
    for name, entry in (derived if isinstance(derived, dict) else {}).items():
        several = entry.get("snapshots") if isinstance(entry, dict) else None
        for source, folder in (several if isinstance(several, dict) else {}).items():
            named[f"derived.{name}.snapshots.{source}"] = folder
    waves = tree.get("drift")
    for end in ("earlier", "later"):
        named[f"drift.{end}"] = waves.get(end) if isinstance(waves, dict) else None
    return named


def _snapshots(tree: dict[str, Any]) -> list[str]:
    """Return the snapshots that params name but that are not there, which DVC would not explain."""
    found = []
    for key, folder in named_snapshots(tree).items():
        if isinstance(folder, str) and not (Path(folder) / MANIFEST).is_file():
            found.append(
                f"  {key}: no whole snapshot in {folder}; fetch one "
                "(python -m plumbline.builders fetch SOURCE) or `dvc pull` it"
            )
    return found


def assigned(tree: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the models of each probe in a tree of params: the user's, and the controls if run."""
    found: dict[str, list[Any]] = {}
    controls = tree.get("controls")
    if isinstance(controls, dict) and not controls.get("sets"):
        controls = None
    for lists in (tree.get("assignments"), controls):
        for what, names in (lists if isinstance(lists, dict) else {}).items():
            if what != "sets" and isinstance(names, list):
                found[what] = [*found.get(what, []), *names]
    return found


def _assigned(tree: dict[str, Any]) -> list[str]:
    """Return the models that are assigned and are not there, or cannot do what is needed."""
    found = []
    models, lists = there(tree), assigned(tree)
    if models is None:
        return []
    for what, names in lists.items():
        verb = importlib.import_module(module_of(what)).VERB if what in PROBES else None
        for name in names:
            if name not in models:
                known = ", ".join(map(str, models))
                found.append(f"  assignments.{what}: no {name!r} under models; there are {known}")
                continue
            kind = models[name].get("kind", "masked") if isinstance(models[name], dict) else None
            if verb and kind in VERBS and not verbs(verb) & VERBS[kind]:
                ways = " or ".join(sorted(verbs(verb)))
                found.append(f"  assignments.{what}: {name} is of kind {kind}, which cannot {ways}")
            above = ABOVE.get(what)
            if above and name not in (lists.get(above) or ()):
                found.append(f"  assignments.{what}: {name} must be in assignments.{above} too")
    return found


def _trained(tree: dict[str, Any]) -> list[str]:
    """Return what cannot be trained further as params say, or not at all."""
    models, top = there(tree), tree.get("training")
    own = top.get("pretrain") if isinstance(top, dict) else None
    corpora = own.get("corpora") if isinstance(own, dict) else None
    if own is None or models is None or not isinstance(corpora, dict):
        return []
    where = f"  {pretrain.KEY}.corpora"
    found = []
    for name, wanted in corpora.items():
        if name not in models and name != pretrain.OTHER:
            found.append(f"{where}: no {name!r} under models; there are {', '.join(models)}")
        for corpus in wanted if isinstance(wanted, list) else []:
            if corpus not in CONFIGS:
                known = ", ".join(CONFIGS)
                found.append(f"{where}.{name}: no {corpus!r} in corpora; there are {known}")
    for name in assigned(tree).get("leaning", ()):
        if isinstance(entry := models.get(name), dict):
            kind = entry.get("kind", "masked")
            found += _trainable(name, kind, corpora, own.get("learning_rate"))
    return found


def _trainable(name: str, kind: str, corpora: dict[str, Any], rates: Any) -> list[str]:
    """Return why a model that is probed before and after training cannot be trained."""
    where = f"  {pretrain.KEY}.corpora"
    wanted = corpora.get(name)
    if wanted is None:  # the stage depends on it: a model that is added trains no other anew
        return [f"{where}: no entry for {name} of assignments.leaning; `{name}: []` trains nothing"]
    if wanted and kind not in pretrain.TRAINED:
        return [f"{where}: {name} is of kind {kind}, which is not trained further; write []"]
    if wanted and isinstance(rates, dict) and not {name, pretrain.OTHER} & set(rates):
        return [f"  {pretrain.KEY}.learning_rate: none for {name}, nor for other"]
    return []
