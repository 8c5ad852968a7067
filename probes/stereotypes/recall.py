"""Analysis ``recall``: the share of autocompleted attributes that are among a model's best words.

Recall@k of stereotypical attributes is computed as in Choenni et al. (2021), for each model,
ranking, category and k = 1, 2, ..., with intervals over groups and two baselines: lists in random
order, and lists of other groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.estimate import adjusted, estimates, finite, least_p, rounded, typed
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.tests import possible_p
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.typicality import EVERY, MEAN, casefold, number, with_constants

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]

DATASETS = ("stereotypes",)
OUTPUTS = ("completions",)
TABLES = ()
KINDS = ("single word", "first word")
LONGER = "multi_word"  # flag of attributes with several words, whose first word may be valid
ATTRIBUTE = ("category", "group", "query", "target")
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE),
    Column("dataset", "string", "config of the dataset `stereotypes`"),
    typicality.READING,
    Column(
        "attributes",
        "category",
        "single word: attributes that are one word; first word: first words of longer attributes",
        labels=KINDS,
    ),
)
NEAR = 1e-9  # replaces the count 0 of attributes in shared queries, so that shares are defined
K = Column("k", "int64", "number of words taken from each list", minimum=1)
RECALL = Schema.keyed(
    (*WHERE, typicality.CATEGORY, K),
    *estimates(
        cluster="group",
        method="Wilson score for the effective number of attributes",
        null="lists are exchangeable between the groups of the category, with mean `other_groups` "
        "(rewritten queries are excluded)",
    ),
    Column("n_attributes", "int64", "number of attributes in the model's queries", minimum=1),
    number("out_of_vocabulary", "share of attributes that are not single tokens and so in no list"),
    Column("other_groups", "float64", "mean recall in the lists of the other groups"),
    Column("random_order", "float64", "mean recall if every list is in random order"),
)
GROUPS = Schema.keyed(
    (
        *WHERE,
        Column("category", "string", "category to which the group belongs in the dataset"),
        Column("group", "string", "social group"),
        Column("pool", "string", "category used in the prompts; lists are exchanged within it"),
        K,
    ),
    Column("hits", "int64", "number of the group's attributes that are in its lists", minimum=0),
    Column("n_attributes", "int64", "number of attributes of the group", minimum=1),
    Column(
        "other_groups", "float64", "mean share of hits in the lists of the other groups in the pool"
    ),
)
WORDS = Schema.keyed(
    (
        *WHERE[:2],
        Column("group", "string", "social group"),
        Column("word", "string", "the word; casefolded in corrected rankings"),
    ),
    *(number(name, "mean score of the word over its lists, nats") for name in typicality.READINGS),
)
SCHEMAS = {"recall": RECALL, "groups": GROUPS, "words": WORDS}


class Params(typicality.GroupTests):
    """Length of the lists, and settings for intervals and tests."""

    top_k: int = Field(200, ge=1, description="largest k; the paper uses 200")
    tested: list[int] = Field(
        [10, 50, 100, 200], min_length=1, description="values of k that are tested"
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises UserError if a tested k is larger than ``top_k``, or no attribute belongs to a prompt.
    """
    if max(params.tested) > params.top_k:
        raise UserError(
            f"analysis.recall.tested: {max(params.tested)} is above top_k, {params.top_k}; raise "
            "analysis.recall.top_k"
        )
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    dataset = inputs.datasets["stereotypes"]
    for model in inputs.models:
        outputs = inputs.outputs("completions", model)
        for language in typicality.languages(outputs):
            key = {"model": model, "language": language}
            answers = typicality.read_lists(outputs / language)
            ranked = {name: Lists.of(answers, name) for name in typicality.readings(answers)}
            tables["words"].append(with_constants(_words(ranked), key))
            tokens = pieces(outputs, language)
            for config, kinds in attributes(dataset, language).items():
                sought = {k: rows.join(tokens, "target", how="left") for k, rows in kinds.items()}
                for name, table in _config(ranked, sought, params).items():
                    tables[name].append(with_constants(table, key | {"dataset": config}))
    if not tables["recall"]:
        raise UserError(
            f"{dataset}: no attribute belongs to a prompted query; check probes.completions.frames"
        )
    return {
        name: typed(pl.concat(parts), SCHEMAS[name], params.confidence)
        for name, parts in tables.items()
    }


