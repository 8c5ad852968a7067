"""Affect profiles of groups: their words looked up in the dataset ``emotions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes.emotion_words import Profiles, profiles
from plumbline.probes.stereotypes.typicality import folded

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class Members(NamedTuple):
    """Which words go with which groups, and what the words carry."""

    groups: pl.DataFrame  # (groups,) rows that name them, sorted
    words: list[str]  # (words,) sorted
    members: NDArray[np.bool_]  # (groups, words)
    affects: NDArray[np.bool_]  # (words, affects) in the order of builders.emotions.AFFECTS
    known: NDArray[np.bool_]  # (words,) whether the lexicon has the word

    def profiles(self) -> Profiles:
        """Return the profiles of the groups."""
        return profiles(self.members, self.affects, self.known)


def lexicon(emotions: Path, language: str) -> pl.DataFrame | None:
    """Return words as they are compared and a column for each affect; None without the language.

    A word that is the translation of several English words carries what any of them carries, and
    one that differs from another in case alone is one with it.
    """
    path = emotions / f"{language}.parquet"
    if not path.is_file():
        return None
    table = pl.read_parquet(path, columns=["word", *AFFECTS])
    return table.group_by(key=folded("word")).agg(pl.col(AFFECTS).any()).sort("key")


def members(unions: pl.DataFrame, lexicon: pl.DataFrame) -> Members:
    """Gather the words of groups.

    Parameters
    ----------
    unions
        Column ``key``, and others that name a group; see ``typicality.unions``.
    """
    names = [name for name in unions.columns if name != "key"]
    groups = unions.select(names).unique().sort(names).with_row_index("row")
    words = unions.select("key").unique().sort("key").with_row_index("column")
    cells = unions.join(groups, on=names).join(words, on="key")
    found = np.zeros((len(groups), len(words)), dtype=np.bool_)
    found[cells["row"].to_numpy(), cells["column"].to_numpy()] = True
    looked = words.join(lexicon, on="key", how="left", maintain_order="left")
    known = looked[AFFECTS[0]].is_not_null().to_numpy()
    affects = looked.select(pl.col(AFFECTS).fill_null(value=False)).to_numpy()
    return Members(groups.drop("row"), words["key"].to_list(), found, affects, known)
