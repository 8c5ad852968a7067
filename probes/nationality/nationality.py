"""Analysis ``nationality``: what a classifier changes its mind about with another country's name.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentages of
predictions by country, and how they go with perplexity; beyond them intervals over source texts,
tests, placebo swaps, and a mixed model with what is confounded with countries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.stats import t as student

from plumbline.builders.core.errors import UserError
from plumbline.probes.nationality.cases import (
    COMPARED,
    EVERY,
    SEXES,
    Predictions,
    cases,
    frequency,
    sides,
)
from plumbline.probes.nationality.confounders import confounders, effects
from plumbline.probes.nationality.perplexity_correlation import correlations, perplexities, scored
from plumbline.probes.nationality.schemas import SCHEMAS, Params
from plumbline.probes.stats.counterfactual import (
    confusion,
    delta,
    gather,
    percentages,
    redrawn,
    redrawn_twice,
)
from plumbline.probes.stats.estimate import Estimate, adjusted, finite, rounded, typed
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality.cases import Case

    Array = NDArray[np.float64]

EACH = False
DATASETS = ("counterfactuals", "names")
OUTPUTS = ("classification",)
BESIDE = ("perplexity",)  # probes that other models are put to
TABLES = ()
PIECES = "pieces"
OVER_TEXTS = "bootstrap percentile (Poisson weights)"
UNCHANGED = "0: original and counterfactual may be exchanged (signs flipped by source text)"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all classifiers.

    Returns
    -------
    dict
        ``delta``, ``changes``, ``confusion``, ``mixed``, ``confounders``; ``correlations`` and
        ``perplexities`` where a masked model is known.

    Raises
    ------
    UserError
        If a classifier has no positive or negative class, or a masked model has no outputs.
    """
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for name, table in _tables(inputs, model, params):
            if len(table):
                found[name].append(typed(table.with_columns(model=pl.lit(model)), SCHEMAS[name]))
    return {name: pl.concat(tables) for name, tables in found.items() if tables}


