"""Analysis ``clusters``: whether words of a gender lie together in a model's states.

Stańczak et al. (2023), section on clusters and Figure 5: k-means over the last hidden states of the
words with the largest deviations, with stability, a null and control of multiplicity.
"""

from __future__ import annotations

import zlib
from statistics import NormalDist
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.probes.politicians.pmi import READINGS
from plumbline.probes.politicians.words import columns
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Bootstrap,
    Estimate,
    Table,
    finite,
    least_p,
    rounded,
)
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.kmeans import Partition, gap, null, partition, principal, upper_p
from plumbline.probes.stats.tests import fisher_p

if TYPE_CHECKING:
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
FITS = columns.schema(
    "language pos group clusters measure",
    *columns.PLACE,
    GROUP,
    Column("clusters", "int32", "number of clusters", minimum=2),
    Column("measure", "label", "what is measured", labels=MEASURES),
    Column("words", "int64", "words in the group", minimum=1),
    *ESTIMATE,
    Column("chosen", "bool", "whether the number of clusters has the largest silhouette"),
    Column("family", "int64", "tests in the family that p_bh is taken over", nullable=True),
)
SHARES = columns.schema(
    "language pos part gender",
    *columns.PLACE,
    Column("part", "int32", "number of the cluster, 0 the largest", minimum=0),
    columns.GENDER,
    Column("count", "int64", "words of this gender in the cluster", minimum=0),
    Column("words", "int64", "words in the cluster", minimum=1),
    columns.share("expected", "share of this gender among all words"),
    *ESTIMATE,
    columns.FAMILY,
)
WORDS = columns.schema(
    "language pos group word",
    *columns.PLACE,
    GROUP,
    columns.WORD,
    Column("gender", "label", "the gender that the word deviates to", labels=GENDERS),
    Column("deviation_nats", "float64", "PMI with that gender, smoothed"),
    Column("part", "int32", "number of the cluster, 0 the largest", minimum=0),
    Column("silhouette", "float64", "of the word in it", minimum=-1, maximum=1),
    Column("x", "float64", "first principal component of the group's states"),
    Column("y", "float64", "second principal component"),
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


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute ``fits``, ``shares`` and ``words`` of one model; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a gender is unknown, a word has no state, or too few words deviate.
    """
    (model,) = inputs.models
    if unknown := sorted(set(params.genders) - set(GENDERS)):
        raise UserError(f"analysis.clusters.genders: no {unknown[0]!r}; there are {GENDERS}")
    pmi = inputs.tables("pmi", model)
    table = pl.read_parquet(pmi / "pmi.parquet")
    outputs = inputs.outputs("representations", model)
    tables = {name: Table(schema, model=model) for name, schema in SCHEMAS.items()}
    for (language, pos), part in sorted(table.group_by("language", "pos", maintain_order=True)):
        chosen = deviating(part, params)
        if chosen.is_empty():
            continue
        states = _states(outputs, str(language), chosen)
        groups = [(name, chosen["gender"] == code) for code, name in enumerate(GENDERS)]
        groups = [(name, own) for name, own in groups if name in params.genders]
        if len(groups) > 1:
            groups.append((JOINT, pl.repeat(True, len(chosen), eager=True)))
        for name, own in groups:
            words, points = chosen.filter(own), states[own.to_numpy()]
            at = {"language": language, "pos": pos}
            best = _fit(at, name, points, params, tables["fits"])
            if best is None:
                continue
            flat = principal(points)
            x, y = flat[:, 0], flat[:, 1] if flat.shape[1] > 1 else np.zeros(len(flat))
            place = words.with_columns(
                part=best.labels, silhouette=best.widths, x=x, y=y, group=pl.lit(GROUPS.index(name))
            )
            place = rounded(place, ["silhouette", "x", "y"], ())
            tables["words"].rows += [tables["words"].key | at | r for r in place.to_dicts()]
            if name == JOINT:
                _shares(at, words["gender"].to_numpy(), best, params, tables["shares"])
    if not tables["fits"].rows:
        raise UserError(
            f"{pmi}: too few words deviate for {min(params.clusters)} "
            "clusters; lower analysis.pmi.min_count or analysis.clusters.clusters"
        )
    tables["fits"].adjust(least=2 * least_p(params.n_simulations))  # either tail
    tables["shares"].adjust()
    found = {name: table.frame() for name, table in tables.items()}
    untested = pl.when(pl.col("p").is_not_null()).then("family")
    return found | {"fits": found["fits"].with_columns(family=untested)}


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


def _states(outputs: Path, language: str, words: pl.DataFrame) -> NDArray[np.float64]:
    """Return the states of words, (words, width)."""
    rows = pl.scan_parquet(outputs / language / "*.parquet")
    own = pl.col("word").is_in(words["word"].to_list())
    found = rows.filter(own).select("word", "state").collect().sort("word")
    if missing := sorted(set(words["word"]) - set(found["word"])):
        raise UserError(
            f"{outputs}: no state of {', '.join(missing[:3])}; it was made from other words than "
            "the tables of pmi, make both again"
        )
    return np.array(found["state"].to_list())


def _fit(
    at: dict[str, Any], name: str, states: NDArray[np.float64], params: Params, fits: Table
) -> Partition | None:
    """Add the rows of all numbers of clusters; return the partition with the largest silhouette."""
    distinct = len(np.unique(states, axis=0)) if len(states) else 0
    ks = [k for k in sorted(set(params.clusters)) if k < distinct]
    if not ks:
        return None
    points = principal(states)
    partitions = {k: partition(points, k, params.seeds) for k in ks}
    best = max(ks, key=lambda k: (round(partitions[k].silhouette, 9), -k))
    seed = [params.seed, zlib.crc32(f"{at['language']} {at['pos']} {name}".encode())]
    draws, runs = params.n_simulations, len(params.seeds)
    cloud = f"one normal cloud of the same mean and covariance, {draws} draws"
    tail = (1 - params.confidence) / 2
    for k, null_of in zip(ks, null(states, ks, runs, draws, seed), strict=True):
        found, n = partitions[k], len(states)
        inertia, agreement = found.inertia, found.agreement
        lowest = float(inertia.min())
        method = "range over seeds, best run first"
        spread = Estimate(lowest, lowest, float(inertia.max()), runs, method)
        rng = np.random.default_rng(seed)
        means = found.widths[rng.integers(0, n, (params.n_bootstrap, n))].mean(axis=1)
        low, high = map(float, np.quantile(means, [tail, 1 - tail]))
        method = "bootstrap percentile over words, clusters held"
        width = Estimate(found.silhouette, low, high, n, method).at(params.confidence)
        p = upper_p(found.silhouette, null_of.silhouette)
        method = "mean adjusted Rand index of pairs of seeds, and its range"
        mean, low, high = (float(f(agreement)) for f in (np.mean, np.min, np.max))
        stable = Estimate(mean, low, high, runs, method)
        value, error = gap(lowest, null_of)
        wide = NormalDist().inv_cdf(1 - tail) * error
        method = "normal, simulation error of Tibshirani et al. (2001)"
        apart = Estimate(value, value - wide, value + wide, draws, method).at(params.confidence)
        for measure, (estimate, cluster, judged) in enumerate(
            (
                (spread, "seed", "none: see gap"),
                (width, "word", cloud),
                (stable, "seed", "0: runs agree as by chance"),
                (apart, "draw", f"0: {cloud}"),
            )
        ):
            fits.add(
                estimate,
                group=GROUPS.index(name),
                clusters=k,
                measure=measure,
                words=n,
                chosen=k == best,
                cluster=cluster,
                null=judged,
                p=p if MEASURES[measure] == "silhouette" else None,
                **at,
            )
    return partitions[best]


def _shares(
    at: dict[str, Any], genders: NDArray[np.int64], best: Partition, params: Params, shares: Table
) -> None:
    """Add how the genders share the words of each cluster.

    Clusters are made without knowing genders, so that gender labels permuted over words give every
    count its hypergeometric distribution exactly.
    """
    codes, own = np.unique(genders, return_inverse=True)
    counts = np.zeros((best.labels.max() + 1, len(codes)), np.int64)
    np.add.at(counts, (best.labels, own), 1)
    sizes = counts.sum(axis=0)
    p = fisher_p(counts, sizes)
    for (number, g), count in np.ndenumerate(counts):
        words = int(counts[number].sum())
        shares.add(
            wilson(int(count), words, params.confidence),
            part=number,
            gender=int(codes[g]),
            count=int(count),
            words=words,
            expected=finite(sizes[g] / sizes.sum()),
            cluster="word",
            null="gender labels permuted over words, exact",
            p=float(p[number, g]),
            **at,
        )
