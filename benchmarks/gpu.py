"""Compare the results of a GPU with those of the CPU, and measure its utilisation.

    python benchmarks/gpu.py [--smoke] [WORK ...]

The script takes at most eight minutes and uses models of realistic shapes with random weights and
made-up texts. First, ``agree`` runs the same prompts and the same short training on both devices in
float32 (TF32 in training); a difference beyond the bound is an error. The other works measure texts
and tokens per second, peak memory, and operations as a share of the bfloat16 rate, both that of the
data sheet and that of one large product. Operations are those of matrix products and attention over
tokens, without padding; a training step has three times those of its forward pass. A work that
takes too long or fails is left out, with an error at the end. ``--smoke`` runs everything on the
CPU with tiny models.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import numpy as np  # noqa: E402
import shapes  # noqa: E402
import torch  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402
from training import MEANS, timed  # noqa: E402

from plumbline.probes.models.causal import Causal  # noqa: E402
from plumbline.probes.models.classifier import Classifier  # noqa: E402
from plumbline.probes.models.masked import Masked  # noqa: E402
from plumbline.probes.training import train  # noqa: E402

PEAKS = {"H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40S": 362, "L4": 121}  # TFLOPS
LIMIT, EACH = 460.0, 120.0  # maximum seconds of all works, and of a single one
SECONDS = 12.0  # approximate seconds of measurement per work
ASKED, TRAINED = 1e-3, 2e-2  # maximum differences of results and losses, nats
GOALS = {"fill": 0.4, "pretrain": 0.4}  # share of the rate in the data sheet
TINY = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
TINY |= {"intermediate_size": 64, "vocab_size": 8000}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
HEAD = "| work | texts/s | tokens/s | TFLOPS | of the sheet | goal | of a product | peak GB |\n"
HEAD += "|---|---:|---:|---:|---:|---:|---:|---:|"


class Done(NamedTuple):
    """The measurements of one work."""

    texts: int
    tokens: int
    operations: float
    seconds: float


def main() -> None:
    words = sys.argv[1:]
    smoke = "--smoke" in words
    if not smoke and not torch.cuda.is_available():
        raise SystemExit(
            "error: this needs a CUDA device, and torch finds none; --smoke tries all of it on the "
            "CPU with tiny models"
        )
    where, seconds = ("cpu", 0.2) if smoke else ("cuda", SECONDS)
    works: dict[str, Callable[..., Done]] = {
        "fill": fill,
        "pll": pll,
        "classify": classify,
        "pretrain": partial(pretrain, batch_tokens=65_536),
        "pretrain-256": pretrain,
        "pretrain-float32": partial(pretrain, precision="float32"),
        "finetune": finetune,
    }
    wanted = [word for word in words if word != "--smoke"] or ["agree", *works]
    if unknown := set(wanted) - {"agree", *works}:
        raise SystemExit(
            f"error: no work {', '.join(unknown)}; there are agree, {', '.join(works)}"
        )
    begun = time.perf_counter()
    name = torch.cuda.get_device_name() if where == "cuda" else "CPU, smoke"
    sheet = next((1e12 * rate for key, rate in PEAKS.items() if key in name), float("nan"))
    product = products(where, 128 if smoke else 8192)
    print(f"{name}, torch {torch.__version__}; TFLOPS in bfloat16: {sheet / 1e12:.0f} by the data ")
    print(f"sheet, {product / 1e12:.3g} in one product\n")
    failed, head = [], True
    for work in wanted:
        os.environ["PLUMBLINE_DEVICE"] = where
        if where == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        left = min(EACH, begun + LIMIT - time.perf_counter())
        try:
            with tempfile.TemporaryDirectory() as folder, bounded(left):
                if work == "agree":
                    agree(Path(folder), where, smoke)
                    continue
                done = works[work](Path(folder), smoke, seconds)
        except (Exception, Late) as error:  # noqa: BLE001  # the machine may not be had again
            failed.append(f"{work}: {str(error) or type(error).__name__}")
            continue
        if head:
            print(HEAD)
            head = False
        rate = done.operations / done.seconds
        peak = f"{torch.cuda.max_memory_allocated() / 1e9:.1f}" if where == "cuda" else ""
        print(
            f"| {work} | {done.texts / done.seconds:,.0f} | {done.tokens / done.seconds:,.0f} | "
            f"{rate / 1e12:.3g} | {rate / sheet:.2f} | {GOALS.get(work, '')} | "
            f"{rate / product:.2f} | {peak} |",
            flush=True,
        )
        if rate / sheet < GOALS.get(work, 0):
            failed.append(f"{work}: goal missed")
    print(f"\n{time.perf_counter() - begun:.0f} s in all")
    if failed:
        raise SystemExit(f"error: {'; '.join(failed)}")


class Late(BaseException):
    """Raised if a work takes too long; not an Exception, since libraries catch those."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Stop the context after some seconds, or at once if none are left."""

    def stop(*_: object) -> None:
        raise Late(f"more than the {max(0.0, seconds):.0f} s that there were")

    if seconds <= 0:
        stop()
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def operations(scorer, lengths: Counter[int], verb: str) -> float:
    """Return the operations of matrix products for texts of given lengths (tokens).

    The head is counted only where it is computed: at one position of each text for ``fill``, and
    nowhere for ``represent``. A copy of the model without weights runs on torch's ``meta`` device.
    """
    model = scorer.model
    with torch.device("meta"):
        bare = type(model)(model.config).eval()
    total = 0.0
    for length, times in lengths.items():
        ids = torch.zeros(1, length, dtype=torch.long, device="meta")
        body = getattr(bare, bare.base_model_prefix, bare)
        options = {"input_ids": ids}
        if bare.config.is_encoder_decoder:  # two tokens: the start token and T5's sentinel
            options["decoder_input_ids"] = ids[:, :2]
        with FlopCounterMode(display=False) as whole:
            bare(**options)
        with FlopCounterMode(display=False) as inner:
            body(**options)
        head = whole.get_total_flops() - inner.get_total_flops()
        if isinstance(scorer, Masked) or (verb == "fill" and not bare.config.is_encoder_decoder):
            head /= length
        if verb == "represent":
            head = 0
        total += times * (inner.get_total_flops() + head)
    return total


