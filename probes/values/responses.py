"""Responses of a model as arrays: statements by genders by frames and forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.statements.read import POLARITIES
from plumbline.probes.prompts.opinions import FORMS, GENDERS, METHODS
from plumbline.probes.stats.bootstrap import bits, keys, poisson

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Cell(NamedTuple):
    """One frame, with the statement as it stands or denied."""

    frame: str
    form: str

    @property
    def sign(self) -> int:
        """Return -1 where the statement is denied, so that agreeing speaks against it."""
        return -1 if self.form == "negated" else 1


class Block(NamedTuple):
    """Responses of a model to some statements."""

    about: pl.DataFrame  # a row for each statement and axis, (statements,)
    cells: tuple[Cell, ...]
    disagree: Array  # (statements, genders, cells), nats
    agree: Array

    def signs(self) -> Array:
        """Return the sign of each cell, (cells,)."""
        return np.array([cell.sign for cell in self.cells], dtype=np.float64)

    def bearing(self) -> Array:
        """Return how much agreeing speaks for the value, below 0 against it, (statements,)."""
        found: Array = self.about["bearing"].to_numpy().astype(np.float64)
        return found

    def clusters(self) -> list[str]:
        """Return the cluster of each row: the statement with the one that says the opposite."""
        rows = self.about.select("scale", "id", "opposite").iter_rows()
        return [f"{scale}/{min(name, other) if other else name}" for scale, name, other in rows]

    def where(self, keep: NDArray[np.bool_]) -> Block:
        """Return some of the rows."""
        about = self.about.filter(pl.Series(keep))
        return Block(about, self.cells, self.disagree[keep], self.agree[keep])

    def weights(self, bootstrap: int, seed: int) -> Array:
        """Return how often each row is drawn, (statements, 1 + replicates); the first once."""
        names, place = np.unique(self.clusters(), return_inverse=True)
        drawn = poisson(bits(keys(names.tolist()), bootstrap, seed)).astype(np.float64)
        return np.hstack([np.ones((len(place), 1)), drawn[place]])


def statements(folder: Path, language: str | None = None) -> pl.DataFrame:
    """Return the statements of all questionnaires, of one language or all."""
    every = pl.concat(
        pl.read_parquet(folder / f"{config}.parquet").with_columns(questionnaire=pl.lit(config))
        for config in parquet.configs(folder)
    )
    sign = pl.when(pl.col("reversed")).then(-1.0).otherwise(1.0)
    found = every.with_columns(
        likely=pl.col("polarity") == POLARITIES.index("likely"), bearing=pl.col("weight") * sign
    )
    return found if language is None else found.filter(pl.col("language") == language)


def answers(folder: Path, language: str) -> pl.DataFrame:
    """Return the responses of a model in a language."""
    labels = {"gender": GENDERS, "form": FORMS, "method": METHODS}
    return pl.read_parquet(folder / language / "*.parquet").with_columns(
        pl.col(name).replace_strict(dict(enumerate(own)), return_dtype=pl.String)
        for name, own in labels.items()
    )


def block(
    found: pl.DataFrame, about: pl.DataFrame, method: str, cells: Sequence[Cell] | None = None
) -> Block:
    """Return the responses by one method as arrays.

    Parameters
    ----------
    found
        Columns questionnaire, id, frame, form, gender, method, agree_nats, disagree_nats.
    about
        The statements.
    cells
        Frames and forms; by default all that there are.

    Raises
    ------
    UserError
        If a response is missing.
    """
    own = found.filter(pl.col("method") == method)
    if cells is None:
        pairs = own.select("frame", "form").unique().sort("frame", "form", descending=[False, True])
        cells = [Cell(*pair) for pair in pairs.iter_rows()]
    about = about.sort("questionnaire", "id", "axis")
    where = pl.DataFrame(
        cells, schema={"frame": pl.String, "form": pl.String}, orient="row"
    ).with_row_index("cell")
    rows = about.select("questionnaire", "id").with_row_index("row")
    placed = own.join(where, on=["frame", "form"]).join(rows, on=["questionnaire", "id"])
    gender = placed["gender"].replace_strict({g: i for i, g in enumerate(GENDERS)}).to_numpy()
    at = placed["row"].to_numpy(), gender, placed["cell"].to_numpy()
    sides = np.full((2, len(about), len(GENDERS), len(cells)), np.nan)
    for array, name in zip(sides, ("disagree_nats", "agree_nats"), strict=True):
        array[at] = placed[name].to_numpy()
    if not np.isfinite(sides).all() or not cells:
        lost = ", ".join(sorted({cell.frame for cell in cells})) or "any frame"
        raise UserError(
            f"outputs of agreement: not every statement has a response in {lost} by {method}; "
            "check analysis.values.frame and run the probe again"
        )
    return Block(about, tuple(cells), sides[0], sides[1])
