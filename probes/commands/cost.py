"""Cost of a run, before it runs: prompts, disk space and hours.

Hours are the number of prompts times the measured seconds of a batch: small shards of each config
are computed on the device at hand, as the run would do it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.progress import Bar
from plumbline.probes import PROBES
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.shards import Shard, Task, Worker
from plumbline.probes.models.params import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

TRAINS = "TRAINS"  # in modules of probes that train first: a short trial tells nothing
BATCH = 100  # prompts of one step of a trial, about


class Plan(NamedTuple):
    """Cost of one probe with one model; None where it cannot be tried."""

    probe: str
    model: str
    prompts: int
    gigabytes: float | None  # of outputs
    hours: float | None  # on this device


def plans(seconds: float, only: str = "") -> Iterator[Plan]:
    """Yield the cost of every probe with every model that is assigned to it.

    ``seconds``: minimum duration of each trial.
    ``only``: a single model.
    """
    pairs = [(p, name) for p in PROBES for name in assigned_models(p) if only in ("", name)]
    if not pairs:
        raise UserError(f"{only}: no probe is assigned to it; name it under assignments")
    for probe, name in Bar(pairs, desc="plan", unit="model"):
        yield plan(probe, name, seconds)


def plan(probe: str, name: str, seconds: float) -> Plan:
    """Return the cost of one probe with one model.

    Raises
    ------
    UserError
        If a dataset is not validated, or the model cannot be loaded or lacks what the probe needs.
    """
    task = Task(probe, name)
    amounts: dict[str, int] = task.module.amount(task.params, task.model, task.folders)
    prompts = sum(amounts.values())
    if TRAINS in vars(task.module) or not pointer(name).is_file():
        return Plan(probe, name, prompts, None, None)
    worker: Any = Worker(probe, name)
    size, duration = 0.0, 0.0
    for config, amount in amounts.items():
        share, written, spent = _trial(worker, config, amount, seconds / len(amounts))
        size += written / share
        duration += spent / share
    return Plan(probe, name, prompts, size / 1e9, duration / 3600)


def _trial(worker: Any, config: str, prompts: int, seconds: float) -> tuple[float, int, float]:
    """Compute small shards of a config; return their share of all, their bytes and seconds."""
    total = max(1, prompts // BATCH)
    size, shards, spent = 0, 0, 0.0
    for number in range(total):
        start = time.perf_counter()
        body = worker(Shard(config, "trial", number, total))
        if number == 0 and total > 1:  # warm-up
            continue
        spent += time.perf_counter() - start
        size, shards = size + len(body), shards + 1
        if spent >= seconds:
            break
    return shards / total, size, spent


def table(planned: list[Plan]) -> str:
    """Return plans as a Markdown table."""
    lines = [
        "| probe | model | prompts | outputs, GB | hours on this device |",
        "|---|---|---:|---:|---:|",
    ]
    for one in planned:
        if one.hours is not None:
            cost = f"{one.gigabytes:.3f} | {one.hours:.2f}"
        elif pointer(one.model).is_file():
            cost = " | not tried: it trains"
        else:
            cost = f" | bring it first: make repro STAGE=weights@{one.model}"
        lines.append(f"| {one.probe} | {one.model} | {one.prompts:,} | {cost} |")
    return "\n".join(lines)
