"""What worlds of values and of partisans share: statements, and log-odds of agreeing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from plumbline.probes.prompts import leaning, opinions

    Prompt = opinions.Question | leaning.Question

Key = tuple[str, str]  # questionnaire, and id of the statement


class Draws(NamedTuple):
    """What is drawn at random in a world."""

    habit: dict[str, float]  # of agreeing, by frame, nats
    own: dict[Key, tuple[float, float]]  # noise of the statement, log-odds of answering at all


def facts(folder: Path, asked: Sequence[Prompt | leaning.Wording]) -> dict[Key, dict[str, Any]]:
    """Return axis, reversal and polarity of each statement."""
    found: dict[Key, dict[str, Any]] = {}
    for config in sorted({q.questionnaire for q in asked}):
        for row in pl.read_parquet(folder / f"{config}.parquet").sort("id", "axis").to_dicts():
            found.setdefault((config, row["id"]), row)
    return found


def draws(
    asked: Sequence[Prompt],
    seed: int,
    noise: float,
    habit: tuple[float, float],
    talk: tuple[float, float],
) -> Draws:
    """Draw what frames and statements have of their own.

    Parameters
    ----------
    noise
        SD over statements, nats.
    habit, talk
        Mean and SD over frames, and over statements, nats.
    """
    rng = np.random.default_rng(seed)
    frames = sorted({q.frame for q in asked})
    habits = dict(zip(frames, rng.normal(*habit, len(frames)), strict=True))
    keys = sorted({(q.questionnaire, q.id) for q in asked})
    return Draws(habits, {key: (rng.normal(0, noise), rng.normal(*talk)) for key in keys})


def nats(odds: float, talk: float) -> dict[str, float]:
    """Return the log-probabilities of both answers.

    Parameters
    ----------
    odds, talk
        Log-odds of agreeing, and of answering at all.
    """
    answered = -np.logaddexp(0, -talk)
    return {
        "agree_nats": answered - np.logaddexp(0, -odds),
        "disagree_nats": answered - np.logaddexp(0, odds),
    }
