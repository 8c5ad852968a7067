"""Where a model's files are, what of them is pinned, and loading the model that they are."""

from __future__ import annotations

import hashlib
import json
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from plumbline.probes.models.scorer import Scorer

WANTED = ("*.json", "*.txt", "*.model", "*.codes", "*.jinja", "*.safetensors")
PICKLES = ("*.bin",)  # only where params allow them
ADAPTERS = {  # classes by kind, each in the module of that name
    "masked": "Masked",
    "causal": "Causal",
    "seq2seq": "Seq2Seq",
    "classifier": "Classifier",
}


def pin(name: str) -> Path:
    """Write ``data/models/NAME/model.json``: id, revision and the sha256 of a model's files.

    A UserError if the params are wrong, the Hub is out of reach, or id or revision does not exist.
    """
    params = model(name)
    if weights_folder(name).parent != MODELS:
        raise UserError(f"{weights_folder(name)}: a planted world, whose files are pinned already")
    partial = parquet.fresh(MODELS / name)
    if params.endpoint:
        from plumbline.probes.models.remote import identify

        known = identify(params.endpoint)
        facts = {"id": params.endpoint.model, "files": {}, **known, "revision": revision(known)}
    else:
        files = {path.name: digest(path) for path in _files(download(name, params), params)}
        facts = {"id": params.id, "revision": params.revision or revision(files), "files": files}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    write_bytes(partial / POINTER, text.encode())
    parquet.finish(MODELS / name)
    return MODELS / name


def load(name: str, *, exact: bool = False) -> Scorer:
    """Load a model, ``exact``: in double precision, whatever its params say.

    A UserError if it is not pinned yet, its files are not the pinned ones, or it cannot be loaded.
    """
    params = model(name)
    if params.endpoint:
        from plumbline.probes.models.remote import Remote

        if params.context:
            raise UserError(f"models.{name}.context: not for remote models; take the line out")
        return Remote(name, params.endpoint, _facts(name)["revision"])
    where, params, facts = pinned(name)
    dtype = "float64" if exact else params.dtype
    options = {"dtype": dtype, "context": params.context, "pickles": params.pickles}
    scorer: Scorer = adapter(params.kind)(where, name, facts["revision"], **options)
    return scorer


def adapter(kind: str) -> Any:
    """Return the class for a kind of model; only its own module is loaded."""
    return getattr(import_module(f"plumbline.probes.models.{kind}"), ADAPTERS[kind])


def pinned(name: str) -> tuple[Path, Model, dict[str, Any]]:
    """Return the folder of a model's files, its params, and its pinned facts.

    A UserError if it is not pinned yet, or a file is not the pinned one.
    """
    params, facts = model(name), _facts(name)
    where = download(name, params)
    wrong = changed(where, facts["files"])
    unknown = (p for p in _files(where, params) if p.name not in {MANIFEST, *facts["files"]})
    if path := wrong or next(unknown, None):
        world = pointer(name).name == MANIFEST
        again = (
            f"python -m worlds {name}" if world else f"make repro STAGE='--force weights@{name}'"
        )
        raise UserError(f"{path}: not as {pointer(name)} pins it; pin it again with `{again}`")
    return where, params, facts


def _facts(name: str) -> dict[str, Any]:
    path = pointer(name)
    if not path.is_file():
        raise UserError(f"{path}: not there; run `make repro STAGE=weights@{name}` first")
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return facts


def revision(files: dict[str, Any]) -> str:
    """Return 40 digits that stand for some files, by their sha256, as a commit would."""
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()[:40]


def _patterns(params: Model) -> tuple[str, ...]:
    """Return the patterns of the files that a model needs."""
    return WANTED + PICKLES if params.pickles else WANTED


def _files(folder: Path, params: Model) -> list[Path]:
    return sorted({path for pattern in _patterns(params) for path in folder.glob(pattern)})


def changed(folder: Path, files: dict[str, str]) -> Path | None:
    """Return the first file that does not have its sha256, or None."""
    paths = ((folder / name, sha256) for name, sha256 in files.items())
    return next((path for path, own in paths if not path.is_file() or digest(path) != own), None)


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
        with admitted(params.id, f"models.{name}: "):
            where = snapshot_download(
                params.id, revision=params.revision, allow_patterns=list(_patterns(params))
            )
    except (OSError, ValueError) as error:  # all of the Hub's are one of them
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"models.{name}: {params.id} at {params.revision} could not be had ({reason}); check "
            "id, revision and network"
        ) from error
    return Path(where)