def _words(ranked: dict[str, Lists]) -> pl.DataFrame:
    """Return the mean word scores of each group, with one column per ranking."""
    long = pl.concat(
        lists.table.group_by("group", word="key").agg(pl.col("score").mean(), reading=pl.lit(name))
        for name, lists in ranked.items()
    )
    key = ["group", "word"]
    wide = long.pivot("reading", on_columns=[*typicality.READINGS], index=key, values="score")
    return wide.sort(key)


def _config(
    ranked: dict[str, Lists], sought: dict[str, pl.DataFrame], params: Params
) -> dict[str, pl.DataFrame]:
    """Return the rows for categories and groups, for all rankings and kinds of attributes.

    p is adjusted over all tests of the same kind of attributes.
    """
    categories, groups = [], []
    for kind, attributes in sought.items():
        tested: set[bool] = set()
        for reading, lists in ranked.items():
            if (found := lists.find(attributes))[0].is_empty():
                continue
            key = {"reading": reading, "attributes": kind}
            # complete lists have the same words in all rankings, so they are tested once
            length = max(lists.lengths["length"]) if lists.whole_words in tested else np.inf
            tested.add(lists.whole_words)
            parts = _reading(lists, *found, params, length)
            categories.append(with_constants(parts[0], key))
            groups.append(with_constants(parts[1], key))
    if not categories:
        return {}
    least = least_p(params.n_permutations)
    table = adjusted(pl.concat(categories, how="vertical_relaxed"), "p", ("attributes",), least)
    table = table.with_columns(reach=0.5 + (pl.col("other_groups") - 0.5).abs())
    table = rounded(table, ("value", "low", "high", "other_groups", "random_order"))
    table = typicality.sort_by_key(table, RECALL, "reading", "attributes", "category", "k")
    return {"recall": table, "groups": pl.concat(groups)}


