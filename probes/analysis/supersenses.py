"""Analysis ``supersenses``: which classes of words go with which gender.

Stańczak et al. (2023), figure 3: the shares of supersenses among the words that deviate most
towards a gender, compared by an unpaired permutation test; with intervals, and with several ways
to count a word that has several classes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from builders.lib.params import Params as Section
from builders.lib.schema import Column, Schema
from builders.politicians import GENDERS
from builders.supersenses import CLASSES, LANGUAGE
from builders.words import POS
from probes.estimates import ESTIMATE, finite, significant, typed
from probes.stats.membership import COUNTINGS, Comparison, compare, largest, membership
from probes.stats.multiplicity import benjamini_hochberg, bonferroni
from probes.stats.proportion import wilson
from probes.stats.rank_correlation import spearman
from probes.world.language import SIDES, World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from probes.stats.estimate import Estimate
    from probes.tables import Inputs

EACH = True
DATASETS = ("supersenses",)
OUTPUTS = ()
TABLES = ("pmi",)
DEVIATIONS = ("pmi", "latent")
UNITS = ("form", "lemma")
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
SCHEMAS = {"supersenses": SUPERSENSES, "recovery": RECOVERY}


class Params(Section):
    """How many words are compared, and how."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    largest: int = Field(100, ge=2, description="words for each gender, the paper has 100")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    replicates: int = Field(
        10_000, ge=99, description="relabellings, where the permutation test is not exact"
    )
    seed: int = Field(1, description="of the relabellings")


class Words(NamedTuple):
    """Words of one part of speech that have a class, and their deviations."""

    words: list[str]
    lemmas: list[str]
    values: NDArray[np.float64]  # (words, genders), nan where there is none
    weights: NDArray[np.float64]  # (words, classes)
    best: NDArray[np.bool_]
    unclassed: int


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; without rows for one that was not asked in English.

    Deviations are the smoothed values of the table ``pmi``. For a planted world ``recovery`` holds
    what was measured against what was planted.
    """
    (model,) = inputs.models
    table = pl.read_parquet(inputs.tables("pmi", model) / "pmi.parquet").filter(
        (pl.col("language") == LANGUAGE) & (pl.col("reading") == 1)
    )
    classes = pl.read_parquet(inputs.datasets["supersenses"] / f"{LANGUAGE}.parquet")
    people = dict(table.select("gender", "people").unique().iter_rows())
    found = by_class(table, classes, params, "pmi")
    found = found.with_columns(
        model=pl.lit(model),
        people_first=pl.col("first").replace_strict(people, default=None, return_dtype=pl.Int64),
        people_second=pl.col("second").replace_strict(people, default=None, return_dtype=pl.Int64),
    )
    tables = {"supersenses": typed(found, SUPERSENSES)}
    if (inputs.weights(model) / "world.json").is_file() and len(found):
        tables["recovery"] = _recovery(tables["supersenses"], table, classes, inputs, params)
    return tables


def by_class(
    deviations: pl.DataFrame, classes: pl.DataFrame, params: Params, source: str
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

    Returns
    -------
    DataFrame
        Columns as in ``SUPERSENSES``, but for the model and its people. ``p_bh`` is taken over all
        classes, parts of speech and pairs of genders of one unit and counting.
    """
    rows: list[dict[str, Any]] = []
    for pos in range(len(POS)):
        for unit in UNITS:
            words = _words(deviations, classes, pos, unit)
            if words.words:
                rows += _rows(words, pos, {"deviation": source, "unit": unit}, params)
    if not rows:
        empty = pl.from_arrow(SUPERSENSES.arrow().empty_table())
        assert isinstance(empty, pl.DataFrame)
        return empty
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(language=pl.lit(LANGUAGE))
    parts = []
    for part in table.partition_by("unit", "counting", maintain_order=True):
        adjusted = [significant(p) for p in benjamini_hochberg(part["p"].to_numpy())]
        parts.append(part.with_columns(p_bh=pl.Series(adjusted), family=pl.lit(len(part))))
    table = pl.concat(parts)
    labels = {"deviation": DEVIATIONS, "unit": UNITS, "counting": COUNTINGS}
    return table.with_columns(
        pl.col(name).replace_strict({v: i for i, v in enumerate(of)}, return_dtype=pl.Int64)
        for name, of in labels.items()
    )


