"""Analysis ``latent``: words by gender and sentiment, from the outputs of ``associations``.

The latent-variable model of Stańczak et al. (2023), equations 10 to 13 and Tables 4 and 6, with
intervals, a permutation null and, for worlds, how much of what was planted is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.columns import FEMALE, MALE, UNITS, Counting
from plumbline.probes.politicians.words.resample_counts import by_gender
from plumbline.probes.politicians.words.sentiment_shares import Lexicon, of_words
from plumbline.probes.stats.estimate import (
    CRITICAL,
    ESTIMATE,
    TESTED_ERROR,
    Resampling,
    least_p,
)
from plumbline.probes.stats.tests import critical, permutation_p

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians import latent_model as model  # torch: where it works

    Array = NDArray[np.float64]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
FAMILIES: dict[str, tuple[str, ...]] = {"latent": ()}  # all its tests
L1 = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
POSTERIOR = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
CONVERGED = 1e-2  # nats
LONGER, SLOWER = 16, 4  # times the steps, share of the rate: a fit that shows what others miss
NULL = "gender labels permuted over names, refitted; of the gender's deviation less the others'"
METHOD = "normal, root mean square distance of replicates from the value"
SENTIMENT = Column("sentiment", "label", "value of the latent variable", labels=SENTIMENTS)
CELL = (columns.WORD, SENTIMENT, columns.GENDER)
FIT = (
    Column("l1", "float64", "weight of the L1 penalty", minimum=0),
    Column("posterior", "float64", "weight of the posterior regulariser", minimum=0),
)
LATENT = columns.schema(
    "language pos word sentiment gender",
    *columns.PLACE,
    columns.UNIT,
    columns.WORD,
    columns.LEMMA,
    SENTIMENT,
    columns.GENDER,
    Column("rank", "int64", "by value, within gender and sentiment; 1: largest", minimum=1),
    columns.share(
        "q", "q(s | w), the share of this sentiment; null: the word is in no lexicon", nullable=True
    ),
    Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
    Column("people", "int64", "people of this gender", minimum=1),
    Column(
        "seed_sd",
        "float64",
        "SD of the grid's average over the starts of `seeds`, nats: what the data leave open",
        minimum=0,
    ),
    Column("grid_sd", "float64", "SD over the weights, nats", minimum=0),
    *ESTIMATE,
    columns.FAMILY,
)
FITS = columns.schema(
    "language pos l1 posterior",
    *columns.PLACE,
    *FIT,
    Column("cross_entropy", "float64", "of observed and fitted shares, nats"),
    Column(
        "excess",
        "float64",
        "cross-entropy above the least there can be, the entropy of the observed shares, nats",
        minimum=0,
    ),
    Column("kl", "float64", "posterior regulariser without its weight, nats; at least 0"),
    Column("kl_word", "float64", "the same a word that has a q; null: none", nullable=True),
    columns.share("zeros", "share of deviations that are 0"),
    Column(
        "gap",
        "float64",
        "most by which what is minimised, from this start and those of `seeds`, is above the "
        f"least that is known, of a fit of {LONGER} times the steps too, nats",
        minimum=0,
    ),
    Column("converged", "bool", f"gap at or below {CONVERGED:g}"),
    Column("words", "int64", "words in the model", minimum=1),
    Column("words_q", "int64", "words with a q", minimum=0),
)
WEIGHTED = Column("value", "float64", "deviation with these weights, nats")
STARTED = Column("value", "float64", "deviation from this start, mean over the weights, nats")
START = Column("seed", "int64", "of another start")


def _schema(*key: Column, of: tuple[Column, ...] = ESTIMATE) -> Schema:
    names = tuple(column.name for column in key)
    return Schema((*columns.PLACE, *key, *of), ("language", "pos", *names))


SCHEMAS = {
    "latent": LATENT,
    "words": _schema(columns.WORD, columns.GENDER),
    "fits": FITS,
    "grid": _schema(*FIT, *CELL, of=(WEIGHTED,)),
    "seeds": _schema(START, *CELL, of=(STARTED,)),
    "shares": _schema(SENTIMENT, columns.GENDER),
    "tilt": _schema(),
}


class Params(Counting, Lexicon, Resampling):
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
    steps: int = Field(ge=1, description="of Adam, where l1 is above 0")
    learning_rate: float = Field(gt=0, description="of Adam at first; falls along half a cosine")
    jitter: float = Field(
        1.0, ge=0, description="SD, nats, of what other starts say of sentiment and gender together"
    )
    seeds: list[int] = Field(min_length=1, description="of other starts, for seed_sd and gap")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; columns as in :data:`SCHEMAS`.

    ``tilt`` is without rows unless both men and women are in it.

    Raises UserError if no language has a lexicon and enough words.
    """
    (model,) = inputs.models
    lexica = inputs.datasets["lexica"]
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for language, source, path in word_counts.sources(inputs, model, unit=params.unit):
        if (lexica / f"{params.config(lexica, language)}.parquet").is_file():
            people = word_counts.read_people(path)
            for name, table in _fitted(source, people, lexica, language, params).items():
                found[name].append(table.with_columns(language=pl.lit(language)))
    if not found["latent"]:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no language has both a lexicon and "
            f"{params.min_count} lists with a word for each gender; add it to "
            "datasets.lexica.languages, or lower analysis.latent.min_count"
        )
    of, least = params.confidence, least_p(params.n_permutations)
    return {
        name: columns.table_of(SCHEMAS[name], tables, of, FAMILIES.get(name), least, model=model)
        for name, tables in found.items()
    }


