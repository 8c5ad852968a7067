"""Simulate an analysis many times and write a table of its error rates.

Replicates are stored in chunks in a folder that git ignores, so an interrupted run resumes, and a
later run with more replicates adds to them. If code or settings change, a new folder is used.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import tempfile
import warnings
import zlib
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.rates import CALIBRATION, rows, tally
from plumbline.builders.core.errors import Bar, UserError, each
from plumbline.builders.core.front_matter import Origin
from plumbline.builders.core.params import Params, section
from plumbline.probes import CALIBRATED, module_of
from plumbline.probes.core.run_analysis import write_tables

if TYPE_CHECKING:
    from calibration.truth import Drawn, Tables

FOLDER = Path("data/tables/calibration")
CHUNKS = Path("data/.calibration")
SIZE = 10  # number of replicates in a chunk
HERE = Path(__file__).parent
FILE = Path("calibration/params.yaml")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")

Number = Annotated[int, Field(ge=2)]


class Settings(Params):
    """Settings of the simulations."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    seed: int = Field(1, ge=0, description="seed of the simulated responses")
    replicates: int = Field(1000, ge=2, description="number of tables per shape and truth")
    replicates_of: dict[str, Number | dict[str, Number]] = Field(
        {}, description="number of tables for each slow analysis, or for each of its shapes"
    )

    def number(self, analysis: str, shape: str) -> int:
        """Return the number of replicates to simulate for one shape of an analysis."""
        numbers = self.replicates_of.get(analysis, self.replicates)
        return numbers if isinstance(numbers, int) else numbers.get(shape, self.replicates)


class Chunk(NamedTuple):
    """Consecutive replicates simulated with one shape and truth."""

    analysis: str
    shape: str
    truth: str
    first: int
    end: int

    @property
    def cell(self) -> int:
        """Return a number specific to the shape and truth, from which seeds are derived."""
        return zlib.crc32("/".join(self[:3]).encode())


def simulated_analyses() -> list[str]:
    """Return the names of the analyses that have a simulation."""
    files = {path.stem for path in HERE.glob("*/*.py")}
    return [name for name in CALIBRATED if name in files]


def simulation_of(analysis: str) -> Any:
    """Return the module that simulates an analysis.

    Raises UserError if the analysis has no simulation.
    """
    if analysis not in simulated_analyses():
        names = " ".join(simulated_analyses())
        raise UserError(f"calibrate {analysis}: it has no simulation; choose from {names}")
    study = module_of(CALIBRATED[analysis]).split(".")[2]
    return importlib.import_module(f"calibration.{study}.{analysis}")


def analysis_of(analysis: str) -> tuple[Any, Any, Params]:
    """Return the module of an analysis, its function, and its params with 95% intervals."""
    name = CALIBRATED[analysis]
    module: Any = importlib.import_module(module_of(name))
    params = section(f"analysis.{name}", module.Params)
    if "confidence" in type(params).model_fields:
        params = params.model_copy(update={"confidence": 0.95})
    return module, module.run if name == analysis else module.pooled, params


def calibrate(analysis: str, replicates: int = 0, workers: int = 0, folder: Path = FOLDER) -> Path:
    """Simulate an analysis and return the folder of its table of rates.

    ``replicates``: number of tables for each shape and truth; if 0, the number in the params.
    ``workers``: number of processes; if 0, one per core.
    ``folder``: parent folder of the table's folder.
    """
    settings = section("calibration", Settings, FILE)
    module = simulation_of(analysis)
    study = HERE.parent / "probes" / module_of(CALIBRATED[analysis]).split(".")[2]
    sources = [p for f in (HERE, study, HERE.parent / "probes/stats") for p in f.rglob("*.py")]
    code = {
        path.relative_to(HERE.parent): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(sources)
    }
    params = analysis_of(analysis)[2].model_dump(mode="json")
    text = json.dumps([settings.seed, params, [*code.values()]], sort_keys=True)
    stored = CHUNKS / f"{analysis}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    stored.mkdir(parents=True, exist_ok=True)
    chunks = {}
    for shape, truth in product(module.SHAPES, module.TRUTHS):
        number = replicates or settings.number(analysis, shape)
        for first in range(0, number, SIZE):
            chunk = Chunk(analysis, shape, truth, first, min(first + SIZE, number))
            chunks[stored / f"{chunk.cell:08x}-{first:06d}-{chunk.end:06d}.parquet"] = chunk
    todo = [path for path in chunks if not path.is_file()]
    arguments = [(chunks[path], settings.seed) for path in todo]
    number = min(len(todo), workers or len(os.sched_getaffinity(0)))
    with Bar(total=len(todo), desc=f"calibrate {analysis}", unit="chunk") as bar:
        for index, tallies in each(simulate, arguments, number, ONE_THREAD) if todo else ():
            partial = todo[index].with_suffix(".partial")
            tallies.write_parquet(partial)
            partial.rename(todo[index])
            bar.update()
    tallies = pl.concat(pl.read_parquet(path) for path in chunks)
    command = f"python -m calibration {analysis}" + f" --replicates {replicates}" * bool(replicates)
    tables = {"calibration": rows(analysis, tallies)}
    origin = Origin([], command, settings.version)
    return write_tables(folder / analysis, tables, {"calibration": CALIBRATION}, code, origin)


def simulate(chunk: Chunk, seed: int) -> pl.DataFrame:
    """Simulate the replicates in a chunk and return their tallies."""
    kind, parts = simulation_of(chunk.analysis).TRUTHS[chunk.truth].kind, []
    for number in range(chunk.first, chunk.end):
        rng = np.random.default_rng([seed, chunk.cell, number])
        _, outcomes = replicate(*chunk[:3], rng, number + 1)
        tests = [frame.with_columns(test=pl.lit(test)) for test, frame in outcomes.items()]
        parts.append(tally(pl.concat(tests)).with_columns(replicate=pl.lit(number, pl.Int64)))
    columns = {"shape": chunk.shape, "truth": chunk.truth, "kind": kind}
    return pl.concat(parts).with_columns(pl.lit(v).alias(k) for k, v in columns.items())


def replicate(
    analysis: str, shape: str, truth: str, rng: np.random.Generator, seed: int
) -> tuple[Tables, Tables]:
    """Draw one replicate, run the analysis, and return its tables and the rows of each test."""
    simulation = simulation_of(analysis)
    # Replicates are small and numerous, so they are written to memory where possible.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=memory) as name:
        true, run = simulation.TRUTHS[truth], simulation.SHAPES[shape]
        if changed := true.get("shape"):
            run = run.model_copy(update=changed)
        drawn = simulation.draw(Path(name), true, run, rng)
        tables = analyse(analysis, drawn, seed)
    return tables, simulation.outcomes(tables, drawn)


def analyse(analysis: str, sample: Drawn, seed: int, **settings: Any) -> Tables:
    """Run an analysis on a sample and return its tables; ``settings`` unknown to it are ignored."""
    _, run, params = analysis_of(analysis)
    changed = simulation_of(analysis).PARAMS | sample.params
    own = params.model_dump() | changed
    own |= {key: value for key, value in ({"seed": seed} | settings).items() if key in own}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # failed convergence is reported in the tables
        tables: Tables = run(sample.inputs, type(params).model_validate(own))
    return tables
