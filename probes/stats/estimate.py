"""The shape of every number in a table."""

from __future__ import annotations

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value with its interval.

    ``n`` is the number of independent clusters behind it, ``method`` says what kind of interval
    ``low`` to ``high`` is and what was resampled.
    """

    value: float
    low: float
    high: float
    n: int
    method: str
