"""Rows of the tables of ``values`` that come from one model's responses in one reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.bootstrap import interval
from plumbline.probes.stats.estimate import (
    DF,
    LEVEL,
    TESTED_ERROR,
    Estimate,
    finite,
    rounded,
    significant,
)
from plumbline.probes.stats.t_tests import NEAR, equivalence, mean_p, t_p
from plumbline.probes.stats.tests import permutation_p
from plumbline.probes.values import schemas
from plumbline.probes.values.calibration import (
    facing,
    fit,
    mean,
    probability,
    rating,
    ratings,
    residuals,
)
from plumbline.probes.values.responses import NATS
from plumbline.probes.values.schemas import LIKELY, OWN, POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Integers = NDArray[np.int64]

# no test of a value without pairs of opposites: who agrees with all that is political looks alike


class Reading(NamedTuple):
    """Responses of a model in one reading."""

    name: str
    calibration: Block
    items: Block  # of one scale
    params: Params

    def axes(self) -> Iterator[tuple[str, Bools]]:
        """Yield each value and which rows bear on it."""
        axis = self.items.about["axis"].to_numpy()
        for name in sorted(set(axis.tolist())):
            yield name, axis == name

    def row(self, draws: Array, clusters: int, **more: Any) -> dict[str, Any]:
        """Return a row of a table of the reading, see :func:`estimate`."""
        scale = str(self.items.about["scale"][0])
        about = {"scale": scale, "reading": self.name}
        return estimate(draws, clusters, self.params, **about, **more)


def estimate(draws: Array, clusters: int, params: Params, **more: Any) -> dict[str, Any]:
    """Return the columns of an estimate; the first of the draws is the one of the data."""
    low, high = interval(draws[1:], clusters, params.confidence)
    return Estimate(float(draws[0]), low, high, clusters).row(**more)


def random_means(load: Array, params: Params) -> Array:
    """Return mean ratings of random responses, (draws,).

    Every P uniform on 0 to 1, as it is for statements that are like the apolitical ones.
    """
    rng = np.random.default_rng(params.seed)
    share = load / load.sum()
    found: Array = 4 * rng.random((params.n_permutations, len(load))) @ share + 1
    return found


def values(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield the means of every value, gender and fit of the calibration."""
    drawn, place = reading.items.drawn, reading.items.place
    bearing = reading.items.about["bearing"].to_numpy()
    axes = [(axis, own, len(np.unique(place[own]))) for axis, own in reading.axes()]
    for fitted in fits(reading.calibration):
        rated = ratings(reading.items, fit(reading.calibration, fitted))
        faced = facing(reading.items, rated)
        for axis, own, clusters in axes:
            paired = balanced(bearing[own], place[own])
            sides = faced[own, 0], faced[own, 1], faced[own].mean(axis=1)
            for who, side in zip(schemas.WHO, sides, strict=True):
                tested = paired and clusters > 1 and fitted == OWN
                each = of_pairs(side[:, 0], bearing[own], place[own]) if tested else None
                error = None if each is None else each.std(ddof=1) / len(each) ** 0.5
                yield reading.row(
                    mean(side, np.abs(bearing[own]), drawn[own]),
                    clusters,
                    p=None if each is None else mean_p(each),
                    **{TESTED_ERROR: error, DF: clusters - 1.0},
                    axis=axis,
                    gender=who,
                    items=int(own.sum()),
                    sd=finite(side[:, 0].std(ddof=1)) if own.sum() > 1 else None,
                    fitted=fitted,
                )


def fits(calibration: Block) -> list[str]:
    """Return the ways to calibrate: on the likely half only where it is a part of them."""
    likely = calibration.about["likely"]
    return [OWN, POOLED, *[LIKELY] * (1 < likely.sum() < len(likely))]


def balanced(bearing: Array, place: Integers) -> bool:
    """Tell whether every statement has one that speaks as much against what it speaks for."""
    return bool(np.allclose(np.bincount(place, bearing), 0))


def of_pairs(faced: Array, bearing: Array, place: Integers) -> Array:
    """Return by how much the mean rating of each pair is from 3, (pairs,); they are tested by t.

    What a statement and its opposite share, such as words, or that political statements are agreed
    with, is taken out of each pair by turning one of them round.

    Parameters
    ----------
    faced : (statements,) array
        Ratings in the direction of the value.
    place : (statements,) array
        Number of the pair.

    Examples
    --------
    Who agrees with everything, 4, 5, 4 times in all, has rated no pair otherwise than 3.

    >>> faced = np.array([4.0, 2.0, 5.0, 1.0, 4.0, 2.0])
    >>> of_pairs(faced, np.array([1.0, -1, 1, -1, 1, -1]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0.0, 0.0, 0.0]
    """
    own = np.unique(place, return_inverse=True)[1]
    load = np.bincount(own, np.abs(bearing))
    apart: Array = np.bincount(own, np.abs(bearing) * (faced - 3)) / load.mean()
    return apart


