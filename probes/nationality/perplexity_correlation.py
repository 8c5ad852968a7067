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
from plumbline.probes.stats.counterfactual import Moments, delta, gather, moments
from plumbline.probes.stats.estimate import adjusted, rounded
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.schemas import Params

    Array = NDArray[np.float64]

BOOTSTRAP = "bootstrap percentile (Poisson weights)"
METHODS = {
    "originals": "Pearson, bootstrap over source texts",
    "global": "Pearson, bootstrap over source texts",
    "subtracted": "Pearson of differences from the original, bootstrap over source texts",
    "within": "Pearson within source texts, averaged by Fisher's z; bootstrap over source texts",
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
    countries = [EVERY, *case.countries]
    weights = params.weights(case.sentences)
    _, once = np.unique(case.sentence, return_index=True)  # a row of each source text
    one = np.zeros(len(once), dtype=np.int64)  # a single group
    tables = []
    for v, m in np.ndindex(len(PERPLEXITIES), len(case.measures)):
        (x, x0), (y, y0) = (after[:, v], before[:, v]), (case.after[:, m], case.before[:, m])
        whole = _moments(case, x, y)
        parts = {
            "originals": moments(x0[once], y0[once], case.sentence[once], one, (len(once), 1)),
            "global": whole,
            "subtracted": _moments(case, x - x0, y - y0),
            "within": whole,
        }
        for scope, own in parts.items():
            n, p, null = (own.sums[..., 0] > 0).sum(axis=0), np.array(np.nan), ""
            estimate = counterfactual.pooled
            if scope == "within":
                z, weight = counterfactual.scores(own)
                n, null = (weight > 0).sum(axis=0), " (signs flipped by source text)"
                p = sign_flip_p(z * weight, params.n_permutations, params.seed)
                estimate = counterfactual.within
            limits = params.limits(estimate(own, weights))
            columns = {"value": estimate(own), "low": limits[0], "high": limits[1], "n": n}
            columns["p"] = np.broadcast_to(p, n.shape)
            rows = {name: values[:, None] for name, values in columns.items()}
            tables.append(
                cells(countries[: len(n)], "measure", [case.measures[m]], rows).with_columns(
                    scope=pl.lit(SCOPES.index(scope)),
                    perplexity=pl.lit(v),
                    method=pl.lit(METHODS[scope]),
                    null=pl.lit(f"0: no relation{null}"),
                    cluster=pl.lit("source text"),
                )
            )
    # the family: countries by measures, within each variant of perplexity
    found = rounded(pl.concat(tables), ("value", "low", "high"))
    found = found.with_columns(tested=pl.when(pl.col("country") != EVERY).then("p"))
    return adjusted(found, "tested", over=("perplexity",)).with_columns(p_bh="tested_bh")


def _changes(case: Case, change: Array, params: Params) -> pl.DataFrame:
    """Return counterfactual minus original, by country."""
    sums = gather(change, case.sentence, case.country, case.shape)
    low, high = params.limits(counterfactual.redrawn(sums, params.weights(case.sentences)) / 100)
    columns = {"value": delta(sums) / 100, "low": low, "high": high}
    columns["n"] = (sums.counts > 0).sum(axis=0)[:, None]
    found = cells(case.countries, "perplexity", range(len(PERPLEXITIES)), columns)
    return rounded(found, ("value", "low", "high"), p=()).with_columns(
        cluster=pl.lit("source text"),
        method=pl.lit(BOOTSTRAP),
        null=pl.lit("0: as likely"),
        p=None,
        p_bh=None,
    )


def _moments(case: Case, x: Array, y: Array) -> Moments:
    """Return moments by country, all countries first."""
    each = moments(x, y, case.sentence, case.country, case.shape).sums
    return Moments(np.concatenate([each.sum(axis=1, keepdims=True), each], axis=1))
