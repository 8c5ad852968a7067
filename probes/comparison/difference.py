"""A difference between two models, with the t test and the interval that all studies have."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.probes.stats.estimate import DF, Estimate, finite
from plumbline.probes.stats.intervals import t_half_width
from plumbline.probes.stats.t_tests import t_p

Row = dict[str, Any]


class Params(Section):
    """How models are compared."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the table")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    min_count: int = Field(
        20, ge=1, description="lists of both models together that must have a word"
    )
    n_bootstrap: int = Field(400, ge=20, description="replicates, of the calibration of agreement")


def difference(
    item: tuple[str, str, str], first: float, estimate: Estimate, p: float | None, freedom: float
) -> Row:
    """Return a row of the table: the first model's finding, and its difference from the second's.

    ``item``: language, scale and what. ``freedom``: of t; 0: not known to be t.
    """
    row = estimate.row(p=p, **dict(zip(("language", "scale", "what"), item, strict=True)))
    others = {"value_first": finite(first), "value_second": finite(first - estimate.value)}
    return row | others | {DF: freedom}


def t_difference(
    item: tuple[str, str, str],
    first: float,
    value: float,
    error: float,
    freedom: float,
    n: int,
    params: Params,
    *,
    tested: bool = True,
) -> Row:
    """Return :func:`difference` with a t interval, and p unless it is not to be tested.

    ``error``, ``freedom``: standard error of the difference and its degrees of freedom, 0: unknown;
    ``n``: clusters.
    """
    half = float(t_half_width(error, freedom, params.confidence)) if freedom > 0 else float("nan")
    p = t_p(value, error, freedom) if tested and freedom > 0 else None
    return difference(item, first, Estimate(value, value - half, value + half, n), p, freedom)
