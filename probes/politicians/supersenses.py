"""Analysis ``supersenses``: which classes of words go with which gender.

Stańczak et al. (2023), Figure 3: the shares of supersenses among the words that deviate most
towards a gender within a sentiment, compared by an unpaired permutation test. Beside it the words
that deviate most by PMI, with intervals over names, and several ways to count a word that has
several classes.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.supersenses.build import CLASSES, LANGUAGE
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.columns import UNITS
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.politicians.words.sentiment_shares import over_names
from plumbline.probes.stats.estimate import (
    BONFERRONI,
    ESTIMATE,
    Resampling,
    adjusted,
    detectable_bonferroni,
    finite,
    significant,
)
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import (
    COUNTINGS,
    compare,
    leading,
    leading_shares,
    membership,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("supersenses", "politicians")
OUTPUTS = ("associations",)
TABLES = ("pmi", "latent")
DEVIATIONS = ("pmi", "latent", "latent contrast")
WHOLE = "all"  # sentiments together
UNTESTED = "none: lists of a sentiment have most words in common, which no relabelling parts"
PREFIXES = ("adj.", "verb.")  # of classes, by part of speech
ROUNDING = 1e-5  # of deviations in tables
PAIRS = (("female", "male"), ("non-binary", "male"), ("non-binary", "female"))

SUPERSENSES = columns.schema(
    "language pos supersense first second deviation sentiment unit counting",
    *columns.PLACE,
    Column("supersense", "label", "class of words", labels=CLASSES),
    Column("first", "label", "gender whose share is counted positive", labels=GENDERS),
    Column("second", "label", "gender that it is compared with", labels=GENDERS),
    Column(
        "deviation",
        "label",
        "what words are ranked by: smoothed PMI; eta of the table `latent` within a sentiment, as "
        "the paper; its contrast, that of the gender minus that of the other",
        labels=DEVIATIONS,
    ),
    Column(
        "sentiment",
        "label",
        "within which words are ranked; all: whatever their sentiment",
        labels=(WHOLE, *SENTIMENTS),
    ),
    columns.UNIT,
    Column(
        "counting",
        "label",
        "how a word of several classes counts; by latent deviations as the best",
        labels=COUNTINGS,
    ),
    Column("share_first", "float64", "of the class among the first gender's words", minimum=0),
    Column("low_first", "float64", "lower end of its Wilson interval", minimum=0),
    Column("high_first", "float64", "upper end of it", maximum=1),
    Column("words_first", "int64", "words of the first gender, of PMI those above 0", minimum=1),
    Column("share_second", "float64", "the same for the second gender", minimum=0),
    Column("low_second", "float64", "lower end of its Wilson interval", minimum=0),
    Column("high_second", "float64", "upper end of it", maximum=1),
    Column("words_second", "int64", "words of the second gender", minimum=1),
    Column("both", "int64", "words that are among those of either gender", minimum=0),
    Column("n_classified", "int64", "words with a class, that the lists are taken from", minimum=1),
    Column("n_unclassified", "int64", "words without a class, left out before", minimum=0),
    Column("people_first", "int64", "people of the first gender behind it", nullable=True),
    Column("people_second", "int64", "people of the second gender", nullable=True),
    *ESTIMATE,
    Column("low_words", "float64", "lower end of Newcombe's interval: words as units"),
    Column("high_words", "float64", "upper end of it"),
    columns.share(
        "p_bonferroni",
        "p times the number of classes, 13 or 15: the family of the paper",
        nullable=True,
    ),
    BONFERRONI,
    Column(
        "family",
        "int64",
        "tests that p_bh is taken over; null where none",
        nullable=True,
        minimum=1,
    ),
)
WORDS = columns.schema(
    "language pos word lemma supersense",
    *columns.PLACE,
    columns.WORD,
    columns.LEMMA,
    Column("supersense", "label", "a class that fits it best", labels=CLASSES),
    columns.share("share", "part of the word that is in the class"),
)
SCHEMAS = {"supersenses": SUPERSENSES, "words": WORDS}


class Params(Resampling):
    """How many words are compared, and how."""

    top_k: int = Field(100, ge=2, description="words for each gender, the paper has 100")
    smoothing: float = Field(0.5, gt=0, description="that of `analysis.pmi`")


class Words(NamedTuple):
    """Words of one part of speech that have a class, and their deviations."""

    words: list[str]
    lemmas: list[str]
    values: NDArray[np.float64]  # (words, genders), nan where there is none
    weights: NDArray[np.float64]  # (words, classes)
    best: NDArray[np.bool_]
    n_unclassified: int


class Drawn(NamedTuple):
    """Deviations of words in bootstrap replicates over names."""

    words: tuple[str, ...]
    values: NDArray[np.float32]  # (replicates, words, genders), nan where nobody has the gender
    names: tuple[int, ...]  # (genders,): distinct names


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; without rows for one without outputs in English.

    Deviations are the smoothed values of the table ``pmi``, and those of ``latent``.

    Raises UserError if the table is not of these lists with this smoothing.
    """
    (model,) = inputs.models
    readings = pl.read_parquet(inputs.tables("pmi", model) / "pmi.parquet").filter(
        language=LANGUAGE
    )
    table = readings.filter(reading=1)
    classes = pl.read_parquet(inputs.datasets["supersenses"] / f"{LANGUAGE}.parquet")
    people = dict(readings.filter(reading=0).select("gender", "people").unique().iter_rows())
    folders = (inputs.outputs("associations", model) / LANGUAGE,)
    replicates = {}
    for (pos, code), own in table.group_by("pos", "unit"):
        names = word_counts.read_people(inputs.datasets["politicians"] / f"{LANGUAGE}.parquet")
        counts = word_counts.count(word_counts.Lists(folders, pos, unit=UNITS[code]), names)
        replicates[pos, UNITS[code]] = drawn(counts, own, params)
    parts = [by_class(table, classes, params, "pmi", replicates=replicates)]
    path = inputs.tables("latent", model) / "latent.parquet"
    if path.is_file():
        eta = pl.read_parquet(path).filter(pl.col("language") == LANGUAGE)
        for source, sentiment in product(DEVIATIONS[1:], SENTIMENTS):
            ranked = within(eta, source, sentiment)
            parts.append(by_class(ranked, classes, params, source, sentiment))
    found = pl.concat([part for part in parts if len(part)] or parts[:1], how="diagonal_relaxed")
    found = adjusted(found, over=["deviation", "unit", "counting"])  # a family has all sentiments
    found = found.with_columns(family=pl.when(pl.col("p").is_not_null()).then("family"))
    of = pl.col("first", "second").replace_strict(people, default=None, return_dtype=pl.Int64)
    found = found.with_columns(of.name.prefix("people_"))
    words = [_classes(table, classes, pos) for pos in range(len(POS))]
    return {
        "supersenses": columns.table_of(SUPERSENSES, [found], params.confidence, model=model),
        "words": columns.table_of(WORDS, words, None, model=model, language=LANGUAGE),
    }


