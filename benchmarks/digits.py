"""Measure how precision, instructions, batches and cores change log-probabilities.

    python benchmarks/digits.py

A model with the shape of BERT base and random weights, and one with real weights, predict words at
a mask; each way of computing runs in its own process. Results are compared with those in double
precision, and float32 results that should be equal are compared bit by bit. With random weights,
thousands of words have almost equal probabilities; ranks change less with real weights.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))
NAMES, BEST, FIRST = 256, 100, 20
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
}
# for each way: precision, packing, texts in a batch, cores, environment variables
WAYS: dict[str, tuple[str, bool, int, int, dict[str, str]]] = {
    "float64": ("float64", True, 0, 1, {}),
    "float32": ("float32", True, 0, 1, {}),
    "float32, batches of 7": ("float32", True, 7, 1, {}),
    "float32, batches of 128": ("float32", True, 128, 1, {}),
    "float32, two cores": ("float32", True, 0, 2, {}),
    "float32, torch's own products": ("float32", False, 0, 1, {}),
    "float32, torch's own products, batches of 7": ("float32", False, 7, 1, {}),
    "float32, AVX2": ("float32", True, 0, 1, AVX2),
    "float32, AVX2, batches of 7": ("float32", True, 7, 1, AVX2),
    "float32, AVX2, torch's own products": ("float32", False, 0, 1, AVX2),
    "float32, AVX2, torch's own products, batches of 7": ("float32", False, 7, 1, AVX2),
    "bfloat16": ("bfloat16", True, 0, 1, {}),
    "bfloat16, batches of 7": ("bfloat16", True, 7, 1, {}),
}


def main() -> None:
    import shapes
    from engine import processor

    print(processor())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shapes.make("bert-base", folder / "bert-base")
        real = shapes.SHARED / "models" / "stories260k"
        for kind, where in (("masked", folder / "bert-base"), ("causal", real)):
            print(f"\n{where.name}, {NAMES} prompts\n")
            print(
                f"| way | nats | best third, at most {BEST} | order of {FIRST} | Spearman | bits |"
            )
            print("|---|---:|---:|---:|---:|---|")
            asked = {way: ask(kind, where, folder, way) for way in WAYS}
            for way, found in asked.items():
                base = way.split(", batches")[0].split(", two")[0]
                bits = "" if base == way else same(found, asked[base])
                print(f"| {way} | {compared(found, asked['float64'])} | {bits} |", flush=True)


def ask(kind: str, where: Path, folder: Path, way: str):
    """Return the log-probabilities (prompts, words) of one way, computed in its own process."""
    import numpy as np

    out = folder / "answers.npy"
    more = {"PLUMBLINE_DEVICE": "cpu", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    more |= {"PLUMBLINE_CORES": str(WAYS[way][3]), **WAYS[way][4]}
    command = [sys.executable, __file__, json.dumps([kind, str(where), str(out), way])]
    subprocess.run(command, env=os.environ | more, check=True)
    return np.load(out)


def compared(found, true) -> str:
    """Return the largest difference (nats), agreement on the best word, and rank correlation."""
    import numpy as np
    from scipy.stats import spearmanr

    one, other = (np.argsort(-rows, axis=1, kind="stable") for rows in (found, true))
    size = min(BEST, found.shape[1] // 3)
    shared = np.mean(
        [len(set(a[:size]) & set(b[:size])) / size for a, b in zip(one, other, strict=True)]
    )
    order = np.mean((one[:, :FIRST] == other[:, :FIRST]).all(axis=1))
    rank = np.mean([spearmanr(a, b).statistic for a, b in zip(found, true, strict=True)])
    return f"{np.abs(found - true).max():.1e} | {shared:.4f} | {order:.3f} | {rank:.6f}"


def same(found, other) -> str:
    """Report whether all bits agree, or in how many prompts they differ."""
    differ = int((found != other).any(axis=1).sum())
    return "the same" if not differ else f"differ for {differ} of {len(found)}"


def child(kind: str, where: str, out: str, way: str) -> None:
    """Compute the log-probabilities in this process."""
    import numpy as np
    import shapes

    from plumbline.probes.models import batching, forward, kernels
    from plumbline.probes.models.causal import Causal
    from plumbline.probes.models.masked import Masked

    dtype, laid_out, rows, _, _ = WAYS[way]
    forward.DECIMALS = 15  # keep the digits that rounding would hide
    if not laid_out:
        kernels.works = lambda _: False
    if rows:
        batching.ROWS, batching.TOKENS = rows, 1 << 20
    chosen = random.Random(1).sample(shapes.names(), NAMES)
    scorer = (Masked if kind == "masked" else Causal)(Path(where), "model", "none", dtype=dtype)
    prompts = [f"<mask> {name}" if kind == "masked" else f"{name} is <mask>" for name in chosen]
    pieces = scorer.pieces()
    own = {word for word, start in zip(pieces.words, pieces.starts, strict=True) if start}
    every = shapes.words()[:3000] if kind == "masked" else sorted(own)
    (filled,) = scorer.fill(prompts, every, len(every))
    found = np.empty_like(filled.logprobs_nats)
    np.put_along_axis(found, filled.best, filled.logprobs_nats, axis=1)
    np.save(out, found)


if __name__ == "__main__":
    child(*json.loads(sys.argv[1])) if len(sys.argv) > 1 else main()
