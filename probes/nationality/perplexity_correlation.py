"""Perplexity against class probabilities: over texts, and between counterfactuals of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.probes.nationality.cases import EVERY
from plumbline.probes.nationality.schemas import PERPLEXITIES, SCOPES
from plumbline.probes.stats.counterfactual import (
    Moments,
    delta,
    gather,
    moments,
    pooled,
    redrawn,
    scores,
    within,
)
from plumbline.probes.stats.estimate import Estimate, adjusted
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.schemas import Params

BOOTSTRAP = "bootstrap percentile (Poisson weights)"
METHODS = {
    "originals": "Pearson, bootstrap over source texts",
    "global": "Pearson, bootstrap over source texts",
    "subtracted": "Pearson of differences from the original, bootstrap over source texts",
    "within": "Pearson within source texts, averaged by Fisher's z; bootstrap over source texts",
}


class Perplexity(NamedTuple):
    """Negative pseudo-log-likelihoods of rows and of what they are compared with."""

    after: NDArray[np.float64]  # (rows, variants), nats
    before: NDArray[np.float64]


def scored(case: Case, table: pl.DataFrame) -> bool:
    """Tell whether the masked model was asked about a reading: it may be about some alone.

    Raises
    ------
    Problem
        If it was not asked about the originals.
    """
    known = set(table["text"].to_list())
    if case.reading != "placebo" and not set(case.compared) <= known:
        raise Problem(
            "perplexity: originals were not scored; run `make repro STAGE=perplexity` again"
        )
    return set(case.text) <= known


def variants(case: Case, table: pl.DataFrame) -> Perplexity:
    """Return the pseudo-log-perplexities of the rows, sums and means over tokens, both variants."""
    sums = table.select("sum_original_nats", "sum_l2r_nats").to_numpy()
    tokens = table["tokens"].to_numpy()[:, None]
    every = -np.stack([sums, sums / tokens], axis=-1).reshape(len(table), len(PERPLEXITIES))
    place = {text: i for i, text in enumerate(table["text"].to_list())}
    after, before = (every[[place[text] for text in texts]] for texts in (case.text, case.compared))
    return Perplexity(after, before)


def correlations(case: Case, table: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return rows of the table ``correlations`` for one config and reading."""
    found = variants(case, table)
    countries = [EVERY, *case.countries]
    weights = params.weights(case.sentences)
    once = _first(case.sentence, len(case.sentences))
    one = np.zeros(len(once), dtype=np.int64)  # a single group
    result = []
    for v in range(len(PERPLEXITIES)):
        x, x0 = found.after[:, v], found.before[:, v]
        for m, measure in enumerate(case.measures):
            y, y0 = case.after[:, m], case.before[:, m]
            parts = {
                "originals": moments(x0[once], y0[once], case.sentence[once], one, (len(once), 1)),
                "global": _moments(case, x, y),
                "subtracted": _moments(case, x - x0, y - y0),
                "within": _moments(case, x, y),
            }
            for scope in SCOPES:
                own = parts[scope]
                estimate = within if scope == "within" else pooled
                value = estimate(own)
                low, high = params.limits(estimate(own, weights))
                z, n = scores(own)
                tested = scope == "within"
                p = sign_flip_p(z * n, params.flips, params.seed) if tested else None
                clusters = (n if tested else own.sums[..., 0]) > 0
                null = "0: no relation" + (" (signs flipped by source text)" if tested else "")
                result += [
                    Estimate(
                        value[c], low[c], high[c], int(clusters[:, c].sum()), METHODS[scope]
                    ).row(
                        cluster="source text",
                        null=null,
                        p=p[c] if p is not None else None,
                        scope=SCOPES.index(scope),
                        perplexity=v,
                        country=countries[c],
                        measure=measure,
                    )
                    for c in range(len(value))
                ]
    table = pl.DataFrame(result, infer_schema_length=None)
    # the family: countries by measures, within each variant of perplexity
    alone = table.with_columns(tested=pl.when(pl.col("country") != EVERY).then("p"))
    alone = adjusted(alone, "tested", over=("perplexity",))
    return alone.with_columns(p_bh="tested_bh")


def perplexities(case: Case, table: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return rows of the table ``perplexities``: counterfactual minus original, by country."""
    found = variants(case, table)
    cells = gather(found.after - found.before, case.sentence, case.country, case.shape)
    value, drawn = delta(cells) / 100, redrawn(cells, params.weights(case.sentences)) / 100
    low, high = params.limits(drawn)
    return pl.DataFrame(
        [
            Estimate(value[c, v], low[c, v], high[c, v], n, BOOTSTRAP).row(
                cluster="source text", null="0: as likely", country=country, perplexity=v
            )
            for c, country in enumerate(case.countries)
            for n in (int((cells.counts[:, c] > 0).sum()),)
            for v in range(len(PERPLEXITIES))
        ],
        infer_schema_length=None,
    )


def _first(sentence: NDArray[np.int64], number: int) -> NDArray[np.int64]:
    """Return a row of each source text."""
    found = np.zeros(number, dtype=np.int64)
    found[sentence[::-1]] = np.arange(len(sentence))[::-1]
    return found


def _moments(case: Case, x: NDArray[np.float64], y: NDArray[np.float64]) -> Moments:
    """Return moments by country, all countries first."""
    each = moments(x, y, case.sentence, case.country, case.shape).sums
    return Moments(np.concatenate([each.sum(axis=1, keepdims=True), each], axis=1))
