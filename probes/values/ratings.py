"""Rows of the tables of ``values`` that come from one model's responses in one reading."""

from __future__ import annotations

from itertools import product
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
from plumbline.probes.stats.intervals import NEAR, equivalence, mean_p, t_p
from plumbline.probes.stats.tests import permutation_p
from plumbline.probes.values import schemas
from plumbline.probes.values.calibration import facing, fit, mean, ratings, residuals
from plumbline.probes.values.responses import NATS
from plumbline.probes.values.schemas import LIKELY, OWN, POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.values.responses import Block
    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Rows = Iterator[dict[str, Any]]

# no test of a value without pairs of opposites: who agrees with all that is political looks alike


class Reading(NamedTuple):
    """Responses of a model in one reading."""

    name: str
    calibration: Block
    items: Block  # of one scale
    params: Params

    def axes(self) -> dict[str, NDArray[np.bool_]]:
        """Return the rows that bear on each value."""
        axis = self.items.about["axis"].to_numpy()
        return {name: axis == name for name in sorted(set(axis.tolist()))}

    def row(self, draws: Array, clusters: int, **more: Any) -> dict[str, Any]:
        """Return a row of a table of the reading, see :func:`estimate`."""
        about = {"scale": str(self.items.about["scale"][0]), "reading": self.name}
        return estimate(draws, clusters, self.params, **about, **more)


def estimate(draws: Array, clusters: int, params: Params, **more: Any) -> dict[str, Any]:
    """Return the columns of an estimate; the first of the draws is the one of the data."""
    low, high = interval(draws[1:], clusters, params.confidence)
    return Estimate(float(draws[0]), low, high, clusters).row(**more)


def values(reading: Reading) -> Rows:
    """Yield the means of every value, gender and fit of the calibration."""
    drawn, place = reading.items.drawn, reading.items.place
    bearing = reading.items.about["bearing"].to_numpy()
    for fitted in fits(reading.calibration):
        faced = facing(reading.items, ratings(reading.items, fit(reading.calibration, fitted)))
        for axis, rows in reading.axes().items():
            clusters = len(np.unique(place[rows]))
            tested = fitted == OWN and clusters > 1 and balanced(bearing[rows], place[rows])
            sides = faced[rows, 0], faced[rows, 1], faced[rows].mean(axis=1)
            for gender, side in zip(schemas.WHO, sides, strict=True):
                test: dict[str, Any] = {}
                if tested:
                    pairs = of_pairs(side[:, 0], bearing[rows], place[rows])
                    error = pairs.std(ddof=1) / len(pairs) ** 0.5
                    test = {"p": mean_p(pairs), TESTED_ERROR: error, DF: clusters - 1.0}
                yield reading.row(
                    mean(side, np.abs(bearing[rows]), drawn[rows]),
                    clusters,
                    axis=axis,
                    gender=gender,
                    sd=finite(side[:, 0].std(ddof=1)) if len(side) > 1 else None,
                    fitted=fitted,
                    **test,
                )


def fits(calibration: Block) -> list[str]:
    """Return the ways to calibrate: on the likely half only where it is a part of them."""
    likely = calibration.about["likely"]
    return [OWN, POOLED, *[LIKELY] * (1 < likely.sum() < len(likely))]


def balanced(bearing: Array, place: Integers) -> bool:
    """Tell whether every statement has one that speaks as much against what it speaks for."""
    return bool(np.allclose(np.bincount(place, bearing), 0))


def of_pairs(faced: Array, bearing: Array, place: Integers) -> Array:
    """Return the distance from 3 of the mean rating of each pair, (pairs,), for a t test.

    What a statement and its opposite share, such as words, or that political statements are agreed
    with, is taken out of each pair by turning one of them round.

    ``faced``, ``place``, (statements,): ratings in the direction of the value, number of the pair.

    Examples
    --------
    Agreeing with everything, 4, 5, 4 times in all, is a rating of 3 of every pair.

    >>> faced = np.array([4.0, 2.0, 5.0, 1.0, 4.0, 2.0])
    >>> of_pairs(faced, np.array([1.0, -1, 1, -1, 1, -1]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0.0, 0.0, 0.0]
    """
    pairs = np.unique(place, return_inverse=True)[1]
    load = np.bincount(pairs, np.abs(bearing))
    return np.asarray(np.bincount(pairs, np.abs(bearing) * (faced - 3)) / load.mean())


