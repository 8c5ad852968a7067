"""Measures of a model's lists before and after a training, group by group.

The outputs of the probe ``after_training`` are read one training at a time: all outgrow memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import emotions, typicality
from plumbline.probes.stereotypes.match_attributes import Lists, hits
from plumbline.probes.stereotypes.typicality import LIST, folded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

GROUP = ("category", "group")
EMOTION, RECALL, RETAINED = "emotion", "recall", "retained"
OUTCOMES = ("added", "retained", "removed")


class Setting(NamedTuple):
    """What is measured, and with what."""

    ranking: str  # of typicality.READINGS
    k: int  # words of each list that make a profile
    top: int  # words of each list that are followed one by one
    ranks: list[int]  # at which recall is taken
    lexicon: pl.DataFrame  # as emotions.lexicon returns it
    attributes: Mapping[str, pl.DataFrame]  # by config of the dataset stereotypes


class Measured(NamedTuple):
    """A number for each group and outcome; nan where a group has none."""

    values: dict[str, Array]  # by measure, (groups, outcomes)
    sizes: dict[str, Array]  # how much a group counts for in a mean, (groups, outcomes)
    top: pl.DataFrame  # category, group, query, key, place: the followed words, each once


def outcomes(setting: Setting) -> dict[str, list[str]]:
    """Return the names of the outcomes of each measure."""
    found = [f"{config}@{k}" for config in sorted(setting.attributes) for k in setting.ranks]
    return {EMOTION: list(AFFECTS), RECALL: found, RETAINED: [f"top {setting.top}"]}


def measured(
    answers: pl.DataFrame, groups: pl.DataFrame, setting: Setting, base: Measured | None = None
) -> Measured:
    """Measure the lists of one model.

    Parameters
    ----------
    answers
        Lists as :func:`plumbline.probes.stereotypes.typicality.answers` returns them.
    groups
        Category and group, in the order that results are to have.
    base
        The same model before the training, which ``retained`` is compared with; None: itself.
    """
    ranked = typicality.placed(answers, setting.ranking)
    found = emotions.members(typicality.unions(ranked, setting.k), setting.lexicon)
    shares = np.full((len(groups), len(AFFECTS)), np.nan)
    shares[_rows(found.groups, groups)] = found.profiles().share
    top = (
        ranked.filter(pl.col("place") <= setting.top)
        .group_by(*GROUP, "query", "key")
        .agg(pl.col("place").min())
        .sort(*GROUP, "query", "place")
    )
    recall, sizes = _recall(answers, groups, setting)
    retained = _retained(top if base is None else base.top, top, groups)
    once = np.ones((len(groups), 1))
    return Measured(
        {EMOTION: shares, RECALL: recall, RETAINED: retained},
        {EMOTION: np.repeat(once, len(AFFECTS), axis=1), RECALL: sizes, RETAINED: once},
        top,
    )


def _rows(some: pl.DataFrame, groups: pl.DataFrame) -> NDArray[np.int64]:
    """Return where the groups of a table stand among all."""
    place = groups.select(GROUP).with_row_index("row")
    joined = some.join(place, on=GROUP, how="left", maintain_order="left")
    return joined["row"].to_numpy().astype(np.int64)


def _recall(answers: pl.DataFrame, groups: pl.DataFrame, setting: Setting) -> tuple[Array, Array]:
    """Return the share of each group's attributes found at each rank, and how many it has."""
    width = len(setting.ranks)
    shape = (len(groups), width * len(setting.attributes))
    counts, sizes = np.zeros(shape), np.zeros(shape)
    lists = Lists.of(answers, setting.ranking)
    at = np.array(setting.ranks) - 1
    for number, (_, attributes) in enumerate(sorted(setting.attributes.items())):
        found = lists.find(attributes)
        if found.attributes.is_empty():
            continue
        row, place = found.column("row"), found.column("place")
        own = _rows(found.groups.select("group", category="pool"), groups)
        size = np.bincount(row, minlength=len(own))
        columns = slice(number * width, (number + 1) * width)
        np.add.at(counts[:, columns], own, hits(place, row, len(own), max(setting.ranks))[:, at])
        np.add.at(sizes[:, columns], own, np.repeat(size[:, None], width, axis=1))
    with np.errstate(invalid="ignore"):
        return counts / sizes, sizes


