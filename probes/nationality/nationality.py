"""Analysis ``nationality``: how names from other countries change a classifier's predictions.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentage changes
in predictions by country, and their correlation with perplexity. The analysis also computes
intervals and tests over source texts and names, placebo swaps within a country, and a mixed model
with confounders.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import plumbline.probes.stats.estimate as stats
from plumbline.builders.datasets.counterfactuals.build import GENDERS
from plumbline.probes.nationality import cases, perplexity_correlation
from plumbline.probes.nationality.cases import EVERY, SEXES, with_constants
from plumbline.probes.nationality.mixed import effects
from plumbline.probes.nationality.schemas import SCHEMAS, TARGETS, Params
from plumbline.probes.stats.counterfactual import delta, gather, percentages
from plumbline.probes.stats.two_way import (
    FLAT,
    LEAST_NAMES,
    between_names,
    replicated,
    two_way,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality.cases import Case, Scores

    Array = NDArray[np.float64]

DATASETS = ("counterfactuals", "names", "targets")
OUTPUTS = ("classification",)
BESIDE = ("perplexity",)  # probes that run on other models
PIECES = "pieces"
LIMITS = ("value", "low", "high")
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all classifiers; tables of perplexities require a masked model.

    Raises UserError if a classifier has no positive or no negative class, or if a masked model has
    no outputs.
    """
    tables: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        for name, rows in _tables(inputs, model, params):
            if len(rows):
                table = rows.with_columns(model=pl.lit(model))
                tables[name].append(stats.typed(table, SCHEMAS[name], params.confidence))
    return {name: pl.concat(parts) for name, parts in tables.items() if parts}


