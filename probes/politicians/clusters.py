"""Analysis ``clusters``: how genders share clusters of words in a model's states.

Stańczak et al. (2023), section 5.2.1, Figure 5 and Tables 7 and 16: k-means over the last hidden
states of all adjectives that a model generated, five clusters. Beside it the words that go most
with each gender, with stability, a null and control of multiplicity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.cluster_rows import (
    FAITHFUL,
    GROUPS,
    JOINT,
    LARGEST,
    MEASURES,
    READINGS,
    fit_rows,
    overlap_rows,
    seeds,
    share_rows,
)
from plumbline.probes.stats.estimate import Resampling, Table, estimates, least_p, rounded
from plumbline.probes.stats.kmeans import Null, Partition, null, partition, principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("politicians",)
OUTPUTS = ("representations", "associations")
TABLES = ("pmi",)
FAITHFUL_CLUSTERS = 5  # as in Tables 7 and 16
READING = Column(
    "reading",
    "category",
    "faithful: all adjectives that were generated for a gender, in five clusters, as the paper; "
    "largest: the words with the largest PMI, each of one gender",
    labels=READINGS,
)
GROUP = Column("group", "category", "whose words: one gender's, or all together", labels=GROUPS)
FITS = columns.schema(
    "language pos reading group clusters measure",
    *columns.PLACE,
    READING,
    GROUP,
    Column("clusters", "int32", "number of clusters", minimum=2),
    Column("measure", "category", "what is measured", labels=MEASURES),
    Column("words", "int64", "words in the group", minimum=1),
    Column(
        "expected",
        "float64",
        "mean silhouette of clouds, from which `detectable` is counted; null: not tested",
        nullable=True,
    ),
    *estimates(
        cluster="of inertia and stability seeds, of the silhouette words, of the gap draws",
        method="inertia: range over seeds, best run first; silhouette: 95% bootstrap percentile "
        "over words, clusters held; stability: mean adjusted Rand index of pairs of seeds, and "
        "its range; gap: normal, simulation error of Tibshirani et al. (2001)",
        null="silhouette: one normal cloud of the same mean and covariance; other measures, and "
        "the paper's number of clusters, have no test",
    ),
    Column(
        "chosen", "bool", "whether the number of clusters has the largest silhouette of its reading"
    ),
)
SHARES = columns.schema(
    "language pos reading cluster_id gender",
    *columns.PLACE,
    READING,
    Column("cluster_id", "int32", "number of the cluster, 0 the largest", minimum=0),
    columns.GENDER,
    Column("count", "int64", "words of this gender in the cluster", minimum=0),
    Column("words", "int64", "words in the cluster", minimum=1),
    columns.share(
        "expected", "share of this gender in all clusters together, as its value in each"
    ),
    *estimates(
        cluster="word",
        method="largest: 95% Wilson; faithful: 95% Dirichlet percentile over words",
        null="largest: gender labels permuted over words, exact; faithful: words permuted over "
        "clusters",
    ),
)
WORDS = columns.schema(
    "language pos reading group word",
    *columns.PLACE,
    READING,
    GROUP,
    columns.LEMMA,
    Column(
        "gender",
        "category",
        "the gender that the word deviates to, or the only one that it was generated for; null: "
        "it was for several",
        labels=GENDERS,
        nullable=True,
    ),
    Column(
        "lists",
        "int64",
        "lists of the group's people that have the word; null: not faithful",
        nullable=True,
        minimum=1,
    ),
    Column("cluster_id", "int32", "number of the cluster, 0 the largest", minimum=0),
    Column("x", "float64", "first principal component of the group's states"),
    Column("y", "float64", "second principal component"),
)
SCHEMAS = {"fits": FITS, "shares": SHARES, "words": WORDS}


class Params(Resampling):
    """Which words are clustered, into how many clusters, and against what."""

    genders: list[str] = Field(min_length=1, description="whose words are clustered")
    top_k: int = Field(ge=3, description="most words of a gender")
    clusters: list[Annotated[int, Field(ge=2)]] = Field(
        min_length=1, description="numbers of clusters that are tried"
    )
    seeds: list[int] = Field(min_length=2, description="of k-means, a run each")
    n_simulations: int = Field(
        ge=19, description="draws from one cloud, the null of the silhouette"
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute ``fits``, ``shares`` and ``words`` of one model; columns as in :data:`SCHEMAS`.

    Raises UserError if a gender is unknown, a word has no state, or too few words deviate.
    """
    (model,) = inputs.models
    if unknown := sorted(set(params.genders) - set(GENDERS)):
        raise UserError(f"analysis.clusters.genders: no {unknown[0]!r}; there are {GENDERS}")
    of = [gender for gender in GENDERS if gender in params.genders]
    outputs = inputs.outputs("representations", model)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for place, words in (*_generated(inputs, of), *_largest(inputs, params)):
        at, states = {"model": model} | place, _states(outputs, place["language"], words)
        for group in (*of, JOINT) if len(of) > 1 else of:
            own = words[group].to_numpy() > 0 if group in of else np.ones(len(words), np.bool_)
            here = at | {"group": group}
            best = _fit(here, states[own], params, rows["fits"])
            if best is None:
                continue
            members = words.filter(own)
            rows["words"] += [here | row for row in _words(members, here, states[own], best)]
            if group == JOINT:
                share = overlap_rows if at["reading"] == FAITHFUL else share_rows
                some = [gender for gender in of if (members[gender] > 0).any()]
                counted = share(members.select(some).to_numpy() > 0, some, best.labels, params)
                rows["shares"] += [at | row for row in counted]
    if not rows["fits"]:
        raise UserError(
            f"{outputs}: too few words are generated or deviate for {min(params.clusters)} "
            "clusters; lower analysis.pmi.min_count or analysis.clusters.clusters"
        )
    tables = {name: Table(schema, params.confidence) for name, schema in SCHEMAS.items()}
    for name, table in tables.items():
        table.rows = rows[name]
    tables["fits"].adjust(least=2 * least_p(params.n_simulations))  # either tail
    tables["shares"].adjust(over=["reading"])
    return {name: table.frame() for name, table in tables.items()}


