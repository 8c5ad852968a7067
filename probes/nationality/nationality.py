"""Analysis ``nationality``: what a classifier changes its mind about with another country's name.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentages of
predictions by country, and how they go with perplexity; beyond them intervals and tests over source
texts and names, swaps within a country, and a mixed model with what is confounded with countries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.counterfactuals.build import GENDERS
from plumbline.probes.nationality import cases
from plumbline.probes.nationality.cases import COMPARED, EVERY, SEXES
from plumbline.probes.nationality.confounders import effects
from plumbline.probes.nationality.perplexity_correlation import (
    beside_perplexity,
    of_targets,
    scored,
)
from plumbline.probes.nationality.ranks import frequency, halved, read_ranks
from plumbline.probes.nationality.schemas import SCHEMAS, Params
from plumbline.probes.stats.counterfactual import delta, gather, percentages
from plumbline.probes.stats.estimate import (
    DECIMALS,
    DETECTABLE,
    DF,
    NEEDED,
    TESTED_ERROR,
    adjusted,
    rounded,
    typed,
    with_detectable,
)
from plumbline.probes.stats.two_way import FLAT, METHOD, between_names, replicated, two_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality.cases import Case, Scores

    Array = NDArray[np.float64]

DATASETS = ("counterfactuals", "names", "targets")
OUTPUTS = ("classification",)
BESIDE = ("perplexity",)  # probes that other models are put to
PIECES = "pieces"
LIMITS = ("value", "low", "high")
UNCHANGED = "0: no change on average, whichever texts and names of the country are drawn"
ALIKE = "0 contrast: names of the country do as those of the others, whichever are drawn"
HALVES = "0: names of odd ranks do as those of even ranks of the country, whichever they are"
LEAST_NAMES = 5  # effective ones: with 2 to 4 a tenth to a third of families have a false finding
LOG = f"{METHOD}, of the log ratio"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all classifiers.

    Returned: ``delta``, ``changes``, ``mixed``; ``correlations`` and ``perplexities`` where a
    masked model is known.

    Raises UserError if a classifier has no positive or negative class, or a masked model has no
    outputs.
    """
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for name, own in _tables(inputs, model, params):
            if len(own):
                table = own.with_columns(model=pl.lit(model))
                found[name].append(typed(table, SCHEMAS[name], params.confidence))
    return {name: pl.concat(tables) for name, tables in found.items() if tables}


