"""Checks on the dataset ``counterfactuals`` across rows."""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.counterfactuals.build import GENDERS, READINGS
from plumbline.builders.readers.gazetteer import fold
from plumbline.builders.readers.name_lists import NOWHERE, codes
from plumbline.validation import suite

WORD = re.compile(r"\w+")
PAIR = ("target", "country", "gender", "entity", "draw")  # equal in a placebo and its reference


class Params(suite.Params):
    """Minimum numbers of rows, and the maximum share of unchanged texts."""

    same_max_share: float = Field(
        ge=0, le=1, description="maximum share of counterfactuals that equal their original"
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Check that rows have an original, differ from it only in the entity, and form pairs."""
    reading, text = pl.col("reading"), pl.col("text")
    code = {name: READINGS.index(name) for name in READINGS}
    original, placebo = reading == code["original"], reading == code["placebo"]
    renamed = {f"{name}_of": name for name in ("reading", "text", *PAIR)}
    references = frame.select(reference_id="id", **renamed).unique("reference_id", keep="first")
    base = frame.filter(original).select(
        "target", base="text", gold="label", free="redistributable"
    )
    joined = frame.join(references, "reference_id", "left", maintain_order="left")
    joined = joined.join(base.unique("target"), "target", "left", maintain_order="left")
    expected = pl.when(placebo).then(code["corrected"]).otherwise(code["original"])
    triples = joined.select("base", "text", "entity").iter_rows()
    entity_only = [None not in row and only_the_entity(*row) for row in triples]
    name = reading.replace_strict(dict(enumerate(READINGS)), default="")
    named = pl.format("{}#{}-{}-{}", "target", name, "country", "draw")
    rows = joined.select(
        "id",
        only_originals_stand_alone=original == (pl.col("reference_id") == ""),
        reference_exists=original | (pl.col("reading_of") == expected).fill_null(value=False),
        reference_of_the_same_target=original | (pl.col("target") == pl.col("target_of")),
        has_a_country=original == (pl.col("country") == ""),
        has_a_name=original | (pl.col("entity") != "") & (pl.col("name") != ""),
        differs_in_the_entity_only=pl.Series(entity_only, dtype=pl.Boolean),
        placebo_of_the_same_country=~placebo
        | pl.all_horizontal(pl.col(name) == pl.col(f"{name}_of") for name in PAIR),
        placebo_differs=~placebo | (text != pl.col("text_of")),
        as_its_id=pl.col("id") == pl.when(original).then("target").otherwise(named),
        has_the_name=original
        | text.str.to_lowercase().str.contains(pl.col("name").str.to_lowercase(), literal=True)
        | text.str.to_uppercase().str.contains(pl.col("name").str.to_uppercase(), literal=True),
        label_of_its_original=(pl.col("label") == pl.col("gold"))
        & (pl.col("redistributable") == pl.col("free")),
        country_exists=original | pl.col("country").is_in([*codes().values(), NOWHERE]),
        has_a_gender=original | (pl.col("gender") != GENDERS.index("unknown")),
        changed=original | (text != pl.col("base")),
    )
    # a change of case alters some letters, so a few names are not detected
    shares = {"changed": 1 - params.same_max_share, "has_the_name": 0.9999}
    return [suite.checked(f"rows-{config}", rows, shares=shares)]


def only_the_entity(original: str, text: str, entity: str) -> bool:
    """Return True for a text that differs from the original only in the entity's words."""
    if not entity:
        return text == original
    return _pattern(original, entity).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _pattern(original: str, entity: str) -> re.Pattern[str]:
    """Return a pattern that matches the original with any words in place of the entity."""
    folded = {fold(word) for word in WORD.findall(entity)}
    words = {re.escape(word) for word in WORD.findall(original) if fold(word) in folded}
    word = rf"\b(?:{'|'.join(sorted(words))})\b"
    between = re.split(rf"{word}(?:[ .'’-]*{word})*", original) if words else [original]
    return re.compile(r"[^@#\n]{1,80}?".join(map(_kept, between)))


def _kept(between: str) -> str:
    """Return the pattern of the text between names; a leading apostrophe may be followed by s."""
    if between[:1] in ("'", "’") and between[1:2].isspace():
        return f"{between[0]}[sS]?{re.escape(between[1:])}"
    return re.escape(between)
