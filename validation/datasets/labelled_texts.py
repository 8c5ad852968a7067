"""Checks of ``labelled_texts`` that look across columns and rows."""

from __future__ import annotations

from itertools import product

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and the fewest texts of each label."""

    label_min: int = Field(
        ge=0,
        description="fewest positive and negative texts, and neutral ones where a corpus has such, "
        "in each split of each corpus",
    )


@suite.each_config("labels", "config source split label texts over_floor", 5)
def tables(params: Params, config: str, frame: pl.DataFrame) -> suite.Found:
    """Hold that texts are normal and have letters, and splits have texts of all labels."""
    texts = frame.select(
        "source",
        "text",
        one_term_a_corpus=pl.col("redistributable").n_unique().over("source") == 1,
    )
    found = suite.checked(f"texts-{config}", texts, 2)
    counts = (
        frame.group_by("source", "split", "label").len().rows_by_key(["source", "split", "label"])
    )
    rows = []
    has = {(source, LABELS[label]) for source, _, label in counts}
    for source, split, label in product(sorted(set(frame["source"])), SPLITS, LABELS):
        if label == "neutral" and (source, label) not in has:
            continue
        ((n,),) = counts.get((source, SPLITS.index(split), LABELS.index(label)), [(0,)])
        rows.append((config, source, split, label, n, n >= params.label_min))
    return [found], rows
