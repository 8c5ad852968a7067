"""Folders of a few rows with pages and reports as builds write them, for tests of publishing."""

import json
from hashlib import sha256
from pathlib import Path

import polars as pl
import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core.parquet import fingerprint
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.release import facts

OPEN = {"license": "cc0-1.0"}
KINDS = {str: "string", bool: "bool", int: "int64"}


def make(where, *, rows=None, front=OPEN, sources=(), licence="CC0-1.0", success=True):
    """Write a folder as builds write it and its page, and of a dataset the report of its checks."""
    where = Path(where)
    where.mkdir(parents=True)
    pl.DataFrame(rows or {"word": ["calm"]}).write_parquet(where / "en.parquet")
    shop = ("toys", "https://example.org", "2026-11-21")
    told = [dict(zip(front_matter.SOURCE, (*shop, licence, "us"), strict=True))]
    if sources:
        told = [front_matter.source(s, f"dataset {s.name}") for s in map(Path, sources)]
    columns = tuple(
        Column(name, KINDS[type(values[0])], "a column")
        for name, values in (rows or {"word": ["calm"]}).items()
    )
    origin = front_matter.Origin(told, "make it", "1.2.0")
    front_matter.write(where, {"en": Schema(columns, (columns[0].name,))}, origin)
    _, kind, name, *_ = where.parts
    page = facts.DATASET_PAGES / f"{name}.md"
    heading = "# Toy\n\n## Sources"
    if kind != "datasets":
        page = facts.STUDY_PAGES / f"{name}.md"
        front = {facts.CARDS: {kind: {name: front}}}
        heading = f"# Toy\n\n## {name}\n\n### Sources"
    page.parent.mkdir(parents=True, exist_ok=True)
    text = f"---\n{yaml.safe_dump(front)}---\n{heading}\n\nTold by hand.\n"
    page.write_text(text, encoding="utf-8")
    if where.parts[1] == "datasets":
        verdict = {"success": success, "fingerprint": fingerprint(where)}
        report = Path(f"data/validation/{where.name}.json")
        report.parent.mkdir(parents=True, exist_ok=True)
        report.write_text(json.dumps(verdict), encoding="utf-8")
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
