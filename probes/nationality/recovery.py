"""What the tables of the study tell of the offsets that were planted for countries in worlds.

The planted mean of a country is that of the same texts: of the dataset ``counterfactuals`` and
of what was planted for each text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.stats.estimate import Bootstrap, Estimate, finite, typed
from plumbline.probes.stats.intervals import spearman, wilson
from plumbline.probes.worlds.recovery import PLANTED, RECOVERY, Planted, Resampling, recovery_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Row = tuple[str, Estimate, str]  # measure, estimate, what it is judged against

DATASETS = ("counterfactuals",)
TABLES = ("nationality",)
SCHEMAS = {"nationality": RECOVERY}
TEXTS = "texts.parquet"
LEVEL = 0.05
FOUND = "share of tests of all, men and women with adjusted p at most .05"
ROUNDED = 1e-5  # points: what tables and log-probabilities leave out
CONTRAST = "positive minus negative"


class Params(Bootstrap):
    """How intervals are made, over countries."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")


class World(NamedTuple):
    """What was planted in a model."""

    offsets: dict[str, float]  # by country
    texts: pl.DataFrame  # text, planted

    def means(self, rows: Path) -> pl.DataFrame:
        """Return the planted change of each reading and country, the mean of its texts.

        Readings with a text in which nothing was planted are left out.
        """
        frame = pl.read_parquet(rows).join(self.texts, on="text", how="left")
        of = frame.select(reference_id="id", before="planted")
        change = pl.col("planted") - pl.col("before")
        means = frame.filter(pl.col("reading") > 0).join(of, on="reference_id", how="left")
        means = means.group_by("reading", "country").agg(
            truth=change.mean(), lacking=change.is_null().any()
        )
        return means.filter(~pl.col("lacking").any().over("reading")).select(
            pl.col("reading").cast(pl.Int64) - 1, "country", "truth"
        )


def world(weights: Path) -> World | None:
    """Return what was planted in a model; None of one that is no such world."""
    path = weights / PLANTED
    if not path.is_file() or "country" not in pl.read_parquet_schema(path):
        return None
    offsets = dict(pl.read_parquet(path, columns=["country", "offset"]).iter_rows())
    return World(offsets, pl.read_parquet(weights / TEXTS, columns=["text", "planted"]))


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables with what was planted, for all classifiers and masked models of worlds."""
    by = Resampling(params.n_bootstrap, params.seed, params.confidence)
    rows: list[dict[str, Any]] = []
    for model in inputs.models:
        known = world(inputs.weights(model))
        if known is None:
            continue
        about = Planted(pl.DataFrame(), not any(known.offsets.values()))
        for name, column, part in (
            ("delta", "model", _classifier),
            ("perplexities", "masked", _masked),
        ):
            path = inputs.tables("nationality") / f"{name}.parquet"
            if not path.is_file():
                continue
            own = pl.read_parquet(path).filter(pl.col(column) == model)
            for (config,), tests in own.group_by("targets", maintain_order=True):
                truth = known.means(inputs.datasets["counterfactuals"] / f"{config}.parquet")
                for (reading,), table in tests.group_by("reading", maintain_order=True):
                    what = READINGS[1:][int(str(reading))]
                    expected = truth.filter(reading=reading).select("country", "truth")
                    if expected.is_empty():
                        continue
                    found = part(table, expected, known, by, placebo=what == "placebo")
                    rows += [
                        recovery_row(model, str(config), about, f"{what}: {measure}", value, null)
                        | {"cluster": "test" if "tests" in measure else "country"}
                        for measure, value, null in found
                        if finite(value.value) is not None
                    ]
    if not rows:
        return {}
    return {"nationality": typed(pl.DataFrame(rows, infer_schema_length=None), RECOVERY)}


def _classifier(
    table: pl.DataFrame, truth: pl.DataFrame, known: World, by: Resampling, *, placebo: bool
) -> Iterator[Row]:
    """Yield what one reading of the table ``delta`` tells."""
    own = table.filter(pl.col("gender") == 0, pl.col("measure") == CONTRAST)
    own = own.join(truth.with_columns(pl.col("truth") * 100), on="country", maintain_order="left")
    known_ends = own.drop_nulls("low")
    low, high = known_ends["low"] - ROUNDED, known_ends["high"] + ROUNDED
    inside = known_ends["truth"].is_between(low, high)
    what = "mean over countries of |Delta - planted Delta|, points"
    yield what, _mean_distance(own, by), "0: Delta is what was planted"
    what = "share of countries whose interval holds the planted Delta"
    null = f"{by.confidence:g}; the planted Delta is that of the same texts"
    yield what, wilson(int(inside.sum()), max(1, len(inside)), by.confidence), null
    null = "0 where names say nothing; above it names differ, if countries do not"
    yield f"{FOUND}, originals exchanged", _share(table["p_bh"], by), null
    if not placebo:
        null = "0 where countries are alike, whatever their names"
        yield f"{FOUND}, against all countries", _share(table["p_country_bh"], by), null
        yield from _order(own, known, by)


def _masked(
    table: pl.DataFrame, truth: pl.DataFrame, known: World, by: Resampling, *, placebo: bool
) -> Iterator[Row]:
    """Yield what one reading of the table ``perplexities`` tells: of sums, each token alone."""
    if placebo:
        return
    own = table.filter(pl.col("perplexity") == 0).unique("country", maintain_order=True)
    own = own.with_columns(value=-pl.col("value")).join(truth, on="country", maintain_order="left")
    what = "mean over countries of |change of log-probability - planted change|, nats"
    yield what, _mean_distance(own, by), "0: as planted"
    yield from _order(own, known, by)


def _mean_distance(own: pl.DataFrame, by: Resampling) -> Estimate:
    distance = (own["value"] - own["truth"]).abs().to_numpy()
    return by.mean(distance, own["country"].to_list())


def _order(own: pl.DataFrame, known: World, by: Resampling) -> Iterator[Row]:
    """Compare order and sign with what was planted; distances are from the mean country's."""
    if not any(known.offsets.values()):
        return
    offsets = np.array([known.offsets[c] for c in own["country"]])
    value, truth = own["value"].to_numpy(), own["truth"].to_numpy()
    if len(value) >= 4:
        what = "Spearman correlation of planted offsets and measured means over countries"
        yield what, spearman(offsets, value, by.confidence), "0: no relation"
    truth = truth - truth.mean()
    apart = np.abs(truth) > np.abs(truth).max() / 4
    if apart.any():
        right = int((np.sign(value - value.mean()) == np.sign(truth))[apart].sum())
        what = "share of countries on the planted side of the mean, those near it left out"
        yield what, wilson(right, int(apart.sum()), by.confidence), "0.5: by chance"


def _share(p: pl.Series, by: Resampling) -> Estimate:
    tested = p.drop_nulls()
    return wilson(int((tested <= LEVEL).sum()), max(1, len(tested)), by.confidence)