def gender(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield the differences between feminine and masculine frames, tested both ways.

    Of equivalence the error is that at the margin, and degrees of freedom are the fewest of any
    part of it, the bound of Satterthwaite's from below: those that he gives are too many where a
    part is small by chance, and ``all`` has parts of several values.
    """
    items, neutral = reading.items, reading.calibration
    margin = reading.params.equivalence_margin
    for fitted in (OWN, POOLED):
        lines = fit(neutral, fitted)
        rated, ones = ratings(items, lines), np.ones(len(neutral.about))
        signed, every = items.about["bearing"].to_numpy(), np.ones(len(rated), dtype=np.bool_)
        load = np.abs(signed)
        axes = [*reading.axes(), (schemas.ALL, every)]
        values_of = {axis: [own[own]] for axis, own in axes}  # rows of each value in a part
        values_of[schemas.ALL] = [own for _, own in axes[:-1]]
        sides = {"value": facing(items, rated), "agreement": rated}
        parts = [
            (m, axis, items, sides[m], load, own) for m in schemas.MEASURES for axis, own in axes
        ]
        known = ratings(neutral, lines)
        parts.append(
            ("agreement", schemas.CALIBRATION, neutral, known, ones, ones.astype(np.bool_))
        )
        for measure, axis, block, rating_of, bearing, own in parts:
            apart, place = rating_of[own, 0] - rating_of[own, 1], block.place[own]
            clusters = len(np.unique(place))
            draws = mean(apart, bearing[own], block.drawn[own])
            if axis == schemas.CALIBRATION:  # lines and ratings are of the same statements
                error = beyond = _spread(draws[1:], clusters)
                freedom = fewest = clusters - 1.0
            else:
                still, number = np.ones_like(block.drawn[own]), len(neutral.about)
                line, size = (mean(x, bearing[own], still) for x in (apart, np.abs(apart)))
                each = apart[:, 0], bearing[own], place
                error, freedom = apart_error(each, _spread(line[1:], number), number)
                stretch = _spread(size[1:], number) / size[0] if size[0] else 0.0
                beyond = at_margin(error, draws[0], margin, stretch)
                fewest = min(number, *(len(np.unique(place[of])) for of in values_of[axis])) - 1.0
            paired = measure == "agreement" or balanced(signed[own], place)
            tested = paired and clusters > 1
            told = beyond, clusters, margin, LEVEL, fewest
            test = equivalence(draws[0], *told) if tested and fewest else None
            yield reading.row(
                draws,
                clusters,
                p=t_p(draws[0], error, freedom) if tested else None,
                **{DF: float(freedom)},
                fitted=fitted,
                measure=measure,
                axis=axis,
                equivalence_low=test and finite(test.low),
                equivalence_high=test and finite(test.high),
                p_equivalence=test and _told(test.p),
            )


def _told(p: float) -> float | None:
    """Return p for a table; None where there is none: a difference that does not vary."""
    return None if np.isnan(p) else significant(p)


def at_margin(error: float, apart: float, margin: float, stretch: float) -> float:
    """Return the standard error that a mean difference would have if it were at the margin.

    Lines stretch all differences by one factor, the larger ones by more. Where a difference is
    small because they shrank it, its own error is too small for the null, which is the margin.

    Parameters
    ----------
    error, apart
        Of the mean difference, and that itself.
    stretch
        Standard error of that factor, a share of 1.

    Examples
    --------
    >>> [round(at_margin(0.05, d, 0.2, 0.1), 6) for d in (0.0, 0.12, 0.2, 0.3)]
    [0.053852, 0.052498, 0.05, 0.05]
    """
    if error < NEAR:
        return error
    return float(np.hypot(error, np.sqrt(max(margin**2 - apart**2, 0.0)) * stretch))


def apart_error(
    items: tuple[Array, Array, Integers], line: float, neutral: int
) -> tuple[float, float]:
    """Return the standard error of a mean difference, and its degrees of freedom.

    Pairs and lines vary by themselves; Satterthwaite (1946), Biometrics Bulletin 2(6), p. 112.

    Parameters
    ----------
    items
        Differences, bearings and numbers of the pair, (statements,) each.
    line, neutral
        Standard error of what the lines do to the mean, and the statements behind it.

    Examples
    --------
    Without an error of lines it is that of the mean of pairs.

    >>> each = np.array([1.0, 3.0, 2.0, 2.0, 4.0, 6.0])
    >>> error, freedom = apart_error((each, np.ones(6), np.array([0, 0, 1, 1, 2, 2])), 0.0, 9)
    >>> bool(np.isclose(error, np.std([2, 2, 5], ddof=1) / np.sqrt(3))), round(freedom, 6)
    (True, 2.0)
    """
    apart, bearing, place = items
    pairs = np.unique(place, return_inverse=True)[1]
    load = np.bincount(pairs, np.abs(bearing))
    total = np.bincount(pairs, np.abs(bearing) * apart)
    left = (total - total.sum() / load.sum() * load) / load.mean()
    n = len(load)
    if n < 2:
        return float("nan"), float("nan")
    own = (left**2).sum() / (n * (n - 1))
    whole = own + line**2
    if not whole:
        return 0.0, n - 1.0
    return float(np.sqrt(whole)), float(whole**2 / (own**2 / (n - 1) + line**4 / (neutral - 1)))


def _spread(draws: Array, clusters: int) -> float:
    """Return the standard error that bootstrap replicates tell."""
    spread = np.nanstd(draws) if np.isfinite(draws).any() else np.nan
    return float(spread * np.sqrt(clusters / max(clusters - 1, 1)))


def lines(reading: Reading) -> Iterator[dict[str, Any]]:
    """Yield slopes and spreads of the calibration, and its area under the curve."""
    block = reading.calibration
    above = "likely above unlikely"
    for fitted in fits(block):
        found = fit(block, fitted)
        left = residuals(block, found)
        for g, name in enumerate(("both",) if fitted == POOLED else schemas.WHO[:2]):
            err = left.mean(axis=1) if fitted == POOLED else left[:, g]
            told = [(*cell, "slope", found.slope[g, c]) for c, cell in enumerate(block.cells)]
            told.append((schemas.COMBINED, "plain", "sigma", found.sigma[g]))
            if fitted != LIKELY:
                told.append((schemas.COMBINED, "plain", above, _above(block, err)))
            for frame, form, measure, draws in told:
                tested = measure == above
                yield reading.row(
                    draws,
                    len(block.about),
                    p=_above_p(block, err[:, 0], reading.params) if tested else None,
                    fitted=fitted,
                    gender=name,
                    frame=frame,
                    form=form,
                    measure=measure,
                )


def _above(block: Block, err: Array) -> Array:
    """Return how often a likely statement is agreed with more than an unlikely one."""
    likely = block.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    total = np.zeros(err.shape[1])
    for i in up:
        wins = (err[i] > err[down]) + 0.5 * (err[i] == err[down])
        total += block.drawn[i] * (wins * block.drawn[down]).sum(axis=0)
    with np.errstate(invalid="ignore"):
        share: Array = total / (block.drawn[up].sum(axis=0) * block.drawn[down].sum(axis=0))
    return share


def _above_p(block: Block, err: Array, params: Params) -> float:
    """Return the two-sided p of that share with likely and unlikely statements shuffled.

    nan where all are of one kind.
    """
    likely = block.about["likely"].to_numpy()
    if likely.all() or not likely.any():
        return float("nan")
    rank = np.argsort(np.argsort(err, kind="stable"), kind="stable").astype(np.float64)
    rng = np.random.default_rng(params.seed)
    centre = rank.mean() * likely.sum()
    drawn = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.n_permutations)])
    return float(permutation_p(rank[likely].sum() - centre, drawn - centre, relative=True))


def answers(reading: Reading) -> pl.DataFrame:
    """Return the rating of each statement, those for calibration too."""
    found = fit(reading.calibration, replicates=1)
    frames = []
    for part in (reading.calibration, reading.items):
        err = residuals(part, found)[..., 0]
        p = probability(err, found.sigma[:, 0])
        frames += [
            part.about.select(
                *("scale", "axis", "id", "reversed"),
                gender=pl.lit(gender),
                residual_nats=pl.Series(err[:, g]),
                probability=pl.Series(p[:, g]),
                rating=pl.Series(rating(p[:, g])),
            )
            for g, gender in enumerate(GENDERS)
        ]
    numbers = ("residual_nats", "probability", "rating")
    table = rounded(pl.concat(frames), numbers, p=())
    return table.with_columns(reading=pl.lit(reading.name))


def points(reading: Reading) -> pl.DataFrame:
    """Return all that a reading is computed from: the log-probabilities of every prompt."""
    columns = ("questionnaire", "scale", "axis", "id", "bearing", "cluster", "frame", *NATS)
    found = pl.concat(
        part.told.select(*columns, "gender", "form", reading=pl.lit(reading.name))
        for part in (reading.calibration, reading.items)
    )
    return rounded(found, NATS, p=())
