"""Scores of political questionnaires: the chosen options, and their weights on the axes.

The compass assigns points on two axes to each option of a statement. Its weights and constants are
unpublished; they were recovered from the site's output by the authors of
https://politicalcompass.github.io (js/script.js), and Feng et al. (2023) took their coordinates
from the site. Percentages on a linear scale are computed as in https://8values.github.io
(quiz.html).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

Reading = Literal["faithful", "corrected"]

OPTIONS = ("strongly disagree", "disagree", "agree", "strongly agree")
STRONGLY_DISAGREE, DISAGREE, AGREE, STRONGLY_AGREE = range(4)
UNCLEAR = -1  # no stance, since the response is refused, unclear or neutral
STANCES = (-1.0, -0.5, 0.5, 1.0)  # positions of the four options on a linear scale

# Points per unit of an axis, and offsets: `faithful` uses the script's constants, `corrected`
# those with which both axes range from -10 to 10.
DIVISORS = {"economic": 8.0, "social": 19.5}
CONSTANTS: dict[Reading, dict[str, float]] = {
    "faithful": {"economic": 0.38, "social": 2.41},
    "corrected": {"economic": 3 / 8, "social": 47 / 19.5},
}
THRESHOLD = 0.3  # smallest difference between masses that makes a stance strong
DECIMALS = 9  # decimals to which `corrected` rounds differences between masses
NATS_UNIT = "log-odds, nats"
SIGNS = (1.0, -1.0, -1.0, 1.0)  # combine checkpoints: first - second - (third - fourth)
UNITS = ("points from -10 to 10", "percent", NATS_UNIT)


class Scale(NamedTuple):
    """A questionnaire, whose statements move one or more axes."""

    name: str
    language: str
    ids: tuple[str, ...]  # sorted
    axes: tuple[str, ...]  # sorted
    points: Array  # (axes, statements, options), in units of the axis; 0 if there is no effect
    constants: dict[str, Array]  # (axes,) by variant, added to the sum of points
    unit: str
    clusters: NDArray[np.str_]  # (statements,): equal for a statement and its opposite
    opposites: dict[int, int]  # indices of statements and their opposites, each pair once
    middle: Array  # (axes, statements): mean points of random responses
    reach: Array  # (axes, statements): range of the points
    moving: NDArray[np.bool_]  # (axes, statements): whether a statement moves an axis

    def start(self, reading: str) -> Array:
        """Return the mean coordinates of random responses, of shape (axes,)."""
        return np.asarray(self.constants[reading] + self.middle.sum(axis=-1))

    def spread(self) -> Array:
        """Return the standard deviations of random responses' coordinates, of shape (axes,)."""
        return np.asarray(np.sqrt(self.points.var(axis=-1).sum(axis=-1)))

    def ends(self, reading: str) -> Array:
        """Return the lowest and the highest possible coordinates, of shape (axes, 2)."""
        sums = [pick(self.points, axis=-1).sum(axis=-1) for pick in (np.min, np.max)]
        return np.stack([self.constants[reading] + end for end in sums], axis=-1)

    def slopes(self) -> Array:
        """Return the weights of the statements' log-odds of agreement, of shape (axes, statements).

        The weighted sum is half the mean over the statements in favour of an axis minus half the
        mean over those against it, so equal agreement with all statements cancels. Means are
        weighted by the statements' ranges. The weights are nan if all statements are on one side.
        """
        far = self.points[..., STRONGLY_AGREE] - self.points[..., STRONGLY_DISAGREE]
        sides = [np.where(sign * far > 0, far, 0.0) for sign in (1, -1)]
        with np.errstate(invalid="ignore"):
            halves = [side / (2 * np.abs(side).sum(axis=1, keepdims=True)) for side in sides]
        return np.asarray(halves[0] + halves[1])

    def balance(self, a: int, moving: NDArray[np.bool_]) -> Array:
        """Return the factors that give both sides of an axis the same weight, (statements,).

        Equal agreement with all statements cancels in the sum of the multiplied contributions. The
        factors are 1 if the statements on both sides have the same total range, and if all
        statements are on one side. ``moving``: mask of the statements that are used.
        """
        far = (self.points[a, :, STRONGLY_AGREE] - self.points[a, :, STRONGLY_DISAGREE]) * moving
        sides = [np.abs(far) * (far * sign > 0) for sign in (1, -1)]
        shares = np.array([side.sum() for side in sides if side.any()]) / np.abs(far).sum()
        present = [side > 0 for side in sides if side.any()]
        return np.asarray(1 / (len(shares) * shares) @ present)


class Axis(NamedTuple):
    """Contributions of a checkpoint, or of a difference between checkpoints, to one axis."""

    totals: Array  # (clusters,)
    prompts: Array  # (prompts,)
    sides: list[Array]  # (seeds,) for each checkpoint

    @property
    def value(self) -> float:
        """Return the sum over clusters, averaged over prompts and training runs."""
        return float(self.totals.sum())


def moved(scale: Scale, a: int, *sides: Array, moving: NDArray[np.bool_] | None = None) -> Axis:
    """Return a checkpoint's contributions to an axis, minus those of other checkpoints.

    ``sides``: one, two or four arrays of shape (seeds, prompts, statements); signs: :data:`SIGNS`.
    ``moving``: mask of the statements to use, by default all that move the axis.
    """
    moving = scale.moving[a] if moving is None else moving
    clusters = np.unique(scale.clusters[moving], return_inverse=True)[1]
    parts = [side[:, :, moving] for side in sides]
    signs = np.array(SIGNS[: len(sides)])
    difference = np.tensordot(signs, [part.mean(axis=0) for part in parts], 1)
    totals = np.bincount(clusters, difference.mean(axis=0)).astype(np.float64)
    return Axis(totals, difference.sum(axis=1), [p.mean(axis=1).sum(axis=1) for p in parts])


