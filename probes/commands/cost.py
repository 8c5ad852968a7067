"""Estimate the cost of a run in prompts, disk space and hours.

Hours are extrapolated from trials, which time small shards of each config on the current device.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from plumbline.builders.core.errors import Bar, UserError
from plumbline.probes import PROBES
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.run_probe import Shard, Task, Worker
from plumbline.probes.models.params import pointer

BATCH = 100  # approximate number of prompts in one step of a trial


class Plan(NamedTuple):
    """Cost of running one probe on one model; sizes and hours are None if no trial is possible."""

    probe: str
    model: str
    prompts: int
    gigabytes: float | None  # size of the outputs
    hours: float | None  # duration on the current device


def plan(probe: str, name: str, seconds: float) -> Plan:
    """Return the cost of running one probe on one model.

    Raises
    ------
    UserError
        If a dataset is not validated, or if the model cannot be loaded or is unsuitable.
    """
    task = Task(probe, name)
    amounts: dict[str, int] = task.module.amount(task.params, task.model, task.folders)
    prompts = sum(amounts.values())
    # a short trial is uninformative about a probe that first trains models
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


def table(seconds: float, model: str = "") -> str:
    """Return a Markdown table of the cost of running each probe on each model assigned to it.

    ``seconds``: minimum duration of each trial.
    ``model``: name of the only model to include; all models if it is empty.
    """
    pairs = [(p, name) for p in PROBES for name in assigned_models(p) if model in ("", name)]
    if not pairs:
        raise UserError(f"{model}: no probe is assigned to it; add it under assignments")
    lines = [
        "| probe | model | prompts | outputs, GB | hours on this device |",
        "|---|---|---:|---:|---:|",
    ]
    for probe, name in Bar(pairs, desc="plan", unit="model"):
        row = plan(probe, name, seconds)
        if row.hours is not None:
            cost = f"{row.gigabytes:.3f} | {row.hours:.2f}"
        elif pointer(row.model).is_file():
            cost = " | no trial: it trains"
        else:
            cost = f" | missing model: make repro STAGE=weights@{row.model}"
        lines.append(f"| {row.probe} | {row.model} | {row.prompts:,} | {cost} |")
    return "\n".join(lines)
