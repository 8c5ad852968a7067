"""Analysis ``supersenses``: which classes of words go with which gender.

Stańczak et al. (2023), Figure 3: the shares of supersenses among the words that deviate most
towards a gender within a sentiment, compared by an unpaired permutation test. Next to it the words
that deviate most by PMI, with intervals over names. A word counts in its best class.
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
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts
from plumbline.probes.politicians.words.sentiment_shares import over_names
from plumbline.probes.stats.estimate import (
    TESTED_ERROR,
    Resampling,
    estimates,
    finite,
    significant,
)
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import compare, leading, leading_shares

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("supersenses", "politicians")
OUTPUTS = ("associations",)
TABLES = ("pmi", "latent")
DEVIATIONS = ("pmi", "latent", "latent contrast")
WHOLE = "all"  # sentiments together
PREFIXES = {"ADJ": "adj.", "VERB": "verb."}  # of classes
ROUNDING = 1e-5  # of deviations in tables
PAIRS = (("female", "male"), ("non-binary", "male"), ("non-binary", "female"))

SUPERSENSES = columns.schema(
    "language pos supersense first second deviation sentiment",
    *columns.PLACE,
    Column("supersense", "category", "class of words", labels=CLASSES),
    Column("first", "category", "gender whose share is counted positive", labels=GENDERS),
    Column("second", "category", "gender that it is compared with", labels=GENDERS),
    Column(
        "deviation",
        "category",
        "what words are ranked by: smoothed PMI; eta of the table `latent` within a sentiment, as "
        "the paper; its contrast, that of the gender minus that of the other",
        labels=DEVIATIONS,
    ),
    Column(
        "sentiment",
        "category",
        "within which words are ranked; all: whatever their sentiment",
        labels=(WHOLE, *SENTIMENTS),
    ),
    columns.share("share_first", "of the class among the first gender's words"),
    Column("words_first", "int64", "words of the first gender, of PMI those above 0", minimum=1),
    Column("words_second", "int64", "words of the second gender", minimum=1),
    *estimates(
        cluster="name; by latent deviations the words of both lists",
        method="95% symmetric Bayesian bootstrap over names, words ranked anew; by latent "
        "deviations Newcombe's, given the two lists",
        null="words of both lists relabelled; none by latent, whose lists have most words in "
        "common",
    ),
    columns.share(
        "p_bonferroni",
        "p times the number of classes, 13 or 15: the family of the paper",
        nullable=True,
    ),
)
WORDS = columns.schema(
    "language pos word supersense",
    *columns.PLACE,
    columns.LEMMA,
    Column("supersense", "category", "a class that fits it best", labels=CLASSES),
    columns.share("share", "part of the word that is in the class"),
)
SCHEMAS = {"supersenses": SUPERSENSES, "words": WORDS}


class Params(Resampling):
    """How many words are compared, and how."""

    top_k: int = Field(100, ge=2, description="words for each gender, the paper has 100")
    smoothing: float = Field(0.5, gt=0, description="that of `analysis.pmi`")


class Words(NamedTuple):
    """Lemmas of one part of speech that have a class, and their deviations."""

    words: list[str]
    values: NDArray[np.float64]  # (words, genders), nan where there is none
    parts: NDArray[np.float64]  # (words, classes): equal parts of a word in its best classes


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
    pmi_path = inputs.tables("pmi", model) / "pmi.parquet"
    table = pl.read_parquet(pmi_path).filter(language=LANGUAGE, unit="lemma", reading="smoothed")
    classes = pl.read_parquet(inputs.datasets["supersenses"] / f"{LANGUAGE}.parquet").with_columns(
        pl.col("pos").replace_strict(range(len(POS)), POS),
        pl.col("supersense").replace_strict(range(len(CLASSES)), CLASSES),
    )
    folders = (inputs.outputs("associations", model) / LANGUAGE,)
    replicates = {}
    for (pos,), part in table.group_by("pos"):
        people = word_counts.read_people(inputs.datasets["politicians"] / f"{LANGUAGE}.parquet")
        counts = word_counts.count(word_counts.Lists(folders, str(pos)), people)
        replicates[str(pos)] = drawn(counts, part, params)
    parts = [by_class(table, classes, params, "pmi", replicates=replicates)]
    path = inputs.tables("latent", model) / "latent.parquet"
    if path.is_file():
        eta = pl.read_parquet(path).filter(language=LANGUAGE)
        for source, sentiment in product(DEVIATIONS[1:], SENTIMENTS):
            ranked = within(eta, source, sentiment)
            parts.append(by_class(ranked, classes, params, source, sentiment))
    how = params.confidence, ["deviation"], "least"  # a family has all sentiments
    words = [_classes(table, classes, pos) for pos in POS]
    same: dict[str, Any] = {"model": model, "language": LANGUAGE}
    return {
        "supersenses": columns.table_of(SUPERSENSES, parts, *how, **same),
        "words": columns.table_of(WORDS, words, None, **same),
    }


def drawn(counts: word_counts.Counts, table: pl.DataFrame, params: Params) -> Drawn:
    """Compute smoothed PMI again with Bayesian bootstrap weights for distinct names.

    ``table``: columns word, gender and value: of the table ``pmi``, one part of speech.

    Raises UserError if the values are not those of these lists with this smoothing.
    """
    place = {word: i for i, word in enumerate(counts.words)}
    chosen = np.array([place[w] for w in table["word"].unique().sort() if w in place], np.intp)
    seen = np.full((len(place) + 1, len(GENDERS)), np.nan)  # the last row: of no word there
    seen[:-1, counts.genders] = pmi(counts.distinct.astype(np.float64), params.smoothing)
    gender = table["gender"].replace_strict(GENDERS, range(len(GENDERS))).to_numpy()
    found = seen[[place.get(word, -1) for word in table["word"]], gender]
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
    replicates: Mapping[str, Drawn] | None = None,
) -> pl.DataFrame:
    """Compare the classes of the words that deviate most towards each gender.

    Parameters
    ----------
    deviations
        Columns word, pos, gender and value; a row for each lemma and gender.
    classes
        The dataset ``supersenses``, labels as strings.
    source, sentiment
        Name of the deviations, one of ``DEVIATIONS``, and the sentiment that they are within.
    replicates
        The deviations in bootstrap replicates over names, for parts of speech: they give intervals
        of differences. Without them those are Newcombe's, whose unit is the word.

    Returns
    -------
    Columns as in ``SUPERSENSES``, but for the model, the language and p_bh.
    """
    rows: list[dict[str, Any]] = []
    for pos in POS:
        words = classified(deviations, classes, pos)
        if words.words:
            rows += _rows(words, pos, params, source, (replicates or {}).get(pos))
    if not rows:
        return pl.DataFrame()
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.with_columns(deviation=pl.lit(source), sentiment=pl.lit(sentiment))


def within(eta: pl.DataFrame, source: str, sentiment: str) -> pl.DataFrame:
    """Return the deviations that words are ranked by within a sentiment.

    The level of a gender's deviations in a sentiment follows from normalisation and tells nothing:
    they are counted from their least, so that each word is above 0 and order alone matters. The
    contrast, of two genders, is of the words that are most probably of this sentiment, since it is
    at another level for all others; it is counted from its mean.

    ``eta``: rows of the table ``latent`` of one language.
    ``source``: one of ``DEVIATIONS``, not ``pmi``.
    """
    here = pl.col("sentiment") == sentiment
    value, q, word = pl.col("value"), pl.col("q"), ["pos", "word"]
    if source == "latent":
        return eta.filter(here).with_columns(value=value - value.min().over("pos", "gender") + 1)
    likely = eta.filter(here & (q == q.max().over(word)))
    likely = likely.filter(pl.len().over(word) == 2)
    contrast = likely.with_columns(value=2 * value - value.sum().over(word))
    return contrast.with_columns(value=value - value.mean().over("pos", "gender"))


def classified(deviations: pl.DataFrame, classes: pl.DataFrame, pos: str) -> Words:
    """Match lemmas to their best classes, else as they are in lower case."""
    best = classes.filter(pl.col("best"), pos=pos)
    names = _classes_of(pos)
    column = best["supersense"].replace_strict(names, range(len(names)))
    lemmas, at = np.unique(best["lemma"].to_list(), return_inverse=True)
    parts = np.zeros((len(lemmas), len(names)))
    parts[at, column.to_numpy()] = 1
    parts /= parts.sum(axis=1, keepdims=True)
    row_of = {lemma: row for row, lemma in enumerate(lemmas.tolist())}
    wide = (
        deviations.filter(pl.col("pos") == pos)
        .drop_nulls("value")
        .group_by("word")
        .agg(pl.col("value").filter(gender=gender).max().alias(gender) for gender in GENDERS)
        .sort("word")
    )
    rows = [row_of.get(word, row_of.get(word.lower())) for word in wide["word"]]
    kept = wide.with_columns(row=pl.Series(rows, dtype=pl.Int64)).drop_nulls("row")
    values = kept.select(GENDERS).cast(pl.Float64).to_numpy().copy()
    return Words(kept["word"].to_list(), values, parts[kept["row"].to_numpy()])


def _classes_of(pos: str) -> list[str]:
    """Return the classes of a part of speech."""
    return [name for name in CLASSES if name.startswith(PREFIXES[pos])]


def _classes(deviations: pl.DataFrame, classes: pl.DataFrame, pos: str) -> pl.DataFrame:
    """Return the best classes of each word, a row each."""
    words = classified(deviations, classes, pos)
    row, column = np.nonzero(words.parts)
    return pl.DataFrame(
        {
            "word": pl.Series(words.words, dtype=pl.String).gather(row),
            "supersense": pl.Series(_classes_of(pos)).gather(column),
            "share": words.parts[row, column].round(6),
        }
    ).with_columns(pos=pl.lit(pos))


def _rows(
    words: Words, pos: str, params: Params, source: str, replicates: Drawn | None
) -> Iterator[dict[str, Any]]:
    lists = {g: leading(words.values[:, i], params.top_k) for i, g in enumerate(GENDERS)}
    shares = _replicated(words, replicates, params) if replicates else {}
    for first, second in PAIRS:
        one, two = lists[first], lists[second]
        if not (len(one) and len(two)):
            continue
        compared = compare(
            words.parts[one],
            words.parts[two],
            params.n_permutations,
            params.seed,
            params.confidence,
        )
        for c, (supersense, found) in enumerate(zip(_classes_of(pos), compared, strict=True)):
            shown = found.difference
            if replicates:
                n = sum(replicates.names[GENDERS.index(gender)] for gender in (first, second))
                drawn_shares = (shares[first] - shares[second])[:, c]
                shown = over_names(shown.value, drawn_shares, n, params.confidence)
            p = None if source == "latent" else found.p
            row = shown.row(
                p=p,
                p_bonferroni=None if p is None else significant(min(1.0, p * len(compared))),
                least=found.least_p,
                pos=pos,
                supersense=supersense,
                first=first,
                second=second,
                share_first=finite(found.first.value),
                words_first=len(one),
                words_second=len(two),
            )
            # the test's unit is the word, whatever the interval is over
            yield row | {TESTED_ERROR: found.difference.standard_error(params.confidence)}


def _replicated(words: Words, replicates: Drawn, params: Params) -> dict[str, NDArray[np.float64]]:
    """Return shares (replicates, classes) of each gender: words ranked anew in each replicate."""
    place = {word: i for i, word in enumerate(replicates.words)}
    values = replicates.values[:, [place[word] for word in words.words]]
    return {
        gender: leading_shares(values[:, :, g], words.parts, params.top_k)
        for g, gender in enumerate(GENDERS)
    }
