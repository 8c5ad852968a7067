"""Outputs of the probe ``finetuned``, one training at a time: together they outgrow memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.probes.stereotypes.typicality import LIST, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


COLUMNS = ("corpus", "share", "tuning_seed", "articles", "steps")


class Training(NamedTuple):
    """What a model was trained on."""

    corpus: str
    share: float  # part of the articles
    seed: int
    articles: int  # how many those are
    steps: int  # taken with them


def trainings(folder: Path) -> dict[Training, list[Path]]:
    """Return the files of each training in one language, sorted.

    Raises
    ------
    Problem
        If there are none.
    """
    found: dict[Training, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        for row in pl.scan_parquet(path).select(COLUMNS).unique().collect().iter_rows():
            found.setdefault(Training(*row), []).append(path)
    if not found:
        raise Problem(f"{folder}: no answers there; run `make repro STAGE=finetuned` again")
    return dict(sorted(found.items()))


def has(found: Iterable[Training], control: str, folder: Path) -> None:
    """Tell whether some training is on the control.

    Raises
    ------
    Problem
        If none is.
    """
    corpora = sorted({training.corpus for training in found})
    if control not in corpora:
        raise Problem(
            f"analysis.shift.control: no training on {control} in {folder}; there are "
            f"{', '.join(corpora)}: name one of these, or add it to probes.finetuned.corpora"
        )


def answers(paths: Sequence[Path], training: Training) -> pl.DataFrame:
    """Return the lists after one training, as ``typicality.answers`` does before it."""
    own = (
        (pl.col("corpus") == training.corpus)
        & (pl.col("share") == training.share)
        & (pl.col("tuning_seed") == training.seed)
    )
    parts = [pl.scan_parquet(path).filter(own) for path in paths]
    table = pl.concat(parts).drop(COLUMNS).collect()
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
