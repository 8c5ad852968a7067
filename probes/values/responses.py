"""Answers of a model as arrays: statements by genders by frames and forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.statements.read import POLARITIES
from plumbline.probes.prompts.opinions import FORMS, GENDERS
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.values.agreement import METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Cell(NamedTuple):
    """One way of asking."""

    frame: str
    form: str

    @property
    def sign(self) -> int:
        """Return -1 where the statement is denied, so that agreeing speaks against it."""
        return -1 if self.form == "negated" else 1


class Block(NamedTuple):
    """What a model answered to some statements."""

    about: pl.DataFrame  # a row for each statement and axis, (statements,)
    cells: tuple[Cell, ...]
    disagree: Array  # (statements, genders, cells), nats
    agree: Array

    def signs(self) -> Array:
        """Return the sign of each cell, (cells,)."""
        return np.array([cell.sign for cell in self.cells], dtype=np.float64)

    def clusters(self) -> list[str]:
        """Return the cluster of each row: the statement with the one that says the opposite."""
        rows = self.about.select("scale", "id", "opposite").iter_rows()
        return [f"{scale}/{min(name, other) if other else name}" for scale, name, other in rows]

    def where(self, keep: NDArray[np.bool_]) -> Block:
        """Return the rows that are kept."""
        about = self.about.filter(pl.Series(keep))
        return Block(about, self.cells, self.disagree[keep], self.agree[keep])

    def weights(self, bootstrap: int, seed: int) -> Array:
        """Return how often each row is drawn, (statements, 1 + replicates); the first once."""
        names = sorted(set(self.clusters()))
        drawn = poisson(bits(keys(names), bootstrap, seed)).astype(np.float64)
        place = {name: i for i, name in enumerate(names)}
        rows = drawn[[place[name] for name in self.clusters()]]
        return np.hstack([np.ones((len(rows), 1)), rows])


def statements(folder: Path, language: str) -> pl.DataFrame:
    """Return the statements of a language, of all questionnaires."""
    every = pl.concat(
        pl.read_parquet(folder / f"{config}.parquet").with_columns(questionnaire=pl.lit(config))
        for config in parquet.configs(folder)
    )
    return every.filter(pl.col("language") == language).with_columns(
        likely=pl.col("polarity") == POLARITIES.index("likely")
    )


def answers(folder: Path, language: str) -> pl.DataFrame:
    """Return what a model answered in a language."""
    return pl.read_parquet(folder / language / "*.parquet").with_columns(
        gender=_named("gender", GENDERS),
        form=_named("form", FORMS),
        method=_named("method", METHODS),
    )


def _named(column: str, labels: Sequence[str]) -> pl.Expr:
    codes = dict(enumerate(labels))
    return pl.col(column).replace_strict(codes, return_dtype=pl.String)


def block(
    found: pl.DataFrame, about: pl.DataFrame, method: str, cells: Sequence[Cell] | None = None
) -> Block:
    """Return the answers by one method as arrays.

    Parameters
    ----------
    found
        Columns questionnaire, id, frame, form, gender, method, agree_nats, disagree_nats.
    about
        The statements.
    cells
        Ways of asking; by default all that there are.

    Raises
    ------
    Problem
        If an answer is lacking.
    """
    own = found.filter(pl.col("method") == method)
    if cells is None:
        pairs = own.select("frame", "form").unique().sort("frame", "form", descending=[False, True])
        cells = [Cell(*pair) for pair in pairs.iter_rows()]
    about = about.sort("questionnaire", "id", "axis")
    shape = (len(about), len(GENDERS), len(cells))
    arrays = {side: np.full(shape, np.nan) for side in ("disagree_nats", "agree_nats")}
    row: dict[tuple[str, str], list[int]] = {}
    for i, key in enumerate(about.select("questionnaire", "id").iter_rows()):
        row.setdefault(key, []).append(i)
    where = {cell: n for n, cell in enumerate(cells)}
    columns = ["questionnaire", "id", "frame", "form", "gender", *arrays]
    for questionnaire, name, frame, form, gender, *sides in own.select(columns).iter_rows():
        if (cell := where.get(Cell(frame, form))) is not None:
            for array, value in zip(arrays.values(), sides, strict=True):
                array[row.get((questionnaire, name), []), GENDERS.index(gender), cell] = value
    if not all(np.isfinite(array).all() for array in arrays.values()) or not cells:
        lost = ", ".join(sorted({cell.frame for cell in cells})) or "any frame"
        raise Problem(
            f"outputs of agreement: not every statement was asked in {lost} by {method}; check "
            "analysis.values.frame and run the probe again"
        )
    return Block(about, tuple(cells), arrays["disagree_nats"], arrays["agree_nats"])
