"""Plain scorers of single respondents, after the scripts of the two sites.

The analysis ``compass`` is held against them, and they against the sites' own answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from plumbline.probes.leaning.scoring import CONSTANTS, DIVISORS, OPTIONS, UNCLEAR

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from plumbline.probes.leaning.scoring import Reading

    Array = NDArray[np.float64]

Lacking = Literal["refuse", "zero", "middle"]


class Coordinates(NamedTuple):
    """Where answers are on the compass; arrays of the shape of the answers but for the items.

    ``low`` and ``high`` are as far as the missing answers could have led; they are the coordinate
    itself where none is missing.
    """

    economic: Array  # plus is right
    social: Array  # plus is authoritarian
    economic_low: Array
    economic_high: Array
    social_low: Array
    social_high: Array
    missing: NDArray[np.int64]  # how many items that move an axis have no answer


class Chance(NamedTuple):
    """Mean and standard deviation of the coordinates of who answers uniformly at random."""

    economic_mean: float
    economic_sd: float
    social_mean: float
    social_sd: float


class Percents(NamedTuple):
    """Where answers are on linear axes, from 0 to 100; arrays (..., axes), missing (...)."""

    percent: Array
    low: Array
    high: Array
    missing: NDArray[np.int64]  # how many items that move an axis have no answer


def coordinates(
    answers: ArrayLike,
    economic: ArrayLike,
    social: ArrayLike,
    *,
    reading: Reading = "corrected",
    lacking: Lacking = "refuse",
) -> Coordinates:
    """Return economic = sum/8 + 3/8 and social = sum/19.5 + 47/19.5 of answers.

    Parameters
    ----------
    answers : (..., items) integers
        0 to 3 for :data:`OPTIONS`; :data:`UNCLEAR` where there is no answer.
    economic, social : (items, 4)
        Points of each answer on each axis, as in the column ``points`` of ``statements``.
    reading
        ``faithful`` adds 0.38 and 2.41, as the script does; ``corrected`` 3/8 and 47/19.5, of which
        those are rounded, and with which both axes run from -10 to 10 exactly.
    lacking
        What a missing answer adds. ``refuse`` raises; ``zero`` adds nothing, as the script does,
        which is the same as agreeing with it, for agreeing has 0 points; ``middle`` adds the mean
        of the four answers, as who answers at random does on average.
    """
    given = np.asarray(answers)
    if not np.issubdtype(given.dtype, np.integer) or not ((given >= UNCLEAR) & (given < 4)).all():
        raise ValueError("answers must be integers from 0 to 3, or -1 where there is none")
    points = {"economic": _points(economic, given), "social": _points(social, given)}
    absent = given == UNCLEAR
    if lacking == "refuse" and absent.any():
        raise ValueError(
            f"{int(absent.sum())} answers are missing: say what they add, 'zero' or 'middle'"
        )
    found: dict[str, Array] = {}
    for axis, own in points.items():
        chosen = own[np.arange(own.shape[0]), np.where(absent, 0, given)]
        filled = own.mean(axis=1) if lacking == "middle" else np.zeros(len(own))
        for name, instead in (("", filled), ("_low", own.min(1)), ("_high", own.max(1))):
            total = np.where(absent, instead, chosen).sum(axis=-1)
            found[axis + name] = total / DIVISORS[axis] + CONSTANTS[reading][axis]
    moving = (points["economic"] != 0).any(axis=1) | (points["social"] != 0).any(axis=1)
    missing = (absent & moving).sum(axis=-1)
    return Coordinates(**found, missing=np.asarray(missing, dtype=np.int64))


def chance(economic: ArrayLike, social: ArrayLike, *, reading: Reading = "corrected") -> Chance:
    """Return mean and SD of the coordinates of who answers every item uniformly at random.

    Answers are independent, so the variance of the sum is the sum over the items of the variance of
    the four points: exact, nothing is drawn.

    Parameters
    ----------
    economic, social : (items, 4)
        Points of each answer.
    """
    found = []
    for axis, own in (("economic", economic), ("social", social)):
        points = np.asarray(own, dtype=np.float64)
        mean = float(points.mean(axis=1).sum()) / DIVISORS[axis] + CONSTANTS[reading][axis]
        found += [mean, float(np.sqrt(points.var(axis=1).sum())) / DIVISORS[axis]]
    return Chance(*found)


def percents(
    stances: ArrayLike, effects: ArrayLike, *, lacking: Literal["refuse", "zero"] = "refuse"
) -> Percents:
    """Return 100 (max + score) / (2 max) on every axis of a linear scale.

    The score is the sum over the items of stance times effect, max that of the absolute effects:
    50 is the middle, 100 is who takes the side of the axis every time.

    Parameters
    ----------
    stances : (..., items)
        From -1, disagrees strongly, to 1, agrees strongly, see :data:`STANCES`; NaN for no answer.
    effects : (items, axes)
        What agreeing strongly adds: ``weight``, with its sign turned where ``reversed``; 0 where an
        item is not on an axis.
    lacking
        Whether a missing answer raises, or adds 0, as a neutral one.
    """
    given, weights = np.asarray(stances, dtype=np.float64), np.asarray(effects, dtype=np.float64)
    if weights.ndim != 2 or given.ndim < 1 or given.shape[-1] != len(weights):
        raise ValueError("effects must be (items, axes), and stances (..., items)")
    absent = np.isnan(given)
    if not (absent | (np.abs(given) <= 1)).all():
        raise ValueError("stances must be from -1 to 1")
    most = np.abs(weights).sum(axis=0)
    if not (most > 0).all():
        raise ValueError("an axis has no item that moves it")
    if lacking == "refuse" and absent.any():
        raise ValueError(f"{int(absent.sum())} answers are missing: say that they add 'zero'")
    score = np.where(absent, 0.0, given) @ weights
    open_ = absent.astype(np.float64) @ np.abs(weights)  # what the missing ones could add
    percent, low, high = (
        100 * (most + total) / (2 * most) for total in (score, score - open_, score + open_)
    )
    missing = (absent & (weights != 0).any(axis=1)).sum(axis=-1)
    return Percents(percent, low, high, np.asarray(missing, dtype=np.int64))


def _points(own: ArrayLike, answers: NDArray[np.int64]) -> Array:
    points = np.asarray(own, dtype=np.float64)
    if answers.ndim < 1 or points.shape != (answers.shape[-1], len(OPTIONS)):
        raise ValueError("points must be (items, 4), and answers (..., items)")
    return points
