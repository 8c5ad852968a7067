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
from plumbline.probes.stats.estimate import ESTIMATE
from plumbline.probes.stats.pmi import smoothed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.politicians.words.resample_counts import Draws
    from plumbline.probes.politicians.words.word_counts import Counts

COLUMNS = (
    columns.UNIT,
    columns.WORD,
    columns.LEMMA,
    Column("reading", "label", "as in `pmi`", labels=OF_PMI),
    Column("rank", "int64", "by the size of the difference, of a part of speech; 1: largest"),
    Column("count_female", "int64", "lists of women that have the word", minimum=0),
    Column("count_male", "int64", "lists of men that have the word", minimum=0),
    *ESTIMATE,
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
    """Return a row for each chosen word and reading, with columns :data:`COLUMNS`, by rank.

    The counts and intervals are those of the analysis `pmi`: people with Poisson weights of their
    names for the plug-in; distinct names where ``smoothing`` is added to every cell. There is no p:
    those of each gender are beside it. Words that nobody of one gender has are infinitely far
    apart, and null in the plug-in. There is no row where no woman or no man has a list.

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
    methods = ("bootstrap percentile (Poisson weights)", "Bayesian bootstrap percentile")
    words, lemmas = ([of[w] for w in chosen] for of in (counts.words, counts.lemmas))
    table = columns.rows_of(
        {"word": words, "reading": range(len(OF_PMI))},
        [value, low, high],
        lemma=np.array(lemmas)[:, None],
        rank=rank,
        count_female=np.stack([seen[chosen, 0] for seen in cells], axis=1),
        count_male=np.stack([seen[chosen, 1] for seen in cells], axis=1),
        n=counts.clusters,
        cluster="name",
        method=np.array([f"{confidence:.0%} {method} over names" for method in methods]),
        null="none: see the PMI of each gender",
        pos=counts.source.pos,
        unit=columns.UNITS.index(counts.source.unit),
        **same,
    )
    return table.sort("reading", "rank")