def drawn(counts: word_counts.Counts, table: pl.DataFrame, params: Params) -> Drawn:
    """Compute smoothed PMI again with Bayesian bootstrap weights for distinct names.

    ``table``: columns word, gender (codes) and value: of the table ``pmi``, one part of speech.

    Raises UserError if the values are not those of these lists with this smoothing.
    """
    place = {word: i for i, word in enumerate(counts.words)}
    chosen = np.array([place[w] for w in table["word"].unique().sort() if w in place], np.intp)
    seen = np.full((len(place) + 1, len(GENDERS)), np.nan)  # the last row: of no word there
    seen[:-1, counts.genders] = pmi(counts.distinct.astype(np.float64), params.smoothing)
    found = seen[[place.get(word, -1) for word in table["word"]], table["gender"].to_numpy()]
    wrong = ~(np.abs(found - table["value"].to_numpy()) <= ROUNDING)
    if wrong.any():
        raise UserError(
            f"analysis.supersenses.smoothing: with {params.smoothing:g} the lists do not give "
            f"the table pmi ({table['word'][int(wrong.argmax())]!r}); set it to "
            "analysis.pmi.smoothing, and make that table anew"
        )
    draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed, once=True)
    cells = smoothed(draws.bayesian, params.smoothing, params.seed, draws.merged)
    values = np.full((params.n_bootstrap, len(chosen), len(GENDERS)), np.nan, dtype=np.float32)
    values[:, :, counts.genders] = pmi(np.moveaxis(cells, -1, 0))[:, : len(chosen)]
    names = np.zeros(len(GENDERS), dtype=np.int64)
    names[counts.genders] = counts.names
    return Drawn(tuple(counts.words[w] for w in chosen), values, tuple(names.tolist()))


