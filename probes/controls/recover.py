"""Comparison of the tables of all studies with what was planted in their worlds."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.params import STUDIES
from plumbline.builders.core.progress import during
from plumbline.probes import PROBES, module_of
from plumbline.probes.controls.measures import RECOVERY
from plumbline.probes.core.assignments import assigned_models
from plumbline.probes.core.run_analysis import Inputs, write_tables

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def recover(studies: Sequence[str] = STUDIES) -> Path:
    """Compare the tables of studies with what was planted in their worlds; return the folder.

    ``probes/STUDY/recovery.py`` has ``TABLES``, the analyses whose tables it reads, ``run``, which
    returns the rows of each, ``truth``, and perhaps ``DATASETS``.
    """
    parts = [pl.DataFrame(pl.from_arrow(RECOVERY.arrow().empty_table()))]
    hashes: dict[Path, str] = {}
    for study in studies:
        module: Any = importlib.import_module(f"plumbline.probes.{study}.recovery")
        own = [probe for probe in PROBES if module_of(probe).split(".")[2] == study]
        models = tuple(sorted({model for probe in own for model in assigned_models(probe)}))
        needed = {name: parquet.require_validated(name) for name in getattr(module, "DATASETS", ())}
        inputs = Inputs(models, needed)
        folders = [inputs.data / "tables" / analysis for analysis in module.TABLES]
        hashes |= {folder: parquet.fingerprint(folder) for folder in folders if folder.is_dir()}
        with during(f"recovery {study}"):
            found = module.run(inputs)
        for analysis, rows in found.items():
            place = {"study": pl.lit(study), "analysis": pl.lit(analysis)}
            parts.append(rows.with_columns(**place).select(parts[0].columns))
    table = pl.concat(parts).sort(RECOVERY.key)
    sources = [front_matter.source(f, "tables", sha256) for f, sha256 in hashes.items()]
    origin = front_matter.Origin(sources, "make repro STAGE=recovery", "0.1.0")
    final = inputs.data / "tables/recovery"
    return write_tables(final, {"recovery": table}, {"recovery": RECOVERY}, hashes, origin)
