"""Recovery of the study ``nationality``: estimated changes compared with planted country offsets.

A country's offset is an effect that was planted in a control model. Its mean change is computed
over the same texts, from ``counterfactuals`` and the effects planted in the texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.controls.compare import PARAMS, PLANTED, Comparison, Params, read_table

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

DATASETS, TABLES = ("counterfactuals",), ("nationality",)
MODELS = {"delta": "model", "mixed": "model", "perplexities": "masked"}  # model column
ROUNDED = 1e-5  # rounding error of tables and log-probabilities, in points


def run(inputs: Inputs, params: Params = PARAMS) -> dict[str, pl.DataFrame]:
    """Compare tables with the effects planted in control models (classifiers and masked models)."""
    rows = Comparison(params)
    for model in inputs.models:
        path = inputs.weights(model) / PLANTED
        if not path.is_file() or "country" not in pl.read_parquet_schema(path):
            continue
        offsets = pl.read_parquet(path, columns=["country", "offset"])
        world = "planted" if (offsets["offset"] != 0).any() else "null"
        for name, column in MODELS.items():
            table = read_table(inputs.tables("nationality") / f"{name}.parquet")
            if table.is_empty():
                continue
            model_rows = table.filter(pl.col(column) == model)
            keys = ("targets", "reading")
            for (config, reading), part in model_rows.group_by(keys, maintain_order=True):
                planted = truth(inputs, model, str(config)).filter(reading=reading)
                if planted.is_empty():
                    continue
                rows.at = {"model": model, "language": str(config), "world": world}
                planted_offsets = planted.drop("reading").join(offsets, on="country")
                _compare(rows, name, part, planted_offsets, str(reading))
    return {"nationality": rows.frame()} if rows.rows else {}


def truth(inputs: Inputs, model: str, config: str) -> pl.DataFrame:
    """Return the mean planted change over texts, by method variant and country.

    Method variants are omitted if the planted effect of any text is missing. The column ``beside``
    excludes the effect that was planted for the number of tokens.
    """
    texts = inputs.weights(model) / "texts.parquet"
    planted_texts = pl.read_parquet(texts, columns=["text", "planted", "of_tokens"])
    rows = pl.read_parquet(inputs.datasets["counterfactuals"] / f"{config}.parquet")
    names = pl.col("reading").replace_strict(dict(enumerate(READINGS)))
    rows = rows.join(planted_texts, on="text", how="left").with_columns(reading=names)
    before = rows.select("planted", "of_tokens", reference_id="id")
    changes = rows.filter(pl.col("reading") != READINGS[0])
    changes = changes.join(before, on="reference_id", how="left", suffix="_0")
    change = pl.col("planted") - pl.col("planted_0")
    tokens = pl.col("of_tokens") - pl.col("of_tokens_0")
    means = changes.group_by("reading", "country").agg(
        truth=change.mean(), beside=(change - tokens).mean(), missing=change.is_null().any()
    )
    return means.filter(~pl.col("missing").any().over("reading")).drop("missing")


def _compare(
    rows: Comparison, name: str, table: pl.DataFrame, planted: pl.DataFrame, reading: str
) -> None:
    """Add the comparisons for one method variant of a table; for placebo swaps, only the tests."""
    placebo = reading == "placebo"
    key: dict[str, Any] = {"reading": reading, "item": name}
    if name == "delta":
        measure = "false_discoveries_bh" if placebo else "discoveries_bh"
        rows.discoveries(table["p_bh"], measure, "test", **key)
    # true if the effect of the number of tokens differs between countries
    confounded = np.ptp((planted["truth"] - planted["beside"]).to_numpy()) > ROUNDED
    if placebo or (name == "mixed" and not confounded):
        return
    if name == "delta":
        table = table.filter(gender="all", measure="positive minus negative")
        planted = planted.with_columns(pl.col("truth") * 100)
    elif name == "mixed":
        table = table.filter(pl.col("term").str.starts_with("country ")).drop_nulls("low")
        table = table.with_columns(country=pl.col("term").str.strip_prefix("country "))
    else:  # compare sums over tokens that are masked one at a time
        table = table.filter(perplexity="original sum").unique("country", maintain_order=True)
        table = table.with_columns(value=-pl.col("value"))
    table = table.join(planted, on="country", maintain_order="left")
    centred = table.with_columns(truth=100 * (pl.col("beside") - pl.col("beside").mean()))
    if name == "mixed":
        table = centred
    _distance(rows, table, key)
    if name == "delta" and confounded:
        contrast = centred.with_columns(value=pl.col("contrast"))
        _distance(rows, contrast, {**key, "item": "delta, contrast beside tokens"})
    if name == "mixed":
        low, high = pl.col("low") - ROUNDED, pl.col("high") + ROUNDED
        rows.coverage(table.with_columns(true="truth", low=low, high=high), "country", **key)
    if (table["offset"] != 0).any():
        offsets, value, truth = (table[c].to_numpy() for c in ("offset", "value", "truth"))
        rows.order(offsets, value, "country", **key)
        truth, value = truth - truth.mean(), value - value.mean()
        large = np.abs(truth) > np.abs(truth).max() / 4
        rows.signs(truth[large], value[large], "country", **key)


def _distance(rows: Comparison, table: pl.DataFrame, key: dict[str, Any]) -> None:
    distance = (table["value"] - table["truth"]).abs().to_numpy()
    rows.mean("distance", distance, table["country"].to_list(), "country", **key)
