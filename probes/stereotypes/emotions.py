"""Analysis ``emotions``: the emotions of the words that models put beside social groups.

Choenni et al. (2021), emotion profiles: which share of a group's words carries each of the eight
emotions and two sentiments of the NRC lexicon; with intervals and tests, for groups and categories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import ESTIMATE, benjamini_hochberg, finite, significant, typed
from plumbline.probes.stats.intervals import spearman, wilson
from plumbline.probes.stats.tests import permutation_test
from plumbline.probes.stereotypes import affects, typicality
from plumbline.probes.stereotypes.emotion_words import differences, profiles, redrawn, shuffled_p
from plumbline.probes.worlds.recovery import RECOVERY, Planted, Resampling, planted, recovery_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stereotypes.affects import Members

EACH = False
DATASETS = ("emotions",)
OUTPUTS = ("stereotypes",)
TABLES = ()
LEVELS = ("group", "category")
LIMITS = ("value", "low", "high")
LEVEL = 0.05  # of p: what recovery counts
EMOTIONS = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the lists"),
        Column("reading", "label", "what lists are ranked by", labels=typicality.READINGS),
        Column("k", "int64", "words taken of each template's list", minimum=1),
        Column(
            "level",
            "label",
            "group: share of its words; category: mean of its groups",
            labels=LEVELS,
        ),
        Column("category", "string", "category of social groups"),
        Column("group", "string", "social group; empty for a category"),
        Column("affect", "label", "emotion or sentiment", labels=AFFECTS),
        Column("carrying", "int64", "words that carry it; of a group", nullable=True, minimum=0),
        Column("covered", "int64", "words that the lexicon has; of a group", nullable=True),
        Column("words", "int64", "different words; of a group", nullable=True, minimum=0),
        Column("coverage", "float64", "share of the words that the lexicon has", nullable=True),
        *ESTIMATE,
        Column(
            "difference",
            "float64",
            "value minus the mean of all other groups, or of those outside of the category; what p "
            "is a test of",
            nullable=True,
        ),
        Column("low_difference", "float64", "lower end of its interval", nullable=True),
        Column("high_difference", "float64", "upper end of it", nullable=True),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("model", "language", "reading", "level", "category", "group", "affect"),
)
SCHEMAS = {"emotions": EMOTIONS, "recovery": RECOVERY}


class Params(Section):
    """Which words are taken, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    k: dict[Literal["probability", "faithful", "corrected", "corrected_one"], int] = Field(
        min_length=1,
        description="words of each list that are taken, by ranking; the paper: probability, 200",
    )
    permutations: int = Field(ge=99, description="permutations of affects over words")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over words or groups")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    def resampling(self) -> Resampling:
        """Return how words and groups are resampled."""
        return Resampling(self.bootstrap, self.seed, self.confidence)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        ``emotions``, and with a world ``recovery``; columns as in :data:`SCHEMAS`. Models in
        languages without a lexicon have no rows.

    Raises
    ------
    Problem
        If there is no list in a language that the dataset ``emotions`` has.
    """
    rows: list[pl.DataFrame] = []
    recovery: list[dict[str, Any]] = []
    for model in inputs.models:
        outputs, world = inputs.outputs("stereotypes", model), planted(inputs.weights(model))
        for language in typicality.languages(outputs):
            lexicon = affects.lexicon(inputs.datasets["emotions"], language)
            if lexicon is None:
                continue
            table = typicality.answers(outputs / language)
            there = typicality.readings(table)
            for reading in (name for name in there if name in params.k):
                ranked = typicality.placed(table, reading)
                k = params.k[reading]
                found = affects.members(typicality.unions(ranked, k), lexicon)
                part = pl.concat([_groups(found, params), _categories(found, params)])
                part = part.with_columns(
                    model=pl.lit(model),
                    language=pl.lit(language),
                    reading=pl.lit(typicality.READINGS.index(reading)),
                    k=pl.lit(k),
                )
                rows.append(typed(part, EMOTIONS))
                if world is not None:
                    told = _recovery(found, part, world, lexicon, params)
                    recovery += [
                        recovery_row(model, language, world, f"{reading}, {k} words: {what}", *row)
                        for what, *row in told
                    ]
    if not rows:
        raise Problem(
            "data/outputs/stereotypes: no list in a language of the dataset emotions and a ranking "
            "of analysis.emotions.k; add one there"
        )
    tables = {"emotions": pl.concat(rows)}
    if recovery:
        tables["recovery"] = typed(pl.DataFrame(recovery, infer_schema_length=None), RECOVERY)
    return tables


def _groups(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of groups."""
    counts = found.profiles()
    arrays = (found.members, found.affects, found.known)
    weights = params.resampling().weights(found.words)
    drawn = differences(redrawn(*arrays, weights))
    limits = percentiles(drawn, params.confidence)
    apart = differences(counts.share)
    p = shuffled_p(*arrays, params.permutations, params.seed)
    rows = []
    for g, group in enumerate(found.groups.iter_rows(named=True)):
        covered, words = int(counts.covered[g]), int(counts.words[g])
        for a in range(len(AFFECTS)):
            carrying = int(counts.carrying[g, a])
            share = wilson(carrying, covered, params.confidence) if covered else None
            rows.append(
                group
                | {"affect": a, "carrying": carrying, "covered": covered, "words": words}
                | {name: finite(getattr(share, name)) if share else None for name in LIMITS}
                | {"coverage": finite(covered / words), "n": covered, "p": float(p[g, a])}
                | _difference(apart[g, a], limits.low[g, a], limits.high[g, a])
            )
    return _finished(
        rows,
        level=LEVELS.index("group"),
        cluster="word",
        method="Wilson score; of the difference: bootstrap percentile (Poisson weights)",
        null=f"affects permuted over covered words, {params.permutations} drawn",
    )


