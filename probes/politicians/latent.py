"""Analysis ``latent``: words by gender and sentiment, from the outputs of ``associations``.

The latent-variable model of Stańczak et al. (2023), equations 10 to 13 and Tables 4 and 6, with
intervals, a permutation null and, for worlds, how much of what was planted is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.columns import (
    FAMILY,
    FEMALE,
    GENDER,
    LEMMA,
    MALE,
    PLACE,
    WORD,
)
from plumbline.probes.politicians.words.resample_counts import GenderCounts, by_gender
from plumbline.probes.politicians.words.sentiment_shares import of_words
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Estimate,
    Resampling,
    Table,
    finite,
    significant,
    typed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians import latent_model  # torch: imported where it works

    Array = NDArray[np.float64]

EACH = True
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ()
L1 = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
POSTERIOR = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
SETTLED = 1e-3  # share of probability that still has to move
SENTIMENT = Column("sentiment", "label", "value of the latent variable", labels=SENTIMENTS)
LATENT = Schema(
    columns=(
        *PLACE,
        WORD,
        LEMMA,
        SENTIMENT,
        GENDER,
        Column("rank", "int64", "by value, within gender and sentiment; 1: largest", minimum=1),
        Column(
            "q",
            "float64",
            "q(s | w), the share of this sentiment; null: the word is in no lexicon",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
        Column("people", "int64", "people of this gender", minimum=1),
        Column(
            "value_faithful",
            "float64",
            "the same with nothing added to counts and L1 by its subgradient, as the paper has it",
        ),
        Column("seed_sd", "float64", "SD of the grid's average over seeds, nats", minimum=0),
        Column("grid_sd", "float64", "SD over the weights, of means over seeds", minimum=0),
        *ESTIMATE,
        FAMILY,
    ),
    key=("language", "pos", "word", "sentiment", "gender"),
)
FIT = (
    Column("l1", "float64", "weight of the L1 penalty", minimum=0),
    Column("posterior", "float64", "weight of the posterior regulariser", minimum=0),
)
FITS = Schema(
    columns=(
        *PLACE,
        *FIT,
        Column("cross_entropy", "float64", "of observed and fitted shares, nats"),
        Column("kl", "float64", "posterior regulariser without its weight, nats"),
        Column("kl_word", "float64", "the same a word that has a q; null: none", nullable=True),
        Column("zeros", "float64", "share of deviations that are 0", minimum=0, maximum=1),
        Column("residual", "float64", "share of probability that still has to move", minimum=0),
        Column("settled", "bool", f"residual at or below {SETTLED:g} in every seed"),
        Column("words", "int64", "words in the model", minimum=1),
        Column("words_q", "int64", "words with a q", minimum=0),
    ),
    key=("language", "pos", "l1", "posterior"),
)
GRID = Schema(
    columns=(
        *PLACE,
        *FIT,
        WORD,
        SENTIMENT,
        GENDER,
        Column("value", "float64", "deviation with these weights, mean over seeds, nats"),
    ),
    key=("language", "pos", "l1", "posterior", "word", "sentiment", "gender"),
)
SEEDS = Schema(
    columns=(
        *PLACE,
        Column("seed", "int64", "of the start that Adam goes from"),
        WORD,
        SENTIMENT,
        GENDER,
        Column("value", "float64", "deviation from this start, mean over the weights, nats"),
    ),
    key=("language", "pos", "seed", "word", "sentiment", "gender"),
)
SHARES = Schema(
    (*PLACE, SENTIMENT, GENDER, *ESTIMATE), key=("language", "pos", "sentiment", "gender")
)
WORDS = Schema((*PLACE, WORD, GENDER, *ESTIMATE), key=("language", "pos", "word", "gender"))
TILT = Schema((*PLACE, *ESTIMATE), key=("language", "pos"))
SCHEMAS = {
    "latent": LATENT,
    "words": WORDS,
    "fits": FITS,
    "grid": GRID,
    "seeds": SEEDS,
    "shares": SHARES,
    "tilt": TILT,
}


class Params(Resampling):
    """How models are fitted, and how intervals and tests are made."""

    genders: list[Literal["male", "female", "non-binary"]] = Field(
        ["male", "female"], min_length=2, description="in the model; the paper has these two"
    )
    min_count: int = Field(ge=1, description="people whose lists must have the word")
    smoothing: float = Field(gt=0, description="added to every cell")
    l1: list[float] = Field(list(L1), min_length=1, description="weights of the L1 penalty")
    posterior: list[float] = Field(
        list(POSTERIOR), min_length=1, description="weights of the posterior regulariser"
    )
    penalty: Literal["proximal", "subgradient"] = Field(
        "proximal",
        description="how L1 acts: proximal gives exact zeros, subgradient is the paper's",
    )
    learn_background: bool = Field(False, description="fit m instead of the log word frequency")
    steps: int = Field(ge=1, description="of Adam")
    learning_rate: float = Field(gt=0, description="of Adam at first; falls along half a cosine")
    jitter: float = Field(0.01, ge=0, description="SD of the deviations that Adam starts from")
    seeds: list[int] = Field(min_length=1, description="of these; values are means over them")


class Found(NamedTuple):
    """What was fitted for one language and part of speech."""

    language: str
    pos: int
    genders: list[int]  # codes
    counts: GenderCounts
    q: Array  # (words, sentiments)
    weights: tuple[Array, Array]  # (fits,) each: l1 and posterior
    fits: list[latent_model.Fits]  # of each seed
    value: latent_model.Averages  # of one table: means over seeds
    seeds: Array  # (seeds, sentiments, genders, words)
    drawn: latent_model.Averages  # bootstrap
    faithful: Array  # (sentiments, genders, words)
    p: Array  # (sentiments, genders, words)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`; ``tilt`` without rows unless both men and women are in it.

    Raises
    ------
    UserError
        If no language has a lexicon and enough words.
    """
    (name,) = inputs.models
    outputs, lexica = inputs.outputs("associations", name), inputs.datasets["lexica"]
    found = []
    for language in word_counts.languages(outputs):
        if not (lexica / f"{language}.parquet").is_file():
            continue
        people = word_counts.read_people(inputs.datasets["politicians"] / f"{language}.parquet")
        for pos in range(len(POS)):
            source = word_counts.Lists((outputs / language,), pos)
            if part := _fitted(source, people, lexica, language, params):
                found.append(part)
    if not found:
        raise UserError(
            f"{outputs}: no language has both a lexicon and {params.min_count} lists with a word "
            "for each gender; add it to datasets.lexica.languages, or lower "
            "analysis.latent.min_count"
        )
    estimates = ("latent", "words", "shares", "tilt")
    tables = {table: Table(SCHEMAS[table], model=name) for table in estimates}
    tables["latent"].adjust()
    for part in found:
        _estimates(part, tables, params)
    each = {"fits": _fits, "grid": _grid, "seeds": _seeds}
    whole = {
        table: pl.concat([rows(part, params) for part in found]).with_columns(model=pl.lit(name))
        for table, rows in each.items()
    }
    return {table: typed(frame, SCHEMAS[table]) for table, frame in whole.items()} | {
        table: rows.frame() for table, rows in tables.items()
    }


