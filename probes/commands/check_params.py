"""Checking the whole of params.yaml at once."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plumbline.builders import DATASETS, SOURCES
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import FILE, Params, files, parse, read
from plumbline.builders.core.params import check as check_sections
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.corpora.sample import CONFIGS
from plumbline.probes import ALL, ASIDE, EACH, POOLED, PROBES, module_of
from plumbline.probes.core import assignments
from plumbline.probes.models import preflight
from plumbline.probes.models.params import NAME, VERBS, Model, verbs, worlds
from plumbline.probes.training import pretrain, recipe

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

WHOLE = (
    "models",
    "assignments",
    "controls",
    "waves",
    "publish",
)  # sections that hold no sections
LOCAL = (".", "/", "data/")  # an id that begins so is a folder
MERGED = {"analysis.pooled_pmi": "analysis.pmi"}  # sections that are part of another now
ABOVE = {  # list whose models one list is of
    "words": "associations",
    "representations": "words",
    "subgroups": "associations",
    "robustness": "words",
    "after_training": "completions",
    "finetuned_classifiers": "stances",
}


def sections() -> dict[str, type[Params]]:
    """Return the model of every section of params.yaml, by dotted key, models left out."""
    from plumbline.builders.fetch.http import Politeness
    from plumbline.builders.release.params import Params as Publish
    from plumbline.probes.stereotypes import waves

    found: dict[str, type[Params]] = {
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
        found[f"{prefix}.{name}"] = module.Params
    for name in PROBES:
        found[f"probes.{name}"] = importlib.import_module(module_of(name)).Params
    return found


def check(path: Path = FILE, *, source: str | None = None, fetched: bool = True) -> None:
    """Validate every section, and that no key is there that nothing reads.

    ``source``: the file that the models stand in, where it is another one: named in the messages.
    ``fetched``: whether the snapshots must be there.

    Raises
    ------
    UserError
        One message with all problems.
    """
    tree = read(path)
    models = [name for name in at(tree, "models") if NAME.fullmatch(str(name))]
    known = sections() | {f"models.{name}": Model for name in models}
    problems = [f"  {problem}" for problem in _misnamed(tree)]
    try:
        check_sections(known, path)
    except UserError as problem:
        problems += str(problem).splitlines()[1:]
    checks = [
        _strayed(path),
        _unpinned(tree, source or FILE.name),
        (*_absent(tree), *_reworded(tree)) if fetched else (),
    ]
    checks += [_assigned(tree), _judged(tree), _trained(tree), _unknown(tree, known)]
    checks += [_looked(tree), _spoken(tree)]
    problems += [f"  {problem}" for found in checks for problem in found]
    if problems:
        raise UserError("\n".join([f"params.yaml: {len(problems)} problem(s) to mend:", *problems]))


def at(tree: Any, *keys: str) -> dict[str, Any]:
    """Return a section of a tree of any shape; empty where there is none, or no mapping."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def _misnamed(tree: dict[str, Any]) -> Iterator[str]:
    if there(tree) is None:
        yield "models: needs entries, each a name with id and revision, or endpoint"
    for name in at(tree, "models"):
        if not NAME.fullmatch(str(name)):
            yield f"models.{name}: a name has letters, digits, - and _ only"
        elif name == POOLED:
            yield f"models.{name}: the tables of pooled models are called that; choose another name"


def _strayed(path: Path) -> Iterator[str]:
    """Yield sections in another file than the one in which DVC looks for what their stages read."""
    study = {name: module_of(name).split(".")[2] for name in (*PROBES, *EACH, *ALL, *ASIDE)}
    beside = {
        f"{top}.{n}": f"probes/{s}" for top in ("probes", "analysis") for n, s in study.items()
    }
    beside |= {f"validation.{name}": "validation" for name in DATASETS}
    for file in files(path):
        if file.parent.name == "prompts":  # which these stages name
            continue
        tree = parse(file)
        for key, folder in beside.items():
            top, name = key.split(".")
            home = path.parent / folder / FILE.name
            if name in at(tree, top) and home.is_file() and file != home:
                yield f"{key}: stands in {file}, and its stages read {home} alone; move it there"


