"""The sentiment of words: from the dataset ``lexica``, or for a world what was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from builders.words import POS
from probes.world.language import SENTIMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

Q = tuple(f"q_{sentiment}" for sentiment in SENTIMENTS)
DEVIATIONS = ("pmi", "latent", "latent-faithful")  # what words are ranked by
READINGS = ("pairs", "argmax")  # what is ranked, and how sentiments are counted
NEUTRAL = SENTIMENTS.index("neutral")


def planted(weights: Path) -> pl.DataFrame | None:
    """Return word, pos and q(s | w), 0 or 1, of a world; None where a model is none."""
    path = weights / "planted.parquet"
    if not path.is_file():
        return None
    codes = {name: code for code, name in enumerate(POS)}
    return pl.read_parquet(path).select(
        "word",
        pl.col("pos").replace_strict(codes, return_dtype=pl.Int64),
        *((pl.col("sentiment") == s).cast(pl.Float64).alias(f"q_{s}") for s in SENTIMENTS),
    )


def of_words(
    words: pl.DataFrame, pos: int, weights: Path, lexica: Path, language: str
) -> NDArray[np.float64]:
    """Return q(s | w) for words, an array (words, sentiments); nan for a word in no lexicon.

    A form is looked up as it is, then in lower case, then by its lemma.

    Parameters
    ----------
    words
        Columns word and lemma.
    weights
        Folder of the model: for a world, its planted sentiments are what counts.
    lexica
        Folder of the dataset, with a config for the language or without.
    """
    known = planted(weights)
    if known is not None:
        known = known.filter(pl.col("pos") == pos).select("word", *Q)
    elif (lexica / f"{language}.parquet").is_file():
        known = pl.read_parquet(lexica / f"{language}.parquet", columns=["word", *Q])
    else:
        return np.full((len(words), len(Q)), np.nan)
    table = {row[0]: row[1:] for row in known.iter_rows()}
    none = (np.nan,) * len(Q)
    found = [
        next((table[key] for key in (word, word.lower(), lemma) if key in table), none)
        for word, lemma in words.select("word", "lemma").iter_rows()
    ]
    return np.array(found, dtype=np.float64).reshape(len(words), len(Q))


def argmax(q: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable sentiment of each word; neutral where two are equally probable.

    Examples
    --------
    >>> argmax(np.array([[0.6, 0.2, 0.2], [0.4, 0.4, 0.2]])).tolist()
    [0, 2]
    """
    best = np.isclose(q, q.max(axis=1, keepdims=True))
    return np.where(best.sum(axis=1) == 1, best.argmax(axis=1), NEUTRAL)
