"""Analysis ``latent``: words by gender and sentiment, from the outputs of ``associations``.

The latent-variable model is that of Stańczak et al. (2023), equations 10 to 13 and Tables 4 and 6.
This analysis adds intervals. There is no test: a single word could be significant in the family of
all words only with hundreds of thousands of permutations, each of which would need new fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtri

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.sentiment_shares import Lexicon
from plumbline.probes.politicians.words.word_counts import category, schema, share
from plumbline.probes.stats.estimate import Bootstrap, estimates

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians import latent_model as model  # imports torch

    Array = NDArray[np.float64]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
JITTER = 1.0  # SD, in nats, of the interaction of sentiment and gender in other starting points
L1 = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
POSTERIOR = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
LONGER, SLOWER = 16, 4  # the reference fit has more steps and a lower rate, by these factors
METHOD = (
    "95% normal interval, with the root mean square distance from the value of refitted Bayesian "
    "bootstrap replicates over names"
)
SENTIMENT = category("sentiment", SENTIMENTS, "value of the latent variable")
DESCRIBED = estimates(cluster="name", method=METHOD)
SCHEMAS = {
    "latent": schema(
        (word_counts.LEMMA, SENTIMENT, word_counts.GENDER),
        share("q", "q(s | w), share of the sentiment in the lexicon; null if none", nullable=True),
        Column("count", "int64", "number of lists of this gender that contain the word", minimum=0),
        Column(
            "seed_sd",
            "float64",
            "SD, over the other starting points, of the mean over weights, in nats",
            minimum=0,
        ),
        *DESCRIBED,
    ),
    "words": schema((word_counts.LEMMA, word_counts.GENDER), *DESCRIBED),
    "fits": schema(
        (
            Column("l1", "float64", "weight of the L1 penalty", minimum=0),
            Column("posterior", "float64", "weight of the posterior regulariser", minimum=0),
        ),
        Column(
            "kl_word",
            "float64",
            "unweighted posterior regulariser, in nats per word that has q; null if no word has q",
            nullable=True,
        ),
        Column(
            "gap",
            "float64",
            "difference in nats between the highest and lowest objective of all starts; the "
            f"lowest may be that of a fit with {LONGER} times the steps; at a difference of "
            "at most .01, all fits have converged",
            minimum=0,
        ),
    ),
    "shares": schema((SENTIMENT, word_counts.GENDER), *DESCRIBED),
    "tilt": schema((), *DESCRIBED),
}


class Params(Lexicon, Bootstrap):
    """Settings of fits and intervals."""

    genders: list[Literal["male", "female", "non-binary"]] = Field(
        ["male", "female"], min_length=2, description="genders in the model; default: the paper's"
    )
    min_count: int = Field(ge=1, description="minimum number of people whose lists contain a word")
    smoothing: float = Field(gt=0, description="constant added to every count")
    l1: list[float] = Field(list(L1), min_length=1, description="weights of the L1 penalty")
    posterior: list[float] = Field(
        list(POSTERIOR), min_length=1, description="weights of the posterior regulariser"
    )
    steps: int = Field(ge=1, description="number of steps of Adam, if l1 is above 0")
    learning_rate: float = Field(gt=0, description="initial rate of Adam, with cosine decay")
    seeds: list[int] = Field(min_length=1, description="seeds of other starts, for seed_sd and gap")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; their columns are defined in :data:`SCHEMAS`.

    ``tilt`` is empty unless both men and women are in the model.

    Raises UserError if no language has a lexicon and enough words.
    """
    (model,) = inputs.models
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for language, source, path in word_counts.sources(inputs, model):
        cell = {"language": pl.lit(language), "pos": pl.lit(source.pos)}
        for name, table in _fitted(source, path, inputs.datasets["lexica"], language, params):
            tables[name].append(table.with_columns(**cell))
    if not tables["latent"]:
        raise UserError(
            f"{inputs.outputs('associations', model)}: no language has a lexicon and words in "
            f"at least {params.min_count} lists of two genders; add a language to "
            "datasets.lexica.languages, or lower analysis.latent.min_count"
        )
    return {
        name: word_counts.table_of(SCHEMAS[name], parts, params.confidence, model=model)
        for name, parts in tables.items()
    }


