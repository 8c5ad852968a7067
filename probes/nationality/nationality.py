"""Analysis ``nationality``: what a classifier changes its mind about with another country's name.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentages of
predictions by country, and how they go with perplexity; beyond them intervals and tests over source
texts and names, swaps within a country, and a mixed model with what is confounded with countries.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.counterfactuals.build import GENDERS
from plumbline.probes.nationality import cases
from plumbline.probes.nationality.cases import COMPARED, EVERY, SEXES
from plumbline.probes.nationality.confounders import confounders, effects
from plumbline.probes.nationality.perplexity_correlation import (
    beside_perplexity,
    of_targets,
    scored,
)
from plumbline.probes.nationality.ranks import frequency, halved
from plumbline.probes.nationality.schemas import SCHEMAS, Params
from plumbline.probes.stats import counterfactual
from plumbline.probes.stats.counterfactual import Cells, delta, gather, percentages
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
from plumbline.probes.stats.two_way import METHOD, between_names, replicated, two_way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.nationality.cases import Case

    Array = NDArray[np.float64]

DATASETS = ("counterfactuals", "names", "targets")
OUTPUTS = ("classification",)
BESIDE = ("perplexity",)  # probes that other models are put to
PIECES = "pieces"
LIMITS = ("value", "low", "high")
UNCHANGED = "0: no change on average, whichever texts and names of the country are drawn"
HALVES = "0: names of odd ranks do as those of even ranks of the country, whichever they are"
LEAST_NAMES = 5  # effective ones: with 2 to 4 a tenth to a third of families have a false finding
LOG = f"{METHOD}, of the log ratio"
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all classifiers.

    Returned: ``delta``, ``changes``, ``confusion``, ``mixed``, ``confounders``; ``correlations``
    and ``perplexities`` where a masked model is known.

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
    for config in sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != PIECES):
        path = inputs.datasets["counterfactuals"] / f"{config}.parquet"
        folder = None
        if masked is not None:
            folder = inputs.outputs("perplexity", masked) / config
            if not folder.is_dir():
                raise UserError(
                    f"{folder}: nothing there; put {masked} under assignments.perplexity, {config} "
                    "under probes.perplexity.targets, or take it out of "
                    "analysis.nationality.underlying"
                )
        known = {"positive": params.positive, "negative": params.negative}
        said, measures = cases.classified(outputs / config, model, known)
        place = {"targets": config, "masked": masked, "reading": len(COMPARED)}
        if folder is not None:
            texts = cases.keys(inputs.datasets["targets"] / path.name)
            own = of_targets(texts, said, measures, scored(folder), params)
            yield "correlations", own.with_columns(**{k: pl.lit(v) for k, v in place.items()})
        if path.is_file():
            each = partial(_compared, inputs.datasets["names"], folder, params)
            # no reading is kept while the next is read: bounds memory
            for reading, tables in map(each, cases.cases(path, said, measures)):
                place["reading"] = COMPARED.index(reading)
                columns = [pl.lit(value).alias(name) for name, value in place.items()]
                yield from ((name, own.with_columns(columns)) for name, own in tables.items())
    yield "confounders", confounders(outputs / PIECES)


def _compared(
    names: Path, scores: Path | None, params: Params, case: Case
) -> tuple[str, dict[str, pl.DataFrame]]:
    """Return what a reading is, and its tables, without config and reading.

    ``names``: the dataset.
    ``scores``: outputs of the masked model, if there is one.
    """
    placebo = case.reading == "placebo"
    if placebo:
        case = halved(names, case)
    if not len(case.sentence):
        return case.reading, {}
    predicted = case.said.classes()
    tables = {
        "delta": _delta(case, params),
        "changes": _changes(case, predicted, params),
        "confusion": _confusion(case, predicted),
    }
    if not placebo:
        tables["mixed"] = effects(case, frequency(names, case), params.confidence)
        if scores is not None:  # read again each time: millions of texts
            tables |= beside_perplexity(case, scored(scores), params)
    return case.reading, tables


def _by_gender(
    case: Case,
    of: str,
    names: Sequence[str],
    numbers: Sequence[str],
    estimated: Callable[[Case], dict[str, Array]],
    method: str,
) -> pl.DataFrame:
    """Return estimates for each gender of the names put in, country, and class or measure.

    ``estimated``: what returns the columns of :func:`cases.table` for some of the rows.
    """
    tables = []
    for number, gender in enumerate(SEXES):
        own = case
        if gender != EVERY:
            own = case.chosen(np.flatnonzero(case.gender == GENDERS.index(gender)))
        if len(own.gender):
            found = cases.table(case.countries, of, names, estimated(own))
            tables.append(found.filter(pl.col("n") > 0).with_columns(gender=pl.lit(number)))
    table = adjusted(rounded(pl.concat(tables), numbers), over=("gender",))
    null = HALVES if case.reading == "placebo" else UNCHANGED
    facts = {"cluster": "source text", "method": method, "null": null}
    return table.with_columns(pl.lit(value).alias(name) for name, value in facts.items())


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return the differences of probabilities, by country, gender and measure."""

    def estimated(own: Case) -> dict[str, Array]:
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
        half, p = tested.half(params.confidence), tested.p(np.concatenate([value, contrast]))
        compared = not halves and int(there.sum()) > 1
        contrast, other = (np.where(compared, x, np.nan) for x in (contrast, half[number:]))
        np.abs(change, out=change)
        spread = delta(gather(change, own.sentence, own.country, case.shape))
        del change
        return {
            "value": value,
            "low": value - half[:number],
            "high": value + half[:number],
            "n": (cells.counts > 0).sum(axis=0)[:, None],
            "p": p[:number],
            DF: tested.freedom[:number],
            "freedom_country": tested.freedom[number:],
            "rows": cells.counts.sum(axis=0)[:, None],
            "names": np.bincount(firsts, minlength=number)[:, None],
            "before": delta(gather(own.before, own.sentence, own.country, case.shape)),
            "spread": spread,
            "contrast": contrast,
            "contrast_low": contrast - other,
            "contrast_high": contrast + other,
            "p_country": np.where(np.isnan(contrast), np.nan, p[number:]),
        }

    numbers = (*LIMITS, "before", "spread", "contrast", "contrast_low", "contrast_high")
    table = _by_gender(case, "measure", case.measures, numbers, estimated, METHOD)
    table = adjusted(table, "p_country", over=("gender",))
    contrast = table.select(
        value="contrast",
        low="contrast_low",
        high="contrast_high",
        p="p_country",
        p_bh="p_country_bh",
        **{NEEDED: "needed_p_country", DF: "freedom_country"},
    )
    told = with_detectable(contrast, params.confidence)
    told = told.select(pl.col(DETECTABLE).name.suffix("_country"))
    return rounded(table.hstack(told), p=("p_country",))


