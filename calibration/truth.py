"""Components of the simulation of an analysis.

A module ``calibration/STUDY/ANALYSIS.py`` draws responses from known parameters, in the schema of
the probe and without a model, and states the true value for each test. It contains

- ``Shape``: the shape of a run, with realistic defaults; ``SHAPES``: the simulated shapes;
- ``TRUTHS``: the distributions of responses, by name;
- ``PARAMS``: settings of the analysis that differ from the params, such as fewer resamples;
- ``draw(folder, truth, shape, rng)``: write one replicate and return it as a :class:`Drawn`;
- ``outcomes(tables, drawn)``: return the rows of each test, see :func:`outcomes_by`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plumbline.probes.core.run_analysis import Inputs

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]
Tables = dict[str, pl.DataFrame]
Generator = np.random.Generator

COLUMNS = ("effect", "target", "family", "value", "low", "high", "p", "p_adjusted")


class Truth:
    """Distribution of responses: no effect, an effect, or a difference that is not tested.

    ``settings``: settings for the module that draws; ``shape`` changes settings of the shape.
    """

    def __init__(self, kind: Literal["null", "planted", "decoy"], **settings: Any) -> None:
        self.kind, self.settings = kind, settings
        self.get = settings.get


class Drawn(NamedTuple):
    """One replicate: the inputs of the analysis, and the true parameters."""

    inputs: Inputs
    known: Any = None  # true parameters, in a form specific to the module
    truth: Any = None  # the Truth and the shape, if the module uses them
    shape: Any = None
    params: Mapping[str, Any] = MappingProxyType({})  # params of the analysis that the shape sets


def normal_mean(function: Callable[[Array], Array], mean: Array, sd: Array | float) -> Array:
    """Return the mean of a function of normal variates, (...), by Gauss-Hermite quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    values = function(np.asarray(mean)[..., None] + np.asarray(sd)[..., None] * nodes)
    return np.asarray(values @ weights / weights.sum())


def outcomes_by(
    table: pl.DataFrame,
    test: str,
    *,
    effect: pl.Expr | str | float | None,
    target: pl.Expr | str | float | None = None,
    family: Sequence[str] = (),
    interval: Sequence[str] = ("value", "low", "high"),
    p: str = "p",
    p_adjusted: str = "p_bh",
) -> Tables:
    """Return the rows of the tests in a table, keyed by test, with the columns :data:`COLUMNS`.

    ``table``: rows of a table of the analysis, including those without a test. ``test``: name with
    columns in braces; each combination of their values is a test. ``effect``: the planted effect,
    or its column; 0 if the null hypothesis is true, and null if the effect is unknown, for example
    next to a planted one. Coverage is counted by effect size. ``target``: the value that the
    interval should cover, or its column; null if unknown. ``family``: columns; the p-values of rows
    with equal values in all of them were adjusted together. ``interval``: columns of the estimate
    and the limits; intervals without limits are not counted. ``p``, ``p_adjusted``: columns of
    p-values; if they are missing, the rows have no test.
    """

    def column(value: pl.Expr | str | float | None) -> pl.Expr:
        if isinstance(value, str):
            value = pl.col(value) if value else None
        return (value if isinstance(value, pl.Expr) else pl.lit(value)).cast(pl.Float64)

    keys = [name for _, name, *_ in Formatter().parse(test) if name]
    joined = pl.concat_str([pl.col(c).cast(pl.String).fill_null("") for c in family], separator="|")
    ends = (*interval, "", "", "")[:3]
    rows = table.select(
        *keys,
        effect=column(effect),
        target=column(target),
        family=joined if family else pl.lit("all"),
        **{name: column(end) for name, end in zip(("value", "low", "high"), ends, strict=True)},
        p=column(p if p in table.columns else ""),
        p_adjusted=column(p_adjusted if p and p_adjusted in table.columns else ""),
    )
    if not keys:
        return {test: rows}
    parts = rows.partition_by(keys, as_dict=True, maintain_order=True, include_key=False)
    return {test.format(**dict(zip(keys, key, strict=True))): part for key, part in parts.items()}
