"""Folders of a few rows with cards and reports as builds write them, for tests of publishing."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import polars as pl
import yaml

from plumbline.builders.core.parquet import fingerprint

OPEN = {"license": "cc0-1.0"}


def make(where, *, rows=None, front=OPEN, sources=(), licence="CC0-1.0", success=True):
    """Write a folder with a card as builds write it, and of a dataset the report of its checks."""
    where = Path(where)
    where.mkdir(parents=True)
    pl.DataFrame(rows or {"word": ["calm"]}).write_parquet(where / "en.parquet")
    made_of = [f"- dataset {s.name}, {s}, retrieved with sha256 0." for s in map(Path, sources)]
    made_of = made_of or ["- toys, https://example.org, retrieved 2026-11-21."]
    lines = [line for name in made_of for line in (name, f"  Licence: {licence}. Citation: us.")]
    card = f"---\n{yaml.safe_dump(front)}---\n# Toy\n\n## Sources\n\nTold by hand.\n\n## Columns\n"
    card += "\n".join(["", "## Sources", "", *lines, "", "## Rebuild", ""])
    (where / "README.md").write_text(card, encoding="utf-8")
    if where.parts[1] == "datasets":
        facts = {"success": success, "fingerprint": fingerprint(where)}
        report = Path(f"data/validation/{where.name}.json")
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(facts), encoding="utf-8")
    return where


def checkpoint() -> Path:
    make("data/datasets/corpora")
    where = Path("data/pretrained/tiny/news-left-1")
    where.mkdir(parents=True)
    (where / "model.safetensors").write_bytes(b"weights")
    facts = {"name": where.name, "corpus": "news-left", "epoch": 1}
    facts["files"] = {"model.safetensors": sha256(b"weights").hexdigest()}
    (where.parent / "checkpoints.json").write_text(json.dumps([facts]), "utf-8")
    return where
