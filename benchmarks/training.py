"""Compare training with what a user would write instead, on texts as long as posts.

    python benchmarks/training.py [--smoke] [WORK ...]

The works are positions, tokens, steps, exchanges, classifiers, speed and parts. Lengths are
lognormal with the means of Feng et al. (2023), Table 8, truncated at 512 tokens. Counts have a
goal, and missing it is an error. Ratios of processor time are medians over interleaved pairs in one
process on one thread.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from contextlib import contextmanager
from functools import partial
from itertools import product
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"
TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import numpy as np  # noqa: E402
import shapes  # noqa: E402
import torch  # noqa: E402

from plumbline.probes.models.tokenizer import Tokens  # noqa: E402
from plumbline.probes.training import batches, distributed, train  # noqa: E402

MEANS = {"left": 44.50, "center": 34.67, "right": 50.43}  # mean tokens of a post
SIGMAS = (0.8, 1.2)  # SD of log lengths, for posts of one kind and of many kinds
STEP, TOGETHER, LENGTH = 256, 16, 512  # texts per step and per batch, and tokens per text
PAIRS = 3
SMALL = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
SMALL |= {"intermediate_size": 1024, "vocab_size": 5500}  # head to body as in RoBERTa base
missed: list[str] = []


def main() -> None:
    os.environ |= {"PLUMBLINE_CORES": "1", "PLUMBLINE_DEVICE": "cpu"}
    torch.set_num_threads(1)
    words = sys.argv[1:]
    if words[:1] == ["--child"]:
        child(words[1], Path(words[2]))
        return
    smoke = "--smoke" in words
    works = {
        "positions": positions,
        "tokens": tokens,
        "steps": steps,
        "exchanges": partial(together, "exchanges"),
        "classifiers": partial(together, "classifiers"),
        "speed": speed,
        "parts": parted,
    }
    wanted = [word for word in words if word != "--smoke"] or list(works)
    if unknown := set(wanted) - set(works):
        raise SystemExit(f"error: no work {', '.join(unknown)}; there are {', '.join(works)}")
    print("| work | what | figure | goal |")
    print("|---|---|---:|---:|")
    for work in wanted:
        with tempfile.TemporaryDirectory() as name:
            works[work](Path(name), smoke)
    if missed:
        raise SystemExit(f"error: goal missed: {'; '.join(missed)}")


def told(
    work: str, what: str, figure: float, *, least: float = -np.inf, most: float = np.inf
) -> None:
    """Print a figure, and record whether it misses its goal."""
    goal = f"{least:g} or more" if least > -np.inf else f"{most:g} or less" if most < np.inf else ""
    print(f"| {work} | {what} | {figure:.3g} | {goal} |", flush=True)
    if not least <= figure <= most:
        missed.append(f"{work}, {what}")


def positions(_: Path, smoke: bool) -> None:
    """Measure the share of computed positions that contain a token."""
    room = TOGETHER * LENGTH
    for (name, mean), sigma in product(MEANS.items(), SIGMAS):
        every = shapes.lengths((4 if smoke else 40) * STEP, mean, sigma)
        shares = {f"all {STEP} texts of a step as wide as the longest": useful(every, STEP, 0)}
        shares[f"{TOGETHER} at once, as Trainer has them"] = useful(every, TOGETHER, 0)
        shares["passes"] = useful(every, STEP, room)
        for own in (TOGETHER, 1):
            what = f"passes of a fine-tuning's steps of {TOGETHER}, micro_batch {own}"
            shares[what] = useful(every, TOGETHER, own * LENGTH)
        for way, share in shares.items():
            least = 0.8 if way == "passes" else -np.inf
            told("positions", f"{name}, sigma {sigma}: useful share, {way}", share, least=least)


def useful(lengths: np.ndarray, step: int, room: int) -> float:
    """Return the share of tokens among computed positions, for steps of some number of texts."""
    computed = sum(
        len(own) * max(some[own])
        for some in lengths.reshape(-1, step)
        for own in distributed.passes([*some], room)
    )
    return lengths.sum() / computed


def tokens(_: Path, smoke: bool) -> None:
    """Measure the bytes per token in memory, compared with a tokenizer's lists."""
    lengths = shapes.lengths(2_000 if smoke else 20_000, MEANS["left"], 1.0)

    def made():
        rng = np.random.default_rng(1)
        return (rng.integers(1000, 50_000, length).tolist() for length in lengths)

    for way, work in (
        ("lists", lambda: list(made())),
        ("ours", lambda: batches.tokenised(made())),
    ):
        tracemalloc.start()
        held = work()
        now, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        each = [size / lengths.sum() for size in (now, peak)]
        most = 8.0 if way == "ours" else np.inf
        told("tokens", f"{way}: bytes of a token held in memory", each[0], most=most)
        told("tokens", f"{way}: at the peak", each[1], most=most)
        del held


