"""The texts of the dataset ``counterfactuals``, as models are asked about them: each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.builders.datasets.counterfactuals.build import READINGS

if TYPE_CHECKING:
    from collections.abc import Sequence
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