def best(table: pl.DataFrame, number: int = 10) -> pl.DataFrame:
    """Return the words of largest deviation of each gender and sentiment, as in Table 4.

    Parameters
    ----------
    table
        The table ``latent``.
    """
    order = ["language", "pos", "gender", "sentiment", "rank"]
    return table.filter(pl.col("rank") <= number).sort(order)


def _fitted(
    source: word_counts.Lists,
    people: word_counts.People,
    lexica: Path,
    language: str,
    params: Params,
) -> Found | None:
    """Fit one language and part of speech; None where there is nothing to fit."""
    from plumbline.probes.politicians import latent_model as model

    genders = sorted(GENDERS.index(g) for g in set(params.genders))
    resampling = (params.n_bootstrap, params.n_permutations, params.seed)
    counts = by_gender(source, people, genders, params.min_count, *resampling)
    if not counts.words or len(counts.genders) < 2 or not counts.seen.sum(axis=0).all():
        return None
    q = of_words(counts.words, counts.lemmas, lexica, language)
    seen = counts.seen + params.smoothing
    starts = [model.begin(seen, len(SENTIMENTS), s, params.jitter) for s in params.seeds]
    how = model.Schedule(
        params.steps, params.learning_rate, params.penalty, params.learn_background
    )
    weights = model.grid(params.l1, params.posterior)
    fits = [model.fit(seen[None], q, *weights, start, how) for start in starts]
    each = [model.average(fit, len(fit.phi)) for fit in fits]
    value = model.Averages(*(np.mean(parts, axis=0) for parts in zip(*each, strict=True)))
    rng = np.random.default_rng(params.seed)
    drawn = counts.drawn + rng.standard_gamma(params.smoothing, counts.drawn.shape)
    parts = [  # each seed has its share of the replicates
        model.refit(drawn[i :: len(starts)], q, *weights, start, how)
        for i, start in enumerate(starts)
    ]
    tables = np.concatenate([seen[None], counts.permuted + params.smoothing])
    tested = model.refit(tables, q, *weights, starts[0], how).eta
    paper = how._replace(penalty="subgradient")
    bare = [model.fit(counts.seen[None], q, *weights, start, paper) for start in starts]
    return Found(
        language,
        source.pos,
        counts.genders,
        counts,
        q,
        weights,
        fits,
        value,
        np.stack([one.eta[0] for one in each]),
        model.Averages(*(np.concatenate(part) for part in zip(*parts, strict=True))),
        np.mean([fit.eta.mean(axis=0) for fit in bare], axis=0),
        model.permutation_p(tested[0], tested[1:]),
    )


