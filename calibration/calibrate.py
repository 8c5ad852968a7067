"""Running an analysis on simulated responses, over and over, into a table of rates.

Replicates that are done are kept in chunks in a folder of their own, which git ignores: a
run that was killed goes on, and a later one with more replicates adds to them. They are of the code
as it is where the first replicates come out the same, which is looked at before they are used.
"""

from __future__ import annotations

import ast
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
from pydantic import Field, ValidationError

from calibration.rates import CALIBRATION, firsts, rows
from calibration.tally import tally
from plumbline.builders.core import params
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import Origin
from plumbline.builders.core.params import Params, section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.workers import each
from plumbline.probes import CALIBRATED, module_of
from plumbline.probes.core.run_analysis import write_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

FOLDER = Path("data/tables/calibration")
KEPT = Path("data/.calibration")  # chunks: nothing that a stage hangs on
SETTINGS = "settings.json"
HERE = Path(__file__).parent
FILE = Path("calibration/params.yaml")  # of a project; elsewhere params.yaml has the section


Number = Annotated[int, Field(ge=2)]


class Settings(Params):
    """How the tests of the analyses are simulated."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    seed: int = Field(1, ge=0, description="of the simulated responses")
    replicates: int = Field(1000, ge=2, description="simulated tables of each shape and truth")
    replicates_of: dict[str, Number | dict[str, Number]] = Field(
        {}, description="the same for an analysis of which a table takes long, or by its shapes"
    )
    chunk: int = Field(10, ge=1, description="replicates that are kept together")
    shapes: dict[str, Annotated[dict[str, dict[str, Any]], Field(min_length=1)]] = Field(
        {}, description="analysis, then a name of a shape: its settings, instead of those in code"
    )


class Chunk(NamedTuple):
    """Some replicates of one shape and truth."""

    analysis: str
    shape: str
    truth: str
    first: int
    end: int

    def file(self) -> str:
        """Return the name of its file."""
        place = zlib.crc32(f"{self.shape}/{self.truth}".encode())
        return f"{place:08x}-{self.first:06d}-{self.end:06d}.parquet"


def simulated(analysis: str) -> Any:
    """Return the module that simulates an analysis.

    Raises UserError if there is none.
    """
    if analysis not in those():
        raise UserError(f"calibrate {analysis}: nothing simulates it; one of {' '.join(those())}")
    study = module_of(CALIBRATED[analysis]).split(".")[2]
    return importlib.import_module(f"calibration.{study}.{analysis}")


def read_settings() -> Settings:
    """Return how the analyses are simulated here."""
    return section("calibration", Settings, FILE if FILE.is_file() else params.FILE)


def simulating(analysis: str) -> tuple[Any, Params]:
    """Return the function of an analysis that is simulated, and its settings in the params.

    But 95% intervals, whose coverage is told.
    """
    own = CALIBRATED[analysis]
    module: Any = importlib.import_module(module_of(own))
    params = section(f"analysis.{own}", module.Params)
    if "confidence" in type(params).model_fields:
        params = params.model_copy(update={"confidence": 0.95})
    return module.run if own == analysis else module.pooled, params


def those() -> list[str]:
    """Return the analyses that can be calibrated."""
    files = {path.stem for path in HERE.glob("*/*.py")}
    return [name for name in CALIBRATED if name in files]


def calibrate(
    analysis: str,
    replicates: int = 0,
    runner: str = "local",
    workers: int = 0,
    folder: Path = FOLDER,
    only: Sequence[str] = (),
) -> Path:
    """Simulate an analysis and return the folder of its table of rates.

    ``replicates``: of each shape and truth; 0 for those of the params, which may differ by shape.
    ``runner``, ``workers``: processes of this machine (0: one a core), or tasks on a Ray cluster.
    ``folder``: in which the folder of the table is written.
    ``only``: shapes and truths that are simulated; rows of all others stay as the table has them.

    Raises UserError if nothing simulates it, its shapes are not those of its module, the table
    would take the place of one of more replicates or of other shapes, or rows that are to stay
    are not there or not of the code as it is.
    """
    settings = read_settings()
    if strange := {*settings.replicates_of, *settings.shapes} - {*those()}:
        raise UserError(
            f"calibration: nothing simulates {', '.join(sorted(strange))}; mend the key"
        )
    module = simulated(analysis)
    shapes = _shapes(module, analysis, settings)
    numbers = _numbers(analysis, settings, shapes, replicates)
    cells = _cells(analysis, shapes, module.TRUTHS, only)
    _keep(folder / analysis, numbers, cells)
    rest = [(x, y) for x in shapes for y in module.TRUTHS if (x, y) not in cells]
    there = _there(folder / analysis, analysis) if rest else {}
    drawn = _first(analysis, settings)
    stay = _staying(folder / analysis, there, rest, firsts(drawn))
    code = {path: _sha256(HERE.parent / path) for path in code_of(analysis)}  # as it is now
    work = _kept(analysis, settings, shapes, firsts(drawn, told=True))
    chunks = [
        Chunk(analysis, shape, truth, first, min(first + settings.chunk, numbers[shape]))
        for first in range(0, max(numbers.values()), settings.chunk)
        for shape, truth in cells
        if first < numbers[shape]
    ]
    todo = [chunk for chunk in chunks if not (work / chunk.file()).is_file()]
    spread = _on_ray if runner == "ray" else _here
    bar = Bar(total=len(todo), desc=f"calibrate {analysis}", unit="chunk")
    with bar:
        for chunk, found in spread(todo, settings, workers):
            unfinished = work / f".{chunk.file()}"
            found.write_parquet(unfinished)
            unfinished.rename(work / chunk.file())
            bar.update()
    tallies = pl.concat(pl.read_parquet(work / chunk.file()) for chunk in chunks)
    command = f"python -m calibration {analysis}"
    command += f" --replicates {replicates}" * bool(replicates and not only)
    origin = Origin([], command, settings.version)
    table = pl.concat([*stay, rows(analysis, tallies)])
    tables = {"calibration": table.sort(CALIBRATION.key)}
    return write_tables(folder / analysis, tables, {"calibration": CALIBRATION}, code, origin)


def _first(analysis: str, settings: Settings) -> pl.DataFrame:
    """Return the tallies of the first replicate of each shape and truth."""
    module = simulated(analysis)
    cells = product(_shapes(module, analysis, settings), module.TRUTHS)
    each = (Chunk(analysis, shape, truth, 0, 1) for shape, truth in cells)
    return pl.concat(made(chunk, settings) for chunk in each)


def older(analysis: str, folder: Path = FOLDER) -> list[str]:
    """Return where the table of an analysis is not of the code as it is, in words; none: nowhere.

    A table is of the code and params as they are where its first replicate comes out the same
    today.
    """
    path = folder / analysis / "calibration.parquet"
    if not path.is_file():
        return ["not simulated yet"]
    there = pl.read_parquet(path)
    if "first" not in there.columns:
        return ["simulated by older code"]
    known = {tuple(of): sha256 for *of, sha256 in there.select("shape", "truth", "first").rows()}
    now = firsts(_first(analysis, read_settings()))
    return [
        f"{shape}: {truth}"
        for (shape, truth), sha256 in now.items()
        if known.get((shape, truth)) != sha256
    ]


def _numbers(
    analysis: str, settings: Settings, shapes: dict[str, Any], replicates: int
) -> dict[str, int]:
    """Return how many replicates of each shape there are to be."""
    given = replicates or settings.replicates_of.get(analysis, settings.replicates)
    if isinstance(given, int):
        return dict.fromkeys(shapes, given)
    if strange := {*given} - {*shapes}:
        raise UserError(
            f"calibration.replicates_of.{analysis}: no shape {min(strange)!r}; "
            f"one of {', '.join(map(repr, shapes))}"
        )
    return {shape: given.get(shape, settings.replicates) for shape in shapes}


def _cells(
    analysis: str, shapes: Collection[str], truths: Collection[str], only: Sequence[str]
) -> list[tuple[str, str]]:
    """Return the shapes and truths that are simulated together."""
    if strange := sorted({*only} - {*shapes, *truths}):
        raise UserError(
            f"calibrate {analysis}: no shape or truth {strange[0]!r}; "
            f"one of {', '.join(map(repr, [*shapes, *truths]))}"
        )
    of = [[x for x in names if x in only] or [*names] for names in (shapes, truths)]
    return [(shape, truth) for shape in of[0] for truth in of[1]]


def _there(folder: Path, analysis: str) -> dict[tuple[str, str], pl.DataFrame]:
    """Return the rows of the table there is, by shape and truth."""
    path = folder / "calibration.parquet"
    if not path.is_file():
        raise UserError(f"{path}: no table whose other rows could stay; simulate all, no --only")
    there = pl.read_parquet(path)
    if "first" not in there.columns:
        raise UserError(f"{path}: simulated by older code; simulate all, no --only")
    own = {
        (of[0], of[1]): rows
        for of, rows in there.partition_by("shape", "truth", as_dict=True).items()
    }
    if gone := sorted({truth for _, truth in own} - {*simulated(analysis).TRUTHS}):
        raise UserError(f"{path}: has the truth {gone[0]!r}, which there is no more; no --only")
    return own


def _staying(
    folder: Path,
    there: dict[tuple[str, str], pl.DataFrame],
    rest: list[tuple[str, str]],
    now: dict[tuple[str, str], str],
) -> list[pl.DataFrame]:
    """Return rows of the table there is, of shapes and truths that come out the same today."""
    wrong = []
    for cell in rest:
        if cell not in there or {*there[cell]["first"]} != {now[cell]}:
            told = "come out otherwise today" if cell in there else "are not there"
            wrong.append(f"rows of {cell[0]!r}, {cell[1]!r} {told}")
    if wrong:
        path = folder / "calibration.parquet"
        raise UserError(f"{path}: {'; '.join(wrong)}: name them after --only too")
    return [there[cell] for cell in rest]


def _keep(folder: Path, numbers: dict[str, int], cells: list[tuple[str, str]]) -> None:
    """Refuse to write a table in the place of one that says more."""
    path = folder / "calibration.parquet"
    if not path.is_file():
        return
    there = pl.read_parquet(path, columns=["shape", "truth", "replicates"])
    if others := sorted({*there["shape"]} - {*numbers}):
        raise UserError(
            f"{path}: has the simulated run {others[0]!r}, which this table would lack; "
            "give --out FOLDER for one of its own"
        )
    cell, largest = ["shape", "truth"], pl.col("replicates").max()
    for shape, truth, most in there.group_by(cell).agg(largest).sort(cell).rows():
        if (shape, truth) in cells and most > numbers[shape]:
            raise UserError(
                f"{path}: is of {most:,} replicates, more than {numbers[shape]:,}; "
                "give --out FOLDER, or --replicates"
            )


def code_of(analysis: str) -> list[Path]:
    """Return the files that what is simulated hangs on.

    Those of the study and of the statistics that the analysis and its simulation import, directly
    or by way of each other, wherever in a file they do.
    """
    behind = module_of(CALIBRATED[analysis])
    study = behind.split(".")[2]
    found, todo = set(), {behind, f"calibration.{study}.{analysis}"}
    todo |= {"calibration.truth", "calibration.tally"}
    while todo:
        name = todo.pop()
        path = HERE.parent.joinpath(*name.removeprefix("plumbline.").split(".")).with_suffix(".py")
        inside = name.startswith(("plumbline.probes.stats.", f"plumbline.probes.{study}."))
        inside |= name.startswith("calibration.")
        if not inside or path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                todo |= {node.module, *(f"{node.module}.{own.name}" for own in node.names)}
    return sorted(path.relative_to(HERE.parent) for path in found)


def replicate(
    chunk: Chunk, shape: Any, run: Any, params: Params, settings: Settings, number: int
) -> pl.DataFrame:
    """Draw one replicate, analyse it, and return its tallies."""
    module = simulated(chunk.analysis)
    truth = module.TRUTHS[chunk.truth]
    place = zlib.crc32(f"{chunk.analysis}/{chunk.shape}/{chunk.truth}".encode())
    rng = np.random.default_rng([settings.seed, place, number])
    with tempfile.TemporaryDirectory(dir=_fast()) as folder:
        drawn = module.draw(Path(folder), truth, shape, rng)
        own = {"seed": number + 1} if "seed" in type(params).model_fields else {}
        given = params.model_dump() | module.PARAMS | drawn.params | own
        tables = run(drawn.inputs, type(params).model_validate(given))
        found = module.outcomes(tables, drawn)
    each = [frame.with_columns(test=pl.lit(test)) for test, frame in found.items()]
    return tally(pl.concat(each)).with_columns(
        shape=pl.lit(chunk.shape),
        truth=pl.lit(chunk.truth),
        kind=pl.lit(truth.kind),
        replicate=pl.lit(number, dtype=pl.Int64),
    )


def made(chunk: Chunk, settings: Settings) -> pl.DataFrame:
    """Return the tallies of the replicates of a chunk."""
    shape = _shapes(simulated(chunk.analysis), chunk.analysis, settings)[chunk.shape]
    own = simulating(chunk.analysis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that do not converge: the tables say so
        numbers = range(chunk.first, chunk.end)
        return pl.concat(replicate(chunk, shape, *own, settings, number) for number in numbers)


def _here(
    todo: Sequence[Chunk], settings: Settings, workers: int
) -> Iterator[tuple[Chunk, pl.DataFrame]]:
    if not todo:
        return
    number = min(len(todo), workers or len(os.sched_getaffinity(0)))
    one = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    for place, found in each(made, [(chunk, settings) for chunk in todo], number, one):
        yield todo[place], found


def _on_ray(
    todo: Sequence[Chunk], settings: Settings, workers: int
) -> Iterator[tuple[Chunk, pl.DataFrame]]:
    from plumbline.probes.core import ray_runner

    for place, found in ray_runner.each(made, [(chunk, settings) for chunk in todo], workers):
        yield todo[place], found


def _shapes(module: Any, analysis: str, settings: Settings) -> dict[str, Any]:
    given = settings.shapes.get(analysis)
    if given is None:
        return dict(module.SHAPES)
    try:
        return {name: module.Shape.model_validate(own) for name, own in given.items()}
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        where = ".".join(map(str, first["loc"]))
        raise UserError(
            f"calibration.shapes.{analysis}: {where}: {first['msg']}; docs/methods/calibration.md "
            "has the settings of shapes"
        ) from error


def _kept(
    analysis: str, settings: Settings, shapes: dict[str, Any], now: dict[tuple[str, str], str]
) -> Path:
    """Return the folder of chunks with these settings, of code that says the same."""
    own = {
        "seed": settings.seed,
        "chunk": settings.chunk,
        "shapes": {name: shape.model_dump(mode="json") for name, shape in shapes.items()},
        "params": simulating(analysis)[1].model_dump(mode="json"),
        "first": {"; ".join(of): own for of, own in now.items()},
    }
    text = json.dumps(own, sort_keys=True, indent=1)
    work = KEPT / f"{analysis}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    work.mkdir(parents=True, exist_ok=True)
    (work / SETTINGS).write_text(text, encoding="utf-8")
    return work


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _fast() -> str | None:
    """Return a folder in memory, where there is one: replicates are small and many."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
