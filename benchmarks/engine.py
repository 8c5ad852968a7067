"""Compare the engine with what a user would use instead, on models of realistic shapes.

    python benchmarks/engine.py [WORK ...]

Every figure is the median ratio of processor times over interleaved pairs, in which baseline and
engine run in turn in one process on one thread. The works are fill, fill-xlmr, pll, classify,
share, rate and rate-bf16.

``rate`` is reported in four ways. Its operations are those of matrix products and attention, either
as computed or as in the plain forward pass with the head at the mask only (the engine leaves out a
part of the last layer). The rate of the machine is that of the matrix products of BERT base with
1,024 rows, each with its own weights (of twelve layers, so that they are as cold in memory as in
the model), computed with the packed products of oneDNN, which the engine uses, or with those of
torch.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

os.environ["PLUMBLINE_CORES"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import shapes  # noqa: E402
import torch  # noqa: E402

from plumbline.probes.models import kernels  # noqa: E402
from plumbline.probes.models.causal import Causal  # noqa: E402
from plumbline.probes.models.classifier import Classifier  # noqa: E402
from plumbline.probes.models.masked import Masked  # noqa: E402

PAIRS = 5
RATE_PAIRS, PORTION = 21, 128  # number of pairs, and of names per portion
GOALS = {  # goals for the processors of the first measurements
    "fill": 5.0,
    "fill-xlmr": 10.0,
    "pll": 3.0,
    "classify": 3.6,
    "share": 1.9,
    "rate": 0.88,
    "rate-bf16": 0.78,
}


def main() -> None:
    torch.set_num_threads(1)
    works = {
        "fill": lambda folder: fill(folder, "bert-base"),
        "fill-xlmr": lambda folder: fill(folder, "xlm-roberta-base"),
        "pll": pll,
        "classify": classify,
        "share": share,
        "rate": lambda folder: rate(folder, "float32"),
        "rate-bf16": lambda folder: rate(folder, "bfloat16"),
    }
    wanted = sys.argv[1:] or list(works)
    if unknown := set(wanted) - set(works):
        raise SystemExit(f"error: no work {', '.join(unknown)}; there are {', '.join(works)}")
    capability = torch.backends.cpu.get_cpu_capability()
    onednn = "packed oneDNN" if kernels.works(torch.float32) else "torch's own"
    print(f"{processor()}, {capability}, float32 products: {onednn}")
    print("| work | baseline | ratio, median of pairs | all pairs | goal |")
    print("|---|---|---:|---|---:|")
    for work in wanted:
        with tempfile.TemporaryDirectory() as name:
            measured = works[work](Path(name))
        for baseline, ratios in measured if isinstance(measured, list) else [measured]:
            pairs = " ".join(f"{ratio:.2f}" for ratio in ratios)
            median = statistics.median(ratios)
            print(f"| {work} | {baseline} | {median:.2f} | {pairs} | {GOALS[work]} |", flush=True)


def processor() -> str:
    """Return the name of the processor."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))


def paired(baseline, engine) -> list[float]:
    """Return the ratios of processor time, after one warm-up round."""
    found = []
    for number in range(PAIRS + 1):
        seconds = []
        for work in (baseline, engine):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
        if number:
            found.append(seconds[0] / seconds[1])
    return found


def fill(folder: Path, shape: str) -> tuple[str, list[float]]:
    """Find the 100 best words at a mask next to names, with the full normaliser."""
    from transformers import pipeline

    shapes.make(shape, folder)
    chosen = random.Random(1).sample(shapes.names(), 192 if shape == "bert-base" else 96)
    mask = "[MASK]" if shape == "bert-base" else "<mask>"
    usual = pipeline("fill-mask", model=str(folder), top_k=100, batch_size=32, device="cpu")
    engine = Masked(folder, shape, "none", dtype="float32")
    candidates = shapes.words()[:3000]

    def ours() -> None:
        for _ in engine.fill((f"<mask> {name}" for name in chosen), candidates, 100):
            pass

    return "fill-mask pipeline, batch 32", paired(
        lambda: usual([f"{mask} {n}" for n in chosen]), ours
    )


def pll(folder: Path) -> tuple[str, list[float]]:
    """Score tweets of 23 tokens by pseudo-log-likelihood, compared with minicons."""
    python = minicons()
    shapes.make("bert-base", folder)
    engine = Masked(folder, "bert-base", "none", dtype="float32")
    texts = [t for t in shapes.tweets() if len(engine.tokens.encode([t])[0]) == 23][:8]
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    script = str(Path(__file__).with_name("minicons_pll.py"))
    command = [python, script, "--model", str(folder), "--texts", str(folder / "texts.txt")]
    command += ["--out", str(folder / "scores.json"), "--rounds", "1"]
    found = []
    for number in range(PAIRS + 1):
        subprocess.run(command, capture_output=True, check=True)
        usual = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
        start = time.process_time()
        scores = list(engine.pseudo_logprobs(texts))
        if number:
            spent = usual["rounds"][0]["cpu_s"]
            found.append(spent / (time.process_time() - start))
    apart = max(abs(a - b.logprob_nats) for a, b in zip(usual["scores"], scores, strict=True))
    return f"minicons, one by one (scores alike to {apart:.0e})", found


