"""Checks of ``labelled_texts`` that look across columns and rows."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS
from plumbline.validation.suite import Params as Base
from plumbline.validation.suite import Table, holds

if TYPE_CHECKING:
    from pathlib import Path


class Params(Base):
    """Floors, and the fewest texts of each label."""

    label_min: int = Field(
        ge=0, description="fewest texts of each label, in each split of each corpus"
    )


def tables(params: Params, folder: Path) -> list[Table]:
    """Return the frames: texts are normal and have letters, splits have texts of all labels."""
    found = []
    rows = []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        text = pl.col("text")
        squeezed = text.str.replace_all(r"\s+", " ").str.strip_chars()
        texts = frame.select(
            "source",
            "text",
            (text == squeezed).alias("single_spaces"),
            (text == text.str.normalize("NFC")).alias("composed"),
            (pl.col("redistributable").n_unique().over("source") == 1).alias("one_term_a_corpus"),
        )
        checks = [holds(c) for c in texts.columns[2:]]
        letters = texts.with_columns(text.str.contains(r"\p{L}").alias("has_a_letter"))
        checks.append(holds("has_a_letter", 0.99))
        found.append(Table(f"texts-{config}", letters, ["source", "text"], checks))
        counts = {
            (source, split, label): n
            for source, split, label, n in frame.group_by("source", "split", "label")
            .len()
            .iter_rows()
        }
        sources = sorted(set(frame["source"]))
        for source, split, label in product(sources, range(len(SPLITS)), range(len(LABELS))):
            n = counts.get((source, split, label), 0)
            enough = n >= params.label_min
            rows.append((config, source, SPLITS[split], LABELS[label], n, enough))
    columns = ["config", "source", "split", "label", "texts", "over_floor"]
    sizes = pl.DataFrame(rows, schema=columns, orient="row")
    return [*found, Table("labels", sizes, columns[:5], [holds("over_floor")])]
