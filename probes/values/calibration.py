"""Agreement corrected for a model's agreement bias: responses, calibration, residuals, ratings.

Al Ali and Libovický (2024): LogAgree = a LogDisagree + err is fitted to the apolitical statements
for each gender. Any statement then has P = Phi(err / sigma) and the rating 4 P + 1. Everything is
computed for all bootstrap replicates at once. A cell is a combination of template and form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.statements.read import POLARITIES
from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.values.schemas import LIKELY, OWN, POOLED

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]

LOWEST, HIGHEST = 1.0, 5.0
Cell = tuple[str, str]  # template, and form: plain or negated
NATS = ("disagree_nats", "agree_nats")


class Block(NamedTuple):
    """Responses of a model to a set of statements, obtained with one method."""

    about: pl.DataFrame  # one row per statement and axis, as in `statements`
    cells: list[Cell]
    rows: pl.DataFrame  # one row per statement, gender and cell
    disagree: Array  # (statements, genders, cells), nats
    agree: Array
    weights: Array  # (statements, 1 + replicates): bootstrap counts; the first column is 1
    clusters: NDArray[np.int64]  # (statements,): equal for a statement and its opposite

    @property
    def signs(self) -> Array:
        """Return -1 for cells with negated statements and 1 for others, of shape (cells,)."""
        return np.where([form == "negated" for _, form in self.cells], -1.0, 1.0)

    def plain(self) -> Block:
        """Return the responses to plain statements; a habit of agreeing does not cancel in them."""
        plain = self.signs > 0
        cells = [cell for cell, keep in zip(self.cells, plain, strict=True) if keep]
        agree, disagree = self.agree[..., plain], self.disagree[..., plain]
        return self._replace(cells=cells, agree=agree, disagree=disagree)


def statements(folder: Path) -> pl.DataFrame:
    """Return the statements of all questionnaires.

    ``bearing`` is the statement's weight in the value, which is negative if agreement opposes the
    value; ``cluster`` is equal for a statement and its opposite, which are resampled together.
    """
    tables = pl.concat(
        pl.read_parquet(folder / f"{config}.parquet").with_columns(questionnaire=pl.lit(config))
        for config in parquet.configs(folder)
    )
    opposite = pl.when(pl.col("opposite") != "").then("opposite")
    return tables.with_columns(
        likely=pl.col("polarity") == POLARITIES.index("likely"),
        bearing=pl.col("weight") * pl.when("reversed").then(-1.0).otherwise(1.0),
        cluster=pl.concat_str("scale", pl.lit("/"), pl.min_horizontal("id", opposite)),
    )


def block(
    answered: pl.DataFrame,
    about: pl.DataFrame,
    method: str,
    params: Params,
    cells: list[Cell] | None = None,
) -> Block:
    """Return the responses obtained with one method as arrays, with bootstrap counts.

    Raises UserError if a response is missing.

    ``answered``: the columns questionnaire, id, frame, form, gender, method, agree_nats and
    disagree_nats.
    ``about``: the statements, as returned by :func:`statements`.
    ``cells``: the cells to use; by default all.
    """
    key = ("questionnaire", "id", "gender", "frame", "form")
    nats = answered.filter(method=method).select(*key, *NATS)
    if cells is None:
        pairs = nats.select("frame", "form").unique()
        cells = pairs.sort("frame", "form", descending=[False, True]).rows()
    about = about.sort("questionnaire", "id", "axis")
    kinds = [(gender, *cell) for gender in GENDERS for cell in cells]
    grid = pl.DataFrame(kinds, schema=dict.fromkeys(key[2:], pl.String), orient="row")
    rows = about.join(grid, how="cross", maintain_order="left_right")
    rows = rows.join(nats, on=key, how="left", maintain_order="left")
    shape = len(about), len(GENDERS), len(cells)
    disagree, agree = (rows[name].to_numpy().reshape(shape) for name in NATS)
    if not np.isfinite([disagree, agree]).all() or not cells:
        frames = ", ".join(sorted({frame for frame, _ in cells})) or "any frame"
        raise UserError(
            f"outputs of agreement: responses with {method} in {frames} are missing; "
            "check analysis.values.frame and run the probe again"
        )
    names, clusters = np.unique(about["cluster"].to_list(), return_inverse=True)
    counts = poisson(bits(keys(names.tolist()), params.n_bootstrap, params.seed))
    weights = np.hstack([np.ones((len(clusters), 1)), counts.astype(np.float64)[clusters]])
    return Block(about, cells, rows, disagree, agree, weights, clusters)


class Fit(NamedTuple):
    """Fitted lines through 0, and the spread around them."""

    slope: Array  # (genders, cells, replicates) from :func:`fit`, (replicates,) from :func:`line`
    sigma: Array  # (genders, replicates), for residuals averaged over cells, or (replicates,)


def line(x: Array, y: Array, weights: Array | None = None) -> Fit:
    """Fit y = a x + err by least squares: a = sum xy / sum x^2.

    Residuals need not have mean 0; sigma = sqrt(sum err^2 / (n - 1)) is their spread about 0.
    Raises ValueError if there are fewer than two points or shapes differ.

    ``x``, ``y``: log-probabilities of disagreeing and agreeing, each of shape (n,).
    ``weights``: number of times each point was drawn, of shape (n, replicates); 1 by default.

    Examples
    --------
    >>> x = -np.arange(1.0, 6)
    >>> fitted = line(x, 0.8 * x + np.array([0.1, -0.1, 0.2, -0.2, 0]))
    >>> fitted.slope.round(6).tolist(), fitted.sigma.round(6).tolist()
    ([0.805455], [0.156815])
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2:
        raise ValueError("x and y must be vectors of one length, two points at least")
    w = np.ones((len(x), 1)) if weights is None else np.asarray(weights, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (x * y) @ w / (x**2 @ w)
        residual = y[:, None] - slope * x[:, None]
        return Fit(slope, np.sqrt((w * residual**2).sum(axis=0) / (w.sum(axis=0) - 1)))


def fit(calibration: Block, fitted: str = OWN, replicates: int | None = None) -> Fit:
    """Fit the lines to apolitical statements in the first ``replicates`` replicates (default: all).

    ``fitted``: one of :data:`~plumbline.probes.values.schemas.FITTED`.
    """
    weights = calibration.weights[:, :replicates]
    if fitted == LIKELY:
        weights = weights * calibration.about["likely"].to_numpy()[:, None]
    genders, cells = calibration.agree.shape[1:]
    sides = [[*range(genders)]] if fitted == POOLED else [[g] for g in range(genders)]
    lines = [
        [
            line(
                calibration.disagree[:, side, c].T.ravel(),
                calibration.agree[:, side, c].T.ravel(),
                np.tile(weights, (len(side), 1)),
            ).slope
            for c in range(cells)
        ]
        for side in sides
    ]
    slope = np.broadcast_to(np.array(lines), (genders, cells, weights.shape[1]))
    err = residuals(calibration, Fit(slope, np.empty(0)))
    squares, total = (weights[:, None] * err**2).sum(axis=0), weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):  # a replicate may have only one statement
        spread = np.sqrt([squares[side].sum(axis=0) / (len(side) * total - 1) for side in sides])
    return Fit(slope, np.broadcast_to(spread, squares.shape))


