"""What the tables of the study tell of the offsets that were planted for countries in worlds.

The planted mean of a country is that of the same texts: of the dataset ``counterfactuals`` and
of what was planted for each text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.controls.recovery import PLANTED, RECOVERY, Resampling
from plumbline.probes.stats.estimate import LEVEL, Bootstrap, Estimate, Table, finite
from plumbline.probes.stats.intervals import spearman, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

    Row = tuple[str, Estimate, str]  # measure, estimate, what it is judged against

DATASETS = ("counterfactuals",)
TABLES = ("nationality",)
SCHEMAS = {"nationality": RECOVERY}
TEXTS = "texts.parquet"
FOUND = "share of tests of all, men and women with adjusted p at most .05"
ROUNDED = 1e-5  # points: what tables and log-probabilities leave out
CONTRAST = "positive minus negative"
COUNTRIES = "0 where countries are alike, whatever their names"
MEANS = "measured means"
BESIDE = "0: as planted, without what tokens of names add"
HALVES = "0: half of a country's names against the other half, which differ by chance alone"


class Params(Bootstrap):
    """How intervals are made, over countries."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables with what was planted, for all classifiers and masked models of worlds."""
    by = Resampling(params.n_bootstrap, params.seed, params.confidence)
    found = Table(RECOVERY, params.confidence)
    parts = (
        ("delta", "model", _classifier),
        ("mixed", "model", _mixed),
        ("perplexities", "masked", _masked),
    )
    for model in inputs.models:
        weights = inputs.weights(model)
        path = weights / PLANTED
        if not path.is_file() or "country" not in pl.read_parquet_schema(path):
            continue
        offsets = pl.read_parquet(path, columns=["country", "offset"])
        null = not (offsets["offset"] != 0).any()
        for name, column, part in parts:
            path = inputs.tables("nationality") / f"{name}.parquet"
            if not path.is_file():
                continue
            own = pl.read_parquet(path).filter(pl.col(column) == model)
            for (config,), tests in own.group_by("targets", maintain_order=True):
                rows = inputs.datasets["counterfactuals"] / f"{config}.parquet"
                truth = planted_means(rows, weights / TEXTS).join(offsets, on="country")
                for (reading,), table in tests.group_by("reading", maintain_order=True):
                    expected = truth.filter(reading=reading).drop("reading")
                    if expected.is_empty():
                        continue
                    what = READINGS[1:][int(str(reading))]
                    place: dict[str, Any] = {
                        "model": model,
                        "language": str(config),
                        "world": int(null),
                    }
                    for measure, value, against in part(table, expected, by, what == "placebo"):
                        place["measure"] = f"{what}: {measure}"
                        cluster = "test" if "tests" in measure else "country"
                        if finite(value.value) is not None:
                            found.add(value, cluster=cluster, null=against, **place)
    return {"nationality": found.frame()} if found.rows else {}


def planted_means(rows: Path, texts: Path) -> pl.DataFrame:
    """Return the planted change of each reading and country, the mean of its texts.

    Readings with a text in which nothing was planted are left out. ``beside`` is the change without
    what was planted for tokens of names.
    """
    known = pl.read_parquet(texts, columns=["text", "planted", "of_tokens"])
    frame = pl.read_parquet(rows).join(known, on="text", how="left")
    change = pl.col("planted") - pl.col("before")
    longer = pl.col("of_tokens") - pl.col("before_of_tokens")
    of = frame.select(reference_id="id", before="planted", before_of_tokens="of_tokens")
    means = frame.filter(pl.col("reading") > 0).join(of, on="reference_id", how="left")
    means = means.group_by("reading", "country").agg(
        truth=change.mean(), beside=(change - longer).mean(), lacking=change.is_null().any()
    )
    return means.filter(~pl.col("lacking").any().over("reading")).select(
        pl.col("reading").cast(pl.Int64) - 1, "country", "truth", "beside"
    )


