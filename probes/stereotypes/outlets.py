"""How alike a model is after training on one outlet and on another, by its emotion profiles.

Choenni et al. (2021), Figures 3 and 5: the model before the training is one of those compared, and
the figures' numbers are plain means over categories, with the standard deviation over them.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Table
from plumbline.probes.stereotypes import shift_rows as rows
from plumbline.probes.stereotypes import similarity, typicality
from plumbline.probes.stereotypes.typicality import MEAN, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Runs = Mapping[int, Array]  # (groups, affects) of each training, by its seed

BEFORE = "before training"
READINGS = {rows.FAITHFUL: (rows.WITHOUT_FEAR, True), rows.CORRECTED: (rows.ALL, False)}
OUTLETS = Schema.keyed(
    (
        *(typicality.MODEL, typicality.LANGUAGE, typicality.RANKING),
        Column("share", "float64", "part of the articles", minimum=0, maximum=1),
        Column("first", "string", f"outlet trained on, or {BEFORE}"),
        Column("second", "string", "another outlet"),
        typicality.CATEGORY,
        Column("measure", "label", "the two similarities of `shifts`", labels=rows.MEASURES),
    ),
    *ESTIMATE,
    Column("pairs", "int64", "trainings with one seed that value is the mean of", minimum=1),
    number("spread", "standard deviation over these pairs; null of one"),
    number(
        "spread_categories", f"of {MEAN}: standard deviation over categories, as in the figures"
    ),
)


def compare(
    runs: Mapping[str, Runs], categories: Mapping[str, NDArray[np.bool_]], confidence: float
) -> pl.DataFrame:
    """Return the rows of all pairs of outlets at one share, but where they belong.

    Parameters
    ----------
    runs
        By outlet, and :data:`BEFORE`, whose one array stands under each seed.
    categories
        Which groups are in each, (groups,); groups without direction in some training are left
        out, and categories with fewer than three others.
    """
    every = np.stack([profiles for own in runs.values() for profiles in own.values()])
    directed = (np.nan_to_num(every[..., rows.WITHOUT_FEAR]).sum(axis=-1) > 0).all(axis=0)
    table = Table(OUTLETS, model="", language="", ranking=0, share=1.0)
    for first, second in combinations(sorted(runs, key=lambda name: (name != BEFORE, name)), 2):
        seeds = sorted(runs[first].keys() & runs[second].keys())
        for measure, (affects, diagonal) in READINGS.items():
            place = {"first": first, "second": second, "measure": rows.MEASURES.index(measure)}
            found = []
            for name, inside in categories.items():
                kept = inside & directed
                pairs = [
                    tuple(runs[of][seed][kept][:, affects] for of in (first, second))
                    for seed in seeds
                ]
                values = np.array([similarity.rsa(*pair, diagonal=diagonal) for pair in pairs])
                if not len(values) or np.isnan(values).any():
                    continue
                each = [similarity.jackknife(*pair, diagonal=diagonal) for pair in pairs]
                found.append((values, np.mean(each, axis=0)))
                _add(table, place | {"category": name}, *found[-1], confidence)
            if found:
                means = np.mean([values for values, _ in found], axis=0)
                parts = np.concatenate([own for _, own in found]) / len(found)
                each = [values.mean() for values, _ in found]
                apart = float(np.std(each, ddof=1)) if len(each) > 1 else np.nan
                _add(table, place | {"category": MEAN}, means, parts, confidence, apart)
    return table.frame()


def _add(
    table: Table,
    place: dict[str, Any],
    values: Array,
    parts: Array,
    confidence: float,
    spread: float = float("nan"),
) -> None:
    """Add the mean over trainings, with the interval of :func:`similarity.limits`."""
    value = float(values.mean())
    low, high = np.clip(similarity.limits(value, parts, confidence), -1, 1)
    found = Estimate(value, float(low), float(high), len(parts), similarity.METHOD)
    of_pairs = values.std(ddof=1) if values[1:].size else np.nan
    table.add(
        found.at(confidence),
        cluster="group",
        null="none: no test; 1 are profiles of the same order",
        pairs=len(values),
        spread=None if np.isnan(of_pairs) else round(float(of_pairs), 6),
        spread_categories=None if np.isnan(spread) else round(spread, 6),
        **place,
    )
