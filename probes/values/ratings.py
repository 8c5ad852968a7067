"""Table rows of ``values`` for one model and scoring variant (reading)."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.bootstrap import correlation, interval
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
from plumbline.probes.values.calibration import NATS, facing, fit, mean, ratings, residuals
from plumbline.probes.values.schemas import LIKELY, OWN, POOLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.values.calibration import Block
    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Rows = Iterator[dict[str, Any]]


class Reading(NamedTuple):
    """Responses of a model in one scoring variant, with their calibration."""

    name: str
    calibration: Block
    items: Block  # statements of one scale
    params: Params

    def axes(self) -> dict[str, NDArray[np.bool_]]:
        """Return a mask of the statements of each value."""
        axis = self.items.about["axis"].to_numpy()
        return {name: axis == name for name in sorted(set(axis.tolist()))}

    def row(self, draws: Array, clusters: int, **more: Any) -> dict[str, Any]:
        """Return a table row for this variant; see :func:`estimate`."""
        about = {"scale": str(self.items.about["scale"][0]), "reading": self.name}
        return estimate(draws, clusters, self.params, **about, **more)


def estimate(draws: Array, clusters: int, params: Params, **more: Any) -> dict[str, Any]:
    """Return the columns of an estimate; the first draw is the original sample."""
    low, high = interval(draws[1:], clusters, params.confidence)
    return Estimate(float(draws[0]), low, high, clusters).row(**more)


def values(reading: Reading) -> Rows:
    """Yield the mean ratings by value, gender and calibration."""
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
                draws = mean(side, np.abs(bearing[rows]), weights[rows])
                sd = finite(side[:, 0].std(ddof=1)) if len(side) > 1 else None
                about = {"fitted": fitted, "axis": axis, "gender": gender, "sd": sd}
                yield reading.row(draws, n_pairs, **about, **test)


def fits(calibration: Block) -> list[str]:
    """Return the calibrations; that of the likely half needs two likely and one other statement."""
    likely = calibration.about["likely"]
    return [OWN, POOLED, *[LIKELY] * (1 < likely.sum() < len(likely))]


def balanced(bearing: Array, clusters: Integers) -> bool:
    """Return True if the weights of each statement and its opposite cancel."""
    return bool(np.allclose(np.bincount(clusters, bearing), 0))


def of_pairs(faced: Array, bearing: Array, clusters: Integers) -> Array:
    """Return each pair's mean rating minus 3, of shape (pairs,), for a t test.

    One of the two ratings is reversed, so effects that a statement shares with its opposite cancel,
    such as those of common words or of a bias to agree with political statements.

    ``faced``: ratings in the direction of the value; ``clusters``: numbers of the pairs; both of
    shape (statements,).

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
    """Yield the differences between feminine and masculine templates, with both tests.

    ``agreement`` uses plain statements only: with negated ones, a habit of agreeing cancels.

    The equivalence test uses the standard error at the margin, and the smallest degrees of freedom
    of any component. The latter are the lower bound of Satterthwaite's estimate, which is too large
    if a component is small by chance; the components of ``all`` come from several values.
    """
    items, neutral, margin = reading.items, reading.calibration, reading.params.equivalence_margin
    number, signed = len(neutral.about), items.about["bearing"].to_numpy()
    axes = reading.axes()
    fewest = {a: min(number, len(np.unique(items.clusters[i]))) for a, i in axes.items()}
    fewest[schemas.ALL] = min(fewest.values())
    axes[schemas.ALL] = np.ones(len(signed), dtype=np.bool_)
    for fitted in (OWN, POOLED):
        lines = fit(neutral.plain(), fitted)
        faced = facing(items, ratings(items, fit(neutral, fitted)))
        sides = {"value": faced, "agreement": ratings(items.plain(), lines)}
        for measure, (axis, rows) in product(schemas.MEASURES, axes.items()):
            gaps = sides[measure][rows, 0] - sides[measure][rows, 1]
            bearing, pair_numbers, weights = signed[rows], items.clusters[rows], items.weights[rows]
            load, once = np.abs(bearing), np.ones_like(weights)
            draws = mean(gaps, load, weights)
            of_lines, sizes = (mean(x, load, once) for x in (gaps, np.abs(gaps)))
            parts = (gaps[:, 0], bearing, pair_numbers), _spread(of_lines[1:], number), number
            error, freedom = apart_error(*parts)
            stretch = _spread(sizes[1:], number) / sizes[0] if sizes[0] else 0.0
            equivalent = at_margin(error, draws[0], margin, stretch), fewest[axis] - 1.0
            tested = measure == "agreement" or balanced(bearing, pair_numbers)
            test = _tests(float(draws[0]), (error, freedom), equivalent, margin, tested=tested)
            about = {"fitted": fitted, "measure": measure, "axis": axis}
            yield reading.row(draws, len(np.unique(pair_numbers)), **about, **test)
        # the lines and these ratings come from the same statements
        rated = ratings(neutral.plain(), lines)
        draws = mean(rated[:, 0] - rated[:, 1], np.ones(number), neutral.weights)
        clusters = len(np.unique(neutral.clusters))
        error_df = _spread(draws[1:], clusters), clusters - 1.0
        test = _tests(float(draws[0]), error_df, error_df, margin, tested=True)
        about = {"fitted": fitted, "measure": "agreement", "axis": schemas.CALIBRATION}
        yield reading.row(draws, clusters, **about, **test)


