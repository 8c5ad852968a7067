"""Checks on the dataset ``labelled_texts`` across columns and rows."""

from __future__ import annotations

import polars as pl

from plumbline.validation.suite import Params, Table, checked, same


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that all rows of a corpus have the same terms, and that both splits have each label."""
    texts = frame.select(
        "source",
        "text",
        one_term_a_corpus=same("redistributable", "source"),
        label_in_both_splits=pl.col("split").n_unique().over("source", "label") == 2,
    )
    return [checked(f"texts-{config}", texts, 2)]
