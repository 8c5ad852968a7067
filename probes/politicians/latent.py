"""Analysis ``latent``: words by gender and sentiment, from the outputs of ``associations``.

The latent-variable model of Stańczak et al. (2023), equations 10 to 13 and Tables 4 and 6, with
intervals, a permutation null and, for worlds, how much of what was planted is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.build import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians import latent_model as model
from plumbline.probes.politicians import word_counts
from plumbline.probes.politicians.latent_fits import Fits, Penalty, Schedule
from plumbline.probes.politicians.resample_counts import GenderCounts, by_gender
from plumbline.probes.politicians.sentiment_shares import of_words
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Estimate,
    Resampling,
    Table,
    adjusted,
    finite,
    significant,
    typed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]

EACH = True
DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
TABLES = ()
SETTLED = 1e-3  # share of probability that still has to move
WHAT = (
    Column("model", "string", "name of the model in params.yaml"),
    Column("language", "string", "language of names and words"),
    Column("pos", "label", "universal part of speech", labels=POS),
)
SIDE = (
    Column("sentiment", "label", "value of the latent variable", labels=SENTIMENTS),
    Column("gender", "label", "the paper's grouping", labels=GENDERS),
)
LATENT = Schema(
    columns=(
        *WHAT,
        Column("word", "string", "form of the word"),
        Column("lemma", "string", "its lemma"),
        *SIDE,
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
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("language", "pos", "word", "sentiment", "gender"),
)
FIT = (
    Column("l1", "float64", "weight of the L1 penalty", minimum=0),
    Column("posterior", "float64", "weight of the posterior regulariser", minimum=0),
)
FITS = Schema(
    columns=(
        *WHAT,
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
        *WHAT,
        *FIT,
        Column("word", "string", "form of the word"),
        *SIDE,
        Column("value", "float64", "deviation with these weights, mean over seeds, nats"),
    ),
    key=("language", "pos", "l1", "posterior", "word", "sentiment", "gender"),
)
SEEDS = Schema(
    columns=(
        *WHAT,
        Column("seed", "int64", "of the start that Adam goes from"),
        Column("word", "string", "form of the word"),
        *SIDE,
        Column("value", "float64", "deviation from this start, mean over the weights, nats"),
    ),
    key=("language", "pos", "seed", "word", "sentiment", "gender"),
)
SHARES = Schema(columns=(*WHAT, *SIDE, *ESTIMATE), key=("language", "pos", "sentiment", "gender"))
WORDS = Schema(
    columns=(*WHAT, Column("word", "string", "form of the word"), SIDE[1], *ESTIMATE),
    key=("language", "pos", "word", "gender"),
)
TILT = Schema(columns=(*WHAT, *ESTIMATE), key=("language", "pos"))
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

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    genders: list[Literal["male", "female", "non-binary"]] = Field(
        ["male", "female"], min_length=2, description="in the model; the paper has these two"
    )
    min_count: int = Field(ge=1, description="people whose lists must have the word")
    smoothing: float = Field(gt=0, description="added to every cell")
    l1: list[float] = Field(list(model.L1), min_length=1, description="weights of the L1 penalty")
    posterior: list[float] = Field(
        list(model.POSTERIOR), min_length=1, description="weights of the posterior regulariser"
    )
    penalty: Penalty = Field(
        "proximal",
        description="how L1 acts: proximal gives exact zeros, subgradient is the paper's",
    )
    learn_background: bool = Field(False, description="fit m instead of the log word frequency")
    steps: int = Field(ge=1, description="of Adam")
    learning_rate: float = Field(gt=0, description="of Adam at first; falls along half a cosine")
    jitter: float = Field(0.01, ge=0, description="SD of the deviations that Adam starts from")
    seeds: list[int] = Field(min_length=1, description="of these; values are means over them")

    @property
    def schedule(self) -> Schedule:
        """How models are fitted."""
        return Schedule(self.steps, self.learning_rate, self.penalty, self.learn_background)


class Found(NamedTuple):
    """What was fitted for one language and part of speech."""

    language: str
    pos: int
    genders: list[int]  # codes
    counts: GenderCounts
    q: Array  # (words, sentiments)
    fits: list[Fits]  # of each seed
    value: model.Averages  # of one table: means over seeds
    seeds: Array  # (seeds, sentiments, genders, words)
    drawn: model.Averages  # bootstrap
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
    Problem
        If no language has a lexicon and enough words.
    """
    (name,) = inputs.models
    outputs, people = inputs.outputs("associations", name), inputs.datasets["politicians"]
    found = []
    for language in word_counts.languages(outputs):
        path = inputs.datasets["lexica"] / f"{language}.parquet"
        if not path.is_file():
            continue
        folk = word_counts.people(people / f"{language}.parquet")
        for pos in range(len(POS)):
            source = word_counts.Lists((outputs / language,), pos)
            part = _fitted(source, folk, inputs.datasets["lexica"], language, params)
            if part:
                found.append(part)
    if not found:
        raise Problem(
            f"{outputs}: no language has both a lexicon and {params.min_count} lists with a word "
            "for each gender; add it to datasets.lexica.languages, or lower "
            "analysis.latent.min_count"
        )
    tables = {table: Table(SCHEMAS[table], model=name) for table in ("words", "shares", "tilt")}
    for part in found:
        _averages(part, tables, params)
    each = {"latent": _words, "fits": _fits, "grid": _grid, "seeds": _seeds}
    whole = {
        table: pl.concat([rows(part, name, params) for part in found])
        for table, rows in each.items()
    }
    whole["latent"] = adjusted(whole["latent"])
    return {table: typed(frame, SCHEMAS[table]) for table, frame in whole.items()} | {
        name: table.frame() for name, table in tables.items()
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
    folk: word_counts.People,
    lexica: Path,
    language: str,
    params: Params,
) -> Found | None:
    """Fit one language and part of speech; None where there is nothing to fit."""
    genders = sorted(GENDERS.index(g) for g in set(params.genders))
    resampling = (params.bootstrap, params.permutations, params.seed)
    counts = by_gender(source, folk, genders, params.min_count, *resampling)
    if not counts.words or len(counts.genders) < 2 or not counts.seen.sum(axis=0).all():
        return None
    q = of_words(counts.words, counts.lemmas, lexica, language)
    seen = counts.seen + params.smoothing
    starts = [model.begin(seen, len(SENTIMENTS), s, params.jitter) for s in params.seeds]
    weights, how = model.grid(params.l1, params.posterior), params.schedule
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
        fits,
        value,
        np.stack([one.eta[0] for one in each]),
        model.Averages(*(np.concatenate(part) for part in zip(*parts, strict=True))),
        np.mean([fit.eta.mean(axis=0) for fit in bare], axis=0),
        model.permutation_p(tested[0], tested[1:]),
    )


