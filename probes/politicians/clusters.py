"""Analysis ``clusters``: shares of genders in clusters of a model's hidden states for words.

Stańczak et al. (2023), section 5.2.1, Figure 5 and Tables 7 and 16, apply k-means with five
clusters to the last hidden states of all adjectives that a model generated. In addition, the words
most associated with each gender are clustered here, with tests adjusted for multiplicity.
"""

from __future__ import annotations

import zlib
from itertools import islice
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.word_counts import category, schema, share
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import (
    TESTED_ERROR,
    Estimate,
    Resampling,
    Table,
    estimates,
    finite,
    least_p,
    rounded,
)
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.kmeans import Null, Partition, gap, null, partition, principal, upper_p
from plumbline.probes.stats.tests import fisher_p, permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Shares = Iterator[tuple[Estimate, float, float]]  # share, share in all parts, and p

DATASETS = ("politicians",)
OUTPUTS = ("representations", "associations")
TABLES = ("pmi",)
FAITHFUL_CLUSTERS = 5  # as in the paper's Tables 7 and 16
JOINT = "together"
FAITHFUL, LARGEST = READINGS = ("faithful", "largest")
PRIOR = 0.5  # Jeffreys' prior for each pattern
READING = category(
    "reading",
    READINGS,
    "clustered words: all adjectives generated for a gender, in five clusters, as in the paper "
    "(faithful), or the words with the largest PMI, each for one gender (largest)",
)
GROUP = category("group", (*GENDERS, JOINT), "gender of the words, or all genders together")
CLUSTER = Column("cluster_id", "int32", "number of the cluster; 0 is the largest", minimum=0)
MEASURES = ("inertia", "silhouette", "stability", "gap")
SCHEMAS = {
    "fits": schema(
        (
            READING,
            GROUP,
            Column("clusters", "int32", "number of clusters", minimum=2),
            category("measure", MEASURES, "measure of the partition"),
        ),
        *estimates(
            cluster="inertia and stability: seeds; silhouette: words; gap: draws",
            method="inertia: lowest value and range over seeds; silhouette: 95% bootstrap "
            "percentile over words for fixed clusters; stability: mean and range of the adjusted "
            "Rand index between seeds; gap: normal, simulation error of Tibshirani et al. (2001)",
            null="silhouette: one normal cloud with the same mean and covariance; other measures "
            "and the paper's number of clusters have no test",
        )[:-1],  # no `detectable`, since the null hypothesis concerns a shape, which has no scale
        Column("chosen", "bool", "whether this number of clusters has the largest silhouette"),
    ),
    "shares": schema(
        (READING, CLUSTER, word_counts.GENDER),
        Column("words", "int64", "number of words in the cluster", minimum=1),
        share("expected", "share of this gender among the words of all clusters"),
        *estimates(
            cluster="word",
            method="largest: 95% Wilson; faithful: 95% Dirichlet percentile over words",
            null="largest: gender labels permuted over words, exact; faithful: words permuted over "
            "clusters",
        ),
    ),
    "words": schema(
        (READING, GROUP, word_counts.LEMMA),
        category(
            "gender",
            GENDERS,
            "gender that the word is associated with, or was generated for; null if the word was "
            "generated for several genders",
            nullable=True,
        ),
        CLUSTER,
        Column("x", "float64", "first principal component of the hidden states in the group"),
        Column("y", "float64", "second principal component of the same states"),
    ),
}


