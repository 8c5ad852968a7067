"""Analysis ``clusters``: whether words of a gender lie together in a model's states.

Stańczak et al. (2023), section on clusters and Figure 5: k-means over the last hidden states of the
words with the largest deviations, with stability, a null and control of multiplicity.
"""

from __future__ import annotations

import zlib
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.politicians.pmi import READINGS
from plumbline.probes.politicians.words import columns
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Bootstrap,
    Estimate,
    Table,
    adjusted,
    finite,
    typed,
)
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.kmeans import Null, Partition, gap, null, partition, principal, upper_p
from plumbline.probes.stats.tests import fisher_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = True
DATASETS = ()
OUTPUTS = ("representations",)
TABLES = ("pmi",)
JOINT = "together"
GROUPS = (*GENDERS, JOINT)
MEASURES = ("inertia", "silhouette", "stability", "gap")

GROUP = Column("group", "label", "whose words: one gender's, or all together", labels=GROUPS)

FITS = Schema(
    columns=(
        *columns.PLACE,
        GROUP,
        Column("clusters", "int32", "number of clusters", minimum=2),
        Column("measure", "label", "what is measured", labels=MEASURES),
        Column("words", "int64", "words in the group", minimum=1),
        *ESTIMATE,
        Column("chosen", "bool", "whether the number of clusters has the largest silhouette"),
        Column("family", "int64", "tests in the family that p_bh is taken over", nullable=True),
    ),
    key=("language", "pos", "group", "clusters", "measure"),
)

SHARES = Schema(
    columns=(
        *columns.PLACE,
        Column("part", "int32", "number of the cluster, 0 the largest", minimum=0),
        columns.GENDER,
        Column("count", "int64", "words of this gender in the cluster", minimum=0),
        Column("words", "int64", "words in the cluster", minimum=1),
        Column("expected", "float64", "share of this gender among all words", minimum=0, maximum=1),
        *ESTIMATE,
        columns.FAMILY,
    ),
    key=("language", "pos", "part", "gender"),
)

WORDS = Schema(
    columns=(
        *columns.PLACE,
        GROUP,
        columns.WORD,
        Column("gender", "label", "the gender that the word deviates to", labels=GENDERS),
        Column("deviation_nats", "float64", "PMI with that gender, smoothed"),
        Column("part", "int32", "number of the cluster, 0 the largest", minimum=0),
        Column("silhouette", "float64", "of the word in it", minimum=-1, maximum=1),
        Column("x", "float64", "first principal component of the group's states"),
        Column("y", "float64", "second principal component"),
    ),
    key=("language", "pos", "group", "word"),
)

SCHEMAS = {"fits": FITS, "shares": SHARES, "words": WORDS}


class Params(Bootstrap):
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


class Group(NamedTuple):
    """Words that are clustered together."""

    where: dict[str, Any]  # model, language, pos
    name: str
    words: pl.DataFrame  # word, gender, deviation; sorted by word
    states: NDArray[np.float64]  # (words, width)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``fits``, ``shares`` and ``words``, columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a gender is unknown, a word has no state, or too few words deviate.
    """
    (model,) = inputs.models
    if unknown := sorted(set(params.genders) - set(GENDERS)):
        raise UserError(f"analysis.clusters.genders: no {unknown[0]!r}; there are {GENDERS}")
    table = pl.read_parquet(inputs.tables("pmi", model) / "pmi.parquet")
    outputs = inputs.outputs("representations", model)
    fits: list[dict[str, Any]] = []
    shares: list[dict[str, Any]] = []
    words: list[dict[str, Any]] = []
    for (language, pos), part in sorted(table.group_by("language", "pos", maintain_order=True)):
        where = {"model": part["model"][0], "language": language, "pos": pos}
        chosen = deviating(part, params)
        for group in _groups(where, chosen, outputs, params):
            best = _fit(group, params, fits)
            if best is None:
                continue
            words += _places(group, best)
            if group.name == JOINT:
                shares += _shares(group, best, params)
    if not fits:
        raise UserError(
            f"{inputs.tables('pmi', model)}: too few words deviate for {min(params.clusters)} "
            "clusters; lower analysis.pmi.min_count or analysis.clusters.clusters"
        )
    return {
        "fits": typed(_adjusted(fits, FITS), FITS),
        "shares": typed(_adjusted(shares, SHARES), SHARES),
        "words": typed(pl.DataFrame(words), WORDS),
    }


def deviating(part: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return the words that deviate most to each gender: word, gender, deviation.

    The smoothed PMI must be above 0; of one gender the ``top_k`` largest are taken, ties
    by the word. A word that is among those of two genders goes to the one that it deviates to more.
    """
    codes = [GENDERS.index(gender) for gender in params.genders]
    smoothed = part.filter(
        (pl.col("reading") == READINGS.index("smoothed"))
        & pl.col("gender").is_in(codes)
        & (pl.col("value") > 0)
    ).sort(["value", "word", "gender"], descending=[True, False, False])
    largest = smoothed.group_by("gender", maintain_order=True).head(params.top_k)
    return (
        largest.sort(["value", "word", "gender"], descending=[True, False, False])
        .unique("word", keep="first", maintain_order=True)
        .select("word", "gender", deviation_nats="value")
        .sort("word")
    )