def _words(found: Found, name: str, params: Params) -> pl.DataFrame:
    value, counts = found.value.eta[0], found.counts
    low, high = model.percentiles(found.drawn.eta, params.confidence)
    over_grid = np.mean([fit.eta for fit in found.fits], axis=0).std(axis=0)
    over_seeds = found.seeds.std(axis=0)
    # equal values keep the order of the words, which is that of the alphabet
    order = np.argsort(-np.round(value, 6), axis=2, kind="stable")
    rank = np.argsort(order, axis=2, kind="stable") + 1
    out: list[dict[str, Any]] = []
    for w, word in enumerate(counts.words):
        for s in range(len(SENTIMENTS)):
            for g, gender in enumerate(found.genders):
                at = (s, g, w)
                out.append(
                    {
                        "model": name,
                        "language": found.language,
                        "pos": found.pos,
                        "word": word,
                        "lemma": counts.lemmas[w],
                        "sentiment": s,
                        "gender": gender,
                        "rank": int(rank[at]),
                        "q": finite(found.q[w, s]),
                        "count": int(counts.seen[w, g]),
                        "people": int(counts.people[g]),
                        "value_faithful": finite(found.faithful[at]),
                        "seed_sd": finite(over_seeds[at]),
                        "grid_sd": finite(over_grid[at]),
                        "value": finite(value[at]),
                        "low": finite(low[at]),
                        "high": finite(high[at]),
                        "n": counts.names,
                        "cluster": "name",
                        "method": f"{params.confidence:.0%} Bayesian bootstrap percentile over "
                        "names, refitted",
                        "null": "gender labels permuted over names, refitted; of the gender's "
                        "deviation less the others'",
                        "p": significant(found.p[at]),
                    }
                )
    return pl.DataFrame(out, infer_schema_length=None)


