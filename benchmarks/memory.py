"""Measure memory and writing time of a probe with 10,000 and with 1,000,000 names.

    python benchmarks/memory.py [NAMES ...]

The script runs the probe ``associations`` on a tiny model, with each number of names in its own
process. It prints peak resident memory, names per second, and the times of tokenising and of
writing as shares of the time that a model with the shape of BERT base would take.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))
SYLLABLES = ("an", "ber", "cor", "dal", "el", "fi", "gor", "hu", "il", "jo", "kem", "lu", "mar")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(Path(sys.argv[2]), int(sys.argv[3]))
        return
    sizes = [int(word) for word in sys.argv[1:]] or [10_000, 1_000_000]
    print("| names | rows | seconds | peak MB | tokenising s | writing s |")
    print("|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            command = [sys.executable, __file__, "--one", name, str(size)]
            print(
                subprocess.run(command, check=True, capture_output=True, text=True).stdout, end=""
            )


def one(folder: Path, size: int) -> None:
    """Run the probe on all names in shards, as a run does, and discard the bytes."""
    import polars as pl

    from plumbline.builders.core import parquet
    from plumbline.probes.models.masked import Masked
    from plumbline.probes.politicians import associations
    from plumbline.probes.prompts import politicians as sentences

    rng = random.Random(1)
    people = folder / f"people-{size}"
    people.mkdir()
    names = [f"{_name(rng)} {_name(rng)} {i:x}" for i in range(size)]
    pl.DataFrame({"qid": [f"Q{i}" for i in range(size)], "name": names}).write_parquet(
        people / "en.parquet"
    )
    del names
    candidates = {"ADJ": _candidates()}
    scorer = Masked(_tiny(folder), "tiny", "none", dtype="float32")
    shards = max(1, -(-size // associations.SHARD))
    spent = {"tokenise": 0.0, "write": 0.0}
    encode, write = scorer.tokens.encode, parquet.write_tables

    def encoding(*given, **options):
        start = time.perf_counter()
        found = encode(*given, **options)
        spent["tokenise"] += time.perf_counter() - start
        return found

    scorer.tokens.encode = encoding
    frames = {"ADJ": {"bare": sentences.bare("before")}}
    rows, start = 0, time.perf_counter()
    for shard in range(shards):
        asked = associations.names(people, "en", shard, shards)
        tables = list(associations.run(asked, candidates, scorer, {"ADJ": 20}, "en", frames))
        rows, begin = rows + sum(map(len, tables)), time.perf_counter()
        write(tables, associations.SCHEMA.arrow(), folder / "shard.parquet")
        spent["write"] += time.perf_counter() - begin
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    shares = f"{spent['tokenise']:.1f} | {spent['write']:.1f}"
    print(f"| {size:,} | {rows:,} | {took:.1f} | {peak:.0f} | {shares} |")


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(SYLLABLES, k=3)).capitalize()


class _candidates:  # noqa: N801 stands for a table of the dataset `words`
    """A hundred words."""

    def __init__(self) -> None:
        self.forms = [f"{a}{b}" for a in SYLLABLES[:10] for b in SYLLABLES[:10]]
        self.lemmas = {form: form for form in self.forms}

    def prompt(self, name: str) -> str:
        return f"<mask> {name}"


def _tiny(folder: Path) -> Path:
    """Save a model with one narrow layer, so that the engine takes most time and memory."""
    import shapes
    from transformers import BertConfig, BertForMaskedLM

    where = folder / "tiny"
    words = _candidates().forms
    tokenizer = shapes.wordpiece([*words, *(f"{a}{b}{c}" for a in words for b, c in ["an", "fi"])])
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    BertForMaskedLM(config).save_pretrained(where)
    tokenizer.save_pretrained(where)
    return where


if __name__ == "__main__":
    main()
