"""The sentiment of words, from the dataset ``lexica``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

Q = tuple(f"q_{sentiment}" for sentiment in SENTIMENTS)
DEVIATIONS = ("pmi", "latent", "latent-faithful")  # what words are ranked by
READINGS = ("pairs", "argmax")  # what is ranked, and how sentiments are counted
NEUTRAL = SENTIMENTS.index("neutral")


def of_words(
    words: Sequence[str], lemmas: Sequence[str], lexica: Path, language: str
) -> NDArray[np.float64]:
    """Return q(s | w) for words, an array (words, sentiments); nan for a word in no lexicon.

    A form is looked up as it is, then in lower case, then by its lemma.

    Parameters
    ----------
    lexica
        Folder of the dataset, with a config for the language or without.
    """
    path = lexica / f"{language}.parquet"
    if not path.is_file():
        return np.full((len(words), len(Q)), np.nan)
    lexicon = pl.read_parquet(path, columns=["word", *Q])
    shares = lexicon.select(Q).to_numpy().astype(np.float64)
    shares = shares / shares.sum(axis=1, keepdims=True)  # they are rounded in the dataset
    place = {word: i for i, word in enumerate(lexicon["word"].to_list())}
    none = np.full(len(Q), np.nan)
    rows = [
        next((place[key] for key in (word, word.lower(), lemma) if key in place), None)
        for word, lemma in zip(words, lemmas, strict=True)
    ]
    return np.array([none if row is None else shares[row] for row in rows]).reshape(-1, len(Q))


def argmax(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable sentiment of each word; neutral where two are equally probable.

    Examples
    --------
    >>> argmax(np.array([[0.6, 0.2, 0.2], [0.4, 0.4, 0.2]])).tolist()
    [0, 2]
    """
    best = np.isclose(q, q.max(axis=1, keepdims=True))
    return np.where(best.sum(axis=1) == 1, best.argmax(axis=1), NEUTRAL)
