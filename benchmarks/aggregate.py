"""Measure time and memory of counting words by gender, compared with pandas and Polars.

    python benchmarks/aggregate.py [ROWS] [ROUNDS] [WAY ...]

The script writes outputs of ``associations`` in their real layout (by default, 20 million rows in
lists of 50 of 1,000 words, with 20,000 names per file) and people with genders. It then counts
words by gender with the project's reader, with pandas, and with Polars (eager and streaming), in
turn and each in its own process, and compares the counts. pandas needs about 200 bytes per row;
ways that need more memory than is free are left out.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))
LENGTH, WORDS, SHARD, BLOCK = 50, 1000, 20_000, 4_000
NEEDS = {"reader": 0, "pandas": 220, "polars eager": 120, "polars streaming": 0}  # bytes per row

READER = """
from pathlib import Path
from plumbline.probes.politicians.words import word_counts as lists
people = lists.read_people(Path("people.parquet"))
counts = lists.count(lists.Lists((Path("lists"),), "ADJ", unit="form"), people)
found = counts.lists
"""
PANDAS = """
import pandas as pd
people = pd.read_parquet("people.parquet", columns=["qid", "gender"])
rows = pd.read_parquet("lists", columns=["qid", "word", "pos"])
rows = rows[rows["pos"] == "ADJ"].merge(people, on="qid")
found = rows.groupby(["word", "gender"]).size().unstack(fill_value=0).to_numpy()
"""
POLARS = """
import polars as pl
people = pl.{scan}_parquet("people.parquet").select("qid", "gender")
rows = pl.{scan}_parquet("lists/*.parquet"{columns}).filter(pl.col("pos") == "ADJ")
found = rows.join(people, on="qid").group_by("word", "gender").len(){collect}
found = found.pivot("gender", index="word", values="len").fill_null(0).sort("word")
found = found.select("0", "1", "2").to_numpy()
"""
WAYS = {
    "reader": READER,
    "pandas": PANDAS,
    "polars eager": POLARS.format(
        scan="read", columns=', columns=["qid", "word", "pos"]', collect=""
    ),
    "polars streaming": POLARS.format(
        scan="scan", columns="", collect='.collect(engine="streaming")'
    ),
}
MEASURED = """
import hashlib, json, resource, time
{imports}
wall, processor = time.perf_counter(), time.process_time()
{code}
wall, processor = time.perf_counter() - wall, time.process_time() - processor
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
digest = hashlib.sha256(found.astype("int64").tobytes()).hexdigest()
print(json.dumps([wall, processor, peak, digest]))
"""


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    chosen = sys.argv[3:] or list(WAYS)
    free = _free()
    ways = [way for way in chosen if NEEDS[way] * rows < 0.8 * free]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        invent(folder, rows)
        found: dict[str, list[list[float]]] = {way: [] for way in ways}
        digests = set()
        for _ in range(rounds):
            for way in ways:
                *numbers, digest = measure(WAYS[way], folder)
                found[way].append(numbers)
                digests.add(digest)
    if len(digests) > 1:
        raise SystemExit("the ways do not agree")
    print(f"{rows:,} rows, medians of {rounds} rounds")
    print("| way | seconds | processor seconds | peak MB | times faster | share of memory |")
    print("|---|---:|---:|---:|---:|---:|")
    for way in ways:
        wall, processor, peak = (statistics.median(part) for part in zip(*found[way], strict=True))
        ratios = " | "
        if "pandas" in ways:
            pairs = list(zip(found["pandas"], found[way], strict=True))
            faster = statistics.median(theirs[1] / ours[1] for theirs, ours in pairs)
            memory = statistics.median(ours[2] / theirs[2] for theirs, ours in pairs)
            ratios = f"{faster:.1f} | {memory:.3f}"
        print(f"| {way} | {wall:.1f} | {processor:.1f} | {peak:.0f} | {ratios} |")
    for way in (way for way in chosen if way not in ways):
        print(f"{way}: left out, needs about {NEEDS[way] * rows / 1e9:.0f} GB of memory")


def measure(code: str, folder: Path) -> list:
    """Return wall-clock and processor seconds, peak megabytes, and a digest of the counts."""
    lines = code.strip().splitlines()
    imports = [line for line in lines if line.startswith(("import", "from"))]
    rest = [line for line in lines if line not in imports]
    program = MEASURED.format(imports="\n".join(imports), code="\n".join(rest))
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PYTHONPATH": str(TOP), "PATH": "/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def invent(folder: Path, rows: int) -> None:
    """Write people, and lists of words for them in the layout of ``associations``."""
    import numpy as np
    import polars as pl
    import pyarrow as pa

    from plumbline.builders.core import parquet
    from plumbline.probes.politicians.associations import SCHEMA

    rng = np.random.default_rng(1)
    people = -(-rows // LENGTH)
    genders = rng.choice(3, people, p=[0.8, 0.19, 0.01])
    qids = [f"Q{i}" for i in range(1, people + 1)]
    frame = pl.DataFrame({"qid": qids, "gender": genders.astype(np.int64)})
    frame = frame.with_columns(name="Name " + pl.col("qid"))
    frame.write_parquet(folder / "people.parquet")
    words = pa.array([f"word{i:04}" for i in range(WORDS)])
    arrow = SCHEMA.arrow()
    (folder / "lists").mkdir(exist_ok=True)
    for shard, first in enumerate(range(0, people, SHARD)):
        tables = []
        for start in range(first, min(first + SHARD, people), BLOCK):
            some = frame.slice(start, min(BLOCK, first + SHARD - start))
            number = len(some)
            person = pa.array(np.repeat(np.arange(number), LENGTH))
            begin = rng.integers(0, WORDS, number)[:, None]
            best = pa.array(((begin + 7 * np.arange(LENGTH)) % WORDS).ravel())
            none = np.zeros(number * LENGTH, np.int32)
            columns = {
                "qid": some["qid"].to_arrow().cast(pa.string()).take(person),
                "name": some["name"].to_arrow().cast(pa.string()).take(person),
                "word": words.take(best),
                "lemma": words.take(best),
                "pos": pa.repeat("ADJ", number * LENGTH),
                "rank": pa.array(np.tile(np.arange(1, LENGTH + 1, dtype=np.int32), number)),
                "logprob_nats": pa.array(-rng.random(number * LENGTH)),
                "prior_nats": pa.nulls(number * LENGTH),
                "prompt_pieces": pa.array(none + 5),
                "unknown_pieces": pa.array(none),
            }
            one = pa.array(["bare"]).take(pa.array(none))
            columns["prompt"] = columns["name"]
            table = [
                columns.get(c.name, one).cast(arrow.field(c.name).type) for c in SCHEMA.columns
            ]
            tables.append(pa.table(table, schema=arrow))
        parquet.write_tables(tables, arrow, folder / "lists" / f"{shard:05d}.parquet")


def _free() -> int:
    """Return the number of free bytes of memory."""
    facts = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(facts["MemAvailable"].split()[0]) * 1024


if __name__ == "__main__":
    main()