def _recovery(
    found: pl.DataFrame,
    table: pl.DataFrame,
    classes: pl.DataFrame,
    inputs: Inputs,
    params: Params,
) -> pl.DataFrame:
    """Hold the differences of female and male shares against those of the planted log-ratios.

    The truth is what the same comparison finds where words are ranked by what was planted; in a
    null world it is 0. Classes of which the world has no word are left out.
    """
    (model,) = inputs.models
    weights = inputs.weights(model)
    world = World.model_validate(json.loads((weights / "world.json").read_text(encoding="utf-8")))
    truth = pl.read_parquet(weights / "planted.parquet").select(
        "word",
        pl.col("pos").replace_strict(POS, range(len(POS)), return_dtype=pl.Int64),
        "log_ratio_nats",
    )
    known = table.select("word", "lemma", "pos").unique().join(truth, on=["word", "pos"])
    sides = [
        known.with_columns(gender=pl.lit(GENDERS.index(g)), value=pl.col("log_ratio_nats") * side)
        for g, side in SIDES.items()
        if side
    ]
    planted = by_class(pl.concat(sides), classes, params, "pmi")
    reading = {"unit": "form", "counting": "best", "first": "female", "second": "male"}
    measured = _read(found, reading).join(_occurring(known, classes), on="supersense")
    if len(planted):
        measured = measured.join(
            _read(planted, reading).select("supersense", true="value"), on="supersense"
        )
    else:
        measured = measured.with_columns(true=pl.lit(0.0))
    rows = _measures(measured, params, null=world.null)
    base = {"model": model, "language": LANGUAGE, "world": int(world.null), "p": None, "p_bh": None}
    return typed(
        pl.DataFrame(
            [
                base
                | {"measure": measure, "cluster": "class", "null": versus}
                | {k: finite(getattr(e, k)) for k in ("value", "low", "high")}
                | {"n": e.n, "method": e.method}
                for measure, e, versus in rows
            ],
            infer_schema_length=None,
        ),
        RECOVERY,
    )


def _measures(
    measured: pl.DataFrame, params: Params, *, null: bool
) -> Iterator[tuple[str, Estimate, str]]:
    value, true = measured["value"].to_numpy(), measured["true"].to_numpy()
    if not null and len(value) >= 4:
        yield (
            "Spearman correlation of planted and measured differences of shares",
            spearman(true, value, params.confidence),
            "0: no relation",
        )
    decided = (true != 0) & (value != 0)
    if not null and decided.any():
        agree = int((np.sign(true) == np.sign(value))[decided].sum())
        yield (
            "share of classes whose measured sign is the planted one, where neither is 0",
            wilson(agree, int(decided.sum()), params.confidence),
            "0.5: coin",
        )
    held = int(measured.select(pl.col("true").is_between("low", "high").sum()).item())
    yield (
        f"share of {params.confidence:.0%} intervals with the planted difference",
        wilson(held, len(value), params.confidence),
        f"{params.confidence:g}: nominal, or more: lists are no random draws of words",
    )
    for column in ("p", "p_bonferroni"):
        hits = int((measured[column] <= 0.05).sum())
        yield (
            f"share of classes with {column} at or below 0.05",
            wilson(hits, len(value), params.confidence),
            "at most 0.05: nominal" if null else "no nominal value: many effects are planted",
        )


def _read(table: pl.DataFrame, reading: dict[str, str]) -> pl.DataFrame:
    """Return the rows of one reading."""
    return table.filter(
        *(pl.col(k) == SUPERSENSES[k].code(label) for k, label in reading.items())
    ).sort("supersense")


def _occurring(words: pl.DataFrame, classes: pl.DataFrame) -> pl.DataFrame:
    """Return the classes that some word is in, a column."""
    best = classes.filter("best").select("lemma", "pos", "supersense")
    return words.join(best, on=["lemma", "pos"]).select("supersense").unique()


def _words(deviations: pl.DataFrame, classes: pl.DataFrame, pos: int, unit: str) -> Words:
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
        _keep_one_form(matrix, lemmas)
    rows = list(kept.values())
    return Words(
        [word for word, _ in kept], lemmas, matrix, weights[rows], best[rows], len(lacking)
    )


def _keep_one_form(matrix: NDArray[np.float64], lemmas: list[str]) -> None:
    """Blank, for each gender, all forms of a lemma but the first of the largest value."""
    forms: dict[str, list[int]] = {}
    for row, lemma in enumerate(lemmas):
        forms.setdefault(lemma, []).append(row)
    for rows in forms.values():
        for column in range(matrix.shape[1]):
            values = matrix[rows, column]
            if not np.isnan(values).all():
                largest_one = rows[int(np.nanargmax(values))]
                matrix[[row for row in rows if row != largest_one], column] = np.nan


def _rows(
    words: Words, pos: int, names: dict[str, str], params: Params
) -> Iterator[dict[str, Any]]:
    start = next(i for i, c in enumerate(CLASSES) if c.startswith(("adj.", "verb.")[pos]))
    lists = {g: largest(words.values[:, i], params.largest) for i, g in enumerate(GENDERS)}
    for counting in COUNTINGS:
        if counting == "each" and POS[pos] == "ADJ":
            continue  # probabilities: nearly every adjective has some weight in every class
        parts = membership(words.weights, words.best, counting)
        for first, second in PAIRS:
            one, two = lists[first], lists[second]
            if not (len(one) and len(two)):
                continue
            compared = compare(
                parts[one], parts[two], params.replicates, params.seed, params.confidence
            )
            strict = bonferroni(np.array([c.p for c in compared]))
            for c, (found, p) in enumerate(zip(compared, strict, strict=True)):
                yield names | {
                    "pos": pos,
                    "supersense": start + c,
                    "first": GENDERS.index(first),
                    "second": GENDERS.index(second),
                    "counting": counting,
                    "both": _in_both(words, one, two, names["unit"]),
                    "classed": len(words.words),
                    "unclassed": words.unclassed,
                    "cluster": names["unit"],
                    "p_bonferroni": significant(p),
                    **_numbers(found, params),
                }


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
        "n": found.difference.n,
        "method": f"{params.confidence:.0%} {found.difference.method}, given the two lists",
        "null": f"words of both lists relabelled, {test}",
        "p": significant(found.p),
    }
