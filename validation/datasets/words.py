"""Checks on the dataset ``words`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.validation.suite import Params, Table, checked, same

# Languages that inflect at the end of words: in real treebanks, at least 95% of the forms begin
# like their lemma if accents are ignored.
AT_THE_END = ("cs", "en", "es", "fr", "it", "pt", "ru")


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that counts add up, forms are words, and each part of speech has one position."""
    counts, banks = pl.col("treebank_counts").list, pl.col("treebanks").list
    form, lemma = pl.col("form"), pl.col("lemma").str.slice(0, 1)
    small = form == form.str.to_lowercase()
    first = pl.col("form", "lemma").str.slice(0, 1).str.normalize("NFD").str.slice(0, 1)
    begins = frame.select(first.str.to_lowercase())
    forms = frame.select(
        "form",
        "lemma",
        "pos",
        counts_add_up=(counts.sum() == pl.col("count")) & (counts.len() == banks.len()),
        form_is_a_word=form.str.contains(r"^[\p{L}\p{M}\x{200c}\x{200d}]+$"),
        one_place=same("place", "pos"),
        treebank_of_the_language=banks.eval(
            ~pl.element().str.contains(r"^[a-z]{2,3}_") | pl.element().str.starts_with(f"{config}_")
        ).list.all(),
        begins_as_its_lemma=(begins["form"] == begins["lemma"]) | pl.lit(config not in AT_THE_END),
        small_letters=small | (lemma.str.to_lowercase() != lemma),
        not_all_large=(form.str.len_chars() < 2) | small | (form != form.str.to_uppercase()),
    )
    shares = {"not_all_large": 0.9, "begins_as_its_lemma": 0.9}  # exceptions: acronyms, and "went"
    return [checked(f"forms-{config}", forms, 3, shares)]
