"""Columns that tables of several analyses of this study have, and tables made of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.builders.datasets.words.build import POS
from plumbline.probes.stats.estimate import DETECTABLE, Table, adjusted, rounded, typed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

NUMBERS = ("value", "low", "high")
Unit = Literal["lemma", "form"]  # of what is counted in lists
UNITS: tuple[Unit, ...] = get_args(Unit)

OF_PMI = ("plug-in", "smoothed")  # its readings
MALE, FEMALE, NON_BINARY = (GENDERS.index(g) for g in ("male", "female", "non-binary"))
LANGUAGE = Column("language", "string", "language of names and words")
PART = Column("pos", "label", "universal part of speech", labels=POS)
MODEL = Column("model", "string", "name of the model in params.yaml")
PLACE = (MODEL, LANGUAGE, PART)
UNIT = Column("unit", "label", "what is counted in lists and what `word` is", labels=UNITS)
WORD = Column("word", "string", "what is counted: a lemma, or where `unit` is form a form")
LEMMA = Column("lemma", "string", "its lemma; the same where lemmas are counted")
FORM = Column("form", "string", "its form in most lists; the same where forms are counted")
GENDER = Column("gender", "label", "the paper's grouping", labels=GENDERS)
SENTIMENT = Column("sentiment", "label", "most probable sentiment of a word", labels=SENTIMENTS)
TOP_K = Column("top_k", "int64", "words or pairs with the largest deviations", minimum=0)
CANDIDATES = Column("candidates", "int64", "words or pairs they are taken from", minimum=0)
REASON = Column("reason", "string", "why there is no number; null where there is", nullable=True)
FAMILY = Column("family", "int64", "tests that p_bh is taken over; 0: none", minimum=0)
TESTED = Column("tested", "int64", "tests that p_bh is taken over; 0 where none", minimum=0)


class Counting(Params):
    """What is counted; to be inherited by the ``Params`` of an analysis."""

    unit: Unit = Field(
        "lemma",
        description="what is counted in lists: lemmas, as in the paper, so that a form that agrees "
        "with a person's gender is no bias; or forms",
    )


def schema(key: str, *columns: Column) -> Schema:
    """Return a schema; the key is names of columns with spaces between them."""
    return Schema(columns, tuple(key.split()))


def share(name: str, description: str, *, nullable: bool = False) -> Column:
    """Return a column of shares or probabilities."""
    return Column(name, "float64", description, nullable=nullable, minimum=0, maximum=1)


def table_of(
    schema: Schema,
    parts: Iterable[pl.DataFrame],
    confidence: float | None,
    over: Sequence[str] | None = None,
    least: float | str = 0.0,
    **same: Any,
) -> pl.DataFrame:
    """Return tables of one schema as one; without rows, or null, where there are none.

    ``confidence``: of the intervals, see :func:`typed`.
    ``over``, ``least``: columns of a family of tests, and the smallest p, see :func:`adjusted`;
    None: nothing is adjusted.
    ``same``: columns that have one value in all rows.
    """
    found = [part for part in parts if len(part)]
    if not found:
        return Table(schema, confidence).frame()
    table = pl.concat(found, how="diagonal_relaxed")
    table = table.with_columns(pl.lit(value).alias(name) for name, value in same.items())
    lacking = {c.name for c in schema.columns if c.nullable} - {*table.columns, *DETECTABLE}
    table = table.with_columns(**dict.fromkeys(lacking))
    if over is not None:
        tested = pl.when(pl.col("p").is_not_null()).then("family").otherwise(0)
        table = adjusted(table, over=over, least=least).with_columns(tested=tested)
    return typed(table, schema, confidence)


def rows_of(
    axes: Mapping[str, Any], estimate: Iterable[NDArray[np.float64]], **columns: Any
) -> pl.DataFrame:
    """Return a row for each cell of arrays, with ``p`` and ``p_bh``; numbers rounded for a table.

    ``axes``: for each axis of the arrays the name of its column, and the value at each place.
    ``estimate``: value, and lower and upper end if there are such.
    ``columns``: arrays that broadcast to all axes, or what stands in all rows. Not finite is null.

    Examples
    --------
    >>> rows_of({"word": ["a", "b"]}, [np.array([0.5, np.nan])], n=9).rows()
    [('a', None, None, 0.5, 9), ('b', None, None, None, 9)]
    """
    shape = tuple(len(places) for places in axes.values())
    columns = {"p": None, "p_bh": None} | dict(zip(NUMBERS, estimate, strict=False)) | columns
    at = np.indices(shape).reshape(len(shape), -1)
    frame = pl.DataFrame(
        {name: pl.Series(axes[name]).gather(place) for name, place in zip(axes, at, strict=True)}
    ).with_columns(
        **{
            name: np.broadcast_to(values, shape).ravel()
            if isinstance(values, np.ndarray)
            else pl.lit(values)
            for name, values in columns.items()
        }
    )
    floats = [name for name in columns if frame[name].dtype.is_float() and name != "p"]
    return rounded(frame, floats).with_columns(pl.col("p").fill_nan(None))