class Params(Resampling):
    """Settings of the clustered words, the numbers of clusters, and the null distribution."""

    genders: list[str] = Field(min_length=1, description="genders whose words are clustered")
    top_k: int = Field(ge=3, description="maximum number of words per gender")
    clusters: list[Annotated[int, Field(ge=2)]] = Field(
        min_length=1, description="candidate numbers of clusters"
    )
    seeds: list[int] = Field(min_length=2, description="seeds of k-means; one run per seed")
    n_simulations: int = Field(
        ge=19, description="draws from one normal cloud, the null hypothesis for the silhouette"
    )


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; their columns are defined in :data:`SCHEMAS`.

    Raises UserError if a gender is unknown, a word has no hidden state, or too few words deviate.
    """
    (model,) = inputs.models
    if unknown := sorted(set(params.genders) - set(GENDERS)):
        raise UserError(f"analysis.clusters.genders: unknown {unknown[0]!r}; available: {GENDERS}")
    genders = [gender for gender in GENDERS if gender in params.genders]
    outputs = inputs.outputs("representations", model)
    tables = {name: Table(schema, params.confidence) for name, schema in SCHEMAS.items()}
    for cell, words in (*_generated(inputs, genders), *_largest(inputs, params)):
        key, states = {"model": model} | cell, _states(outputs, cell["language"], words)
        for group in (*genders, JOINT) if len(genders) > 1 else genders:
            everybody = np.ones(len(words), dtype=np.bool_)
            inside = everybody if group == JOINT else words[group].to_numpy()
            row_key, points = key | {"group": group}, states[inside]
            best, fits = _fit(row_key, points, params)
            if best is None:
                continue
            tables["fits"].rows += [row_key | row for row in fits]
            members = words.filter(inside)
            flat = np.pad(principal(points), ((0, 0), (0, 1)))
            frame = members.select(
                "word", "gender", cluster_id=best.labels, x=flat[:, 0], y=flat[:, 1]
            )
            tables["words"].rows += [
                row_key | row for row in rounded(frame, ["x", "y"], ()).to_dicts()
            ]
            if group == JOINT:
                present = [gender for gender in genders if members[gender].any()]
                rows = _share_rows(
                    members.select(present).to_numpy(), best.labels, key["reading"], params
                )
                tables["shares"].rows += [key | {"gender": present[g]} | row for g, row in rows]
    if not tables["fits"].rows:
        raise UserError(
            f"{outputs}: too few words are generated or deviate for {min(params.clusters)} "
            "clusters; lower analysis.pmi.min_count or analysis.clusters.clusters"
        )
    tables["fits"].adjust(least=2 * least_p(params.n_simulations))  # two-sided
    tables["shares"].adjust(over=["reading"])
    return {name: table.frame() for name, table in tables.items()}


def _largest(inputs: Inputs, params: Params) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield each cell of the table and the words most associated with a single gender."""
    table = pl.read_parquet(inputs.tables("pmi", *inputs.models) / "pmi.parquet")
    by = table.filter(unit="lemma").group_by("language", "pos", maintain_order=True)
    for (language, pos), part in sorted(by):
        words = deviating(part, params)
        if len(words):
            words = words.with_columns((pl.col("gender") == g).alias(g) for g in GENDERS)
            yield {"language": language, "pos": pos, "reading": LARGEST}, words


def _generated(inputs: Inputs, genders: list[str]) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Yield each cell and all adjectives in the lists of people of these genders, sorted.

    Columns: word; form, its most frequent form; one column per gender, True if a list contains the
    word; and gender, which is null if the word was generated for several genders.
    """
    for language, source, path in word_counts.sources(inputs, *inputs.models):
        if source.pos != "ADJ":
            continue
        counts = word_counts.count(source, word_counts.read_people(path))
        lists = {GENDERS[g]: own > 0 for g, own in zip(counts.genders, counts.lists.T, strict=True)}
        none = np.zeros(len(counts.words), dtype=np.bool_)
        listed = {gender: pl.Series(lists.get(gender, none)) for gender in genders}
        number = pl.sum_horizontal(genders)
        single = pl.coalesce(pl.when(pl.col(g)).then(pl.lit(g)) for g in genders)
        words = counts.words.with_columns(**listed).filter(number > 0)
        if len(words):
            words = words.with_columns(gender=pl.when(number == 1).then(single))
            yield {"language": language, "pos": source.pos, "reading": FAITHFUL}, words


def deviating(part: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return the words most associated with each gender, in the columns word, form, gender.

    These are the words with the ``top_k`` largest values of smoothed PMI above 0; ties are broken
    by word. A word selected for two genders is assigned to the one with the larger PMI.
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
    """Return the hidden states of the words' most frequent forms, of shape (words, width)."""
    rows = pl.scan_parquet(outputs / language / "*.parquet")
    listed = rows.filter(pl.col("word").is_in(words["form"].to_list()))
    by_form = listed.select(form="word", state="state").collect()
    if missing := sorted(set(words["form"]) - set(by_form["form"])):
        raise UserError(
            f"{outputs}: no hidden state of {', '.join(missing[:3])}; these outputs and the tables "
            "of pmi differ in their words; run both again"
        )
    states = words.select("form").join(by_form, on="form", maintain_order="left")["state"]
    return np.array(states.to_list(), dtype=np.float64)


