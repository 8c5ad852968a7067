"""Attributes of the dataset ``stereotypes`` in the ranked lists of a model, and their recall.

A group has a list of candidates for each of its queries, and attributes that are sought in them.
Recall has two baselines: random order, other groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stereotypes.typicality import VOCABULARY, WHOLE, folded, placed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Array = NDArray[np.float64]

KINDS = ("single word", "first word")
LONGER = "multi_word"  # a flag of all attributes of several words, which says nothing of the first
ATTRIBUTE = ("category", "group", "query", "target")


class Lists(NamedTuple):
    """All lists of a model in one language and reading."""

    whole: bool  # without pieces of longer words
    table: pl.DataFrame  # as typicality.placed returns it, each query once
    best: pl.DataFrame  # category, group, template, query, key: the best place; tokens listed
    lengths: pl.DataFrame  # category, group, template, query, rewritten: tokens in the list

    @classmethod
    def of(cls, answers: pl.DataFrame, reading: str) -> Lists:
        """Rank the lists of :func:`plumbline.probes.stereotypes.typicality.answers`."""
        once = answers.unique(["query", "rank"], keep="first", maintain_order=True)
        table = placed(once, reading)
        names = ("category", "group", "template", "query")
        best = table.group_by(*names, "key").agg(place=pl.col("place").min(), listed=pl.len())
        lengths = table.group_by(*names, "rewritten").agg(length=pl.len())
        return cls(reading in WHOLE, table, best, lengths.sort(names))

    def find(self, attributes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Look attributes up in the lists of their queries; those of no prompt are left out.

        Returns
        -------
        attributes
            Those found, with place (0: not listed), listed (tokens), length, rewritten, and row: of
            their group among the groups.
        groups
            category (of the dataset), group, and pool (category of its prompts), sorted.
        """
        lists = self.lengths.rename({"category": "pool", "group": "own"})
        best = self.best.select("query", "place", "listed", target="key")
        found = attributes.join(lists, on="query").join(best, on=["query", "target"], how="left")
        names = ["category", "own", "pool"]
        groups = found.select(names).unique().sort(names[:2])
        found = found.join(groups.with_row_index("row"), on=names).sort(*ATTRIBUTE)
        numbers = pl.col("place", "listed", "length", "row").fill_null(0).cast(pl.Int64)
        return found.with_columns(numbers), groups.select("category", "pool", group="own")

    def exchange(
        self, attributes: pl.DataFrame, ranks: Sequence[int], top_k: int, draws: int, seed: int
    ) -> tuple[Array, Array, dict[str, Array]]:
        """Look the attributes of each category up in the lists of all groups, template by template.

        Groups swap lists with those of the category of their prompts, the pool. A group that has
        prompts of other templates has no hits there; attributes in rewritten queries, which few
        groups have, are left out. Each category and pool has independent permutations.

        ``attributes``: as :meth:`find` returns them.

        Returns
        -------
        (groups, top_k), (groups, top_k) and, by category, (draws, ranks) arrays
            Mean hits of every group in the lists of all others, and in all, its own too, which is
            the mean of exchanges. Hits of all groups of a category with lists exchanged.
        """
        others, expected = np.zeros((2, attributes["row"].n_unique(), top_k))
        categories = attributes["category"].unique().sort()
        drawn = {category: np.zeros((draws, len(ranks))) for category in categories}
        sought = attributes.filter(~pl.col("rewritten"))
        for (category, pool), part in sought.partition_by("category", "pool", as_dict=True).items():
            names = self.lengths.filter(category=pool)["group"].unique().sort().to_numpy()
            members = part.select("row", "own").unique().sort("row")
            rows, mine = members["row"].to_numpy(), np.searchsorted(names, members["own"])
            best = self.best.filter(category=pool)
            best = best.select("template", rank="place", other="group", target="key")
            met = part.join(best, on=["template", "target"])
            rank = met["rank"].to_numpy()
            at, other = np.searchsorted(rows, met["row"]), np.searchsorted(names, met["other"])
            table = np.zeros((len(rows), len(names), len(ranks)))
            np.add.at(table, (at, other), rank[:, None] <= np.array(ranks))
            expected[rows] = hits(rank, at, len(rows), top_k) / len(names)
            away = other != mine[at]
            others[rows] = hits(rank[away], at[away], len(rows), top_k) / max(1, len(names) - 1)
            stream = (seed, *map(int, keys([f"{category}\t{pool}"])))
            drawn[category] += exchanged(table, mine, draws, stream)
        return others, expected, drawn