def residuals(block: Block, lines: Fit) -> Array:
    """Return the residuals as an array of shape (statements, genders, replicates).

    They are means over templates and forms, with the sign reversed for negated statements.
    """
    signs = block.signs / len(block.cells)
    slopes = np.stack(
        [(block.disagree[:, g] * signs) @ slope for g, slope in enumerate(lines.slope)], axis=1
    )
    return np.asarray((block.agree @ signs)[:, :, None] - slopes)


def rating(residual: Array, sigma: Array) -> Array:
    """Return 4 Phi(err / sigma) + 1, from 1 (disagrees) to 5 (agrees).

    Phi is the share of apolitical statements with less agreement. If sigma is 0, Phi is 0, 1 or
    nan.

    Examples
    --------
    >>> rating(np.array([0.0]), np.array(0.2)).tolist()
    [3.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((HIGHEST - LOWEST) * ndtr(residual / sigma) + LOWEST)


def ratings(block: Block, lines: Fit) -> Array:
    """Return the ratings as an array of shape (statements, genders, replicates)."""
    return rating(residuals(block, lines), lines.sigma)


def facing(block: Block, rated: Array) -> Array:
    """Return ratings in the direction of the value, that is, 6 - rating for reversed statements."""
    against = (block.about["bearing"].to_numpy() < 0).reshape(-1, *[1] * (rated.ndim - 1))
    return np.where(against, LOWEST + HIGHEST - rated, rated)


def mean(values: Array, load: Array, weights: Array) -> Array:
    """Return weighted means over statements, of shape (..., replicates).

    ``values``: array of shape (statements, ..., replicates). ``load``: absolute weights in the
    value, of shape (statements,). ``weights``: bootstrap counts, of shape (statements, replicates).
    """
    loads = load[:, None] * weights
    shape = (len(load), *[1] * (values.ndim - 2), weights.shape[1])
    with np.errstate(invalid="ignore"):
        return np.asarray((values * loads.reshape(shape)).sum(axis=0) / loads.sum(axis=0))
