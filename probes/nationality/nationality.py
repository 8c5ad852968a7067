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

from plumbline.builders.core.errors import Problem
from plumbline.probes.nationality import cases as rows_of
from plumbline.probes.nationality.cases import COMPARED, SEXES, Case
from plumbline.probes.nationality.confounders import confounders, effects
from plumbline.probes.nationality.perplexity_correlation import (
    correlations,
    perplexities,
    scored,
)
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
    Problem
        If a classifier has no positive or negative class, or a masked model was not asked.
    """
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    for model in inputs.models:
        outputs = inputs.outputs("classification", model)
        masked = params.underlying.get(model)
        configs = sorted(p.name for p in outputs.iterdir() if p.is_dir() and p.name != PIECES)
        for config in configs:
            told = rows_of.answers(outputs / config)
            positive, negative = (
                rows_of.sides(f"analysis.nationality.{side}", model, told.classes, said)
                for side, said in (("positive", params.positive), ("negative", params.negative))
            )
            path = inputs.datasets["counterfactuals"] / f"{config}.parquet"
            perplexity = _perplexity(inputs, masked, config)
            for case in rows_of.cases(path, told, positive, negative):
                tables = [
                    ("delta", _delta(case, params)),
                    ("changes", _changes(case, params)),
                    ("confusion", _confusion(case)),
                ]
                if case.reading != "placebo":
                    ranks = rows_of.frequency(inputs.datasets["names"], case)
                    tables.append(("mixed", effects(case, ranks, params.confidence)))
                    if perplexity is not None and scored(case, perplexity):
                        tables += [
                            ("correlations", correlations(case, perplexity, params)),
                            ("perplexities", perplexities(case, perplexity, params)),
                        ]
                place: dict[str, Any] = {"model": model, "targets": config, "masked": masked}
                place["reading"] = COMPARED.index(case.reading)
                for name, table in tables:
                    if len(table):
                        columns = {key: pl.lit(value) for key, value in place.items()}
                        found[name].append(typed(table.with_columns(**columns), SCHEMAS[name]))
        if len(table := confounders(model, outputs / PIECES)):
            found["confounders"].append(typed(table, SCHEMAS["confounders"]))
    return {name: pl.concat(tables) for name, tables in found.items() if tables}


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
            f"{folder}: nothing there; put {masked} under assignments.perplexity, {config} under "
            "probes.perplexity.targets, or take it out of analysis.nationality.underlying"
        )
    return pl.read_parquet(folder / "*.parquet")


def _delta(case: Case, params: Params) -> pl.DataFrame:
    """Return the differences of probabilities, by country, gender and measure."""
    result: list[dict[str, Any]] = []
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
        for c, m in np.argwhere(~np.isnan(value)).tolist():
            estimate = Estimate(value[c, m], low[c, m], high[c, m], counts[c][0], OVER_TEXTS)
            result.append(
                estimate.row(
                    cluster="source text",
                    null=UNCHANGED,
                    p=p[c, m],
                    country=case.countries[c],
                    gender=SEXES.index(gender),
                    measure=case.measures[m],
                    rows=int(cells.counts[:, c].sum()),
                    names=counts[c][1],
                    before=finite(before[c, m]),
                    spread=finite(spread[c, m]),
                    contrast=finite(against[c, m]),
                    contrast_low=finite(against[c, m] - half[c, m]),
                    contrast_high=finite(against[c, m] + half[c, m]),
                    p_country=p_country[c, m] if len(counts) > 1 else None,
                )
            )
    table = adjusted(pl.DataFrame(result, infer_schema_length=None), over=("gender",))
    return rounded(adjusted(table, "p_country", over=("gender",)), p=("p_country",))


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


def _predicted(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the most probable class of each row; the first of equal ones."""
    found: NDArray[np.int64] = shares[:, 1:].argmax(axis=1)
    return found


def _changes(case: Case, params: Params) -> pl.DataFrame:
    """Return how often each class is predicted, before and after."""
    result: list[dict[str, Any]] = []
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
        for c, k in np.argwhere(np.repeat(there[:, None], len(classes), axis=1)).tolist():
            n = int((before.counts[:, c] > 0).sum())
            result.append(
                Estimate(value[c, k], low[c, k], high[c, k], n, OVER_TEXTS).row(
                    cluster="source text",
                    null=UNCHANGED,
                    p=p[c, k],
                    country=case.countries[c],
                    gender=SEXES.index(gender),
                    **{"class": classes[k]},
                    before=int(before.sums[:, c, k].sum()),
                    after=int(after.sums[:, c, k].sum()),
                )
            )
    return adjusted(pl.DataFrame(result, infer_schema_length=None), over=("gender",))


def _confusion(case: Case) -> pl.DataFrame:
    classes = case.measures[1:]
    before, after = _predicted(case.before), _predicted(case.after)
    result = []
    for c, country in enumerate(case.countries):
        own = case.country == c
        matrix = confusion(before[own], after[own], len(classes))
        result += [
            {"country": country, "class_before": one, "class_after": other, "rows": int(n)}
            for one, row in zip(classes, matrix, strict=True)
            for other, n in zip(classes, row, strict=True)
        ]
    return pl.DataFrame(result)
