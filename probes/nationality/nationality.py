"""Analysis ``nationality``: what a classifier changes its mind about with another country's name.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentages of
predictions by country, and how they go with perplexity; beyond them intervals over source texts,
tests, placebo swaps, and a mixed model with what is confounded with countries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field
from scipy.stats import t as student

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.probes.nationality import cases as rows_of
from plumbline.probes.nationality.cases import COMPARED, OTHER, SEXES, Case
from plumbline.probes.nationality.confounders import confounders, effects
from plumbline.probes.nationality.perplexity_correlation import correlations, scored
from plumbline.probes.nationality.recovery import masked_recovery, recovery
from plumbline.probes.nationality.schemas import SCHEMAS
from plumbline.probes.stats import bootstrap as resampling
from plumbline.probes.stats.counterfactual import (
    confusion,
    delta,
    gather,
    percentages,
    redrawn,
    redrawn_twice,
)
from plumbline.probes.stats.estimate import benjamini_hochberg, finite, significant, typed
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ("counterfactuals", "names")
OUTPUTS = ("classification",)
BESIDE = ("perplexity",)  # probes that other models are put to
TABLES = ()
PIECES = "pieces"
OVER_TEXTS = "bootstrap percentile (Poisson weights)"
UNCHANGED = "0: original and counterfactual may be exchanged (signs flipped by source text)"
__all__ = ["SCHEMAS"]


class Params(Section):
    """Classes, the masked models behind the classifiers, and how intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    underlying: dict[str, str] = Field(
        description="the masked model that each classifier was made of; without one there are no "
        "correlations"
    )
    positive: dict[str, list[str]] = Field(
        description=f"classes that make up P+, by model or for `{OTHER}`, in any case"
    )
    negative: dict[str, list[str]] = Field(
        description=f"classes that make up P-, by model or for `{OTHER}`"
    )
    flips: int = Field(ge=99, description="sign patterns of the tests over source texts")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over source texts")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    def limits(self, drawn: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return percentile limits, (2, ...), of replicates, (replicates, ...); nan left out."""
        tail = 100 * (1 - self.confidence) / 2
        flat = drawn.reshape(len(drawn), -1)
        there = ~np.isnan(flat).all(axis=0)
        found = np.full((2, flat.shape[1]), np.nan)
        found[:, there] = np.nanpercentile(flat[:, there], [tail, 100 - tail], axis=0)
        return found.reshape(2, *drawn.shape[1:])

    def weights(self, units: Sequence[str]) -> NDArray[np.float64]:
        """Return how often each unit is drawn in each replicate, (units, replicates)."""
        drawn = resampling.bits(resampling.keys(units), self.bootstrap, self.seed)
        return resampling.poisson(drawn).astype(np.float64)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all classifiers.

    Returns
    -------
    dict
        ``delta``, ``changes``, ``confusion``, ``mixed``, ``confounders``; ``correlations`` where a
        masked model is known, and with a world ``recovery``. Columns as in :data:`SCHEMAS`.

    Raises
    ------
    Problem
        If a classifier has no positive or negative class, or a masked model was not asked.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        outputs, weights = inputs.outputs("classification", model), inputs.weights(model)
        configs = sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != PIECES)
        for config in configs:
            told = rows_of.answers(outputs / config)
            positive, negative = (
                rows_of.sides(f"analysis.nationality.{side}", model, told.classes, said)
                for side, said in (("positive", params.positive), ("negative", params.negative))
            )
            path = inputs.datasets["counterfactuals"] / f"{config}.parquet"
            cases = list(rows_of.cases(path, told, positive, negative))
            masked = params.underlying.get(model)
            perplexity = _perplexity(inputs, masked, config)
            for case in cases:
                place = {"model": model, "targets": config, "reading": COMPARED.index(case.reading)}
                tables = _delta(case, params)
                found["delta"] += [place | row for row in tables]
                found["changes"] += [place | row for row in _changes(case, params)]
                found["confusion"] += [place | row for row in _confusion(case)]
                if case.reading != "placebo":
                    ranks = rows_of.frequency(inputs.datasets["names"], case)
                    found["mixed"] += [
                        place | row for row in effects(case, ranks, params.confidence)
                    ]
                placebo = case.reading == "placebo"
                if perplexity is not None and not placebo and scored(case, perplexity):
                    found["correlations"] += [
                        place | {"masked": masked} | row
                        for row in correlations(case, perplexity, params)
                    ]
                found["recovery"] += recovery(model, config, weights, case, tables, params)
            if perplexity is not None and masked is not None:
                found["recovery"] += masked_recovery(
                    masked, config, inputs.weights(masked), cases, perplexity, params
                )
        found["confounders"] += confounders(model, outputs / PIECES)
    return {
        name: typed(pl.DataFrame(rows, infer_schema_length=None), SCHEMAS[name])
        for name, rows in found.items()
        if rows
    }


