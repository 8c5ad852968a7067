"""Table rows of ``values`` for one model and scoring variant (reading)."""

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

# values without pairs of opposites are not tested, since agreement bias would look like a value


class Reading(NamedTuple):
    """Responses of a model in one reading."""

    name: str
    calibration: Block
    items: Block  # from one scale
    params: Params

    def axes(self) -> dict[str, NDArray[np.bool_]]:
        """Return a mask of the rows of each value."""
        axis = self.items.about["axis"].to_numpy()
        return {name: axis == name for name in sorted(set(axis.tolist()))}

    def row(self, draws: Array, clusters: int, **more: Any) -> dict[str, Any]:
        """Return a table row of the reading, see :func:`estimate`."""
        about = {"scale": str(self.items.about["scale"][0]), "reading": self.name}
        return estimate(draws, clusters, self.params, **about, **more)


def estimate(draws: Array, clusters: int, params: Params, **more: Any) -> dict[str, Any]:
    """Return the columns of an estimate; the first draw is the original sample."""
    low, high = interval(draws[1:], clusters, params.confidence)
    return Estimate(float(draws[0]), low, high, clusters).row(**more)


def values(reading: Reading) -> Rows:
    """Yield the means of every value, gender and fit of the calibration."""
    weights, clusters = reading.items.weights, reading.items.clusters
    bearing = reading.items.about["bearing"].to_numpy()
    for fitted in fits(reading.calibration):
        faced = facing(reading.items, ratings(reading.items, fit(reading.calibration, fitted)))
        for axis, rows in reading.axes().items():
            n_pairs = len(np.unique(clusters[rows]))
            tested = fitted == OWN and n_pairs > 1 and balanced(bearing[rows], clusters[rows])
            sides = faced[rows, 0], faced[rows, 1], faced[rows].mean(axis=1)
            for gender, side in zip(schemas.WHO, sides, strict=True):
                test: dict[str, Any] = {}
                if tested:
                    pairs = of_pairs(side[:, 0], bearing[rows], clusters[rows])
                    error = pairs.std(ddof=1) / len(pairs) ** 0.5
                    test = {"p": mean_p(pairs), TESTED_ERROR: error, DF: n_pairs - 1.0}
                yield reading.row(
                    mean(side, np.abs(bearing[rows]), weights[rows]),
                    n_pairs,
                    axis=axis,
                    gender=gender,
                    sd=finite(side[:, 0].std(ddof=1)) if len(side) > 1 else None,
                    fitted=fitted,
                    **test,
                )


def fits(calibration: Block) -> list[str]:
    """Return the calibrations; the likely half needs to be a proper subset of two or more."""
    likely = calibration.about["likely"]
    return [OWN, POOLED, *[LIKELY] * (1 < likely.sum() < len(likely))]


def balanced(bearing: Array, clusters: Integers) -> bool:
    """Return True if the weights of every statement and its opposite cancel."""
    return bool(np.allclose(np.bincount(clusters, bearing), 0))


def of_pairs(faced: Array, bearing: Array, clusters: Integers) -> Array:
    """Return the distance from 3 of the mean rating of each pair, (pairs,), for a t test.

    Reversing one of the two ratings removes effects common to a statement and its opposite, such as
    shared words or a bias to agree with political statements.

    ``faced``: ratings in the direction of the value; ``clusters``: pair numbers, (statements,).

    Examples
    --------
    Equal agreement with a statement and its opposite gives a mean rating of 3.

    >>> faced = np.array([4.0, 2.0, 5.0, 1.0, 4.0, 2.0])
    >>> of_pairs(faced, np.array([1.0, -1, 1, -1, 1, -1]), np.array([0, 0, 1, 1, 2, 2])).tolist()
    [0.0, 0.0, 0.0]
    """
    pairs = np.unique(clusters, return_inverse=True)[1]
    load = np.bincount(pairs, np.abs(bearing))
    return np.asarray(np.bincount(pairs, np.abs(bearing) * (faced - 3)) / load.mean())


def gender(reading: Reading) -> Rows:
    """Yield the differences between feminine and masculine frames, tested both ways.

    The equivalence test uses the standard error at the margin, and the smallest degrees of freedom
    of any component, Satterthwaite's lower bound: his estimate is too large if a component is small
    by chance, and ``all`` has components from several values.
    """
    items, neutral, margin = reading.items, reading.calibration, reading.params.equivalence_margin
    number, signed = len(neutral.about), items.about["bearing"].to_numpy()
    axes = reading.axes()
    fewest = {a: min(number, len(np.unique(items.clusters[i]))) for a, i in axes.items()}
    fewest[schemas.ALL] = min(fewest.values())
    axes[schemas.ALL] = np.ones(len(signed), dtype=np.bool_)
    for fitted in (OWN, POOLED):
        lines = fit(neutral, fitted)
        rated = ratings(items, lines)
        sides = {"value": facing(items, rated), "agreement": rated}
        for measure, (axis, rows) in product(schemas.MEASURES, axes.items()):
            gaps = sides[measure][rows, 0] - sides[measure][rows, 1]
            bearing, pair_numbers, weights = signed[rows], items.clusters[rows], items.weights[rows]
            load, once = np.abs(bearing), np.ones_like(weights)
            draws = mean(gaps, load, weights)
            of_lines, sizes = (mean(x, load, once) for x in (gaps, np.abs(gaps)))
            parts = (gaps[:, 0], bearing, pair_numbers), _spread(of_lines[1:], number), number
            error, freedom = apart_error(*parts)
            stretch = _spread(sizes[1:], number) / sizes[0] if sizes[0] else 0.0
            yield reading.row(
                draws,
                len(np.unique(pair_numbers)),
                **_tests(
                    float(draws[0]),
                    (error, freedom),
                    (at_margin(error, draws[0], margin, stretch), fewest[axis] - 1.0),
                    margin,
                    tested=measure == "agreement" or balanced(bearing, pair_numbers),
                ),
                fitted=fitted,
                measure=measure,
                axis=axis,
            )
        rated = ratings(neutral, lines)  # lines and ratings come from the same statements
        draws = mean(rated[:, 0] - rated[:, 1], np.ones(number), neutral.weights)
        clusters = len(np.unique(neutral.clusters))
        test = _spread(draws[1:], clusters), clusters - 1.0
        about = {"fitted": fitted, "measure": "agreement", "axis": schemas.CALIBRATION}
        yield reading.row(
            draws, clusters, **_tests(float(draws[0]), test, test, margin, tested=True), **about
        )


