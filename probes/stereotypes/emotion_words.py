"""Affects of the words that go with groups: profiles, their differences, and a test of those.

A group has a set of words. Its profile is the share of its words that carry each affect, among
those that a lexicon, of the dataset ``emotions``, knows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes.typicality import folded

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

BLOCK = 256  # replicates held at once
NEAR = 1e-9  # statistics as far from the mean as each other up to rounding count as equally far


class Profiles(NamedTuple):
    """What the words of each group carry."""

    carrying: NDArray[np.int64]  # (groups, affects) words of the group that carry the affect
    covered: NDArray[np.int64]  # (groups,) words of the group that the lexicon has
    words: NDArray[np.int64]  # (groups,) words of the group

    @property
    def share(self) -> NDArray[np.float64]:
        """Return the profiles, (groups, affects) between 0 and 1; nan without covered words."""
        with np.errstate(invalid="ignore"):
            found: NDArray[np.float64] = self.carrying / self.covered[:, None]
        return found


def profiles(
    members: NDArray[np.bool_], affects: NDArray[np.bool_], known: NDArray[np.bool_]
) -> Profiles:
    """Count, for each group, its words that carry each affect.

    Parameters
    ----------
    members : (groups, words) array
        Whether a word goes with a group; a word counts once however often it was given.
    affects : (words, affects) array
        Whether a word carries an affect; all False where the lexicon does not have the word.
    known : (words,) array
        Whether the lexicon has the word. One that it has without any affect counts below the line.

    References
    ----------
    Choenni, Shutova and van Rooij (2021), Stepmothers are mean and academics are pretentious,
    EMNLP, section on emotion profiles; times 100 it is the percentage of their released scores.

    Examples
    --------
    >>> found = profiles(
    ...     np.array([[1, 1, 1, 0]], dtype=bool),
    ...     np.array([[1, 0], [0, 0], [0, 0], [1, 1]], dtype=bool),
    ...     np.array([True, True, False, True]),
    ... )
    >>> found.share.tolist(), found.covered.tolist(), found.words.tolist()
    ([[0.5, 0.0]], [2], [3])
    """
    kept = members & known
    carrying = kept.astype(np.int64) @ affects.astype(np.int64)
    return Profiles(carrying, kept.sum(axis=1), members.sum(axis=1))


def differences(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each group's share minus the mean share of all other groups, of the same shape.

    Parameters
    ----------
    share : (groups, ...) array
        At least two groups; those of nan are left out of the means of the others.

    Examples
    --------
    >>> differences(np.array([[0.5], [0.1], [0.3]])).round(10).ravel().tolist()
    [0.3, -0.3, 0.0]
    """
    defined = ~np.isnan(share)
    total = np.where(defined, share, 0.0)
    others = defined.sum(axis=0) - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        found: NDArray[np.float64] = share - (total.sum(axis=0) - total) / others
    return found


def redrawn(
    members: NDArray[np.bool_],
    affects: NDArray[np.bool_],
    known: NDArray[np.bool_],
    weights: NDArray[np.float32],
) -> NDArray[np.float64]:
    """Return profiles with words drawn anew, (groups, affects, replicates).

    The cluster is the word: it has one weight in a replicate for all groups that have it, so that
    what groups have in common is resampled in common.

    Parameters
    ----------
    weights : (words, replicates) array
        Whole numbers, such as Poisson draws: the sums of them are exact.
    """
    kept = (members & known).astype(np.float32)
    total = (kept @ weights).astype(np.float64)
    found = np.empty((len(kept), affects.shape[1], weights.shape[1]))
    with np.errstate(invalid="ignore"):
        for a, carries in enumerate(affects.T):
            found[:, a] = (kept[:, carries] @ weights[carries]) / total
    return found


def shuffled_p(
    members: NDArray[np.bool_],
    affects: NDArray[np.bool_],
    known: NDArray[np.bool_],
    permutations: int,
    seed: int,
) -> NDArray[np.float64]:
    """Test :func:`differences` of profiles; return p-values, (groups, affects).

    The null: which words a group has says nothing about their affects. The affects, all of a word
    together, are permuted over the covered words, while every group keeps its words; so that
    groups share words as much as they do, and only words that not all have can make a
    difference. Two-sided, the outcome seen counted as one of them; 1 for groups without covered
    words.

    References
    ----------
    Phipson and Smyth (2010), Permutation p-values should never be zero, equation 2.
    """
    kept = (members & known)[:, known].astype(np.float32)
    carries = affects[known].astype(np.float32)
    size = kept.sum(axis=1, dtype=np.float64)[:, None, None]

    def far(drawn: NDArray[np.float32]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            counted = kept @ drawn.reshape(len(drawn), drawn.shape[1] * drawn.shape[2])
            return np.abs(differences(counted.reshape(len(kept), *drawn.shape[1:]) / size))

    seen = far(carries[:, None]) - NEAR
    beyond = np.zeros((len(kept), carries.shape[1]))
    rng = np.random.default_rng(seed)
    for start in range(0, permutations, BLOCK):
        number = min(BLOCK, permutations - start)
        orders = rng.permuted(np.tile(np.arange(len(carries)), (number, 1)), axis=1)
        beyond += (far(carries[orders.T]) >= seen).sum(axis=1)
    p = (beyond + 1) / (permutations + 1)
    return np.where(np.isnan(seen[:, 0]), 1.0, p)


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
