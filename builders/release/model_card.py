"""A checkpoint of further pretraining as it is published: its files as listed, and a card.

``probes.checkpoints`` says what the list holds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.front_matter import CARD, dump
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import digest

if TYPE_CHECKING:
    from pathlib import Path

LIST = "checkpoints.json"


def files(folder: Path) -> dict[str, Path | bytes]:
    """Return the files of a checkpoint, by their names, and a card for it.

    Raises
    ------
    Problem
        If it is not on the list of its model, or a file differs from that list.
    """
    path = folder.parent / LIST
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    facts = next((e for e in entries if e["name"] == folder.name), None)
    if facts is None:
        raise Problem(f"{path}: no checkpoint {folder.name!r} in it; run `make repro` first")
    found: dict[str, Path | bytes] = {
        p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("[!.]*")) if p.is_file()
    }
    for name, sha256 in facts["files"].items():
        if name not in found or digest(folder / name) != sha256:
            raise Problem(f"{folder / name}: not the file of {path}; `dvc checkout` the model")
    return found | {CARD: _card(folder, facts).encode()}


def _card(folder: Path, facts: dict[str, Any]) -> str:
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
    told = [f"| {key} | {facts[key]} |" for key in sorted(facts) if key not in ("files", "name")]
    parts = [
        f"---\n{dump(front)}---\n",
        f"# {folder.parts[2]} after further pretraining: {folder.name}\n",
        f"Model `{folder.parts[2]}` of params.yaml, revision {model.get('revision')}.\n",
        "\n".join(["| what | value |", "|---|---|", *told, ""]),
        "It repeats what its texts say, whatever that is. Never let it speak for anybody.\n",
    ]
    return "\n".join(parts)
