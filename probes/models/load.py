"""Loading a model that was brought to the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from builders.lib.problem import Problem
from builders.lib.snapshot import digest
from probes.models.masked import Masked
from probes.models.params import Model, model

if TYPE_CHECKING:
    from probes.models.scorer import Scorer

MODELS = Path("data/models")
POINTER = "model.json"
WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")  # never pickles


def load(name: str) -> Scorer:
    """Load a model that was brought.

    Raises
    ------
    Problem
        If it was not brought yet, or cannot be loaded.
    """
    params = model(name)
    pointer = MODELS / name / POINTER
    if not pointer.is_file():
        raise Problem(
            f"{pointer}: the model is not there; run `make repro STAGE=weights@{name}` first"
        )
    facts = json.loads(pointer.read_text(encoding="utf-8"))
    where = MODELS / name if params.world else download(name, params)
    for file, sha256 in facts["files"].items():
        path = where / file
        if not path.is_file() or digest(path) != sha256:
            raise Problem(
                f"{path}: not the file that {pointer} names; bring the model again with "
                f"`make repro STAGE='--force weights@{name}'`"
            )
    return Masked(where, name, facts["revision"], dtype=params.dtype)


def download(name: str, params: Model) -> Path:
    """Return the folder that holds a model's files, fetched to the Hub's cache if need be.

    Raises
    ------
    Problem
        If there is no such folder, id or revision, or the Hub is out of reach.
    """
    assert params.id is not None
    if params.revision is None:
        folder = Path(params.id)
        if not folder.is_dir():
            raise Problem(f"models.{name}.id: no folder {folder}")
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        where = snapshot_download(params.id, revision=params.revision, allow_patterns=list(WANTED))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise Problem(
            f"models.{name}: {params.id} at {params.revision} could not be had ({said}); check id, "
            "revision and network"
        ) from error
    return Path(where)