def _retained(before: pl.DataFrame, after: pl.DataFrame, groups: pl.DataFrame) -> Array:
    """Return which share of the words followed before is among them after, mean of the queries."""
    stays = before.join(
        after.select("query", *GROUP, "key", there=pl.lit(value=True)),
        on=[*GROUP, "query", "key"],
        how="left",
    )
    per = stays.group_by(*GROUP, "query").agg(pl.col("there").is_not_null().mean())
    per = per.sort(*GROUP, "query").group_by(GROUP, maintain_order=True).agg(pl.col("there").mean())
    found = np.full((len(groups), 1), np.nan)
    found[_rows(per, groups), 0] = per["there"].to_numpy()
    return found


def words_moved(
    before: pl.DataFrame, after: Sequence[pl.DataFrame], lexicon: pl.DataFrame
) -> pl.DataFrame:
    """Return what became of the followed words of every list.

    A word is there after the training if it is so with more than half of the seeds; what was and is
    not there has no row.

    Parameters
    ----------
    before, after
        ``Measured.top`` before, and after the training with each seed.
    """
    key = [*GROUP, "query", "key"]
    counted = (
        pl.concat(after)
        .group_by(key)
        .agg(seeds_with=pl.len(), rank_after=(pl.col("place").sum() / pl.len()).round(6))
    )
    joined = before.rename({"place": "rank_before"}).join(
        counted, on=key, how="full", coalesce=True
    )
    known = pl.col("rank_before").is_not_null()
    stays = pl.col("seeds_with").fill_null(0) * 2 > len(after)
    added, retained, removed = range(len(OUTCOMES))
    outcome = pl.when(known & stays).then(retained).when(known).then(removed).otherwise(added)
    return (
        joined.filter(known | stays)
        .with_columns(pl.col("seeds_with").fill_null(0), outcome=outcome, seeds=pl.lit(len(after)))
        .join(lexicon.select("key", "positive", "negative"), on="key", how="left")
        .rename({"key": "word"})
        .sort(*GROUP, "query", "word")
    )


COLUMNS = ("corpus", "share", "tuning_seed", "articles", "steps")


class Training(NamedTuple):
    """What a model was trained on."""

    corpus: str
    share: float  # part of the articles
    seed: int
    articles: int  # how many those are
    steps: int  # taken with them


def trainings(folder: Path, control: str) -> dict[Training, list[Path]]:
    """Return the files of each training in one language, sorted.

    Raises
    ------
    UserError
        If there are none, or none on the control.
    """
    found: dict[Training, list[Path]] = {}
    for path in sorted(folder.glob("*.parquet")):
        for row in pl.scan_parquet(path).select(COLUMNS).unique().collect().iter_rows():
            found.setdefault(Training(*row), []).append(path)
    if not found:
        raise UserError(f"{folder}: nothing there; run `make repro STAGE=after_training` again")
    corpora = sorted({training.corpus for training in found})
    if control not in corpora:
        raise UserError(
            f"analysis.shift.control: no training on {control} in {folder}; there are "
            f"{', '.join(corpora)}: name one of these, or add it to probes.after_training.corpora"
        )
    return dict(sorted(found.items()))


def lists_after(paths: Sequence[Path], training: Training, before: pl.DataFrame) -> pl.DataFrame:
    """Return the lists after one training, as ``typicality.answers`` does before it.

    Raises
    ------
    UserError
        If they are not of the same queries, or of another length.
    """
    own = pl.all_horizontal(
        pl.col(name) == value for name, value in zip(COLUMNS[:3], training, strict=False)
    )
    table = pl.concat(pl.scan_parquet(path).filter(own) for path in paths).drop(COLUMNS).collect()
    one, two = (x.group_by(LIST).agg(pl.col("rank").max()).sort(LIST) for x in (before, table))
    if not one.equals(two):
        raise UserError(
            f"{paths[0].parent}: not the prompts of the model before its trainings, or lists of "
            "another length; set top_k of probes.after_training and probes.completions to one "
            "value, and run `make repro`"
        )
    return table.with_columns(key=folded("word")).sort(*LIST, "rank")
