"""The distinct input texts of the datasets ``counterfactuals`` and ``targets``."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import polars as pl
from pydantic import Field

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.datasets.counterfactuals.build import READINGS
from plumbline.probes.core.run_probe import Shard, split

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.models.params import Model


INPUTS = ("counterfactuals", "targets")


class Params(Section):
    """Selection of the texts for a probe."""

    KEY: ClassVar[str]  # section of params.yaml
    SHARD: ClassVar[int]  # number of texts in a shard, which determines the layout of outputs
    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the outputs")
    languages: list[str] = Field(min_length=1, description="languages of the texts")
    targets: list[str] = Field(min_length=1, description="configs of targets and counterfactuals")
    readings: list[Literal["faithful", "corrected", "placebo"]] = Field(
        ["faithful", "corrected", "placebo"],
        min_length=1,
        description="types of counterfactuals to include with the originals",
    )

    def prompts(self, folders: dict[str, Path], config: str) -> list[str]:
        """Return the sorted distinct texts of a config of the datasets."""
        swapped, plain = (folders[name] / f"{config}.parquet" for name in INPUTS)
        tables = []
        if swapped.is_file():
            codes = [READINGS.index(reading) for reading in ("original", *self.readings)]
            rows = pl.scan_parquet(swapped).filter(pl.col("reading").is_in(codes))
            tables.append(rows.select("text"))
        if plain.is_file():
            tables.append(pl.scan_parquet(plain).select("text"))
        return pl.concat(tables).unique().sort("text").collect()["text"].to_list()


def language(config: str) -> str:
    """Return the language of a config, the last part of its name (en for ``sentiment-en``)."""
    return config.rpartition("-")[2]


def amount(params: Params, model: Model, folders: dict[str, Path]) -> dict[str, int]:
    """Return the number of texts in each config whose language the model supports.

    Raises UserError if a config is not in the dataset.
    """
    languages = model.among(params.languages)
    configs_there = sorted({config for name in INPUTS for config in parquet.configs(folders[name])})
    if missing := sorted(set(params.targets) - set(configs_there)):
        raise UserError(
            f"{params.KEY}.targets: {', '.join(missing)} not in {' or '.join(INPUTS)}; available: "
            f"{', '.join(configs_there)}"
        )
    configs = [config for config in params.targets if language(config) in languages]
    return {config: len(params.prompts(folders, config)) for config in configs}


def shards(params: Params, model: Model, folders: dict[str, Path]) -> list[Shard]:
    """Return the shards of all configs."""
    sizes = amount(params, model, folders)
    return [shard for config, n in sizes.items() for shard in split(config, n, params.SHARD)]
