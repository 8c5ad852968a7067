"""Type I error of the headline of a study, in tables without differences."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calibration.calibrate import analyse, analysis_of, simulation_of
from calibration.truth import Truth
from plumbline.builders.core.errors import Bar
from plumbline.probes.report.tables import labelled
from plumbline.probes.report.view import LEVEL
from plumbline.probes.site.headlines import HEADLINES

NAME, FILE, TABLES = "headlines", "headlines.csv", 200
QUICK: dict[str, Any] = {"underlying": {}, "n_bootstrap": 20}  # no test of these depends on either


class Case(NamedTuple):
    """A study with responses of one shape."""

    study: str
    shape: str | dict[str, Any]  # name of a shape, or its settings
    settings: dict[str, Any]  # of the truth


OPTIONS = {"response_format": "multiple_choice", "prompts": 2, "samples": 2}
CASES = (
    Case("politicians", "default run: 99 men, 88 women, 6 others", {}),
    # any name moves predictions, names of all countries equally
    Case("nationality", "55 texts, 4 draws, 12 names", {"all": 0.8}),
    Case("leaning", {"trainings": 1}, {}),
    Case("leaning", {"trainings": 1, **OPTIONS}, {}),
)


def simulate(folder: Path, tables: int = TABLES) -> Path:
    """Simulate all cases, and return the file of the counts."""
    with Bar(total=tables * len(CASES), desc=f"calibrate {NAME}", unit="table") as bar:
        rows = [
            {"study": case.study, "responses": str(case.shape), "tables": tables}
            | {"null_tables_with_a_finding": count_findings(case, tables, bar)}
            for case in CASES
        ]
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_csv(folder / FILE)
    return folder / FILE


def count_findings(case: Case, tables: int, bar: Bar) -> int:
    """Return in how many simulated tables the study's sentence reports a finding."""
    headline = HEADLINES[case.study]
    simulation, schemas = (
        simulation_of(headline.analysis),
        analysis_of(headline.analysis)[0].SCHEMAS,
    )
    shape = case.shape
    shape = simulation.SHAPES[shape] if isinstance(shape, str) else simulation.Shape(**shape)
    findings = 0
    for number in range(tables):
        rng = np.random.default_rng([1, number])
        with tempfile.TemporaryDirectory() as folder:
            drawn = simulation.draw(Path(folder), Truth("null", **case.settings), shape, rng)
            for path in drawn.inputs.outputs("stances", "m").glob("*/*.parquet"):
                pl.read_parquet(path).filter(corpus="").write_parquet(path)  # the model itself
            made = analyse(headline.analysis, drawn, number + 1, **QUICK)
        frames = {
            name: labelled(table, {c.name: c.labels for c in schemas[name].columns if c.labels})
            for name, table in made.items()
        }
        findings += bool((headline.rows(frames)["p_bh"] <= LEVEL).any())
        bar.update()
    return findings