def _reading(
    lists: Lists, attributes: pl.DataFrame, groups: pl.DataFrame, params: Params, untested: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows by k and category, and rows by group; only k below ``untested`` are tested."""
    size, top_k, tested = len(groups), params.top_k, np.array(params.tested) - 1
    row, rank = attributes["row"].to_numpy(), attributes["place"].to_numpy()
    counts, sizes = hits(rank, row, size, top_k), np.bincount(row, minlength=size)
    shared = ~attributes["rewritten"].to_numpy()  # attributes in queries that all groups have
    shared_hits = hits(rank[shared], row[shared], size, top_k)
    shared_sizes = np.bincount(row[shared], minlength=size)
    random = np.zeros((size, top_k))
    listed, lengths = (attributes[name].to_numpy() for name in ("listed", "length"))
    np.add.at(random, row, chance(listed, lengths, top_k))
    others, expected, nulls = lists.exchange(
        attributes, params.tested, top_k, params.n_permutations, params.seed
    )
    nulls[EVERY] = np.sum(list(nulls.values()), axis=0)
    category_of, k = groups["category"].to_numpy(), np.arange(1, top_k + 1)
    parts = []
    for category in [*nulls, MEAN]:
        inside = (category_of == category) | (category in (EVERY, MEAN))
        strata, p = None, np.full(top_k, np.nan)
        if category == MEAN:  # not tested, as its test is that of `all`
            strata = np.unique(category_of, return_inverse=True)[1]
        else:
            mean = expected[inside].sum(axis=0)[tested]
            observed = shared_hits[inside].sum(axis=0)[tested]
            p[tested] = possible_p(observed - mean, (nulls[category] - mean).T)
            p[k >= untested] = np.nan
        recall, low, high = clustered(counts[inside], sizes[inside], params.confidence, strata)
        trials = np.maximum(shared_sizes, NEAR)[inside]
        tokens = attributes.filter(pl.Series(inside[row]))["pieces"]
        outside = None if tokens.has_nulls() else finite((tokens.to_numpy() != 1).mean())
        table = pl.DataFrame({"k": k, "value": recall, "low": low, "high": high, "p": p})
        table = table.with_columns(
            pl.col("p").fill_nan(None),
            category=pl.lit(category),
            n=pl.lit(int(inside.sum())),
            n_attributes=pl.lit(int(sizes[inside].sum())),
            out_of_vocabulary=pl.lit(outside),
            other_groups=clustered(others[inside], trials, strata=strata)[0],
            random_order=clustered(random[inside], sizes[inside], strata=strata)[0],
        )
        parts.append(table)
    shares = others / np.maximum(shared_sizes, 1)[:, None]
    by_group = pl.concat(
        groups.with_columns(
            k=pl.lit(k), n_attributes=sizes, hits=counts[:, k - 1], other_groups=shares[:, k - 1]
        )
        for k in params.tested
    )
    return pl.concat(parts, how="vertical_relaxed"), by_group


class Lists(NamedTuple):
    """All lists of a model in one language, sorted by one ranking."""

    whole_words: bool  # True if tokens that are parts of longer words are excluded
    table: pl.DataFrame  # from typicality.rank_words; each query occurs once
    best: pl.DataFrame  # best place and number of tokens of each word (key) in each list
    lengths: pl.DataFrame  # number of tokens in each list, by the list's key and rewritten

    @classmethod
    def of(cls, answers: pl.DataFrame, reading: str) -> Lists:
        """Rank the lists of :func:`plumbline.probes.stereotypes.typicality.read_lists`."""
        once = answers.unique(["query", "rank"], keep="first", maintain_order=True)
        table = typicality.rank_words(once, reading)
        names = ("category", "group", "template", "query")
        best = table.group_by(*names, "key").agg(place=pl.col("place").min(), listed=pl.len())
        lengths = table.group_by(*names, "rewritten").agg(length=pl.len())
        return cls(reading in typicality.WHOLE, table, best, lengths.sort(names))

    def find(self, attributes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Look up attributes in the lists of their queries; omit attributes without a prompt.

        Returns a table of attributes with the columns place (0 if not listed), listed (number of
        tokens), length, rewritten and row (index of the group); and the sorted groups with the
        columns category (in the dataset), group and pool (category in the prompts).
        """
        lists = self.lengths.rename({"category": "pool", "group": "own"})
        best = self.best.select("query", "place", "listed", target="key")
        table = attributes.join(lists, on="query").join(best, on=["query", "target"], how="left")
        names = ["category", "own", "pool"]
        groups = table.select(names).unique().sort(names[:2])
        table = table.join(groups.with_row_index("row"), on=names).sort(*ATTRIBUTE)
        numbers = pl.col("place", "listed", "length", "row").fill_null(0).cast(pl.Int64)
        return table.with_columns(numbers), groups.select("category", "pool", group="own")

    def exchange(
        self, attributes: pl.DataFrame, ranks: Sequence[int], top_k: int, draws: int, seed: int
    ) -> tuple[Array, Array, dict[str, Array]]:
        """Look up the attributes of each category in the lists of all groups, by template.

        Lists are exchanged within the category of their prompts, the pool. A group has no hits in
        lists of templates that are not its own; attributes in rewritten queries, which few groups
        have, are omitted. Permutations of different categories and pools are independent.

        ``attributes``: from :meth:`find`. Returns two arrays (groups, top_k) of each group's mean
        hits in the lists of the other groups and in all lists (the mean over exchanges); and, by
        category, the total hits after exchanges (draws, ranks).
        """
        others, expected = np.zeros((2, attributes["row"].n_unique(), top_k))
        categories = attributes["category"].unique().sort()
        nulls = {category: np.zeros((draws, len(ranks))) for category in categories}
        sought = attributes.filter(~pl.col("rewritten"))
        for (category, pool), part in sought.partition_by("category", "pool", as_dict=True).items():
            names = self.lengths.filter(category=pool)["group"].unique().sort().to_numpy()
            members = part.select("row", "own").unique().sort("row")
            rows, mine = members["row"].to_numpy(), np.searchsorted(names, members["own"])
            best = self.best.filter(category=pool)
            best = best.select("template", rank="place", other="group", target="key")
            matches = part.join(best, on=["template", "target"])
            rank = matches["rank"].to_numpy()
            member = np.searchsorted(rows, matches["row"])
            column = np.searchsorted(names, matches["other"])
            table = np.zeros((len(rows), len(names), len(ranks)))
            np.add.at(table, (member, column), rank[:, None] <= np.array(ranks))
            expected[rows] = hits(rank, member, len(rows), top_k) / len(names)
            away = column != mine[member]
            others[rows] = hits(rank[away], member[away], len(rows), top_k) / max(1, len(names) - 1)
            stream = (seed, *map(int, keys([f"{category}\t{pool}"])))
            nulls[category] += exchange_lists(table, mine, draws, stream)
        return others, expected, nulls


def hits(ranks: Integers, groups: Integers, size: int, top_k: int) -> Integers:
    """Return (size, top_k) counts of each group's attributes at ranks up to 1, 2, ..., ``top_k``.

    ``ranks``: rank of each attribute in the list of its query, from 1, or 0 if it is not listed.
    ``groups``: group number of each attribute, below ``size``.

    Examples
    --------
    >>> hits(np.array([1, 3, 0]), np.array([0, 0, 1]), 2, 3).tolist()
    [[1, 1, 2], [0, 0, 0]]
    """
    counts = np.zeros((size, top_k + 1), dtype=np.int64)
    inside = (ranks > 0) & (ranks <= top_k)
    np.add.at(counts, (groups[inside], ranks[inside]), 1)
    return counts[:, 1:].cumsum(axis=1)


def chance(listed: Integers, lengths: Integers, top_k: int) -> NDArray[np.float64]:
    """Return hit probabilities, of shape (attributes, top_k), for lists in random order.

    Candidates are fixed and only the ranking is random: attributes that are not in the list are
    never hits, so the comparison isolates the effect of the order. The probability is exact: min(k,
    length) / length if an attribute is listed once, the mean of a hypergeometric variable.

    ``listed``: number of candidates equal to each attribute (mostly 0 or 1; 2 if two tokens spell
    the same word). ``lengths``: number of candidates in the list of each attribute.

    Examples
    --------
    >>> chance(np.array([1, 0, 2]), np.array([4, 4, 4]), 2).round(4).tolist()
    [[0.25, 0.5], [0.0, 0.0], [0.5, 0.8333]]
    """
    first = np.arange(1, top_k + 1)
    missed = np.ones((len(listed), top_k))
    for i in range(int(listed.max(initial=0))):
        share = np.clip(lengths[:, None] - first - i, 0, None) / (lengths[:, None] - i).clip(1)
        missed *= np.where(listed[:, None] > i, share, 1.0)
    return np.asarray(1 - missed)


def exchange_lists(
    hits: Array, lists: Integers, n_permutations: int, seed: int | Sequence[int]
) -> Array:
    """Draw total hits, of shape (n_permutations, ranks), with lists permuted over groups.

    The null hypothesis is that lists are independent of the group in their prompts, except for
    words common to all groups. All lists of a group are permuted together.

    ``hits`` (groups, lists, ranks): hits of a group's attributes in each group's lists of the same
    templates; lists include those of groups without attributes. ``lists`` (groups,): index of each
    group's own lists; indices must be distinct. ``seed``: outcomes that are summed need different
    seeds, such as (seed, part number). With the same seed, parts of equal size would have equal
    permutations, which inflates the variance of the sum.
    """
    size, number, _ = hits.shape
    if len(set(lists.tolist())) != size:
        raise ValueError("two groups have the same lists")
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(number), (n_permutations, 1)), axis=1)[:, lists]
    return np.asarray(hits[np.arange(size), orders].sum(axis=1))


