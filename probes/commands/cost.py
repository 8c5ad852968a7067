"""What a run would take, before it runs: prompts, tokens, operations, space, hours.

The figures come from a trial on the device at hand: small shards of each language, computed and
written as the run would do it, for a few seconds.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import torch
from torch.utils.flop_counter import FlopCounterMode

from plumbline.builders.core.progress import Bar
from plumbline.probes import PROBES
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.shards import Shard, Task, Worker
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.params import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TRAINS = "TRAINS"  # in modules of probes that cannot be tried for a few seconds
BRING = "make repro STAGE=weights@"
NAMES = 100  # prompts in one step of a trial, about


class Plan(NamedTuple):
    """What one probe takes with one model; None where the model is not there yet."""

    probe: str
    model: str
    prompts: int
    tokens: int | None
    operations: float | None  # floating-point, of the matrix products
    gigabytes: float | None  # of outputs
    hours: float | None  # on this device


def plans(seconds: float, only: str | None = None) -> Iterator[Plan]:
    """Yield what every probe would take with every model that it names.

    Parameters
    ----------
    seconds
        How long to try each, at least.
    only
        One model instead of those that the probes name.
    """
    every = [(p, name) for p in PROBES for name in ([only] if only else assigned_models(p))]
    for probe, name in Bar(every, desc="plan", unit="model"):
        yield plan(probe, name, seconds)


def plan(probe: str, name: str, seconds: float) -> Plan:
    """Return what one probe would take with one model.

    Raises
    ------
    UserError
        If an input is not validated, or the model cannot be loaded, or not do what it needs.
    """
    task = Task(probe, name)
    amounts: dict[str, int] = task.module.amount(task.params, task.model, task.folders)
    prompts = sum(amounts.values())
    if TRAINS in vars(task.module) or not pointer(name).is_file():
        return Plan(probe, name, prompts, None, None, None, None)
    worker: Any = Worker(probe, name)
    tokens, work, space, spent = 0.0, 0.0, 0.0, 0.0
    for config, amount in amounts.items():
        texts, size, share, took = _trial(worker, config, amount, seconds / len(amounts))
        encoded = worker.scorer.tokens.encode(texts, config)
        space += size / share
        spent += took / share
        lengths = [len(ids) for ids in encoded]
        if not lengths:  # the model has none of the words, and no prompt came back
            continue
        tokens += amount * sum(lengths) / len(lengths)
        work += amount * operations(worker.scorer, lengths, task.module.VERB) / len(lengths)
    return Plan(probe, name, prompts, round(tokens), work, space / 1e9, spent / 3600)


def _trial(
    worker: Worker, config: str, prompts: int, seconds: float
) -> tuple[list[str], int, float, float]:
    """Compute small shards of a config; return prompts, bytes, the share of all, seconds."""
    of = max(1, prompts // NAMES)
    tried: list[str] = []
    size, shards, took = 0, 0, 0.0
    for number in range(of):
        start = time.perf_counter()
        body = worker(Shard(config, "trial", number, of))
        took += time.perf_counter() - start
        column = worker.task.module.PROMPT
        frame = pl.read_parquet(io.BytesIO(body), columns=[column])
        tried += frame[column].unique(maintain_order=True).to_list()
        size, shards = size + len(body), shards + 1
        if number == 0 and of > 1:  # the first one warms up
            took, size, shards, tried = 0.0, 0, 0, []
            continue
        if took >= seconds:
            break
    return tried, size, shards / of, took


def table(found: list[Plan]) -> str:
    """Return the plans as a Markdown table."""
    lines = [
        "| probe | model | prompts | tokens | operations | outputs, GB | hours on this device |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for p in found:
        if p.tokens is None:
            there = pointer(p.model).is_file()
            why = "not tried: it trains" if there else f"bring it first: {BRING}{p.model}"
            rest = f"| | | | {why} |"
        else:
            rest = f"{p.tokens:,} | {p.operations:.3g} | {p.gigabytes:.3f} | {p.hours:.2f} |"
        lines.append(f"| {p.probe} | {p.model} | {p.prompts:,} | {rest}")
    return "\n".join(lines)


def operations(scorer: Any, lengths: Sequence[int], verb: str) -> float:
    """Return the operations of matrix products for texts of these lengths, in tokens.

    The head is counted where it is computed: to ``fill`` at one place of each text, to
    ``represent`` nowhere. A copy of the model without weights runs on torch's ``meta`` device.
    """
    model = scorer.model
    with torch.device("meta"):
        bare = type(model)(model.config).eval()
    total = 0.0
    for length, times in Counter(lengths).items():
        ids = torch.zeros(1, length, dtype=torch.long, device="meta")
        body = getattr(bare, bare.base_model_prefix, bare)
        options = {"input_ids": ids}
        if bare.config.is_encoder_decoder:  # two tokens: the start, and T5's sentinel
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
