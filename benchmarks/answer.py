"""Measure the time from a model folder to an answer, compared with the usual loop.

    python benchmarks/answer.py

The usual way is ``transformers.pipeline("fill-mask")`` over the same prompts, one by one, which
keeps the best words of each and has no intervals, tests, validation or records. The command of this
project starts with an empty cache, so that its first run also builds the sample. There are two
models, a tiny one and one with the shape of BERT base and random weights. All runs are made in
turn, each in its own process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

TOP = Path(__file__).parent.parent
WORLD = TOP / "data/samples/worlds/world-planted"
TIMES = 3
USUAL = """
import sys
import polars as pl
from transformers import pipeline
model, outputs = sys.argv[1:]
prompts = pl.read_parquet(outputs)["prompt"].unique(maintain_order=True).to_list()
fill = pipeline("fill-mask", model=model, top_k=20)
words = [[found["token_str"] for found in fill(prompt)] for prompt in prompts]
print(len(words))
"""


def took(*words: str, home: Path) -> float:
    """Run a process, and return its wall-clock seconds."""
    begun = time.perf_counter()
    here = os.environ | {"PLUMBLINE_HOME": str(home), "TOKENIZERS_PARALLELISM": "false"}
    subprocess.run(
        [sys.executable, *words], cwd=home.parent, env=here, check=True, capture_output=True
    )
    return time.perf_counter() - begun


def base(folder: Path) -> None:
    """Save a model with the shape of BERT base and the tokenizer of the tiny model."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    torch.manual_seed(1)
    BertForMaskedLM(BertConfig()).save_pretrained(folder)
    AutoTokenizer.from_pretrained(WORLD).save_pretrained(folder)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        models = {"tiny": top / "tiny-model", "BERT base": top / "base-model"}
        shutil.copytree(WORLD, models["tiny"])
        (models["tiny"] / "manifest.json").unlink()
        base(models["BERT base"])
        print("| model | first answer, s | again, s | usual loop, s | first to usual |")
        print("|---|---:|---:|---:|---:|")
        for name, folder in models.items():
            times: dict[str, list[float]] = {"first": [], "again": [], "usual": []}
            for number in range(TIMES):
                home = top / f"{folder.name}-{number}" / "home"
                home.mkdir(parents=True)
                asked = ("-m", "plumbline", "run", "politicians", "-m", str(folder))
                for which in ("first", "again"):
                    times[which].append(took(*asked, "--language", "en", home=home))
                (made,) = home.parent.glob("plumbline-results/*/data/outputs/associations/*/en/*")
                times["usual"].append(took("-c", USUAL, str(folder), str(made), home=home))
            first, again, usual = (median(times[which]) for which in ("first", "again", "usual"))
            ratio = median(a / b for a, b in zip(times["first"], times["usual"], strict=True))
            print(f"| {name} | {first:.1f} | {again:.1f} | {usual:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