def _tables(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a classifier by name, for each config and reading."""
    outputs, masked = inputs.outputs("classification", model), params.underlying.get(model)
    sides = {"positive": params.positive, "negative": params.negative}
    for folder in sorted(p for p in outputs.iterdir() if p.is_dir() and p.name != PIECES):
        place = {"targets": folder.name, "masked": masked}
        scores, measures = cases.classified(folder, model, sides)
        perplexity = None
        if masked is not None:
            perplexity = scored(inputs.outputs("perplexity", masked) / folder.name)
            path = inputs.datasets["targets"] / f"{folder.name}.parquet"
            own = of_targets(path, scores, measures, perplexity, params)
            yield "correlations", _at(own, **place, reading=len(COMPARED))
        path = inputs.datasets["counterfactuals"] / f"{folder.name}.parquet"
        for case in cases.cases(path, scores, measures) if path.is_file() else ():
            tables = _reading(case, inputs.datasets["names"], perplexity, params)
            for name, own in tables.items():
                yield name, _at(own, **place, reading=COMPARED.index(case.reading))


def _at(table: pl.DataFrame, **facts: object) -> pl.DataFrame:
    """Return a table with columns of one value each."""
    return table.with_columns(pl.lit(value).alias(name) for name, value in facts.items())


def _reading(
    case: Case, names: Path, perplexity: Scores | None, params: Params
) -> dict[str, pl.DataFrame]:
    """Return the tables of a reading; ``names``: the dataset."""
    placebo, ranks = case.reading == "placebo", read_ranks(names, case.countries)
    if placebo:
        case = halved(ranks, case)
    if not len(case.row):
        return {}
    tables = {"delta": _delta(case, params), "changes": _changes(case, params)}
    if not placebo:
        tables["mixed"] = effects(case, frequency(ranks, case), params.confidence)
        if perplexity is not None:
            tables |= beside_perplexity(case, perplexity, params)
    return tables


def _by_gender(
    case: Case,
    key: str,
    names: Sequence[str],
    numbers: Sequence[str],
    estimate: Callable[[Case], dict[str, Array]],
    method: str,
) -> pl.DataFrame:
    """Return estimates for each gender of the names put in, country, and class or measure.

    ``estimate``: returns the columns of :func:`cases.table` for some of the rows.
    """
    tables = []
    for code, gender in enumerate(SEXES):
        own = case if gender == EVERY else case.where(case.gender == GENDERS.index(gender))
        if len(own.row):
            found = cases.table(case.countries, key, names, estimate(own))
            tables.append(_at(found.filter(pl.col("n") > 0), gender=code))
    table = adjusted(rounded(pl.concat(tables), numbers), over=("gender",))
    null = HALVES if case.reading == "placebo" else UNCHANGED
    return _at(table, cluster="source text", method=method, null=null)


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return the differences of probabilities, by country, gender and measure.

    Tests are of contrasts with the other countries; of placebo swaps, of the differences.
    """

    def estimate(own: Case) -> dict[str, Array]:
        units, change = own.units(), own.change
        cells = gather(change, own.sentence, own.country, case.shape)
        value, number = delta(cells), case.shape[1]
        at = own.country, own.sentence, units
        firsts = np.unique(units[0] * number + own.country) % number
        there = replicated(*at, number, LEAST_NAMES)
        against = np.eye(number) - there / max(1, int(there.sum()))
        contrast = against @ np.where(there[:, None], value, 0)
        contrast[~there] = np.nan
        tested = two_way(change, *at, 100 * np.concatenate([np.eye(number), against]))
        # halves of names of one country are not compared with those of others
        halves = case.reading == "placebo"
        if halves:
            tested.freedom[:number] = between_names(tested.freedom[:number], own.country, units)
        half, compared = tested.half(params.confidence), not halves and int(there.sum()) > 1
        contrast, other = (np.where(compared, x, np.nan) for x in (contrast, half[number:]))
        own_test = slice(number) if halves else slice(number, None)  # of value, of contrast
        p = tested.p(np.concatenate([value, contrast]))[own_test]
        error = tested.se[own_test]
        before = own.scores.values[own.compared]
        return {
            "value": value,
            "low": value - half[:number],
            "high": value + half[:number],
            "n": (cells.counts > 0).sum(axis=0)[:, None],
            "p": p,
            DF: tested.freedom[own_test],
            TESTED_ERROR: np.where(error > FLAT, error, 0.0),
            "rows": cells.counts.sum(axis=0)[:, None],
            "names": np.bincount(firsts, minlength=number)[:, None],
            "before": delta(gather(before, own.sentence, own.country, case.shape)),
            "spread": delta(gather(np.abs(change), own.sentence, own.country, case.shape)),
            "contrast": contrast,
            "contrast_low": contrast - other,
            "contrast_high": contrast + other,
        }

    numbers = (*LIMITS, "before", "spread", "contrast", "contrast_low", "contrast_high")
    table = _by_gender(case, "measure", case.measures, numbers, estimate, METHOD)
    return table if case.reading == "placebo" else _at(table, null=ALIKE)


def _changes(case: Case, params: Params) -> pl.DataFrame:
    """Return how often each class is predicted, before and after; tests are of the log ratio."""
    classes, number = case.measures[1:], len(case.measures) - 1
    # the most probable class of each text, the first of equal ones
    predicted = np.eye(number)[case.scores.values[:, 1:].argmax(axis=1)]

    def estimate(own: Case) -> dict[str, Array]:
        new, old = predicted[own.row], predicted[own.compared]
        after, before = (gather(x, own.sentence, own.country, case.shape) for x in (new, old))
        one, other = before.sums.sum(axis=0), after.sums.sum(axis=0)
        rows = before.counts.sum(axis=0)[:, None]
        # what each row adds to log(after / before)
        rise, fall = (np.where(n > 0, rows / np.maximum(n, 1), 0.0) for n in (other, one))
        added = new * rise[own.country] - old * fall[own.country]
        ratio = two_way(added, own.country, own.sentence, own.units(), np.eye(case.shape[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.where((one > 0) & (other > 0), np.log(other / one), np.nan)
        half = ratio.half(params.confidence)
        return {
            "value": percentages(before, after),
            "low": 100 * np.expm1(log - half),
            "high": 100 * np.expm1(log + half),
            "n": (before.counts > 0).sum(axis=0)[:, None],
            "p": ratio.p(log),
            DF: ratio.freedom,
            TESTED_ERROR: ratio.se,
            "before": one,
            "after": other,
        }

    table = _by_gender(case, "class", classes, LIMITS, estimate, LOG)
    # what is told of the logarithm is the percentage by which a class is predicted more often
    more = (pl.col(DETECTABLE).exp() * 100 - 100).round(DECIMALS)
    table = with_detectable(table, params.confidence).with_columns(more).drop(NEEDED)
    if case.reading != "placebo":
        return table
    untold = ("low", "high", "p", "p_bh", *DETECTABLE)
    none = {name: pl.lit(None, dtype=pl.Float64) for name in untold}
    null = f"{HALVES}; no test: too few predictions change"
    return _at(table, null=null, method="none", family=0).with_columns(**none)
