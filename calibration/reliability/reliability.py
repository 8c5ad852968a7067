"""Analysis ``reliability`` on simulated responses of one model to the probe ``stances``.

The difference between the probabilities of a written response is a tenth of the score. Effects are
normally distributed; invalid responses are chosen at random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import Field

from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from plumbline.builders.core.params import Params
from plumbline.probes.core.run_analysis import Inputs

MODEL = "simulated"
UNIT = 0.1  # difference between probabilities per unit of the score


class Shape(Params):
    """Shape of a run."""

    statements: int = Field(40, description="number of statements in the questionnaire")
    templates: int = Field(5, description="number of templates for each statement")
    seeds: int = Field(3, description="number of seeds for each prompt")
    lost: float = Field(0.0, description="share of invalid responses")


SHAPES = {
    "40 statements, 5 templates, 3 seeds": Shape(),
    "20 statements, 3 templates, 5 seeds, 10% lost": Shape(
        statements=20, templates=3, seeds=5, lost=0.1
    ),
    "20 statements, 30 templates, 3 seeds": Shape(statements=20, templates=30),
}
PARTS = {
    "statement": 1.0,
    "template": 0.3,
    "seed": 0.2,
    "statement x template": 0.5,
    "statement x seed": 0.0,
    "template x seed": 0.0,
    "rest": 0.2,
}
ALONE = dict.fromkeys(PARTS, 0.0) | {"statement": 1.0, "rest": 0.2}
TRUTHS = {
    # scores vary only over statements and by chance
    "statements alone": Truth("null", **ALONE),
    # all variance components are positive
    "parts": Truth("planted", **PARTS),
}
PARAMS: dict[str, Any] = {"draws": 400, "reml_scores": 0}


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    names = [f"s{index:03d}" for index in range(shape.statements)]
    inputs = Inputs((MODEL,), {"statements": folder / "statements"}, folder / "data")
    reverse = np.arange(shape.statements) % 3 == 0
    same = {"language": "l0", "scale": "axes", "axis": "one"}
    statements = pl.DataFrame({"id": names, "reversed": reverse} | same)
    statements.write_parquet(inputs.datasets["statements"] / "axes.parquet", mkdir=True)
    sizes = {"statement": shape.statements, "template": shape.templates, "seed": shape.seeds}
    score = np.zeros(tuple(sizes.values()))
    for term in PARTS:
        facets = list(sizes) if term == "rest" else term.split(" x ")
        size = [n if name in facets else 1 for name, n in sizes.items()]
        score += rng.normal(0, 1, size) * truth.settings[term] ** 0.5
    score *= np.where(reverse, -1.0, 1.0)[:, None, None]
    _stances(inputs.outputs("stances", MODEL), score, names, shape.lost, rng)
    return Drawn(inputs, truth.settings)


def _stances(folder: Path, score: Array, names: list[str], lost: float, rng: Generator) -> None:
    """Write responses, some of them empty."""
    index = [axis.ravel() for axis in np.indices(score.shape)]
    small = score.ravel() * UNIT
    table = {
        "id": [names[s] for s in index[0]],
        "frame": [f"t{t}" for t in index[1]],
        "seed": index[2],
        "response": np.where(rng.random(score.size) < lost, "", "I say this.").tolist(),
        "entailed_nats": np.log(0.5 + small / 2),
        "contradicted_nats": np.log(0.5 - small / 2),
    }
    state = {"corpus": "", "period": "all", "share": 0.0, "pretraining_seed": 0, "epoch": 0}
    state |= {"questionnaire": "axes", "form": "plain", "variant": "", "text": ""}
    pl.DataFrame(table | state).write_parquet(folder / "generation/0.parquet", mkdir=True)


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the intervals of the variance components."""
    parts = tables["parts"].filter(pl.col("language") != "", pl.col("model") != "")
    parts = parts.drop_nulls("value").filter(probe="stances")
    true = pl.col("term").replace_strict(sample.known)
    return outcomes_by(parts, "parts: {term}", effect=true, target=true * UNIT**2)
