"""Checks of ``statements`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.statements.formats import COMPASS_OPTIONS as OPTIONS
from plumbline.builders.datasets.statements.read import ENDINGS, POLARITIES
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and how even the halves are."""

    axis_min: int = Field(ge=1, description="fewest statements of an axis in a config")
    half_tolerance: float = Field(
        0.1,
        ge=0,
        le=0.5,
        description="how far the share of likely statements, or of reversed ones on an axis, may "
        "be from a half; scales of others may be as uneven as they are",
    )
    even: list[str] = Field(
        default_factory=list, description="scales that must have even halves, and opposites"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts fit into a frame, halves are even, opposites are mutual."""
    found, rows = [], []
    for config, frame in frames(folder):
        text, moves = pl.col("text"), pl.col("weight") != 0
        pair = {row["id"]: (row["opposite"], row["reversed"]) for row in frame.to_dicts()}
        mutual = [
            not other or (pair[other][0] == name and pair[other][1] != turned)
            for name, (other, turned) in ((name, pair[name]) for name in frame["id"])
        ]
        kinds = pl.sum_horizontal(pl.col("axis") != "", pl.col("polarity").is_not_null(), ~moves)
        texts = frame.select(
            "id",
            "axis",
            "text",
            suite.spaced("text"),
            suite.composed("text"),
            (~text.str.contains(r"^\p{Lu}\p{Ll}")).alias("begins_small"),
            pl.all_horizontal(~text.str.ends_with(e) for e in ENDINGS).alias("no_final_stop"),
            (text.n_unique().over("id") == 1).alias("one_text_an_id"),
            (kinds == 1).alias("axis_or_polarity_or_nothing"),
            _points_fit().alias("points_fit_weight"),
            pl.Series("opposites_are_mutual", mutual),
        )
        found.append(suite.checked(f"texts-{config}", texts, 3))
        rows += _halves(config, frame, params)
    halves = suite.listed("halves", "config scale axis statements share over_floor even", rows, 5)
    return [*found, halves, _languages(folder)]


def _points_fit() -> pl.Expr:
    """Return whether the points of the answers, where there are any, say what the weight says."""
    points = pl.col("points")
    span = points.list.get(3, null_on_oob=True) - points.list.get(0, null_on_oob=True)
    fit = (span.abs() / 2 == pl.col("weight")) & ((span < 0) == pl.col("reversed"))
    number = points.list.len()
    return (number == 0) | ((number == OPTIONS) & fit.fill_null(value=False))


def _halves(config: str, frame: pl.DataFrame, params: Params) -> list[tuple[object, ...]]:
    """Return the share of reversed, or of likely, statements of each axis."""
    found: list[tuple[object, ...]] = []
    half = (
        pl.when(pl.col("polarity").is_null())
        .then(pl.col("reversed"))
        .otherwise(pl.col("polarity") == POLARITIES.index("likely"))
    )
    moving = frame.filter(pl.col("weight") != 0)  # an item that moves nothing is of no axis
    counts = moving.group_by("scale", "axis").agg(pl.len(), half.mean().alias("share"))
    for scale, axis, number, share in counts.sort("scale", "axis").iter_rows():
        even = scale not in params.even or abs(share - 0.5) <= params.half_tolerance
        found.append(
            (config, scale, axis, number, round(share, 6), number >= params.axis_min, even)
        )
    return found


def _languages(folder: Path) -> suite.Table:
    """Hold the languages of a scale to the same statements."""
    first: dict[str, tuple[str, frozenset[object]]] = {}
    rows = []
    for config, frame in frames(folder):
        scale, own = frame["scale"][0], frozenset(frame["id", "axis", "reversed"].iter_rows())
        other, ids = first.setdefault(scale, (config, own))
        rows.append((config, scale, other, own == ids))
    return suite.listed("languages", "config scale first same_ids", rows, 3)
