"""Measures of a model's lists before and after a training, group by group.

The outputs of the probe ``after_training`` are read one training at a time: all outgrow memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.match_attributes import Lists
from plumbline.probes.stereotypes.typicality import LIST, folded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

GROUP = ("category", "group")
WORD = (*GROUP, "query", "key")
EMOTION, RECALL, RETAINED = "emotion", "recall", "retained"
OUTCOMES = ("added", "retained", "removed")


class Measured(NamedTuple):
    """A number for each group and outcome; nan where a group has none."""

    values: dict[str, Array]  # by measure, (groups, outcomes)
    sizes: dict[str, Array]  # how much a group counts for in a mean, (groups, outcomes)
    top: pl.DataFrame  # category, group, query, key, place: the followed words, each once


class Setting(NamedTuple):
    """What is measured, and with what."""

    groups: pl.DataFrame  # category and group, in the order of results
    ranking: str  # of typicality.READINGS
    k: int  # words of each list that make a profile
    top: int  # words of each list that are followed one by one
    ranks: list[int]  # at which recall is taken
    lexicon: pl.DataFrame  # as emotions.lexicon returns it
    attributes: Mapping[str, pl.DataFrame]  # by config of the dataset stereotypes

    def outcomes(self) -> dict[str, list[str]]:
        """Return the names of the outcomes of each measure."""
        found = [f"{config}@{k}" for config in sorted(self.attributes) for k in self.ranks]
        return {EMOTION: list(AFFECTS), RECALL: found, RETAINED: [f"top {self.top}"]}

    def measured(self, answers: pl.DataFrame, base: Measured | None = None) -> Measured:
        """Measure the lists of one model.

        ``answers``: lists as :func:`plumbline.probes.stereotypes.typicality.answers` returns them.
        ``base``: the same model before the training, which ``retained`` is compared with; None:
        itself.
        """
        ranked = typicality.placed(answers.filter(~pl.col("rewritten")), self.ranking)
        known = typicality.unions(ranked, self.k, self.ranking).join(self.lexicon, on="key")
        times = pl.col("strings")
        top = ranked.filter(pl.col("place") <= self.top).group_by(WORD).agg(pl.col("place").min())
        top = top.sort(*GROUP, "query", "place")
        before = top if base is None else base.top
        there = top.select(*WORD, there=pl.lit(value=True))
        per_query = before.join(there, on=WORD, how="left").group_by(*GROUP, "query")
        stays = per_query.agg(pl.col("there").is_not_null().mean()).sort(*GROUP, "query")
        lists, found = Lists.of(answers, self.ranking), [np.empty((len(self.groups), 0))] * 2
        for _, attributes in sorted(self.attributes.items()):
            hits = [pl.col("place").is_between(1, k).sum().alias(f"{k}") for k in self.ranks]
            met = lists.find(attributes).attributes.group_by(category="pool", group="own")
            of_each = self._aligned(met.agg(pl.len(), *hits))
            sizes = np.repeat(np.nan_to_num(of_each[:, :1]), len(self.ranks), axis=1)
            recall = of_each[:, 1:] / of_each[:, :1]
            found = [np.hstack(pair) for pair in zip(found, (recall, sizes), strict=True)]
        shares = (pl.col(AFFECTS) * times).sum() / times.sum()
        values = {
            EMOTION: self._aligned(known.group_by(GROUP).agg(shares)),
            RECALL: found[0],
            RETAINED: self._aligned(
                stays.group_by(GROUP, maintain_order=True).agg(pl.col("there").mean())
            ),
        }
        sizes_of = {name: np.ones(of.shape) for name, of in values.items()} | {RECALL: found[1]}
        return Measured(values, sizes_of, top)

    def _aligned(self, some: pl.DataFrame) -> Array:
        """Return the numbers of some groups in the order of all; nan of the others."""
        every = self.groups.join(some, on=GROUP, how="left", maintain_order="left")
        return every.drop(GROUP).cast(pl.Float64).to_numpy()


def words_moved(
    before: pl.DataFrame, after: Sequence[pl.DataFrame], lexicon: pl.DataFrame
) -> pl.DataFrame:
    """Return what became of the followed words of every list.

    A word is there after the training if it is so with more than half of the seeds; what was and is
    not there has no row.

    ``before``, ``after``: ``Measured.top`` before, and after the training with each seed.
    """
    there = pl.concat(after).group_by(WORD)
    mean = (pl.col("place").sum() / pl.len()).round(6)
    known = pl.col("rank_before").is_not_null()
    stays = pl.col("seeds_with").fill_null(0) * 2 > len(after)
    added, retained, removed = map(pl.lit, OUTCOMES)
    outcome = pl.when(known & stays).then(retained).when(known).then(removed).otherwise(added)
    return (
        before.rename({"place": "rank_before"})
        .join(there.agg(seeds_with=pl.len(), rank_after=mean), on=WORD, how="full", coalesce=True)
        .filter(known | stays)
        .with_columns(folded=folded("key"))
        .join(lexicon.select("positive", "negative", folded="key"), on="folded", how="left")
        .with_columns(outcome=outcome)
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

    Raises UserError if there are none, or none on the control.
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

    Raises UserError if they are not of the same queries, or of another length.
    """
    own = dict(zip(COLUMNS[:3], training, strict=False))
    table = pl.concat(pl.scan_parquet(path).filter(**own) for path in paths).drop(COLUMNS).collect()
    one, two = (x.group_by(LIST).agg(pl.col("rank").max()).sort(LIST) for x in (before, table))
    if not one.equals(two):
        raise UserError(
            f"{paths[0].parent}: not the prompts of the model before its trainings, or lists of "
            "another length; set top_k of probes.after_training and probes.completions to one "
            "value, and run `make repro`"
        )
    return typicality.compared(table)
