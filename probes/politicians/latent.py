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
from plumbline.builders.core.schema import Column
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.politicians.words import columns, word_counts
from plumbline.probes.politicians.words.resample_counts import bootstrap_counts, permute_names
from plumbline.probes.politicians.words.sentiment_shares import Lexicon, of_words
from plumbline.probes.stats.estimate import TESTED_ERROR, Resampling, estimates, least_p
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians import latent_model as model  # torch: where it works

    Array = NDArray[np.float64]

DATASETS = ("politicians", "lexica")
OUTPUTS = ("associations",)
JITTER = 1.0  # SD, nats, of what other starts assume of sentiment and gender together
L1 = (0.0, 1e-5, 1e-4, 1e-3, 1e-2)
POSTERIOR = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
CONVERGED = 1e-2  # nats
LONGER, SLOWER = 16, 4  # times the steps, share of the rate: a fit that shows what others miss
METHOD = (
    "95% Bayesian bootstrap over names, refitted: normal, root mean square distance of replicates "
    "from the value"
)
SENTIMENT = Column("sentiment", "category", "value of the latent variable", labels=SENTIMENTS)
DESCRIBED = estimates(cluster="name", method=METHOD)
LATENT = columns.schema(
    "language pos word sentiment gender",
    *columns.PLACE,
    columns.LEMMA,
    SENTIMENT,
    columns.GENDER,
    columns.share(
        "q", "q(s | w), the share of this sentiment; null: the word is in no lexicon", nullable=True
    ),
    Column("count", "int64", "people of this gender in whose list the word is", minimum=0),
    Column(
        "seed_sd",
        "float64",
        "SD of the grid's average over the starts of `seeds`, nats: what the data leave open",
        minimum=0,
    ),
    Column("grid_sd", "float64", "SD over the weights, nats", minimum=0),
    *estimates(
        cluster="name",
        method=METHOD,
        null="gender labels permuted over names, refitted; of the gender's deviation less the "
        "others'",
    ),
)
FITS = columns.schema(
    "language pos l1 posterior",
    *columns.PLACE,
    Column("l1", "float64", "weight of the L1 penalty", minimum=0),
    Column("posterior", "float64", "weight of the posterior regulariser", minimum=0),
    Column(
        "excess",
        "float64",
        "cross-entropy above the least there can be, the entropy of the observed shares, nats",
        minimum=0,
    ),
    Column(
        "kl_word",
        "float64",
        "posterior regulariser without its weight, nats a word that has a q; null: none has",
        nullable=True,
    ),
    columns.share("zeros", "share of deviations that are 0"),
    Column(
        "gap",
        "float64",
        "most by which what is minimised, from this start and those of `seeds`, is above the "
        f"least that is known, of a fit of {LONGER} times the steps too, nats",
        minimum=0,
    ),
    Column("converged", "bool", f"gap at or below {CONVERGED:g}"),
)
SCHEMAS = {
    "latent": LATENT,
    "words": columns.schema(
        "language pos word gender", *columns.PLACE, columns.LEMMA, columns.GENDER, *DESCRIBED
    ),
    "fits": FITS,
    "shares": columns.schema(
        "language pos sentiment gender", *columns.PLACE, SENTIMENT, columns.GENDER, *DESCRIBED
    ),
    "tilt": columns.schema("language pos", *columns.PLACE, *DESCRIBED),
}


