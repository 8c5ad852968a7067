"""Run an analysis on outputs, and write tables that can be loaded as a dataset.

An analysis is a module of a study that defines

- ``DATASETS``, ``OUTPUTS``, ``TABLES``: the datasets, probes and other analyses that it reads, if
  any (with neither ``OUTPUTS`` nor ``TABLES``, it needs no model); ``BESIDE``: probes whose outputs
  are read for all models assigned to them,
- ``SCHEMAS``: the schemas of its tables; ``Params``; ``run(inputs, params)``, which returns the
  tables; and optionally ``pooled(inputs, params)``, which returns tables over groups of models.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError, during
from plumbline.builders.core.params import section
from plumbline.builders.core.parquet import carrying
from plumbline.probes import EACH, POOLED, module_of
from plumbline.probes.core.assignments import assigned_models, stage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plumbline.builders.core.schema import Schema


class Inputs(NamedTuple):
    """The inputs of an analysis."""

    models: tuple[str, ...]  # sorted names from params.yaml; a single name for analyses in ``EACH``
    datasets: dict[str, Path]  # validated
    data: Path = Path("data")

    def outputs(self, probe: str, model: str) -> Path:
        """Return the folder of a model's responses to a probe."""
        return self.data / "outputs" / probe / model

    def weights(self, model: str) -> Path:
        """Return the folder of a control model, which contains its known effects and settings."""
        return self.data / "samples" / "worlds" / model

    def tables(self, analysis: str, model: str = "") -> Path:
        """Return the folder of another analysis's tables, for one model if a name is given."""
        return self.data / "tables" / analysis / model


def analyse(name: str, model: str = "") -> Path:
    """Run an analysis of one model or of all models, and return the folder of its tables.

    If no model is given, a single-model analysis writes the tables that pool groups of models.
    Raises UserError if an input is missing or the params are invalid.
    """
    module: Any = importlib.import_module(module_of(name))
    params: Any = section(f"analysis.{name}", module.Params)
    names = getattr(module, "DATASETS", ())
    datasets = {dataset: parquet.require_validated(dataset) for dataset in names}
    inputs = Inputs((model,) if model else _models(module), datasets)
    folders = list(_folders(name, module, inputs))
    for folder, maker, subject in folders:
        if not (folder / front_matter.CARD).is_file():
            stage = stage_of(maker, subject)
            raise UserError(f"{folder}: no tables or outputs; run `make repro STAGE={stage}` first")
    groups = name in EACH and not model
    with during(f"{name} {model}".rstrip()):
        tables = (module.pooled if groups else module.run)(inputs, params)
    read = dict.fromkeys([*(folder for folder, *_ in folders), *datasets.values()])
    hashes = {folder: parquet.fingerprint(folder) for folder in read}
    sources = [front_matter.source(f, f"made by {maker}", hashes[f]) for f, maker, _ in folders]
    command = f"make repro STAGE={stage_of(name, model)}"
    origin = front_matter.Origin(sources, command, params.version)
    final = inputs.tables(name, POOLED if groups else model)
    return write_tables(final, tables, module.SCHEMAS, hashes, origin)


def write_tables(
    final: Path,
    tables: dict[str, Any],
    schemas: dict[str, Schema],
    hashes: dict[Path, str],
    origin: front_matter.Origin,
) -> Path:
    """Write tables together with the hashes of their inputs, and return the folder ``final``.

    Raises ValueError if a number is NaN or infinite.
    """
    partial = parquet.fresh(final)
    carried = {folder.as_posix(): sha256 for folder, sha256 in hashes.items()}
    for table, frame in tables.items():
        for name in schemas[table].arrow().names:
            values = frame[name].explode() if frame[name].dtype == pl.List else frame[name]
            if values.dtype.is_float() and not values.is_finite().all():
                raise ValueError(f"{final}: the table {table} has no finite number in {name}")
        arrow = carrying(schemas[table].arrow(), carried)
        parquet.write_table(frame, arrow, partial / f"{table}.parquet")
    front_matter.write(partial, {table: schemas[table] for table in tables}, origin)
    parquet.finish(final)
    return final


def _models(module: Any) -> tuple[str, ...]:
    """Return the models assigned to the first probe of an analysis, or of its input analyses."""
    for probe in getattr(module, "OUTPUTS", ()):
        return assigned_models(probe)
    for analysis in getattr(module, "TABLES", ()):
        return _models(importlib.import_module(module_of(analysis)))
    return ()


def _folders(name: str, module: Any, inputs: Inputs) -> Iterator[tuple[Path, str, str]]:
    """Yield each input folder of an analysis, with its stage and the stage's model or dataset.

    Datasets are omitted if outputs or tables are read, since their cards name the datasets.
    """
    probes, analyses = getattr(module, "OUTPUTS", ()), getattr(module, "TABLES", ())
    if not (probes or analyses):
        for dataset, folder in inputs.datasets.items():
            yield folder, "build", dataset
    for probe in probes:
        for model in inputs.models:
            yield inputs.outputs(probe, model), probe, model
    for probe in getattr(module, "BESIDE", ()):
        for model in assigned_models(probe):
            yield inputs.outputs(probe, model), probe, model
    for analysis in analyses:
        models: tuple[str, ...] = ("",)
        if analysis in EACH:
            models = inputs.models if name in EACH else assigned_models(analysis)
        for model in models:
            yield inputs.tables(analysis, model), analysis, model