def hits(ranks: Integers, groups: Integers, size: int, top_k: int) -> Integers:
    """Count, for each group, its attributes at ranks up to 1, 2, ..., ``top_k``.

    Parameters
    ----------
    ranks : (attributes,) array
        Rank of each attribute in the list of its query, 1 the first; 0: not in the list.
    groups : (attributes,) array
        Group of each, below ``size``.

    Returns
    -------
    (size, top_k) array

    Examples
    --------
    >>> hits(np.array([1, 3, 0]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 1, 2], [0, 0, 0]]
    """
    found = np.zeros((size, top_k + 1), dtype=np.int64)
    inside = (ranks > 0) & (ranks <= top_k)
    np.add.at(found, (groups[inside], ranks[inside]), 1)
    return found[:, 1:].cumsum(axis=1)


def chance(listed: Integers, lengths: Integers, top_k: int) -> NDArray[np.float64]:
    """Return the exact chance that each attribute is a hit when its list is in random order.

    The same candidates, the ranking alone is random: an attribute that is not in the list is never
    hit, so that this tells how much of a recall is due to the order.

    Parameters
    ----------
    listed : (attributes,) array
        How many candidates of the list are the attribute: mostly 0 or 1, 2 where two tokens
        are one word.
    lengths : (attributes,) array
        Candidates in the list.

    Returns
    -------
    (attributes, top_k) array
        min(k, length) / length where it is listed once: the mean of a hypergeometric variable.

    Examples
    --------
    >>> chance(np.array([1, 0, 2]), np.array([4, 4, 4]), 2).round(4).tolist()
    [[0.25, 0.5], [0.0, 0.0], [0.5, 0.8333]]
    """
    first = np.arange(1, top_k + 1)
    missed = np.ones((len(listed), top_k))
    for i in range(int(listed.max(initial=0))):
        left = np.clip(lengths[:, None] - first - i, 0, None) / (lengths[:, None] - i).clip(1)
        missed *= np.where(listed[:, None] > i, left, 1.0)
    found: NDArray[np.float64] = 1 - missed
    return found


def exchanged(
    hits: Array, lists: Integers, n_permutations: int, seed: int | Sequence[int]
) -> Array:
    """Draw hits of all groups together when each is given the lists of another group.

    The null hypothesis: lists say nothing about the group in their prompts, whatever words are
    common in all of them. The permuted unit is the group, with all its lists.

    Parameters
    ----------
    hits : (groups, lists, ranks) array
        Hits of a group's attributes in each group's lists of the same templates; there may be
        lists of groups that have no attributes.
    lists : (groups,) array
        Numbers of the group's own lists, all different.
    seed
        Outcomes that are added up need seeds of their own, such as (seed, number of the part):
        with one seed, parts of one size get the same permutations, and their sum varies too much.

    Returns
    -------
    (n_permutations, ranks) array
    """
    size, number, _ = hits.shape
    if len(set(lists.tolist())) != size:
        raise ValueError("two groups with the same lists")
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(number), (n_permutations, 1)), axis=1)[:, lists]
    return np.asarray(hits[np.arange(size), orders].sum(axis=1))


def attributes(folder: Path, language: str) -> dict[str, dict[str, pl.DataFrame]]:
    """Return category, group, query and target of attributes, casefolded, by config and kind.

    Rows with a flag of the dataset's cleaning are left out, but for those of the published set,
    which was cleaned manually. That an attribute has several words does not disqualify its first.

    Parameters
    ----------
    folder
        The dataset ``stereotypes``, whose configs have rows of one language each.
    """
    configs = {}
    for config in parquet.configs(folder):
        clean = pl.col("flags").list.set_difference([LONGER]).list.len() == 0
        table = pl.read_parquet(folder / f"{config}.parquet").filter(
            clean | (pl.col("source_row") > 0), language=language
        )
        if len(table):
            table = table.with_columns(target=folded("attribute"))
            first = pl.col("target").str.split(" ").list.first()
            longer = table.filter(~pl.col("single_word")).with_columns(first)
            kinds = (rows.select(ATTRIBUTE) for rows in (table.filter("single_word"), longer))
            configs[config] = dict(zip(KINDS, kinds, strict=True))
    return configs


def pieces(outputs: Path, language: str) -> pl.DataFrame:
    """Return target and pieces: in how many tokens the model writes attributes, where known."""
    path = outputs / VOCABULARY / f"{language}.parquet"
    if not path.is_file():
        return pl.DataFrame(schema={"target": pl.String, "pieces": pl.Int32})
    return pl.read_parquet(path).select("pieces", target=folded("attribute")).unique("target")