def gender(reading: Reading) -> Rows:
    """Yield the differences between feminine and masculine frames, tested both ways.

    Of equivalence the error is that at the margin, and degrees of freedom are the fewest of any
    part of it, the bound of Satterthwaite's from below: those that he gives are too many where a
    part is small by chance, and ``all`` has parts of several values.
    """
    items, neutral, margin = reading.items, reading.calibration, reading.params.equivalence_margin
    number, signed = len(neutral.about), items.about["bearing"].to_numpy()
    axes = reading.axes()
    fewest = {axis: min(number, len(np.unique(items.place[rows]))) for axis, rows in axes.items()}
    fewest[schemas.ALL] = min(fewest.values())
    axes[schemas.ALL] = np.ones(len(signed), dtype=np.bool_)
    for fitted in (OWN, POOLED):
        lines = fit(neutral, fitted)
        rated = ratings(items, lines)
        sides = {"value": facing(items, rated), "agreement": rated}
        for measure, (axis, rows) in product(schemas.MEASURES, axes.items()):
            apart = sides[measure][rows, 0] - sides[measure][rows, 1]
            bearing, place, drawn = signed[rows], items.place[rows], items.drawn[rows]
            load, once = np.abs(bearing), np.ones_like(drawn)
            draws = mean(apart, load, drawn)
            of_lines, sizes = (mean(x, load, once) for x in (apart, np.abs(apart)))
            parts = (apart[:, 0], bearing, place), _spread(of_lines[1:], number), number
            error, freedom = apart_error(*parts)
            stretch = _spread(sizes[1:], number) / sizes[0] if sizes[0] else 0.0
            yield reading.row(
                draws,
                len(np.unique(place)),
                **_tests(
                    float(draws[0]),
                    (error, freedom),
                    (at_margin(error, draws[0], margin, stretch), fewest[axis] - 1.0),
                    margin,
                    tested=measure == "agreement" or balanced(bearing, place),
                ),
                fitted=fitted,
                measure=measure,
                axis=axis,
            )
        rated = ratings(neutral, lines)  # lines and ratings are of the same statements
        draws = mean(rated[:, 0] - rated[:, 1], np.ones(number), neutral.drawn)
        clusters = len(np.unique(neutral.place))
        both = _spread(draws[1:], clusters), clusters - 1.0
        about = {"fitted": fitted, "measure": "agreement", "axis": schemas.CALIBRATION}
        yield reading.row(
            draws, clusters, **_tests(float(draws[0]), both, both, margin, tested=True), **about
        )


def _tests(
    apart: float,
    error: tuple[float, float],
    at_margin: tuple[float, float],
    margin: float,
    *,
    tested: bool,
) -> dict[str, Any]:
    """Return the columns of both tests of a difference.

    ``error``, ``at_margin``: standard error and degrees of freedom, of the test of a difference and
    of that of equivalence.
    """
    columns: dict[str, Any] = {DF: float(error[1]), "p_equivalence": None}
    columns |= {"equivalence_low": None, "equivalence_high": None}
    if tested and error[1] > 0:
        columns["p"] = t_p(apart, *error)
        if at_margin[1]:
            test = equivalence(apart, at_margin[0], 0, margin, LEVEL, freedom=at_margin[1])
            columns |= {"equivalence_low": finite(test.low), "equivalence_high": finite(test.high)}
            columns |= {"p_equivalence": None if np.isnan(test.p) else significant(test.p)}
    return columns