def _fitted(
    source: word_counts.Lists, path: Path, lexica: Path, language: str, params: Params
) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of one language and part of speech, if the model can be fitted."""
    from plumbline.probes.politicians import latent_model as model

    if not params.file(lexica, language).is_file():
        return
    codes = [GENDERS.index(gender) for gender in params.genders]
    people = word_counts.read_people(path, pl.col("gender").is_in(codes))
    counts = word_counts.count(source, people)
    chosen = counts.common(params.min_count)
    lists = counts.lists[chosen].astype(np.float64)
    if not len(chosen) or len(counts.genders) < 2 or not lists.sum(axis=0).all():
        return
    words = counts.words[chosen]
    q = params.sentiments(lexica, language, words)
    seen = (lists + params.smoothing)[None]
    how = model.Schedule(params.steps, params.learning_rate)
    weights = model.grid(params.l1, params.posterior)
    fits = model.fit(seen, q, *weights, how)
    value = model.average(fits, len(fits.phi))
    shape = fits.eta[0].shape
    others = [
        model.fit(seen, q, *weights, how, model.tilt(seed, JITTER, shape)) for seed in params.seeds
    ]
    longer = model.Schedule(LONGER * params.steps, params.learning_rate / SLOWER)
    all_fits = [fits, *others, model.fit(seen, q, *weights, longer)]
    rng = np.random.default_rng(params.seed)
    draws = word_counts.bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    tables = np.ascontiguousarray(draws.bayesian[: len(chosen)].transpose(2, 0, 1))
    tables += rng.standard_gamma(params.smoothing, tables.shape)
    refitted = model.refit(tables, q, *weights, how)

    genders = [GENDERS[g] for g in counts.genders]
    labels = {"word": words["word"], "sentiment": SENTIMENTS, "gender": genders, "all": [0]}
    reach = float(ndtri((1 + params.confidence) / 2))

    def rows(axes: str, seen: Array, replicates: Array, **more: Any) -> pl.DataFrame:
        """Return a row with its interval for each cell of an array.

        L1 selects deviations that are large by chance. Therefore, replicates are biased relative to
        the value, just as the value is relative to the true value, and their quantiles miss the
        true value. Their root mean square distance from the value includes this bias.
        """
        half = reach * np.sqrt(((replicates - seen) ** 2).mean(axis=0))
        limits = [seen - half, seen + half]
        if axes == "sentiment gender":  # shares
            limits = [limit.clip(0, 1) for limit in limits]
        axis = {name: labels[name] for name in axes.split()}
        return word_counts.rows_of(axis, (seen, *limits), n=counts.clusters, **more)

    seed_sd = np.stack([restart.eta.mean(axis=0) for restart in others]).std(axis=0)
    yield (
        "latent",
        rows(
            "word sentiment gender",
            np.moveaxis(value.eta[0], 2, 0),
            np.moveaxis(refitted.eta, 3, 1),
            q=q[:, :, None],
            count=lists[:, None],
            seed_sd=np.moveaxis(seed_sd, 2, 0),
        ),
    )
    yield "words", rows("word gender", value.words[0].T, np.moveaxis(refitted.words, 2, 1))
    yield "shares", rows("sentiment gender", value.sentiments[0], refitted.sentiments)
    yield "fits", _fits(all_fits, q, params)
    if {"male", "female"} <= set(genders):
        sides = [genders.index("female"), genders.index("male")]
        sentiments = (value.sentiments, refitted.sentiments)
        odds = [np.log(x[:, 0, sides] / x[:, 1, sides]) for x in sentiments]
        tilt, replicates = (x[:, :1] - x[:, 1:] for x in odds)
        yield "tilt", rows("all", tilt[0], replicates)


def _fits(all_fits: list[model.Fits], q: Array, params: Params) -> pl.DataFrame:
    """Return diagnostics of fits from several starting points; the last fit has more steps."""
    reached = np.array([fits.objective for fits in all_fits])
    gap = reached[:-1].max(axis=0) - reached.min(axis=0)
    kl_word = all_fits[0].divergence / ((~np.isnan(q).any(axis=1)).sum() or np.nan)
    axes = {"l1": params.l1, "posterior": params.posterior}
    gap, kl_word = (values.reshape(len(params.l1), -1) for values in (gap, kl_word))
    return word_counts.rows_of(axes, (), gap=gap, kl_word=kl_word)
