"""Attributes of the dataset ``stereotypes``, sought in the lists of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.stereotypes.recall_curve import Query
from plumbline.probes.stereotypes.typicality import VOCABULARY, WHOLE, folded, placed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

REJECTS = "rejects"
KINDS = ("single word", "first word")
LONGER = "multi_word"  # a flag of all attributes of several words, which says nothing of the first
ATTRIBUTE = ("category", "group", "query", "target")


class Exchange(NamedTuple):
    """Hits of groups in each other's lists; the groups of one category, which swap theirs."""

    pool: str  # category that the model was asked them in
    groups: list[int]  # (groups,) their rows in :class:`Found`
    own: NDArray[np.int64]  # (groups,) which lists are the group's own
    table: NDArray[np.float64]  # (groups, lists, ranks)
    expected: NDArray[np.float64]  # (groups, depth) mean hits over all lists, at 1, 2, ...


class Found(NamedTuple):
    """Attributes in queries that were asked, and where they stand."""

    attributes: pl.DataFrame  # with place (0: not listed), listed (tokens), length, row (of groups)
    groups: pl.DataFrame  # category (of the dataset) and group, sorted


class Lists(NamedTuple):
    """All lists of a model in one language and reading."""

    whole: bool  # without pieces of longer words
    table: pl.DataFrame  # as typicality.placed returns it, each query once
    best: pl.DataFrame  # category, group, template, key: the best place, and how many tokens
    lengths: pl.DataFrame  # category, group, template, query: tokens in the list

    @classmethod
    def of(cls, answers: pl.DataFrame, reading: str) -> Lists:
        """Rank the lists of :func:`plumbline.probes.stereotypes.typicality.answers`."""
        once = answers.unique(["query", "rank"], keep="first", maintain_order=True)
        table = placed(once, reading)
        names = ("category", "group", "template", "query")
        best = table.group_by(*names, "key").agg(place=pl.col("place").min(), listed=pl.len())
        lengths = table.group_by(*names).agg(length=pl.len())
        return cls(reading in WHOLE, table, best, lengths.sort(names))

    def find(self, attributes: pl.DataFrame) -> Found:
        """Look attributes up in the lists of their queries; those never asked are left out."""
        asked = self.lengths.rename({"category": "pool", "group": "asked"})
        best = self.best.select("query", "place", "listed", target="key")
        found = (
            attributes.join(asked, on="query")
            .join(best, on=["query", "target"], how="left")
            .with_columns(pl.col("place", "listed").fill_null(0).cast(pl.Int64))
            .sort(*ATTRIBUTE)
        )
        groups = found.select("category", "asked", "pool").unique().sort("category", "asked")
        found = found.join(groups.with_row_index("row"), on=["category", "asked", "pool"])
        return Found(found.sort(*ATTRIBUTE), groups)

    def exchange(self, found: Found, category: str, ranks: list[int], depth: int) -> list[Exchange]:
        """Look the attributes of a category up in the lists of all groups, template by template.

        Groups swap lists with those of the category that the model was asked in. A group that was
        asked in other templates has no hits there.
        """
        result = []
        own = found.attributes.filter(pl.col("category") == category)
        for (pool,), part in own.group_by("pool", maintain_order=True):
            lists = self.lengths.filter(pl.col("category") == pool)
            names = lists["group"].unique().sort().to_list()
            place = {name: i for i, name in enumerate(names)}
            rows = part["row"].unique().sort().to_list()
            at = {row: i for i, row in enumerate(rows)}
            best = self.best.filter(pl.col("category") == pool)
            met = part.select("row", "template", "target").join(
                best.select("template", "place", other="group", target="key"),
                on=["template", "target"],
            )
            g = np.array([at[row] for row in met["row"]], dtype=np.int64)
            h = np.array([place[name] for name in met["other"]], dtype=np.int64)
            where = met["place"].cast(pl.Int64).to_numpy()
            table = np.zeros((len(rows), len(names), len(ranks)))
            for t, rank in enumerate(ranks):
                np.add.at(table[..., t], (g[where <= rank], h[where <= rank]), 1)
            every = np.zeros((len(rows), depth + 1))
            np.add.at(every, (g[where <= depth], where[where <= depth]), 1 / len(names))
            asked = dict(part.select("row", "asked").unique().iter_rows())
            mine = np.array([place[asked[row]] for row in rows], dtype=np.int64)
            result.append(Exchange(str(pool), rows, mine, table, every[:, 1:].cumsum(axis=1)))
        return result

    def queries(self, found: Found) -> list[list[Query]]:
        """Return, for each group, its lists and where its attributes stand in them."""
        tokens = self.table.select("token").unique().sort("token").with_row_index("number")
        coded = self.table.join(tokens, on="token").sort("query", "place")
        coded = coded.join(found.attributes.select("query").unique(), on="query")
        lists = {
            str(query): (part["number"].cast(pl.Int64).to_numpy(), part["key"].to_numpy())
            for (query,), part in coded.group_by("query", maintain_order=True)
        }
        result: list[list[Query]] = [[] for _ in range(len(found.groups))]
        for (row, query), part in found.attributes.group_by("row", "query", maintain_order=True):
            numbers, keys = lists[str(query)]
            where = [np.flatnonzero(keys == target) for target in part["target"]]
            result[int(str(row))].append(Query(numbers, where))
        return result


def configs(known: Path, language: str) -> list[str]:
    """Return the configs of the dataset ``stereotypes`` in a language."""
    names = sorted(p.stem for p in known.glob("*.parquet") if p.stem != REJECTS)
    return [name for name in names if _language(known / f"{name}.parquet") == language]


def _language(path: Path) -> str:
    """Return the language of a config: that of its rows, which all have one."""
    table = pl.scan_parquet(path)
    if "language" not in table.collect_schema():
        return path.stem
    found = table.select(pl.col("language").first()).collect()["language"]
    return str(found[0]) if len(found) and found[0] is not None else path.stem


def attributes(path: Path, *, flagged: bool) -> dict[str, pl.DataFrame]:
    """Return category, group, query and target of attributes, casefolded, for each kind.

    Parameters
    ----------
    flagged
        Whether rows with a flag, what the dataset's cleaning objects to, are among them. That an
        attribute has several words is no objection to its first.
    """
    table = pl.read_parquet(path)
    if not flagged:
        table = table.filter(pl.col("flags").list.set_difference([LONGER]).list.len() == 0)
    table = table.with_columns(target=folded("attribute"))
    single = table.filter("single_word").select(ATTRIBUTE)
    first = table.filter(~pl.col("single_word")).with_columns(
        target=pl.col("target").str.split(" ").list.first()
    )
    return dict(zip(KINDS, (single, first.select(ATTRIBUTE)), strict=True))


def pieces(outputs: Path, language: str) -> pl.DataFrame | None:
    """Return in how many tokens the model writes each attribute; None where it was not asked."""
    path = outputs / VOCABULARY / f"{language}.parquet"
    if not path.is_file():
        return None
    return pl.read_parquet(path).select("pieces", target=folded("attribute")).unique("target")
