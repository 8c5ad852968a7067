"""Checks of ``statements`` that look across columns and rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.statements.formats import COMPASS_OPTIONS as OPTIONS
from plumbline.builders.datasets.statements.read import ENDINGS, POLARITIES
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
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
        default_factory=list, description="scales of which that, and opposites, are asked"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: texts fit into a frame, halves are even, opposites are mutual."""
    found, rows = [], []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        text, moves = pl.col("text"), pl.col("weight") != 0
        pair = {row["id"]: (row["opposite"], row["reversed"]) for row in frame.to_dicts()}
        mutual = [
            not other or (pair[other][0] == name and pair[other][1] != turned)
            for name, (other, turned) in ((name, pair[name]) for name in frame["id"])
        ]
        texts = frame.select(
            "id",
            "axis",
            "text",
            (text == text.str.replace_all(r"\s+", " ").str.strip_chars()).alias("single_spaces"),
            (text == text.str.normalize("NFC")).alias("composed"),
            (~text.str.contains(r"^\p{Lu}\p{Ll}")).alias("begins_small"),
            pl.all_horizontal(~text.str.ends_with(e) for e in ENDINGS).alias("no_final_stop"),
            (text.n_unique().over("id") == 1).alias("one_text_an_id"),
            (
                pl.sum_horizontal(pl.col("axis") != "", pl.col("polarity").is_not_null(), ~moves)
                == 1
            ).alias("axis_or_polarity_or_nothing"),
            _points_fit().alias("points_fit_weight"),
            pl.Series("opposites_are_mutual", mutual),
        )
        checks = [holds(c) for c in texts.columns[3:]]
        found.append(Table(f"texts-{config}", texts, ["id", "axis", "text"], checks))
        rows += _halves(config, frame, params)
    columns = ["config", "scale", "axis", "statements", "share", "over_floor", "even"]
    halves = pl.DataFrame(rows, schema=columns, orient="row")
    languages = _languages(folder)
    return [
        *found,
        Table("halves", halves, columns[:5], [holds("over_floor"), holds("even")]),
        Table("languages", languages, languages.columns[:3], [holds("same_ids")]),
    ]


def _points_fit() -> pl.Expr:
    """Tell whether the points of the answers, where there are any, say what the weight says."""
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


def _languages(folder: Path) -> pl.DataFrame:
    """Hold the languages of a scale to the same statements."""
    configs = parquet.configs(folder)
    frames = {c: pl.read_parquet(folder / f"{c}.parquet") for c in configs}
    ids = {c: frozenset(f.select("id", "axis", "reversed").iter_rows()) for c, f in frames.items()}
    first: dict[str, str] = {}
    for config, frame in frames.items():
        first.setdefault(frame["scale"][0], config)
    rows = [
        (config, frame["scale"][0], first[frame["scale"][0]], ids[config])
        for config, frame in frames.items()
    ]
    return pl.DataFrame(
        [(c, scale, other, own == ids[other]) for c, scale, other, own in rows],
        schema=["config", "scale", "first", "same_ids"],
        orient="row",
    )
