"""Columns that tables of several analyses of this study have, and tables made of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.stats.estimate import Table, adjusted, rounded, typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

NUMBERS = ("value", "low", "high")
Unit = Literal["lemma", "form"]  # of what is counted in lists
UNITS: tuple[Unit, ...] = get_args(Unit)

OF_PMI = ("plug-in", "smoothed")  # its readings
MALE, FEMALE, NON_BINARY = (GENDERS.index(g) for g in ("male", "female", "non-binary"))
DIFFERENCE = "male minus female"
RESPONSES = (*GENDERS, DIFFERENCE)
MODELS = ("models", "worlds", "null worlds")  # never mixed
CONTROLS = dict(zip((None, "positive", "negative"), MODELS, strict=True))
LANGUAGE = Column("language", "string", "language of names and words")
PART = Column("pos", "category", "universal part of speech", labels=POS)
MODEL = Column("model", "string", "name of the model in params.yaml")
PLACE = (MODEL, LANGUAGE, PART)
UNIT = Column("unit", "category", "what is counted in lists and what `word` is", labels=UNITS)
WORD = Column("word", "string", "what is counted: a lemma, or where `unit` is form a form")
LEMMA = Column("word", "string", "lemma that is counted")
FORM = Column("form", "string", "its form in most lists; the same where forms are counted")
GENDER = Column("gender", "category", "the paper's grouping", labels=GENDERS)
SENTIMENT = Column("sentiment", "category", "most probable sentiment of a word", labels=SENTIMENTS)
TOP_K = Column("top_k", "int64", "words or pairs with the largest deviations", minimum=0)
CANDIDATES = Column("candidates", "int64", "words or pairs they are taken from", minimum=0)


def schema(key: str, *columns: Column) -> Schema:
    """Return a schema; the key is names of columns with spaces between them."""
    return Schema(columns, tuple(key.split()))


def share(name: str, description: str, *, nullable: bool = False) -> Column:
    """Return a column of shares or probabilities."""
    return Column(name, "float64", description, nullable=nullable, minimum=0, maximum=1)


def sort_by_key(table: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """Sort rows by the key of a schema, categories in their declared order."""
    declared = (schema[name] for name in schema.key)
    return table.sort(
        pl.col(c.name).cast(pl.Enum(c.labels)) if c.labels else pl.col(c.name) for c in declared
    )


def table_of(
    schema: Schema,
    parts: Iterable[pl.DataFrame],
    confidence: float | None,
    over: Sequence[str] | None = None,
    least: float | str = 0.0,
    **same: Any,
) -> pl.DataFrame:
    """Return tables of one schema as one; without rows where there are none.

    Parameters
    ----------
    confidence
        Of the intervals, see :func:`typed`.
    over, least
        Columns of a family of tests, and the smallest p, see :func:`adjusted`; None: nothing is
        adjusted.
    same
        Columns that have one value in all rows.
    """
    filled = [part for part in parts if len(part)]
    if not filled:
        return Table(schema, confidence).frame()
    table = pl.concat(filled, how="diagonal_relaxed")
    table = table.with_columns(pl.lit(value).alias(name) for name, value in same.items())
    if over is not None:
        table = adjusted(table, over=over, least=least)
    return typed(table, schema, confidence)


def rows_of(
    axes: Mapping[str, Any], estimate: Iterable[NDArray[np.float64]], **columns: Any
) -> pl.DataFrame:
    """Return a row for each cell of arrays, numbers rounded for a table; not finite is null.

    Parameters
    ----------
    axes
        For each axis of the arrays the name of its column, and the value at each place.
    estimate
        Value, and lower and upper end if there are such.
    columns
        Arrays that broadcast to all axes, or what is in all rows.

    Examples
    --------
    >>> rows_of({"word": ["a", "b"]}, [np.array([0.5, np.nan])], n=9).rows()
    [('a', 0.5, 9), ('b', None, 9)]
    """
    shape = tuple(len(labels) for labels in axes.values())
    columns = dict(zip(NUMBERS, estimate, strict=False)) | columns
    at = np.indices(shape).reshape(len(shape), -1)
    frame = pl.DataFrame(
        {name: pl.Series(axes[name]).gather(i) for name, i in zip(axes, at, strict=True)}
    ).with_columns(
        **{
            name: np.broadcast_to(values, shape).ravel()
            if isinstance(values, np.ndarray)
            else pl.lit(values)
            for name, values in columns.items()
        }
    )
    floats = [name for name in columns if frame[name].dtype.is_float() and name != "p"]
    frame = rounded(frame, floats, ["p"] if "p" in columns else [])
    return frame.with_columns(pl.col("p").fill_nan(None)) if "p" in columns else frame
