"""A difference between two models, with the t test and the interval that all studies have."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.intervals import t_half_width
from plumbline.probes.stats.t_tests import t_p


class Params(Section):
    """How models are compared."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the table")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="of the intervals")
    min_count: int = Field(
        20, ge=1, description="lists of both models together that must have a word"
    )
    n_bootstrap: int = Field(400, ge=20, description="replicates, of the calibration of agreement")


class Difference(NamedTuple):
    """What is found about the first model less what is found about the second."""

    language: str
    scale: str
    what: str
    first: float
    estimate: Estimate
    p: float | None
    freedom: float  # of t; 0: not known to be t


def of_t(
    about: tuple[str, str, str],
    first: float,
    value: float,
    error: float,
    freedom: float,
    n: int,
    params: Params,
    *,
    tested: bool = True,
) -> Difference:
    """Return a difference with its t interval, and p unless it is not to be tested.

    ``about``: language, scale and what.
    ``first``, ``value``: what is found about the first model, and the difference.
    ``error``, ``freedom``: its standard error, and the degrees of freedom of that.
    ``n``: clusters.
    """
    half = float(t_half_width(error, freedom, params.confidence)) if freedom > 0 else float("nan")
    found = Estimate(value, value - half, value + half, n)
    p = t_p(value, error, freedom) if tested and freedom > 0 else None
    return Difference(*about, first, found, p, freedom)
