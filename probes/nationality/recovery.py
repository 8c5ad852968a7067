"""Comparison of the study's tables with the offsets that were planted for countries in worlds.

The planted mean of a country is that of the same texts: of the dataset ``counterfactuals`` and
of what was planted for each text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.controls.recovery import PLANTED, RECOVERY, Resampling, discoveries
from plumbline.probes.stats.estimate import LEVEL, Bootstrap, Estimate, Table, finite
from plumbline.probes.stats.intervals import spearman, wilson

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.probes.core.run_analysis import Inputs

    Row = tuple[str, Estimate, str]  # measure, estimate, null hypothesis

DATASETS, TABLES, SCHEMAS = ("counterfactuals",), ("nationality",), {"nationality": RECOVERY}
MODELS = {"delta": "model", "mixed": "model", "perplexities": "masked"}  # column of the model
ROUNDED = 1e-5  # points: rounding of tables and log-probabilities
CONTRAST = "positive minus negative"
BESIDE = "0: as planted, without what tokens of names add"
TESTED = {  # by whether it is placebo: what is tested, and the null hypothesis
    False: ("against all countries", "0 where countries are alike, whatever their names"),
    True: (
        "half of a country's names against the other",
        "0: half of a country's names against the other half, which differ by chance alone",
    ),
}


class Params(Bootstrap):
    """How intervals are made, over countries."""

    version: str = Field("0.1.0", pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    n_bootstrap: int = Field(1000, ge=100, description="bootstrap replicates")


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare the tables with what was planted, for all classifiers and masked models of worlds."""
    by = Resampling(params.n_bootstrap, params.seed, params.confidence)
    found = Table(RECOVERY, params.confidence)
    for model in inputs.models:
        weights = inputs.weights(model)
        path = weights / PLANTED
        if not path.is_file() or "country" not in pl.read_parquet_schema(path):
            continue
        offsets = pl.read_parquet(path, columns=["country", "offset"])
        world = int(not (offsets["offset"] != 0).any())
        for name, column in MODELS.items():
            path = inputs.tables("nationality") / f"{name}.parquet"
            if not path.is_file():
                continue
            own = pl.read_parquet(path).filter(pl.col(column) == model)
            for (config, code), table in own.group_by("targets", "reading", maintain_order=True):
                place: dict[str, Any] = {"model": model, "language": str(config), "world": world}
                rows = inputs.datasets["counterfactuals"] / f"{config}.parquet"
                truth = planted_means(rows, weights / "texts.parquet").filter(reading=code)
                truth = truth.drop("reading").join(offsets, on="country")
                reading = READINGS[1:][int(str(code))]
                for what, estimate, null in _rows(name, table, truth, reading, by):
                    if finite(estimate.value) is not None:
                        cluster = "test" if "tests" in what else "country"
                        place["measure"] = f"{reading}: {what}"
                        found.add(estimate, cluster=cluster, null=null, **place)
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
        truth=change.mean(), beside=(change - longer).mean(), missing=change.is_null().any()
    )
    return means.filter(~pl.col("missing").any().over("reading")).select(
        pl.col("reading").cast(pl.Int64) - 1, "country", "truth", "beside"
    )


def _rows(
    name: str, table: pl.DataFrame, truth: pl.DataFrame, reading: str, by: Resampling
) -> Iterator[Row]:
    """Yield the comparisons of one reading of a table; of placebo swaps, of their tests alone."""
    if truth.is_empty():
        return
    placebo = reading == "placebo"
    tests = table["p_bh"].drop_nulls().to_numpy() if name == "delta" else np.empty(0)
    if len(tests):
        against, null = TESTED[placebo]
        what = f"share of tests of all, men and women with adjusted p at most .05, {against}"
        yield what, discoveries(tests, LEVEL, by.confidence), null
    # tokens of names add something that differs between countries
    confounded = np.ptp((truth["truth"] - truth["beside"]).to_numpy()) > ROUNDED
    if placebo or (name == "mixed" and not confounded):
        return
    if name == "delta":
        own = table.filter(pl.col("gender") == 0, pl.col("measure") == CONTRAST)
        truth = truth.with_columns(pl.col("truth") * 100)
        distance, null = "Delta - planted Delta|, points", "0: Delta is what was planted"
    elif name == "mixed":
        own = table.filter(pl.col("term").str.starts_with("country ")).drop_nulls("low")
        own = own.with_columns(country=pl.col("term").str.strip_prefix("country "))
        distance = "effect beside tokens - planted effect beside them|, points"
        null = BESIDE
    else:  # sums, each token masked alone
        own = table.filter(pl.col("perplexity") == 0).unique("country", maintain_order=True)
        own = own.with_columns(value=-pl.col("value"))
        distance, null = "change of log-probability - planted change|, nats", "0: as planted"
    own = own.join(truth, on="country", maintain_order="left")
    beside = own.with_columns(truth=100 * (pl.col("beside") - pl.col("beside").mean()))
    if name == "mixed":
        own = beside
    yield f"mean over countries of |{distance}", _mean_distance(own, by), null
    if name == "delta" and confounded:
        what = "Delta from all countries - planted effect beside tokens|, points"
        plain = _mean_distance(beside.with_columns(value=pl.col("contrast")), by)
        yield f"mean over countries of |{what}", plain, f"{BESIDE}, which Delta is not"
    if name == "mixed" and len(own):
        inside = own["truth"].is_between(own["low"] - ROUNDED, own["high"] + ROUNDED)
        share = wilson(int(inside.sum()), len(inside), by.confidence)
        what = "share of countries whose interval holds the planted effect beside tokens"
        null = f"{by.confidence:g}; the planted effect is that of the same texts"
        yield what, share, null
    yield from _order(own, by, "effects beside tokens" if name == "mixed" else "")


def _mean_distance(own: pl.DataFrame, by: Resampling) -> Estimate:
    distance = (own["value"] - own["truth"]).abs().to_numpy()
    return by.mean(distance, own["country"].to_list())


def _order(own: pl.DataFrame, by: Resampling, measured: str) -> Iterator[Row]:
    """Compare order and sign with what was planted; distances are from the mean country's."""
    offsets, value, truth = (own[x].to_numpy() for x in ("offset", "value", "truth"))
    if not offsets.any():
        return
    if len(value) >= 4:
        what = f"planted offsets and {measured or 'measured means'} over countries"
        rank = spearman(offsets, value, by.confidence)
        yield f"Spearman correlation of {what}", rank, "0: no relation"
    truth = truth - truth.mean()
    large = np.abs(truth) > np.abs(truth).max() / 4
    if large.any():
        right = int((np.sign(value - value.mean()) == np.sign(truth))[large].sum())
        what = "share of countries on the planted side of the mean, those near it left out"
        what += measured and f", by {measured}"
        yield what, wilson(right, int(large.sum()), by.confidence), "0.5: by chance"