def _fit(
    cell: dict[str, Any], states: NDArray[np.float64], params: Params
) -> tuple[Partition | None, list[dict[str, Any]]]:
    """Return the partition with the largest silhouette, and rows for all numbers of clusters."""
    faithful = cell["reading"] == FAITHFUL
    numbers = [FAITHFUL_CLUSTERS] if faithful else sorted(set(params.clusters))
    distinct = len(np.unique(states, axis=0)) if len(states) else 0
    ks = [k for k in numbers if k < distinct]
    if not ks:
        return None, []
    points = principal(states)
    partitions = {k: partition(points, k, params.seeds) for k in ks}
    best = max(ks, key=lambda k: (round(partitions[k].silhouette, 9), -k))
    label = f"{cell['language']} {POS.index(cell['pos'])} {cell['group']}"
    seed = [params.seed, zlib.crc32(label.encode())]
    clouds: list[Null | None] = [None] * len(ks)
    if not faithful:  # with all words, clustering the simulated clouds would take minutes
        clouds = [*null(states, ks, len(params.seeds), params.n_simulations, seed)]
    rows = [
        row | {"clusters": k, "chosen": k == best}
        for k, one_cloud in zip(ks, clouds, strict=True)
        for row in _fit_rows(partitions[k], one_cloud, seed, params)
    ]
    return partitions[best], rows


