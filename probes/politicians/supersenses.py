"""Analysis ``supersenses``: which classes of words go with which gender.

Stańczak et al. (2023), figure 3: the shares of supersenses among the words that deviate most
towards a gender, compared by an unpaired permutation test; with intervals over names, and with
several ways to count a word that has several classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.supersenses.build import CLASSES, LANGUAGE
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import resample_counts, word_counts
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Bootstrap,
    Table,
    adjusted,
    finite,
    significant,
    typed,
)
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import (
    COUNTINGS,
    Comparison,
    alone,
    compare,
    leading,
    leading_shares,
    membership,
    symmetric,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = True
DATASETS = ("supersenses", "politicians")
OUTPUTS = ("associations",)
TABLES = ("pmi",)
DEVIATIONS = ("pmi", "latent")
UNITS = ("form", "lemma")
ROUNDING = 1e-5  # of deviations in tables
PAIRS = (("female", "male"), ("non-binary", "male"), ("non-binary", "female"))

SUPERSENSES = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of names and words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("supersense", "label", "class of words", labels=CLASSES),
        Column("first", "label", "gender whose share is counted positive", labels=GENDERS),
        Column("second", "label", "gender that it is compared with", labels=GENDERS),
        Column("deviation", "label", "table that words are ranked by", labels=DEVIATIONS),
        Column("unit", "label", "form: as found; lemma: one form for each", labels=UNITS),
        Column("counting", "label", "how a word of several classes counts", labels=COUNTINGS),
        Column("share_first", "float64", "of the class among the first gender's words", minimum=0),
        Column("low_first", "float64", "lower end of its Wilson interval", minimum=0),
        Column("high_first", "float64", "upper end of it", maximum=1),
        Column("words_first", "int64", "words of the first gender: the largest above 0", minimum=1),
        Column("share_second", "float64", "the same for the second gender", minimum=0),
        Column("low_second", "float64", "lower end of its Wilson interval", minimum=0),
        Column("high_second", "float64", "upper end of it", maximum=1),
        Column("words_second", "int64", "words of the second gender", minimum=1),
        Column("both", "int64", "words that are among those of either gender", minimum=0),
        Column("classed", "int64", "words with a class, that the lists are taken from", minimum=1),
        Column("unclassed", "int64", "words without a class, left out before", minimum=0),
        Column("people_first", "int64", "people of the first gender behind it", nullable=True),
        Column("people_second", "int64", "people of the second gender", nullable=True),
        *ESTIMATE,
        Column("low_words", "float64", "lower end of Newcombe's interval: words as units"),
        Column("high_words", "float64", "upper end of it"),
        Column(
            "p_bonferroni",
            "float64",
            "p times the number of classes, 13 or 15: the family of the paper",
            minimum=0,
            maximum=1,
        ),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=(
        *("language", "pos", "supersense", "first", "second"),
        *("deviation", "unit", "counting"),
    ),
)
WORDS = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the words"),
        Column("pos", "label", "universal part of speech", labels=POS),
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        Column("supersense", "label", "a class that fits it best", labels=CLASSES),
        Column("share", "float64", "part of the word that is in the class", minimum=0, maximum=1),
    ),
    key=("language", "pos", "word", "lemma", "supersense"),
)
SCHEMAS = {"supersenses": SUPERSENSES, "words": WORDS}


class Params(Bootstrap):
    """How many words are compared, and how."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    largest: int = Field(100, ge=2, description="words for each gender, the paper has 100")
    replicates: int = Field(
        10_000, ge=99, description="relabellings, where the permutation test is not exact"
    )
    smoothing: float = Field(0.5, gt=0, description="that of `analysis.pmi`")
    bootstrap: int = Field(400, ge=99, description="bootstrap replicates over names")


class Words(NamedTuple):
    """Words of one part of speech that have a class, and their deviations."""

    words: list[str]
    lemmas: list[str]
    values: NDArray[np.float64]  # (words, genders), nan where there is none
    weights: NDArray[np.float64]  # (words, classes)
    best: NDArray[np.bool_]
    unclassed: int