def _categories(found: Members, params: Params) -> pl.DataFrame:
    """Return the rows of categories: means of their groups, compared with all other groups."""
    counts = found.profiles()
    kept = counts.covered > 0
    share, groups = counts.share[kept], found.groups.filter(pl.Series(kept))
    coverage = (counts.covered / counts.words)[kept]
    weights = params.resampling().weights(groups["group"].to_list()).astype(np.float64)
    rows: list[dict[str, Any]] = []
    for category in groups["category"].unique().sort():
        inside = (groups["category"] == category).to_numpy()
        mean = _means(share[inside], weights[inside], params)
        if inside.all():
            apart, p = (np.full((3, len(AFFECTS)), np.nan)), np.ones(len(AFFECTS))
        else:
            apart = _means(share, weights, params, inside)
            test = permutation_test(share[inside], share[~inside], params.permutations, params.seed)
            p = test.p
        for a in range(len(AFFECTS)):
            value, low, high = (finite(x) for x in mean[:, a])
            rows.append(
                {"category": category, "group": "", "affect": a}
                | {"carrying": None, "covered": None, "words": None}
                | {"value": value, "low": low, "high": high}
                | {"coverage": finite(coverage[inside].mean()), "n": int(inside.sum())}
                | {"p": float(p[a])}
                | _difference(*apart[:, a])
            )
    return _finished(
        rows,
        level=LEVELS.index("category"),
        cluster="group",
        method="bootstrap percentile (Poisson weights)",
        null="groups permuted over categories",
    )


def _means(
    share: NDArray[np.float64],
    weights: NDArray[np.float64],
    params: Params,
    inside: NDArray[np.bool_] | None = None,
) -> NDArray[np.float64]:
    """Return the mean of groups, or of those inside minus the others, and limits, (3, affects)."""

    def mean(part: NDArray[np.bool_] | slice, by: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            found: NDArray[np.float64] = share[part].T @ by[part] / by[part].sum(axis=0)
        return found

    def told(by: NDArray[np.float64]) -> NDArray[np.float64]:
        if inside is None:
            return mean(slice(None), by)
        return mean(inside, by) - mean(~inside, by)

    limits = percentiles(told(weights), params.confidence)
    return np.stack([told(np.ones((len(share), 1)))[:, 0], limits.low, limits.high])


def _difference(value: float, low: float, high: float) -> dict[str, Any]:
    return {
        "difference": finite(value),
        "low_difference": finite(low),
        "high_difference": finite(high),
    }


def _finished(rows: list[dict[str, Any]], **columns: Any) -> pl.DataFrame:
    """Add what rows have in common, and p adjusted over all of them."""
    table = pl.DataFrame(rows, infer_schema_length=None)
    adjusted = benjamini_hochberg(table["p"].to_numpy())
    return table.with_columns(
        p=pl.Series([significant(p) for p in table["p"]]),
        p_bh=pl.Series([significant(p) for p in adjusted]),
        family=pl.lit(len(table)),
        **{name: pl.lit(value) for name, value in columns.items()},
    ).sort("category", "group", "affect")


def _recovery(
    found: Members, table: pl.DataFrame, world: Planted, lexicon: pl.DataFrame, params: Params
) -> Iterator[tuple[Any, ...]]:
    """Yield measure, estimate and null: what is found of the affects of the planted words."""
    resampling = params.resampling()
    names = found.groups["group"].to_list()
    own = table.filter(pl.col("level") == LEVELS.index("group"))
    p = own["p"].to_numpy().reshape(len(names), len(AFFECTS))
    null = "at most 0.05: nominal" if world.null else "no nominal value: many effects are planted"
    what = f"share of differences with p at or below {LEVEL}"
    yield what, resampling.mean((p <= LEVEL).mean(axis=1), names), null
    if world.null:
        return
    pairs = world.pairs.filter(pl.col("log_odds_nats") > 0).select("group", "key")
    pairs = pairs.join(found.groups, on="group").select(*found.groups.columns, "key")
    truth = affects.members(pairs, lexicon)
    planted_share = differences(profiles(truth.members, truth.affects, truth.known).share)
    rows = {g: row for row, g in enumerate(names)}
    kept = [rows[g] for g in truth.groups["group"]]
    measured = differences(found.profiles().share)[kept]
    both = ~np.isnan(planted_share).any(axis=1) & ~np.isnan(measured).any(axis=1)
    if both.sum() * len(AFFECTS) < 4:
        return
    x, y = planted_share[both].ravel(), measured[both].ravel()
    estimate = spearman(x, y, params.confidence)
    yield (
        "Spearman correlation of planted and measured differences, over groups and affects",
        estimate._replace(n=int(both.sum())),
        "0: no relation",
    )
