"""Analysis ``recall``: how many attributes of autocompletion are among a model's best words.

Choenni et al. (2021), recall@k of stereotypical attributes: for each model, ranking and category
and k = 1, 2, ...; with intervals over groups and two baselines, random order and other groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import (
    CRITICAL,
    ESTIMATE,
    adjusted,
    beside,
    detectable_beside,
    finite,
    least_p,
    rounded,
    typed,
)
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.tests import critical
from plumbline.probes.stereotypes import match_attributes, typicality
from plumbline.probes.stereotypes.match_attributes import KINDS, Flagged, Found, Lists, Null
from plumbline.probes.stereotypes.typicality import EVERY, MEAN, GroupTests, located, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

DATASETS = ("stereotypes",)
OUTPUTS = ("completions",)
TABLES = ()
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE),
    Column("dataset", "string", "config of `stereotypes` that the attributes are of"),
    typicality.READING,
    Column(
        "attributes",
        "label",
        "single word: attributes of one word; first word: of the others the first word alone, "
        "whatever follows",
        labels=KINDS,
    ),
)
NO_TEST = (None, None)
ERROR = "error"  # of recall
NEAR = 1e-9  # attributes of a group that has none in queries of all groups
K = Column("k", "int64", "words taken of each list", minimum=1)
HITS = Column("hits", "int64", "attributes among them", minimum=0)
RECALL = Schema.keyed(
    (*WHERE, typicality.CATEGORY, K),
    HITS,
    Column("n_attributes", "int64", "attributes in queries put to the model", minimum=1),
    Column("n_attributes_not_prompted", "int64", "attributes in others, left out", minimum=0),
    Column("share_ranked", "float64", "share of the attributes that are anywhere in their list"),
    number(
        "out_of_vocabulary",
        "share that the model does not write as one token, so that no list can have it",
    ),
    *ESTIMATE,
    Column(
        "other_groups",
        "float64",
        "mean recall with their lists, without the group's own and rewritten queries; p is of all "
        "ways to give out the lists",
    ),
    Column("random_order", "float64", "mean recall with every list in random order"),
    Column(
        "p_random_order",
        "float64",
        "two-sided p of the recall under random order, one for all lists of a group",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    number("p_random_order_bh", "the same, Benjamini-Hochberg"),
    *beside(
        "random_order",
        "recall above, or below, random_order that p_random_order would find at .05 with power .8: "
        "the least that these orders make significant, and .84 standard errors; null where there "
        "is no test",
    ),
    typicality.FAMILY,
)
GROUPS = Schema.keyed(
    (
        *WHERE,
        Column("category", "string", "category of the group in the dataset"),
        Column("group", "string", "social group"),
        Column("pool", "string", "category of the prompts, within which lists are exchanged"),
        K,
    ),
    HITS,
    Column("n_attributes", "int64", "attributes of the group", minimum=1),
    Column("other_groups", "float64", "mean share of hits in all lists of the pool"),
)
WORDS = Schema.keyed(
    (
        *WHERE[:2],
        Column("group", "string", "social group"),
        Column("word", "string", "the word; casefolded in corrected readings"),
    ),
    *(number(name, "mean score over the lists that have it, nats") for name in typicality.READINGS),
)
SCHEMAS = {"recall": RECALL, "groups": GROUPS, "words": WORDS}


class Params(GroupTests):
    """Which attributes are sought, how deep, and how intervals and tests are made."""

    top_k: int = Field(200, ge=1, description="largest k; the paper: 200")
    tested: list[int] = Field(
        [10, 50, 100, 200], min_length=1, description="k at which there are tests"
    )
    flagged: Flagged = Field(
        "published",
        description="whether attributes with a flag (multi_word counts as none) are sought too: of "
        "the published set, which was cleaned by hand, of all, or of none",
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    UserError
        If a tested k is above the largest, or no attribute is in a query put to the model.
    """
    if max(params.tested) > params.top_k:
        raise UserError(
            f"analysis.recall.tested: {max(params.tested)} is above top_k, {params.top_k}; raise "
            "analysis.recall.top_k"
        )
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    known = inputs.datasets["stereotypes"]
    for model in inputs.models:
        outputs = inputs.outputs("completions", model)
        for language in typicality.languages(outputs):
            place = {"model": model, "language": language}
            answers = typicality.answers(outputs / language)
            ranked = {name: Lists.of(answers, name) for name in typicality.readings(answers)}
            tables["words"].append(located(_words(ranked), place))
            pieces = match_attributes.pieces(outputs, language)
            every = match_attributes.attributes(known, language, flagged=params.flagged)
            for config, attributes in every.items():
                written = {
                    kind: own.join(pieces, on="target", how="left")
                    for kind, own in attributes.items()
                }
                parts = list(_of_config(ranked, written, params))
                for name, of in zip(("recall", "groups"), zip(*parts, strict=True), strict=False):
                    table = pl.concat(of) if name == "groups" else _adjusted(pl.concat(of), params)
                    tables[name].append(located(table, place | {"dataset": config}))
    if not tables["recall"]:
        raise UserError(
            f"{known}: no attribute is in a query put to a model; see probes.completions.frames"
        )
    return {
        name: typed(pl.concat(parts), SCHEMAS[name], params.confidence)
        for name, parts in tables.items()
    }


