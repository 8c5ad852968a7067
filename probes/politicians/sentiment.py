"""Analysis ``sentiment``: what the words that deviate most towards each gender feel like.

Stańczak et al. (2023), Figures 4 and 6: the shares of positive, negative and neutral words among
the 100 with the largest deviations, for men and for women; with intervals, a test whose unit is the
name beside the paper's, whose unit is the word, and control of multiplicity over all models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians.words import columns, sentiment_shares
from plumbline.probes.politicians.words.sentiment_shares import (
    DEVIATIONS,
    LATENT,
    READINGS,
    Ranking,
    TopWords,
    by_latent,
)
from plumbline.probes.politicians.words.word_counts import by_name, sources
from plumbline.probes.stats.estimate import (
    BONFERRONI,
    ESTIMATE,
    adjusted,
    detectable_bonferroni,
    significant,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ("latent",)
TESTS = ("words", "names")
PLACE = (
    *columns.PLACE,
    Column(
        "deviation",
        "label",
        "what words are ranked by: smoothed PMI over distinct names; or eta of the table `latent`: "
        "its largest values (faithful), or its contrast of genders, mean of sentiments (corrected)",
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
    columns.TOP_K,
    columns.CANDIDATES,
    Column("left_out", "int64", "words of which no lexicon knows the sentiment", minimum=0),
)
SHARES = columns.schema(
    "model language pos deviation reading gender sentiment",
    *PLACE,
    columns.GENDER,
    Column("sentiment", "label", "most probable sentiment, or that of the pair", labels=SENTIMENTS),
    Column("hits", "int64", "how many of the top_k have this sentiment", minimum=0),
    *SIZE,
    Column("base", "float64", "share of the sentiment among all candidates", minimum=0, maximum=1),
    Column("names", "int64", "distinct names of this gender", minimum=1),
    *ESTIMATE,
)
DIFFERENCES = columns.schema(
    "model language pos deviation reading sentiment test",
    *PLACE,
    Column("sentiment", "label", "as in `shares`", labels=SENTIMENTS),
    Column(
        "test",
        "label",
        "words: the paper's unpaired permutation of words; names: genders permuted over names; by "
        "the latent-variable model there is no p, see the page",
        labels=TESTS,
    ),
    *SIZE,
    *ESTIMATE,
    columns.share("p_bonferroni", "p times `family`, at most 1", nullable=True),
    BONFERRONI,
    Column(
        "family",
        "int64",
        "tests that p is adjusted over: all models (each world for itself), languages, parts "
        "of speech and sentiments of one deviation, reading and test; 0: there are none",
        minimum=0,
    ),
)
SCHEMAS = {"shares": SHARES, "differences": DIFFERENCES}


class Params(TopWords):
    """How many words are taken, and how intervals and tests are made."""

    min_count: int = Field(ge=1, description="names in whose list a word must be")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute ``shares`` and ``differences`` of all models; columns as in :data:`SCHEMAS`.

    Raises UserError if no model has words with a known sentiment.
    """
    shared: list[dict[str, Any]] = []
    apart: list[dict[str, Any]] = []
    for model in inputs.models:
        for place, found in _rankings(inputs, model, params):
            shared += [place | row for row in sentiment_shares.share_rows(found, params.confidence)]
            apart += [
                place | row for row in sentiment_shares.difference_rows(found, params.confidence)
            ]
    if not shared:
        raise UserError(
            "analysis.sentiment: no word in the outputs has a known sentiment; lower "
            "analysis.sentiment.min_count, or add the language to datasets.lexica"
        )
    worlds = [m for m in inputs.models if (inputs.weights(m) / "world.json").is_file()]
    # real models are one family, each world is one of its own
    world = pl.when(pl.col("model").is_in(worlds)).then("model").otherwise(pl.lit(""))
    tests = pl.DataFrame(apart).with_columns(world=world)
    tests = adjusted(tests, over=["world", "deviation", "reading", "test"])
    bonferroni = (pl.col("p") * pl.col("family")).clip(upper_bound=1)
    tests = tests.with_columns(p_bonferroni=bonferroni.map_elements(significant, pl.Float64))
    tests = detectable_bonferroni(tests, "family", params.confidence)
    return {
        "shares": typed(pl.DataFrame(shared), SHARES, params.confidence),
        "differences": typed(tests, DIFFERENCES, params.confidence).sort(DIFFERENCES.key),
    }


def _rankings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Ranking]]:
    """Yield each ranking and where it is."""
    path = inputs.tables("latent", model) / "latent.parquet"
    eta = pl.read_parquet(path) if path.is_file() else None  # not all have one
    for language, source, people in sources(inputs, model, unit=params.unit):
        found = by_name(source, people, params.min_count)
        if found is None:
            continue
        words = (found.words[name] for name in ("word", "lemma", "form"))
        lexica = inputs.datasets["lexica"]
        q = sentiment_shares.of_words(lexica, params.config(lexica, language), *words)
        rankings = [(0, READINGS.index("argmax"), sentiment_shares.by_pmi(found, q, params))]
        if eta is not None:
            part = eta.filter(pl.col("language") == language, pl.col("pos") == source.pos)
            rankings += [
                (
                    DEVIATIONS.index(deviation),
                    READINGS.index(reading),
                    by_latent(part, deviation, reading, params, found.of_gender()),
                )
                for deviation, reading in LATENT
            ]
        place = {"model": model, "language": language, "pos": source.pos}
        for deviation, reading, ranking in rankings:
            if ranking is not None:
                yield place | {"deviation": deviation, "reading": reading}, ranking
