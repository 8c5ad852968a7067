"""Checks of ``words`` that look across columns and rows."""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core.params import section
from plumbline.builders.datasets.words.build import PLACES, POS
from plumbline.builders.datasets.words.build import Params as Built
from plumbline.validation import suite

# Languages that inflect words at their ends: in real treebanks .95 or more of the forms begin as
# their lemma does, accents aside.
AT_THE_END = ("cs", "en", "es", "fr", "it", "pt", "ru")


class Params(suite.Params):
    """Floors and ceilings, and the fewest words of each part of speech."""

    pos_min: dict[Literal["ADJ", "VERB"], int] = Field(
        description="fewest words in a config, for each of ADJ, VERB"
    )


@suite.each_config("parts-of-speech", "config pos words floor over_floor", 4)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that counts add up, forms are words, and each part of speech has one place."""
    counts, banks = pl.col("treebank_counts").list, pl.col("treebanks").list
    form, lemma = pl.col("form"), pl.col("lemma").str.slice(0, 1)
    small, low = form == form.str.to_lowercase(), lemma.str.to_lowercase()
    first = pl.col("form", "lemma").str.slice(0, 1).str.normalize("NFD").str.slice(0, 1)
    begins = frame.select(first.str.to_lowercase())
    alike = begins["form"] == begins["lemma"]
    order = section("datasets.words", Built).word_order.get(config)
    by = {i: PLACES.index(order.place(pos)) for i, pos in enumerate(POS)} if order else {}
    places = frame.select(pl.col("pos").replace_strict(by, default=None, return_dtype=pl.Int64))
    forms = frame.select(
        "form",
        "lemma",
        "pos",
        counts_add_up=(counts.sum() == pl.col("count")) & (counts.len() == banks.len()),
        form_is_a_word=pl.col("form").str.contains(r"^[\p{L}\p{M}\x{200c}\x{200d}]+$"),
        one_place=suite.same("place", "pos"),
        place_of_the_language=places.to_series() == pl.col("place")
        if order
        else pl.lit(value=True),
        treebank_of_the_language=banks.eval(
            ~pl.element().str.contains(r"^[a-z]{2,3}_") | pl.element().str.starts_with(f"{config}_")
        ).list.all(),
        begins_as_its_lemma=alike if config in AT_THE_END else pl.lit(value=True),
        small_letters=small | (low != lemma),
        not_all_large=(form.str.len_chars() < 2)
        | (form == form.str.to_lowercase())
        | (form != form.str.to_uppercase()),
    )
    numbers = (
        (label, int((frame["pos"] == POS.index(label)).sum()), floor)
        for label, floor in sorted(params.pos_min.items())
    )
    shares = {"not_all_large": 0.9, "begins_as_its_lemma": 0.9}  # abbreviations; went
    return [suite.checked(f"forms-{config}", forms, 3, shares)], suite.floors(config, numbers)
