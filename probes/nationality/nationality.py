"""Analysis ``nationality``: what a classifier changes its mind about with another country's name.

Barriere and Cifuentes (2024), LREC-COLING and EMNLP: differences of P+ - P- and percentages of
predictions by country, and how they go with perplexity; beyond them intervals over source texts,
tests, placebo swaps, and a mixed model with what is confounded with countries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.stats import t as student

from plumbline.builders.core.errors import UserError
from plumbline.probes.nationality import cases
from plumbline.probes.nationality.cases import COMPARED, EVERY, SEXES
from plumbline.probes.nationality.confounders import confounders, effects
from plumbline.probes.nationality.perplexity_correlation import beside_perplexity
from plumbline.probes.nationality.schemas import SCHEMAS, Params
from plumbline.probes.stats import counterfactual
from plumbline.probes.stats.counterfactual import delta, gather, percentages
from plumbline.probes.stats.estimate import adjusted, rounded, typed
from plumbline.probes.stats.tests import sign_flip_p

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
LIMITS = ("value", "low", "high")
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
        for name, own in _tables(inputs, model, params):
            if len(own):
                found[name].append(typed(own.with_columns(model=pl.lit(model)), SCHEMAS[name]))
    return {name: pl.concat(tables) for name, tables in found.items() if tables}


def _tables(inputs: Inputs, model: str, params: Params) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield the tables of a classifier by name, for each config and reading."""
    outputs, masked = inputs.outputs("classification", model), params.underlying.get(model)
    for config in sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != PIECES):
        path = inputs.datasets["counterfactuals"] / f"{config}.parquet"
        perplexity = None
        if masked is not None:
            folder = inputs.outputs("perplexity", masked) / config
            if not folder.is_dir():
                raise UserError(
                    f"{folder}: nothing there; put {masked} under assignments.perplexity, {config} "
                    "under probes.perplexity.targets, or take it out of "
                    "analysis.nationality.underlying"
                )
            perplexity = pl.read_parquet(folder / "*.parquet")
        known = {"positive": params.positive, "negative": params.negative}
        for case in cases.cases(path, outputs / config, model, known):
            tables = {
                "delta": _delta(case, params),
                "changes": _changes(case, params),
                "confusion": _confusion(case),
            }
            if case.reading != "placebo":
                ranks = cases.frequency(inputs.datasets["names"], case)
                tables["mixed"] = effects(case, ranks, params.confidence)
                if perplexity is not None:
                    tables |= beside_perplexity(case, perplexity, params)
            place = {"targets": config, "masked": masked, "reading": COMPARED.index(case.reading)}
            columns = [pl.lit(value).alias(name) for name, value in place.items()]
            yield from ((name, own.with_columns(columns)) for name, own in tables.items())
    yield "confounders", confounders(outputs / PIECES)


def _by_gender(
    case: Case,
    of: str,
    names: Sequence[str],
    numbers: Sequence[str],
    estimated: Callable[[NDArray[np.bool_]], dict[str, Array]],
) -> pl.DataFrame:
    """Return estimates for each gender of the names put in, country, and class or measure.

    Parameters
    ----------
    estimated
        What returns the columns of :func:`cases.table` for some of the rows.
    """
    tables = []
    for number, gender in enumerate(SEXES):
        own = (case.gender == gender) | (gender == EVERY)
        if own.any():
            found = cases.table(case.countries, of, names, estimated(own))
            tables.append(found.filter(pl.col("n") > 0).with_columns(gender=pl.lit(number)))
    table = adjusted(rounded(pl.concat(tables), numbers), over=("gender",))
    facts = {"cluster": "source text", "method": OVER_TEXTS, "null": UNCHANGED}
    return table.with_columns(pl.lit(value).alias(name) for name, value in facts.items())


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return the differences of probabilities, by country, gender and measure."""
    of_texts = params.weights(case.sentences)
    units, named = np.unique(case.names, return_inverse=True)
    first = np.array([name.split(" ", 1)[0] for name in case.names])
    of_names = _weights_of_names(units.tolist(), params)

    def estimated(own: NDArray[np.bool_]) -> dict[str, Array]:
        sentence, country, change = case.sentence[own], case.country[own], case.change[own]
        cells = gather(change, sentence, country, case.shape)
        low, high = params.limits(counterfactual.redrawn(cells, of_texts))
        weights = of_texts[sentence] * of_names[named[own]]
        drawn = _contrast(counterfactual.redrawn_twice(change, country, case.shape[1], weights))
        contrast = _contrast(delta(cells))
        texts = (cells.counts > 0).sum(axis=0)[:, None]
        names = np.array([[len(set(first[own & (case.country == c)]))] for c in range(len(texts))])
        freedom = np.maximum(1, np.minimum(texts, names) - 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            se = np.sqrt(np.nanmean((drawn - np.nanmean(drawn, 0)) ** 2, axis=0))
            ratio = np.where(se > 1e-9, np.abs(contrast) / se, 0.0)
        half = student.ppf((1 + params.confidence) / 2, freedom) * se
        return {
            "value": delta(cells),
            "low": low,
            "high": high,
            "n": texts,
            "p": _flipped(cells.sums, params),
            "rows": cells.counts.sum(axis=0)[:, None],
            "names": names,
            "before": delta(gather(case.before[own], sentence, country, case.shape)),
            "spread": delta(gather(np.abs(change), sentence, country, case.shape)),
            "contrast": contrast,
            "contrast_low": contrast - half,
            "contrast_high": contrast + half,
            "p_country": np.where(np.isnan(contrast), np.nan, 2 * student.sf(ratio, freedom)),
        }

    numbers = (*LIMITS, "before", "spread", "contrast", "contrast_low", "contrast_high")
    table = _by_gender(case, "measure", case.measures, numbers, estimated)
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


def _changes(case: Case, params: Params) -> pl.DataFrame:
    """Return how often each class is predicted, before and after."""
    classes, weights = case.measures[1:], params.weights(case.sentences)
    after, before = (
        np.eye(len(classes))[side[:, 1:].argmax(axis=1)] for side in (case.after, case.before)
    )

    def estimated(own: NDArray[np.bool_]) -> dict[str, Array]:
        at = case.sentence[own], case.country[own], case.shape
        old, new = gather(before[own], *at), gather(after[own], *at)
        low, high = params.limits(percentages(old, new, weights))
        return {
            "value": percentages(old, new),
            "low": low,
            "high": high,
            "n": (old.counts > 0).sum(axis=0)[:, None],
            "p": _flipped(new.sums - old.sums, params),
            "before": old.sums.sum(axis=0),
            "after": new.sums.sum(axis=0),
        }

    return _by_gender(case, "class", classes, LIMITS, estimated)


def _confusion(case: Case) -> pl.DataFrame:
    """Return which class became which; the most probable one, the first of equal ones."""
    classes = case.measures[1:]
    after, before = (side[:, 1:].argmax(axis=1) for side in (case.after, case.before))
    of = (case.country == c for c in range(len(case.countries)))
    counts = [counterfactual.confusion(before[own], after[own], len(classes)).ravel() for own in of]
    columns = {"rows": np.array(counts), "class_before": np.repeat(classes, len(classes))}
    return cases.table(case.countries, "class_after", classes * len(classes), columns)