def _tests(
    difference: float,
    error: tuple[float, float],
    at_margin: tuple[float, float],
    margin: float,
    *,
    tested: bool,
) -> dict[str, Any]:
    """Return the columns of both tests of a difference.

    ``error``, ``at_margin``: standard error and degrees of freedom for the tests of a difference
    and of equivalence.
    """
    columns: dict[str, Any] = {DF: float(error[1]), "p_equivalence": None}
    columns |= {"equivalence_low": None, "equivalence_high": None}
    if tested and error[1] > 0:
        columns["p"] = t_p(difference, *error)
        if at_margin[1]:
            test = equivalence(difference, *at_margin, margin, LEVEL)
            columns |= {"equivalence_low": finite(test.low), "equivalence_high": finite(test.high)}
            columns |= {"p_equivalence": None if np.isnan(test.p) else significant(test.p)}
    return columns


def at_margin(error: float, difference: float, margin: float, stretch: float) -> float:
    """Return the standard error of a mean difference under the null, at the margin.

    Calibration lines scale all differences by one factor, so errors increase with differences. If
    lines shrank a difference, its estimated error is too small under the null, the margin.

    ``error``, ``difference``: standard error and mean difference.
    ``stretch``: relative standard error of the factor.

    Examples
    --------
    >>> [round(at_margin(0.05, d, 0.2, 0.1), 6) for d in (0.0, 0.12, 0.2, 0.3)]
    [0.053852, 0.052498, 0.05, 0.05]
    """
    if error < NEAR:
        return error
    return float(np.hypot(error, np.sqrt(max(margin**2 - difference**2, 0.0)) * stretch))


def apart_error(
    items: tuple[Array, Array, Integers], line: float, neutral: int
) -> tuple[float, float]:
    """Return the standard error of a mean difference and its degrees of freedom.

    Pairs and lines vary independently; Satterthwaite (1946), Biometrics Bulletin 2(6), p. 112.

    ``items``: differences, weights in the value and pair numbers, each (statements,).
    ``line``, ``neutral``: standard error of the lines, and their number of statements.

    Examples
    --------
    Without error in the lines, it is the standard error of the mean of pairs.

    >>> gaps = np.array([1.0, 3.0, 2.0, 2.0, 4.0, 6.0])
    >>> error, freedom = apart_error((gaps, np.ones(6), np.array([0, 0, 1, 1, 2, 2])), 0.0, 9)
    >>> bool(np.isclose(error, np.std([2, 2, 5], ddof=1) / np.sqrt(3))), round(freedom, 6)
    (True, 2.0)
    """
    gaps, bearing, clusters = items
    pairs = np.unique(clusters, return_inverse=True)[1]
    load = np.bincount(pairs, np.abs(bearing))
    total = np.bincount(pairs, np.abs(bearing) * gaps)
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
    """Yield slopes and sigmas of the calibration, and its area under the curve."""
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
    """Return the share of pairs with more agreement for the likely statement, and its p.

    The two-sided p permutes likely and unlikely statements; both are nan if one kind is missing.
    """
    likely = block.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    total = np.zeros(err.shape[1])
    for i in up:
        wins = (err[i] > err[down]) + 0.5 * (err[i] == err[down])
        total += block.weights[i] * (wins * block.weights[down]).sum(axis=0)
    with np.errstate(invalid="ignore"):
        share: Array = total / (block.weights[up].sum(axis=0) * block.weights[down].sum(axis=0))
    if not (len(up) and len(down)):
        return share, float("nan")
    rank = np.argsort(np.argsort(err[:, 0], kind="stable"), kind="stable").astype(np.float64)
    rng, centre = np.random.default_rng(params.seed), rank.mean() * likely.sum()
    sums = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.n_permutations)])
    p = permutation_p(rank[likely].sum() - centre, sums - centre, relative=True)
    return share, float(p)


def answers(reading: Reading) -> pl.DataFrame:
    """Return the rating of each statement, including those for calibration."""
    lines = fit(reading.calibration, replicates=1)
    tables = []
    for part in (reading.calibration, reading.items):
        rated = ratings(part, lines)
        for g, gender in enumerate(GENDERS):
            table = part.about.select("scale", "axis", "id", "reversed", gender=pl.lit(gender))
            tables.append(table.with_columns(rating=pl.Series(rated[:, g, 0])))
    return rounded(pl.concat(tables), ["rating"], p=()).with_columns(reading=pl.lit(reading.name))


def points(reading: Reading) -> pl.DataFrame:
    """Return the data of a reading: the log-probabilities of every prompt."""
    columns = ("questionnaire", "scale", "axis", "id", "bearing", "cluster", "frame", *NATS)
    table = pl.concat(
        part.rows.select(*columns, "gender", "form", reading=pl.lit(reading.name))
        for part in (reading.calibration, reading.items)
    )
    return rounded(table, NATS, p=())
