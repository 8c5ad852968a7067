"""Checks of ``downstream`` that look across columns, rows and splits."""

from __future__ import annotations

from itertools import product

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.downstream.build import SEVERAL, TASKS
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.validation import suite


class Params(suite.Params):
    """Floors, and how alike the splits are."""

    label_tolerance: float = Field(
        0.05,
        ge=0,
        le=1,
        description="how far the share of a class in a split may be from its share in the config",
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Hold that splits share nothing and are alike, and groups are those of the table."""
    text, mapped = pl.col("text"), pl.col("mapped").list
    several = pl.when(mapped.len() > 1).then(pl.lit(SEVERAL)).otherwise(mapped.join(""))
    texts = frame.select(
        "id",
        once_in_a_class=~pl.struct(text.str.to_lowercase(), "label", "split").is_duplicated(),
        of_its_task=pl.col("task") == TASKS.index(config.partition("-")[0]),
        group_is_mapped=pl.col("group") == several,
        no_group_made_up=mapped.len() <= pl.col("groups").list.len(),
        one_class_for_that_of_the_source=suite.same("label", "source_label"),
        one_group_for_those_of_the_source=suite.same("mapped", "groups"),
        groups_once=suite.once("mapped"),
    )
    classes = []
    for label, split in product(sorted({*frame["label"]}), range(len(SPLITS))):
        own, part = frame["label"] == label, frame["split"] == split
        share = (own & part).sum() / max(1, part.sum())
        alike = not part.any() or abs(share - own.mean()) <= params.label_tolerance
        classes.append((config, label, SPLITS[split], round(share, 6), alike))
    return [
        suite.checked(f"texts-{config}", texts),
        suite.listed(f"classes-{config}", "config class split share alike", classes, 4),
    ]