def steps(folder: Path, smoke: bool) -> None:
    """Measure the overhead of a step, for corpora of several sizes and late in a long run."""
    tuning = train.Tuning(1e-3, 2, STEP, LENGTH, seed=1)
    sizes = (10_000, 100_000) if smoke else (10_000, 100_000, 1_000_000)
    spent, anew = {}, {}
    for number in sizes:
        drawn = shapes.lengths(number, MEANS["left"], 1.0)
        corpus = batches.Rows([np.zeros(length, np.int32) for length in drawn])
        begun = time.process_time()
        train.ordered(corpus.lengths, tuning, 0)
        anew[number] = time.process_time() - begun
        source = train._steps(corpus, tuning, 0)  # noqa: SLF001
        next(source)  # the order of the epoch
        each = []
        for _ in range(38):
            begun = time.process_time()
            next(source)
            each.append(time.process_time() - begun)
        spent[number] = statistics.median(each)
        told("steps", f"{number:,} texts: ms to choose those of a step", 1e3 * spent[number])
        told("steps", f"{number:,} texts: ms, the order drawn at each step", 1e3 * anew[number])
    last, limit = sizes[-1], np.inf if smoke else 3  # no failure of a busy smoke test
    told("steps", f"{last:,} texts to 10,000", spent[last] / spent[10_000], most=limit)
    told("steps", f"{last:,} texts to 10,000, drawn at each", anew[last] / anew[10_000])
    number = 4_000 if smoke else 20_000
    corpus = batches.Rows([np.zeros(4, np.int32)] * 2)
    times = []

    def loss(net, _):
        times.append(time.process_time())
        yield net(torch.ones(1, 1)).sum(), 1.0

    train.fit(
        torch.nn.Linear(1, 1),
        "line",
        corpus,
        train.Tuning(1e-9, number, 2, 8, seed=1),
        folder / train.CHECKPOINT,
        loss,
    )
    each = np.diff(times, prepend=times[0])
    part = number // 10
    tenths = [np.median(some.reshape(-1, 200).sum(axis=1)) for some in (each[-part:], each[:part])]
    ratio = tenths[0] / tenths[1]
    what = f"the last tenth of {number:,} steps to the first, checkpoints too"
    told("steps", what, ratio, most=np.inf if smoke else 2)