def _unknown(tree: dict[str, Any], known: dict[str, type[Params]]) -> Iterator[str]:
    tops = {"models", *(key.split(".")[0] for key in known)}
    for top in tree:
        if top not in tops:
            yield f"{top}: unknown section; {_near(top, tops)}docs/params.md has those there are"
        elif top not in WHOLE:
            own = {key.split(".", 1)[1] for key in known if key.startswith(f"{top}.")}
            for name in sorted(set(at(tree, top)) - own):
                if now := MERGED.get(f"{top}.{name}"):
                    yield f"{top}.{name}: part of {now}; move `groups` and `n_permutations` there"
                    continue
                yield f"{top}.{name}: unknown; {_near(name, own)}there are {', '.join(sorted(own))}"


def _near(name: object, known: Iterable[str]) -> str:
    found = get_close_matches(str(name), list(known), 1)
    return f"did you mean {found[0]}? " if found else ""


def _looked(tree: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the folders of models: their small files say it."""
    for name in at(tree, "models"):
        entry = at(tree, "models", name)
        where, kind = entry.get("id"), entry.get("kind", "masked")
        if isinstance(where, str) and where.startswith(LOCAL) and kind in VERBS:
            try:
                preflight.look(Path(where), f"models.{name}: {where}", kind)
            except UserError as problem:
                yield str(problem)


def _spoken(tree: dict[str, Any]) -> Iterator[str]:
    """Yield languages of models that no probe which they are assigned to has."""
    for name in at(tree, "models"):
        own = at(tree, "models", name).get("languages")
        probes = [probe for probe, names in assigned(tree).items() if name in names]
        known = [at(tree, "probes", probe).get("languages") for probe in probes]
        if not all(isinstance(codes, list) for codes in known):  # one that has them by default
            continue
        heard = {code for codes in known for code in codes or ()}
        if isinstance(own, list) and heard and (lost := [c for c in own if c not in heard]):
            said = f"{', '.join(map(str, lost))}: not asked in by {', '.join(probes)}"
            yield f"models.{name}.languages: {said}; there are {', '.join(sorted(heard))}"


def there(tree: dict[str, Any]) -> dict[str, Any] | None:
    """Return the entries of all models, planted worlds among them; None if params have no such."""
    models = tree.get("models") or {}
    if not isinstance(models, dict):
        return None
    return {name: world.model_dump(exclude_none=True) for name, world in worlds().items()} | models


def _unpinned(tree: dict[str, Any], file: str) -> Iterator[str]:
    """Yield the command that looks up the commits that models lack, if any does."""
    lacking = [name for name in at(tree, "models") if lacks_commit(at(tree, "models", name))]
    if lacking:
        which = f"{len(lacking)} of the Hub without a commit ({', '.join(lacking)})"
        command = f"`python -m plumbline.probes pin {file}`"
        yield f"models: {which}; {command} asks the Hub for them and writes them there"


def lacks_commit(entry: dict[str, Any]) -> bool:
    """Return whether an entry names a model of the Hub and no commit."""
    name = entry.get("id")
    return isinstance(name, str) and not entry.get("revision") and not name.startswith(LOCAL)


def named_snapshots(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the folders of snapshots that params name, by key."""
    named = {
        f"datasets.{name}.snapshot": at(tree, "datasets", name).get("snapshot")
        for name in at(tree, "datasets")
    }
    for name in at(tree, "derived"):
        for source, folder in at(tree, "derived", name, "snapshots").items():
            named[f"derived.{name}.snapshots.{source}"] = folder
    return named | {f"waves.{end}": at(tree, "waves").get(end) for end in ("earlier", "later")}


def absent_snapshots(tree: dict[str, Any]) -> dict[str, str]:
    """Return those of them that are not there, which DVC would not explain."""
    return {
        key: folder
        for key, folder in named_snapshots(tree).items()
        if isinstance(folder, str) and not (Path(folder) / MANIFEST).is_file()
    }


def _absent(tree: dict[str, Any]) -> Iterator[str]:
    for key, folder in absent_snapshots(tree).items():
        command = "(python -m plumbline.builders fetch SOURCE)"
        yield f"{key}: no whole snapshot in {folder}; fetch one {command} or `dvc pull` it"


def _reworded(tree: dict[str, Any]) -> Iterator[str]:
    for path in at(tree, "probes", "stances").get("paraphrases") or ():
        if not Path(str(path)).is_file():
            page = "docs/studies/leaning.md has its layout"
            yield f"probes.stances.paraphrases: no file {path}; {page}"


def assigned(tree: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the models of each probe in a tree of params: the user's, and the controls if run."""
    found: dict[str, list[Any]] = {}
    controls = at(tree, "controls")
    for lists in (at(tree, "assignments"), controls if controls.get("sets") else {}):
        for name, models in lists.items():
            if name != "sets" and isinstance(models, list):
                found[name] = [*found.get(name, []), *models]
    return found


def _assigned(tree: dict[str, Any]) -> Iterator[str]:
    """Yield the models that are assigned and are not there, or cannot do what is needed."""
    models, lists = there(tree), assigned(tree)
    own, controls = (assigned({key: at(tree, key)}) for key in ("assignments", "controls"))
    if models is None:
        return
    for probe, names in controls.items():
        for name in (name for name in names if name in own.get(probe, ())):
            said = f"{name} is one of its controls; name it in one list only"
            yield f"assignments.{probe}: {said}"
    for probe, names in lists.items():
        verb = importlib.import_module(module_of(probe)).VERB if probe in PROBES else None
        for name in names:
            top = "assignments" if name in own.get(probe, ()) else "controls"
            key, above = f"{top}.{probe}", ABOVE.get(probe)
            if name not in models:
                known = ", ".join(map(str, models))
                yield f"{key}: no {name!r} under models; there are {known}"
                continue
            kind = at(models, name).get("kind", "masked")
            if verb and kind in VERBS and not verbs(verb) & VERBS[kind]:
                ways = " or ".join(sorted(verbs(verb)))
                yield f"{key}: {name} is of kind {kind}, which cannot {ways}"
            if above and name not in (lists.get(above) or ()):
                yield f"{key}: {name} must be in {top}.{above} too"


def _judged(tree: dict[str, Any]) -> Iterator[str]:
    """Yield the model that judges what is written, if it is not there."""
    models, judge = there(tree), at(tree, "probes", "stances", "generation").get("nli_model")
    if models is not None and assigned(tree).get("stances") and judge and judge not in models:
        known = ", ".join(map(str, models))
        yield f"probes.stances.generation.nli_model: no {judge!r} under models; there are {known}"


def _trained(tree: dict[str, Any]) -> Iterator[str]:
    """Yield what cannot be trained further as params say, or not at all."""
    models, own = there(tree), at(tree, *pretrain.KEY.split("."))
    corpora = own.get("corpora")
    if models is None or not isinstance(corpora, dict):
        return
    where = f"{pretrain.KEY}.corpora"
    for name, chosen in corpora.items():
        if name not in models and name != recipe.OTHER:
            yield f"{where}: no {name!r} under models; there are {', '.join(models)}"
        for corpus in chosen if isinstance(chosen, list) else []:
            if corpus not in CONFIGS:
                yield f"{where}.{name}: no {corpus!r} in corpora; there are {', '.join(CONFIGS)}"
    for name in assigned(tree).get("stances", ()):
        if isinstance(models.get(name), dict):
            kind, chosen = models[name].get("kind", "masked"), corpora.get(name)
            yield from _trainable(name, kind, chosen, own.get("learning_rate"))


def _trainable(name: str, kind: str, chosen: Any, rates: Any) -> Iterator[str]:
    """Say why a model that is probed before and after training cannot be trained."""
    where = f"{pretrain.KEY}.corpora"
    if chosen is None:  # the stage depends on it: a model that is added trains no other anew
        yield f"{where}: no entry for {name} of assignments.stances; `{name}: []` trains nothing"
    elif chosen and kind not in pretrain.TRAINED:
        yield f"{where}: {name} is of kind {kind}, which is not trained further; write []"
    elif chosen and isinstance(rates, dict) and not {name, recipe.OTHER} & set(rates):
        yield f"{pretrain.KEY}.learning_rate: none for {name}, nor for other"
