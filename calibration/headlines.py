"""Type I error of each study's headline, measured in tables without differences."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibration.calibrate import analyse, analysis_of, simulation_of
from calibration.truth import Truth
from plumbline.builders.core.errors import Bar
from plumbline.probes.report.tables import labelled
from plumbline.probes.report.view import LEVEL
from plumbline.probes.site.headlines import HEADLINES

NAME, FILE, TABLES = "headlines", "headlines.csv", 200
QUICK: dict[str, Any] = {"underlying": {}, "n_bootstrap": 20}  # speeds up; no test depends on these
OPTIONS = {"response_format": "multiple_choice", "prompts": 2, "samples": 2}
Case = tuple[str, str | dict[str, Any], dict[str, Any]]
CASES: tuple[Case, ...] = (  # study, shape (its name or settings), and settings of the distribution
    ("politicians", "default run: 99 men, 88 women, 6 others", {}),
    # any inserted name changes predictions, but equally for all countries
    ("nationality", "55 texts, 4 draws, 12 names", {"all": 0.8}),
    ("leaning", {"trainings": 1}, {}),
    ("leaning", {"trainings": 1, **OPTIONS}, {}),
)


def simulate(folder: Path, tables: int = TABLES) -> Path:
    """Simulate all cases and return the file with the counts."""
    rows = []
    with Bar(total=tables * len(CASES), desc=f"calibrate {NAME}", unit="table") as bar:
        for case in CASES:
            findings = 0
            for number in range(tables):
                findings += finds(case, number)
                bar.update()
            row = {"study": case[0], "responses": str(case[1]), "tables": tables}
            rows.append(row | {"null_tables_with_a_finding": findings})
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_csv(folder / FILE)
    return folder / FILE


def finds(case: Case, number: int) -> bool:
    """Simulate one table and return True if the study's headline reports a finding."""
    study, shape, settings = case
    headline = HEADLINES[study]
    simulation = simulation_of(headline.analysis)
    schemas = analysis_of(headline.analysis)[0].SCHEMAS
    shape = simulation.SHAPES[shape] if isinstance(shape, str) else simulation.Shape(**shape)
    rng = np.random.default_rng([1, number])
    with tempfile.TemporaryDirectory() as folder:
        drawn = simulation.draw(Path(folder), Truth("null", **settings), shape, rng)
        for path in drawn.inputs.outputs("stances", "m").glob("*/*.parquet"):
            pl.read_parquet(path).filter(corpus="").write_parquet(path)  # only the base model
        tables = analyse(headline.analysis, drawn, number + 1, **QUICK)
    frames = {
        name: labelled(table, {c.name: c.labels for c in schemas[name].columns if c.labels})
        for name, table in tables.items()
    }
    return bool((headline.rows(frames)["p_bh"] <= LEVEL).any())
