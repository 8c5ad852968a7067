"""Analysis ``pmi``: which words go with which gender, from the outputs of ``associations``.

Stańczak et al. (2023), equation 1 and Table 3, with intervals, a null and control of multiplicity.
For a planted world also how much of what was planted is found.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.sparse import csr_array

from builders.lib.params import Params as Section
from builders.lib.problem import Problem
from builders.lib.schema import Column, Schema
from builders.politicians import GENDERS
from builders.words import POS
from probes.estimates import ESTIMATE, finite, significant, typed
from probes.frames import BARE
from probes.stats.multiplicity import benjamini_hochberg
from probes.stats.pmi import bootstrap, permutation_p, pmi
from probes.stats.proportion import wilson
from probes.stats.rank_correlation import spearman
from probes.world.language import Planted, World, expected_counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from probes.stats.estimate import Estimate
    from probes.tables import Inputs

EACH = True
DATASETS = ("politicians",)
OUTPUTS = ("associations",)
TABLES = ()
READINGS = ("plug-in", "smoothed")
METHODS = {
    "plug-in": "bootstrap percentile",
    "smoothed": "Bayesian bootstrap percentile",
}
PMI = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        Column("gender", "label", "the paper's grouping", labels=GENDERS),
        Column("reading", "label", "plug-in: as the paper; smoothed: additive", labels=READINGS),
        Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
        Column("count_all", "int64", "people in whose list the word is", minimum=1),
        Column("people", "int64", "people of this gender", minimum=1),
        *ESTIMATE,
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("language", "pos", "word", "gender", "reading"),
)

RECOVERY = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("world", "label", "whether biases were planted", labels=("planted", "null")),
        Column("measure", "string", "what is compared"),
        *ESTIMATE,
    ),
    key=("language", "measure"),
)

SCHEMAS = {"pmi": PMI, "recovery": RECOVERY}


class Params(Section):
    """How estimates, intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    smoothing: float = Field(gt=0, description="added to every cell in the smoothed reading")
    min_count: int = Field(ge=1, description="people whose lists must have the word")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over names")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    false_discovery_rate: float = Field(gt=0, lt=1, description="level of Benjamini-Hochberg")
    seed: int = Field(description="of the resampling")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        ``pmi``, and for a world ``recovery``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If no word is in enough lists.
    """
    (model,) = inputs.models
    outputs, weights = inputs.outputs("associations", model), inputs.weights(model)
    people = inputs.datasets["politicians"]
    tables: list[pl.DataFrame] = []
    languages = sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != "coverage")
    for language in languages:
        lists = pl.scan_parquet(outputs / language / "*.parquet")
        lists = lists.filter(pl.col("frame").eq_missing(_frame(lists))).select(
            "qid", "name", "word", "lemma", "pos", "model"
        )
        genders = pl.scan_parquet(people / f"{language}.parquet").select("qid", "gender")
        for pos in range(len(POS)):
            part = lists.filter(pl.col("pos") == pos).join(genders, on="qid").collect()
            if not part.is_empty():
                tables.append(_table(part, language, pos, params))
    tables = [table for table in tables if not table.is_empty()]
    if not tables:
        raise Problem(
            f"{outputs}: no word is in {params.min_count} lists; lower analysis.pmi.min_count, or "
            "see the config coverage for what the model lacks"
        )
    table = pl.concat(tables)
    family = table.filter(pl.col("reading") == 0)["p"].to_numpy()
    adjusted = [significant(p) for p in benjamini_hochberg(family)]
    table = table.with_columns(
        p_bh=pl.Series(np.repeat(adjusted, len(READINGS))), family=pl.lit(len(family))
    )
    found = {"pmi": typed(table, PMI)}
    if (weights / "world.json").is_file():
        found["recovery"] = typed(_recovery(table, weights, people, outputs, params), RECOVERY)
    return found


def _frame(lists: pl.LazyFrame) -> str | None:
    """Return the frame whose lists are compared: the paper's, or else the model's first."""
    there = lists.select(pl.col("frame").unique(maintain_order=True)).collect()["frame"].to_list()
    return BARE if BARE in there or not there else there[0]


def _table(part: pl.DataFrame, language: str, pos: int, params: Params) -> pl.DataFrame:
    """Return the rows of one language and part of speech; readings alternate row by row."""
    persons = part.unique("qid").sort("qid").with_row_index("row")
    forms = part.group_by("word").agg(pl.len().alias("n")).filter(pl.col("n") >= params.min_count)
    kept = forms.sort("word")["word"].to_list()
    words = part.select(pl.col("word").unique().sort()).with_row_index("column")
    column_of = dict(words.select("word", "column").iter_rows())
    cells = part.join(persons.select("qid", "row"), on="qid").join(words, on="word")
    at = (cells["row"].to_numpy(), cells["column"].to_numpy())
    lists = csr_array((np.ones(len(cells)), at), shape=(len(persons), len(words)))
    # a gender that nobody has is no group: it must not get what smoothing adds to every cell
    labels, genders = np.unique(persons["gender"].to_numpy(), return_inverse=True)
    clusters = persons["name"].rank("dense").to_numpy().astype(np.int64) - 1
    counts = _by_group(lists, genders, len(labels))
    first = persons.unique(["name", "gender"], keep="first", maintain_order=True)
    rows = first["row"].to_numpy()
    distinct = _by_group(lists[rows], genders[rows], len(labels)).astype(np.int64)
    sizes = np.bincount(genders[rows])
    p = permutation_p(distinct, sizes)
    lemmas = dict(part.select("word", "lemma").unique("word").iter_rows())
    number = int(clusters.max()) + 1
    estimates = {}
    for reading, smoothing in zip(READINGS, (0.0, params.smoothing), strict=True):
        limits = bootstrap(
            lists, genders, clusters, smoothing, params.bootstrap, params.seed, params.confidence
        )
        estimates[reading] = (pmi(counts, smoothing), limits.low, limits.high)
    people = np.bincount(genders)
    out: list[dict[str, Any]] = []
    for word in kept:
        w = column_of[word]
        for g, label in enumerate(labels):
            for r, reading in enumerate(READINGS):
                value, low, high = (finite(x[w, g]) for x in estimates[reading])
                out.append(
                    {
                        "model": part["model"][0],
                        "language": language,
                        "pos": pos,
                        "word": word,
                        "lemma": lemmas[word],
                        "gender": int(label),
                        "reading": r,
                        "count": int(counts[w, g]),
                        "count_all": int(counts[w].sum()),
                        "people": int(people[g]),
                        "value": value,
                        "low": low,
                        "high": high,
                        "n": number,
                        "cluster": "name",
                        "method": f"{params.confidence:.0%} {METHODS[reading]} over names",
                        "null": "gender labels permuted over distinct names, exact",
                        "p": significant(p[w, g]),
                    }
                )
    return pl.DataFrame(out)


def _by_group(lists: csr_array, genders: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    counts = [np.asarray(lists[genders == g].sum(axis=0)).ravel() for g in range(size)]
    return np.stack(counts, axis=1)


def _recovery(
    table: pl.DataFrame, weights: Path, people: Path, outputs: Path, params: Params
) -> pl.DataFrame:
    """Hold what was measured against what was planted."""
    world = World.model_validate(json.loads((weights / "world.json").read_text(encoding="utf-8")))
    null = world.word_effect == 0 and world.sentiment_effect == 0
    truth = pl.read_parquet(weights / "planted.parquet")
    language = table.filter(pl.col("language") == world.language)
    smoothed = language.filter(pl.col("reading") == READINGS.index("smoothed"))
    p_bh = language.filter(pl.col("reading") == 0)["p_bh"].to_numpy()
    p = language.filter(pl.col("reading") == 0)["p"].to_numpy()
    base = {
        "model": table["model"][0],
        "language": world.language,
        "world": int(null),
    }
    rate = params.false_discovery_rate
    found: list[tuple[str, Estimate, str, str]] = []
    if not null:
        measured = _contrast(smoothed).join(truth, on=["word"], how="inner")
        planted = measured["log_ratio_nats"].to_numpy()
        contrast = measured["contrast"].to_numpy()
        if len(planted) < 4:
            raise Problem(
                f"analysis.pmi.min_count: {params.min_count} leaves {len(planted)} planted words, "
                "too few to compare; lower it"
            )
        found.append(
            (
                "Spearman correlation of planted log-ratio and measured PMI, female minus male",
                spearman(planted, contrast, params.confidence),
                "word",
                "0: no relation",
            )
        )
        agree = int((np.sign(planted) == np.sign(contrast)).sum())
        found.append(
            (
                "share of words whose measured sign is the planted one",
                wilson(agree, len(planted), params.confidence),
                "word",
                "0.5: coin",
            )
        )
    else:
        discoveries = int((p_bh <= rate).sum())
        found.append(
            (
                f"false discovery proportion at {rate:g}: 1 if there is any, as all are false",
                wilson(int(discoveries > 0), 1, params.confidence),
                "world",
                f"{rate:g}: nominal mean over worlds",
            )
        )
    covered, cells = _covered(smoothed, truth, world, people, outputs)
    found.append(
        (
            f"share of {params.confidence:.0%} intervals (smoothed, binary) with the true PMI",
            wilson(covered, cells, params.confidence),
            "word and gender",
            f"{params.confidence:g}: nominal",
        )
    )
    found.append(
        (
            f"share of tests with p_bh at or below {rate:g}",
            wilson(int((p_bh <= rate).sum()), len(p_bh), params.confidence),
            "word and gender",
            "0: no discovery is true" if null else "no nominal value: many effects are planted",
        )
    )
    found.append(
        (
            "share of tests with p at or below 0.05",
            wilson(int((p <= 0.05).sum()), len(p), params.confidence),
            "word and gender",
            "at most 0.05: nominal" if null else "no nominal value: many effects are planted",
        )
    )
    return pl.DataFrame(
        [
            base
            | {"measure": measure}
            | {k: finite(getattr(e, k)) for k in ("value", "low", "high")}
            | {"n": e.n, "cluster": cluster, "method": e.method, "null": versus}
            | {"p": None, "p_bh": None}
            for measure, e, cluster, versus in found
        ]
    )


def _contrast(smoothed: pl.DataFrame) -> pl.DataFrame:
    male, female = GENDERS.index("male"), GENDERS.index("female")
    return (
        smoothed.group_by("word")
        .agg(
            contrast=pl.col("value").filter(pl.col("gender") == female).first()
            - pl.col("value").filter(pl.col("gender") == male).first()
        )
        .drop_nulls()
        .sort("word")
    )


def _covered(
    smoothed: pl.DataFrame,
    truth: pl.DataFrame,
    world: World,
    people: Path,
    outputs: Path,
) -> tuple[int, int]:
    """Count intervals that hold the true PMI, and all of them."""
    label = pl.read_parquet(people / f"{world.language}.parquet", columns=["name", "gender"])
    label = label.unique("name", keep="first", maintain_order=True)
    share = {g: int((label["gender"] == i).sum()) / len(label) for i, g in enumerate(GENDERS)}
    share = {g: s for g, s in share.items() if s > 0}
    lists = pl.scan_parquet(outputs / world.language / "*.parquet")
    covered = cells = 0
    for pos, name in enumerate(POS):
        part = truth.filter(pl.col("pos") == name)
        top_k = int(lists.filter(pl.col("pos") == pos).select("rank").max().collect().item())
        planted = Planted(
            tuple(part["word"]),
            part["frequency_nats"].to_numpy(),
            part["log_ratio_nats"].to_numpy(),
            np.zeros(len(part), dtype=np.int64),
        )
        length = min(top_k, len(part))
        expected = pmi(expected_counts(planted, share, world.name_noise, length, world.seed))
        for column, gender in enumerate(share):
            if gender == "non-binary":
                continue
            true = dict(zip(planted.words, expected[:, column], strict=True))
            chosen = (pl.col("pos") == pos) & (pl.col("gender") == GENDERS.index(gender))
            for word, low, high in (
                smoothed.filter(chosen & pl.col("word").is_in(planted.words))
                .select("word", "low", "high")
                .iter_rows()
            ):
                cells += 1
                covered += low is not None and high is not None and low <= true[word] <= high
    return covered, cells
