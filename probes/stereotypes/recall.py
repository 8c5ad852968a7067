"""Analysis ``recall``: how many attributes of autocompletion are among a model's best words.

Choenni et al. (2021), recall@k of stereotypical attributes: for each model, ranking and category
and k = 1, 2, ...; with intervals over groups and two baselines, random order and other groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.bootstrap import keys
from plumbline.probes.stats.estimate import ESTIMATE, benjamini_hochberg, finite, significant, typed
from plumbline.probes.stats.tests import permutation_p
from plumbline.probes.stereotypes import match_attributes, typicality
from plumbline.probes.stereotypes.match_attributes import KINDS, Found, Lists
from plumbline.probes.stereotypes.recall_curve import chance, curve, exchanged, hits, reordered
from plumbline.probes.stereotypes.recall_recovery import recovery
from plumbline.probes.worlds.recovery import RECOVERY, Resampling, planted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("stereotypes",)
OUTPUTS = ("stereotypes",)
TABLES = ()
EVERY = "all"  # categories together
RECALL = Schema(
    columns=(
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
        Column("category", "string", f"category of social groups, or {EVERY}"),
        Column("k", "int64", "words taken of each list", minimum=1),
        Column("hits", "int64", "attributes among them", minimum=0),
        Column("sought", "int64", "attributes in queries that the model was asked", minimum=1),
        Column("unasked", "int64", "attributes in queries that it was not, left out", minimum=0),
        Column("listed", "float64", "share of the attributes that are anywhere in their list"),
        Column(
            "out_of_vocabulary",
            "float64",
            "share that the model does not write as one token, so that no list can have it",
            nullable=True,
        ),
        *ESTIMATE,
        Column("exchanged", "float64", "mean recall with the lists of other groups, the null of p"),
        Column("chance", "float64", "mean recall with every list in random order"),
        Column(
            "p_chance",
            "float64",
            "two-sided p of the recall under random order, one for all lists of a group",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("p_chance_bh", "float64", "the same, Benjamini-Hochberg", nullable=True),
        Column("family", "int64", "tests in the families of p_bh and p_chance_bh", minimum=1),
    ),
    key=("model", "language", "dataset", "reading", "attributes", "category", "k"),
)
SCHEMAS = {"recall": RECALL, "recovery": RECOVERY}


class Params(Section):
    """Which attributes are sought, how deep, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    depth: int = Field(ge=1, description="largest k; the paper: 200")
    tested: list[int] = Field(min_length=1, description="k at which there are tests")
    flagged: bool = Field(
        description="whether attributes with a flag are sought too; multi_word counts as none"
    )
    permutations: int = Field(ge=99, description="exchanges of lists, and random orders")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over groups")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    def resampling(self) -> Resampling:
        """Return how groups are resampled."""
        return Resampling(self.bootstrap, self.seed, self.confidence)


