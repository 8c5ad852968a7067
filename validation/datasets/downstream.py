"""Checks on the dataset ``downstream`` across columns, rows and splits."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.downstream.build import SEVERAL, TASKS
from plumbline.validation.suite import Params, Table, checked, once, same


def tables(_: Params, config: str, frame: pl.DataFrame) -> list[Table]:
    """Check that each text has one class, and that classes and groups agree with their mappings."""
    text, mapped = pl.col("text"), pl.col("mapped").list
    label = pl.when(mapped.len() > 1).then(pl.lit(SEVERAL)).otherwise(mapped.join(""))
    texts = frame.select(
        "id",
        once_in_a_class=~pl.struct(text.str.to_lowercase(), "label", "split").is_duplicated(),
        of_its_task=pl.col("task") == TASKS.index(config.partition("-")[0]),
        group_is_mapped=pl.col("group") == label,
        no_group_made_up=mapped.len() <= pl.col("groups").list.len(),
        one_class_for_that_of_the_source=same("label", "source_label"),
        one_group_for_those_of_the_source=same("mapped", "groups"),
        groups_once=once("mapped"),
    )
    return [checked(f"texts-{config}", texts)]