def _tables(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the name and rows of each table for a classifier, by config and method variant."""
    outputs, masked = inputs.outputs("classification", model), params.underlying.get(model)
    sides = {"positive": params.positive, "negative": params.negative}
    for folder in sorted(p for p in outputs.iterdir() if p.is_dir() and p.name != PIECES):
        key = {"targets": folder.name, "masked": masked}
        scores, measures = cases.classified(folder, model, sides)
        perplexity = None
        if masked is not None:
            outputs_of_masked = inputs.outputs("perplexity", masked) / folder.name
            perplexity = perplexity_correlation.read(outputs_of_masked)
            path = inputs.datasets["targets"] / f"{folder.name}.parquet"
            rows = perplexity_correlation.targets(path, scores, measures, perplexity, params)
            yield "correlations", with_constants(rows, **key, reading=TARGETS)
        path = inputs.datasets["counterfactuals"] / f"{folder.name}.parquet"
        for case in cases.cases(path, scores, measures) if path.is_file() else ():
            tables = _reading(case, inputs.datasets["names"], perplexity, params)
            for name, rows in tables.items():
                yield name, with_constants(rows, **key, reading=case.reading)


def _reading(
    case: Case, names: Path, perplexity: Scores | None, params: Params
) -> dict[str, pl.DataFrame]:
    """Return the tables of a method variant; ``names``: folder of the dataset ``names``."""
    placebo, ranks = case.reading == "placebo", cases.read_ranks(names, case.countries)
    if placebo:
        case = cases.split_halves(ranks, case)
    if not len(case.row):
        return {}
    tables = {"delta": _delta(case, params), "changes": _changes(case, params)}
    if not placebo:
        log_ranks = case.by_name("", partial(cases.log_rank, ranks))
        tables["mixed"] = effects(case, log_ranks, params.confidence)
        if perplexity is not None:
            tables |= perplexity_correlation.compare(case, perplexity, params)
    return tables


def _by_gender(
    case: Case,
    key: str,
    names: Sequence[str],
    numbers: Sequence[str],
    estimate: Callable[[Case], dict[str, Array]],
) -> pl.DataFrame:
    """Return estimates by gender of the inserted names, country, and class or measure.

    ``estimate``: a function that computes the columns of :func:`cases.table` from a subset of rows.
    """
    tables = []
    for gender in SEXES:
        part = case if gender == EVERY else case.where(case.gender == GENDERS.index(gender))
        if len(part.row):
            rows = cases.table(case.countries, key, names, estimate(part))
            tables.append(with_constants(rows.filter(pl.col("n") > 0), gender=gender))
    return stats.adjusted(stats.rounded(pl.concat(tables), numbers), over=("gender",))


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return changes in probability, by country, gender and measure.

    The tests are of contrasts with other countries; those of placebo swaps, of the changes.
    """
    number, placebo = len(case.countries), case.reading == "placebo"

    def estimate(part: Case) -> dict[str, Array]:
        units, change = part.units(), part.change
        cells = gather(change, part.sentence, part.country, case.shape)
        value = delta(cells)
        clusters = part.country, part.sentence, units
        least = LEAST_NAMES / 2 if placebo else LEAST_NAMES  # placebos: in each half of the names
        compared = replicated(*clusters, number, least)
        against = np.eye(number) - compared / max(1, int(compared.sum()))
        contrast = against @ np.where(compared[:, None], value, 0)
        contrast[~compared | placebo | (compared.sum() < 2)] = np.nan
        tested = two_way(change, *clusters, 100 * np.concatenate([np.eye(number), against]))
        if placebo:  # halves of a country's names are not compared between countries
            tested.freedom[:number] = between_names(tested.freedom[:number], part.country, units)
        half = tested.half(params.confidence)
        test = slice(number) if placebo else slice(number, None)  # rows of values or contrasts
        error = tested.se[test]
        return {
            "value": value,
            "low": value - half[:number],
            "high": value + half[:number],
            "n": (cells.counts > 0).sum(axis=0)[:, None],
            "p": tested.p(np.concatenate([np.where(compared[:, None], value, np.nan), contrast]))[
                test
            ],
            stats.DF: tested.freedom[test],
            stats.TESTED_ERROR: np.where(error > FLAT, error, 0.0),
            "contrast": contrast,
            "contrast_low": contrast - half[number:],
            "contrast_high": contrast + half[number:],
        }

    numbers = (*LIMITS, "contrast", "contrast_low", "contrast_high")
    return _by_gender(case, "measure", case.measures, numbers, estimate)


def _changes(case: Case, params: Params) -> pl.DataFrame:
    """Return changes in the frequency of each predicted class, with tests of the log ratio.

    Placebo swaps get neither intervals nor tests, because they change few predictions.
    """
    classes, number = case.measures[1:], len(case.measures) - 1
    # the most probable class of each text; if tied, the first one
    predicted = np.eye(number)[case.scores.values[:, 1:].argmax(axis=1)]

    def estimate(part: Case) -> dict[str, Array]:
        new, old = predicted[part.row], predicted[part.compared]
        after, before = (gather(x, part.sentence, part.country, case.shape) for x in (new, old))
        count_before, count_after = before.sums.sum(axis=0), after.sums.sum(axis=0)
        rows = before.counts.sum(axis=0)[:, None]
        # each row's contribution to log(after / before)
        rise, fall = (rows / np.where(n > 0, n, np.inf) for n in (count_after, count_before))
        added = new * rise[part.country] - old * fall[part.country]
        clusters = part.country, part.sentence, part.units()
        ratio = two_way(added, *clusters, np.eye(len(case.countries)))
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.log(count_after / count_before)
        log[~np.isfinite(log)] = np.nan
        tested = np.full_like(log, np.nan) if case.reading == "placebo" else log
        enough = replicated(*clusters, len(case.countries))[:, None]
        half = ratio.half(params.confidence)
        return {
            "value": percentages(before, after),
            "low": 100 * np.expm1(tested - half),
            "high": 100 * np.expm1(tested + half),
            "n": (before.counts > 0).sum(axis=0)[:, None],
            "p": np.where(enough, ratio.p(tested), np.nan),
            stats.DF: ratio.freedom,
            stats.TESTED_ERROR: ratio.se,
        }

    table = _by_gender(case, "class", classes, LIMITS, estimate)
    # express the detectable log ratio as a percentage increase of the class
    more = (pl.col("detectable").exp() * 100 - 100).round(stats.DECIMALS)
    return stats.with_detectable(table, params.confidence).with_columns(more)