def attributes(folder: Path, language: str) -> dict[str, dict[str, pl.DataFrame]]:
    """Return tables of category, group, query and target, by config and kind of attribute.

    The target is the casefolded attribute. Flagged rows are omitted, except those of the published
    set, which was cleaned by hand. The flag for several words does not exclude the first word.

    ``folder``: folder of the dataset ``stereotypes``, in which each config has one language.
    """
    configs = {}
    for config in parquet.configs(folder):
        clean = pl.col("flags").list.set_difference([LONGER]).list.len() == 0
        table = pl.read_parquet(folder / f"{config}.parquet").filter(
            clean | (pl.col("source_row") > 0), language=language
        )
        if len(table):
            table = table.with_columns(target=casefold("attribute"))
            first = pl.col("target").str.split(" ").list.first()
            longer = table.filter(~pl.col("single_word")).with_columns(first)
            kinds = (rows.select(ATTRIBUTE) for rows in (table.filter("single_word"), longer))
            configs[config] = dict(zip(KINDS, kinds, strict=True))
    return configs


def pieces(outputs: Path, language: str) -> pl.DataFrame:
    """Return the target and pieces (number of tokens) of each attribute; empty without a file."""
    path = outputs / typicality.VOCABULARY / f"{language}.parquet"
    if not path.is_file():
        return pl.DataFrame(schema={"target": pl.String, "pieces": pl.Int32})
    return pl.read_parquet(path).select("pieces", target=casefold("attribute")).unique("target")
