"""Texts that begin alike: what is computed once for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

SHORTEST = 4  # tokens; sharing fewer costs more than it saves


class Cluster(NamedTuple):
    """Texts that share their first tokens."""

    shared: int  # tokens
    rows: tuple[int, ...]


def clusters(texts: Sequence[Sequence[int]], limits: Sequence[int]) -> list[Cluster]:
    """Part texts into clusters so that much is shared.

    Sorted texts are taken up into a cluster as long as the tokens saved, (texts - 1) times the
    length that all of them share, do not become fewer.

    Parameters
    ----------
    texts
        Tokens of each.
    limits
        How many of the first tokens of each may be shared at most.

    Returns
    -------
    Every row in one cluster; those that share nothing alone, with ``shared`` 0. The result does
    not depend on the order of the texts, but for the numbers of the rows.
    """
    order = sorted(range(len(texts)), key=lambda i: (list(texts[i]), limits[i]))
    found: list[Cluster] = []
    start = 0
    while start < len(order):
        shared, stop = limits[order[start]], start + 1
        while stop < len(order):
            longer = min(
                shared, limits[order[stop]], _common(texts[order[start]], texts[order[stop]])
            )
            if longer < SHORTEST or (stop - start) * longer < (stop - start - 1) * shared:
                break
            shared, stop = longer, stop + 1
        rows = tuple(order[start:stop])
        found.append(Cluster(shared if len(rows) > 1 else 0, rows))
        start = stop
    return found


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """Return how many first tokens two texts share."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))