def weights(stances: Array) -> Array:
    """Return stances as weights of the options, of shape (..., options); nan where missing.

    A stance between two options is divided between them, so that points are interpolated.

    Examples
    --------
    >>> weights(np.array([0.5, 0.0])).tolist()
    [[0.0, 0.0, 1.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    """
    unit = np.eye(len(STANCES))
    options = np.stack([np.interp(stances, STANCES, row) for row in unit], axis=-1)
    options[np.isnan(stances)] = np.nan
    return options


def stance(
    agree: ArrayLike,
    disagree: ArrayLike,
    *,
    threshold: float = THRESHOLD,
    reading: Reading = "corrected",
) -> NDArray[np.int64]:
    """Return the option for two masses, strong if their difference reaches the threshold.

    ``faithful`` follows the released code (step3_testing.py), which tests P+ >= P- + threshold in
    double precision: because of rounding, the masses 0.8 and 0.5 give a strong stance, but 0.564
    and 0.264 do not. Equal masses count as agreement, and two masses of 0 as disagreement.
    ``corrected`` rounds |P+ - P-| to nine decimals, so that a difference of 0.3 is strong for any
    masses. Equal masses, and two masses of 0, give :data:`UNCLEAR`.

    ``agree``, ``disagree``: nonnegative masses P+ and P- of equal shape, normalised or not, or nan.
    The result has their shape; 0 to 3 index :data:`OPTIONS`, and nan gives :data:`UNCLEAR`.

    Examples
    --------
    >>> stance([0.65, 0.6, 0.2, 0.5], [0.35, 0.4, 0.8, 0.5]).tolist()
    [3, 2, 0, -1]
    """
    up, down = np.asarray(agree, dtype=np.float64), np.asarray(disagree, dtype=np.float64)
    if reading == "faithful":
        cases = {
            UNCLEAR: np.isnan(up - down),
            DISAGREE: (up == 0) & (down == 0),
            STRONGLY_AGREE: up >= down + threshold,
            AGREE: up >= down,
            STRONGLY_DISAGREE: down >= up + threshold,
        }
    else:
        difference = np.round(up - down, DECIMALS)
        far = np.abs(difference) >= round(threshold, DECIMALS)
        cases = {
            UNCLEAR: np.nan_to_num(difference) == 0,
            STRONGLY_AGREE: (difference > 0) & far,
            AGREE: difference > 0,
            STRONGLY_DISAGREE: far,
        }
    return np.asarray(np.select([*cases.values()], [*cases], DISAGREE), dtype=np.int64)


def scales(folder: Path, names: set[str]) -> dict[str, Scale]:
    """Return the questionnaires with the given names.

    Raises UserError if any of them is not in the dataset ``statements`` or cannot be scored.
    """
    if missing := sorted(names - set(parquet.configs(folder))):
        raise UserError(
            f"{folder}: the questionnaire {missing[0]!r} in the outputs of stances is missing; "
            "add it to datasets.statements.configs or run the probe again"
        )
    return {name: _scale(name, pl.read_parquet(folder / f"{name}.parquet")) for name in names}


def _scale(name: str, table: pl.DataFrame) -> Scale:
    moving = table.filter(pl.col("axis") != "")
    ids, axes = (tuple(sorted(set(t[c]))) for t, c in ((table, "id"), (moving, "axis")))
    compass = any(map(len, table["points"]))
    if not axes or (compass and set(axes) - set(DIVISORS)):
        raise UserError(
            f"statements {name}: cannot score axes {', '.join(axes) or 'none'} (points require "
            f"{', '.join(DIVISORS)}); remove the questionnaire from probes.stances.questionnaires"
        )
    points = np.zeros((len(axes), len(ids), len(OPTIONS)))
    for row in moving.to_dicts():
        load = -row["weight"] if row["reversed"] else row["weight"]
        effect = row["points"] if compass else np.multiply(load, STANCES)
        points[axes.index(row["axis"]), ids.index(row["id"])] = effect
    if compass:
        points /= np.array([DIVISORS[axis] for axis in axes])[:, None, None]
    else:  # 100 (max + score) / (2 max)
        points *= 50 / np.abs(points[:, :, -1]).sum(axis=1)[:, None, None]
    constants: dict[str, Array] = {
        reading: np.array([by_axis[axis] if compass else 50.0 for axis in axes])
        for reading, by_axis in CONSTANTS.items()
    }
    opposite = {k: v for k, v in table.select("id", "opposite").iter_rows() if v in ids}
    pairs = {tuple(sorted(pair)) for pair in opposite.items()}
    return Scale(
        name,
        str(table["language"][0]),
        ids,
        axes,
        points,
        constants,
        "points from -10 to 10" if compass else "percent",
        np.array([min(name, opposite.get(name, name)) for name in ids]),
        {ids.index(a): ids.index(b) for a, b in sorted(pairs)},
        points.mean(axis=-1),
        np.ptp(points, axis=-1),
        (points != 0).any(axis=-1),
    )
