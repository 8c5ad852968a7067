"""Measures computed from a model's lists for each group, before and after training."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import Bootstrap
from plumbline.probes.stereotypes import emotions, recall, typicality
from plumbline.probes.stereotypes.recall import Lists
from plumbline.probes.stereotypes.typicality import GROUP, LIST, Reading, casefold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Bools = NDArray[np.bool_]

STEPS_DIFFERENCE_MAX = 0.05  # maximum relative difference between numbers of training steps
WORD = (*GROUP, "query", "key")
EMOTION, RECALL, RETAINED = MEASURES = ("emotion", "recall", "retained")
OUTCOMES = ADDED, KEPT, REMOVED = ("added", "retained", "removed")
TRAINING = ("corpus", "share", "tuning_seed", "steps")


class Params(Bootstrap):
    """Settings for measures and intervals."""

    top_k: dict[Reading, int] = Field(
        {"probability": 200},
        min_length=1,
        description="words per list in a profile, by ranking; the paper takes 200 by probability",
    )
    top_k_followed: int = Field(15, ge=1, description="words of each list tracked individually")
    recall_at: list[int] = Field([10, 50], min_length=1, description="values of k for recall@k")
    control: str = Field("control", description="corpus with which all others are compared")


class Measured(NamedTuple):
    """Values by group and outcome; missing values are nan."""

    values: Array  # (groups, outcomes)
    sizes: Array  # (groups, outcomes): weight of each group in a mean
    top: pl.DataFrame  # distinct tracked words, in the columns category, group, query and key


class Setting(NamedTuple):
    """Settings and data from which the measures are computed."""

    groups: pl.DataFrame  # categories and groups, in the order of the results
    ranking: Reading
    params: Params
    lexicon: pl.DataFrame  # from emotions.lexicon
    attributes: Mapping[str, pl.DataFrame]  # by config of the dataset ``stereotypes``, sorted

    def outcomes(self) -> pl.DataFrame:
        """Return the measure and outcome of each column of :class:`Measured`."""
        ranks, top = self.params.recall_at, self.params.top_k_followed
        recall = [(RECALL, f"{config}@{k}") for config in self.attributes for k in ranks]
        names = [*((EMOTION, affect) for affect in AFFECTS), *recall, (RETAINED, f"top {top}")]
        return pl.DataFrame(names, schema=["measure", "outcome"], orient="row")

    def measure(self, answers: pl.DataFrame, before: pl.DataFrame | None = None) -> Measured:
        """Compute the measures from the lists of one model, read by ``typicality.read_lists``.

        ``before``: words tracked before training; if None, they are taken from these lists.
        """
        ranked = typicality.rank_words(answers.filter(~pl.col("rewritten")), self.ranking)
        profile = typicality.top_words(ranked, self.params.top_k[self.ranking], self.ranking)
        covered, times = profile.join(self.lexicon, on="key"), pl.col("strings")
        tables = [covered.group_by(GROUP).agg((pl.col(AFFECTS) * times).sum() / times.sum())]
        lists, ranks = Lists.of(answers, self.ranking), self.params.recall_at
        for config, attributes in self.attributes.items():
            hits = {f"{config}@{k}": pl.col("place").is_between(1, k).mean() for k in ranks}
            sought = lists.find(attributes)[0].group_by(category="pool", group="own")
            tables.append(sought.agg(pl.len().alias(config), **hits))
        followed = ranked.filter(pl.col("place") <= self.params.top_k_followed)
        top = followed.select(WORD).unique().sort(WORD)
        followed = (top if before is None else before).join(
            top.with_columns(kept=True), on=WORD, how="left", maintain_order="left"
        )
        for names in ((*GROUP, "query"), GROUP):  # mean over queries of the share of words
            followed = followed.group_by(names, maintain_order=True).agg(
                pl.col("kept").fill_null(value=False).mean()
            )
        table = self.groups
        for part in (*tables, followed):
            table = table.join(part, on=GROUP, how="left", maintain_order="left")
        counts = [table[config].fill_null(0) for config in self.attributes for _ in ranks]
        one = [np.ones(len(table))]
        sizes = np.column_stack([*one * len(AFFECTS), *counts, *one])
        values = table.drop(*GROUP, *self.attributes).cast(pl.Float64).to_numpy()
        return Measured(values, sizes, top)


def words_moved(
    before: pl.DataFrame, after: Sequence[pl.DataFrame], lexicon: pl.DataFrame
) -> pl.DataFrame:
    """Return the change in the tracked words of every list.

    A word is in the list after training if it is in the lists of more than half of the seeds; words
    in neither list get no row.

    ``before``, ``after``: ``Measured.top`` before training, and for each seed after training.
    """
    seeds = pl.concat(after).group_by(WORD).agg(stays=pl.len() * 2 > len(after))
    table = before.with_columns(known=True).join(seeds, on=WORD, how="full", coalesce=True)
    table = table.with_columns(pl.col("known", "stays").fill_null(value=False))
    outcome = pl.when("known", "stays").then(pl.lit(KEPT)).when("known").then(pl.lit(REMOVED))
    tone = lexicon.select("positive", "negative", folded="key")
    return (
        table.filter(pl.col("known") | pl.col("stays"))
        .with_columns(folded=casefold("key"), outcome=outcome.otherwise(pl.lit(ADDED)))
        .join(tone, on="folded", how="left")
        .rename({"key": "word"})
        .sort(*GROUP, "query", "word")
    )


def lists_after(
    path: Path, before: pl.DataFrame
) -> tuple[tuple[str, float, int, int], pl.DataFrame]:
    """Return the values of :data:`TRAINING` for a training run, and the lists after it.

    Raises UserError if the queries or lengths differ from those of the lists before training.
    """
    table = pl.read_parquet(path)
    training = table.select(TRAINING).row(0)
    lengths = [x.group_by(LIST).agg(pl.col("rank").max()).sort(LIST) for x in (before, table)]
    if not lengths[0].equals(lengths[1]):
        raise UserError(
            f"{path}: prompts or list lengths differ from those before training; set top_k in "
            "probes.after_training and probes.completions to the same value, and run `make repro`"
        )
    return training, typicality.normalise(table.drop(*TRAINING, "articles"))


class Corpus(NamedTuple):
    """Measures after each training run on a share of a corpus."""

    seeds: Sequence[int]
    values: Array  # (seeds, groups, outcomes)
    steps: float  # mean over training runs
    top: Sequence[pl.DataFrame] = ()  # tracked words after each training run

    def select(self, inside: Bools) -> Corpus:
        """Return the measures of only the selected groups."""
        return self._replace(values=self.values[:, inside])

    def matching(self, seeds: Sequence[int]) -> Corpus:
        """Return the training runs with the given seeds, see :func:`matching`."""
        places = matching(self.seeds, seeds)
        return self._replace(seeds=[self.seeds[i] for i in places], values=self.values[places])

    def comparable(self, control: Corpus) -> bool:
        """Return True if training took similar numbers of steps on both corpora.

        More steps, because of more or longer articles, shift a model further in any case.

        Examples
        --------
        >>> hundred = Corpus([1], np.zeros((1, 2, 3)), 100)
        >>> hundred.comparable(hundred._replace(steps=96))
        True
        >>> hundred.comparable(hundred._replace(steps=94))
        False
        """
        larger = max(self.steps, control.steps)
        return abs(self.steps - control.steps) <= STEPS_DIFFERENCE_MAX * larger


def matching(seeds: Sequence[int], chosen: Sequence[int]) -> list[int]:
    """Return the indices of the runs with the chosen seeds, or of all runs if there are none.

    At level .05, the size of Welch's test is .07 to .11 for two against six runs, .03 for two each.
    """
    return [i for i, seed in enumerate(seeds) if seed in chosen] or [*range(len(seeds))]


class Trainings(NamedTuple):
    """Measures of a model before and after all its training runs, for one language and ranking."""

    setting: Setting
    base: Measured
    corpora: dict[tuple[str, float], Corpus]  # by corpus and share

    def categories(self) -> dict[str, Bools]:
        """Return a mask of the groups for each category."""
        category = self.setting.groups["category"].to_numpy()
        return {str(name): category == name for name in np.unique(category)}

    def compared(self) -> Iterator[tuple[dict[str, Any], Corpus, Corpus | None]]:
        """Yield each corpus and the matching training runs on the control."""
        for (name, share), corpus in self.corpora.items():
            control = self.corpora.get((self.setting.params.control, share))
            if control is not None:
                control = None if control is corpus else control.matching(corpus.seeds)
            yield {"corpus": name, "share": share}, corpus, control


def read_trainings(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, Trainings]]:
    """Yield the language and measures for each ranking, reading one training run at a time."""
    folder = inputs.outputs("after_training", model)
    for language in typicality.languages(folder):
        lexicon = emotions.lexicon(inputs.datasets["emotions"], language)
        if lexicon is None:
            continue
        before = typicality.read_lists(inputs.outputs("completions", model) / language)
        groups = before.select(GROUP).unique().sort(GROUP)
        configs = recall.attributes(inputs.datasets["stereotypes"], language)
        single = {name: configs[name][recall.KINDS[0]] for name in sorted(configs)}
        rankings = []
        for name in (x for x in params.top_k if x in typicality.readings(before)):
            setting = Setting(groups, name, params, lexicon, single)
            rankings.append((setting, setting.measure(before)))
        after = {}
        for path in folder.glob(f"{language}/*.parquet"):
            training, lists = lists_after(path, before)
            after[training] = [setting.measure(lists, base.top) for setting, base in rankings]
        names = sorted({name for name, *_ in after})
        if params.control not in names:
            raise UserError(
                f"{folder / language}: no training on {params.control} (available: "
                f"{', '.join(names) or 'none'}); name another analysis.shift.control, add it to "
                "probes.after_training.corpora, or run `make repro STAGE=after_training`"
            )
        for i, (setting, base) in enumerate(rankings):
            corpora = {}
            for key, group in groupby(sorted(after), key=lambda training: training[:2]):
                _, _, seeds, steps = zip(*(runs := list(group)), strict=True)
                values, _, top = zip(*(after[training][i] for training in runs), strict=True)
                corpora[key] = Corpus(seeds, np.stack(values), float(np.mean(steps)), top)
            yield language, Trainings(setting, base, corpora)
