"""Checks of ``labelled_texts`` that look across columns and rows."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


class Params(suite.Params):
    """Floors, and the fewest texts of each label."""

    label_min: int = Field(
        ge=0, description="fewest texts of each label, in each split of each corpus"
    )


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts are normal and have letters, splits have texts of all labels."""
    found, rows = [], []
    for config, frame in frames(folder):
        terms = pl.col("redistributable").n_unique().over("source") == 1
        texts = frame.select(
            "source",
            "text",
            suite.spaced("text"),
            suite.composed("text"),
            terms.alias("one_term_a_corpus"),
            suite.lettered("text"),
        )
        found.append(suite.checked(f"texts-{config}", texts, 2, {"has_a_letter": 0.99}))
        by = frame.group_by("source", "split", "label").len()
        counts = {tuple(key): number for *key, number in by.iter_rows()}
        sources = sorted(set(frame["source"]))
        for source, split, label in product(sources, range(len(SPLITS)), range(len(LABELS))):
            n = counts.get((source, split, label), 0)
            enough = n >= params.label_min
            rows.append((config, source, SPLITS[split], LABELS[label], n, enough))
    return [*found, suite.listed("labels", "config source split label texts over_floor", rows, 5)]