def _groups(
    where: dict[str, Any], words: pl.DataFrame, outputs: Path, params: Params
) -> list[Group]:
    """Return the words of each gender, and those of all together, with their states."""
    if words.is_empty():
        return []
    rows = pl.scan_parquet(outputs / where["language"] / "*.parquet")
    own = pl.col("word").is_in(words["word"].to_list())
    found = rows.filter(own).select("word", "state").collect().sort("word")
    if found["word"].to_list() != words["word"].to_list():
        missing = sorted(set(words["word"]) - set(found["word"]))
        raise UserError(
            f"{outputs}: no state of {', '.join(missing[:3])}; it was made from other words than "
            "the tables of pmi, make both again"
        )
    states = np.array(found["state"].to_list())
    genders = words["gender"].to_numpy()
    groups = [Group(where, JOINT, words, states)] if len(params.genders) > 1 else []
    for gender in sorted(params.genders, key=GENDERS.index, reverse=True):
        own = genders == GENDERS.index(gender)
        groups.insert(0, Group(where, gender, words.filter(own), states[own]))
    return groups


def _fit(group: Group, params: Params, fits: list[dict[str, Any]]) -> Partition | None:
    """Add the rows of all numbers of clusters; return the partition with the largest silhouette."""
    distinct = len(np.unique(group.states, axis=0)) if len(group.words) else 0
    ks = [k for k in sorted(set(params.clusters)) if k < distinct]
    if not ks:
        return None
    points = principal(group.states)
    partitions = {k: partition(points, k, params.seeds) for k in ks}
    best = max(ks, key=lambda k: (round(partitions[k].silhouette, 9), -k))
    key = f"{group.where['language']} {group.where['pos']} {group.name}"
    seed = [params.seed, zlib.crc32(key.encode())]
    clouds = null(group.states, ks, len(params.seeds), params.n_simulations, seed)
    base = {**group.where, "group": GROUPS.index(group.name), "words": len(group.words)}
    for k, cloud in zip(ks, clouds, strict=True):
        for measure, row in _measures(partitions[k], cloud, params, seed):
            at = {"clusters": k, "measure": MEASURES.index(measure), "chosen": k == best}
            fits.append(base | at | row)
    return partitions[best]


def _measures(
    found: Partition, cloud: Null, params: Params, seed: Sequence[int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the estimates of one partition."""
    rng = np.random.default_rng(seed)
    n, runs, draws = len(found.widths), len(params.seeds), params.n_simulations
    one = f"one normal cloud of the same mean and covariance, {draws} draws"
    best, worst = float(found.inertia.min()), float(found.inertia.max())
    method = "range over seeds, best run first"
    row = Estimate(best, best, worst, runs, method).row(cluster="seed", null="none: see gap")
    yield "inertia", row
    means = found.widths[rng.integers(0, n, (params.n_bootstrap, n))].mean(axis=1)
    tail = (1 - params.confidence) / 2
    method = "bootstrap percentile over words, clusters held"
    low, high = np.quantile(means, [tail, 1 - tail])
    width = Estimate(found.silhouette, float(low), float(high), n, method)
    p = upper_p(found.silhouette, cloud.silhouette)
    yield "silhouette", width.at(params.confidence).row(cluster="word", null=one, p=p)
    method = "mean adjusted Rand index of pairs of seeds, and its range"
    mean, low, high = (float(f(found.agreement)) for f in (np.mean, np.min, np.max))
    row = Estimate(mean, low, high, runs, method).row(
        cluster="seed", null="0: runs agree as by chance"
    )
    yield "stability", row
    value, error = gap(best, cloud)
    wide = NormalDist().inv_cdf(1 - tail) * error
    method = "normal, simulation error of Tibshirani et al. (2001)"
    apart = Estimate(value, value - wide, value + wide, draws, method).at(params.confidence)
    yield "gap", apart.row(cluster="draw", null=f"0: {one}")


def _places(group: Group, best: Partition) -> list[dict[str, Any]]:
    """Return the rows of the words of a group, in the plane of their first principal components."""
    points = principal(group.states)
    rows = group.words.iter_rows(named=True)
    return [
        {
            **group.where,
            "group": GROUPS.index(group.name),
            **row,
            "part": int(label),
            "silhouette": finite(width),
            "x": finite(point[0]),
            "y": finite(point[1]) if len(point) > 1 else 0.0,
        }
        for row, label, width, point in zip(rows, best.labels, best.widths, points, strict=True)
    ]


def _shares(group: Group, best: Partition, params: Params) -> list[dict[str, Any]]:
    """Return how the genders share the words of each cluster.

    Clusters are made without knowing genders, so that gender labels permuted over words give every
    count its hypergeometric distribution exactly.
    """
    codes, genders = np.unique(group.words["gender"].to_numpy(), return_inverse=True)
    counts = np.zeros((best.labels.max() + 1, len(codes)), np.int64)
    np.add.at(counts, (best.labels, genders), 1)
    sizes = counts.sum(axis=0)
    p = fisher_p(counts, sizes)
    rows = []
    for number, own in enumerate(counts):
        for g, code in enumerate(codes):
            share = wilson(int(own[g]), int(own.sum()), params.confidence)
            row = share.row(
                **group.where,
                part=number,
                gender=int(code),
                count=int(own[g]),
                words=int(own.sum()),
                expected=finite(sizes[g] / sizes.sum()),
                cluster="word",
                null="gender labels permuted over words, exact",
                p=p[number, g],
            )
            rows.append(row)
    return rows


def _adjusted(rows: list[dict[str, Any]], schema: Schema) -> pl.DataFrame:
    """Return rows as a table, with p adjusted over all tests in it."""
    if not rows:
        return Table(schema).frame()
    table = adjusted(pl.DataFrame(rows, infer_schema_length=None))
    return table.with_columns(family=pl.when(pl.col("p").is_not_null()).then("family"))