def _fit_rows(
    fit: Partition, one_cloud: Null | None, seed: list[int], params: Resampling
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one partition.

    ``one_cloud``: null distributions from one normal cloud; if None, the silhouette is not tested
    and there is no gap statistic.
    """
    n, runs = len(fit.widths), len(fit.inertia)
    tail = (1 - params.confidence) / 2
    least, most = fit.inertia.min(), fit.inertia.max()
    yield Estimate(least, least, most, runs).row(measure="inertia")
    resampled = np.random.default_rng(seed).integers(0, n, (params.n_bootstrap, n))
    low, high = np.quantile(fit.widths[resampled].mean(axis=1), [tail, 1 - tail])
    p = upper_p(fit.silhouette, one_cloud.silhouette) if one_cloud else None
    yield Estimate(fit.silhouette, low, high, n).row(measure="silhouette", p=p)
    rand = fit.agreement
    yield Estimate(rand.mean(), rand.min(), rand.max(), runs).row(measure="stability")
    if one_cloud:
        value, error = gap(float(least), one_cloud)
        half = NormalDist().inv_cdf(1 - tail) * error
        draws = len(one_cloud.silhouette)
        yield Estimate(value, value - half, value + half, draws).row(measure="gap")


def _share_rows(
    members: NDArray[np.bool_], parts: NDArray[np.int64], reading: str, params: Resampling
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the gender index and the row of each gender's share of the words in a cluster.

    ``members``, (words, genders): True if a word was generated for or is typical of a gender.
    ``parts``, (words,): cluster number of each word.
    """
    if reading == FAITHFUL:
        size = params.n_bootstrap, params.n_permutations, params.seed
        shares = overlaps(members, parts, *size, params.confidence)
    else:
        shares = _partitioned(members, parts, params.confidence)
    for number, words in enumerate(np.bincount(parts).tolist()):
        outside = 1 - words / len(parts)  # the finite population correction
        for g, (estimate, expected, p) in enumerate(islice(shares, members.shape[1])):
            error = estimate.standard_error(params.confidence) * outside**0.5
            key = {"cluster_id": number, "words": words, TESTED_ERROR: error}
            key["reach"] = max(expected, 1 - expected)
            yield g, estimate.row(p=p, expected=finite(expected), **key)


def _partitioned(members: NDArray[np.bool_], parts: NDArray[np.int64], confidence: float) -> Shares:
    """Yield group shares like :func:`overlaps`, for items that belong to exactly one group each.

    Clustering does not use genders, so that every count is exactly hypergeometric if gender labels
    are permuted.
    """
    counts = np.zeros((parts.max() + 1, members.shape[1]), np.int64)
    np.add.at(counts, parts, members)
    sizes = counts.sum(axis=0)
    for row, p in zip(counts, fisher_p(counts, sizes), strict=True):
        for hits, size, p_of_group in zip(row, sizes, p, strict=True):
            estimate = wilson(int(hits), int(row.sum()), confidence)
            yield estimate, float(size / sizes.sum()), float(p_of_group)


def overlaps(
    members: NDArray[np.bool_],
    parts: NDArray[np.int64],
    draws: int,
    permutations: int,
    seed: int,
    confidence: float,
) -> Shares:
    """Yield the shares of groups in each part; items in several groups count in each.

    The shares of a part sum to 1. The counts of the patterns of groups in a part are multinomial;
    limits are percentiles of the shares under the Dirichlet posterior with Jeffreys' prior, 1/2 for
    every pattern (Jeffreys 1946, Proc. R. Soc. A 186, p. 453). The test permutes patterns over all
    items, so that the counts of a part are multivariate hypergeometric, and is two-sided, using the
    distance from the mean share.

    Parameters
    ----------
    members : (items, groups) array
        True for each group that an item belongs to; at least one per item.
    parts : (items,) array
        Part of each item, numbered from 0 without gaps.
    draws, permutations, seed
        Number of draws from the posterior, number of permutations, and seed.

    Yields
    ------
    For each part and group: the share, the share in all parts, and p; p is nan if no other
    outcome is possible.

    Examples
    --------
    The items of one part are in both groups, those of the other only in the first:

    >>> members = np.array([[1, 1]] * 20 + [[1, 0]] * 20).astype(bool)
    >>> found = list(overlaps(members, np.repeat([0, 1], 20), 99, 999, 1, 0.95))
    >>> [share.value for share, *_ in found], found[2][2]
    ([0.5, 0.5, 1.0, 0.0], 0.001)
    """
    groups = members.shape[1]
    patterns = (np.arange(1, 2**groups)[:, None] >> np.arange(groups) & 1).astype(np.float64)
    code = (members << np.arange(groups)).sum(axis=1) - 1
    if (code < 0).any():
        raise ValueError("an item has no group")

    def shares(counts: NDArray[Any]) -> NDArray[np.float64]:
        sums = counts @ patterns
        return np.asarray(sums / sums.sum(axis=-1, keepdims=True))

    totals = np.bincount(code, minlength=len(patterns))
    expected = shares(totals)
    rng = np.random.default_rng(seed)
    for part in range(int(parts.max()) + 1):
        seen = np.bincount(code[parts == part], minlength=len(patterns))
        size = int(seen.sum())
        value = shares(seen)
        low, high = percentiles(shares(rng.dirichlet(seen + PRIOR, draws)).T, confidence)
        ends = np.minimum(low, value), np.maximum(high, value)  # includes values at 0 and 1
        null = shares(rng.multivariate_hypergeometric(totals, size, permutations))
        p = np.full(groups, np.nan)
        if (totals > 0).sum() > 1 and size < len(code):
            p = permutation_p(value - null.mean(axis=0), (null - null.mean(axis=0)).T)
        for g in range(groups):
            estimate = Estimate(float(value[g]), float(ends[0][g]), float(ends[1][g]), size)
            yield estimate, float(expected[g]), float(p[g])