class Params(Lexicon, Resampling):
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
    seeds: list[int] = Field(min_length=1, description="of other starts, for seed_sd and gap")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of one model; columns as in :data:`SCHEMAS`.

    ``tilt`` is without rows unless both men and women are in it.

    Raises UserError if no language has a lexicon and enough words.
    """
    (model,) = inputs.models
    lexica = inputs.datasets["lexica"]
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for language, source, path in word_counts.sources(inputs, model):
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
    families: dict[str, tuple[str, ...]] = {"latent": ()}  # all its tests
    level, least = params.confidence, least_p(params.n_permutations)
    return {
        name: columns.table_of(SCHEMAS[name], tables, level, families.get(name), least, model=model)
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

    codes = [GENDERS.index(gender) for gender in params.genders]
    wanted = np.isin(people.genders, codes)
    counts = word_counts.count(source, people.where(wanted))
    chosen = counts.common(params.min_count)
    lists = counts.lists[chosen].astype(np.float64)
    if not len(chosen) or len(counts.genders) < 2 or not lists.sum(axis=0).all():
        return {}
    spelt = counts.words, counts.lemmas, counts.forms
    words, lemmas, forms = ([texts[w] for w in chosen] for texts in spelt)
    q = of_words(lexica, params.config(lexica, language), words, lemmas, forms)
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
    every = [fits, *others, model.fit(seen, q, *weights, longer)]
    rng = np.random.default_rng(params.seed)
    draws = bootstrap_counts(counts, chosen, params.n_bootstrap, params.seed)
    tables = np.ascontiguousarray(draws.bayesian[: len(chosen)].transpose(2, 0, 1))
    tables += rng.standard_gamma(params.smoothing, tables.shape)
    drawn = model.refit(tables, q, *weights, how)
    relabelled = permute_names(counts, chosen, params.n_permutations, params.seed)
    permuted = model.refit(relabelled + params.smoothing, q, *weights, how).eta

    genders = [GENDERS[g] for g in counts.genders]
    labels = {"word": words, "sentiment": SENTIMENTS, "gender": genders, "pos": [source.pos]}
    reach = float(ndtri((1 + params.confidence) / 2))

    def rows(axes: str, seen: Array, replicates: Array, **more: Any) -> pl.DataFrame:
        """Return a row with its interval for each place in an array.

        L1 retains what chance moves: replicates, which chance has moved twice, are beyond the
        value as it is beyond the truth, so that their quantiles miss it. Distances from the value
        include that bias, whatever its sign.
        """
        half = reach * np.sqrt(((replicates - seen) ** 2).mean(axis=0))
        limits = [seen - half, seen + half]
        if axes == "sentiment gender":  # shares
            limits = [limit.clip(0, 1) for limit in limits]
        axis = {name: labels[name] for name in axes.split()}
        same = {"n": counts.clusters, "pos": source.pos}
        return columns.rows_of(axis, (seen, *limits), **same, **more)

    contrast, null = model.contrast(value.eta[0]), model.contrast(permuted)
    cells = {
        "seed_sd": np.stack([other.eta.mean(axis=0) for other in others]).std(axis=0),
        "grid_sd": fits.eta.std(axis=0),
        # valid whether or not the fits have settled: all went through the same steps
        "p": permutation_p(contrast, np.moveaxis(null, 0, -1), relative=True),
        TESTED_ERROR: np.sqrt(((model.contrast(drawn.eta) - contrast) ** 2).mean(axis=0)),
    }
    found = {
        "latent": rows(
            "word sentiment gender",
            np.moveaxis(value.eta[0], 2, 0),
            np.moveaxis(drawn.eta, 3, 1),
            q=q[:, :, None],
            count=lists[:, None],
            **{name: np.moveaxis(values, 2, 0) for name, values in cells.items()},
        ),
        "words": rows("word gender", value.words[0].T, np.moveaxis(drawn.words, 2, 1)),
        "shares": rows("sentiment gender", value.sentiments[0], drawn.sentiments),
        "fits": _fits(every, seen[0], q, params).with_columns(pos=pl.lit(source.pos)),
    }
    if {"male", "female"} <= set(genders):
        sides = [genders.index("female"), genders.index("male")]
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
        "excess": np.maximum(excess, 0),  # not below by rounding
        "gap": gap,
        "kl_word": fits.divergence / (known or np.nan),
        "zeros": (fits.eta == 0).mean(axis=(1, 2, 3)),
        "converged": gap <= CONVERGED,
    }
    return columns.rows_of(
        {"l1": params.l1, "posterior": params.posterior},
        (),
        **{name: x.reshape(len(params.l1), -1) for name, x in numbers.items()},
    )
