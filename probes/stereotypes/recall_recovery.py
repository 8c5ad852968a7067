"""What the lists of a world's model tell of the attributes that were planted in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.worlds.recovery import recovery_row

if TYPE_CHECKING:
    from plumbline.probes.stats.estimate import Estimate
    from plumbline.probes.stereotypes.match_attributes import Lists
    from plumbline.probes.worlds.recovery import Planted, Resampling


def recovery(
    place: tuple[str, str],
    world: Planted,
    ranked: dict[str, Lists],
    attributes: pl.DataFrame,
    k: int,
    resampling: Resampling,
) -> list[dict[str, Any]]:
    """Return the rows of one model, a few for each reading.

    Parameters
    ----------
    place
        Model and language.
    ranked
        Lists by reading.
    attributes
        Those of the dataset that the world was made of, see ``match_attributes.attributes``.
    k
        Words taken of each list.
    """
    rows = []
    for reading, lists in ranked.items():
        told = [_excess(lists, attributes, k, resampling)]
        if not world.null:
            told.append(_order(lists, world, resampling))
        rows += [
            recovery_row(*place, world, f"{reading}: {what}", estimate, null)
            for what, estimate, null in told
        ]
    return rows


def _excess(
    lists: Lists, attributes: pl.DataFrame, k: int, resampling: Resampling
) -> tuple[str, Estimate, str]:
    """Compare each group's own lists with those of the other groups of its category."""
    found = lists.find(attributes)
    size = len(found.groups)
    sizes = np.bincount(found.attributes["row"].to_numpy(), minlength=size)
    excess = np.full(size, np.nan)
    for category in found.groups["category"].unique().sort():
        for swap in lists.exchange(found, category, [k], k):
            table = swap.table[..., 0]
            own = table[np.arange(len(table)), swap.own]
            excess[swap.groups] = (own - table.mean(axis=1)) / sizes[swap.groups]
    return (
        f"recall@{k} of the attributes minus that in the lists of all groups, mean over groups",
        resampling.mean(excess, found.groups["asked"].to_list()),
        "0: lists say nothing about their group",
    )


def _order(lists: Lists, world: Planted, resampling: Resampling) -> tuple[str, Estimate, str]:
    """Correlate what was planted for the words of a group with their mean score."""
    scores = (
        lists.table.group_by("group", "key")
        .agg(pl.col("score").mean())
        .join(world.pairs, on=["group", "key"])
        .with_columns(
            x=pl.col("log_odds_nats").rank().over("group"), y=pl.col("score").rank().over("group")
        )
    )
    by = scores.group_by("group").agg(
        rho=pl.when((pl.col("x").std() > 0) & (pl.col("y").std() > 0)).then(pl.corr("x", "y"))
    )
    by = by.sort("group")
    rho = by["rho"].fill_null(float("nan")).to_numpy()
    return (
        "Spearman correlation of planted log-odds and score over words, mean over groups",
        resampling.mean(rho, by["group"].to_list()),
        "0: no relation",
    )