def _largest(inputs: Inputs, params: Params) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield places, and the words that deviate most there, of one gender each."""
    table = pl.read_parquet(inputs.tables("pmi", *inputs.models) / "pmi.parquet")
    table = table.filter(unit="lemma")
    for (language, pos), part in sorted(table.group_by("language", "pos", maintain_order=True)):
        words = deviating(part, params)
        if len(words):
            words = words.with_columns(
                (pl.col("gender") == gender).cast(pl.Int64).alias(gender) for gender in GENDERS
            )
            yield {"language": language, "pos": pos, "reading": LARGEST}, words


def _generated(inputs: Inputs, of: list[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield places, and all adjectives that were generated there for somebody of these genders."""
    for language, source, path in word_counts.sources(inputs, *inputs.models):
        if source.pos == "ADJ":
            words = generated(word_counts.count(source, word_counts.read_people(path)), of)
            if len(words):
                yield {"language": language, "pos": source.pos, "reading": FAITHFUL}, words


def generated(counts: word_counts.Counts, genders: list[str]) -> pl.DataFrame:
    """Return the words that are in a list of somebody of these genders.

    Returned: columns word; form, its form in most lists; for each gender, under its name, the lists
    of its people that have the word; and gender, null of a word that was generated for
    several. Sorted by the word.
    """
    of = {GENDERS[code]: counts.lists[:, i] for i, code in enumerate(counts.genders)}
    lists = {g: of.get(g, np.zeros(len(counts.words), np.int64)) for g in genders}
    names = {"word": counts.words, "form": counts.forms}
    table = pl.DataFrame(names | lists, schema_overrides=dict.fromkeys(names, pl.String))
    several = pl.sum_horizontal(pl.col(g) > 0 for g in genders)
    only = pl.coalesce(pl.when(pl.col(g) > 0).then(pl.lit(g)) for g in genders)
    table = table.filter(several > 0)
    return table.with_columns(gender=pl.when(several == 1).then(only)).sort("word")