def _fits(found: Found, name: str, params: Params) -> pl.DataFrame:
    known = int((~np.isnan(found.q).any(axis=1)).sum())
    out = []
    for i, (l1, posterior) in enumerate(zip(*model.grid(params.l1, params.posterior), strict=True)):
        kl = float(np.mean([fit.divergence[i] for fit in found.fits]))
        left = max(float(fit.residual[i]) for fit in found.fits)
        out.append(
            {
                "model": name,
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


def _grid(found: Found, name: str, params: Params) -> pl.DataFrame:
    """Return the deviations of every pair of weights, means over seeds."""
    value = np.mean([fit.eta for fit in found.fits], axis=0)  # (fits, sentiments, genders, words)
    l1, posterior = model.grid(params.l1, params.posterior)
    return _long(found, name, value, {"l1": l1, "posterior": posterior})


def _seeds(found: Found, name: str, params: Params) -> pl.DataFrame:
    """Return the deviations from every start, means over the grid."""
    return _long(found, name, found.seeds, {"seed": np.array(params.seeds)})


def _long(found: Found, name: str, value: Array, of: dict[str, NDArray[Any]]) -> pl.DataFrame:
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
            "model": pl.repeat(name, value.size, eager=True),
            "language": pl.repeat(found.language, value.size, eager=True),
            "pos": np.full(value.size, found.pos),
            **{column: values[fit] for column, values in of.items()},
            "word": pl.Series(found.counts.words).gather(word),
            "sentiment": sentiment,
            "gender": np.array(found.genders)[gender],
            "value": np.round(value.ravel(), 6) + 0.0,
        }
    )


def _averages(found: Found, tables: dict[str, Table], params: Params) -> None:
    """Add what the fits say of words, whatever their sentiment, and of sentiments."""
    place: dict[str, Any] = {"language": found.language, "pos": found.pos}
    place |= {"cluster": "name", "null": "none: a description"}
    method = f"{params.confidence:.0%} Bayesian bootstrap percentile over names, refitted"
    value, drawn = found.value, found.drawn
    words, shares = (model.percentiles(x, params.confidence) for x in drawn[1:])

    def estimate(value: Any, limits: tuple[Any, Any]) -> Estimate:
        low, high = (float(x) for x in limits)
        return Estimate(float(value), low, high, found.counts.names, method)

    for w, word in enumerate(found.counts.words):
        for g, gender in enumerate(found.genders):
            limits = words[0][g, w], words[1][g, w]
            row = estimate(value.words[0, g, w], limits)
            tables["words"].add(row, word=word, gender=gender, **place)
    for s in range(len(SENTIMENTS)):
        for g, gender in enumerate(found.genders):
            limits = shares[0][s, g], shares[1][s, g]
            row = estimate(value.sentiments[0, s, g], limits)
            tables["shares"].add(row, sentiment=s, gender=gender, **place)
    sides = [GENDERS.index(name) for name in ("female", "male")]
    if set(sides) <= set(found.genders):
        female, male = (found.genders.index(gender) for gender in sides)
        seen, replicates = (
            np.log(x[:, 0, female] / x[:, 1, female]) - np.log(x[:, 0, male] / x[:, 1, male])
            for x in (value.sentiments, drawn.sentiments)
        )
        limits = model.percentiles(replicates, params.confidence)
        tables["tilt"].add(estimate(seen[0], limits), **place)
