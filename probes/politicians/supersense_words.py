"""Words with classes, and what the bootstrap over names makes of them, for ``supersenses``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.probes.politicians import resample_counts, word_counts
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-5  # of deviations in tables


class Words(NamedTuple):
    """Words of one part of speech that have a class, and their deviations."""

    words: list[str]
    lemmas: list[str]
    values: NDArray[np.float64]  # (words, genders), nan where there is none
    weights: NDArray[np.float64]  # (words, classes)
    best: NDArray[np.bool_]
    unclassed: int


class Drawn(NamedTuple):
    """Deviations of words in bootstrap replicates over names."""

    words: tuple[str, ...]
    values: NDArray[np.float32]  # (replicates, words, genders), nan where nobody has the gender
    names: tuple[int, ...]  # (genders,): distinct names


def drawn(
    source: word_counts.Lists,
    folk: word_counts.People,
    table: pl.DataFrame,
    smoothing: float,
    replicates: int,
    seed: int,
) -> Drawn:
    """Compute smoothed PMI again with Bayesian bootstrap weights for distinct names.

    Parameters
    ----------
    table
        Columns word, gender (codes) and value: of the table ``pmi``, one part of speech.

    Raises
    ------
    Problem
        If the values are not those of these lists with this smoothing.
    """
    counts = word_counts.count(source, folk)
    place = {word: i for i, word in enumerate(counts.words)}
    chosen = np.array([place.get(w, -1) for w in table["word"].unique().sort()], dtype=np.intp)
    chosen = chosen[chosen >= 0]
    seen = pmi(counts.lists.astype(np.float64), smoothing)
    group = {int(label): g for g, label in enumerate(counts.genders)}
    for word, gender, value in table.select("word", "gender", "value").iter_rows():
        found = seen[place[word], group[gender]] if word in place and gender in group else np.nan
        if not abs(found - value) <= ROUNDING:
            raise Problem(
                f"analysis.supersenses.smoothing: with {smoothing:g} the lists do not give the "
                f"table pmi ({word!r}); set it to analysis.pmi.smoothing, and make that table anew"
            )
    draws = resample_counts.draw(source, folk, counts, chosen, replicates, seed)
    cells = smoothed(draws.bayesian, smoothing, seed, draws.merged)
    values = np.full((replicates, len(chosen), len(GENDERS)), np.nan, dtype=np.float32)
    values[:, :, counts.genders] = pmi(np.moveaxis(cells, -1, 0))[:, : len(chosen)]
    names = np.zeros(len(GENDERS), dtype=np.int64)
    names[counts.genders] = counts.names
    return Drawn(tuple(counts.words[w] for w in chosen), values, tuple(names.tolist()))


def classed(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int, unit: str) -> Words:
    """Match words to classes by lemma, else by form, else by the lemma in small letters."""
    names = [i for i, name in enumerate(CLASSES) if name.startswith(("adj.", "verb.")[pos])]
    given = classes.filter(pl.col("pos") == pos)
    row_of = {lemma: row for row, lemma in enumerate(given["lemma"].unique().sort())}
    weights = np.zeros((len(row_of), len(names)))
    best = np.zeros((len(row_of), len(names)), dtype=bool)
    at = np.array([row_of[lemma] for lemma in given["lemma"]], dtype=np.int64)
    column = given["supersense"].to_numpy() - names[0]
    weights[at, column] = given["weight"].to_numpy()
    best[at, column] = given["best"].to_numpy()
    values = (
        deviations.filter(pl.col("pos") == pos)
        .group_by("word", "lemma", "gender")
        .agg(pl.col("value").max())
        .drop_nulls("value")
        .sort("word", "lemma", "gender")
    )
    kept: dict[tuple[str, str], int] = {}
    lacking: set[tuple[str, str]] = set()
    for word, lemma in values.select("word", "lemma").unique(maintain_order=True).iter_rows():
        row = next((row_of[w] for w in (lemma, word, lemma.lower()) if w in row_of), None)
        if row is None:
            lacking.add((word, lemma))
        else:
            kept[word, lemma] = row
    place = {key: i for i, key in enumerate(kept)}
    matrix = np.full((len(kept), len(GENDERS)), np.nan)
    for word, lemma, gender, value in values.select("word", "lemma", "gender", "value").iter_rows():
        if (word, lemma) in place:
            matrix[place[word, lemma], gender] = value
    lemmas = [lemma for _, lemma in kept]
    if unit == "lemma":
        matrix = alone(matrix.T, lemmas).T
    rows = list(kept.values())
    return Words(
        [word for word, _ in kept], lemmas, matrix, weights[rows], best[rows], len(lacking)
    )
