"""What effects a run could find, before it runs: from the simulations of its tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from plumbline.builders.core.params import STUDIES
from plumbline.probes import CALIBRATED, PROBES, module_of
from plumbline.probes.report import error_rates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

FOLDER = Path("data/tables/calibration")
NOTE = (
    "Smallest effects that tests find with power .8, by simulation; their units stand in "
    "docs/methods/calibration.md. With c times as many names, texts, items or seeds they shrink "
    "by about the root of c; a shape of your own, simulated by the command calibrate, says exactly."
)


def table(probes: Collection[str] = (), folder: Path = FOLDER) -> str:
    """Return what each analysis would find, as a Markdown table; "" where nothing is simulated.

    ``probes``: whose studies are told of; by default all of them. What is no probe is of none.
    """
    studies = {_study(probe) for probe in probes if probe in PROBES} or {*STUDIES}
    lines = list(_lines(folder, studies))
    if not lines:
        return ""
    heads = "| analysis | test | simulated run | found | found after adjustment |"
    return "\n".join([NOTE, "", heads, "|---|---|---|---:|---:|", *lines])


def _study(name: str) -> str:
    return module_of(name).split(".")[2]


def _lines(folder: Path, studies: Collection[str]) -> Iterator[str]:
    for analysis, own in CALIBRATED.items():
        path, study = folder / analysis / "calibration.parquet", _study(own)
        there = path.is_file() and (study in studies or study not in STUDIES)
        for line in error_rates.lines(pl.read_parquet(path)) if there else ():
            other = line["test"] in STUDIES and line["test"] not in studies  # of what is across all
            if error_rates.LEAST in line and error_rates.decides(line) and not other:
                least = (error_rates.LEAST, error_rates.LEAST_ADJUSTED)
                found = (error_rates.effect(line, measure) for measure in least)
                cells = [analysis, line["test"], line["shape"], *found]
                yield f"| {' | '.join(cells)} |"