def _estimates(found: Found, tables: dict[str, Table], params: Params) -> None:
    """Add deviations, words whatever their sentiment, sentiments, and the tilt of the genders."""
    counts, genders = found.counts, found.genders
    value, drawn = found.value, found.drawn
    method = f"{params.confidence:.0%} Bayesian bootstrap percentile over names, refitted"
    tail = (1 - params.confidence) / 2
    place: dict[str, Any] = {"language": found.language, "pos": found.pos, "cluster": "name"}
    none = place | {"null": "none: a description"}

    def each(seen: Array, replicates: Array) -> Iterator[tuple[tuple[int, ...], Estimate]]:
        """Yield every place in an array and the estimate there."""
        low, high = np.quantile(replicates, [tail, 1 - tail], axis=0)
        for at in np.ndindex(seen.shape):
            value, bottom, top = (float(x[at]) for x in (seen, low, high))
            yield at, Estimate(value, bottom, top, counts.names, method)

    over_grid = np.mean([fit.eta for fit in found.fits], axis=0).std(axis=0)
    over_seeds = found.seeds.std(axis=0)
    # equal values keep the order of the words, which is that of the alphabet
    order = np.argsort(-np.round(value.eta[0], 6), axis=2, kind="stable")
    rank = np.argsort(order, axis=2, kind="stable") + 1
    null = "gender labels permuted over names, refitted; of the gender's deviation less the others'"
    for (w, s, g), row in each(np.moveaxis(value.eta[0], 2, 0), np.moveaxis(drawn.eta, 3, 1)):
        tables["latent"].add(
            row,
            word=counts.words[w],
            lemma=counts.lemmas[w],
            sentiment=s,
            gender=genders[g],
            rank=int(rank[s, g, w]),
            q=finite(found.q[w, s]),
            count=int(counts.seen[w, g]),
            people=int(counts.people[g]),
            value_faithful=finite(found.faithful[s, g, w]),
            seed_sd=finite(over_seeds[s, g, w]),
            grid_sd=finite(over_grid[s, g, w]),
            null=null,
            p=found.p[s, g, w],
            **place,
        )
    for (w, g), row in each(value.words[0].T, np.moveaxis(drawn.words, 2, 1)):
        tables["words"].add(row, word=counts.words[w], gender=genders[g], **none)
    for (s, g), row in each(value.sentiments[0], drawn.sentiments):
        tables["shares"].add(row, sentiment=s, gender=genders[g], **none)
    if {MALE, FEMALE} <= set(genders):
        sides = [genders.index(FEMALE), genders.index(MALE)]
        both = (value.sentiments, drawn.sentiments)
        odds = [np.log(x[:, 0, sides] / x[:, 1, sides]) for x in both]
        seen, replicates = (x[:, 0] - x[:, 1] for x in odds)
        ((_, row),) = each(seen[0], replicates)
        tables["tilt"].add(row, **none)


def _fits(found: Found, _: Params) -> pl.DataFrame:
    known = int((~np.isnan(found.q).any(axis=1)).sum())
    out = []
    for i, (l1, posterior) in enumerate(zip(*found.weights, strict=True)):
        kl = float(np.mean([fit.divergence[i] for fit in found.fits]))
        left = max(float(fit.residual[i]) for fit in found.fits)
        out.append(
            {
                "language": found.language,
                "pos": found.pos,
                "l1": float(l1),
                "posterior": float(posterior),
                "cross_entropy": finite(np.mean([f.cross_entropy[i] for f in found.fits])),
                "kl": finite(kl),
                "kl_word": finite(kl / known) if known else None,
                "zeros": finite(np.mean([(f.eta[i] == 0).mean() for f in found.fits])),
                "residual": significant(left),
                "settled": left <= SETTLED,
                "words": len(found.counts.words),
                "words_q": known,
            }
        )
    return pl.DataFrame(out)


def _grid(found: Found, _: Params) -> pl.DataFrame:
    """Return the deviations of every pair of weights, means over seeds."""
    value = np.mean([fit.eta for fit in found.fits], axis=0)  # (fits, sentiments, genders, words)
    return _long(found, value, dict(zip(("l1", "posterior"), found.weights, strict=True)))


def _seeds(found: Found, params: Params) -> pl.DataFrame:
    """Return the deviations from every start, means over the grid."""
    return _long(found, found.seeds, {"seed": np.array(params.seeds)})


def _long(found: Found, value: Array, of: dict[str, NDArray[Any]]) -> pl.DataFrame:
    """Return a row each value.

    Parameters
    ----------
    value : (fits, sentiments, genders, words) array
        Deviations, nats.
    of
        Columns that tell the fits apart; (fits,) arrays.
    """
    fit, sentiment, gender, word = np.indices(value.shape).reshape(4, -1)
    return pl.DataFrame(
        {
            "language": pl.repeat(found.language, value.size, eager=True),
            "pos": np.full(value.size, found.pos),
            **{column: values[fit] for column, values in of.items()},
            "word": pl.Series(found.counts.words).gather(word),
            "sentiment": sentiment,
            "gender": np.array(found.genders)[gender],
            "value": np.round(value.ravel(), 6) + 0.0,
        }
    )
