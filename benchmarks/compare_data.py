"""Compare every dataset, output and table of two runs: python benchmarks/compare_data.py OLD NEW.

OLD and NEW are project folders, or folders with ``datasets``, ``outputs`` and ``tables``. Numbers
are equal if they differ by at most 1e-9, relative or absolute. Rows are sorted by all columns that
are not estimates, and a label equals its code. ``compare_data.yaml`` next to this file lists what
was renamed or moved, and the reasons for intended differences. The exit status is 1 if anything
else differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import polars as pl
import yaml

HERE = Path(__file__).parent
KINDS = ("datasets", "outputs", "tables")
TOLERANCE = 1e-9


def found(top: Path) -> dict[str, Path]:
    """Return the parquet files of a run, by their path below ``data``."""
    data = top / "data" if (top / "data").is_dir() else top
    paths = [p for kind in KINDS for p in sorted((data / kind).rglob("*.parquet"))]
    return {p.relative_to(data).as_posix(): p for p in paths if ".partial" not in str(p)}


def labels(path: Path) -> dict[str, list[str]]:
    """Return the labels of the coded columns of a file, from the ``build.json`` of its folder."""
    folder = next((f for f in path.parents if (f / "build.json").is_file()), None)
    if folder is None:
        return {}
    build = json.loads((folder / "build.json").read_text("utf-8"))
    parts = {path.stem, *path.relative_to(folder).parts}
    config = next((c for c in build["configs"] if c in parts), None)
    columns = build["schemas"][build["configs"][config]]["columns"] if config else []
    return {c["name"]: c["labels"] for c in columns if c.get("labels")}


def decoded(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Return a frame with labels in place of their codes."""
    coded = {k: v for k, v in labels(path).items() if k in frame and frame[k].dtype.is_integer()}
    return frame.with_columns(
        pl.col(name).replace_strict(dict(enumerate(texts)), return_dtype=pl.String)
        for name, texts in coded.items()
    )


def differs(old: pl.DataFrame, new: pl.DataFrame) -> list[str]:
    """Return the differences between two frames, one line per column."""
    said = [f"column {name} is gone" for name in old.columns if name not in new.columns]
    said += [f"column {name} is new" for name in new.columns if name not in old.columns]
    if len(old) != len(new):
        return [*said, f"{len(old):,} rows before, {len(new):,} now"]
    both = [name for name in old.columns if name in new.columns]
    floats = [name for name in both if old[name].dtype.is_float()]
    keys = [name for name in both if name not in floats and not old[name].dtype.is_nested()]
    if keys:
        old, new = old.sort(keys, maintain_order=True), new.sort(keys, maintain_order=True)
    for name in both:
        one, two = old[name], new[name]
        if name in floats:
            two = two.cast(one.dtype, strict=False)
            apart = (one - two).abs() > TOLERANCE * (1 + one.abs())
            other = (one.is_null() != two.is_null()) | (one.is_nan() != two.is_nan())
            number = int((apart.fill_null(False) | other.fill_null(False)).sum())
            most = (one - two).abs().max()
            if number:
                by = "" if most is None else f", by {most:.3g} at most"
                said.append(f"{name}: {number:,} of {len(one):,} differ{by}")
        else:
            number = int(one.ne_missing(two.cast(one.dtype, strict=False)).sum())
            if number:
                said.append(f"{name}: {number:,} of {len(one):,} differ")
    return said


def main() -> int:
    """Print all differences, with the reasons that are known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    given = parser.parse_args()
    known: dict[str, Any] = yaml.safe_load((HERE / "compare_data.yaml").read_text("utf-8"))
    before, after = found(given.old), found(given.new)
    same, unexplained = 0, 0
    for path in sorted(before):
        where, columns = path, known["columns"].get(path.split("/")[1], {})
        for old, new in known["paths"].items():
            if where.startswith(old):
                where = where.replace(old, new, 1)
                break
        if where not in after:
            said = ["gone"]
        else:
            old_frame = decoded(pl.read_parquet(before[path]), before[path]).drop(
                known["ignored"], strict=False
            )
            old_frame = old_frame.rename(
                {a: b for a, b in columns.items() if a in old_frame.columns}
            )
            file = after.pop(where)
            new_frame = decoded(pl.read_parquet(file), file).drop(known["ignored"], strict=False)
            said = differs(old_frame, new_frame)
        if not said:
            same += 1
            continue
        why = next((w for pattern, w in known["reasons"].items() if fnmatch(path, pattern)), "")
        unexplained += not why
        print(f"{path}{': ' + why if why else ''}", *said, sep="\n    ")
    for path in after:
        why = next((w for pattern, w in known["reasons"].items() if fnmatch(path, pattern)), "")
        unexplained += not why
        print(f"{path}: new{', ' + why if why else ''}")
    print(f"{same:,} of {len(before):,} files are the same; {unexplained} unexplained differences")
    return int(bool(unexplained))


if __name__ == "__main__":
    sys.exit(main())
