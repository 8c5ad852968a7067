"""Analysis ``supersenses``: association of classes of words with genders.

Stańczak et al. (2023), Figure 3, compare the shares of supersenses among the words most associated
with each gender within a sentiment, using an unpaired permutation test. In addition, words are
ranked here by PMI, with intervals over names. A word counts towards its best class.
"""

from __future__ import annotations

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
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.word_counts import category, schema, share
from plumbline.probes.stats.estimate import (
    TESTED_ERROR,
    Estimate,
    Resampling,
    estimates,
    significant,
)
from plumbline.probes.stats.pmi import pmi, smoothed
from plumbline.probes.stats.shares import compare, leading, leading_shares, symmetric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

DATASETS = ("supersenses", "politicians")
OUTPUTS = ("associations",)
TABLES = ("pmi", "latent")
DEVIATIONS = ("pmi", "latent")
WHOLE = "all"  # all sentiments
PREFIXES = {"ADJ": "adj.", "VERB": "verb."}  # prefixes of the names of classes
ROUNDING = 1e-5  # tolerance for the rounding of deviations in tables
PAIRS = (("female", "male"), ("non-binary", "male"), ("non-binary", "female"))

CLASS = category("supersense", CLASSES, "class of words")
SUPERSENSES = schema(
    (
        CLASS,
        category("first", GENDERS, "gender from whose share the other is subtracted"),
        category("second", GENDERS, "gender whose share is subtracted"),
        category(
            "deviation",
            DEVIATIONS,
            "deviation that ranks words: smoothed PMI; or eta in the table `latent`, within a "
            "sentiment, as in the paper",
        ),
        category(
            "sentiment",
            (WHOLE, *SENTIMENTS),
            "sentiment of the ranked words; all: any sentiment",
        ),
    ),
    Column(
        "words_first", "int64", "number of words of the first gender; PMI: those above 0", minimum=1
    ),
    Column("words_second", "int64", "number of words of the second gender", minimum=1),
    *estimates(
        cluster="name; latent deviations: words of both lists",
        method="95% symmetric Bayesian bootstrap over names, with words ranked again; latent "
        "deviations: Newcombe's, given the two lists",
        null="words exchangeable between lists; no test for latent, whose lists share most words",
    ),
    share(
        "p_bonferroni",
        "p times the number of classes (13 or 15), which form the paper's family of tests",
        nullable=True,
    ),
)
WORDS = schema(
    (word_counts.LEMMA, CLASS),
    share("share", "part of the word that counts towards this class, one of its best classes"),
)
SCHEMAS = {"supersenses": SUPERSENSES, "words": WORDS}


class Params(Resampling):
    """Number of words, and settings of the comparison."""

    top_k: int = Field(100, ge=2, description="number of words per gender; 100 in the paper")
    smoothing: float = Field(0.5, gt=0, description="must equal `analysis.pmi.smoothing`")


class Drawn(NamedTuple):
    """Deviations of words in bootstrap replicates over names."""

    words: list[str]
    values: NDArray[np.float32]  # (replicates, words, genders); nan for missing genders
    names: tuple[int, ...]  # number of distinct names of each gender


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; they are empty unless it has outputs in English.

    Deviations are the smoothed values in the table ``pmi``, and the values in ``latent``.

    Raises UserError if the table ``pmi`` does not match the lists and the smoothing.
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
        people = inputs.datasets["politicians"] / f"{LANGUAGE}.parquet"
        lists = word_counts.Lists(folders, str(pos))
        counts = word_counts.count(lists, word_counts.read_people(people))
        replicates[str(pos)] = drawn(counts, part, params)
    parts = [by_class(table, classes, params, "pmi", replicates=replicates)]
    path = inputs.tables("latent", model) / "latent.parquet"
    if path.is_file():
        eta = pl.read_parquet(path).filter(language=LANGUAGE)
        parts += [by_class(within(eta, s), classes, params, "latent", s) for s in SENTIMENTS]
    words = []
    for pos in POS:
        lemmas, _, shares = classified(table, classes, pos)
        axes = {"word": lemmas, "supersense": _classes_of(pos)}
        words.append(
            word_counts.rows_of(axes, (), share=shares, pos=pos).filter(pl.col("share") > 0)
        )
    how = params.confidence, ["deviation"], "least"  # a family includes all sentiments
    constants: dict[str, Any] = {"model": model, "language": LANGUAGE}
    return {
        "supersenses": word_counts.table_of(SUPERSENSES, parts, *how, **constants),
        "words": word_counts.table_of(WORDS, words, None, **constants),
    }