def together(work: str, folder: Path, smoke: bool) -> None:
    """Train with two processes; see :func:`child`."""
    texts = shapes.invented(4 * 48 if smoke else 4 * STEP, MEANS["left"])
    small = SMALL | {"hidden_size": 32, "num_hidden_layers": 1}
    shapes.make("roberta-base", folder / "model", texts, **small)
    (folder / "texts").write_text("\n".join(texts), encoding="utf-8")
    own = [__file__, "--child", work, str(folder)]
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    found = {}
    for number, command in ((1, own), (2, [*launch, *own])):
        done = subprocess.run(
            [sys.executable, *command],
            env=os.environ
            | {"PYTHONPATH": str(TOP), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        found[number] = sum(map(np.loadtxt, folder.glob(f"counted-{number}-*")))
    count, passes, exchanges, sent, weights, computed = found[2]
    told(work, "two processes: passes of a step, each", passes / count)
    told(work, "exchanges of gradients a step", exchanges / count, least=1, most=1)
    told(
        work, "bytes exchanged a step, of those of the weights", sent / weights / count * 2, most=1
    )
    what = "tokens that two processes put through the model, to those of one"
    told(work, what, computed / found[1][-1], most=1.01)


def child(work: str, folder: Path) -> None:
    """Train in this process and its siblings, and count what each computes and exchanges."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    shared = distributed.accelerator()
    exchanges, sent, passes, computed, weights = [], [], [], [], [0]
    plain = train.fit

    def fit(model, *given):
        weights[0] = sum(p.numel() * p.element_size() for p in model.parameters())
        model.register_forward_hook(
            lambda _, __, named, ___: computed.append(int(named["attention_mask"].sum())),
            with_kwargs=True,
        )
        return plain(model, *given)

    def hook(group, bucket):
        exchanges.append(bucket.is_last())
        sent.append(bucket.buffer().nbytes)
        return allreduce_hook(group, bucket)

    exchange = distributed.exchange

    def counted(net, last):
        passes.append(last)
        if shared is not None and len(passes) == 1:
            net.register_comm_hook(None, hook)
        return exchange(net, last)

    train.fit, distributed.exchange = fit, counted
    texts = (folder / "texts").read_text(encoding="utf-8").split("\n")
    step = len(texts) // 4
    tuning = train.Tuning(1e-4, 1, step, LENGTH, seed=1, at_once=2)
    into = folder / f"{work}-{distributed.number()}"
    if work == "exchanges":
        train.finetune(folder / "model", "m", "masked", texts, tuning, into)
    else:
        labels = [number % 2 for number in range(len(texts))]
        start = folder / "model"
        train.finetune_classifier(start, "m", texts, labels, ["a", "b"], tuning, into)
    counts = sum(passes), len(passes), sum(exchanges), sum(sent), weights[0], sum(computed)
    np.savetxt(folder / f"counted-{distributed.number()}-{distributed.index()}", counts)


def speed(folder: Path, smoke: bool) -> None:
    """Measure tokens per second of pretraining: this project, Trainer, and a loop with padding."""
    texts = shapes.invented(32 if smoke else 128, MEANS["left"])
    sizes = SMALL | ({"hidden_size": 32, "num_hidden_layers": 1} if smoke else {})
    model = shapes.make("roberta-base", folder / "model", texts, **sizes)
    given = list(batches.pieces(Tokens(model, "m"), texts, LENGTH))
    ways = {
        "a loop as wide as the longest of a step": padded,
        "transformers' Trainer": partial(trainer, sampling="random"),
        "Trainer, texts of like lengths side by side": partial(trainer, sampling="group_by_length"),
        "ours": partial(ours, texts),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    for pair in range(1 if smoke else PAIRS):
        for way, work in ways.items():
            found[way].append(work(model, given, folder / f"{way.split()[0]}-{pair}"))
    number = sum(map(len, given))
    for way, spent in found.items():
        told("speed", f"{way}: tokens a second", number / statistics.median(spent))
    for way in [*ways][:-1]:
        pairs = [theirs / own for theirs, own in zip(found[way], found["ours"], strict=True)]
        told("speed", f"times faster than {way}", statistics.median(pairs))


def parted(folder: Path, smoke: bool) -> None:
    """Fine-tune on a CPU in steps of 16 posts, in parts of similar lengths or as one batch."""
    texts = shapes.invented((2 if smoke else 8) * TOGETHER, MEANS["left"])
    sizes = SMALL | ({"hidden_size": 32, "num_hidden_layers": 1} if smoke else {})
    model = shapes.make("roberta-base", folder / "model", texts, **sizes)
    labels, ratios = [number % 2 for number in range(len(texts))], []
    for pair in range(1 if smoke else PAIRS):
        with timed(time.process_time) as spent:
            for own in (TOGETHER, 1):
                tuning = train.Tuning(1e-4, 1, TOGETHER, LENGTH, 1, at_once=own)
                given = model, "m", texts, labels, ["a", "b"], tuning, folder / f"{pair}-{own}"
                train.finetune_classifier(*given)
        ratios.append(spent[0][0] / spent[1][0])
    what = f"steps of {TOGETHER}: micro_batch 1, times faster than {TOGETHER}"
    told("parts", what, statistics.median(ratios))


@contextmanager
def timed(clock):
    """Yield a list to which each training appends its seconds and the lengths of its texts."""
    spent: list[tuple[float, np.ndarray]] = []
    plain = train.fit

    def fit(model, name, corpus, *rest):
        begun = clock()
        found = plain(model, name, corpus, *rest)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        spent.append((clock() - begun, corpus.lengths))
        return found

    train.fit = fit
    try:
        yield spent
    finally:
        train.fit = plain


def ours(texts: list[str], model: Path, given: list[list[int]], into: Path) -> float:
    """Return the seconds of the training loop, starting one step after the model is loaded."""
    tuning = train.Tuning(1e-4, 1, len(given), LENGTH, 1, weight_decay=0.01, at_once=TOGETHER)
    with timed(time.process_time) as spent:
        train.finetune(model, "m", "masked", texts, tuning, into)
    return spent[0][0]


def loaded(where: Path):
    from transformers import AutoModelForMaskedLM, AutoTokenizer, DataCollatorForLanguageModeling

    model = AutoModelForMaskedLM.from_pretrained(where)
    collator = DataCollatorForLanguageModeling(AutoTokenizer.from_pretrained(where))
    return model, collator


def trainer(model: Path, given: list[list[int]], into: Path, *, sampling: str) -> float:
    """Return the seconds of transformers' loop, with the same step and batch sizes."""
    from datasets import Dataset
    from transformers import PrinterCallback, Trainer, TrainingArguments

    net, collator = loaded(model)
    arguments = TrainingArguments(
        output_dir=str(into),
        num_train_epochs=1,
        per_device_train_batch_size=TOGETHER,
        gradient_accumulation_steps=-(-len(given) // TOGETHER),
        train_sampling_strategy=sampling,
        learning_rate=1e-4,
        weight_decay=0.01,
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    data = Dataset.from_dict({"input_ids": given, "length": [*map(len, given)]})
    work = Trainer(net, arguments, train_dataset=data, data_collator=collator)
    work.remove_callback(PrinterCallback)
    begun = time.process_time()
    work.train()
    return time.process_time() - begun


def padded(model: Path, given: list[list[int]], _: Path) -> float:
    """Return the seconds of a plain loop, in which a step is one padded batch in several passes."""
    net, collator = loaded(model)
    optimizer = torch.optim.AdamW(net.train().parameters(), 1e-4, weight_decay=0.01)
    begun = time.process_time()
    batch = collator([{"input_ids": ids} for ids in given])
    for first in range(0, len(given), TOGETHER):
        part = {key: value[first : first + TOGETHER] for key, value in batch.items()}
        (net(**part).loss * TOGETHER / len(given)).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
