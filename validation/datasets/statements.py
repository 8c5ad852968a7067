"""Checks on the dataset ``statements`` across columns and rows."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.statements.formats import COMPASS_OPTIONS as OPTIONS
from plumbline.builders.datasets.statements.read import POLARITIES, STOP
from plumbline.validation import suite


class Params(suite.Params):
    """Minimum numbers of rows, and the maximum imbalance of scales."""

    half_tolerance: float = Field(
        0.1,
        ge=0,
        le=0.5,
        description="maximum distance from .5 of the share of likely or (on an axis) reversed "
        "statements; published scales are exempt",
    )
    even: list[str] = Field(
        default_factory=list,
        description="scales that must be balanced, and whose statements must have opposites",
    )


TOLD = ("id", "axis", "reversed", "weight", "polarity", "opposite")  # equal in all languages
HALVES = "config scale axis statements share even"


def across(_: Params, folder: Path) -> list[suite.Table]:
    """Check that a scale has the same statements and metadata in all languages."""
    first: dict[str, tuple[str, frozenset[object]]] = {}
    rows = []
    for config, frame in suite.frames(folder):
        scale, statements = str(frame["scale"].first()), frozenset(frame.select(TOLD).iter_rows())
        first_config, ids = first.setdefault(scale, (config, statements))
        rows.append((config, scale, first_config, statements == ids))
    return [suite.listed("languages", "config scale first same_ids", rows, 3)]


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that texts fit into a template, scales are balanced, and opposites are mutual."""
    text, moves, likely = pl.col("text"), pl.col("weight") != 0, POLARITIES.index("likely")
    name, opposite, axis = pl.col("id"), pl.col("opposite"), pl.col("axis")
    ours = pl.col("scale").is_in(params.even)
    pair = frame.select(opposite="id", back="opposite", axis="axis", turned="reversed")
    pairs = frame.select("id", "opposite", "axis", "reversed").join(
        pair.unique(["opposite", "axis"]), ["opposite", "axis"], "left", maintain_order="left"
    )
    mutual = (pl.col("back") == pl.col("id")) & (pl.col("turned") != pl.col("reversed"))
    text_end, sentence = (pl.col(c).str.replace(f"{STOP}+$", "") for c in ("text", "sentence"))
    worded = text_end.str.slice(1) == sentence.str.slice(1)
    worded &= (
        text_end.str.slice(0, 1).str.to_lowercase() == sentence.str.slice(0, 1).str.to_lowercase()
    )
    named = name.str.extract(r"-(likely|unlikely)$")
    polarity = pl.col("polarity").replace_strict(dict(enumerate(POLARITIES)), default=None)
    kinds = pl.sum_horizontal(pl.col("axis") != "", pl.col("polarity").is_not_null(), ~moves)
    points = pl.col("points").list
    span = points.get(OPTIONS - 1, null_on_oob=True) - points.get(0, null_on_oob=True)
    fit = (span.abs() / 2 == pl.col("weight")) & ((span < 0) == pl.col("reversed"))
    texts = frame.select(
        "id",
        "axis",
        "text",
        # published statements may begin with a name
        begins_small=~text.str.contains(r"^\p{Lu}\p{Ll}") | ~ours,
        no_final_stop=~text.str.contains(f"{STOP}$"),
        text_of_its_sentence=worded & (text != ""),
        sentence_begins_large=~ours | pl.col("sentence").str.contains(r"^[^\p{Ll}]"),
        one_text_an_id=suite.same("text", "id"),
        one_id_a_text=suite.same("id", "text"),
        one_of_each=pl.all_horizontal(
            pl.col(c).n_unique() == 1 for c in ("language", "scale", "source", "licence")
        ),
        polarity_as_named=named.is_null() | (named == polarity),
        weight_of_its_sign=pl.col("weight") >= 0,
        has_an_opposite=~ours | (axis == "") | (opposite != ""),
        axis_or_polarity_or_nothing=kinds == 1,
        points_fit_weight=(points.len() == 0)
        | ((points.len() == OPTIONS) & fit.fill_null(value=False)),
        opposites_are_mutual=(opposite == "") | pairs.select(mutual).to_series(),
    )
    half = pl.coalesce(pl.col("polarity") == likely, "reversed")
    counts = frame.filter(moves).group_by("scale", "axis").agg(pl.len(), share=half.mean())
    rows = []
    for scale, axis, number, share in counts.sort("scale", "axis").iter_rows():
        even = scale not in params.even or abs(share - 0.5) <= params.half_tolerance
        rows.append((config, scale, axis, number, round(share, 6), even))
    return [
        suite.checked(f"texts-{config}", texts, 3),
        suite.listed(f"halves-{config}", HALVES, rows, 5),
    ]
