"""Where a model's files are: what the Hub has, pinned, or a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import digest, write_bytes
from plumbline.probes.models.params import (
    MANIFEST,
    MODELS,
    POINTER,
    Model,
    model,
    pointer,
    weights_folder,
)
from plumbline.probes.models.preflight import admitted

WANTED = ("*.json", "*.txt", "*.model", "*.codes", "*.jinja", "*.safetensors")
PICKLES = "*.bin"  # only where params allow them


def refresh(name: str) -> str:
    """Return the command that makes the folder of a model anew."""
    if pointer(name).name == MANIFEST:
        return f"python -m plumbline.probes plant {name}"
    return f"make repro STAGE='--force weights@{name}'"


def pin(name: str) -> Path:
    """Write ``data/models/NAME/model.json``: id, revision and the sha256 of a model's files.

    A UserError if the params are wrong, the Hub is out of reach, or id or revision does not exist.
    """
    params = model(name)
    if weights_folder(name).parent != MODELS:
        raise UserError(f"{weights_folder(name)}: a planted world, whose files are pinned already")
    folder = MODELS / name
    partial = parquet.fresh(folder)
    if params.endpoint:
        from plumbline.probes.models.remote import identify

        known = identify(params.endpoint)
        facts = {"id": params.endpoint.model, "files": {}, **known, "revision": revision(known)}
    else:
        files = {path.name: digest(path) for path in files_of(download(name, params), params)}
        facts = {"id": params.id, "revision": params.revision or revision(files), "files": files}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / POINTER, text.encode())
    parquet.finish(folder)
    return folder


def revision(files: dict[str, Any]) -> str:
    """Return 40 digits that stand for some files, by their sha256, as a commit would."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:40]


def file_patterns(params: Model) -> list[str]:
    """Return the patterns of the files that a model needs."""
    return [*WANTED, *([PICKLES] if params.pickles else [])]


def files_of(folder: Path, params: Model) -> list[Path]:
    """Return the files of a folder that a model needs."""
    return sorted({path for pattern in file_patterns(params) for path in folder.glob(pattern)})


def changed(folder: Path, files: dict[str, str]) -> Path | None:
    """Return the first file that has not the sha256 of its name, or none."""
    paths = ((folder / name, sha256) for name, sha256 in files.items())
    return next((p for p, own in paths if not p.is_file() or digest(p) != own), None)


def download(name: str, params: Model) -> Path:
    """Return the folder that holds a model's files, fetched to the Hub's cache if need be.

    A UserError if there is no such folder, id or revision, or the Hub is out of reach.
    """
    assert params.id is not None
    if params.revision is None:
        folder = Path(params.id)
        if not folder.is_dir():
            raise UserError(f"models.{name}.id: no folder {folder}")
        return folder
    from huggingface_hub import snapshot_download

    try:
        patterns = file_patterns(params)
        with admitted(params.id, f"models.{name}: "):
            where = snapshot_download(params.id, revision=params.revision, allow_patterns=patterns)
    except (OSError, ValueError) as error:  # all of the Hub's are one of them
        said = " ".join(str(error).split())[:200]
        raise UserError(
            f"models.{name}: {params.id} at {params.revision} could not be had ({said}); check id, "
            "revision and network"
        ) from error
    return Path(where)