def products(where: str, width: int) -> float:
    """Return the operations per second of one large product in bfloat16."""
    square = torch.randn(width, width, dtype=torch.bfloat16, device=where)
    rate = 0.0
    for times in (3, 20):  # the first one is a warm-up
        begun = time.perf_counter()
        for _ in range(times):
            last = square @ square
        float(last[0, 0])  # waits
        rate = 2 * width**3 * times / (time.perf_counter() - begun)
    return rate


def agree(folder: Path, where: str, smoke: bool) -> None:
    """Compare the results of both devices; a large difference is an error."""
    texts = shapes.invented(64, 20.0, 0.5)
    for shape in ("roberta-base", "roberta-base-classifier"):
        made(shape, folder / shape, texts, smoke=smoke, **STILL)
    made("gpt2", folder / "gpt2", texts, smoke=smoke)
    ours, theirs = (answers(folder, device, texts) for device in ("cpu", where))
    print("| answers | of a CPU and this device: nats apart at most | bound |")
    print("|---|---:|---:|")
    wrong = []
    for what, own in ours.items():
        apart = float(np.abs(own - theirs[what]).max())
        bound = TRAINED if what.startswith("losses") else ASKED
        print(f"| {what} | {apart:.2g} | {bound:g} |")
        if not apart <= bound:
            wrong.append(what)
    print()
    if wrong:
        raise ValueError(f"this device answers otherwise than a CPU: {', '.join(wrong)}")


def answers(folder: Path, device: str, texts: list[str]) -> dict[str, np.ndarray]:
    """Return the responses and the training losses of models on a device."""
    os.environ["PLUMBLINE_DEVICE"] = device
    some, words = texts[:16], sorted(set(" ".join(texts[:2]).split()))
    masked = Masked(folder / "roberta-base", "m", "r", dtype="float32")
    prompts = [f"{text} <mask>" for text in some]
    fills = [
        sorted(zip((block.candidates[j] for j in best), nats.tolist(), strict=True))
        for block in masked.fill(prompts, words, len(words))
        for best, nats in zip(block.best, block.logprobs_nats, strict=True)
    ]
    causal = Causal(folder / "gpt2", "m", "r", dtype="float32")
    labels = Classifier(folder / "roberta-base-classifier", "m", "r", dtype="float32")
    found = {
        "fill": [number for fill in fills for _, number in fill],
        "pseudo-log-likelihood": [s.logprob_nats for s in masked.pseudo_logprobs(some)],
        "continuations": [
            s.logprob_nats for s in causal.logprobs((text, f" {text}") for text in some)
        ],
        "classes": [each.logprobs_nats for each in labels.classify(some)],
    }
    tuning = train.Tuning(1e-4, 2, 16, 64, seed=1, at_once=8)
    into = folder / f"trained-{len(list(folder.glob('trained-*')))}"
    where = folder / "roberta-base"
    done = train.finetune(where, "m", "masked", texts, tuning, into / "masked")
    found["losses of pretraining"] = [step.loss for step in done.losses]
    classes = [len(text) % 2 for text in texts]
    given = (texts, classes, ["a", "b"], tuning, into / "classes")
    done = train.finetune_classifier(where, "m", *given)
    found["losses of fine-tuning"] = [step.loss for step in done.losses]
    return {what: np.array(numbers) for what, numbers in found.items()}


def asked(
    engine, verb: str, ask: Callable, texts: list[str], seconds: float, copies: bool = False
) -> Done:
    """Run a model on texts for the available time, after a warm-up.

    Parameters
    ----------
    copies
        Whether each token is scored in its own copy of the text.
    """
    number = first = len(texts) // 64
    spent = 1.0
    for turn in ("cold", "warm", "measured"):
        if turn == "measured":
            number = min(len(texts), max(first, int(first * seconds / spent)))
        begun = time.perf_counter()
        for _ in ask(texts[:number]):
            pass
        spent = time.perf_counter() - begun
    lengths = [len(ids) for ids in engine.tokens.encode(texts[:256])]
    if copies:
        lengths = [length for length in lengths for _ in range(length - 2)]
    each = number / len(texts[:256])
    return Done(
        number, each * sum(lengths), each * operations(engine, Counter(lengths), verb), spent
    )


