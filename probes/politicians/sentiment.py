"""Analysis ``sentiment``: what the words that deviate most towards each gender feel like.

Stańczak et al. (2023), Figures 4 and 6: the shares of positive, negative and neutral words among
the 100 with the largest deviations, for men and for women; with intervals, a test whose unit is the
name beside the paper's, whose unit is the word, and control of multiplicity over all models.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import name_words
from plumbline.probes.politicians.sentiment_shares import (
    FEMALE,
    MALE,
    Ranking,
    Settings,
    by_latent,
    by_pmi,
    difference_rows,
    share_rows,
)
from plumbline.probes.politicians.word_counts import Lists, languages
from plumbline.probes.politicians.word_sentiments import DEVIATIONS, READINGS, of_words
from plumbline.probes.stats.estimate import ESTIMATE, benjamini_hochberg, finite, significant, typed
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.worlds.politicians import SENTIMENTS, is_null, true_difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ("latent",)
ETA = {1: "value", 2: "value_faithful"}  # of DEVIATIONS: column of the table `latent`
TESTS = ("words", "names")
ROUNDING = 1e-6  # of numbers in tables
PLACE = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("language", "string", "language of names and words"),
    Column("pos", "label", "universal part of speech", labels=POS),
    Column(
        "deviation",
        "label",
        "what words are ranked by: smoothed PMI over distinct names; or eta of the table `latent`, "
        "its value or its value_faithful",
        labels=DEVIATIONS,
    ),
    Column(
        "reading",
        "label",
        "pairs: of a word and a sentiment, ranked by their own deviation; argmax: words, each with "
        "its most probable sentiment",
        labels=READINGS,
    ),
)
SIZE = (
    Column(
        "largest", "int64", "words or pairs taken, those with the largest deviations", minimum=1
    ),
    Column("candidates", "int64", "words or pairs that they were taken from", minimum=1),
    Column("left_out", "int64", "words of which no lexicon knows the sentiment", minimum=0),
)
SHARES = Schema(
    columns=(
        *PLACE,
        Column("gender", "label", "the paper's grouping", labels=GENDERS),
        Column(
            "sentiment", "label", "most probable sentiment, or that of the pair", labels=SENTIMENTS
        ),
        Column("hits", "int64", "how many of the largest have this sentiment", minimum=0),
        *SIZE,
        Column(
            "base", "float64", "share of the sentiment among all candidates", minimum=0, maximum=1
        ),
        Column("names", "int64", "distinct names of this gender", minimum=1),
        *ESTIMATE,
    ),
    key=("model", "language", "pos", "deviation", "reading", "gender", "sentiment"),
)
DIFFERENCES = Schema(
    columns=(
        *PLACE,
        Column("sentiment", "label", "as in `shares`", labels=SENTIMENTS),
        Column(
            "test",
            "label",
            "words: the paper's unpaired permutation of words; names: genders permuted over names",
            labels=TESTS,
        ),
        *SIZE,
        *ESTIMATE,
        Column("p_bonferroni", "float64", "p times `family`, at most 1", minimum=0, maximum=1),
        Column(
            "family",
            "int64",
            "tests that p is adjusted over: all models (each world for itself), languages, parts "
            "of speech and sentiments of one deviation, reading and test",
            minimum=1,
        ),
    ),
    key=("model", "language", "pos", "deviation", "reading", "sentiment", "test"),
)
RECOVERY = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("world", "label", "whether biases were planted", labels=("planted", "null")),
        Column("measure", "string", "what is compared"),
        *ESTIMATE,
    ),
    key=("model", "measure"),
)
SCHEMAS = {"shares": SHARES, "differences": DIFFERENCES, "recovery": RECOVERY}


class Params(Section):
    """How many words are taken, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    largest: int = Field(ge=1, description="words (or pairs) with the largest deviations")
    largest_share: float = Field(
        gt=0, le=1, description="most that may be taken of all candidates, where they are few"
    )
    smoothing: float = Field(gt=0, description="added to every cell before PMI is computed")
    min_count: int = Field(ge=1, description="names in whose list a word must be")
    permutations: int = Field(ge=100, description="permutations of genders over names")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over names")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    false_discovery_rate: float = Field(gt=0, lt=1, description="level told in `recovery`")
    seed: int = Field(description="of the resampling")

    def settings(self) -> Settings:
        """Return what the ranking of words needs to know."""
        return Settings(**{k: getattr(self, k) for k in Settings._fields})


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``shares``, ``differences``, and ``recovery`` where a model is a world; columns as in
        :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If no model has words with a known sentiment.
    """
    shared: list[dict[str, Any]] = []
    apart: list[dict[str, Any]] = []
    settings = params.settings()
    for model in inputs.models:
        for place, found, of in _rankings(inputs, model, params):
            shared += [
                place | row | {"names": of[row["gender"]]} | _clusters(row, of, found)
                for row in share_rows(found, settings)
            ]
            people = of.get(MALE, 0) + of.get(FEMALE, 0)
            apart += [place | row for row in difference_rows(found, settings, people)]
    if not shared:
        raise Problem(
            "analysis.sentiment: no word in the outputs has a known sentiment; lower "
            "analysis.sentiment.min_count, or add the language to datasets.lexica"
        )
    worlds = [m for m in inputs.models if (inputs.weights(m) / "world.json").is_file()]
    differences = typed(adjusted(pl.DataFrame(apart), worlds), DIFFERENCES)
    tables = {"shares": typed(pl.DataFrame(shared), SHARES), "differences": differences}
    if worlds:
        told = [row for world in worlds for row in _recovery(inputs, world, differences, params)]
        tables["recovery"] = typed(pl.DataFrame(told), RECOVERY)
    return tables


def _rankings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Ranking, dict[int, int]]]:
    """Yield where it is, the ranking, and how many distinct names each gender has."""
    outputs = inputs.outputs("associations", model)
    people, lexica = inputs.datasets["politicians"], inputs.datasets["lexica"]
    settings = params.settings()
    path = inputs.tables("latent", model) / "latent.parquet"
    eta = pl.read_parquet(path) if path.is_file() else None  # not all are in asked.words
    for language in languages(outputs):
        for pos in range(len(POS)):
            source = Lists((outputs / language,), pos)
            found = name_words.read(source, people / f"{language}.parquet", params.min_count)
            if found is None:
                continue
            place = {"model": model, "language": language, "pos": pos}
            number = np.bincount(found.genders).tolist()
            of = dict(zip(found.labels, number, strict=True))
            words, lemmas = (found.words[column].to_list() for column in ("word", "lemma"))
            q = of_words(words, lemmas, lexica, language)
            ranking = by_pmi(found, q, settings)
            if ranking is not None:
                yield place | {"deviation": 0, "reading": READINGS.index("argmax")}, ranking, of
            if eta is None:
                continue
            part = eta.filter((pl.col("language") == language) & (pl.col("pos") == pos))
            for (i, column), (r, reading) in product(ETA.items(), enumerate(READINGS)):
                ranking = by_latent(part, reading, settings, column)
                if ranking is not None:
                    yield place | {"deviation": i, "reading": r}, ranking, of


def _clusters(row: dict[str, Any], of: dict[int, int], found: Ranking) -> dict[str, int]:
    """Return n: names where names were resampled, else words or pairs."""
    return {"n": of[row["gender"]] if row["cluster"] == "name" else found.size}


def adjusted(differences: pl.DataFrame, worlds: list[str]) -> pl.DataFrame:
    """Add adjusted p-values: real models are one family, each world is one of its own.

    Parameters
    ----------
    differences
        Columns model, deviation, reading, test and p.
    """
    kind = pl.when(pl.col("model").is_in(worlds)).then("model").otherwise(pl.lit(""))
    table = differences.with_columns(kind=kind)
    parts = []
    for _, part in table.group_by("kind", "deviation", "reading", "test", maintain_order=True):
        p = part["p"].to_numpy()
        parts.append(
            part.with_columns(
                p_bh=pl.Series([significant(x) for x in benjamini_hochberg(p)]),
                p_bonferroni=pl.Series([significant(x) for x in np.minimum(p * len(p), 1)]),
                family=pl.lit(len(p)),
            )
        )
    return pl.concat(parts).drop("kind").sort(DIFFERENCES.key)


def _recovery(
    inputs: Inputs, model: str, differences: pl.DataFrame, params: Params
) -> Iterator[dict[str, Any]]:
    """Hold what was measured in a world against what was planted."""
    weights, rate = inputs.weights(model), params.false_discovery_rate
    null = is_null(weights)
    mine = differences.filter((pl.col("model") == model) & (pl.col("deviation") == 0))
    language = mine["language"][0]
    base = {"model": model, "language": language, "world": int(null), "p": None, "p_bh": None}

    def told(measure: str, hits: int, n: int, cluster: str, against: str) -> dict[str, Any]:
        estimate = wilson(hits, n, params.confidence)
        limits = {k: finite(getattr(estimate, k)) for k in ("value", "low", "high")}
        said = {"n": n, "cluster": cluster, "method": estimate.method, "null": against}
        return base | {"measure": measure} | limits | said

    covered, signs, strong = 0, 0, 0
    by_name = mine.filter(pl.col("test") == TESTS.index("names"))
    for pos, name in enumerate(POS):
        part = by_name.filter(pl.col("pos") == pos)
        if part.is_empty():
            continue
        outputs, people = inputs.outputs("associations", model), inputs.datasets["politicians"]
        source = Lists((outputs / language,), pos)
        found = name_words.read(source, people / f"{language}.parquet", params.min_count)
        assert found is not None
        planted = true_difference(weights, people, outputs, pos, found.words, part["largest"][0])
        for row in part.iter_rows(named=True):
            true, sentiment = planted[row["sentiment"]], SENTIMENTS[row["sentiment"]]
            covered += row["low"] - ROUNDING <= true <= row["high"] + ROUNDING
            strong += abs(true) >= 0.1
            signs += abs(true) >= 0.1 and np.sign(true) == np.sign(row["value"])
            kept = {k: row[k] for k in ("value", "low", "high", "n", "cluster", "method", "p")}
            yield (
                base
                | kept
                | {
                    "measure": f"{name}, {sentiment}: share, male minus female",
                    "null": f"{true:.3f}: planted",
                    "p_bh": row["p_bh"],
                }
            )
    yield told(
        f"share of {params.confidence:.0%} intervals with the planted difference",
        covered,
        len(by_name),
        "part of speech and sentiment",
        f"{params.confidence:g}: nominal",
    )
    if strong:
        yield told(
            "share of planted differences of at least 0.1 whose sign is found",
            signs,
            strong,
            "part of speech and sentiment",
            "0.5: coin",
        )
    for test, name in enumerate(TESTS):
        p = mine.filter(pl.col("test") == test)
        yield told(
            f"share of tests ({name}) with p_bh at or below {rate:g}",
            int((p["p_bh"] <= rate).sum()),
            len(p),
            "part of speech and sentiment",
            "0: no discovery is true" if null else "no nominal value: effects are planted",
        )
