"""Correlation between perplexity and class probabilities, over texts and within texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import plumbline.probes.stats.estimate as stats
from plumbline.builders.core.errors import UserError
from plumbline.probes.nationality.cases import EVERY, Scores, with_constants
from plumbline.probes.nationality.cases import table as cells
from plumbline.probes.nationality.schemas import PERPLEXITIES
from plumbline.probes.stats import counterfactual
from plumbline.probes.stats.counterfactual import NEAREST, delta, gather, moments
from plumbline.probes.stats.linear import centred
from plumbline.probes.stats.two_way import replicated, two_way

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.schemas import Params

    Array = NDArray[np.float64]
    Integers = NDArray[np.int32]
    Clusters = tuple[Integers, Integers, list[Integers]]  # codes of groups, texts and names

LIMITS = ("value", "low", "high")
CLOSEST = 1e-6  # lower bound of 1 - r^2 in the computation of standard errors


def read(folder: Path) -> Scores:
    """Return log-likelihoods of texts, in nats, from the outputs of the probe ``perplexity``.

    ``folder``: outputs for one masked model and config. Raises UserError if it is missing.
    """
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no outputs; add {folder.parent.name} to assignments.perplexity and "
            f"{folder.name} to probes.perplexity.targets, or remove the model from "
            "analysis.nationality.underlying"
        )
    rows = pl.read_parquet(sorted(folder.glob("*.parquet")))
    return Scores.of(folder, rows, rows.select("sum_original_nats", "sum_l2r_nats").to_numpy())


def _perplexities(scores: Scores, rows: Integers) -> Array:
    """Return texts' perplexities in the variants :data:`PERPLEXITIES`, of shape (rows, 4)."""
    sums: Array = -scores.values[rows]
    means = sums / scores.tokens[rows, None]
    return np.stack([sums, means], axis=2).reshape(len(rows), -1)


def targets(
    path: Path, predicted: Scores, measures: tuple[str, ...], scores: Scores, params: Params
) -> pl.DataFrame:
    """Return correlations over a config's original texts; empty unless all texts have scores."""
    texts = pl.read_parquet(path, columns=["text"])["text"].unique().sort()
    row, scored = predicted.places(texts), scores.places(texts)
    if min(row.min(), scored.min()) < 0:
        return pl.DataFrame()
    alone = np.arange(len(texts), dtype=np.int32)
    sides = _perplexities(scores, scored), predicted.values[row]
    rows = _scope("originals", *sides, (0 * alone, alone, []), [EVERY], measures, params)
    return stats.rounded(rows, LIMITS).with_columns(p_bh=None, detectable=None)


def compare(case: Case, scores: Scores, params: Params) -> dict[str, pl.DataFrame]:
    """Return rows of ``correlations`` and ``perplexities`` for one config and method variant.

    ``scores``: scores from the masked model. Variants whose texts were not scored have no rows.

    Raises UserError if the masked model did not score the original texts.
    """
    after, before = (
        scores.places(case.scores.texts[places]) for places in (case.row, case.compared)
    )
    if case.reading != "placebo" and before.min() < 0:
        raise UserError(
            "perplexity: original texts were not scored; run `make repro STAGE=perplexity` again"
        )
    if after.min() < 0:
        return {}
    new, old = _perplexities(scores, after), _perplexities(scores, before)
    return {
        "correlations": _correlations(case, new, old, params),
        "perplexities": _changes(case, new - old, params),
    }


def _correlations(case: Case, after: Array, before: Array, params: Params) -> pl.DataFrame:
    """Return correlations in each scope, overall and (except for originals) by country."""
    _, once = np.unique(case.sentence, return_index=True)  # index of one row per source text
    predicted, pooled = case.scores.values, np.zeros_like(case.country)
    originals = before[once], predicted[case.compared[once]]
    shared = case.measures, params
    clusters: Clusters = pooled[once], case.sentence[once], []
    tables = [_scope("originals", *originals, clusters, [EVERY], *shared)]
    for scope, x, y in (
        ("subtracted", after - before, case.change),
        ("within", after, predicted[case.row]),
    ):
        for groups, countries in ((pooled, [EVERY]), (case.country, case.countries)):
            clusters = groups, case.sentence, case.units()
            tables.append(_scope(scope, x, y, clusters, countries, *shared))
    # a family contains all countries and measures for one variant of perplexity
    by_country = pl.col("country") != EVERY
    table = stats.rounded(pl.concat(tables), LIMITS).with_columns(
        by_country=pl.when(by_country).then("p")
    )
    table = stats.adjusted(table, "by_country", over=("perplexity",))
    family = pl.when(by_country).then("family_by_country").otherwise(1)
    table = table.with_columns(p_bh="by_country_bh", family=family)
    return stats.with_detectable_correlations(table)


