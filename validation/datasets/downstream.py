"""Checks of ``downstream`` that look across columns, rows and splits."""

from __future__ import annotations

from itertools import product

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.downstream.build import SEVERAL, TASKS
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.validation import suite

CLASSES = "config class split texts share over_floor alike"


class Params(suite.Params):
    """Floors, classes and groups, and how alike the splits are."""

    labels: dict[str, list[str]] = Field(
        default_factory=dict, description="classes of each config; any where none are given"
    )
    groups: dict[str, list[str]] = Field(
        default_factory=dict, description="groups of each config; any where none are given"
    )
    label_min: int = Field(1, ge=0, description="fewest texts of a class in a split")
    group_min: int = Field(0, ge=0, description="fewest texts of a group that is given")
    label_tolerance: float = Field(
        0.05,
        ge=0,
        le=1,
        description="how far the share of a class in a split may be from its share in the config",
    )


def tables(params: Params, config: str, frame: pl.DataFrame) -> list[suite.Table]:
    """Hold that splits share nothing and are alike, and classes and groups are known and filled."""
    wanted, known = params.labels.get(config, []), params.groups.get(config, [])
    text, label, mapped = pl.col("text"), pl.col("label"), pl.col("mapped").list
    several = pl.when(mapped.len() > 1).then(pl.lit(SEVERAL)).otherwise(mapped.join(""))
    texts = frame.select(
        "id",
        once_in_a_class=~pl.struct(text.str.to_lowercase(), "label", "split").is_duplicated(),
        of_its_task=pl.col("task") == TASKS.index(config.partition("-")[0]),
        known_class=label.is_in(wanted) if wanted else label != "",
        group_is_mapped=pl.col("group") == several,
        no_group_made_up=mapped.len() <= pl.col("groups").list.len(),
        one_class_for_that_of_the_source=suite.same("label", "source_label"),
        one_group_for_those_of_the_source=suite.same("mapped", "groups"),
        groups_once=suite.once("mapped"),
    )
    classes = []
    for label_, split in product(sorted({*frame["label"], *wanted}), range(len(SPLITS))):
        own, in_split = frame["label"] == label_, frame["split"] == split
        number, total = int((own & in_split).sum()), int(in_split.sum())
        share = number / total if total else 0.0
        alike = not total or abs(share - own.sum() / len(frame)) <= params.label_tolerance
        fine = (number >= params.label_min, alike)
        classes.append((config, label_, SPLITS[split], number, round(share, 6), *fine))
    counts = dict(frame["mapped"].explode().drop_nulls().value_counts().iter_rows())
    groups = [
        (config, group, n, not known or group in known, group not in known or n >= params.group_min)
        for group, n in sorted((dict.fromkeys(known, 0) | counts).items())
    ]
    return [
        suite.checked(f"texts-{config}", texts),
        suite.listed(f"classes-{config}", CLASSES, classes, 5),
        suite.listed(f"groups-{config}", "config group texts known over_floor", groups, 3),
    ]
