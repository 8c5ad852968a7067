"""Questionnaires as arrays: what every answer to every statement adds to every axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.probes.leaning.scoring import CONSTANTS, DIVISORS, OPTIONS, STANCES

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

UNITS = ("points from -10 to 10", "percent")


class Scale(NamedTuple):
    """A questionnaire: statements that move one of its axes or several."""

    name: str
    language: str
    ids: tuple[str, ...]  # sorted
    axes: tuple[str, ...]  # sorted
    points: Array  # (axes, statements, options), in the unit of the axis; 0: does not move it
    constants: dict[str, Array]  # (axes,) by reading: what is added to the sum
    unit: int
    clusters: tuple[str, ...]  # of each statement: it, with the one that says the opposite
    opposites: dict[int, int]  # places of pairs, each once

    def middle(self) -> Array:
        """Return what answering at random adds on average, (axes, statements)."""
        found: Array = self.points.mean(axis=-1)
        return found

    def start(self, reading: str) -> Array:
        """Return the coordinates of who answers at random, on average, (axes,)."""
        found: Array = self.constants[reading] + self.middle().sum(axis=-1)
        return found

    def spread(self) -> Array:
        """Return the standard deviation of theirs, (axes,): answers are independent."""
        found: Array = np.sqrt(self.points.var(axis=-1).sum(axis=-1))
        return found

    def ends(self, reading: str) -> Array:
        """Return the lowest and the highest coordinate that there is, (axes, 2)."""
        sums = [pick(self.points, axis=-1).sum(axis=-1) for pick in (np.min, np.max)]
        found: Array = np.stack([self.constants[reading] + end for end in sums], axis=-1)
        return found

    def moving(self) -> NDArray[np.bool_]:
        """Tell which statements move which axis, (axes, statements)."""
        return np.asarray((self.points != 0).any(axis=-1), dtype=np.bool_)


def weights(stances: Array) -> Array:
    """Return stances as weights of the options, (..., options); nan where there is none.

    A stance between two options has a part of either, so that points are interpolated; one of
    :data:`plumbline.probes.leaning.scoring.STANCES` is that option.

    Examples
    --------
    >>> weights(np.array([0.5, 0.0])).tolist()
    [[0.0, 0.0, 1.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    """
    given = np.asarray(stances, dtype=np.float64)
    one = np.eye(len(STANCES))
    found = np.stack([np.interp(given, STANCES, one[k]) for k in range(len(STANCES))], axis=-1)
    found[np.isnan(given)] = np.nan
    return found


def scales(folder: Path, names: set[str]) -> dict[str, Scale]:
    """Return the questionnaires of those names.

    Raises
    ------
    Problem
        If one is not in the dataset ``statements``, or bears on no axis.
    """
    there = parquet.configs(folder)
    if lost := sorted(names - set(there)):
        raise Problem(
            f"{folder}: has no questionnaire {lost[0]!r}, which the outputs of leaning answer; add "
            "it to datasets.statements.configs or run the probe again"
        )
    return {name: _scale(name, pl.read_parquet(folder / f"{name}.parquet")) for name in names}


def _scale(name: str, table: pl.DataFrame) -> Scale:
    rows = table.sort("id", "axis").to_dicts()
    ids = sorted({row["id"] for row in rows})
    axes = sorted({row["axis"] for row in rows if row["axis"]})
    if not axes:
        raise Problem(
            f"statements {name}: bears on no axis, so that it has no coordinates; take it out of "
            "the questionnaires of probes.leaning"
        )
    points = np.zeros((len(axes), len(ids), len(OPTIONS)))
    given = any(row["points"] for row in rows)
    for row in rows:
        if row["axis"]:
            sign = -1 if row["reversed"] else 1
            effect = [sign * row["weight"] * stance for stance in STANCES]
            at = axes.index(row["axis"]), ids.index(row["id"])
            points[at] = row["points"] if given else effect
    opposite = {row["id"]: row["opposite"] for row in rows if row["opposite"] in ids}
    pairs = {tuple(sorted(pair)) for pair in opposite.items()}
    clusters = tuple(min(one, opposite.get(one, one)) for one in ids)
    if given:
        if unknown := sorted(set(axes) - set(DIVISORS)):
            raise Problem(
                f"statements {name}: has points on {unknown[0]!r}, whose unit is not known; only "
                f"the axes {', '.join(DIVISORS)} of the compass have points"
            )
        points /= np.array([DIVISORS[axis] for axis in axes])[:, None, None]
        constants = {
            reading: np.array([own[axis] for axis in axes]) for reading, own in CONSTANTS.items()
        }
    else:  # 100 (max + score) / (2 max)
        points *= 50 / np.abs(points[:, :, -1]).sum(axis=1)[:, None, None]
        constants = {reading: np.full(len(axes), 50.0) for reading in CONSTANTS}
    return Scale(
        name,
        str(table["language"][0]),
        tuple(ids),
        tuple(axes),
        points,
        {str(key): value for key, value in constants.items()},
        UNITS.index("points from -10 to 10" if given else "percent"),
        clusters,
        {ids.index(a): ids.index(b) for a, b in sorted(pairs)},
    )