def drawn(counts: word_counts.Counts, table: pl.DataFrame, params: Params) -> Drawn:
    """Compute smoothed PMI with Bayesian bootstrap weights for distinct names.

    ``table``: columns word, gender and value of the table ``pmi``, for one part of speech.

    Raises UserError if the values of the table do not match the lists and the smoothing.
    """
    chosen = np.flatnonzero(counts.words["word"].is_in(table["word"].unique().implode()))
    words = counts.words["word"][chosen]
    seen = pmi(counts.distinct.astype(np.float64), params.smoothing)[chosen]
    axes = {"word": words, "gender": [GENDERS[code] for code in counts.genders]}
    again = word_counts.rows_of(axes, (), again=seen)
    compared = table.join(again, on=["word", "gender"], how="left")
    equal = (pl.col("value") - pl.col("again")).abs() <= ROUNDING
    if wrong := compared.filter(~equal.fill_null(value=False))["word"].to_list():
        raise UserError(
            f"analysis.supersenses.smoothing: {params.smoothing:g} does not reproduce table pmi "
            f"({wrong[0]!r}); set it to analysis.pmi.smoothing, and run pmi again"
        )
    draws = word_counts.bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed, once=True)
    cells = smoothed(draws.bayesian, params.smoothing, params.seed, draws.merged)
    values = np.full((params.n_bootstrap, len(chosen), len(GENDERS)), np.nan, dtype=np.float32)
    values[:, :, counts.genders] = pmi(np.moveaxis(cells, -1, 0))[:, : len(chosen)]
    names = np.zeros(len(GENDERS), dtype=np.int64)
    names[counts.genders] = counts.names
    return Drawn(words.to_list(), values, tuple(names.tolist()))


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
        Table with the columns word, pos, gender and value, and a row for each lemma and gender.
    classes
        The dataset ``supersenses``, with labels as strings.
    source, sentiment
        Name of the deviations, one of ``DEVIATIONS``, and name of the sentiment.
    replicates
        Deviations in bootstrap replicates over names, by part of speech, from which intervals are
        computed. Without replicates, intervals are Newcombe's, over words.

    Returns
    -------
    A table with the columns of ``SUPERSENSES`` except the model, the language and p_bh.
    """
    rows = []
    for pos in POS:
        words, values, parts = classified(deviations, classes, pos)
        leaders = {g: parts[leading(values[:, i], params.top_k)] for i, g in enumerate(GENDERS)}
        drawn, shares = (replicates or {}).get(pos), {}
        if drawn:  # words are ranked again in each replicate
            places = [drawn.words.index(word) for word in words]
            for g, gender in enumerate(GENDERS):
                drawn_values = drawn.values[:, places, g]
                shares[gender] = leading_shares(drawn_values, parts, params.top_k)
        for first, second in PAIRS:
            sizes = len(leaders[first]), len(leaders[second])
            if not all(sizes):
                continue
            how = params.n_permutations, params.seed, params.confidence
            compared = compare(leaders[first], leaders[second], *how)
            for c, (supersense, result) in enumerate(zip(_classes_of(pos), compared, strict=True)):
                shown, p = result.difference, None if source == "latent" else result.p
                if drawn:
                    n = sum(drawn.names[GENDERS.index(gender)] for gender in (first, second))
                    differences = (shares[first] - shares[second])[:, c]
                    ends = symmetric(differences, shown.value, params.confidence, -1.0)
                    shown = Estimate(shown.value, *ends, n)
                key = {"pos": pos, "deviation": source, "sentiment": sentiment}
                key |= {"supersense": supersense, "first": first, "second": second}
                bonferroni = None if p is None else significant(min(1.0, p * len(compared)))
                row = shown.row(p=p, p_bonferroni=bonferroni, least=result.least_p, **key)
                row |= dict(zip(("words_first", "words_second"), sizes, strict=True))
                # the test is over words, whichever interval is used
                error = result.difference.standard_error(params.confidence)
                rows.append(row | {TESTED_ERROR: error, "reach": 1.0})
    return pl.DataFrame(rows, infer_schema_length=None)


def within(eta: pl.DataFrame, sentiment: str) -> pl.DataFrame:
    """Return the deviations of one sentiment minus the minimum of each gender and part of speech.

    The level of a gender's deviations in a sentiment is an artefact of normalisation; only the
    order matters.

    ``eta``: rows of the table ``latent`` for one language.
    """
    lowest = pl.col("value").min().over("pos", "gender")
    return eta.filter(sentiment=sentiment).with_columns(value=pl.col("value") - lowest + 1)


def classified(
    deviations: pl.DataFrame, classes: pl.DataFrame, pos: str
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Match lemmas, as written or in lower case, to their best classes.

    Returns
    -------
    list
        Sorted lemmas of the part of speech that have a class.
    (words, genders) array
        Their deviations; nan if missing.
    (words, classes) array
        Share of each word in each class; its best classes have equal shares.
    """
    names, word = _classes_of(pos), pl.col("word")
    best = classes.filter(pl.col("best"), pos=pos).group_by("lemma")
    parts = best.agg((pl.col("supersense") == name).mean().alias(name) for name in names)
    of_pos = deviations.filter(pl.col("pos") == pos).drop_nulls("value")
    value = pl.col("value")
    wide = of_pos.group_by("word").agg(
        value.filter(gender=gender).max().alias(gender) for gender in GENDERS
    )
    as_written = word.is_in(parts["lemma"].implode())
    lemma = pl.when(as_written).then(word).otherwise(word.str.to_lowercase())
    matched = wide.with_columns(lemma=lemma).join(parts, on="lemma").sort("word")
    values = matched.select(GENDERS).cast(pl.Float64)
    return matched["word"].to_list(), values.to_numpy(), matched.select(names).to_numpy()


def _classes_of(pos: str) -> list[str]:
    """Return the classes of a part of speech."""
    return [name for name in CLASSES if name.startswith(PREFIXES[pos])]
