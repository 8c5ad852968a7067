"""Perplexity against class probabilities: over texts, and between counterfactuals of a text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.nationality.cases import EVERY, KEY, Scores, check_unique, read_outputs
from plumbline.probes.nationality.cases import table as cells
from plumbline.probes.nationality.schemas import PERPLEXITIES, SCOPES
from plumbline.probes.stats import counterfactual
from plumbline.probes.stats.counterfactual import NEAREST, delta, gather, moments
from plumbline.probes.stats.estimate import (
    DF,
    NEEDED,
    TESTED_ERROR,
    adjusted,
    rounded,
    with_detectable_correlations,
)
from plumbline.probes.stats.linear import centred
from plumbline.probes.stats.two_way import METHOD, two_way

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case
    from plumbline.probes.nationality.schemas import Params

    Array = NDArray[np.float64]

LIMITS = ("value", "low", "high")
CLOSEST = 1e-6  # correlations nearer to 1 have no more spread than one that is as near
METHODS = {
    "originals": "Pearson; t interval of Fisher's z over source texts",
    "subtracted": f"Pearson of differences from the original; {METHOD}, of Fisher's z",
    "within": f"Pearson within source texts, averaged by Fisher's z; {METHOD}",
}


def scored(folder: Path) -> Scores:
    """Return outputs of the probe ``perplexity``: the log-likelihoods of each text, in nats.

    ``folder``: those of a masked model and config. Raises UserError if they are missing.
    """
    if not folder.is_dir():
        raise UserError(
            f"{folder}: nothing there; put {folder.parent.name} under assignments.perplexity, "
            f"{folder.name} under probes.perplexity.targets, or take it out of "
            "analysis.nationality.underlying"
        )
    sums = ("sum_original_nats", "sum_l2r_nats")
    rows = read_outputs(folder, *sums).sort("key")
    keys, tokens = (rows[name].to_numpy() for name in ("key", "tokens"))
    check_unique(folder, keys)
    return Scores(keys, tokens, rows.select(sums).to_numpy())


def _perplexity(scores: Scores, rows: NDArray[np.int32], variant: int) -> Array:
    """Return the perplexity of texts in a variant of :data:`PERPLEXITIES`, (rows,)."""
    method, mean = divmod(variant, 2)
    found: Array = -scores.values[rows, method]
    return found / scores.tokens[rows] if mean else found


def of_targets(
    path: Path, said: Scores, measures: tuple[str, ...], scores: Scores, params: Params
) -> pl.DataFrame:
    """Return rows of ``correlations`` of all texts of a config of ``targets``, as they are.

    If not all of them have scores, nothing is returned.
    """
    texts = np.unique(pl.read_parquet(path, columns=["text"]).select(KEY).to_series().to_numpy())
    row, place = said.places(texts), scores.places(texts)
    if min(row.min(), place.min()) < 0:
        return pl.DataFrame()
    y, alone = list(said.values[row].T), np.arange(len(texts), dtype=np.int32)
    tables = []
    for variant in range(len(PERPLEXITIES)):
        x = _perplexity(scores, place, variant)
        found = _correlated(x, y, len(y), 0 * alone, 1, alone, [], params.confidence)
        tables.append(_told([EVERY], measures, found, SCOPES.index("originals"), variant))
    told = rounded(pl.concat(tables), LIMITS).with_columns(p_bh=None)
    return with_detectable_correlations(told)


def beside_perplexity(case: Case, scores: Scores, params: Params) -> dict[str, pl.DataFrame]:
    """Return rows of ``correlations`` and ``perplexities`` for one config and reading.

    ``scores``: what the masked model said. It may be of the texts of some readings alone: nothing
    is returned for the others.

    Raises UserError if the masked model did not score the originals.
    """
    after, before = (scores.places(case.scores.keys[at]) for at in (case.row, case.compared))
    if case.reading != "placebo" and before.min() < 0:
        raise UserError(
            "perplexity: originals were not scored; run `make repro STAGE=perplexity` again"
        )
    if after.min() < 0:
        return {}
    return {
        "correlations": _correlations(case, scores, after, before, params),
        "perplexities": _changes(case, scores, after, before, params),
    }


def _correlations(
    case: Case,
    scores: Scores,
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    params: Params,
) -> pl.DataFrame:
    tables = []
    _, once = np.unique(case.sentence, return_index=True)  # a row of each source text
    units, every = case.units(), np.zeros_like(case.country)
    groups = ((every, [EVERY]), (case.country, case.countries))
    for variant, n in np.ndindex(len(PERPLEXITIES), len(SCOPES)):
        scope, shared = SCOPES[n], units
        rows: Any = slice(None)
        place, text = (before, case.compared) if scope == "originals" else (after, case.row)
        if scope == "originals":
            rows, shared = once, []
        x = _perplexity(scores, place[rows], variant)
        if scope == "subtracted":
            x -= _perplexity(scores, before, variant)

        def columns(text: NDArray[np.int32] = text[rows], scope: str = scope) -> Iterator[Array]:
            for own in case.scores.values.T:  # one after the other: bounds memory
                yield own[text] - own[case.compared] if scope == "subtracted" else own[text]

        for group, names in groups[: 1 if scope == "originals" else 2]:
            at = group[rows], len(names), case.sentence[rows], shared
            found = _correlated(
                x, columns(), len(case.measures), *at, params.confidence, within=scope == "within"
            )
            tables.append(_told(names, case.measures, found, n, variant))
    # the family: countries by measures, within each variant of perplexity
    table = rounded(pl.concat(tables), LIMITS)
    table = table.with_columns(tested=pl.when(pl.col("country") != EVERY).then("p"))
    table = adjusted(table, "tested", over=("perplexity",)).with_columns(p_bh="tested_bh")
    return with_detectable_correlations(table).drop(NEEDED)


def _told(
    countries: Sequence[str],
    measures: tuple[str, ...],
    found: dict[str, Array],
    n: int,
    variant: int,
) -> pl.DataFrame:
    scope = SCOPES[n]
    facts = {
        "method": METHODS[scope],
        "null": "0: no relation" + (", whichever texts and names" if scope == "within" else ""),
        "cluster": "source text",
        "scope": n,
        "perplexity": variant,
    }
    table = cells(countries, "measure", measures, found)
    return table.with_columns(**{name: pl.lit(value) for name, value in facts.items()})


def _correlated(
    x: Array,
    y: Iterable[Array],
    measures: int,
    groups: NDArray[np.int32],
    number: int,
    texts: NDArray[np.int32],
    names: list[NDArray[np.int32]],
    confidence: float,
    within: bool = False,
) -> dict[str, Array]:
    """Correlate x, (rows,), with each of so many y, (rows,), in each group.

    Returns columns of (groups, pairs).
    """
    shape = int(texts.max()) + 1, number
    cell = texts * number + groups
    x = centred(x, cell) if within else x
    each, correlations, added = [], [], np.empty((len(x), measures), order="F")
    for pair, column in enumerate(y):
        own = centred(column, cell) if within else column
        del column
        each.append(moments(x, own, texts, groups, shape))
        correlations.append(counterfactual.pooled(each[-1]))
        added[:, pair] = _influence(x, own, correlations[-1], groups)
        del own
    del cell
    r = np.stack(correlations, axis=1)
    tested = two_way(added, groups, texts, names, np.eye(number))
    del added
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
    tested = tested._replace(se=se)
    half = tested.half(confidence)
    return {
        DF: tested.freedom,
        TESTED_ERROR: se,
        "value": value,
        "low": np.tanh(z - half),
        "high": np.tanh(z + half),
        "n": count,
        "p": p,
    }


def _influence(x: Array, y: Array, r: Array, groups: NDArray[np.int32]) -> Array:
    """Return what each row adds to the correlation of its group, times rows, (rows,)."""
    rows = np.bincount(groups, minlength=len(r))
    u, w = (_standard(side, groups, rows) for side in (x, y))
    found: Array = u * w
    u **= 2
    w **= 2
    u += w
    u *= r[groups] / 2
    found -= u
    found[~np.isfinite(found)] = 0.0
    return found


def _standard(values: Array, groups: NDArray[np.int32], rows: NDArray[np.int64]) -> Array:
    values = centred(values, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = values / np.sqrt(np.bincount(groups, values**2, len(rows)) / rows)[groups]
    return found


def _changes(
    case: Case,
    scores: Scores,
    after: NDArray[np.int32],
    before: NDArray[np.int32],
    params: Params,
) -> pl.DataFrame:
    """Return counterfactual minus original, by country."""
    change = np.empty((len(after), len(PERPLEXITIES)), order="F")
    for variant in range(change.shape[1]):
        change[:, variant] = _perplexity(scores, after, variant)
        change[:, variant] -= _perplexity(scores, before, variant)
    sums = gather(change, case.sentence, case.country, case.shape)
    value, weights = delta(sums) / 100, np.eye(case.shape[1])
    tested = two_way(change, case.country, case.sentence, case.units(), weights)
    half = tested.half(params.confidence)
    columns = {"value": value, "low": value - half, "high": value + half}
    columns["n"] = (sums.counts > 0).sum(axis=0)[:, None]
    found = cells(case.countries, "perplexity", range(len(PERPLEXITIES)), columns)
    return rounded(found, LIMITS, p=()).with_columns(
        cluster=pl.lit("source text"),
        method=pl.lit(METHOD),
        null=pl.lit("0: as likely"),
    )
