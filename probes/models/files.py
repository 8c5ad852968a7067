"""Where a model's files are: what the Hub has, pinned, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import Problem

if TYPE_CHECKING:
    from plumbline.probes.models.params import Model

MODELS = Path("data/models")
POINTER = "model.json"
WANTED = ("*.json", "*.txt", "*.model", "*.codes", "*.jinja", "*.safetensors")
PICKLES = "*.bin"  # only where params allow them


def wanted(params: Model) -> tuple[str, ...]:
    """Return the patterns of the files that a model needs."""
    return (*WANTED, PICKLES) if params.pickles else WANTED


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
        patterns = list(wanted(params))
        where = snapshot_download(params.id, revision=params.revision, allow_patterns=patterns)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        said = " ".join(str(error).split())[:200]
        raise Problem(
            f"models.{name}: {params.id} at {params.revision} could not be had ({said}); check id, "
            "revision and network"
        ) from error
    return Path(where)