def _classifier(
    table: pl.DataFrame, truth: pl.DataFrame, by: Resampling, placebo: bool
) -> Iterator[Row]:
    """Yield what one reading of the table ``delta`` tells; of placebo swaps their tests alone."""
    p = table["p_bh"].drop_nulls()
    share = wilson(int((p <= LEVEL).sum()), max(1, len(p)), by.confidence)
    if placebo:
        yield f"{FOUND}, half of a country's names against the other", share, HALVES
        return
    yield f"{FOUND}, against all countries", share, COUNTRIES
    own = table.filter(pl.col("gender") == 0, pl.col("measure") == CONTRAST)
    own = own.join(truth.with_columns(pl.col("truth") * 100), on="country", maintain_order="left")
    what = "mean over countries of |Delta - planted Delta|, points"
    yield what, _mean_distance(own, by), "0: Delta is what was planted"
    if _confounded(truth):
        part = 100 * (pl.col("beside") - pl.col("beside").mean())
        plain = own.with_columns(truth=part, value=pl.col("contrast"))
        what = "mean over countries of |Delta from all countries - planted effect beside tokens|"
        yield f"{what}, points", _mean_distance(plain, by), f"{BESIDE}, which Delta is not"
    yield from _order(own, by)


def _mixed(
    table: pl.DataFrame, truth: pl.DataFrame, by: Resampling, placebo: bool
) -> Iterator[Row]:
    """Yield what one reading of the table ``mixed`` tells; from the mean of all countries."""
    if placebo or not _confounded(truth):
        return
    own = table.filter(pl.col("term").str.starts_with("country ")).drop_nulls("low")
    own = own.with_columns(country=pl.col("term").str.strip_prefix("country "))
    own = own.join(truth, on="country", maintain_order="left")
    own = own.with_columns(truth=100 * (pl.col("beside") - pl.col("beside").mean()))
    inside = own["truth"].is_between(own["low"] - ROUNDED, own["high"] + ROUNDED)
    what = "mean over countries of |effect beside tokens - planted effect beside them|, points"
    yield what, _mean_distance(own, by), BESIDE
    what = "share of countries whose interval holds the planted effect beside tokens"
    null = f"{by.confidence:g}; the planted effect is that of the same texts"
    yield what, wilson(int(inside.sum()), max(1, len(inside)), by.confidence), null
    yield from _order(own, by, "effects beside tokens")


def _confounded(truth: pl.DataFrame) -> bool:
    """Return whether tokens of names add something that differs between countries."""
    longer = (truth["truth"] - truth["beside"]).to_numpy()
    return bool(np.ptp(longer) > ROUNDED)


def _masked(
    table: pl.DataFrame, truth: pl.DataFrame, by: Resampling, placebo: bool
) -> Iterator[Row]:
    """Yield what one reading of the table ``perplexities`` tells: of sums, each token alone."""
    if placebo:
        return
    own = table.filter(pl.col("perplexity") == 0).unique("country", maintain_order=True)
    own = own.with_columns(value=-pl.col("value")).join(truth, on="country", maintain_order="left")
    what = "mean over countries of |change of log-probability - planted change|, nats"
    yield what, _mean_distance(own, by), "0: as planted"
    yield from _order(own, by)


def _mean_distance(own: pl.DataFrame, by: Resampling) -> Estimate:
    distance = (own["value"] - own["truth"]).abs().to_numpy()
    return by.mean(distance, own["country"].to_list())


def _order(own: pl.DataFrame, by: Resampling, measured: str = MEANS) -> Iterator[Row]:
    """Compare order and sign with what was planted; distances are from the mean country's."""
    offsets, value, truth = (own[x].to_numpy() for x in ("offset", "value", "truth"))
    if not offsets.any():
        return
    if len(value) >= 4:
        what = f"Spearman correlation of planted offsets and {measured} over countries"
        yield what, spearman(offsets, value, by.confidence), "0: no relation"
    truth = truth - truth.mean()
    apart = np.abs(truth) > np.abs(truth).max() / 4
    if apart.any():
        right = int((np.sign(value - value.mean()) == np.sign(truth))[apart].sum())
        what = "share of countries on the planted side of the mean, those near it left out"
        what += "" if measured == MEANS else f", by {measured}"
        yield what, wilson(right, int(apart.sum()), by.confidence), "0.5: by chance"