def at_margin(error: float, apart: float, margin: float, stretch: float) -> float:
    """Return the standard error that a mean difference would have if it were at the margin.

    Lines stretch all differences by one factor, the larger ones by more. Where a difference is
    small because they shrank it, its own error is too small for the null, which is the margin.

    ``error``, ``apart``: of the mean difference, and that itself.
    ``stretch``: standard error of that factor, a share of 1.

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

    ``items``: differences, bearings and numbers of the pair, (statements,) each.
    ``line``, ``neutral``: standard error of the effect of the lines, and the statements behind it.

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
    residual = (total - total.sum() / load.sum() * load) / load.mean()
    n = len(load)
    if n < 2:
        return float("nan"), float("nan")
    of_pairs = (residual**2).sum() / (n * (n - 1))
    variance = of_pairs + line**2
    if not variance:
        return 0.0, n - 1.0
    freedom = variance**2 / (of_pairs**2 / (n - 1) + line**4 / (neutral - 1))
    return float(np.sqrt(variance)), float(freedom)


def _spread(draws: Array, clusters: int) -> float:
    """Return the standard error of bootstrap replicates."""
    spread = np.nanstd(draws) if np.isfinite(draws).any() else np.nan
    return float(spread * np.sqrt(clusters / max(clusters - 1, 1)))


def lines(reading: Reading) -> Rows:
    """Yield slopes and spreads of the calibration, and its area under the curve."""
    block, combined = reading.calibration, (schemas.COMBINED, "plain")
    for fitted in fits(block):
        lines = fit(block, fitted)
        err = residuals(block, lines)
        pooled = fitted == POOLED
        for g, gender in enumerate(("both",) if pooled else schemas.WHO[:2]):
            rows: list[tuple[str, str, str, Array, dict[str, float]]]
            rows = [(*cell, "slope", lines.slope[g, c], {}) for c, cell in enumerate(block.cells)]
            rows.append((*combined, "sigma", lines.sigma[g], {}))
            if fitted != LIKELY:
                share, p = _above(block, err.mean(axis=1) if pooled else err[:, g], reading.params)
                rows.append((*combined, "likely above unlikely", share, {"p": p}))
            for frame, form, measure, draws, test in rows:
                about = {"fitted": fitted, "gender": gender, "frame": frame, "form": form}
                yield reading.row(draws, len(block.about), **about, measure=measure, **test)


def _above(block: Block, err: Array, params: Params) -> tuple[Array, float]:
    """Return the share of pairs in which the likely statement is agreed with more, and its p.

    The two-sided p is that with likely and unlikely statements shuffled; nan where all are of one
    kind.
    """
    likely = block.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    total = np.zeros(err.shape[1])
    for i in up:
        wins = (err[i] > err[down]) + 0.5 * (err[i] == err[down])
        total += block.drawn[i] * (wins * block.drawn[down]).sum(axis=0)
    with np.errstate(invalid="ignore"):
        share: Array = total / (block.drawn[up].sum(axis=0) * block.drawn[down].sum(axis=0))
    if not (len(up) and len(down)):
        return share, float("nan")
    rank = np.argsort(np.argsort(err[:, 0], kind="stable"), kind="stable").astype(np.float64)
    rng, centre = np.random.default_rng(params.seed), rank.mean() * likely.sum()
    sums = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.n_permutations)])
    p = permutation_p(rank[likely].sum() - centre, sums - centre, relative=True)
    return share, float(p)


def answers(reading: Reading) -> pl.DataFrame:
    """Return the rating of each statement, those for calibration too."""
    lines = fit(reading.calibration, replicates=1)
    tables = []
    for part in (reading.calibration, reading.items):
        rated = ratings(part, lines)
        for g, gender in enumerate(GENDERS):
            table = part.about.select("scale", "axis", "id", "reversed", gender=pl.lit(gender))
            tables.append(table.with_columns(rating=pl.Series(rated[:, g, 0])))
    return rounded(pl.concat(tables), ["rating"], p=()).with_columns(reading=pl.lit(reading.name))


def points(reading: Reading) -> pl.DataFrame:
    """Return all that a reading is computed from: the log-probabilities of every prompt."""
    columns = ("questionnaire", "scale", "axis", "id", "bearing", "cluster", "frame", *NATS)
    table = pl.concat(
        part.rows.select(*columns, "gender", "form", reading=pl.lit(reading.name))
        for part in (reading.calibration, reading.items)
    )
    return rounded(table, NATS, p=())
