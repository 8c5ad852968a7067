"""Attributes of the dataset ``stereotypes`` in the ranked lists of a model, and their recall.

A group has a list of candidates for each of its queries, and attributes that are sought in them.
Recall has two baselines: random order, other groups.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.tests import possible_p
from plumbline.probes.stereotypes.typicality import VOCABULARY, WHOLE, folded, placed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Array = NDArray[np.float64]

KINDS = ("single word", "first word")
Flagged = Literal["published", "all", "none"]
BLOCK = 500  # draws at once: what they need stays in the cache
ROOM = 1 << 28  # bytes of random orders of groups that are drawn side by side
LONGER = "multi_word"  # a flag of all attributes of several words, which says nothing of the first
ATTRIBUTE = ("category", "group", "query", "target")


class Null(NamedTuple):
    """Hits under a null, at some ranks."""

    expected: Array  # (ranks,)
    drawn: Array  # (draws, ranks)

    def p(self, seen: Integers) -> list[float | None]:
        """Return two-sided p-values of the hits seen, by their distance from the mean.

        None where there is no test, see :func:`plumbline.probes.stats.tests.possible_p`: as of
        whole lists in random order, and with two or three groups.

        Examples
        --------
        >>> of_two = np.array([[0.0], [2.0]] * 50)
        >>> Null(np.array([1.0]), of_two).p(np.array([2]))
        [None]
        """
        found = possible_p(seen - self.expected, (self.drawn - self.expected).T)
        return [None if np.isnan(p) else float(p) for p in found]


class Found(NamedTuple):
    """Attributes in queries that were put to the model, and where they stand."""

    # with place (0: not listed), listed (tokens), length, row (of groups), rewritten
    attributes: pl.DataFrame
    groups: pl.DataFrame  # category (of the dataset), group, and pool (category of its prompts)

    def column(self, name: str) -> Integers:
        """Return a column of the attributes, (attributes,)."""
        return self.attributes[name].to_numpy().astype(np.int64)


class Lists(NamedTuple):
    """All lists of a model in one language and reading."""

    whole: bool  # without pieces of longer words
    table: pl.DataFrame  # as typicality.placed returns it, each query once
    best: pl.DataFrame  # category, group, template, key: the best place, and how many tokens
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

    def find(self, attributes: pl.DataFrame) -> Found:
        """Look attributes up in the lists of their queries; those of no prompt are left out."""
        of = ["template", "query", "rewritten", "length"]
        lists = self.lengths.select(*of, pool="category", own="group")
        best = self.best.select("query", "place", "listed", target="key")
        found = (
            attributes.join(lists, on="query")
            .join(best, on=["query", "target"], how="left")
            .with_columns(pl.col("place", "listed").fill_null(0).cast(pl.Int64))
            .sort(*ATTRIBUTE)
        )
        of = ["category", "own", "pool"]
        groups = found.select(of).unique().sort(of[:2])
        found = found.join(groups.with_row_index("row"), on=of).sort(*ATTRIBUTE)
        return Found(found, groups.select("category", "pool", group="own"))

    def exchanged(
        self, found: Found, ranks: Sequence[int], top_k: int, draws: int, seed: int
    ) -> tuple[Array, Array, dict[str, Array]]:
        """Look the attributes of each category up in the lists of all groups, template by template.

        Groups swap lists with those of the category of their prompts, the pool. A group that has
        prompts of other templates has no hits there; attributes in rewritten queries, which few
        groups have, are left out. Each category and pool has permutations of its
        own, so that their sums are those of exchanges that do not depend on each other.

        Returns
        -------
        (groups, top_k), (groups, top_k) and, by category, (draws, ranks) arrays
            Mean hits of every group in the lists of all others, and in all, its own too, which is
            the mean of exchanges. Hits of all groups of a category with lists exchanged.
        """
        others, expected = np.zeros((2, len(found.groups), top_k))
        categories = sorted(found.groups["category"].unique())
        drawn = {category: np.zeros((draws, len(ranks))) for category in categories}
        each, pool = ["category", "pool"], "pool"
        names = self.lengths.select(pool="category", own="group").unique().sort(pool, "own")
        names = names.with_columns(
            list=pl.int_range(pl.len()).over(pool), lists=pl.len().over(pool)
        )
        sought = found.attributes.filter(~pl.col("rewritten"))
        mine = sought.select(*each, "row", "own").unique().sort(*each, "row")
        mine = mine.join(names, on=[pool, "own"], how="left", maintain_order="left")
        mine = mine.with_columns(at=pl.int_range(pl.len()).over(each))
        best = self.best.select(
            "template", pool="category", at_rank="place", own="group", target="key"
        )
        best = best.join(names.select(pool, "own", other="list"), on=[pool, "own"]).drop("own")
        met = sought.join(mine.select("row", *each, "at", "list"), on=["row", *each])
        met = met.join(best, on=["template", pool, "target"]).select(
            *each, pl.col("at", "list", "other", "at_rank").cast(pl.Int64)
        )
        parts = met.partition_by(each, as_dict=True)
        for (category, of), own in mine.partition_by(each, as_dict=True).items():
            part = parts.get((category, of), met.clear())
            at, lists, other, place = (part[name].to_numpy() for name in part.columns[2:])
            table = np.zeros((len(own), own["lists"][0], len(ranks)))
            np.add.at(table, (at, other), place[:, None] <= np.array(ranks))
            rows, away = own["row"].to_numpy(), other != lists
            expected[rows] = hits(place, at, len(own), top_k) / table.shape[1]
            elsewhere = hits(place[away], at[away], len(own), top_k)
            others[rows] = elsewhere / max(1, table.shape[1] - 1)
            of_pool = (seed, *map(int, keys([f"{category}\t{of}"])))
            drawn[category] += exchanged(table, own["list"].to_numpy(), draws, of_pool).drawn
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


def reordered(
    lists: pl.DataFrame, sought: pl.DataFrame, ranks: Sequence[int], draws: int, seed: int
) -> Array:
    """Draw the hits of each group with its candidates in random order.

    All templates of a group share one random order of the candidates that any of them has: lists
    of one group resemble each other, and orders drawn for each alone would vary too little. The
    mean is that of :func:`chance` in any case.

    ``lists``: candidates: columns query, token, and key, the word.
    ``sought``: attributes: columns row, the number of the group, query, and target, the word.

    Returns
    -------
    (groups, draws, ranks) array
        Attributes at or above each of ``ranks``.
    """
    number = (pl.col("token").rank("dense").over("row") - 1).cast(pl.Int64)
    own = lists.join(sought.select("row", "query").unique(), on="query")
    own = own.with_columns(number=number).sort("row", "query", "number")
    targets = sought.group_by("row", "query").agg("target").rows_by_key(["row", "query"])
    found = np.zeros((max(sought["row"].to_list()) + 1, draws, len(ranks)))

    def draw(row: int, of_group: pl.DataFrame) -> None:
        rng = np.random.default_rng([seed, row])
        order = rng.random((of_group["token"].n_unique(), draws), dtype=np.float32)
        for (query,), part in of_group.group_by("query"):
            keys, numbers = part["key"], part["number"].to_numpy()
            listed = [(keys == target).to_numpy() for target in targets[row, query][0][0]]
            there, whole = [*filter(np.any, listed)], np.min_scalar_type(len(part))
            for start in range(0, draws, BLOCK) if there else ():
                some = slice(start, start + BLOCK)
                here = order[:, some][numbers]  # (candidates, draws)
                for where in there:
                    ahead = (here < here[where].min(axis=0)).view(np.uint8).sum(axis=0, dtype=whole)
                    found[row, some] += ahead[:, None] < np.minimum(ranks, len(part))

    each = {int(str(row)): part for (row,), part in own.group_by("row", maintain_order=True)}
    most = max((part["token"].n_unique() for part in each.values()), default=1)
    room = max(1, ROOM // (4 * most * draws))
    with ThreadPoolExecutor(min(room, len(os.sched_getaffinity(0)))) as threads:
        list(threads.map(draw, each, each.values()))
    return found


def exchanged(
    table: NDArray[np.float64], own: Integers, n_permutations: int, seed: int | Sequence[int]
) -> Null:
    """Return the hits of all groups together when each is given the lists of another group.

    The null: lists say nothing about the group in their prompts, whatever words are common
    in all of them. The unit that is permuted is the group, with all its lists.

    Returned: the exact mean over all ways to give out the lists, and ``n_permutations`` of the
    sums.

    Parameters
    ----------
    table : (groups, lists, ranks) array
        Hits of a group's attributes in each group's lists of the same templates; there may be
        lists of groups that have no attributes.
    own : (groups,) array
        Which lists are the group's own, all different.
    seed
        Outcomes that are added up need seeds of their own, such as (seed, number of the part):
        with one seed, parts of one size get the same permutations, and their sum varies too much.
    """
    size, lists, _ = table.shape
    if len(set(own.tolist())) != size:
        raise ValueError("two groups with the same lists")
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(lists), (n_permutations, 1)), axis=1)[:, own]
    drawn = table[np.arange(size), orders].sum(axis=1)
    return Null(table.mean(axis=1).sum(axis=0), drawn)


def attributes(
    folder: Path, language: str, *, flagged: Flagged
) -> dict[str, dict[str, pl.DataFrame]]:
    """Return category, group, query and target of attributes, casefolded, by config and kind.

    ``folder``: of the dataset ``stereotypes``, whose configs have rows of one language each.
    ``flagged``: of which rows those with a flag, what the dataset's cleaning objects to, are among
    them: `published`, which were cleaned by hand; `all`; `none`. That an attribute has several
    words is no objection to its first.
    """
    found = {}
    for config in parquet.configs(folder):
        table = pl.read_parquet(folder / f"{config}.parquet").filter(pl.col("language") == language)
        if table.is_empty():
            continue
        if flagged != "all":
            clean = pl.col("flags").list.set_difference([LONGER]).list.len() == 0
            by_hand = (pl.col("source_row") > 0) & (flagged == "published")
            table = table.filter(clean | by_hand)
        table = table.with_columns(target=folded("attribute"))
        first = pl.col("target").str.split(" ").list.first()
        longer = table.filter(~pl.col("single_word")).with_columns(first)
        kinds = (own.select(ATTRIBUTE) for own in (table.filter("single_word"), longer))
        found[config] = dict(zip(KINDS, kinds, strict=True))
    return found


def pieces(outputs: Path, language: str) -> pl.DataFrame:
    """Return target and pieces: in how many tokens the model writes attributes, where known."""
    path = outputs / VOCABULARY / f"{language}.parquet"
    if not path.is_file():
        return pl.DataFrame(schema={"target": pl.String, "pieces": pl.Int32})
    return pl.read_parquet(path).select("pieces", target=folded("attribute")).unique("target")