def _tests(
    difference: float,
    error: tuple[float, float],
    at_margin: tuple[float, float],
    margin: float,
    *,
    tested: bool,
) -> dict[str, Any]:
    """Return the columns for the tests of difference and of equivalence.

    ``error``, ``at_margin``: standard error and degrees of freedom for the first and the second
    test.
    """
    columns: dict[str, Any] = {DF: float(error[1]), "reach": 4.0}
    if tested and error[1] > 0:
        columns["p"] = t_p(difference, *error)
        if at_margin[1]:
            test = equivalence(difference, *at_margin, margin, LEVEL)
            columns |= {"equivalence_low": finite(test.low), "equivalence_high": finite(test.high)}
            columns["p_equivalence"] = significant(test.p)
    return columns


def at_margin(error: float, difference: float, margin: float, stretch: float) -> float:
    """Return the standard error of a mean difference that is as large as the margin.

    Calibration lines scale all differences by the same factor, so errors increase with differences.
    If the lines shrink a difference, its estimated error is too small under the null hypothesis of
    the equivalence test, a difference at the margin.

    ``error``, ``difference``: estimated standard error, and mean difference.
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

    Pairs and lines vary independently, so their variances are added. Degrees of freedom:
    Satterthwaite (1946), Biometrics Bulletin 2(6), p. 112.

    ``items``: differences, weights in the value and numbers of the pairs, each of shape
    (statements,).
    ``line``, ``neutral``: standard error due to the lines, and number of statements in their fit.

    Examples
    --------
    Without error in the lines, the result is the standard error of the mean over pairs.

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
    """Return the standard error estimated from bootstrap replicates."""
    spread = np.nanstd(draws) if np.isfinite(draws).any() else np.nan
    return float(spread * np.sqrt(clusters / max(clusters - 1, 1)))


def lines(reading: Reading) -> Rows:
    """Yield slope, sigma, the paper's r (section 3.1), and the area under the ROC curve."""
    block, combined = reading.calibration, (schemas.COMBINED, "plain")
    for fitted in fits(block):
        lines = fit(block, fitted)
        err = residuals(block, lines)
        pooled = fitted == POOLED
        for g, gender in enumerate(("both",) if pooled else schemas.WHO[:2]):
            rows: list[tuple[Any, ...]]
            rows = [(*cell, "slope", lines.slope[g, c], None) for c, cell in enumerate(block.cells)]
            rows.append((*combined, "sigma", lines.sigma[g], None))
            for c, cell in enumerate(block.cells if fitted == OWN else ()):
                r = correlation(block.disagree[:, g, c], block.agree[:, g, c], block.weights)
                rows.append((*cell, "correlation", r, None))
            if fitted != LIKELY:
                residual = err.mean(axis=1) if pooled else err[:, g]
                above = _above(block, residual, reading.params)
                rows.append((*combined, "likely above unlikely", *above))
            for frame, form, measure, draws, p in rows:
                about = {"fitted": fitted, "gender": gender, "frame": frame, "form": form}
                yield reading.row(draws, len(block.about), **about, measure=measure, p=p)


def _above(block: Block, err: Array, params: Params) -> tuple[Array, float]:
    """Return the share of pairs in which the likely statement gets more agreement, and its p.

    The share is the area under the ROC curve. The two-sided p is computed by permuting likely and
    unlikely statements. Both are nan if either kind is missing.
    """
    likely = block.about["likely"].to_numpy()
    up, down = np.flatnonzero(likely), np.flatnonzero(~likely)
    wins = (np.sign(err[up][:, None] - err[down]) + 1) / 2  # (likely, unlikely, replicates)
    weights = block.weights[up], block.weights[down]
    with np.errstate(invalid="ignore"):
        share: Array = np.einsum("ur,udr,dr->r", weights[0], wins, weights[1])
        share /= np.prod([side.sum(axis=0) for side in weights], axis=0)
    if not (len(up) and len(down)):
        return share, float("nan")
    rank = np.argsort(np.argsort(err[:, 0], kind="stable"), kind="stable").astype(np.float64)
    rng, centre = np.random.default_rng(params.seed), rank.mean() * likely.sum()
    sums = np.array([rank[rng.permutation(likely)].sum() for _ in range(params.n_permutations)])
    p = permutation_p(rank[likely].sum() - centre, sums - centre, relative=True)
    return share, float(p)


def answers(reading: Reading) -> pl.DataFrame:
    """Return the rating of each statement, including those of the calibration."""
    lines = fit(reading.calibration, replicates=1)
    about = ("scale", "axis", "id", "reversed")
    tables = [
        part.about.select(*about, gender=pl.lit(gender), rating=rated, reading=pl.lit(reading.name))
        for part in (reading.calibration, reading.items)
        for gender, rated in zip(GENDERS, ratings(part, lines)[..., 0].T, strict=True)
    ]
    return rounded(pl.concat(tables), ["rating"], p=())


def points(reading: Reading) -> pl.DataFrame:
    """Return the data of a scoring variant: the log-probabilities for every prompt."""
    columns = ("questionnaire", "scale", "axis", "id", "bearing", "cluster", "frame", *NATS)
    table = pl.concat(
        part.rows.select(*columns, "gender", "form", reading=pl.lit(reading.name))
        for part in (reading.calibration, reading.items)
    )
    return rounded(table, NATS, p=())