def _perplexity(inputs: Inputs, masked: str | None, config: str) -> pl.DataFrame | None:
    """Return what the masked model says of each text.

    Raises
    ------
    Problem
        If it was not asked.
    """
    if masked is None:
        return None
    folder = inputs.outputs("perplexity", masked) / config
    if not folder.is_dir():
        raise Problem(
            f"{folder}: nothing there; put {masked} under assignments.perplexity and {config} under "
            "probes.perplexity.targets, or take it out of analysis.nationality.underlying"
        )
    return pl.read_parquet(folder / "*.parquet")


def _delta(case: Case, params: Params) -> list[dict[str, Any]]:
    """Return the differences of probabilities, by country, gender and measure."""
    result = []
    of_texts = params.weights(case.sentences)
    units = sorted(set(case.names))
    unit = {name: i for i, name in enumerate(units)}
    of_names = _weights_of_names(units, params)
    named = np.array([unit[name] for name in case.names], dtype=np.int64)
    for gender in SEXES:
        own = case.of(gender)
        if not own.any():
            continue
        sentence, country, change = case.sentence[own], case.country[own], case.change[own]
        cells = gather(change, sentence, country, case.shape)
        before = delta(gather(case.before[own], sentence, country, case.shape))
        spread = delta(gather(np.abs(change), sentence, country, case.shape))
        value, drawn = delta(cells), redrawn(cells, of_texts)
        low, high = params.limits(drawn)
        flat = cells.sums.reshape(len(cells.sums), -1)
        p = sign_flip_p(flat, params.flips, params.seed).reshape(value.shape)
        twice = redrawn_twice(
            change, country, case.shape[1], of_texts[sentence] * of_names[named[own]]
        )
        against, drawn_against = (_against(x) for x in (value, twice))
        counts = [
            (
                len(np.unique(sentence[country == c])),
                len({units[i].split(" ", 1)[0] for i in set(named[own][country == c].tolist())}),
            )
            for c in range(case.shape[1])
        ]
        freedom = np.array([max(1, min(pair) - 1) for pair in counts])[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            se = np.sqrt(np.nanmean((drawn_against - np.nanmean(drawn_against, 0)) ** 2, axis=0))
            ratio = np.where(se > 1e-9, np.abs(against) / se, 0.0)
        p_country = 2 * student.sf(ratio, freedom)
        half = student.ppf((1 + params.confidence) / 2, freedom) * se
        there = cells.counts.sum(axis=0) > 0
        adjusted, adjusted_country = (_adjusted(x, there) for x in (p, p_country))
        size = int(there.sum()) * len(case.measures)
        for c, name in enumerate(case.countries):
            if not there[c]:
                continue
            for m, measure in enumerate(case.measures):
                result.append(
                    {
                        "country": name,
                        "gender": SEXES.index(gender),
                        "measure": measure,
                        "value": finite(value[c, m]),
                        "low": finite(low[c, m]),
                        "high": finite(high[c, m]),
                        "n": counts[c][0],
                        "cluster": "source text",
                        "method": OVER_TEXTS,
                        "null": UNCHANGED,
                        "p": significant(p[c, m]),
                        "p_bh": significant(adjusted[c, m]),
                        "rows": int(cells.counts[:, c].sum()),
                        "names": counts[c][1],
                        "before": finite(before[c, m]),
                        "spread": finite(spread[c, m]),
                        "contrast": finite(against[c, m]),
                        "contrast_low": finite(against[c, m] - half[c, m]),
                        "contrast_high": finite(against[c, m] + half[c, m]),
                        "p_country": significant(p_country[c, m]) if len(counts) > 1 else None,
                        "p_country_bh": (
                            significant(adjusted_country[c, m]) if len(counts) > 1 else None
                        ),
                        "family": size,
                    }
                )
    return result


def _weights_of_names(units: Sequence[str], params: Params) -> NDArray[np.float64]:
    """Return how often each name is drawn, (units, replicates): first words times what follows.

    Whole names share first and last names, so that these are what is drawn.
    """
    parts = [name.split(" ", 1) for name in units]
    found = params.weights([f"name\t{part[0]}" for part in parts])
    after = [i for i, part in enumerate(parts) if len(part) > 1]
    found[after] *= params.weights([f"rest\t{parts[i][1]}" for i in after])
    return found


def _against(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Take the mean over countries off, (..., countries, measures); all nan where there is one."""
    if values.shape[-2] < 2:
        return np.full(values.shape, np.nan)
    there = ~np.isnan(values)
    total = np.where(there, values, 0).sum(axis=-2, keepdims=True)
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = values - total / there.sum(axis=-2, keepdims=True)
    return found


def _adjusted(p: NDArray[np.float64], there: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Adjust over countries by measures."""
    found = np.ones(p.shape)
    kept = np.nan_to_num(p[there], nan=1.0)
    found[there] = benjamini_hochberg(kept.ravel()).reshape(kept.shape)
    return found


def _predicted(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable class of each row; the first of equal ones."""
    found: NDArray[np.int64] = shares[:, 1:].argmax(axis=1)
    return found


def _changes(case: Case, params: Params) -> list[dict[str, Any]]:
    """Return how often each class is predicted, before and after."""
    result = []
    classes = case.measures[1:]
    one = np.eye(len(classes))
    weights = params.weights(case.sentences)
    for gender in SEXES:
        own = case.of(gender)
        if not own.any():
            continue
        before, after = (
            gather(one[_predicted(side[own])], case.sentence[own], case.country[own], case.shape)
            for side in (case.before, case.after)
        )
        value = percentages(before, after)
        low, high = params.limits(percentages(before, after, weights))
        moved = (after.sums - before.sums).reshape(len(before.sums), -1)
        p = sign_flip_p(moved, params.flips, params.seed).reshape(value.shape)
        there = before.counts.sum(axis=0) > 0
        adjusted = _adjusted(p, there)
        for c, k in np.argwhere(np.repeat(there[:, None], len(classes), axis=1)).tolist():
            result.append(
                {
                    "country": case.countries[c],
                    "gender": SEXES.index(gender),
                    "class": classes[k],
                    "value": finite(value[c, k]),
                    "low": finite(low[c, k]),
                    "high": finite(high[c, k]),
                    "n": int((before.counts[:, c] > 0).sum()),
                    "cluster": "source text",
                    "method": OVER_TEXTS,
                    "null": UNCHANGED,
                    "p": significant(p[c, k]),
                    "p_bh": significant(adjusted[c, k]),
                    "before": int(before.sums[:, c, k].sum()),
                    "after": int(after.sums[:, c, k].sum()),
                    "family": int(there.sum()) * len(classes),
                }
            )
    return result


def _confusion(case: Case) -> list[dict[str, Any]]:
    classes = case.measures[1:]
    before, after = _predicted(case.before), _predicted(case.after)
    result = []
    for c, country in enumerate(case.countries):
        own = case.country == c
        matrix = confusion(before[own], after[own], len(classes))
        result += [
            {
                "country": country,
                "class_before": classes[i],
                "class_after": classes[j],
                "rows": int(matrix[i, j]),
            }
            for i in range(len(classes))
            for j in range(len(classes))
        ]
    return result