def _words(ranked: dict[str, Lists]) -> pl.DataFrame:
    """Return the mean score of every word of a group, a column for each reading."""
    long = pl.concat(
        lists.table.group_by("group", word="key").agg(pl.col("score").mean(), reading=pl.lit(name))
        for name, lists in ranked.items()
    )
    of = ["group", "word"]
    wide = long.pivot("reading", on_columns=[*typicality.READINGS], index=of, values="score")
    return wide.sort(of)


def _of_config(
    ranked: dict[str, Lists], attributes: dict[str, pl.DataFrame], params: Params
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield the rows of categories and of groups, of all readings and kinds of attributes."""
    for kind, own in attributes.items():
        orders: dict[bool, Array] = {}  # of the same candidates, in whatever reading
        for reading, lists in ranked.items():
            found = lists.find(own)
            if found.attributes.is_empty():
                continue
            if not (again := lists.whole in orders):
                how = params.tested, params.n_permutations, params.seed
                sought = found.attributes.select("row", "query", "target")
                orders[lists.whole] = match_attributes.reordered(lists.table, sought, *how)
            place = {"reading": typicality.READINGS.index(reading)}
            place["attributes"] = KINDS.index(kind)
            parts = _of_reading(lists, found, own, params, orders[lists.whole], again=again)
            yield located(parts[0], place), located(parts[1], place)


def _of_reading(
    lists: Lists,
    found: Found,
    attributes: pl.DataFrame,
    params: Params,
    orders: Array,
    *,
    again: bool,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a row for each k of each category and all of them; and the rows of the groups.

    ``again``: lists of the same candidates were tested in another order, which does not matter
    where they are taken whole.
    """
    size, top_k = len(found.groups), params.top_k
    row, place = found.column("row"), found.column("place")
    hits = match_attributes.hits(place, row, size, top_k)
    sizes = np.bincount(row, minlength=size)
    others_too = ~found.attributes["rewritten"].to_numpy()  # in queries that all groups have
    shared_hits = match_attributes.hits(place[others_too], row[others_too], size, top_k)
    shared_sizes = np.bincount(row[others_too], minlength=size)
    random = np.zeros((size, top_k))
    chance = match_attributes.chance(found.column("listed"), found.column("length"), top_k)
    np.add.at(random, row, chance)
    at = np.array(params.tested) - 1
    of = found.groups["category"].to_numpy()
    how = params.tested, top_k, params.n_permutations, params.seed
    elsewhere, everywhere, drawn = lists.exchanged(found, *how)
    drawn[EVERY] = np.sum(list(drawn.values()), axis=0)
    longest = int(lists.lengths["length"].max())  # type: ignore[arg-type]
    once = longest if again else top_k + 1
    parts = []
    for category in [*drawn, MEAN]:
        own = (of == category) | (category in (EVERY, MEAN))
        strata = np.unique(of[own], return_inverse=True)[1] if category == MEAN else None
        inside, every = (
            table.filter((pl.col("category") == category) | (category in (EVERY, MEAN)))
            for table in (found.attributes, attributes)
        )
        unknown = inside.select((pl.col("pieces") != 1).mean()).item()
        columns = {"k": np.arange(1, top_k + 1), "hits": hits[own].sum(axis=0)}
        exchanged = drawn.get(category), orders[own].sum(axis=0)
        nulls = {
            "p": ("other_groups", shared_hits, shared_sizes, elsewhere, everywhere, exchanged[0]),
            "p_random_order": ("random_order", hits, sizes, random, random, exchanged[1]),
        }
        for test, (name, seen, sought, told, expected, outcomes) in nulls.items():
            p: dict[int, tuple[float | None, float]] = {}
            if category != MEAN:  # it has no test: `all` has
                null = Null(expected[own].sum(axis=0)[at], outcomes)
                far = critical(null.drawn - null.expected) / max(NEAR, sought[own].sum())
                both = zip(null.p(seen[own].sum(axis=0)[at]), far.tolist(), strict=True)
                p = dict(zip(params.tested, both, strict=True))
            tested = [p.get(k, NO_TEST) if k < once else NO_TEST for k in columns["k"].tolist()]
            mean = clustered(told[own], np.maximum(sought[own], NEAR), strata=strata)[0]
            columns |= {name: mean}
            for column, part in zip(
                (test, f"{test}_{CRITICAL}"), zip(*tested, strict=True), strict=True
            ):
                columns[column] = pl.Series(part, dtype=pl.Float64)
        recall, low, high = clustered(hits[own], sizes[own], params.confidence, strata)
        facts = {
            "category": category,
            "n_attributes": int(sizes[own].sum()),
            "n_attributes_not_prompted": len(every) - len(inside),
            "share_ranked": float((place[own[row]] > 0).mean()),
            "out_of_vocabulary": None if inside["pieces"].has_nulls() else finite(unknown),
            "n": int(own.sum()),
        }
        columns |= {"value": recall, "low": low, "high": high}
        parts.append(located(pl.DataFrame(columns), facts))
    groups = [
        found.groups.with_columns(
            k=pl.lit(k),
            hits=pl.Series(hits[:, k - 1]),
            n_attributes=pl.Series(sizes),
            other_groups=pl.Series(elsewhere[:, k - 1] / np.maximum(shared_sizes, 1)),
        )
        for k in params.tested
    ]
    return pl.concat(parts, how="vertical_relaxed"), pl.concat(groups)


def _adjusted(table: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Round, and adjust p over all that was tested of a kind of attributes."""
    columns = ("value", "low", "high", "other_groups", "random_order", "share_ranked")
    both = adjusted(table, "p", ("attributes",), least_p(params.n_permutations))
    both = adjusted(both, "p_random_order", ("attributes",), least_p(params.n_permutations))
    both = both.rename({f"p_{CRITICAL}": CRITICAL})
    half = (pl.col("high") - pl.col("low")) / 2 / ndtri((1 + params.confidence) / 2)
    both = both.with_columns(half.alias(ERROR))
    both = detectable_beside(both, "random_order", ERROR, critical=f"p_random_order_{CRITICAL}")
    table = rounded(both, columns, ("p", "p_random_order"))
    facts = {"cluster": "group", "method": "Wilson score of the effective number of attributes"}
    facts["null"] = "lists exchanged between the groups of the category"
    return located(table, facts).sort("reading", "attributes", "category", "k")
