"""How often the sentence of a study reports a finding, in tables whose truth is known."""

from __future__ import annotations

import importlib
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calibration.calibrate import simulated, simulating
from calibration.truth import NULL, PLANTED, Truth
from plumbline.builders.core.progress import Bar
from plumbline.probes import module_of
from plumbline.probes.report.tables import labelled
from plumbline.probes.report.view import LEVEL
from plumbline.probes.site.headlines import HEADLINES

NAME, FILE, TABLES = "headlines", "headlines.csv", 200
QUICK: dict[str, Any] = {"underlying": {}, "n_bootstrap": 20}  # no test of these depends on either


class Case(NamedTuple):
    """A study with responses of one shape."""

    study: str
    shape: str | dict[str, Any]  # name of a shape, or its settings
    null: dict[str, Any]  # settings of the truths
    planted: dict[str, Any]


ITSELF = {"itself": (0.0, 2.41)}  # nats: to .98 of the end of the scale, which twice is beyond
OPTIONS = {"response_format": "multiple_choice", "prompts": 2, "samples": 2}
CASES = (  # planted: twice what the null tables report as detectable
    Case("politicians", "default run: 99 men, 88 women, 6 others", {}, {"effects": (2.28,)}),
    Case(  # any name moves predictions, those of all countries alike
        *("nationality", "55 texts, 4 draws, 12 names"),
        *({"all": 0.8}, {"all": 0.8, "sizes": (0.97,)}),
    ),
    Case("leaning", {"trainings": 1}, {}, ITSELF),
    Case("leaning", {"trainings": 1, **OPTIONS}, {}, ITSELF),
)


def simulate(folder: Path, tables: int = TABLES) -> Path:
    """Simulate all cases, and return the file of the counts."""
    with Bar(total=2 * tables * len(CASES), desc=f"calibrate {NAME}", unit="table") as bar:
        rows = [
            {"study": case.study, "responses": str(case.shape), "tables": tables}
            | {
                f"{kind}_tables_with_a_finding": findings(case, Truth(kind, "", told), tables, bar)
                for kind, told in ((NULL, case.null), (PLANTED, case.planted))
            }
            for case in CASES
        ]
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_csv(folder / FILE)
    return folder / FILE


def findings(case: Case, truth: Truth, tables: int, bar: Bar) -> int:
    """Return how many of so many tables report a finding."""
    headline = HEADLINES[case.study]
    module, (run, params) = simulated(headline.analysis), simulating(headline.analysis)
    schemas: Any = importlib.import_module(module_of(headline.analysis)).SCHEMAS
    given = case.shape
    shape = module.SHAPES[given] if isinstance(given, str) else module.Shape(**given)
    found = 0
    for number in range(tables):
        rng = np.random.default_rng([1 + (truth.kind == PLANTED), number])
        with tempfile.TemporaryDirectory() as folder:
            inputs, _, changes = module.draw(Path(folder), truth, shape, rng)
            for path in inputs.outputs("stances", "m").glob("*/*.parquet"):  # the model itself
                pl.read_parquet(path).filter(corpus="").write_parquet(path)
            own = params.model_dump() | module.PARAMS | changes | {"seed": number + 1} | QUICK
            known = {key: own[key] for key in type(params).model_fields}
            made = run(inputs, type(params).model_validate(known))
        frames = {
            name: labelled(table, {c.name: c.labels for c in schemas[name].columns if c.labels})
            for name, table in made.items()
        }
        found += bool((headline.rows(frames)["p_bh"] <= LEVEL).any())
        bar.update()
    return found
