"""A checkpoint of further pretraining as it is published: its files as listed, and a card.

``probes.training.checkpoints`` says what the list holds.
"""

from __future__ import annotations

import json
from pathlib import Path

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import digest
from plumbline.builders.release import card
from plumbline.builders.release.params import publishing

LIST = "checkpoints.json"


def files(folder: Path) -> dict[str, Path | bytes]:
    """Return the files of a checkpoint, by their names, and a card for it.

    Raises UserError if it is not on the list of its model, or a file differs from that list.
    """
    path = folder.parent / LIST
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    facts = next((e for e in entries if e["name"] == folder.name), None)
    if facts is None:
        raise UserError(f"{path}: no checkpoint {folder.name!r} in it; run `make repro` first")
    found: dict[str, Path | bytes] = {name: folder / name for name in sorted(facts["files"])}
    for name, sha256 in facts["files"].items():
        if not (folder / name).is_file() or digest(folder / name) != sha256:
            raise UserError(f"{folder / name}: not the file of {path}; `dvc checkout` the model")
    model = (read().get("models") or {}).get(folder.parts[2]) or {}
    pinned = "/" in str(model.get("id") or "") and model.get("revision")
    text = card.template("model_card.md.j2").render(
        model=folder.parts[2],
        base_model=model["id"] if pinned else "",
        revision=model.get("revision"),
        facts=facts,
        contact=publishing().contact,
    )
    return found | {CARD: text.encode()}