def by_class(
    deviations: pl.DataFrame,
    classes: pl.DataFrame,
    params: Params,
    source: str,
    sentiment: str = WHOLE,
    replicates: Mapping[tuple[int, str], Drawn] | None = None,
) -> pl.DataFrame:
    """Compare the classes of the words that deviate most towards each gender.

    Returned: columns as in ``SUPERSENSES``, but for the model and its people. ``p_bh`` is taken
    over all classes, parts of speech and pairs of genders of one unit and counting.

    ``deviations``: columns unit, word, lemma, pos, gender (codes) and value; a row for each word
    and gender.
    ``classes``: the dataset ``supersenses``.
    ``source``, ``sentiment``: name of the deviations, one of ``DEVIATIONS``, and the sentiment that
    they are within.
    ``replicates``: the deviations in bootstrap replicates over names, for parts of speech and
    units: they give intervals of differences. Without them those are Newcombe's, whose unit is the
    word.
    """
    rows: list[dict[str, Any]] = []
    for pos, unit in product(range(len(POS)), UNITS):
        words = classified(deviations, classes, pos, unit)
        if words.words:
            own = (replicates or {}).get((pos, unit))
            rows += _rows(words, pos, unit, params, source, own)
    if not rows:
        return columns.table_of(SUPERSENSES, [], params.confidence)
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = table.with_columns(
        language=pl.lit(LANGUAGE),
        deviation=DEVIATIONS.index(source),
        sentiment=(WHOLE, *SENTIMENTS).index(sentiment),
    )
    table = adjusted(table, over=["unit", "counting"])
    table = detectable_bonferroni(table, "classes", params.confidence)
    return pl.concat(table.partition_by("unit", "counting", maintain_order=True))


def within(eta: pl.DataFrame, source: str, sentiment: str) -> pl.DataFrame:
    """Return the deviations that words are ranked by within a sentiment.

    The level of a gender's deviations in a sentiment follows from normalisation and tells nothing:
    they are counted from their least, so that each word is above 0 and order alone matters. The
    contrast, of two genders, is of the words that are most probably of this sentiment, since it is
    at another level for all others; it is counted from its mean.

    ``eta``: rows of the table ``latent`` of one language.
    ``source``: one of ``DEVIATIONS``, not ``pmi``.
    """
    here = pl.col("sentiment") == SENTIMENTS.index(sentiment)
    value, q, word = pl.col("value"), pl.col("q"), ["unit", "pos", "word"]
    if source == "latent":
        return eta.filter(here).with_columns(
            value=value - value.min().over("unit", "pos", "gender") + 1
        )
    own = eta.filter(here & (q == q.max().over(word)))
    own = own.filter(pl.len().over(word) == 2)
    apart = own.with_columns(value=2 * value - value.sum().over(word))
    return apart.with_columns(value=value - value.mean().over("unit", "pos", "gender"))


def classified(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int, unit: str) -> Words:
    """Match words to classes by lemma, else by form, else by the lemma in small letters."""
    given = classes.filter(pl.col("pos") == pos).sort("lemma")
    lemmas, at = np.unique(given["lemma"].to_list(), return_inverse=True)
    row_of = {lemma: row for row, lemma in enumerate(lemmas.tolist())}
    shape = len(row_of), sum(name.startswith(PREFIXES[pos]) for name in CLASSES)
    weights, best = np.zeros(shape), np.zeros(shape, dtype=bool)
    column = given["supersense"].to_numpy() - _first(pos)
    weights[at, column] = given["weight"].to_numpy()
    best[at, column] = given["best"].to_numpy()
    values = (
        deviations.filter(pl.col("pos") == pos, pl.col("unit") == UNITS.index(unit))
        .group_by("word", "lemma", "gender")
        .agg(pl.col("value").max())
        .drop_nulls("value")
    )
    wide = values.select("word", "lemma").unique().sort("word", "lemma")
    for g in range(len(GENDERS)):
        own = values.filter(pl.col("gender") == g).select(
            "word", "lemma", pl.col("value").alias(str(g))
        )
        wide = wide.join(own, on=["word", "lemma"], how="left", maintain_order="left")
    rows = [
        next((row_of[w] for w in (lemma, word, lemma.lower()) if w in row_of), None)
        for word, lemma in wide.select("word", "lemma").iter_rows()
    ]
    kept = wide.with_columns(row=pl.Series(rows, dtype=pl.Int64)).drop_nulls("row")
    matrix = kept.select(map(str, range(len(GENDERS)))).cast(pl.Float64).to_numpy().copy()
    row = kept["row"].to_numpy()
    names = kept["word"].to_list(), kept["lemma"].to_list()
    return Words(*names, matrix, weights[row], best[row], len(wide) - len(kept))