class Null(NamedTuple):
    """Hits under a null, at the tested ranks."""

    expected: NDArray[np.float64]  # (ranks,)
    drawn: NDArray[np.float64]  # (draws, ranks)

    def p(self, seen: NDArray[np.int64]) -> list[float]:
        """Return two-sided p-values of the hits seen, by their distance from the mean."""
        return [
            permutation_p(float(s - m), d - m)
            for s, m, d in zip(seen, self.expected, self.drawn.T, strict=True)
        ]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``recall``, and with a world ``recovery``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If a tested k is above the depth, or no attribute is in a query that was asked.
    """
    if max(params.tested) > params.depth:
        raise Problem(
            f"analysis.recall.tested: {max(params.tested)} is above the depth of {params.depth}; "
            "raise analysis.recall.depth"
        )
    tables: list[pl.DataFrame] = []
    told: list[dict[str, Any]] = []
    known = inputs.datasets["stereotypes"]
    for model in inputs.models:
        outputs, world = inputs.outputs("stereotypes", model), planted(inputs.weights(model))
        for language in typicality.languages(outputs):
            answers = typicality.answers(outputs / language)
            ranked = {name: Lists.of(answers, name) for name in typicality.readings(answers)}
            pieces = match_attributes.pieces(outputs, language)
            for config in match_attributes.configs(known, language):
                attributes = match_attributes.attributes(
                    known / f"{config}.parquet", flagged=params.flagged
                )
                if found := _tables(ranked, attributes, pieces, params):
                    tables.append(
                        _adjusted(pl.concat(found)).with_columns(
                            model=pl.lit(model), language=pl.lit(language), dataset=pl.lit(config)
                        )
                    )
                if world is not None and config == language:
                    own = attributes[KINDS[0]]
                    told += recovery(
                        (model, language),
                        world,
                        ranked,
                        own,
                        params.tested[0],
                        params.resampling(),
                    )
    if not tables:
        raise Problem(
            f"{known}: no attribute is in a query that was asked; see probes.stereotypes.frames"
        )
    result = {"recall": typed(pl.concat(tables), RECALL)}
    if told:
        result["recovery"] = typed(pl.DataFrame(told, infer_schema_length=None), RECOVERY)
    return result


def _tables(
    ranked: dict[str, Lists],
    attributes: dict[str, pl.DataFrame],
    pieces: pl.DataFrame | None,
    params: Params,
) -> list[pl.DataFrame]:
    """Return the tables of all readings and kinds of attributes."""
    result: list[pl.DataFrame] = []
    for kind in KINDS:
        orders: dict[bool, NDArray[np.float64]] = {}
        for reading, lists in ranked.items():
            result += [
                part.with_columns(
                    reading=pl.lit(typicality.READINGS.index(reading)),
                    attributes=pl.lit(KINDS.index(kind)),
                )
                for part in _rows(lists, attributes[kind], pieces, params, orders)
            ]
    return result


def _rows(
    lists: Lists,
    attributes: pl.DataFrame,
    pieces: pl.DataFrame | None,
    params: Params,
    orders: dict[bool, NDArray[np.float64]],
) -> list[pl.DataFrame]:
    """Return a table for each category and for all of them, a row for each k.

    ``orders`` keeps what was drawn in random order: it depends on the candidates of the lists
    alone, which are the same in several readings.
    """
    found = lists.find(attributes)
    if found.attributes.is_empty():
        return []
    size, depth = len(found.groups), params.depth
    row = found.attributes["row"].to_numpy().astype(np.int64)
    place, listed, length = (
        found.attributes[name].to_numpy().astype(np.int64) for name in ("place", "listed", "length")
    )
    counted, sizes = hits(place, row, size, depth), np.bincount(row, minlength=size)
    random = np.zeros((size, depth))
    np.add.at(random, row, chance(listed, length, depth))
    if lists.whole not in orders:
        drawn = reordered(lists.queries(found), params.tested, params.permutations, params.seed)
        orders[lists.whole] = drawn
    at = np.array(params.tested) - 1
    weights = params.resampling().weights(found.groups["asked"].to_list())
    of = found.groups["category"].to_numpy()
    swapped: dict[str, tuple[NDArray[np.float64], Null]] = {}
    result = []
    for category in [*sorted(set(of.tolist())), EVERY]:
        own = np.ones(size, dtype=np.bool_) if category == EVERY else of == category
        if category == EVERY:
            expected = np.sum([e for e, _ in swapped.values()], axis=0)
            drawn = np.sum([null.drawn for _, null in swapped.values()], axis=0)
            swapped[EVERY] = expected, Null(expected[at], drawn)
        else:
            swapped[category] = _exchanged(lists, found, category, params)
        expected, null = swapped[category]
        seen, total = counted[own].sum(axis=0), int(sizes[own].sum())
        by_chance = random[own].sum(axis=0)
        ordered = Null(by_chance[at], orders[lists.whole][own].sum(axis=0))
        recall = curve(counted[own], sizes[own], weights[own], params.confidence)
        inside = own[row]
        result.append(
            pl.DataFrame(
                {
                    "k": np.arange(1, depth + 1),
                    "hits": seen,
                    "value": recall.value,
                    "low": recall.low,
                    "high": recall.high,
                    "exchanged": expected / total,
                    "chance": by_chance / total,
                    "p": _at(params, null.p(seen[at])),
                    "p_chance": _at(params, ordered.p(seen[at])),
                }
            ).with_columns(
                category=pl.lit(category),
                sought=pl.lit(total),
                unasked=pl.lit(_unasked(attributes, found, category)),
                listed=pl.lit(float((place[inside] > 0).mean())),
                out_of_vocabulary=pl.lit(_unknown(found, category, pieces), dtype=pl.Float64),
                n=pl.lit(int(own.sum())),
            )
        )
    return result


def _exchanged(
    lists: Lists, found: Found, category: str, params: Params
) -> tuple[NDArray[np.float64], Null]:
    """Return the mean hits of a category at each k with lists exchanged, and their null.

    Each category and pool has permutations of its own, so that their sums are those of exchanges
    within categories that do not depend on each other.
    """
    expected = np.zeros(params.depth)
    mean, drawn = np.zeros(len(params.tested)), np.zeros((params.permutations, len(params.tested)))
    for swap in lists.exchange(found, category, params.tested, params.depth):
        (part,) = keys([f"{category}\t{swap.pool}"])
        seed = (params.seed, int(part))
        outcomes = exchanged(swap.table, swap.own, params.permutations, seed)
        expected += swap.expected.sum(axis=0)
        mean += outcomes.expected
        drawn += outcomes.drawn
    return expected, Null(mean, drawn)


def _at(params: Params, values: list[float]) -> pl.Series:
    """Return a column with values at the tested k, null at the others."""
    place = dict(zip(params.tested, values, strict=True))
    return pl.Series([place.get(k) for k in range(1, params.depth + 1)], dtype=pl.Float64)


def _unasked(attributes: pl.DataFrame, found: Found, category: str) -> int:
    own = attributes if category == EVERY else attributes.filter(pl.col("category") == category)
    there = found.attributes
    if category != EVERY:
        there = there.filter(pl.col("category") == category)
    return len(own) - len(there)


def _unknown(found: Found, category: str, pieces: pl.DataFrame | None) -> float | None:
    """Return the share of attributes that are not one token; None where it is not known of all."""
    if pieces is None:
        return None
    own = found.attributes.filter((pl.col("category") == category) | (category == EVERY))
    known = own.select("target").join(pieces, on="target", how="left")["pieces"]
    return None if known.null_count() else finite(float((known != 1).mean()))  # type: ignore[arg-type]


def _adjusted(table: pl.DataFrame) -> pl.DataFrame:
    """Round, and adjust p over all that was tested of a model and a config of the dataset."""
    tested = table["p"].is_not_null()
    columns = {}
    for name in ("p", "p_chance"):
        values = table.filter(tested)[name].to_numpy()
        for to, found in ((name, values), (f"{name}_bh", benjamini_hochberg(values))):
            column = np.full(len(table), np.nan)
            column[tested.to_numpy()] = [significant(p) for p in found]
            columns[to] = pl.Series(column).fill_nan(None)
    rounded = ("value", "low", "high", "exchanged", "chance", "listed")
    return table.with_columns(
        **columns,
        **{name: pl.Series([finite(x) for x in table[name]], dtype=pl.Float64) for name in rounded},
        family=pl.lit(int(tested.sum())),
        cluster=pl.lit("group"),
        method=pl.lit("bootstrap percentile (Poisson weights)"),
        null=pl.lit("lists exchanged between the groups of the category"),
    ).sort("reading", "attributes", "category", "k")
