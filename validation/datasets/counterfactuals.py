"""Checks of ``counterfactuals`` that look across rows."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path

WORD = re.compile(r"\w+")
PAIR = ("target", "country", "gender", "entity", "draw")  # what a placebo shares with its row


class Params(suite.Params):
    """Floors, and how many may be as they were."""

    texts_min: int = Field(ge=1, description="fewest originals of a config")
    countries_min: int = Field(ge=1, description="fewest countries of a config")
    same_max_share: float = Field(
        ge=0, le=1, description="largest share of counterfactuals that are as their original"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: rows have their originals and differ in the entity alone, in pairs."""
    found, rows = [], []
    for config, frame in frames(folder):
        codes = {name: READINGS.index(name) for name in READINGS}
        original = pl.col("reading") == codes["original"]
        other = frame.select(
            pl.col("id").alias("reference_id"),
            *(pl.col(c).alias(f"{c}_of") for c in ("reading", "text", *PAIR)),
        )
        base = frame.filter(original).select("target", pl.col("text").alias("base"))
        joined = frame.join(other, on="reference_id", how="left").join(
            base, on="target", how="left"
        )
        placebo = pl.col("reading") == codes["placebo"]
        wanted = pl.when(placebo).then(codes["corrected"]).otherwise(codes["original"])
        only = [
            only_the_entity(base, text, entity)
            for base, text, entity in joined.select("base", "text", "entity").iter_rows()
        ]
        paired = pl.all_horizontal(pl.col(c) == pl.col(f"{c}_of") for c in PAIR)
        texts_of = joined.select(
            "id",
            (original == (pl.col("reference_id") == "")).alias("only_originals_stand_alone"),
            (original | (pl.col("reading_of") == wanted).fill_null(value=False)).alias(
                "reference_exists"
            ),
            (original | (pl.col("target") == pl.col("target_of"))).alias(
                "reference_of_the_same_target"
            ),
            (original == (pl.col("country") == "")).alias("has_a_country"),
            (original | (pl.col("entity") != "") & (pl.col("name") != "")).alias("has_a_name"),
            pl.Series("differs_in_the_entity_only", only, dtype=pl.Boolean),
            (~placebo | paired).alias("placebo_of_the_same_country"),
            (~placebo | (pl.col("text") != pl.col("text_of"))).alias("placebo_differs"),
            (original | (pl.col("text") != pl.col("base"))).alias("changed"),
        )
        shares = {"changed": 1 - params.same_max_share}
        found.append(suite.checked(f"rows-{config}", texts_of, shares=shares))
        texts = frame.filter(original).height
        places = frame.filter(~original)["country"].n_unique()
        floors = (texts >= params.texts_min, places >= params.countries_min)
        rows.append((config, texts, places, *floors))
    columns = "config texts countries enough_texts enough_countries"
    return [*found, suite.listed("sizes", columns, rows, 3)]


def only_the_entity(original: str, text: str, entity: str) -> bool:
    """Return whether a text is the original, but for the places where words of the entity stand."""
    if not entity:
        return text == original
    return _pattern(original, entity).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _pattern(original: str, entity: str) -> re.Pattern[str]:
    """Return the original with anything in the places of the entity's words, and a possessive s."""
    words = {word.casefold() for word in WORD.findall(entity)}
    parts: list[str] = []
    at = 0
    places = [m.span() for m in WORD.finditer(original) if m[0].casefold() in words]
    for start, end in places:
        between = original[at:start]
        if not (parts and re.fullmatch(r"[ .'’-]*", between)):
            parts += [_kept(between), r"[^@#\n]{1,80}?"]
        at = end
    return re.compile("".join([*parts, _kept(original[at:])]))


def _kept(between: str) -> str:
    """Return what stays between two names; an apostrophe at its beginning may get its s."""
    if between[:1] in ("'", "’") and between[1:2].isspace():
        return f"{between[0]}[sS]?{re.escape(between[1:])}"
    return re.escape(between)
