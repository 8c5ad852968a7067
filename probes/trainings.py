"""Outputs of the probe ``finetuned``, one training at a time: together they outgrow memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from builders.lib.problem import Problem
from probes.typicality import LIST, folded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Training(NamedTuple):
    """What a model was trained on."""

    corpus: str
    share: float  # part of the articles
    seed: int


def trainings(folder: Path) -> dict[Training, list[Path]]:
    """Return the files of each training in one language, sorted.

    Raises
    ------
    Problem
        If there are none.
    """
    found: dict[Training, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        names = pl.scan_parquet(path).select("corpus", "share", "tuning_seed").unique().collect()
        for corpus, share, seed in names.iter_rows():
            found.setdefault(Training(corpus, share, seed), []).append(path)
    if not found:
        raise Problem(f"{folder}: no answers there; run `make repro STAGE=finetuned` again")
    return dict(sorted(found.items()))


def answers(paths: Sequence[Path], training: Training) -> pl.DataFrame:
    """Return the lists after one training, as :func:`probes.typicality.answers` does before it."""
    own = (
        (pl.col("corpus") == training.corpus)
        & (pl.col("share") == training.share)
        & (pl.col("tuning_seed") == training.seed)
    )
    parts = [pl.scan_parquet(path).filter(own) for path in paths]
    table = pl.concat(parts).drop("corpus", "share", "tuning_seed").collect()
    return table.with_columns(key=folded("word")).sort(*LIST, "rank")


def same_lists(before: pl.DataFrame, after: pl.DataFrame, folder: Path) -> None:
    """Hold the lists after a training to those before it.

    Raises
    ------
    Problem
        If they are not to the same queries, or of another length.
    """
    lists = LIST
    one, two = (x.group_by(lists).agg(pl.col("rank").max()).sort(lists) for x in (before, after))
    if not one.equals(two):
        raise Problem(
            f"{folder}: not the prompts of the model before its trainings, or lists of another "
            "length; set top_k of probes.finetuned and probes.stereotypes to one value, and run "
            "`make repro`"
        )