def _classes(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int) -> pl.DataFrame:
    """Return the best classes of each word, a row each."""
    words = classified(deviations, classes, pos, "lemma")
    parts = words.best / np.maximum(words.best.sum(axis=1, keepdims=True), 1)
    row, column = np.nonzero(parts)
    return pl.DataFrame(
        {
            "pos": np.full(len(row), pos),
            "word": pl.Series(words.words, dtype=pl.String).gather(row),
            "lemma": pl.Series(words.lemmas, dtype=pl.String).gather(row),
            "supersense": column + _first(pos),
            "share": parts[row, column].round(6),
        }
    )


def _first(pos: int) -> int:
    """Return the place of the first class of a part of speech."""
    return next(i for i, name in enumerate(CLASSES) if name.startswith(PREFIXES[pos]))


def _rows(
    words: Words, pos: int, unit: str, params: Params, source: str, replicates: Drawn | None
) -> Iterator[dict[str, Any]]:
    lists = {g: leading(words.values[:, i], params.top_k) for i, g in enumerate(GENDERS)}
    for counting in COUNTINGS if source == "pmi" else COUNTINGS[:1]:
        if counting == "each" and POS[pos] == "ADJ":
            continue  # probabilities: nearly every adjective has some weight in every class
        parts = membership(words.weights, words.best, counting)
        shares = _replicated(words, replicates, parts, params) if replicates else {}
        for first, second in PAIRS:
            one, two = lists[first], lists[second]
            if not (len(one) and len(two)):
                continue
            key = {
                "pos": pos,
                "first": GENDERS.index(first),
                "second": GENDERS.index(second),
                "unit": UNITS.index(unit),
                "counting": COUNTINGS.index(counting),
                "both": len(np.intersect1d(one, two)),
                "n_classified": len(words.words),
                "n_unclassified": words.n_unclassified,
            }
            compared = compare(
                parts[one], parts[two], params.n_permutations, params.seed, params.confidence
            )
            for c, found in enumerate(compared):
                value, low, high, _, method = found.difference.at(params.confidence)
                shown = found.difference._replace(method=f"{method}, given the two lists")
                if replicates:
                    apart = (shares[first] - shares[second])[:, c]
                    n = sum(replicates.names[key[side]] for side in ("first", "second"))
                    shown = over_names(value, apart, n, params.confidence)
                test = "exact" if found.exact else f"{params.n_permutations:,} drawn"
                null = f"words of both lists relabelled, {test}"
                p = None if source == "latent" else found.p
                bonferroni = None if p is None else significant(min(1.0, p * len(compared)))
                sides = {
                    f"{name}_{side}": finite(number)
                    for side, share in (("first", found.first), ("second", found.second))
                    for name, number in zip(("share", "low", "high"), share[:3], strict=True)
                }
                yield shown.row(
                    supersense=_first(pos) + c,
                    words_first=found.first.n,
                    words_second=found.second.n,
                    low_words=finite(low),
                    high_words=finite(high),
                    p_bonferroni=bonferroni,
                    classes=len(compared),
                    cluster="name" if replicates else unit,
                    null=UNTESTED if p is None else null,
                    p=p,
                    critical=found.critical,
                    **key,
                    **sides,
                )


def _replicated(
    words: Words, replicates: Drawn, parts: NDArray[np.float64], params: Params
) -> dict[str, NDArray[np.float64]]:
    """Return shares (replicates, classes) of each gender: words ranked anew in each replicate."""
    place = {word: i for i, word in enumerate(replicates.words)}
    values = replicates.values[:, [place[word] for word in words.words]]
    found = {}
    for g, gender in enumerate(GENDERS):
        found[gender] = leading_shares(values[:, :, g], parts, params.top_k)
    return found
