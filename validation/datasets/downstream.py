"""Checks of ``downstream`` that look across columns, rows and splits."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import polars as pl
from pydantic import Field

from plumbline.builders.datasets.downstream.build import SEVERAL, TASKS
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.validation import suite


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


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts, splits that share nothing and are alike, groups that are known."""
    found, classes, groups = [], [], []
    for config, frame in suite.frames(folder):
        found.append(_texts(config, frame, params))
        given, told = params.labels.get(config, []), params.groups.get(config, [])
        for label, split in product(sorted({*frame["label"], *given}), range(len(SPLITS))):
            own, of_split = frame["label"] == label, frame["split"] == split
            number, total = int((own & of_split).sum()), int(of_split.sum())
            share = number / total if total else 0.0
            alike = not total or abs(share - own.sum() / len(frame)) <= params.label_tolerance
            over = number >= params.label_min
            classes.append((config, label, SPLITS[split], number, round(share, 6), over, alike))
        counts = dict(frame["mapped"].explode().drop_nulls().value_counts().iter_rows())
        for group, number in sorted((dict.fromkeys(told, 0) | counts).items()):
            over = group not in told or number >= params.group_min
            groups.append((config, group, number, not told or group in told, over))
    columns = "config class split texts share over_floor alike"
    shared = [suite.listed("classes", columns, classes, 5)]
    if groups:
        shared.append(suite.listed("groups", "config group texts known over_floor", groups, 3))
    return [*found, *shared]


def _texts(config: str, frame: pl.DataFrame, params: Params) -> suite.Table:
    text, label, mapped = pl.col("text"), pl.col("label"), pl.col("mapped").list
    wanted, folded = params.labels.get(config), text.str.to_lowercase()
    said = pl.when(mapped.len() > 1).then(pl.lit(SEVERAL)).otherwise(mapped.join(""))
    texts = frame.select(
        "id",
        once_in_a_class=~pl.struct(folded, "label", "split").is_duplicated(),
        of_its_task=pl.col("task") == TASKS.index(config.partition("-")[0]),
        known_class=label.is_in(wanted) if wanted else label != "",
        group_is_mapped=pl.col("group") == said,
        no_group_made_up=mapped.len() <= pl.col("groups").list.len(),
        one_class_for_that_of_the_source=suite.same("label", "source_label"),
        one_group_for_those_of_the_source=suite.same("mapped", "groups"),
        groups_once=mapped.n_unique() == mapped.len(),
    )
    return suite.checked(f"texts-{config}", texts)
