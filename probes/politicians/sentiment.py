"""Analysis ``sentiment``: what the words that deviate most towards each gender feel like.

Stańczak et al. (2023), Figures 4 and 6: the shares of positive, negative and neutral words among
the 100 with the largest deviations, for men and for women; with intervals, a test whose unit is the
name beside the paper's, whose unit is the word, and control of multiplicity over all models.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.sentiment_shares import (
    DEVIATIONS,
    READINGS,
    Ranking,
    Settings,
    by_latent,
    by_pmi,
    difference_rows,
    of_words,
    share_rows,
)
from plumbline.probes.politicians.words.word_counts import Lists, by_name, languages
from plumbline.probes.stats.estimate import ESTIMATE, Resampling, adjusted, significant, typed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ("latent",)
ETA = {1: "value", 2: "value_faithful"}  # of DEVIATIONS: column of the table `latent`
TESTS = ("words", "names")
PLACE = (
    *columns.PLACE,
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
    columns.TOP_K,
    columns.CANDIDATES,
    Column("left_out", "int64", "words of which no lexicon knows the sentiment", minimum=0),
)
SHARES = Schema(
    columns=(
        *PLACE,
        columns.GENDER,
        Column(
            "sentiment", "label", "most probable sentiment, or that of the pair", labels=SENTIMENTS
        ),
        Column("hits", "int64", "how many of the top_k have this sentiment", minimum=0),
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
SCHEMAS = {"shares": SHARES, "differences": DIFFERENCES}


class Params(Resampling):
    """How many words are taken, and how intervals and tests are made."""

    top_k: int = Field(ge=1, description="words (or pairs) with the largest deviations")
    top_share: float = Field(
        gt=0, le=1, description="most that may be taken of all candidates, where they are few"
    )
    smoothing: float = Field(gt=0, description="added to every cell before PMI is computed")
    min_count: int = Field(ge=1, description="names in whose list a word must be")

    def settings(self) -> Settings:
        """Return what the ranking of words needs to know."""
        return Settings(**{k: getattr(self, k) for k in Settings._fields})


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``shares`` and ``differences``; columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If no model has words with a known sentiment.
    """
    shared: list[dict[str, Any]] = []
    apart: list[dict[str, Any]] = []
    settings = params.settings()
    for model in inputs.models:
        for place, found in _rankings(inputs, model, params):
            shared += [place | row for row in share_rows(found, settings)]
            apart += [place | row for row in difference_rows(found, settings)]
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
    return {
        "shares": typed(pl.DataFrame(shared), SHARES),
        "differences": typed(tests, DIFFERENCES).sort(DIFFERENCES.key),
    }


def _rankings(
    inputs: Inputs, model: str, params: Params
) -> Iterator[tuple[dict[str, Any], Ranking]]:
    """Yield each ranking and where it is."""
    outputs = inputs.outputs("associations", model)
    people, lexica = inputs.datasets["politicians"], inputs.datasets["lexica"]
    settings = params.settings()
    path = inputs.tables("latent", model) / "latent.parquet"
    eta = pl.read_parquet(path) if path.is_file() else None  # not all have one
    for language in languages(outputs):
        for pos in range(len(POS)):
            source = Lists((outputs / language,), pos)
            found = by_name(source, people / f"{language}.parquet", params.min_count)
            if found is None:
                continue
            place = {"model": model, "language": language, "pos": pos}
            words, lemmas = (found.words[column].to_list() for column in ("word", "lemma"))
            q = of_words(words, lemmas, lexica, language)
            ranking = by_pmi(found, q, settings)
            if ranking is not None:
                yield place | {"deviation": 0, "reading": READINGS.index("argmax")}, ranking
            if eta is None:
                continue
            part = eta.filter((pl.col("language") == language) & (pl.col("pos") == pos))
            for (i, column), (r, reading) in product(ETA.items(), enumerate(READINGS)):
                ranking = by_latent(part, reading, settings, found.of_gender(), column)
                if ranking is not None:
                    yield place | {"deviation": i, "reading": r}, ranking
