"""Analysis ``sentiment``: sentiments of the words most associated with each gender.

Stańczak et al. (2023), Figures 4 and 6, show the shares of positive, negative and neutral words
among the 100 with the largest deviations, for men and for women. This analysis adds intervals, a
test over names, and adjustment for multiplicity over all models to the paper's test over words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.sentiment_shares import (
    DEVIATIONS,
    FAITHFUL,
    READINGS,
    Ranking,
    TopWords,
    by_latent,
    by_pmi,
    difference_rows,
    share_rows,
)
from plumbline.probes.politicians.words.word_counts import category
from plumbline.probes.stats.estimate import adjusted, estimates, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ("latent",)
TESTS = ("words", "names")
PLACE = (
    *word_counts.PLACE,
    category(
        "deviation",
        DEVIATIONS,
        "deviation that ranks words: smoothed PMI over distinct names, or eta in table `latent`",
    ),
    category(
        "reading",
        READINGS,
        "ranked units: pairs of word and sentiment (pairs), or words, each with its sentiment in "
        "the lexicon (argmax)",
    ),
)
SENTIMENT = category(
    "sentiment", SENTIMENTS, "sentiment of the word in the lexicon, or of the pair"
)
OVER_NAMES = "95% symmetric Bayesian bootstrap over names; null for the latent-variable model"
SHARES = Schema.keyed(
    (*PLACE, word_counts.GENDER, SENTIMENT),
    word_counts.TOP_K,
    word_counts.CANDIDATES,
    word_counts.share("base", "share of the sentiment among all candidates"),
    *estimates(cluster="name; latent-variable model: word", method=OVER_NAMES),
)
TEST = category(
    "test",
    TESTS,
    "words: exact unpaired permutation of words, as in the paper; names: genders permuted over "
    "names; there is no p for the latent-variable model",
)
DIFFERENCES = Schema.keyed(
    (*PLACE, SENTIMENT, TEST),
    *estimates(
        cluster="name; `words`: the words of both lists",
        method=f"{OVER_NAMES}; `words`: Newcombe's, for independent words",
        null="0: exchangeable words of both lists, or exchangeable genders of names",
    ),
)
SCHEMAS = {"shares": SHARES, "differences": DIFFERENCES}


class Params(TopWords):
    """Numbers of words, and settings of intervals and tests."""

    min_count: int = Field(ge=1, description="minimum number of names whose lists contain a word")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models; their columns are defined in :data:`SCHEMAS`.

    Raises UserError if no model has words with a known sentiment.
    """
    shares: list[dict[str, Any]] = []
    differences: list[dict[str, Any]] = []
    for model in inputs.models:
        for key, ranking in _rankings(inputs, model, params):
            shares += [key | row for row in share_rows(ranking, params.confidence)]
            differences += [key | row for row in difference_rows(ranking, params.confidence)]
    if not shares:
        raise UserError(
            "analysis.sentiment: no word in the outputs has a known sentiment; lower "
            "analysis.sentiment.min_count, or add the language to datasets.lexica"
        )
    worlds = [m for m in inputs.models if (inputs.weights(m) / "world.json").is_file()]
    # all real models form one family, and each world (control model) forms another
    world = pl.when(pl.col("model").is_in(worlds)).then("model").otherwise(pl.lit(""))
    tests = pl.DataFrame(differences, infer_schema_length=None).with_columns(world=world)
    tests = adjusted(tests, over=["world", "deviation", "reading", "test"])
    tests = word_counts.sort_by_key(tests, DIFFERENCES)
    return {
        "shares": typed(pl.DataFrame(shares), SHARES, params.confidence),
        "differences": typed(tests, DIFFERENCES, params.confidence),
    }


def _rankings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Ranking]]:
    """Yield the table cell and the ranking for each ranking of a model."""
    path = inputs.tables("latent", model) / "latent.parquet"
    eta = pl.read_parquet(path) if path.is_file() else None  # some models have no such table
    for language, source, people in word_counts.sources(inputs, model):
        lists = word_counts.by_name(source, people, params.min_count)
        if lists is None:
            continue
        q = params.sentiments(inputs.datasets["lexica"], language, lists.words)
        rankings = {("pmi", "argmax"): by_pmi(lists, q, params, language)}
        if eta is not None:
            part = eta.filter(language=language, pos=source.pos)
            names = lists.of_gender()
            for kind in READINGS:
                rankings[FAITHFUL, kind] = by_latent(part, kind, params, names, language)
        for (deviation, reading), ranking in rankings.items():
            if ranking is not None:
                key = {"model": model, "language": language, "pos": source.pos}
                yield key | {"deviation": deviation, "reading": reading}, ranking
