"""Checks of ``statements`` that look across columns and rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.statements.formats import COMPASS_OPTIONS as OPTIONS
from plumbline.builders.datasets.statements.read import ENDINGS, POLARITIES
from plumbline.validation import suite


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


def _languages(folder: Path) -> list[suite.Table]:
    """Hold the languages of a scale to the same statements."""
    first: dict[str, tuple[str, frozenset[object]]] = {}
    rows = []
    for config, frame in frames(folder):
        scale, own = frame["scale"][0], frozenset(frame["id", "axis", "reversed"].iter_rows())
        other, ids = first.setdefault(scale, (config, own))
        rows.append((config, scale, other, own == ids))
    return [suite.listed("languages", "config scale first same_ids", rows, 3)]


COLUMNS = "config scale axis statements share over_floor even"


@suite.each_config("halves", COLUMNS, 5, across=_languages)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that texts fit into a frame, halves are even, and opposites are mutual."""
    text, moves, likely = pl.col("text"), pl.col("weight") != 0, POLARITIES.index("likely")
    pair = {row["id"]: (row["opposite"], row["reversed"]) for row in frame.to_dicts()}
    mutual = [
        not other or (pair[other][0] == name and pair[other][1] != turned)
        for name, (other, turned) in ((name, pair[name]) for name in frame["id"])
    ]
    kinds = pl.sum_horizontal(pl.col("axis") != "", pl.col("polarity").is_not_null(), ~moves)
    points = pl.col("points").list
    span = points.get(OPTIONS - 1, null_on_oob=True) - points.get(0, null_on_oob=True)
    fit = (span.abs() / 2 == pl.col("weight")) & ((span < 0) == pl.col("reversed"))
    texts = frame.select(
        "id",
        "axis",
        "text",
        suite.spaced("text"),
        suite.composed("text"),
        begins_small=~text.str.contains(r"^\p{Lu}\p{Ll}"),
        no_final_stop=pl.all_horizontal(~text.str.ends_with(e) for e in ENDINGS),
        one_text_an_id=text.n_unique().over("id") == 1,
        axis_or_polarity_or_nothing=kinds == 1,
        points_fit_weight=(points.len() == 0)
        | ((points.len() == OPTIONS) & fit.fill_null(value=False)),
        opposites_are_mutual=pl.Series(mutual),
    )
    half = pl.coalesce(pl.col("polarity") == likely, "reversed")
    counts = frame.filter(moves).group_by("scale", "axis").agg(pl.len(), share=half.mean())
    rows = []
    for scale, axis, number, share in counts.sort("scale", "axis").iter_rows():
        even = scale not in params.even or abs(share - 0.5) <= params.half_tolerance
        over = number >= params.axis_min
        rows.append((config, scale, axis, number, round(share, 6), over, even))
    return [suite.checked(f"texts-{config}", texts, 3)], rows
