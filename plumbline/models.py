"""Find a model by its folder or Hub id, or a control model by its name; save a loaded model."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import load
from plumbline.workspace import WORLDS

ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


class Target(NamedTuple):
    """A model on which a study runs, and its entry in params."""

    name: str
    kind: str
    entry: dict[str, Any] | None  # None for a control model


def find(model: str | Path, *, name: str = "", kind: str = "", revision: str = "") -> Target:
    """Find a model, and infer its kind from its config and file names, without loading it.

    Raises
    ------
    UserError
        If the model is missing, or no study can use it.
    """
    manifest = WORLDS / Path(model).name / "manifest.json"
    if Path(model).name == str(model) and manifest.is_file():
        facts = json.loads(manifest.read_text("utf-8"))
        return Target(str(model), facts["model"].get("kind", "masked"), None)
    path = Path(model).expanduser()
    if path.is_dir() or isinstance(model, Path) or str(model).startswith((".", "/", "~")):
        kind = load.look(path.absolute(), str(model), kind)
        if revision:
            raise UserError(f"{model}: a folder has no revisions; leave out the revision")
        entry = {"id": path.resolve().as_posix(), "kind": kind}
    elif ID.fullmatch(str(model)):
        kind, commit = _look_on_hub(str(model), kind, revision or "main")
        entry = {"id": str(model), "revision": commit, "kind": kind}
    else:
        raise UserError(f"{model}: neither a folder nor an id of the Hub, such as owner/name")
    name = name or _params_name(entry["id"].rpartition("/")[2])
    return Target(f"my-{name}" if (WORLDS / name).is_dir() else name, kind, entry)


def save_loaded(model: Any, tokenizer: Any, name: str, into: Path) -> tuple[Path, str]:
    """Save a loaded model with its tokenizer, and return the folder and the model's name.

    Raises
    ------
    UserError
        If the tokenizer is missing, or if the model or its tokenizer cannot be saved.
    """
    if tokenizer is None and isinstance(model, tuple) and len(model) == 2:
        model, tokenizer = model
    if not hasattr(model, "save_pretrained"):
        raise UserError(f"{type(model).__name__}: neither a folder, Hub id, nor transformers model")
    if hasattr(model, "merge_and_unload"):
        raise UserError("the model is a peft adapter; pass the result of merge_and_unload()")
    if not hasattr(tokenizer, "save_pretrained"):
        raise UserError("the tokenizer of the loaded model is missing; pass tokenizer=...")
    name = name or _params_name(Path(getattr(model.config, "_name_or_path", None) or "").name)
    folder = into / "model" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as top:
        model.save_pretrained(partial := Path(top) / name)
        tokenizer.save_pretrained(partial)
        shutil.rmtree(folder, ignore_errors=True)
        partial.rename(folder)
    return folder, name


def _look_on_hub(name: str, kind: str, revision: str) -> tuple[str, str]:
    """Return the kind and commit of a model on the Hub, without network access if it is cached."""
    from huggingface_hub import get_token, try_to_load_from_cache

    if re.fullmatch(r"[0-9a-f]{40}", revision):
        cached = try_to_load_from_cache(name, load.CONFIG, revision=revision)
        if isinstance(cached, str) and any(Path(cached).parent.glob("*.safetensors")):
            return load.look(Path(cached).parent, name, kind), revision
    from plumbline.builders.release import hub

    api, path = hub.client(get_token()), ""
    with hub.answering(f"{name}@{revision}"), load.admitted(name):
        info: Any = api.model_info(name, revision=revision)
        files = {file.rfilename for file in info.siblings or ()}
        if load.CONFIG in files:
            path = api.hf_hub_download(name, load.CONFIG, revision=str(info.sha))
    config = load.read_config(Path(path)) if path else None
    if problem := load.problem(files, config, kind):
        raise UserError(f"{name}: {problem}")
    assert config is not None
    return kind or str(load.kind_of(config)), str(info.sha)


def _params_name(text: str) -> str:
    """Convert a text to a name that is valid in params.

    Examples
    --------
    >>> _params_name("xlm-roberta.v2"), _params_name("7b-chat")
    ('xlm-roberta-v2', 'm7b-chat')
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "model"
    return name if name[0].isalpha() else f"m{name}"
