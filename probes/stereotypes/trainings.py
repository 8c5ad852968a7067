"""Measures of a model's lists before and after a training, group by group."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.match_attributes import Lists
from plumbline.probes.stereotypes.typicality import GROUP, LIST, folded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

WORD = (*GROUP, "query", "key")
EMOTION, RECALL, RETAINED = MEASURES = ("emotion", "recall", "retained")
OUTCOMES = ADDED, KEPT, REMOVED = ("added", "retained", "removed")
TRAINING = ("corpus", "share", "tuning_seed", "articles", "steps")


class Measured(NamedTuple):
    """A number for each group and outcome; nan where a group has none."""

    values: Array  # (groups, outcomes)
    sizes: Array  # (groups, outcomes): weight of a group in a mean
    top: pl.DataFrame  # category, group, query, key: the followed words, each once


class Setting(NamedTuple):
    """What is measured, and with what."""

    groups: pl.DataFrame  # category and group, in the order of results
    ranking: str  # of typicality.READINGS
    k: int  # words of each list that make a profile
    top: int  # words of each list that are followed one by one
    ranks: list[int]  # at which recall is taken
    lexicon: pl.DataFrame  # as emotions.lexicon returns it
    attributes: Mapping[str, pl.DataFrame]  # by config of the dataset stereotypes, sorted

    def outcomes(self) -> pl.DataFrame:
        """Return measure and outcome of the columns of :class:`Measured`."""
        recall = [(RECALL, f"{config}@{k}") for config in self.attributes for k in self.ranks]
        names = [*((EMOTION, affect) for affect in AFFECTS), *recall, (RETAINED, f"top {self.top}")]
        return pl.DataFrame(names, schema=["measure", "outcome"], orient="row")

    def measure(self, answers: pl.DataFrame, before: pl.DataFrame | None = None) -> Measured:
        """Measure the lists of one model, as ``typicality.answers`` returns them.

        ``before``: the words followed before the training; None: these are.
        """
        ranked = typicality.placed(answers.filter(~pl.col("rewritten")), self.ranking)
        known = typicality.unions(ranked, self.k, self.ranking).join(self.lexicon, on="key")
        times = pl.col("strings")
        tables = [known.group_by(GROUP).agg((pl.col(AFFECTS) * times).sum() / times.sum())]
        lists = Lists.of(answers, self.ranking)
        for config, attributes in self.attributes.items():
            hits = {f"{config}@{k}": pl.col("place").is_between(1, k).mean() for k in self.ranks}
            sought = lists.find(attributes)[0].group_by(category="pool", group="own")
            tables.append(sought.agg(pl.len().alias(config), **hits))
        top = ranked.filter(pl.col("place") <= self.top).select(WORD).unique().sort(WORD)
        followed = (top if before is None else before).join(
            top.with_columns(kept=True), on=WORD, how="left", maintain_order="left"
        )
        for names in ((*GROUP, "query"), GROUP):  # the mean over queries of the share of words
            followed = followed.group_by(names, maintain_order=True).agg(
                pl.col("kept").fill_null(value=False).mean()
            )
        every = reduce(
            lambda one, other: one.join(other, on=GROUP, how="left", maintain_order="left"),
            [*tables, followed],
            self.groups,
        ).drop(GROUP)
        sizes = np.ones((len(every), len(self.outcomes())))
        for number, config in enumerate(self.attributes):
            start = len(AFFECTS) + number * len(self.ranks)
            counts = every[config].fill_null(0).to_numpy()
            sizes[:, start : start + len(self.ranks)] = counts[:, None]
        values = every.drop(*self.attributes).cast(pl.Float64).to_numpy()
        return Measured(values, sizes, top)


def words_moved(
    before: pl.DataFrame, after: Sequence[pl.DataFrame], lexicon: pl.DataFrame
) -> pl.DataFrame:
    """Return what became of the followed words of every list.

    A word is there after the training if it is so with more than half of the seeds; what was and is
    not there has no row.

    ``before``, ``after``: ``Measured.top`` before, and after the training with each seed.
    """
    seeds = pl.concat(after).group_by(WORD).agg(stays=pl.len() * 2 > len(after))
    table = before.with_columns(known=True).join(seeds, on=WORD, how="full", coalesce=True)
    table = table.with_columns(pl.col("known", "stays").fill_null(value=False))
    outcome = pl.when("known", "stays").then(pl.lit(KEPT)).when("known").then(pl.lit(REMOVED))
    tone = lexicon.select("positive", "negative", folded="key")
    return (
        table.filter(pl.col("known") | pl.col("stays"))
        .with_columns(folded=folded("key"), outcome=outcome.otherwise(pl.lit(ADDED)))
        .join(tone, on="folded", how="left")
        .rename({"key": "word"})
        .sort(*GROUP, "query", "word")
    )


def lists_after(
    path: Path, before: pl.DataFrame
) -> tuple[tuple[str, float, int, int], pl.DataFrame]:
    """Return corpus, share, seed and articles of a training, and the lists after it.

    Raises UserError if they are not of the same queries as those before, or of another length.
    """
    table = pl.read_parquet(path)
    corpus, share, seed, articles, _ = table.select(TRAINING).row(0)
    lengths = [x.group_by(LIST).agg(pl.col("rank").max()).sort(LIST) for x in (before, table)]
    if not lengths[0].equals(lengths[1]):
        raise UserError(
            f"{path}: not the prompts of the model before its trainings, or lists of another "
            "length; set top_k of probes.after_training and probes.completions to one value, and "
            "run `make repro`"
        )
    return (corpus, share, seed, articles), typicality.compared(table.drop(TRAINING))
