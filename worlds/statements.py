"""Statements and log-odds of agreement, used by the worlds of values and of partisans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from plumbline.probes.prompts import leaning, opinions

Prompt = opinions.Question | leaning.Question

KEY = ("questionnaire", "id")  # columns that identify a statement
TURNED = pl.when("reversed").then(-1).otherwise(1)
DENIED = pl.col("form") == "negated"
PLANTED = "planted_nats"


def facts(folder: Path, prompts: Sequence[Prompt | leaning.Wording]) -> pl.DataFrame:
    """Return the axis, reversal and polarity of each statement."""
    columns = ["id", "axis", "reversed", "polarity"]
    tables = [
        pl.read_parquet(folder / f"{config}.parquet", columns=columns).select(
            pl.lit(config).alias("questionnaire"), *columns
        )
        for config in sorted({q.questionnaire for q in prompts})
    ]
    return pl.concat(tables).sort(*KEY, "axis").unique(KEY, keep="first", maintain_order=True)


def by_axis(effects: Mapping[str, float]) -> pl.Expr:
    """Return the effect on the axis of each statement, 0 if there is none."""
    return pl.col("axis").replace_strict(dict(effects), default=0.0, return_dtype=pl.Float64)


def draws(
    prompts: Sequence[Prompt],
    items: pl.DataFrame,
    seed: int,
    noise: float,
    habit: tuple[float, float],
    talk: tuple[float, float],
) -> pl.DataFrame:
    """Return all prompts in their order, with random effects of templates and statements.

    ``items``: the table returned by :func:`facts`.
    ``noise``: SD over statements, nats.
    ``habit``: mean and SD over templates of the log-odds of agreement, nats.
    ``talk``: mean and SD over statements of the log-odds of an answer, nats.
    """
    rng = np.random.default_rng(seed)
    frames = sorted({q.frame for q in prompts})
    habits = pl.DataFrame({"frame": frames, "habit": rng.normal(*habit, len(frames))})
    effects = [
        (*key, rng.normal(0, noise), rng.normal(*talk))
        for key in sorted({(q.questionnaire, q.id) for q in prompts})
    ]
    drawn = pl.DataFrame(effects, [*KEY, "noise", "talk"], orient="row")
    result = pl.DataFrame(prompts).join(habits, on="frame", maintain_order="left")
    for table in (drawn, items):
        result = result.join(table, on=KEY, maintain_order="left")
    return result


def answers(drawn: pl.DataFrame, planted: pl.Expr, *habits: pl.Expr) -> pl.DataFrame:
    """Add the planted log-odds of agreement and log-probabilities of both answers to each prompt.

    ``planted``: log-odds of agreement with a statement in its plain form, without noise.
    ``habits``: log-odds of agreement with any statement, added to those of the template.
    """
    table = drawn.with_columns(planted.alias(PLANTED))
    stated = (pl.col(PLANTED) + pl.col("noise")) * pl.when(DENIED).then(-1).otherwise(1)
    table = table.with_columns(log_odds_nats=pl.sum_horizontal("habit", *habits, stated))
    odds, talk = (table[name].to_numpy() for name in ("log_odds_nats", "talk"))
    answered = -np.logaddexp(0, -talk)
    return table.with_columns(
        agree_nats=answered - np.logaddexp(0, -odds), disagree_nats=answered - np.logaddexp(0, odds)
    )