def _tables(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a classifier by name, for each config and reading."""
    outputs, masked = inputs.outputs("classification", model), params.underlying.get(model)
    for config in sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != PIECES):
        predictions = Predictions.read(outputs / config)
        positive, negative = (
            sides(f"analysis.nationality.{side}", model, predictions.classes, known)
            for side, known in (("positive", params.positive), ("negative", params.negative))
        )
        path = inputs.datasets["counterfactuals"] / f"{config}.parquet"
        perplexity = _perplexity(inputs, masked, config)
        for case in cases(path, predictions, positive, negative):
            tables = {
                "delta": _delta(case, params),
                "changes": _changes(case, params),
                "confusion": _confusion(case),
            }
            if case.reading != "placebo":
                ranks = frequency(inputs.datasets["names"], case)
                tables["mixed"] = effects(case, ranks, params.confidence)
                if perplexity is not None and scored(case, perplexity):
                    tables["correlations"] = correlations(case, perplexity, params)
                    tables["perplexities"] = perplexities(case, perplexity, params)
            place = {"targets": config, "masked": masked, "reading": COMPARED.index(case.reading)}
            columns = [pl.lit(value).alias(name) for name, value in place.items()]
            yield from ((name, table.with_columns(columns)) for name, table in tables.items())
    yield "confounders", confounders(outputs / PIECES)


def _perplexity(inputs: Inputs, masked: str | None, config: str) -> pl.DataFrame | None:
    """Return what the masked model says of each text.

    Raises
    ------
    UserError
        If it has no outputs.
    """
    if masked is None:
        return None
    folder = inputs.outputs("perplexity", masked) / config
    if not folder.is_dir():
        raise UserError(
            f"{folder}: nothing there; put {masked} under assignments.perplexity, {config} under "
            "probes.perplexity.targets, or take it out of analysis.nationality.underlying"
        )
    return pl.read_parquet(folder / "*.parquet")


def _genders(case: Case) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield the genders of names that there are, and the rows of each."""
    for number, gender in enumerate(SEXES):
        own = (case.gender == gender) | (gender == EVERY)
        if own.any():
            yield number, own


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return the differences of probabilities, by country, gender and measure."""
    result: list[dict[str, Any]] = []
    of_texts = params.weights(case.sentences)
    units, named = np.unique(case.names, return_inverse=True)
    first = np.array([name.split(" ", 1)[0] for name in case.names])
    of_names = _weights_of_names(units.tolist(), params)
    for gender, own in _genders(case):
        sentence, country, change = case.sentence[own], case.country[own], case.change[own]
        cells = gather(change, sentence, country, case.shape)
        before = delta(gather(case.before[own], sentence, country, case.shape))
        spread = delta(gather(np.abs(change), sentence, country, case.shape))
        value = delta(cells)
        low, high = params.limits(redrawn(cells, of_texts))
        p = _flipped(cells.sums, params)
        weights = of_texts[sentence] * of_names[named[own]]
        drawn = _contrast(redrawn_twice(change, country, case.shape[1], weights))
        contrast = _contrast(value)
        countries = [country == c for c in range(case.shape[1])]
        texts = [len(np.unique(sentence[there])) for there in countries]
        names = [len(np.unique(first[own][there])) for there in countries]
        freedom = np.maximum(1, np.minimum(texts, names) - 1)[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            se = np.sqrt(np.nanmean((drawn - np.nanmean(drawn, 0)) ** 2, axis=0))
            ratio = np.where(se > 1e-9, np.abs(contrast) / se, 0.0)
        p_country = 2 * student.sf(ratio, freedom)
        half = student.ppf((1 + params.confidence) / 2, freedom) * se
        result += [
            Estimate(value[c, m], low[c, m], high[c, m], texts[c], OVER_TEXTS).row(
                cluster="source text",
                null=UNCHANGED,
                p=p[c, m],
                country=case.countries[c],
                gender=gender,
                measure=case.measures[m],
                rows=int(cells.counts[:, c].sum()),
                names=names[c],
                before=finite(before[c, m]),
                spread=finite(spread[c, m]),
                contrast=finite(contrast[c, m]),
                contrast_low=finite(contrast[c, m] - half[c, m]),
                contrast_high=finite(contrast[c, m] + half[c, m]),
                p_country=p_country[c, m] if len(countries) > 1 else None,
            )
            for c, m in np.argwhere(~np.isnan(value)).tolist()
        ]
    table = adjusted(pl.DataFrame(result, infer_schema_length=None), over=("gender",))
    return rounded(adjusted(table, "p_country", over=("gender",)), p=("p_country",))


def _flipped(sums: Array, params: Params) -> Array:
    """Test sums of changes, (texts, countries, measures); return p, (countries, measures)."""
    flat = sums.reshape(len(sums), -1)
    return sign_flip_p(flat, params.n_permutations, params.seed).reshape(sums.shape[1:])


def _weights_of_names(units: Sequence[str], params: Params) -> Array:
    """Return how often each name is drawn, (units, replicates): first words times what follows.

    Whole names share first and last names, so that these are what is drawn.
    """
    parts = [name.split(" ", 1) for name in units]
    found = params.weights([f"name\t{part[0]}" for part in parts])
    after = [i for i, part in enumerate(parts) if len(part) > 1]
    found[after] *= params.weights([f"rest\t{parts[i][1]}" for i in after])
    return found


def _contrast(values: Array) -> Array:
    """Take the mean over countries off, (..., countries, measures); all nan where there is one."""
    if values.shape[-2] < 2:
        return np.full(values.shape, np.nan)
    there = ~np.isnan(values)
    total = np.where(there, values, 0).sum(axis=-2, keepdims=True)
    with np.errstate(invalid="ignore"):
        found: Array = values - total / there.sum(axis=-2, keepdims=True)
    return found


def _predicted(shares: Array) -> NDArray[np.int64]:
    """Return the most probable class of each row; the first of equal ones."""
    found: NDArray[np.int64] = shares[:, 1:].argmax(axis=1)
    return found


def _changes(case: Case, params: Params) -> pl.DataFrame:
    """Return how often each class is predicted, before and after."""
    result: list[dict[str, Any]] = []
    classes = case.measures[1:]
    one = np.eye(len(classes))
    weights = params.weights(case.sentences)
    for gender, own in _genders(case):
        before, after = (
            gather(one[_predicted(side[own])], case.sentence[own], case.country[own], case.shape)
            for side in (case.before, case.after)
        )
        value = percentages(before, after)
        low, high = params.limits(percentages(before, after, weights))
        p = _flipped(after.sums - before.sums, params)
        n = (before.counts > 0).sum(axis=0)
        result += [
            Estimate(value[c, k], low[c, k], high[c, k], int(n[c]), OVER_TEXTS).row(
                cluster="source text",
                null=UNCHANGED,
                p=p[c, k],
                country=case.countries[c],
                gender=gender,
                **{"class": name},
                before=int(before.sums[:, c, k].sum()),
                after=int(after.sums[:, c, k].sum()),
            )
            for c in np.flatnonzero(n)
            for k, name in enumerate(classes)
        ]
    return adjusted(pl.DataFrame(result, infer_schema_length=None), over=("gender",))


def _confusion(case: Case) -> pl.DataFrame:
    classes = case.measures[1:]
    before, after = _predicted(case.before), _predicted(case.after)
    return pl.DataFrame(
        [
            {"country": country, "class_before": one, "class_after": other, "rows": int(n)}
            for c, country in enumerate(case.countries)
            for own in (case.country == c,)
            for one, row in zip(
                classes, confusion(before[own], after[own], len(classes)), strict=True
            )
            for other, n in zip(classes, row, strict=True)
        ]
    )
