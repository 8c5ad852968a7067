"""Finding a model: a folder, an id of the Hub, a control model, or a loaded one that is saved."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import preflight
from plumbline.workspace import PROJECT

ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
MAIN = "main"


class Found(NamedTuple):
    """A model, and what params say of it."""

    name: str
    kind: str
    entry: dict[str, Any] | None  # None: a control model, whose folder has it


def find(model: str | Path, *, name: str = "", kind: str = "", revision: str = "") -> Found:
    """Look at a model before anything is built: its files' names and its config alone.

    Raises
    ------
    UserError
        If there is no such model, or no study can use it; it says what to do.
    """
    control = PROJECT / "data/samples/worlds" / Path(model).name
    if control.name == str(model) and (control / "manifest.json").is_file():
        facts = json.loads((control / "manifest.json").read_text("utf-8"))
        return Found(control.name, facts["model"].get("kind", "masked"), None)
    folder = Path(model).expanduser()
    if folder.is_dir() or isinstance(model, Path) or str(model).startswith((".", "/", "~")):
        own = preflight.look(folder.absolute(), str(model), kind)
        if revision:
            raise UserError(f"{model}: a folder has no revision; leave it out")
        entry = {"id": folder.resolve().as_posix(), "kind": own}
        return Found(_free(name or _name(folder.resolve().name)), own, entry)
    if not ID.fullmatch(str(model)):
        raise UserError(f"{model}: neither a folder nor an id of the Hub, such as owner/name")
    own, commit = _of_the_hub(str(model), kind, revision or MAIN)
    entry = {"id": str(model), "revision": commit, "kind": own}
    return Found(_free(name or _name(str(model).rpartition("/")[2])), own, entry)


def hand_over(model: Any, tokenizer: Any, name: str, into: Path) -> tuple[Path, str]:
    """Save a loaded model and its tokenizer, and return the folder and the model's name.

    Raises
    ------
    UserError
        If there is no tokenizer, or either cannot be saved.
    """
    if tokenizer is None and isinstance(model, tuple) and len(model) == 2:
        model, tokenizer = model
    if not hasattr(model, "save_pretrained"):
        raise UserError(
            f"{type(model).__name__}: neither a folder, an id of the Hub, nor a model of "
            "transformers, with save_pretrained"
        )
    if hasattr(model, "merge_and_unload"):
        raise UserError(
            "an adapter of peft: merge it with model.merge_and_unload(), and give what that returns"
        )
    if not hasattr(tokenizer, "save_pretrained"):
        raise UserError("give the tokenizer of the loaded model too: tokenizer=...")
    called = name or _name(Path(str(getattr(model.config, "_name_or_path", "") or "model")).name)
    folder = into / "model" / called
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{called}-") as top:
        partial = Path(top) / called
        model.save_pretrained(partial)
        tokenizer.save_pretrained(partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder, called


def _free(name: str) -> str:
    """Return a name that no control model has."""
    return f"my-{name}" if (PROJECT / "data/samples/worlds" / name).is_dir() else name


def _of_the_hub(name: str, kind: str, revision: str) -> tuple[str, str]:
    """Return kind and commit of a model of the Hub; one that was fetched needs no network."""
    from huggingface_hub import get_token, try_to_load_from_cache

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        there = try_to_load_from_cache(name, preflight.CONFIG, revision=revision)
        if isinstance(there, str) and any(Path(there).parent.glob("*.safetensors")):
            return preflight.look(Path(there).parent, name, kind), revision
    from plumbline.builders.release import hub

    api = hub.client(get_token())
    with hub.answering(f"{name}@{revision}"), preflight.admitted(name):
        info: Any = api.model_info(name, revision=revision)
    files = {file.rfilename for file in info.siblings or ()}
    config = None
    if preflight.CONFIG in files:
        with hub.answering(f"{name}@{revision}"), preflight.admitted(name):
            path = api.hf_hub_download(name, preflight.CONFIG, revision=str(info.sha))
        config = json.loads(Path(path).read_text("utf-8"))
    if said := preflight.problem(files, config, kind):
        raise UserError(f"{name}: {said}")
    assert config is not None
    return kind or str(preflight.kind_of(config)), str(info.sha)


def _name(text: str) -> str:
    """Return a name as params take it.

    Examples
    --------
    >>> _name("xlm-roberta.v2"), _name("7b-chat")
    ('xlm-roberta-v2', 'm7b-chat')
    """
    told = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "model"
    return told if told[0].isalpha() else f"m{told}"