def made(shape: str, folder: Path, texts: list[str], *, smoke: bool, **sizes: float) -> Path:
    """Save a model of a realistic shape, or a tiny one of the same kind in the smoke test."""
    return shapes.make(shape, folder, texts[:500], **(TINY if smoke else {}), **sizes)


def fill(folder: Path, smoke: bool, seconds: float) -> Done:
    """Find the 100 best of some words next to short names (XLM-RoBERTa large, bfloat16)."""
    names = shapes.invented(512 if smoke else 300_000, 6.0, 0.3)
    made("xlm-roberta-large", folder, names, smoke=smoke)
    engine = Masked(folder, "m", "r", dtype="bfloat16")
    words = sorted(set(" ".join(names[:500]).split()))
    prompts = [f"<mask> {name}" for name in names]
    return asked(engine, "fill", lambda some: engine.fill(some, words, 100), prompts, seconds)


def pll(folder: Path, smoke: bool, seconds: float) -> Done:
    """Compute pseudo-log-likelihoods of tweets (RoBERTa base, bfloat16)."""
    texts = shapes.invented(128 if smoke else 20_000, 23.0, 0.3)
    made("roberta-base", folder, texts, smoke=smoke)
    engine = Masked(folder, "m", "r", dtype="bfloat16")
    return asked(engine, "fill", engine.pseudo_logprobs, texts, seconds, copies=True)


def classify(folder: Path, smoke: bool, seconds: float) -> Done:
    """Classify posts (RoBERTa base, bfloat16)."""
    texts = shapes.invented(128 if smoke else 100_000, MEANS["left"])
    made("roberta-base-classifier", folder, texts, smoke=smoke)
    engine = Classifier(folder, "m", "r", dtype="bfloat16")
    return asked(engine, "classify", engine.classify, texts, seconds)


def trained(engine, tune: Callable, texts: list[str], seconds: float, share: float) -> Done:
    """Train for the available time, after a warm-up.

    Parameters
    ----------
    share
        Share of the tokens for which the head is computed; 0 for a classifier.
    """
    number, first = len(texts) // 16, len(texts) // 16
    with timed(time.perf_counter) as spent:
        for turn in ("cold", "warm", "measured"):
            if turn == "measured":
                number = min(len(texts), max(first, int(first * seconds / spent[-1][0])))
            tune(texts[:number], turn)
    took, lengths = spent[-1]
    some = lengths[:256].tolist()
    each = forward(engine, some, share) / sum(some)
    return Done(number, int(lengths.sum()), 3 * each * lengths.sum(), took)


def forward(engine, lengths: list[int], share: float) -> float:
    """Return the operations of training on texts; for ``share`` see :func:`trained`."""
    if not share:  # the head of a classifier is computed once per text
        return operations(engine, Counter(lengths), "classify")
    body = operations(engine, Counter(lengths), "represent")
    head = operations(engine, Counter(lengths), "fill") - body  # at one position of each text
    return body + head * share * sum(lengths) / len(lengths)


def pretrain(
    folder: Path, smoke: bool, seconds: float, batch_tokens: int = 0, precision: str = "bfloat16"
) -> Done:
    """Pretrain RoBERTa base further on posts, in steps of 256 posts or as many tokens."""
    texts = shapes.invented(128 if smoke else 65_536, MEANS["left"])
    start = made("roberta-base", folder / "m", texts, smoke=smoke)
    tuning = train.Tuning(1e-4, 1, 256, 512, seed=1, at_once=64, precision=precision)
    tuning = tuning._replace(batch_tokens=batch_tokens)

    def tune(some: list[str], turn: str) -> None:
        train.finetune(start, "m", "masked", some, tuning, folder / turn)

    return trained(Masked(start, "m", "r", dtype="float32"), tune, texts, seconds, tuning.masked)


def finetune(folder: Path, smoke: bool, seconds: float) -> Done:
    """Train a classifier of posts in steps of 32 (RoBERTa base, bfloat16)."""
    texts = shapes.invented(128 if smoke else 16_384, MEANS["left"])
    start = made("roberta-base", folder / "m", texts, smoke=smoke)
    tuning = train.Tuning(2e-5, 1, 32, 512, seed=1, at_once=32, precision="bfloat16")

    def tune(some: list[str], turn: str) -> None:
        labels = [len(text) % 3 for text in some]
        told = (some, labels, ["a", "b", "c"], tuning, folder / turn)
        train.finetune_classifier(start, "m", *told)

    head = shapes.make(
        "roberta-base-classifier", folder / "c", texts[:500], **(TINY if smoke else {})
    )
    return trained(Classifier(head, "m", "r", dtype="float32"), tune, texts, seconds, 0.0)


if __name__ == "__main__":
    main()
