"""Analysis ``recall``: how many attributes of autocompletion are among a model's best words.

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
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.estimate import ESTIMATE, adjusted, finite, rounded, typed
from plumbline.probes.stereotypes import match_attributes, typicality
from plumbline.probes.stereotypes.match_attributes import (
    KINDS,
    Found,
    Lists,
    Null,
    chance,
    curve,
    exchanged,
    hits,
    reordered,
)
from plumbline.probes.stereotypes.typicality import EVERY, GroupBootstrap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("stereotypes",)
OUTPUTS = ("completions",)
TABLES = ()
WHERE = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("language", "string", "language of the lists"),
    Column("dataset", "string", "config of `stereotypes` that the attributes are of"),
    Column("reading", "label", "what lists are ranked by", labels=typicality.READINGS),
    Column(
        "attributes",
        "label",
        "single word: attributes of one word; first word: of the others the first word alone, "
        "whatever follows",
        labels=KINDS,
    ),
)
K = Column("k", "int64", "words taken of each list", minimum=1)
HITS = Column("hits", "int64", "attributes among them", minimum=0)
RECALL = Schema(
    columns=(
        *WHERE,
        Column("category", "string", f"category of social groups, or {EVERY}"),
        K,
        HITS,
        Column("n_attributes", "int64", "attributes in queries put to the model", minimum=1),
        Column("n_attributes_not_prompted", "int64", "attributes in others, left out", minimum=0),
        Column(
            "share_ranked", "float64", "share of the attributes that are anywhere in their list"
        ),
        Column(
            "out_of_vocabulary",
            "float64",
            "share that the model does not write as one token, so that no list can have it",
            nullable=True,
        ),
        *ESTIMATE,
        Column("other_groups", "float64", "mean recall with their lists, the null of p"),
        Column("random_order", "float64", "mean recall with every list in random order"),
        Column(
            "p_random_order",
            "float64",
            "two-sided p of the recall under random order, one for all lists of a group",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("p_random_order_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
        Column("family", "int64", "tests in the families of p_bh and p_random_order_bh", minimum=1),
    ),
    key=("model", "language", "dataset", "reading", "attributes", "category", "k"),
)
GROUPS = Schema(
    columns=(
        *WHERE,
        Column("category", "string", "category of the group in the dataset"),
        Column("group", "string", "social group"),
        Column("pool", "string", "category of the prompts, within which lists are exchanged"),
        K,
        HITS,
        Column("n_attributes", "int64", "attributes of the group", minimum=1),
        Column("other_groups", "float64", "mean share of hits in all lists of the pool"),
    ),
    key=("model", "language", "dataset", "reading", "attributes", "category", "group", "pool", "k"),
)
WORDS = Schema(
    columns=(
        *WHERE[:2],
        Column("group", "string", "social group"),
        Column("word", "string", "the word, casefolded"),
        *(
            Column(name, "float64", "mean score over the lists that have it, nats", nullable=True)
            for name in typicality.READINGS
        ),
    ),
    key=("model", "language", "group", "word"),
)
SCHEMAS = {"recall": RECALL, "groups": GROUPS, "words": WORDS}


class Params(GroupBootstrap):
    """Which attributes are sought, how deep, and how intervals and tests are made."""

    top_k: int = Field(200, ge=1, description="largest k; the paper: 200")
    tested: list[int] = Field(
        [10, 50, 100, 200], min_length=1, description="k at which there are tests"
    )
    flagged: bool = Field(
        default=True,
        description="whether attributes with a flag are sought too; multi_word counts as none",
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
            place = {"model": pl.lit(model), "language": pl.lit(language)}
            answers = typicality.answers(outputs / language)
            ranked = {name: Lists.of(answers, name) for name in typicality.readings(answers)}
            tables["words"].append(_words(ranked).with_columns(**place))
            pieces = match_attributes.pieces(outputs, language)
            every = match_attributes.attributes(known, language, flagged=params.flagged)
            for config, attributes in every.items():
                rows, groups = _of_config(ranked, attributes, pieces, params)
                place["dataset"] = pl.lit(config)
                if rows:
                    tables["recall"].append(_adjusted(pl.concat(rows)).with_columns(**place))
                    tables["groups"].append(pl.concat(groups).with_columns(**place))
    if not tables["recall"]:
        raise UserError(
            f"{known}: no attribute is in a query put to a model; see probes.completions.frames"
        )
    return {name: typed(pl.concat(parts), SCHEMAS[name]) for name, parts in tables.items()}


def _words(ranked: dict[str, Lists]) -> pl.DataFrame:
    """Return the mean score of every word of a group, a column for each reading."""
    long = pl.concat(
        lists.table.group_by("group", word="key").agg(pl.col("score").mean(), reading=pl.lit(name))
        for name, lists in ranked.items()
    )
    wide = long.pivot(on="reading", index=["group", "word"], values="score")
    lacking = [name for name in typicality.READINGS if name not in wide.columns]
    return wide.with_columns(pl.lit(None, pl.Float64).alias(name) for name in lacking).sort(
        "group", "word"
    )


def _of_config(
    ranked: dict[str, Lists],
    attributes: dict[str, pl.DataFrame],
    pieces: pl.DataFrame | None,
    params: Params,
) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
    """Return the rows of categories and of groups, of all readings and kinds of attributes."""
    rows, groups = [], []
    for kind, own in attributes.items():
        orders: dict[bool, Array] = {}  # of the same candidates, in whatever reading
        for reading, lists in ranked.items():
            found = lists.find(own)
            if found.attributes.is_empty():
                continue
            if lists.whole not in orders:
                orders[lists.whole] = reordered(
                    lists.queries(found), params.tested, params.n_permutations, params.seed
                )
            place = {
                "reading": pl.lit(typicality.READINGS.index(reading)),
                "attributes": pl.lit(KINDS.index(kind)),
            }
            some, of_groups = _of_reading(lists, found, own, pieces, params, orders[lists.whole])
            rows.append(some.with_columns(**place))
            groups.append(of_groups.with_columns(**place))
    return rows, groups


def _of_reading(
    lists: Lists,
    found: Found,
    attributes: pl.DataFrame,
    pieces: pl.DataFrame | None,
    params: Params,
    orders: Array,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return a row for each k of each category and all of them; and the rows of the groups."""
    size, top_k = len(found.groups), params.top_k
    row, place = found.column("row"), found.column("place")
    counted, sizes = hits(place, row, size, top_k), np.bincount(row, minlength=size)
    random = np.zeros((size, top_k))
    np.add.at(random, row, chance(found.column("listed"), found.column("length"), top_k))
    at = np.array(params.tested) - 1
    weights = params.weights(found.groups["group"].to_list())
    of = found.groups["category"].to_numpy()
    elsewhere = np.full((size, len(at)), np.nan)
    swapped = {
        name: _exchanged(lists, found, name, params, elsewhere) for name in sorted(set(of.tolist()))
    }
    whole = np.sum([e for e, _ in swapped.values()], axis=0)
    drawn = np.sum([null.drawn for _, null in swapped.values()], axis=0)
    swapped[EVERY] = whole, Null(whole[at], drawn)
    result = []
    for category, (expected, null) in swapped.items():
        own = (of == category) | (category == EVERY)
        inside, every = (
            table.filter((pl.col("category") == category) | (category == EVERY))
            for table in (found.attributes, attributes)
        )
        seen, total = counted[own].sum(axis=0), int(sizes[own].sum())
        by_chance = random[own].sum(axis=0)
        ordered = Null(by_chance[at], orders[own].sum(axis=0))
        recall = curve(counted[own], sizes[own], weights[own], params.confidence)
        columns = {
            "k": np.arange(1, top_k + 1),
            "hits": seen,
            "other_groups": expected / total,
            "random_order": by_chance / total,
            "p": _at(params, null.p(seen[at])),
            "p_random_order": _at(params, ordered.p(seen[at])),
        }
        result.append(
            pl.DataFrame(columns | recall._asdict()).with_columns(
                category=pl.lit(category),
                n_attributes=pl.lit(total),
                n_attributes_not_prompted=pl.lit(len(every) - len(inside)),
                share_ranked=pl.lit(float((place[own[row]] > 0).mean())),
                out_of_vocabulary=pl.lit(_unknown(inside, pieces), dtype=pl.Float64),
                n=pl.lit(int(own.sum())),
            )
        )
    groups = [
        found.groups.with_columns(
            k=pl.lit(k),
            hits=pl.Series(counted[:, k - 1]),
            n_attributes=pl.Series(sizes),
            other_groups=pl.Series(elsewhere[:, i] / sizes),
        )
        for i, k in enumerate(params.tested)
    ]
    return pl.concat(result), pl.concat(groups)


