"""Folders of a run: datasets that are taken as validated, and what is in a folder."""

import hashlib
import json
from pathlib import Path

from plumbline.builders.core import parquet


def validated(name, data=Path("data")):
    """Say of a dataset as it is now that it was validated."""
    report = {"success": True, "tables": {}}
    report["fingerprint"] = parquet.fingerprint(data / "datasets" / name)
    path = data / "validation" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report), encoding="utf-8")


def hashes(folder):
    """Return the sha256 of every file of a folder by its path."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }
