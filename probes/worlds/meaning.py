"""What the words of a world mean: their sentiment and supersense, from the datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.supersenses import build as supersenses
from plumbline.probes.worlds.language import SENTIMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NEUTRAL = SENTIMENTS.index("neutral")


class Meaning(NamedTuple):
    """Of the words of one part of speech, in their order."""

    sentiment: NDArray[np.int64]  # places in SENTIMENTS; neutral where no lexicon has the word
    supersense: tuple[str, ...]  # empty where a word has none


def meaning(words: Sequence[str], lemmas: Sequence[str], language: str, pos: str) -> Meaning:
    """Look words up: in ``lexica`` by form, or else by lemma; in ``supersenses`` the other way.

    The sentiment is the likeliest one of ``lexica``, the supersense the best class of
    ``supersenses`` (the first by name, if several are best), which has English alone.

    Raises
    ------
    Problem
        If a dataset is not validated, or has no lexicon of the language.
    """
    folder = parquet.require_validated("lexica")
    path = folder / f"{language}.parquet"
    if not path.is_file():
        raise Problem(
            f"{folder}: no lexicon of {language!r}, which a world needs; add it under "
            "datasets.lexica.languages, or give the world another language"
        )
    shares = pl.read_parquet(path, columns=["word", *(f"q_{s}" for s in SENTIMENTS)])
    likeliest = shares.select(f"q_{s}" for s in SENTIMENTS).to_numpy().argmax(axis=1)
    known = dict(zip(shares["word"].to_list(), likeliest.tolist(), strict=True))
    sentiment = [known.get(w, known.get(m, NEUTRAL)) for w, m in zip(words, lemmas, strict=True)]
    classes = _classes(pos) if language == supersenses.LANGUAGE else {}
    # a lemma first: "found" is a form of "find", and a verb of its own
    named = [classes.get(m, classes.get(w, "")) for w, m in zip(words, lemmas, strict=True)]
    return Meaning(np.array(sentiment, dtype=np.int64), tuple(named))


def _classes(pos: str) -> dict[str, str]:
    """Return the class of every lemma of a part of speech."""
    folder = parquet.require_validated("supersenses")
    frame = pl.read_parquet(folder / f"{supersenses.LANGUAGE}.parquet").filter(
        (pl.col("pos") == supersenses.POS.index(pos)) & pl.col("best")
    )
    first = frame.group_by("lemma").agg(pl.col("supersense").min())
    return {
        lemma: supersenses.CLASSES[code]
        for lemma, code in first.select("lemma", "supersense").iter_rows()
    }
