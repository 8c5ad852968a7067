"""Checks of ``downstream`` that look across columns, rows and splits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from plumbline.builders.core.describe import frames
from plumbline.builders.datasets.downstream.build import SEVERAL, TASKS
from plumbline.builders.datasets.downstream.read import SPLITS
from plumbline.validation import suite

if TYPE_CHECKING:
    from pathlib import Path


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
    leaks: bool = Field(False, description="whether a text may stand in two splits")


def tables(params: Params, folder: Path) -> list[suite.Table]:
    """Return the frames: texts, splits that share nothing and are alike, groups that are known."""
    found, classes, groups = [], [], []
    for config, frame in frames(folder):
        found.append(_texts(config, frame, params))
        classes += _classes(config, frame, params)
        counts = dict(frame["mapped"].explode().drop_nulls().value_counts().iter_rows())
        told = params.groups.get(config, [])
        for group in sorted({*counts, *told}):
            number = counts.get(group, 0)
            over = group not in told or number >= params.group_min
            groups.append((config, group, number, not told or group in told, over))
    columns = "config class split texts share over_floor alike"
    tables = [*found, suite.listed("classes", columns, classes, 5)]
    if groups:
        tables.append(suite.listed("groups", "config group texts known over_floor", groups, 3))
    return tables


def _texts(config: str, frame: pl.DataFrame, params: Params) -> suite.Table:
    """Return what must hold of each text."""
    text, wanted = pl.col("text"), params.labels.get(config)
    folded = text.str.to_lowercase()
    mapped, group = pl.col("mapped"), pl.col("group")
    number = mapped.list.len()
    said = (
        pl.when(number == 0)
        .then(pl.lit(""))
        .when(number == 1)
        .then(mapped.list.first())
        .otherwise(pl.lit(SEVERAL))
    )
    alone = pl.lit(value=True) if params.leaks else pl.col("split").n_unique().over(folded) == 1
    once = (
        pl.lit(value=True) if params.leaks else ~pl.struct(folded, "label", "split").is_duplicated()
    )
    texts = frame.select(
        "id",
        suite.spaced("text"),
        suite.composed("text"),
        suite.filled("text"),
        (~text.str.contains(r"\p{Cc}")).alias("no_control_character"),
        alone.alias("in_one_split"),
        once.alias("once_in_a_class"),
        (pl.col("task") == TASKS.index(config.partition("-")[0])).alias("of_its_task"),
        (pl.col("label").is_in(wanted) if wanted else pl.col("label") != "").alias("known_class"),
        (group == said).alias("group_is_mapped"),
        (number <= pl.col("groups").list.len()).alias("no_group_made_up"),
        (pl.col("source") != "").alias("has_a_source"),
    )
    return suite.checked(f"texts-{config}", texts)


def _classes(config: str, frame: pl.DataFrame, params: Params) -> list[tuple[object, ...]]:
    """Return texts and share of each class in each split."""
    found = frame.group_by("split", "label").len()
    counts = {(split, label): number for split, label, number in found.iter_rows()}
    labels = sorted({label for _, label in counts} | set(params.labels.get(config, [])))
    whole = {label: sum(n for (_, own), n in counts.items() if own == label) for label in labels}
    rows: list[tuple[object, ...]] = []
    for code, split in enumerate(SPLITS):
        total = sum(n for (own, _), n in counts.items() if own == code)
        for label in labels:
            number = counts.get((code, label), 0)
            share = number / total if total else 0.0
            alike = abs(share - whole[label] / len(frame)) <= params.label_tolerance
            over = number >= params.label_min
            rows.append((config, label, split, number, round(share, 6), over, alike or not total))
    return rows