def minicons() -> str:
    """Return the Python of an environment with minicons, which is created if needed."""
    where = TOP / ".venv-minicons"
    if not (where / "ready").is_file():
        pins = Path(__file__).with_name("minicons.txt")
        subprocess.run([sys.executable, "-m", "venv", str(where)], check=True)
        install = [str(where / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, "--requirement", str(pins)], check=True)
        (where / "ready").touch()
    return str(where / "bin" / "python")


def classify(folder: Path) -> tuple[str, list[float]]:
    """Predict three labels for tweets of 22 tokens."""
    from transformers import pipeline

    shapes.make("roberta-base-classifier", folder)
    engine = Classifier(folder, "roberta-base", "none", dtype="float32")
    lengths = ((t, len(engine.tokens.encode([t])[0])) for t in shapes.tweets())
    texts = [text for text, length in lengths if 16 <= length <= 28][:192]
    usual = pipeline(
        "text-classification", model=str(folder), top_k=None, batch_size=32, device="cpu"
    )
    return "text-classification pipeline, batch 32", paired(
        lambda: usual(texts), lambda: list(engine.classify(texts))
    )


def share(folder: Path) -> tuple[str, list[float]]:
    """Score continuations of counterfactual prefixes that share their first half."""
    shapes.make("gpt2", folder)
    engine = Causal(folder, "gpt2", "none", dtype="float32")
    rng = random.Random(1)
    names, texts = shapes.names(), shapes.tweets()
    pairs = []
    for text in rng.sample([t for t in texts if 90 < len(t) < 110], 24):
        words = text.split()
        half = " ".join(words[: len(words) * 2 // 3])
        pairs += [(f"{half} {name} was", " very kind") for name in rng.sample(names, 16)]

    def alone() -> None:
        engine.shares = False
        list(engine.logprobs(pairs))
        engine.shares = True

    return "exact-length batches without sharing", paired(
        alone, lambda: list(engine.logprobs(pairs))
    )


def rate(folder: Path, dtype: str) -> list[tuple[str, list[float]]]:
    """Measure which share of the machine's rate of matrix products BERT base reaches.

    Both have the same precision. Names are processed in portions of about a second, and the rate of
    products is measured before and after each, since it varies on a shared processor.
    """
    shapes.make("bert-base", folder)
    engine = Masked(folder, "bert-base", "none", dtype=dtype)
    chosen = random.Random(1).sample(shapes.names(), RATE_PAIRS * PORTION)
    prompts = [f"<mask> {name}" for name in chosen]
    candidates = shapes.words()[:3000]
    lengths = [
        len(ids) for ids in engine.tokens.encode([p.replace("<mask>", "[MASK]") for p in prompts])
    ]
    order = sorted(range(len(prompts)), key=lambda i: lengths[i])  # so that lengths are similar
    precision = getattr(torch, dtype)
    layers = [torch.randn(out, into, dtype=precision) for _ in range(12) for out, into in PRODUCTS]
    kinds = {
        "torch's own products": [
            partial(torch.nn.functional.linear, weight=weight) for weight in layers
        ],
    }
    if kernels.works(precision):
        kinds["oneDNN's packed products"] = [kernels.Packed(weight, None) for weight in layers]
    found: dict[str, list[float]] = {}
    rates = {kind: product_rate(products, precision) for kind, products in kinds.items()}
    for number in range(RATE_PAIRS):
        portion = order[number * PORTION : (number + 1) * PORTION]
        start = time.process_time()
        for _ in engine.fill([prompts[i] for i in portion], candidates, 100):
            pass
        spent = time.process_time() - start
        before = rates
        rates = {kind: product_rate(products, precision) for kind, products in kinds.items()}
        for kind in kinds:
            usual = (before[kind] + rates[kind]) / 2
            for what, short in (("computed", engine.narrow), ("of the plain forward", False)):
                done = flops([lengths[i] for i in portion], short=short)
                found.setdefault(f"operations {what}, of the rate of {kind}", []).append(
                    done / spent / usual
                )
    return list(found.items())


PRODUCTS = [(768, 768)] * 4 + [(3072, 768), (768, 3072)]  # output and input sizes in one layer


def flops(lengths: list[int], *, short: bool) -> float:
    """Return the number of operations of BERT base on texts of given lengths with one mask.

    Parameters
    ----------
    short
        Whether only the mask is computed after the attention of the last layer.
    """
    width, inner, layers, vocabulary = 768, 3072, 12, 30_522
    layer = 2 * (4 * width * width + 2 * width * inner)
    body = sum(layers * (length * layer + 4 * length * length * width) for length in lengths)
    if short:
        body -= sum(length - 1 for length in lengths) * (layer - 2 * 3 * width * width)
    return body + len(lengths) * 2 * (width * width + width * vocabulary)


@torch.inference_mode()
def product_rate(products: list, dtype: torch.dtype) -> float:
    """Return the operations per second of successive products with 1,024 rows."""
    states = {into: torch.randn(1024, into, dtype=dtype) for into in (768, 3072)}
    done = 0
    start = time.process_time()
    for number, product in enumerate(products):
        out, into = PRODUCTS[number % len(PRODUCTS)]
        product(states[into])
        done += 2 * 1024 * out * into
    return done / (time.process_time() - start)


if __name__ == "__main__":
    main()
