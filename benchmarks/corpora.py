"""Build the dataset ``corpora`` from a generated dump of posts, compared with pandas.

    python benchmarks/corpora.py [GIGABYTES [GIGABYTES_FOR_PANDAS]]

The script writes a dump of the given size when unpacked (default: 1 GB), with a tenth of its lines
from the wanted communities. For each step, run in its own process, it prints seconds, rate and peak
memory: the selection made by ``fetch reddit``, the build, and ``pandas.read_json`` with a filter,
``drop_duplicates`` and ``sample``. A second dump of half the size shows whether memory grows.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))
SIDES = ("left", "center", "right")
WANTED = {f"Community{n}": SIDES[n % 3] for n in range(6)}
EVERY = [*WANTED, *(f"Other{n}" for n in range(54))]
SIZE = 500_000  # number of words in each corpus
REST = {  # the other fields of a post, as many and as long as in real dumps
    "author_fullname": "t2_abcdefg",
    "permalink": "/r/community/comments/abcdef/a_title_of_some_length_that_is_repeated/",
    "thumbnail": "self",
    "media_embed": {},
    "all_awardings": [],
    "subreddit_id": "t5_2abcd",
    "link_flair_richtext": [],
    "domain": "self.Community",
    "url": "https://www.example.org/r/community/comments/abcdef/a_title_of_some_length/",
}


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        STEPS[sys.argv[2]](Path(sys.argv[3]), sys.argv[4])
        return
    whole = float(sys.argv[1]) if len(sys.argv) > 1 else 1
    plain = float(sys.argv[2]) if len(sys.argv) > 2 else whole
    print("| step | GB unpacked | GB packed | seconds | MB/s unpacked | peak MB | result |")
    print("|---|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for gigabytes in sorted({whole / 2, whole, plain}):
            generate(folder / f"dump-{gigabytes:g}.zst", gigabytes)
        for step in ("cut", "build"):
            for gigabytes in (whole / 2, whole):
                one(step, folder, gigabytes)
        one("pandas", folder, plain)


def one(step: str, folder: Path, gigabytes: float) -> None:
    command = [sys.executable, __file__, "--one", step, str(folder), f"{gigabytes:g}"]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took = time.perf_counter() - start
    packed = (folder / f"dump-{gigabytes:g}.zst").stat().st_size / 1e9
    if done.returncode:
        result, peak = f"failed: {done.stderr.splitlines()[-1]}", 0.0
    else:
        found = json.loads(done.stdout.splitlines()[-1])
        result, peak = found["result"], found["peak"]
    rate = gigabytes * 1000 / took
    print(
        f"| {step} | {gigabytes:g} | {packed:.2f} | {took:.0f} | {rate:.0f} | {peak:.0f} | "
        f"{result} |",
        flush=True,
    )


def tell(result: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"result": result, "peak": peak}))


def generate(path: Path, gigabytes: float) -> None:
    """Write a dump whose texts are parts of one random text, which zstd can hardly compress."""
    import zstandard

    rng = random.Random(1)
    words = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(20_000)]
    text = " ".join(rng.choices(words, k=1_500_000))
    rest = json.dumps(REST)[1:-1]
    written, number, last = 0, 0, ""
    with path.open("wb") as file, zstandard.ZstdCompressor(level=1).stream_writer(file) as writer:
        while written < gigabytes * 1e9:
            begin = rng.randrange(len(text) - 4000)
            body = text[begin : begin + int(rng.expovariate(1 / 600)) + 20]
            body = last if number % 50 == 0 and last else body  # an occasional duplicate
            line = (
                f'{{"id":"{number:x}","subreddit":"{EVERY[number % len(EVERY)]}","author":"w'
                f'{number % 9973}","created_utc":{1_400_000_000 + number * 60},{rest},"body":'
                f'"{body}"}}\n'
            ).encode()
            writer.write(line)
            written += len(line)
            number, last = number + 1, body


def cut(folder: Path, size: str) -> None:
    from plumbline.builders.datasets.corpora import fetch as reddit
    from plumbline.builders.fetch.http import Politeness

    listed = folder / "communities.csv"
    lines = "".join(f"{name},{side}\n" for name, side in WANTED.items())
    listed.write_text(f"community,leaning\n{lines}")
    params = reddit.Params(
        dumps={"posts": str(folder / f"dump-{size}.zst")},
        communities=str(listed),
        licence="CC0-1.0",
        citation="generated",
    )
    into = folder / f"cut-{size}" / "2026-11-22"
    reddit.fetch(params, Politeness(contact="benchmark"), into)
    facts = json.loads((into / "posts.json").read_text("utf-8"))
    stored = (into / "posts.jsonl.zst").stat().st_size / 1e6
    tell(f"{facts['kept']:,} of {facts['lines']:,} lines, {stored:.0f} MB")


def build(folder: Path, size: str) -> None:
    from plumbline.builders.core import parquet
    from plumbline.builders.core.snapshot import Snapshot
    from plumbline.builders.datasets.corpora import build as corpora
    from plumbline.builders.datasets.corpora.sample import CONFIGS

    snapshots = {
        "news": Snapshot.open(TOP / "data/samples/news/2026-11-22"),
        "reddit": Snapshot.open(folder / f"cut-{size}" / "2026-11-22"),
    }
    sizes = {c: SIZE if c.startswith("social") else 1000 for c in CONFIGS}
    params = corpora.Params(
        version="0.1.0", snapshots={"news": "", "reddit": ""}, sizes=sizes, even=False
    )
    rows = corpora.build(snapshots, params)
    counts = parquet.write(rows, corpora.SCHEMA, folder / f"built-{size}")
    out = sum(n for (_, reason), n in counts.rejects.items() if reason == "duplicate")
    tell(f"{sum(counts.rows.values()):,} rows, {out:,} duplicates")


def pandas(folder: Path, size: str) -> None:
    """Read the complete dump and filter it, as one would in a notebook."""
    import pandas as pd

    frame = pd.read_json(folder / f"dump-{size}.zst", lines=True, compression="zstd")
    frame = frame[frame["subreddit"].isin(list(WANTED))].drop_duplicates("body")
    frame["leaning"] = frame["subreddit"].map(WANTED)
    drawn = frame.groupby("leaning").sample(frac=0.1, random_state=1)
    tell(f"{len(drawn):,} rows of {len(frame):,}; exact duplicates only")


STEPS = {"cut": cut, "build": build, "pandas": pandas}

if __name__ == "__main__":
    main()