def _fitted(
    source: word_counts.Lists,
    people: word_counts.People,
    lexica: Path,
    language: str,
    params: Params,
) -> dict[str, pl.DataFrame]:
    """Fit one language and part of speech, and return its tables; none where nothing can be fit."""
    from plumbline.probes.politicians import latent_model as model

    genders = sorted(GENDERS.index(g) for g in set(params.genders))
    resampling = (params.n_bootstrap, params.n_permutations, params.seed)
    counts = by_gender(source, people, genders, params.min_count, *resampling)
    if not counts.words or len(counts.genders) < 2 or not counts.seen.sum(axis=0).all():
        return {}
    q = of_words(lexica, params.config(lexica, language), counts.words, counts.lemmas, counts.forms)
    seen = (counts.seen + params.smoothing)[None]
    how = model.Schedule(params.steps, params.learning_rate)
    weights = model.grid(params.l1, params.posterior)
    fits = model.fit(seen, q, *weights, how)
    value = model.average(fits, len(fits.phi))
    shape = fits.eta[0].shape
    others = [
        model.fit(seen, q, *weights, how, model.tilt(seed, params.jitter, shape))
        for seed in params.seeds
    ]
    longer = model.Schedule(LONGER * params.steps, params.learning_rate / SLOWER)
    every = [fits, *others, model.fit(seen, q, *weights, longer)]
    rng = np.random.default_rng(params.seed)
    tables = counts.drawn + rng.standard_gamma(params.smoothing, counts.drawn.shape)
    drawn = model.refit(tables, q, *weights, how)
    permuted = model.refit(counts.permuted + params.smoothing, q, *weights, how).eta

    of: dict[str, Any] = {"word": counts.words, "sentiment": range(len(SENTIMENTS))}
    of |= {"gender": counts.genders, "l1": params.l1, "posterior": params.posterior}
    of |= {"seed": params.seeds, "pos": [source.pos]}
    method = f"{params.confidence:.0%} Bayesian bootstrap over names, refitted: {METHOD}"
    reach = float(ndtri((1 + params.confidence) / 2))

    def rows(axes: str, seen: Array, replicates: Array | None = None, **more: Any) -> pl.DataFrame:
        """Return a row for each place in an array, with limits if there are replicates of it.

        L1 leaves apart what chance moves: replicates, which chance has moved twice, are beyond the
        value as it is beyond the truth, so that their quantiles miss it. Distances from the value
        hold that bias, whatever its sign.
        """
        limits: tuple[Array, ...] = ()
        if replicates is not None:
            half = reach * np.sqrt(((replicates - seen) ** 2).mean(axis=0))
            limits = (seen - half, seen + half)
        if axes == "sentiment gender":  # shares
            limits = tuple(limit.clip(0, 1) for limit in limits)
        same = {"n": counts.names, "cluster": "name", "method": method} if limits else {}
        same |= {"null": "none: a description", "pos": source.pos}
        axis = {name: of[name] for name in axes.split()}
        return columns.rows_of(axis, (seen, *limits), **(same | more))

    seeds = np.stack([other.eta.mean(axis=0) for other in others])
    # equal values keep the order of the words, which is that of the alphabet
    contrast = model.contrast(value.eta[0])
    relabelled = model.contrast(permuted)
    order = np.argsort(-np.round(value.eta[0], 6), axis=2, kind="stable")
    cells = {
        "rank": np.argsort(order, axis=2, kind="stable") + 1,
        "seed_sd": seeds.std(axis=0),
        "grid_sd": fits.eta.std(axis=0),
        # valid whether or not the fits have settled: all went through the same steps
        "p": permutation_p(contrast, np.moveaxis(relabelled, 0, -1), relative=True),
        TESTED_ERROR: np.sqrt(((model.contrast(drawn.eta) - contrast) ** 2).mean(axis=0)),
        CRITICAL: critical(relabelled.reshape(len(permuted), -1)).reshape(shape),
    }
    found = {
        "latent": rows(
            "word sentiment gender",
            np.moveaxis(value.eta[0], 2, 0),
            np.moveaxis(drawn.eta, 3, 1),
            lemma=np.array(counts.lemmas)[:, None, None],
            q=q[:, :, None],
            count=counts.seen[:, None],
            people=counts.people,
            unit=UNITS.index(params.unit),
            null=NULL,
            **{name: np.moveaxis(values, 2, 0) for name, values in cells.items()},
        ),
        "words": rows("word gender", value.words[0].T, np.moveaxis(drawn.words, 2, 1)),
        "shares": rows("sentiment gender", value.sentiments[0], drawn.sentiments),
        "grid": rows(
            "l1 posterior sentiment gender word",
            fits.eta.reshape(len(params.l1), -1, *shape),
        ),
        "fits": _fits(every, seen[0], q, params).with_columns(pos=pl.lit(source.pos)),
        "seeds": rows("seed sentiment gender word", seeds),
    }
    if {MALE, FEMALE} <= set(counts.genders):
        sides = [counts.genders.index(FEMALE), counts.genders.index(MALE)]
        both = (value.sentiments, drawn.sentiments)
        odds = [np.log(x[:, 0, sides] / x[:, 1, sides]) for x in both]
        tilt, replicates = (x[:, :1] - x[:, 1:] for x in odds)
        found["tilt"] = rows("pos", tilt[0], replicates)
    return found


def _fits(every: list[model.Fits], counts: Array, q: Array, params: Params) -> pl.DataFrame:
    """Return how the first fits went, beside those from other starts and, last, a longer one."""
    fits = every[0]
    known = int((~np.isnan(q).any(axis=1)).sum())
    observed = counts / counts.sum()
    excess = fits.cross_entropy + (observed * np.log(observed)).sum()
    reached = np.array([each.objective for each in every])
    gap = reached[:-1].max(axis=0) - reached.min(axis=0)
    numbers = {
        "cross_entropy": fits.cross_entropy,
        "excess": np.maximum(excess, 0),  # not below by rounding
        "gap": gap,
        "kl": fits.divergence,
        "kl_word": fits.divergence / (known or np.nan),
        "zeros": (fits.eta == 0).mean(axis=(1, 2, 3)),
        "converged": gap <= CONVERGED,
    }
    return columns.rows_of(
        {"l1": params.l1, "posterior": params.posterior},
        (),
        words=len(q),
        words_q=known,
        **{name: x.reshape(len(params.l1), -1) for name, x in numbers.items()},
    )
