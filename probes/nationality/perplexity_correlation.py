"""Perplexity against class probabilities: over texts, and between counterfactuals of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.nationality.cases import EVERY
from plumbline.probes.nationality.cases import table as cells
from plumbline.probes.nationality.schemas import PERPLEXITIES, SCOPES
from plumbline.probes.stats import counterfactual
from plumbline.probes.stats.counterfactual import NEAREST, delta, gather, moments
from plumbline.probes.stats.estimate import adjusted, rounded
from plumbline.probes.stats.linear import centred
from plumbline.probes.stats.two_way import METHOD, two_way

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.schemas import Params

    Array = NDArray[np.float64]

CLOSEST = 1e-6  # correlations nearer to 1 have no more spread than one that is as near
METHODS = {
    "originals": "Pearson; t interval of Fisher's z over source texts",
    "global": f"Pearson; {METHOD}, of Fisher's z",
    "subtracted": f"Pearson of differences from the original; {METHOD}, of Fisher's z",
    "within": f"Pearson within source texts, averaged by Fisher's z; {METHOD}",
}


def beside_perplexity(case: Case, table: pl.DataFrame, params: Params) -> dict[str, pl.DataFrame]:
    """Return rows of ``correlations`` and ``perplexities`` for one config and reading.

    Parameters
    ----------
    table
        Outputs of the probe ``perplexity``: pseudo-log-likelihoods in nats. It may be of the texts
        of some readings alone: nothing is returned for the others.

    Raises
    ------
    UserError
        If the masked model did not score the originals.
    """
    place = {text: i for i, text in enumerate(table["text"].to_list())}
    if case.reading != "placebo" and not place.keys() >= set(case.compared):
        raise UserError(
            "perplexity: originals were not scored; run `make repro STAGE=perplexity` again"
        )
    if not place.keys() >= set(case.text):
        return {}
    sums = table.select("sum_original_nats", "sum_l2r_nats").to_numpy()
    tokens = table["tokens"].to_numpy()[:, None]  # sums and means over tokens, of either method
    every = -np.stack([sums, sums / tokens], axis=-1).reshape(len(table), len(PERPLEXITIES))
    after, before = (every[[place[text] for text in texts]] for texts in (case.text, case.compared))
    correlations = _correlations(case, after, before, params)
    return {"correlations": correlations, "perplexities": _changes(case, after - before, params)}


def _correlations(case: Case, after: Array, before: Array, params: Params) -> pl.DataFrame:
    tables = []
    _, once = np.unique(case.sentence, return_index=True)  # a row of each source text
    units, every = case.units(), np.zeros(len(after), dtype=np.int64)
    groups = ((every, [EVERY]), (case.country, case.countries))
    for variant, n in np.ndindex(len(PERPLEXITIES), len(SCOPES)):  # bounds memory
        scope, rows, shared = SCOPES[n], np.arange(len(after)), units
        x, y = after[:, [variant]], case.after
        if scope == "subtracted":
            x, y = x - before[:, [variant]], y - case.before
        if scope == "originals":
            x, y, rows, shared = before[once][:, [variant]], case.before[once], once, []
        null = "0: no relation" + (", whichever texts and names" if scope == "within" else "")
        for group, names in groups[: 1 if scope == "originals" else 2]:
            at = group[rows], len(names), case.sentence[rows]
            wide = np.broadcast_to(x, y.shape)
            found = _correlated(wide, y, *at, shared, params.confidence, scope == "within")
            tables.append(
                cells(names, "measure", case.measures, found).with_columns(
                    scope=pl.lit(n),
                    perplexity=pl.lit(variant),
                    method=pl.lit(METHODS[scope]),
                    null=pl.lit(null),
                    cluster=pl.lit("source text"),
                )
            )
    # the family: countries by measures, within each variant of perplexity
    table = rounded(pl.concat(tables), ("value", "low", "high"))
    table = table.with_columns(tested=pl.when(pl.col("country") != EVERY).then("p"))
    return adjusted(table, "tested", over=("perplexity",)).with_columns(p_bh="tested_bh")


def _correlated(
    x: Array,
    y: Array,
    groups: NDArray[np.int64],
    number: int,
    texts: NDArray[np.int64],
    names: list[NDArray[np.int64]],
    confidence: float,
    within: bool,
) -> dict[str, Array]:
    """Correlate columns, (rows, pairs), in each group; return columns of (groups, pairs)."""
    shape = int(texts.max()) + 1, number
    cell = texts * number + groups
    if within:
        x, y = centred(x, cell), centred(y, cell)
    each = [moments(a, b, texts, groups, shape) for a, b in zip(x.T, y.T, strict=True)]
    r = np.stack([counterfactual.pooled(own) for own in each], axis=1)
    tested = two_way(_influence(x, y, r, groups), groups, texts, names, np.eye(number))
    slope = np.maximum(1 - r**2, CLOSEST)  # of r, by Fisher's z
    count = np.stack([(own.sums[..., 0] > 0).sum(axis=0) for own in each], axis=1)
    if not within:
        z, se, p = np.arctanh(r.clip(-NEAREST, NEAREST)), tested.se / slope, np.full_like(r, np.nan)
        value = r
    else:
        scored = [counterfactual.scores(own) for own in each]
        scores, weights = (np.stack(a, axis=2) for a in zip(*scored, strict=True))
        count = (weights > 0).sum(axis=0)
        total = np.where(count > 1, weights.sum(axis=0), np.nan)
        z = (scores * weights).sum(axis=0) / np.where(count > 0, weights.sum(axis=0), np.nan)
        apart = ((weights * (scores - z)) ** 2).sum(axis=0) / total**2
        se = np.sqrt(apart * count / np.maximum(count - 1, 1) + tested.shared / slope**2)
        # where few texts have counterfactuals enough, they are what the error is known from
        tested = tested._replace(freedom=np.minimum(tested.freedom, np.maximum(count - 1, 1)))
        value, p = np.tanh(z), tested._replace(se=se).p(z)
    half = tested._replace(se=se).half(confidence)
    return {
        "value": value,
        "low": np.tanh(z - half),
        "high": np.tanh(z + half),
        "n": count,
        "p": p,
    }


def _influence(x: Array, y: Array, r: Array, groups: NDArray[np.int64]) -> Array:
    """Return what each row adds to the correlation of its group, times rows, (rows, pairs)."""
    x, y = centred(x, groups), centred(y, groups)
    rows = np.bincount(groups, minlength=len(r))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        u, w = (a / np.sqrt(_added(a**2, groups, len(r)) / rows)[groups] for a in (x, y))
        found = u * w - r[groups] / 2 * (u**2 + w**2)
    return np.where(np.isfinite(found), found, 0.0)


def _added(values: Array, groups: NDArray[np.int64], number: int) -> Array:
    return np.stack([np.bincount(groups, each, number) for each in values.T], axis=1)


def _changes(case: Case, change: Array, params: Params) -> pl.DataFrame:
    """Return counterfactual minus original, by country."""
    sums = gather(change, case.sentence, case.country, case.shape)
    value, weights = delta(sums) / 100, np.eye(case.shape[1])
    tested = two_way(change, case.country, case.sentence, case.units(), weights)
    half = tested.half(params.confidence)
    columns = {"value": value, "low": value - half, "high": value + half}
    columns["n"] = (sums.counts > 0).sum(axis=0)[:, None]
    found = cells(case.countries, "perplexity", range(len(PERPLEXITIES)), columns)
    return rounded(found, ("value", "low", "high"), p=()).with_columns(
        cluster=pl.lit("source text"),
        method=pl.lit(METHOD),
        null=pl.lit("0: as likely"),
        p=None,
        p_bh=None,
    )
