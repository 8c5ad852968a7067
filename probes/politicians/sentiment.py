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
from plumbline.probes.stats.estimate import adjusted, estimates, significant, typed

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
        "category",
        "what words are ranked by: smoothed PMI over distinct names; or eta of the table `latent`: "
        "its largest values (faithful), or its contrast of genders, mean of sentiments (corrected)",
        labels=DEVIATIONS,
    ),
    Column(
        "reading",
        "category",
        "pairs: of a word and a sentiment, ranked by their own deviation; argmax: words, each with "
        "its most probable sentiment",
        labels=READINGS,
    ),
)
OVER_NAMES = "95% symmetric Bayesian bootstrap over names; by the latent-variable model none"
SHARES = columns.schema(
    "model language pos deviation reading gender sentiment",
    *PLACE,
    columns.GENDER,
    Column(
        "sentiment", "category", "most probable sentiment, or that of the pair", labels=SENTIMENTS
    ),
    Column("hits", "int64", "how many of the top_k have this sentiment", minimum=0),
    columns.TOP_K,
    columns.CANDIDATES,
    columns.share("base", "share of the sentiment among all candidates"),
    *estimates(cluster="name; by the latent-variable model word", method=OVER_NAMES),
)
DIFFERENCES = columns.schema(
    "model language pos deviation reading sentiment test",
    *PLACE,
    Column("sentiment", "category", "as in `shares`", labels=SENTIMENTS),
    Column(
        "test",
        "category",
        "words: the paper's unpaired permutation of words, exact; names: genders permuted over "
        "names; by the latent-variable model there is no p, see the page",
        labels=TESTS,
    ),
    columns.TOP_K,
    columns.CANDIDATES,
    *estimates(
        cluster="name; by `words` the words of both lists",
        method=f"{OVER_NAMES}; by `words` Newcombe's, words taken as independent",
        null="0: words of both lists, or genders of names, are permuted",
    ),
    columns.share(
        "p_bonferroni",
        "p times the number of tests of all models (each world for itself), languages, parts of "
        "speech and sentiments of one deviation, reading and test, at most 1",
        nullable=True,
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
    tests = pl.DataFrame(apart, infer_schema_length=None).with_columns(world=world)
    tests = adjusted(tests, over=["world", "deviation", "reading", "test"])
    bonferroni = (pl.col("p") * pl.col("family")).clip(upper_bound=1)
    tests = tests.with_columns(p_bonferroni=bonferroni.map_elements(significant, pl.Float64))
    tests = columns.sort_by_key(tests, DIFFERENCES)
    return {
        "shares": typed(pl.DataFrame(shared), SHARES, params.confidence),
        "differences": typed(tests, DIFFERENCES, params.confidence),
    }


def _rankings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Ranking]]:
    """Yield each ranking and where it is."""
    path = inputs.tables("latent", model) / "latent.parquet"
    eta = pl.read_parquet(path) if path.is_file() else None  # not all have one
    for language, source, people in sources(inputs, model):
        found = by_name(source, people, params.min_count)
        if found is None:
            continue
        words = (found.words[name] for name in ("word", "lemma", "form"))
        lexica = inputs.datasets["lexica"]
        q = sentiment_shares.of_words(lexica, params.config(lexica, language), *words)
        rankings = [("pmi", "argmax", sentiment_shares.by_pmi(found, q, params))]
        if eta is not None:
            part = eta.filter(pl.col("language") == language, pl.col("pos") == source.pos)
            rankings += [
                (*kind, by_latent(part, *kind, params, found.of_gender())) for kind in LATENT
            ]
        for deviation, reading, ranking in rankings:
            if ranking is not None:
                place = {"model": model, "language": language, "pos": source.pos}
                yield place | {"deviation": deviation, "reading": reading}, ranking
