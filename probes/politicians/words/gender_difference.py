"""The difference of a word's PMI with women and with men, ranked, with intervals over names.

Stańczak et al. (2023), Table 3: the 15 adjectives whose PMI differs most. As the share of the word
cancels, the difference is the log-ratio of its share of the lists of women and of men.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.schema import Column
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.columns import FEMALE, MALE, OF_PMI
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import estimates
from plumbline.probes.stats.pmi import smoothed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.politicians.words.resample_counts import Draws
    from plumbline.probes.politicians.words.word_counts import Counts

COLUMNS = (
    columns.UNIT,
    columns.WORD,
    Column("reading", "category", "as in `pmi`", labels=OF_PMI),
    Column("count_female", "int64", "lists of women that have the word", minimum=0),
    Column("count_male", "int64", "lists of men that have the word", minimum=0),
    *estimates(
        cluster="name",
        method="95% bootstrap percentile over names: Poisson weights, or Bayesian if smoothed",
    ),
)


def difference(cells: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return PMI with the first group less PMI with the second, (words, ...).

    ``cells``, (all words, 2, ...) array: lists with each word.

    Examples
    --------
    Of 10 words in lists of women 4 are this one, of 20 of men 2: log(.4 / .1).

    >>> difference(np.array([[4.0, 2.0], [6.0, 18.0]])).round(3).tolist()
    [1.386, -0.405]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.log(cells / cells.sum(axis=0))
        return np.asarray(shares[:, 0] - shares[:, 1])


def differences(
    counts: Counts,
    chosen: NDArray[np.intp],
    draws: Draws,
    smoothing: float,
    seed: int,
    confidence: float,
    **same: str | int,
) -> pl.DataFrame:
    """Return a row for each chosen word and reading, with columns :data:`COLUMNS`.

    The largest differences come first. The counts and intervals are those of the analysis `pmi`:
    people with Poisson weights of their names for the plug-in; distinct names where ``smoothing``
    is added to every cell. Words that nobody of one gender has differ infinitely, and are null in
    the plug-in. There is no row where no woman or no man has a list.

    ``draws``: of the chosen words.
    ``same``: columns that have one value in all rows.
    """
    if not {FEMALE, MALE} <= set(counts.genders.tolist()):
        return pl.DataFrame()
    sides = [int(np.searchsorted(counts.genders, gender)) for gender in (FEMALE, MALE)]
    drawn = smoothed(draws.bayesian, smoothing, seed, draws.merged)
    ends, values = [], []
    cells = [of[:, sides] for of in (counts.lists, counts.distinct)]
    every = (draws.ordinary, 0.0), (drawn, smoothing)
    for seen, (replicates, added) in zip(cells, every, strict=True):
        limits = percentiles(difference(replicates[:, sides])[: len(chosen)], confidence)
        value = difference(seen.astype(np.float64) + added)[chosen]
        ends.append(limits)
        values.append(value)
    value, low, high = (
        np.stack(part, axis=1)
        for part in (values, [end.low for end in ends], [end.high for end in ends])
    )
    size = np.where(np.isfinite(value), np.abs(value), -1.0)
    rank = np.argsort(np.argsort(-size, axis=0, kind="stable"), axis=0) + 1
    table = columns.rows_of(
        {"word": [counts.words[w] for w in chosen], "reading": OF_PMI},
        [value, low, high],
        rank=rank,
        count_female=np.stack([seen[chosen, 0] for seen in cells], axis=1),
        count_male=np.stack([seen[chosen, 1] for seen in cells], axis=1),
        n=counts.clusters,
        pos=counts.source.pos,
        unit=counts.source.unit,
        **same,
    )
    return table.sort("reading", "rank")  # plug-in comes first
