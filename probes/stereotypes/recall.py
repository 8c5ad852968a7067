"""Analysis ``recall``: share of autocompleted attributes that are among a model's best words.

Choenni et al. (2021), recall@k of stereotypical attributes: for each model, ranking and category
and k = 1, 2, ...; with intervals over groups and two baselines, random order and other groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import adjusted, estimates, finite, least_p, rounded, typed
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.tests import possible_p
from plumbline.probes.stereotypes import match_attributes, typicality
from plumbline.probes.stereotypes.match_attributes import KINDS, Lists
from plumbline.probes.stereotypes.typicality import (
    EVERY,
    MEAN,
    GroupTests,
    number,
    sort_by_key,
    with_constants,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

DATASETS = ("stereotypes",)
OUTPUTS = ("completions",)
TABLES = ()
WHERE = (
    *(typicality.MODEL, typicality.LANGUAGE),
    Column("dataset", "string", "config of `stereotypes` with the attributes"),
    typicality.READING,
    Column(
        "attributes",
        "category",
        "single word: attributes of one word; first word: of the others the first word alone, "
        "whatever follows",
        labels=KINDS,
    ),
)
NEAR = 1e-9  # attributes of a group that has none in queries of all groups
K = Column("k", "int64", "words taken of each list", minimum=1)
RECALL = Schema.keyed(
    (*WHERE, typicality.CATEGORY, K),
    *estimates(
        cluster="group",
        method="Wilson score of the effective number of attributes",
        null="lists exchanged between the groups of the category, with mean `other_groups` "
        "(rewritten queries left out)",
    ),
    Column("n_attributes", "int64", "attributes in queries the model was prompted with", minimum=1),
    number(
        "out_of_vocabulary",
        "share that the model does not write as one token, so that no list can have it",
    ),
    Column("other_groups", "float64", "mean recall with the lists of the other groups"),
    Column("random_order", "float64", "mean recall with every list in random order"),
)
GROUPS = Schema.keyed(
    (
        *WHERE,
        Column("category", "string", "category of the group in the dataset"),
        Column("group", "string", "social group"),
        Column("pool", "string", "category of the prompts, within which lists are exchanged"),
        K,
    ),
    Column("hits", "int64", "attributes among them", minimum=0),
    Column("n_attributes", "int64", "attributes of the group", minimum=1),
    Column("other_groups", "float64", "mean share of hits in the lists of the others of the pool"),
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
    """How deep attributes are sought, and how intervals and tests are computed."""

    top_k: int = Field(200, ge=1, description="largest k; the paper: 200")
    tested: list[int] = Field(
        [10, 50, 100, 200], min_length=1, description="k at which there are tests"
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises
    ------
    UserError
        If a tested k is above the largest, or no attribute is in a query of the model's prompts.
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
            answers = typicality.answers(outputs / language)
            ranked = {name: Lists.of(answers, name) for name in typicality.readings(answers)}
            tables["words"].append(with_constants(_words(ranked), key))
            pieces = match_attributes.pieces(outputs, language)
            for config, kinds in match_attributes.attributes(dataset, language).items():
                sought = {k: rows.join(pieces, "target", how="left") for k, rows in kinds.items()}
                for name, table in _config(ranked, sought, params).items():
                    tables[name].append(with_constants(table, key | {"dataset": config}))
    if not tables["recall"]:
        raise UserError(
            f"{dataset}: no attribute is in a query put to a model; see probes.completions.frames"
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
    key = ["group", "word"]
    wide = long.pivot("reading", on_columns=[*typicality.READINGS], index=key, values="score")
    return wide.sort(key)


def _config(
    ranked: dict[str, Lists], sought: dict[str, pl.DataFrame], params: Params
) -> dict[str, pl.DataFrame]:
    """Return the rows of categories and of groups, for all readings and kinds of attributes.

    p is adjusted over all tests of a kind of attributes.
    """
    categories, groups = [], []
    for kind, attributes in sought.items():
        tested: set[bool] = set()
        for reading, lists in ranked.items():
            if lists.find(attributes)[0].is_empty():
                continue
            key = {"reading": reading, "attributes": kind}
            # complete lists have the same words in another reading: they are tested once
            length = max(lists.lengths["length"]) if lists.whole in tested else np.inf
            tested.add(lists.whole)
            parts = _reading(lists, *lists.find(attributes), params, length)
            categories.append(with_constants(parts[0], key))
            groups.append(with_constants(parts[1], key))
    if not categories:
        return {}
    least = least_p(params.n_permutations)
    table = adjusted(pl.concat(categories, how="vertical_relaxed"), "p", ("attributes",), least)
    table = rounded(table, ("value", "low", "high", "other_groups", "random_order"))
    table = sort_by_key(table, RECALL, "reading", "attributes", "category", "k")
    return {"recall": table, "groups": pl.concat(groups)}


def _reading(
    lists: Lists, attributes: pl.DataFrame, groups: pl.DataFrame, params: Params, untested: float
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a row for each k of each category and all of them; and the rows of the groups.

    ``untested``: from this k on there are no tests.
    """
    size, top_k, at = len(groups), params.top_k, np.array(params.tested) - 1
    row, place = attributes["row"].to_numpy(), attributes["place"].to_numpy()
    hits, sizes = match_attributes.hits(place, row, size, top_k), np.bincount(row, minlength=size)
    shared = ~attributes["rewritten"].to_numpy()  # in queries that all groups have
    shared_hits = match_attributes.hits(place[shared], row[shared], size, top_k)
    shared_sizes = np.bincount(row[shared], minlength=size)
    random = np.zeros((size, top_k))
    lengths = (attributes[name].to_numpy() for name in ("listed", "length"))
    np.add.at(random, row, match_attributes.chance(*lengths, top_k))
    others, expected, drawn = lists.exchange(
        attributes, params.tested, top_k, params.n_permutations, params.seed
    )
    drawn[EVERY] = np.sum(list(drawn.values()), axis=0)
    category_of, k = groups["category"].to_numpy(), np.arange(1, top_k + 1)
    parts = []
    for category in [*drawn, MEAN]:
        inside = (category_of == category) | (category in (EVERY, MEAN))
        strata, p = None, np.full(top_k, np.nan)
        if category == MEAN:  # `all` has the test of all categories
            strata = np.unique(category_of, return_inverse=True)[1]
        else:
            mean = expected[inside].sum(axis=0)[at]
            observed = shared_hits[inside].sum(axis=0)[at]
            p[at] = possible_p(observed - mean, (drawn[category] - mean).T)
            p[k >= untested] = np.nan
        recall, low, high = clustered(hits[inside], sizes[inside], params.confidence, strata)
        trials = np.maximum(shared_sizes, NEAR)[inside]
        pieces = attributes.filter(pl.Series(inside[row]))["pieces"]
        columns = {
            "category": category,
            "k": k,
            "value": recall,
            "low": low,
            "high": high,
            "n": int(inside.sum()),
            "p": pl.Series(p).fill_nan(None),
            "n_attributes": int(sizes[inside].sum()),
            "out_of_vocabulary": None if pieces.has_nulls() else finite((pieces != 1).mean()),
            "other_groups": clustered(others[inside], trials, strata=strata)[0],
            "random_order": clustered(random[inside], sizes[inside], strata=strata)[0],
        }
        parts.append(pl.DataFrame(columns))
    of_groups = [
        groups.with_columns(
            k=pl.lit(k),
            hits=hits[:, k - 1],
            n_attributes=sizes,
            other_groups=others[:, k - 1] / np.maximum(shared_sizes, 1),
        )
        for k in params.tested
    ]
    return pl.concat(parts, how="vertical_relaxed"), pl.concat(of_groups)