def _changes(case: Case, predicted: NDArray[np.int16], params: Params) -> pl.DataFrame:
    """Return how often each class is predicted, before and after; ``predicted``: of each text."""
    classes = case.measures[1:]

    def estimated(own: Case) -> dict[str, Array]:
        shape = *case.shape, len(classes)
        place = (own.sentence * shape[1] + own.country).astype(np.int64)
        sides = predicted[own.row], predicted[own.compared]
        counted = (np.bincount(place * shape[2] + x, minlength=math.prod(shape)) for x in sides)
        new, old = (each.reshape(shape).astype(np.float64) for each in counted)
        counts = old.sum(axis=2)
        rows = counts.sum(axis=0)[:, None]
        one, other = old.sum(axis=0), new.sum(axis=0)
        where = own.country, own.sentence, own.units(), np.eye(case.shape[1])

        def moved(after: Array, before: Array) -> Array:
            """Return what each row adds, (rows, classes), of (countries, classes) a prediction."""
            found = np.zeros((len(place), len(classes)), order="F")
            each = np.arange(len(place))
            found[each, sides[0]] += after[own.country, sides[0]]
            found[each, sides[1]] -= before[own.country, sides[1]]
            return found

        # of log(after / before)
        shares = (np.where(n > 0, rows / np.maximum(n, 1), 0.0) for n in (other, one))
        ratio = two_way(moved(*shares), *where)
        with np.errstate(divide="ignore", invalid="ignore"):
            log = np.where((one > 0) & (other > 0), np.log(other / one), np.nan)
        half = ratio.half(params.confidence)
        return {
            "value": percentages(Cells(old, counts), Cells(new, counts)),
            "low": 100 * np.expm1(log - half),
            "high": 100 * np.expm1(log + half),
            "n": (counts > 0).sum(axis=0)[:, None],
            "p": ratio.p(log),
            DF: ratio.freedom,
            TESTED_ERROR: ratio.se,
            "before": one,
            "after": other,
        }

    table = _by_gender(case, "class", classes, LIMITS, estimated, LOG)
    # what is told of the logarithm is the percentage by which a class is predicted more often
    more = (pl.col(DETECTABLE).exp() * 100 - 100).round(DECIMALS)
    table = with_detectable(table, params.confidence).with_columns(more).drop(NEEDED)
    if case.reading != "placebo":
        return table
    untold = ("low", "high", "p", "p_bh", *DETECTABLE)
    none = {name: pl.lit(None, dtype=pl.Float64) for name in untold}
    null, method = f"{HALVES}; no test: too few predictions change", "none"
    return table.with_columns(null=pl.lit(null), method=pl.lit(method), family=pl.lit(0), **none)


def _confusion(case: Case, predicted: NDArray[np.int16]) -> pl.DataFrame:
    """Return which class became which; ``predicted``: of each text."""
    classes = case.measures[1:]
    after, before = predicted[case.row], predicted[case.compared]
    of = (case.country == c for c in range(len(case.countries)))
    counts = [counterfactual.confusion(before[own], after[own], len(classes)).ravel() for own in of]
    columns = {"rows": np.array(counts), "class_before": np.repeat(classes, len(classes))}
    return cases.table(case.countries, "class_after", classes * len(classes), columns)