class Drawn(NamedTuple):
    """Deviations of words in bootstrap replicates over names."""

    words: tuple[str, ...]
    values: NDArray[np.float32]  # (replicates, words, genders), nan where nobody has the gender
    names: tuple[int, ...]  # (genders,): distinct names


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; without rows for one that was not asked in English.

    Deviations are the smoothed values of the table ``pmi``.

    Raises
    ------
    Problem
        If the table is not of these lists with this smoothing.
    """
    (model,) = inputs.models
    table = pl.read_parquet(inputs.tables("pmi", model) / "pmi.parquet").filter(
        (pl.col("language") == LANGUAGE) & (pl.col("reading") == 1)
    )
    classes = pl.read_parquet(inputs.datasets["supersenses"] / f"{LANGUAGE}.parquet")
    people = dict(table.select("gender", "people").unique().iter_rows())
    replicates = _replicates(table, inputs, model, params)
    found = by_class(table, classes, params, "pmi", replicates)
    found = found.with_columns(
        model=pl.lit(model),
        people_first=pl.col("first").replace_strict(people, default=None, return_dtype=pl.Int64),
        people_second=pl.col("second").replace_strict(people, default=None, return_dtype=pl.Int64),
    )
    words = [_classes(table, classes, pos) for pos in range(len(POS))]
    of_words = pl.concat(words).with_columns(model=pl.lit(model), language=pl.lit(LANGUAGE))
    return {"supersenses": typed(found, SUPERSENSES), "words": typed(of_words, WORDS)}


def _replicates(
    table: pl.DataFrame, inputs: Inputs, model: str, params: Params
) -> dict[int, Drawn]:
    """Return replicates of the deviations for each part of speech in the table."""
    found: dict[int, Drawn] = {}
    outputs = inputs.outputs("associations", model)
    for pos in sorted(table["pos"].unique()):
        folk = word_counts.people(inputs.datasets["politicians"] / f"{LANGUAGE}.parquet")
        found[pos] = drawn(
            word_counts.Lists((outputs / LANGUAGE,), pos),
            folk,
            table.filter(pl.col("pos") == pos),
            params.smoothing,
            params.bootstrap,
            params.seed,
        )
    return found


def drawn(
    source: word_counts.Lists,
    folk: word_counts.People,
    table: pl.DataFrame,
    smoothing: float,
    replicates: int,
    seed: int,
) -> Drawn:
    """Compute smoothed PMI again with Bayesian bootstrap weights for distinct names.

    Parameters
    ----------
    table
        Columns word, gender (codes) and value: of the table ``pmi``, one part of speech.

    Raises
    ------
    Problem
        If the values are not those of these lists with this smoothing.
    """
    counts = word_counts.count(source, folk)
    place = {word: i for i, word in enumerate(counts.words)}
    chosen = np.array([place.get(w, -1) for w in table["word"].unique().sort()], dtype=np.intp)
    chosen = chosen[chosen >= 0]
    seen = pmi(counts.lists.astype(np.float64), smoothing)
    group = {int(label): g for g, label in enumerate(counts.genders)}
    for word, gender, value in table.select("word", "gender", "value").iter_rows():
        found = seen[place[word], group[gender]] if word in place and gender in group else np.nan
        if not abs(found - value) <= ROUNDING:
            raise Problem(
                f"analysis.supersenses.smoothing: with {smoothing:g} the lists do not give the "
                f"table pmi ({word!r}); set it to analysis.pmi.smoothing, and make that table anew"
            )
    draws = resample_counts.draw(source, folk, counts, chosen, replicates, seed)
    cells = smoothed(draws.bayesian, smoothing, seed, draws.merged)
    values = np.full((replicates, len(chosen), len(GENDERS)), np.nan, dtype=np.float32)
    values[:, :, counts.genders] = pmi(np.moveaxis(cells, -1, 0))[:, : len(chosen)]
    names = np.zeros(len(GENDERS), dtype=np.int64)
    names[counts.genders] = counts.names
    return Drawn(tuple(counts.words[w] for w in chosen), values, tuple(names.tolist()))


def by_class(
    deviations: pl.DataFrame,
    classes: pl.DataFrame,
    params: Params,
    source: str,
    replicates: Mapping[int, Drawn] | None = None,
) -> pl.DataFrame:
    """Compare the classes of the words that deviate most towards each gender.

    Parameters
    ----------
    deviations
        Columns word, lemma, pos, gender (codes) and value; a row for each word and gender, or, of
        a latent-variable model, for each word, gender and sentiment: the largest counts then, and
        a word is in a list once.
    classes
        The dataset ``supersenses``.
    source
        Name of the deviations, one of ``DEVIATIONS``.
    replicates
        The deviations in bootstrap replicates over names, for each part of speech: they give the
        intervals of differences. Without them those are Newcombe's, whose unit is the word.

    Returns
    -------
    DataFrame
        Columns as in ``SUPERSENSES``, but for the model and its people. ``p_bh`` is taken over all
        classes, parts of speech and pairs of genders of one unit and counting.
    """
    rows: list[dict[str, Any]] = []
    for pos in range(len(POS)):
        for unit in UNITS:
            words = classed(deviations, classes, pos, unit)
            if words.words:
                names = {"deviation": source, "unit": unit}
                rows += _rows(words, pos, names, params, (replicates or {}).get(pos))
    if not rows:
        return Table(SUPERSENSES).frame()
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(language=pl.lit(LANGUAGE))
    table = adjusted(table, over=["unit", "counting"])
    table = pl.concat(table.partition_by("unit", "counting", maintain_order=True))
    labels = {"deviation": DEVIATIONS, "unit": UNITS, "counting": COUNTINGS}
    return table.with_columns(
        pl.col(name).replace_strict({v: i for i, v in enumerate(of)}, return_dtype=pl.Int64)
        for name, of in labels.items()
    )


def classed(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int, unit: str) -> Words:
    """Match words to classes by lemma, else by form, else by the lemma in small letters."""
    names = [i for i, name in enumerate(CLASSES) if name.startswith(("adj.", "verb.")[pos])]
    given = classes.filter(pl.col("pos") == pos)
    row_of = {lemma: row for row, lemma in enumerate(given["lemma"].unique().sort())}
    weights = np.zeros((len(row_of), len(names)))
    best = np.zeros((len(row_of), len(names)), dtype=bool)
    at = np.array([row_of[lemma] for lemma in given["lemma"]], dtype=np.int64)
    column = given["supersense"].to_numpy() - names[0]
    weights[at, column] = given["weight"].to_numpy()
    best[at, column] = given["best"].to_numpy()
    values = (
        deviations.filter(pl.col("pos") == pos)
        .group_by("word", "lemma", "gender")
        .agg(pl.col("value").max())
        .drop_nulls("value")
        .sort("word", "lemma", "gender")
    )
    kept: dict[tuple[str, str], int] = {}
    lacking: set[tuple[str, str]] = set()
    for word, lemma in values.select("word", "lemma").unique(maintain_order=True).iter_rows():
        row = next((row_of[w] for w in (lemma, word, lemma.lower()) if w in row_of), None)
        if row is None:
            lacking.add((word, lemma))
        else:
            kept[word, lemma] = row
    place = {key: i for i, key in enumerate(kept)}
    matrix = np.full((len(kept), len(GENDERS)), np.nan)
    for word, lemma, gender, value in values.select("word", "lemma", "gender", "value").iter_rows():
        if (word, lemma) in place:
            matrix[place[word, lemma], gender] = value
    lemmas = [lemma for _, lemma in kept]
    if unit == "lemma":
        matrix = alone(matrix.T, lemmas).T
    rows = list(kept.values())
    return Words(
        [word for word, _ in kept], lemmas, matrix, weights[rows], best[rows], len(lacking)
    )


def _classes(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int) -> pl.DataFrame:
    """Return the best classes of each word, a row each."""
    words = classed(deviations, classes, pos, "form")
    parts = words.best / np.maximum(words.best.sum(axis=1, keepdims=True), 1)
    row, column = np.nonzero(parts)
    return pl.DataFrame(
        {
            "pos": np.full(len(row), pos),
            "word": [words.words[i] for i in row],
            "lemma": [words.lemmas[i] for i in row],
            "supersense": column + _first(pos),
            "share": parts[row, column].round(6),
        },
        schema_overrides={"word": pl.String, "lemma": pl.String},
    )


def _first(pos: int) -> int:
    """Return the place of the first class of a part of speech."""
    return next(i for i, c in enumerate(CLASSES) if c.startswith(("adj.", "verb.")[pos]))


def _rows(
    words: Words, pos: int, names: dict[str, str], params: Params, replicates: Drawn | None
) -> Iterator[dict[str, Any]]:
    lists = {g: leading(words.values[:, i], params.largest) for i, g in enumerate(GENDERS)}
    for counting in COUNTINGS:
        if counting == "each" and POS[pos] == "ADJ":
            continue  # probabilities: nearly every adjective has some weight in every class
        parts = membership(words.weights, words.best, counting)
        over_names = _over_names(words, replicates, parts, names["unit"], params)
        for first, second in PAIRS:
            one, two = lists[first], lists[second]
            if not (len(one) and len(two)):
                continue
            compared = compare(
                parts[one], parts[two], params.replicates, params.seed, params.confidence
            )
            strict = [min(1.0, c.p * len(compared)) for c in compared]
            for c, (found, p) in enumerate(zip(compared, strict, strict=True)):
                yield names | {
                    "pos": pos,
                    "supersense": _first(pos) + c,
                    "first": GENDERS.index(first),
                    "second": GENDERS.index(second),
                    "counting": counting,
                    "both": _in_both(words, one, two, names["unit"]),
                    "classed": len(words.words),
                    "unclassed": words.unclassed,
                    "cluster": names["unit"],
                    "p_bonferroni": significant(p),
                    **_numbers(found, params),
                    **(over_names(first, second, c, found.difference.value) if replicates else {}),
                }


def _over_names(
    words: Words, replicates: Drawn | None, parts: NDArray[np.float64], unit: str, params: Params
) -> Callable[[str, str, int, float], dict[str, Any]]:
    """Return what gives the interval of a difference: words are ranked anew in each replicate."""
    drawn_shares: dict[str, NDArray[np.float64]] = {}  # (replicates, classes)
    if replicates is not None:
        place = {word: i for i, word in enumerate(replicates.words)}
        values = replicates.values[:, [place[word] for word in words.words]]
        for g, gender in enumerate(GENDERS):
            own = alone(values[:, :, g], words.lemmas) if unit == "lemma" else values[:, :, g]
            drawn_shares[gender] = leading_shares(own, parts, params.largest)

    def over_names(first: str, second: str, column: int, value: float) -> dict[str, Any]:
        assert replicates is not None
        drawn_here = (drawn_shares[first] - drawn_shares[second])[:, column]
        low, high = symmetric(drawn_here, value, params.confidence, -1.0)
        return {
            "low": finite(low),
            "high": finite(high),
            "n": sum(replicates.names[GENDERS.index(g)] for g in (first, second)),
            "cluster": "name",
            "method": f"{params.confidence:.0%} symmetric Bayesian bootstrap over names",
        }

    return over_names


def _in_both(words: Words, one: NDArray[np.int64], two: NDArray[np.int64], unit: str) -> int:
    of = words.lemmas if unit == "lemma" else words.words
    return len({of[i] for i in one} & {of[i] for i in two})


def _numbers(found: Comparison, params: Params) -> dict[str, Any]:
    test = "exact" if found.exact else f"{params.replicates:,} drawn"
    sides: dict[str, Any] = {}
    for side, share in (("first", found.first), ("second", found.second)):
        sides |= {
            f"share_{side}": finite(share.value),
            f"low_{side}": finite(share.low),
            f"high_{side}": finite(share.high),
            f"words_{side}": share.n,
        }
    return sides | {
        "value": finite(found.difference.value),
        "low": finite(found.difference.low),
        "high": finite(found.difference.high),
        "low_words": finite(found.difference.low),
        "high_words": finite(found.difference.high),
        "n": found.difference.n,
        "method": f"{params.confidence:.0%} {found.difference.method}, given the two lists",
        "null": f"words of both lists relabelled, {test}",
        "p": significant(found.p),
    }
