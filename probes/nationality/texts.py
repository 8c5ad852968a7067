"""The texts of the dataset ``counterfactuals``, as models are asked about them: each once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.core.shards import Shard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def texts(folder: Path, config: str, readings: Sequence[str] = READINGS) -> list[str]:
    """Return the distinct texts of some readings in a config, sorted."""
    frame = pl.read_parquet(folder / f"{config}.parquet", columns=["text", "reading"])
    codes = [READINGS.index(reading) for reading in readings]
    return frame.filter(pl.col("reading").is_in(codes))["text"].unique().sort().to_list()


def language(config: str) -> str:
    """Return the language of a config, which ends its name.

    Examples
    --------
    >>> language("sentiment-en")
    'en'
    """
    return config.rpartition("-")[2]


def asked_about(
    key: str, wanted: Sequence[str], languages: Sequence[str], folder: Path
) -> list[str]:
    """Return the configs that a model is asked about: those wanted in its languages.

    Parameters
    ----------
    key
        Where in params.yaml they stand.

    Raises
    ------
    Problem
        If a config is not in the dataset.
    """
    if missing := sorted(set(wanted) - set(parquet.configs(folder))):
        raise Problem(
            f"{key}: {', '.join(missing)} not in counterfactuals; there are "
            f"{', '.join(parquet.configs(folder))}"
        )
    return [config for config in wanted if language(config) in languages]


def shards(configs: Mapping[str, int], size: int) -> list[Shard]:
    """Return shards of about ``size`` texts for configs of so many."""
    found = []
    for config, total in configs.items():
        parts = max(1, math.ceil(total / size))
        found += [Shard(config, f"{part:05d}", part, parts) for part in range(parts)]
    return found


def part(every: Sequence[str], shard: Shard) -> Sequence[str]:
    """Return the texts of one shard."""
    start, stop = (len(every) * n // shard.of for n in (shard.number, shard.number + 1))
    return every[start:stop]
