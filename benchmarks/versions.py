"""Measure the comparison of two versions of politicians, compared with a pandas merge.

    python benchmarks/versions.py [PEOPLE] [ROUNDS]

The script generates two versions of one config with 250,000 people, of whom 1% are removed, 1% are
new, 1% have another gender and 5% another popularity. It finds the differences with the project's
command and with pandas, in turn, each in its own process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

PANDAS = """
import json
import pandas as pd
old, new = (pd.read_parquet(f"{v}/en.parquet") for v in ("a", "b"))
both = old.merge(new, on="qid", how="outer", suffixes=(" old", " new"), indicator=True)
kept = both[both["_merge"] == "both"]
found = {"added": int((both["_merge"] == "right_only").sum())}
found["removed"] = int((both["_merge"] == "left_only").sum())
for column in old.columns.drop("qid"):
    was, now = kept[f"{column} old"], kept[f"{column} new"]
    if isinstance(was.iloc[0], str) or not hasattr(was.iloc[0], "__len__"):
        differs = (was != now) & ~(was.isna() & now.isna())
    else:
        differs = was.map(list) != now.map(list)
    if differs.any():
        found[column] = int(differs.sum())
print(json.dumps(found))
"""
OURS = ["-m", "plumbline.builders", "diff", "politicians", "./a", "./b"]
WAYS = {"diff, JSON": [*OURS, "--json"], "diff, text": OURS, "pandas": ["-c", PANDAS]}
MEASURED = """
import json, resource, subprocess, sys
done = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], "w"))
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""


def main() -> None:
    people = int(sys.argv[1]) if len(sys.argv) > 1 else 250_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        invent(folder, people)
        found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way, words in WAYS.items():
                found[way].append(measure(words, folder))
                if way != "diff, text":
                    agree(folder, way, people)
    print(f"{people:,} people in each version, medians of {rounds} rounds")
    print("| way | seconds | processor seconds | peak MB | times faster | share of memory |")
    print("|---|---:|---:|---:|---:|---:|")
    for way, numbers in found.items():
        wall, used, peak = (statistics.median(part) for part in zip(*numbers, strict=True))
        pairs = list(zip(found["pandas"], numbers, strict=True))
        faster = statistics.median(theirs[1] / ours[1] for theirs, ours in pairs)
        memory = statistics.median(ours[2] / theirs[2] for theirs, ours in pairs)
        print(f"| {way} | {wall:.1f} | {used:.1f} | {peak:.0f} | {faster:.1f} | {memory:.2f} |")


def measure(words: list[str], folder: Path) -> list[float]:
    """Return wall-clock and processor seconds, peak megabytes and output of a process."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, "told", sys.executable, *words],
        cwd=folder,
        env={"PYTHONPATH": str(TOP), "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )
    status, used, peak = json.loads(done.stdout)
    if status:
        raise SystemExit(done.stderr)
    return [time.perf_counter() - begun, used, peak]


def agree(folder: Path, way: str, people: int) -> None:
    """Stop if the reported differences are not the generated ones."""
    told = json.loads((folder / "told").read_text("utf-8"))
    if way != "pandas":
        told = told["configs"]["en"]
        told = {"added": told["added"], "removed": told["removed"]} | told["changed_by_column"]
    share = people // 100
    planted = {"added": share, "removed": share, "gender": share, "popularity": 5 * share}
    if told != planted:
        raise SystemExit(f"{way}: {told}, planted {planted}")


def invent(folder: Path, people: int) -> None:
    """Write two versions in the layout of a build."""
    import numpy as np
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    from plumbline.builders.core import front_matter
    from plumbline.builders.datasets.politicians import build as politicians

    arrow = politicians.SCHEMA.arrow()
    share = people // 100
    number = np.arange(people + share)
    dice = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "qid": [f"Q{n}" for n in number],
            "name": [f"Name {n} of somebody" for n in dice.permutation(number)],
            "gender": dice.integers(0, 2, len(number)),
            "gender_qids": [["Q6581097"]] * len(number),
            "birth_year": (1900 + number % 100).astype(np.int32),
            "popularity": dice.integers(0, 200, len(number)).astype(np.int32),
            "countries": [["GB", "IE"][: 1 + n % 2] for n in number],
        }
    )
    rest = {"string": "en", "bool": False, "int32": 1, "label": 0}
    for name in arrow.names:
        if name not in frame.columns:
            column = politicians.SCHEMA[name]
            value = [] if column.kind == "strings" else rest.get(column.kind)
            values = pa.array([value] * len(number), arrow.field(name).type)
            if column.kind == "date32":
                values = pa.array((number % 20_000).astype(np.int32)).cast(pa.date32())
            frame = frame.with_columns(pl.Series(name, values))
    row = pl.int_range(pl.len())
    old = frame.head(people)
    new = frame.with_columns(
        gender=pl.when(row.is_between(share, 2 * share, closed="left"))
        .then(1 - pl.col("gender"))
        .otherwise("gender"),
        popularity=pl.when(row.is_between(2 * share, 7 * share, closed="left"))
        .then(pl.col("popularity") + 1)
        .otherwise("popularity"),
    ).slice(share)
    for version, one in (("a", old), ("b", new)):
        (folder / version).mkdir()
        table = one.select(arrow.names).sort("qid").to_arrow().cast(arrow)
        pq.write_table(table, folder / version / "en.parquet", compression="zstd", version="2.6")
        origin = front_matter.Origin([], "make it", "1.0.0")
        front_matter.write(folder / version, {"en": politicians.SCHEMA}, origin)


if __name__ == "__main__":
    main()
