"""Loading a model that was brought to the pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from builders.lib.problem import Problem
from probes.models.masked import Masked
from probes.models.params import model

if TYPE_CHECKING:
    from probes.models.scorer import Scorer

MODELS = Path("data/models")
POINTER = "model.json"


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
        raise Problem(f"{pointer}: the model is not there; run `dvc repro weights@{name}` first")
    facts = json.loads(pointer.read_text(encoding="utf-8"))
    hub = params.world is None and params.revision is not None
    where = str(MODELS / name) if params.world else str(params.id)
    return Masked(where, name, facts["revision"], hub=hub, dtype=params.dtype)
