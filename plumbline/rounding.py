"""Numbers as sentences and tables show them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MISSING = "–"


def number(value: float | None) -> str:
    """Return a number with three decimals at most, and with at least two significant digits.

    Examples
    --------
    >>> number(0.7512), number(-12.34), number(123.4), number(0.00042), number(None)
    ('0.751', '-12.3', '123', '0.00042', '–')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size < 0.001:
        return f"{value:.2g}" if value else "0"
    return f"{value:.{max(0, 3 - len(str(int(size)))) if size >= 1 else 3}f}"


def interval(row: Mapping[str, Any]) -> str:
    """Return the value of a row with its interval, which may be open or absent.

    Examples
    --------
    >>> interval({"value": 0.75, "low": 0.6, "high": None})
    '0.750 [0.600, ∞]'
    """
    value, low, high = row["value"], row["low"], row["high"]
    if value is None or low is high is None:
        return number(value)
    ends = ("-∞" if low is None else number(low), "∞" if high is None else number(high))
    return f"{number(value)} [{ends[0]}, {ends[1]}]"


def p_value(value: float | None) -> str:
    """Return a p-value with three decimals, or as a power of ten."""
    if value is None or math.isnan(value):
        return MISSING
    return f"{value:.3f}" if value >= 0.001 or value == 0 else f"{value:.0e}"
