"""Responses of a model as arrays: statements by genders by cells (templates and forms)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.statements.read import POLARITIES
from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.bootstrap import bits, keys, poisson

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]

Cell = tuple[str, str]  # frame and form: plain or negated
NATS = ("disagree_nats", "agree_nats")


class Block(NamedTuple):
    """Responses of a model to a set of statements, by one method."""

    about: pl.DataFrame  # a row for each statement and axis, as in `statements`
    cells: list[Cell]
    rows: pl.DataFrame  # a row for each statement, gender and cell
    disagree: Array  # (statements, genders, cells), nats
    agree: Array
    weights: Array  # (statements, 1 + replicates): bootstrap counts, the first column 1
    clusters: NDArray[np.int64]  # (statements,): cluster numbers

    @property
    def signs(self) -> Array:
        """Return -1 for cells that deny the statement, else 1."""
        return np.where([form == "negated" for _, form in self.cells], -1.0, 1.0)


def statements(folder: Path) -> pl.DataFrame:
    """Return the statements of all questionnaires.

    ``bearing`` is the weight in the value, negative if agreement is against it; ``cluster`` is
    common to a statement and its opposite, which are resampled together.
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


def answers(folder: Path, language: str) -> pl.DataFrame:
    """Return the responses of a model in a language."""
    return pl.read_parquet(folder / language / "*.parquet")


def block(
    answered: pl.DataFrame,
    about: pl.DataFrame,
    method: str,
    params: Params,
    cells: list[Cell] | None = None,
) -> Block:
    """Return the responses by one method as arrays, with bootstrap counts of the statements.

    Raises UserError if a response is missing.

    ``answered``: columns questionnaire, id, frame, form, gender, method, agree_nats, disagree_nats.
    ``about``: the statements.
    ``cells``: by default all.
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
            f"outputs of agreement: not every statement has a response in {frames} by {method}; "
            "check analysis.values.frame and run the probe again"
        )
    names, clusters = np.unique(about["cluster"].to_list(), return_inverse=True)
    counts = poisson(bits(keys(names.tolist()), params.n_bootstrap, params.seed))
    weights = np.hstack([np.ones((len(clusters), 1)), counts.astype(np.float64)[clusters]])
    return Block(about, cells, rows, disagree, agree, weights, clusters)
