"""Cost of a run, before it runs: prompts, disk space and hours.

Hours are the number of prompts times the measured seconds of a batch: small shards of each config
are computed on the device at hand, as the run would do it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core.errors import Bar, UserError
from plumbline.probes import PROBES
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.run_probe import Shard, Task, Worker
from plumbline.probes.models.params import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    # a short trial of a probe that trains first measures nothing
    if hasattr(task.module, "TRAINS") or not pointer(name).is_file():
        return Plan(probe, name, prompts, None, None)
    worker: Any = Worker(probe, name)
    size = duration = 0.0
    for config, amount in amounts.items():
        steps = max(1, amount // BATCH)
        written, shards, spent = 0, 0, 0.0
        for number in range(steps):
            start = time.perf_counter()
            body = worker(Shard(config, "trial", number, steps))
            if number == 0 and steps > 1:  # warm-up
                continue
            spent += time.perf_counter() - start
            written, shards = written + len(body), shards + 1
            if spent >= seconds / len(amounts):
                break
        size += written * steps / shards
        duration += spent * steps / shards
    return Plan(probe, name, prompts, size / 1e9, duration / 3600)


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