def _scope(
    scope: str,
    x: Array,
    y: Array,
    clusters: Clusters,
    countries: list[str],
    measures: tuple[str, ...],
    params: Params,
) -> pl.DataFrame:
    """Correlate the perplexities x (rows, 4) with the predictions y (rows, measures).

    ``countries``: names of the groups of rows.
    """
    tables = []
    for column, variant in zip(x.T, PERPLEXITIES, strict=True):
        within, number = scope == "within", len(countries)
        columns = _correlate(column, y, clusters, number, params.confidence, within=within)
        table = cells(countries, "measure", measures, columns)
        tables.append(with_constants(table, scope=scope, perplexity=variant))
    return pl.concat(tables)


def _correlate(
    x: Array, y: Array, clusters: Clusters, number: int, confidence: float, *, within: bool
) -> dict[str, Array]:
    """Correlate x with each column of y by group; results have shape (groups, measures).

    ``within``: correlate within texts, average the correlations by Fisher's z, and test the mean.
    """
    groups, texts, names = clusters
    shape = int(texts.max()) + 1, number
    if within:
        cell = texts * number + groups
        x, y = centred(x, cell), centred(y, cell)
    sums = [moments(x, column, texts, groups, shape) for column in y.T]
    r = np.stack([counterfactual.pooled(part) for part in sums], axis=1)
    added = [_influence(x, column, r[:, m], groups) for m, column in enumerate(y.T)]
    tested = two_way(np.stack(added, axis=1), groups, texts, names, np.eye(number))
    slope = np.maximum(1 - r**2, CLOSEST)  # derivative of r with respect to Fisher's z
    if within:
        parts = [counterfactual.scores(part) for part in sums]
        scores, weights = (np.stack(a, axis=2) for a in zip(*parts, strict=True))
        count = (weights > 0).sum(axis=0)
        total = np.where(count > 0, weights.sum(axis=0), np.nan)
        z = (scores * weights).sum(axis=0) / total
        variance = ((weights * (scores - z)) ** 2).sum(axis=0)
        variance /= np.where(count > 1, total, np.nan) ** 2
        se = np.sqrt(variance * count / np.maximum(count - 1, 1) + tested.shared / slope**2)
        # the number of texts with enough counterfactuals limits the degrees of freedom
        freedom = np.minimum(tested.freedom, np.maximum(count - 1, 1))
        tested, value = tested._replace(se=se, freedom=freedom), np.tanh(z)
        p = np.where(replicated(groups, texts, names, number)[:, None], tested.p(z), np.nan)
    else:
        count = np.stack([(part[..., 0] > 0).sum(axis=0) for part in sums], axis=1)
        z, value, p = np.arctanh(r.clip(-NEAREST, NEAREST)), r, np.full_like(r, np.nan)
        tested = tested._replace(se=tested.se / slope)
    half = tested.half(confidence)
    columns = {"value": value, "low": np.tanh(z - half), "high": np.tanh(z + half), "n": count}
    return columns | {"p": p, stats.DF: tested.freedom, stats.TESTED_ERROR: tested.se}


def _influence(x: Array, y: Array, r: Array, groups: Integers) -> Array:
    """Return each row's influence on the correlation of its group, times the group's row count."""
    u, w = (_standard(side, groups, len(r)) for side in (x, y))
    influence: Array = u * w - r[groups] / 2 * (u**2 + w**2)
    influence[~np.isfinite(influence)] = 0.0
    return influence


def _standard(values: Array, groups: Integers, number: int) -> Array:
    values, rows = centred(values, groups), np.bincount(groups, minlength=number)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(values / np.sqrt(np.bincount(groups, values**2, number) / rows)[groups])


def _changes(case: Case, change: Array, params: Params) -> pl.DataFrame:
    """Return differences in perplexity, counterfactuals minus originals, by country."""
    sums = gather(change, case.sentence, case.country, case.shape)
    value, weights = delta(sums) / 100, np.eye(case.shape[1])
    tested = two_way(change, case.country, case.sentence, case.units(), weights)
    half = tested.half(params.confidence)
    columns = {"value": value, "low": value - half, "high": value + half}
    columns["n"] = (sums.counts > 0).sum(axis=0)[:, None]
    return stats.rounded(cells(case.countries, "perplexity", PERPLEXITIES, columns), LIMITS, p=())
