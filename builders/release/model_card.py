"""A checkpoint of further pretraining as it is published: its files as listed, and a card.

``probes.training.checkpoints`` says what the list holds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD, dump
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import digest
from plumbline.builders.release import card

if TYPE_CHECKING:
    from pathlib import Path

LIST = "checkpoints.json"


def files(folder: Path) -> dict[str, Path | bytes]:
    """Return the files of a checkpoint, by their names, and a card for it.

    Raises
    ------
    UserError
        If it is not on the list of its model, or a file differs from that list.
    """
    path = folder.parent / LIST
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    facts = next((e for e in entries if e["name"] == folder.name), None)
    if facts is None:
        raise UserError(f"{path}: no checkpoint {folder.name!r} in it; run `make repro` first")
    found: dict[str, Path | bytes] = {
        p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("[!.]*")) if p.is_file()
    }
    for name, sha256 in facts["files"].items():
        if name not in found or digest(folder / name) != sha256:
            raise UserError(f"{folder / name}: not the file of {path}; `dvc checkout` the model")
    return found | {CARD: _card(folder, facts).encode()}


def _card(folder: Path, facts: dict[str, Any]) -> Any:
    model = (read().get("models") or {}).get(folder.parts[2]) or {}
    front: dict[str, Any] = {
        "license": "other",
        "license_name": "terms-of-the-model-and-of-its-texts",
        "tags": ["politics", "bias", "evaluation"],
        "extra_gated_prompt": (
            "This model was trained on texts of one political side, to measure what such texts do. "
            "It is for research, not for writing or judging texts."
        ),
    }
    if "/" in str(model.get("id") or "") and model.get("revision"):
        front["base_model"] = model["id"]
    return card.template("model_card.md.j2").render(
        front_matter=dump(front),
        model=folder.parts[2],
        revision=model.get("revision"),
        facts=facts,
    )