def _exchanged(
    lists: Lists, found: Found, category: str, params: Params, elsewhere: Array
) -> tuple[Array, Null]:
    """Return the mean hits of a category at each k with lists exchanged, and their null.

    Each category and pool has permutations of its own, so that their sums are those of exchanges
    within categories that do not depend on each other. ``elsewhere`` gets each group's mean hits.
    """
    expected = np.zeros(params.top_k)
    mean, drawn = (
        np.zeros(len(params.tested)),
        np.zeros((params.n_permutations, len(params.tested))),
    )
    for swap in lists.exchange(found, category, params.tested, params.top_k):
        (part,) = keys([f"{category}\t{swap.pool}"])
        seed = (params.seed, int(part))
        outcomes = exchanged(swap.table, swap.own, params.n_permutations, seed)
        elsewhere[swap.groups] = swap.table.mean(axis=1)
        expected += swap.expected.sum(axis=0)
        mean += outcomes.expected
        drawn += outcomes.drawn
    return expected, Null(mean, drawn)


def _at(params: Params, values: list[float]) -> pl.Series:
    """Return a column with values at the tested k, null at the others."""
    place = dict(zip(params.tested, values, strict=True))
    return pl.Series([place.get(k) for k in range(1, params.top_k + 1)], dtype=pl.Float64)


def _unknown(attributes: pl.DataFrame, pieces: pl.DataFrame | None) -> float | None:
    """Return the share of attributes that are not one token; None where it is not known of all."""
    if pieces is None:
        return None
    known = attributes.select("target").join(pieces, on="target", how="left")["pieces"]
    return None if known.null_count() else finite(float((known != 1).mean()))  # type: ignore[arg-type]


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """Round, and adjust p over all that was tested of a model and a config of the dataset."""
    columns = ("value", "low", "high", "other_groups", "random_order", "share_ranked")
    table = rounded(adjusted(adjusted(table), "p_random_order"), columns, ("p", "p_random_order"))
    return table.with_columns(
        cluster=pl.lit("group"),
        method=pl.lit("bootstrap percentile (Poisson weights)"),
        null=pl.lit("lists exchanged between the groups of the category"),
    ).sort("reading", "attributes", "category", "k")
