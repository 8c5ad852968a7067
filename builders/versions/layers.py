"""Laying out what came of what in layers: each thing right of all that it was made of.

The usual three steps (Sugiyama, Tagawa and Toda, 1981): layers by the longest way from a source,
an order in each layer by the mean place of the neighbours, and then heights, as near to the
neighbours' as the order allows. Lines that pass a layer have a place there, all those from one
box the same.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 24
GAP = 14.0  # between boxes
LANE = 10.0  # height of a place where a line passes


class Place(NamedTuple):
    """Where a box, or a line on its way, stands."""

    layer: int
    middle: float  # its height


class Layout(NamedTuple):
    """Places of the boxes, and the ways of the lines between them."""

    boxes: dict[str, Place]
    ways: dict[tuple[str, str], list[Place]]  # from, to: places on the way, both ends included


def layout(heights: dict[str, float], edges: list[tuple[str, str]]) -> Layout:
    """Lay out boxes of given heights; an edge goes from what was read to what was made of it.

    The edges must have no cycle.
    """
    rank = _ranks(list(heights), edges)
    high, chains = dict(heights), {}
    for a, b in edges:
        passed = [f"{a} @{layer}" for layer in range(rank[a] + 1, rank[b])]
        high |= dict.fromkeys(passed, LANE)
        rank |= {name: rank[a] + 1 + i for i, name in enumerate(passed)}
        chains[a, b] = [a, *passed, b]
    links = list(dict.fromkeys(pair for chain in chains.values() for pair in pairwise(chain)))
    rows = _ordered(rank, links)
    middles = _heights(rows, high, links)
    places = {name: Place(rank[name], middles[name]) for name in rank}
    ways = {edge: [places[name] for name in chain] for edge, chain in chains.items()}
    return Layout({name: places[name] for name in heights}, ways)


def _ranks(names: list[str], edges: list[tuple[str, str]]) -> dict[str, int]:
    """Return for each name the length of the longest way to it."""
    rank = dict.fromkeys(names, 0)
    for _ in names:
        moved = {b: rank[a] + 1 for a, b in edges if rank[b] <= rank[a]}
        if not moved:
            break
        for b in moved:
            rank[b] = max(rank[a] + 1 for a, to in edges if to == b)
    # a source stands just before the first that reads it
    sources = set(names) - {b for _, b in edges}
    for name in sources:
        rank[name] = min((rank[b] for a, b in edges if a == name), default=1) - 1
    return rank


def _neighbours(links: list[tuple[str, str]]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    before: dict[str, list[str]] = {}
    after: dict[str, list[str]] = {}
    for a, b in links:
        before.setdefault(b, []).append(a)
        after.setdefault(a, []).append(b)
    return before, after


def _ordered(rank: dict[str, int], links: list[tuple[str, str]]) -> list[list[str]]:
    """Return the layers, each in an order that lets few lines cross."""
    rows: list[list[str]] = [[] for _ in range(max(rank.values(), default=0) + 1)]
    for name, layer in rank.items():
        rows[layer].append(name)
    before, after = _neighbours(links)
    best, fewest = [list(row) for row in rows], _crossings(rows, links)
    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for row in rows if forward else reversed(rows):
            near = before if forward else after
            at = {name: i / len(line) for line in rows for i, name in enumerate(line)}
            wanted = {
                name: sum(at[n] for n in near[name]) / len(near[name]) if name in near else at[name]
                for name in row
            }
            row.sort(key=wanted.__getitem__)
        if (crossings := _crossings(rows, links)) < fewest:
            best, fewest = [list(row) for row in rows], crossings
    return best


def _crossings(rows: list[list[str]], links: list[tuple[str, str]]) -> int:
    """Count the lines that cross: of any two, those that end in another order than they begin."""
    at = {name: (layer, i) for layer, row in enumerate(rows) for i, name in enumerate(row)}
    found = 0
    above: dict[int, list[int]] = {}  # of each layer: where the lines end that began above, sorted
    for (layer, _), end in sorted((at[a], at[b][1]) for a, b in links):
        ends = above.setdefault(layer, [])
        place = bisect_right(ends, end)
        found += len(ends) - place
        ends.insert(place, end)
    return found


def _heights(
    rows: list[list[str]], high: dict[str, float], links: list[tuple[str, str]]
) -> dict[str, float]:
    """Return the middle of each place: near its neighbours', in the order given."""
    before, after = _neighbours(links)
    near = {name: before.get(name, []) + after.get(name, []) for row in rows for name in row}
    middle = {name: at for row in rows for name, at in zip(row, _apart(row, high, {}), strict=True)}
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            wanted = {
                name: sum(middle[n] for n in near[name]) / len(near[name])
                for name in row
                if near[name]
            }
            middle |= dict(zip(row, _apart(row, high, middle | wanted), strict=True))
    top = min((middle[name] - high[name] / 2 for name in middle), default=0.0)
    return {name: at - top for name, at in middle.items()}


def _apart(row: list[str], high: dict[str, float], wanted: dict[str, float]) -> list[float]:
    """Return the middles nearest to those wanted (least squares) that keep order and distance."""
    offset = [0.0]
    for a, b in pairwise(row):
        offset.append(offset[-1] + (high[a] + high[b]) / 2 + GAP)
    blocks: list[tuple[float, int]] = []  # mean and number: adjacent violators are pooled
    for name, shift in zip(row, offset, strict=True):
        mean, number = wanted.get(name, shift) - shift, 1
        while blocks and blocks[-1][0] >= mean:
            other, count = blocks.pop()
            mean = (mean * number + other * count) / (number + count)
            number += count
        blocks.append((mean, number))
    means = [mean for mean, number in blocks for _ in range(number)]
    return [mean + shift for mean, shift in zip(means, offset, strict=True)]