def deviating(part: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return the words that deviate most to each gender: word, form, gender.

    The smoothed PMI must be above 0; of one gender the ``top_k`` largest are taken, ties
    by the word. A word that is among those of two genders goes to the one that it deviates to more.
    """
    order = ["value", "word", pl.col("gender").cast(pl.Enum(GENDERS))]
    descending = [True, False, False]
    positive = part.filter(
        pl.col("gender").is_in(params.genders), pl.col("value") > 0, reading="smoothed"
    ).sort(order, descending=descending)
    largest = positive.group_by("gender", maintain_order=True).head(params.top_k)
    first = largest.sort(order, descending=descending).unique("word", keep="first")
    return first.select("word", "form", "gender").sort("word")


def _states(outputs: Path, language: str, words: pl.DataFrame) -> NDArray[np.float64]:
    """Return the states of words, (words, width): of a lemma that of its form in most lists."""
    rows = pl.scan_parquet(outputs / language / "*.parquet")
    own = pl.col("word").is_in(words["form"].to_list())
    found = rows.filter(own).select(form="word", state="state").collect()
    if missing := sorted(set(words["form"]) - set(found["form"])):
        raise UserError(
            f"{outputs}: no state of {', '.join(missing[:3])}; it was made from other words than "
            "the tables of pmi, make both again"
        )
    states = words.select("form").join(found, on="form", maintain_order="left")["state"]
    width = len(found["state"][0]) if len(found) else 0
    return states.explode().to_numpy().astype(np.float64).reshape(len(words), width)


def _fit(
    here: dict[str, Any], states: NDArray[np.float64], params: Params, rows: list[dict[str, Any]]
) -> Partition | None:
    """Add the rows of all numbers of clusters; return the partition with the largest silhouette."""
    faithful = here["reading"] == FAITHFUL
    asked = [FAITHFUL_CLUSTERS] if faithful else sorted(set(params.clusters))
    distinct = len(np.unique(states, axis=0)) if len(states) else 0
    ks = [k for k in asked if k < distinct]
    if not ks:
        return None
    points = principal(states)
    partitions = {k: partition(points, k, params.seeds) for k in ks}
    best = max(ks, key=lambda k: (round(partitions[k].silhouette, 9), -k))
    place = f"{here['language']} {POS.index(here['pos'])} {here['group']}"
    clouds: list[Null | None] = [None] * len(ks)
    if not faithful:  # of all words that a model generates clouds take minutes
        runs, draws = len(params.seeds), params.n_simulations
        clouds = [*null(states, ks, runs, draws, seeds(place, params))]
    for k, one_cloud in zip(ks, clouds, strict=True):
        own = here | {"clusters": k, "chosen": k == best}
        rows += [own | row for row in fit_rows(partitions[k], one_cloud, place, params)]
    return partitions[best]


def _words(
    members: pl.DataFrame, here: dict[str, Any], states: NDArray[np.float64], best: Partition
) -> list[dict[str, Any]]:
    """Return the clusters of a group's words, and their places in the plane, a row each."""
    flat = principal(states)
    x, y = flat[:, 0], flat[:, 1] if flat.shape[1] > 1 else np.zeros(len(flat))
    found = members.with_columns(cluster_id=best.labels, x=x, y=y, lists=pl.lit(None, pl.Int64))
    if here["reading"] == FAITHFUL:
        groups = [g for g in GENDERS if g in members.columns and here["group"] in (g, JOINT)]
        found = found.with_columns(lists=pl.sum_horizontal(groups))
    return rounded(found, ["x", "y"], ()).drop("form", *GENDERS, strict=False).to_dicts()
