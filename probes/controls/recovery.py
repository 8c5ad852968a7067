"""What was planted beside groups in a world, and the rows that tell how much of it is found."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.stats.bootstrap import bits, keys, percentiles, poisson
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Table
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

PLANTED = "planted.parquet"
ROUNDING = 1e-6  # of numbers in tables
RECOVERY = Schema(
    columns=(
        Column("model", "string", "name of the model in params.yaml"),
        Column("language", "string", "language of the lists"),
        Column("world", "label", "whether biases were planted", labels=("planted", "null")),
        Column("measure", "string", "what is compared"),
        *ESTIMATE,
    ),
    key=("model", "language", "measure"),
)


class Findings(Table):
    """Rows of :data:`RECOVERY`; ``key`` has model, language and world of those that are added."""

    def __init__(self, confidence: float) -> None:
        super().__init__(RECOVERY, confidence)
        self.label = ""  # that each measure begins with

    def add(
        self, estimate: Estimate, *, cluster: str, null: str, p: float | None = None, **key: Any
    ) -> None:
        """Add a row; ``measure`` is its key."""
        key["measure"] = self.label + key["measure"]
        super().add(estimate, cluster=cluster, null=null, p=p, **key)

    def share(
        self, measure: str, held: Sequence[Any], null: str, cluster: str, confidence: float
    ) -> None:
        """Add how often something holds, with Wilson's interval."""
        found = wilson(float(sum(map(bool, held))), len(held), confidence)
        self.add(found, measure=measure, cluster=cluster, null=null)

    def copy(self, row: Mapping[str, Any], measure: str, null: str, **changed: Any) -> None:
        """Add a row of a table of estimates, some of its columns changed."""
        own = {column.name: row.get(column.name) for column in ESTIMATE} | {"null": null} | changed
        self.rows.append(self.key | own | {"measure": self.label + measure})

    def frame(self) -> pl.DataFrame:
        """Return the table, in the order of its key."""
        return super().frame().sort(RECOVERY.key)


class Planted(NamedTuple):
    """Pairs of groups and words of a world."""

    pairs: pl.DataFrame  # group, key (the word as words are compared), log_odds_nats
    null: bool  # nothing is planted: no pairs, or all of them at 0


class Resampling(NamedTuple):
    """How means over groups are resampled."""

    bootstrap: int
    seed: int
    confidence: float

    def weights(self, groups: Sequence[str]) -> NDArray[np.float32]:
        """Return how often each group is in each replicate, (groups, replicates)."""
        return poisson(bits(keys(groups), self.bootstrap, self.seed))

    def mean(self, values: Floats, groups: Sequence[str]) -> Estimate:
        """Estimate the mean of a (groups,) array, nan left out."""
        kept = ~np.isnan(values)
        names = [g for g, keep in zip(groups, kept, strict=True) if keep]
        method = "bootstrap percentile (Poisson weights)"
        if not names:
            return Estimate(float("nan"), float("nan"), float("nan"), 0, method)
        weights = self.weights(names)
        with np.errstate(invalid="ignore"):
            drawn = values[kept] @ weights / weights.sum(axis=0)
        low, high = map(float, percentiles(drawn, self.confidence))
        return Estimate(float(values[kept].mean()), low, high, len(names), method)


def planted(weights: Path) -> Planted | None:
    """Return what was planted beside groups in a model; None of one that is no such world."""
    path = weights / PLANTED
    return _planted(path, path.stat().st_mtime_ns) if path.is_file() else None


@lru_cache(maxsize=8)  # pairs of models ask for the same few again and again
def _planted(path: Path, _: int) -> Planted | None:
    """Return :func:`planted` of a file as it was at a time."""
    if "group" not in pl.read_parquet_schema(path):
        return None
    table = pl.read_parquet(path)
    keys = pl.Series([word.strip().casefold() for word in table["word"]], dtype=pl.String)
    pairs = table.select("group", "log_odds_nats", key=keys)
    pairs = pairs.group_by("group", "key").agg(pl.col("log_odds_nats").max()).sort("group", "key")
    return Planted(pairs, not (pairs["log_odds_nats"] != 0).any())


def signs(true: Floats, measured: Floats, confidence: float = 0.95) -> Estimate:
    """Estimate how often what was measured has the sign of what was planted, both (n,) arrays."""
    return wilson(int((np.sign(true) == np.sign(measured)).sum()), len(true), confidence)


def covered(table: pl.DataFrame, confidence: float = 0.95) -> Estimate:
    """Estimate how often intervals hold the truth, up to rounding: columns low, high and true."""
    within = pl.col("true").is_between(pl.col("low") - ROUNDING, pl.col("high") + ROUNDING)
    return wilson(table.select(within.sum()).item(), len(table), confidence)


def discoveries(p: Floats, level: float, confidence: float = 0.95) -> Estimate:
    """Estimate the share of tests, (n,) p-values, at or below a level."""
    return wilson(int((p <= level).sum()), len(p), confidence)
