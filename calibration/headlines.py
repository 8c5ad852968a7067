"""Type I error and power of each study's headline, measured in simulated tables.

Each study is simulated at the scale of the default run and at a larger one, which equals that of
``params/full.yaml`` in countries, social groups, prompts, samples and languages, but has fewer
names, texts and words, which take longer.

The planted effect is 5.6 standard errors: twice 2.8, with which a test at level .05 has power .8.
Some estimates are shares, which cannot move by so much. The effect is therefore stated in the unit
of the simulated parameter: the standard error is the standard deviation of the estimate over the
null tables, divided by the derivative of the estimate with respect to the parameter. The effect is
planted in one item (a value: in each language), or with both signs in two countries, or in two
words of each part of speech.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from calibration.calibrate import ONE_THREAD, analyse, analysis_of, simulation_of
from calibration.truth import Truth
from plumbline.builders.core.errors import Bar, each
from plumbline.probes.report.tables import labelled
from plumbline.probes.report.view import LEVEL
from plumbline.probes.site.headlines import HEADLINES

Settings = dict[str, Any]

NAME, FILE, TABLES = "headlines", "headlines.csv", 200
QUICK: Settings = {"underlying": {}, "n_bootstrap": 20}  # speeds up; no test depends on these
ERRORS = 2 * 2.8  # size of the planted effect, in standard errors
STEP, STEPS = 0.5, 20  # parameter and number of tables from which the derivative is computed
TRAINED: Settings = {"left": (8.0, 8.0), "right": (-8.0, -8.0)}
RATING = "points of 1 to 5"
# settings of the null hypothesis and of an effect, and the unit of the effect
PLANTED: dict[str, tuple[Settings, Callable[[float], Settings], str]] = {
    "politicians": ({}, lambda x: {"effects": (x,), "step": 1000}, "nats"),
    # attributes are frequent words, which are in the lists of all groups
    "stereotypes": ({"frequent": 1.0}, lambda x: {"first": x}, "nats"),
    # likely statements are agreed with, and political ones more than apolitical ones
    "values": ({"likely": (0.75, 0.75), "shift": 1.0}, lambda x: {"values": (x, 0, 0, 0)}, RATING),
    # any inserted name changes predictions, but equally for all countries
    "nationality": ({"all": 0.8}, lambda x: {"sizes": (x,)}, "5 points"),
    # training runs lean to one side, but the model itself does not
    "leaning": (TRAINED, lambda x: {"itself": (x, 0.0)}, "nats"),
}
CATEGORIES: tuple[str, ...] = ("profession", "age", "country", "gender", "lifestyle")
CATEGORIES += ("political", "race", "religion", "sexuality")
WRITTEN: Settings = {"response_format": "generation", "prompts": 2}
OPTIONS: Settings = {"response_format": "multiple_choice", "prompts": 2, "samples": 2}
COMPASS: Settings = {"compass": True, "pairs": 11, "popular": 0.0, "quirk": 0.8}
FORMATS: dict[str, Settings] = {"masked words": {}, "written": WRITTEN, "options": OPTIONS}
FORMATS |= {f"{name}, compass": FORMATS[name] | COMPASS for name in ("written", "options")}
SCALES: dict[str, Settings] = {"small": {"trainings": 1}, "full": {"trainings": 0, "prompts": 7}}
SAMPLES = {"small": 3, "full": 10}


class Case(NamedTuple):
    """A study with responses of one kind, at one scale."""

    study: str
    responses: str
    scale: str
    item: str  # the first word of the row of the headline in which the effect is planted
    shape: Settings
    languages: int = 1  # number of independent samples in a table, each in its own language


def _groups(*sizes: int, **settings: int) -> Settings:
    categories = dict(zip(CATEGORIES, sizes, strict=True))
    return {"words": 300, "top": 80, "categories": categories} | settings


def _stances(name: str, scale: str) -> Case:
    shape = FORMATS[name] | SCALES[scale]
    if shape.get("response_format") == "generation":
        shape["samples"] = SAMPLES[scale]
    return Case("leaning", name, scale, "economic", shape)


PEOPLE = {"men": 99, "women": 88, "others": 6, "words": 90}
GROUPS = _groups(10, 4, 6, 5, 4, 3, 4, 3, 2, few=15, many=30, templates=5)
MORE_GROUPS = _groups(115, 11, 73, 26, 19, 9, 99, 10, 12, few=1, many=10)
COUNTRIES = {"countries": 17, "texts": 40, "draws": 50, "placebos": 1, "names": 50}
CASES = (
    Case("politicians", "lists", "small", "adj015", PEOPLE),
    Case("politicians", "lists", "full", "adj060", {"men": 3200, "women": 800, "words": 200}),
    Case("stereotypes", "lists", "small", "profession", GROUPS),
    Case("stereotypes", "lists", "full", "profession", MORE_GROUPS),
    Case("values", "agreement", "small", "order", {}),
    Case("values", "agreement", "full", "order", {}, languages=4),
    Case("nationality", "classes", "small", "c00", {}),
    Case("nationality", "classes", "full", "c00", COUNTRIES),
    *(_stances(name, scale) for name in FORMATS for scale in SCALES),
)


def simulate(folder: Path, tables: int = TABLES, workers: int = 0) -> Path:
    """Simulate all cases and return the file with the counts."""
    rows: list[Settings] = [{} for _ in CASES]
    arguments = [(number, tables) for number in range(len(CASES))]
    workers = min(len(CASES), workers or len(os.sched_getaffinity(0)))
    with Bar(total=len(CASES), desc=f"calibrate {NAME}", unit="case") as bar:
        for number, row in each(count, arguments, workers, ONE_THREAD):
            rows[number] = row
            bar.update()
    folder.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows).write_csv(folder / FILE)
    return folder / FILE


def count(number: int, tables: int) -> Settings:
    """Simulate a case and count the tables whose headline reports a finding."""
    case = CASES[number]
    settings, plant, unit = PLANTED[case.study]
    truth = Truth("null", **settings)
    null = [headline(case, seed, truth) for seed in range(tables)]
    values = [estimate(case, rows) for rows in null]
    truth = Truth("planted", **settings, **plant(STEP))
    near = [estimate(case, headline(case, seed, truth)) for seed in range(min(STEPS, tables))]
    derivative = np.nanmean(np.subtract(near, values[: len(near)])) / STEP
    effect = ERRORS * float(abs(np.nanstd(values, ddof=1) / derivative))
    truth = Truth("planted", **settings, **plant(effect))
    planted = [headline(case, tables + seed, truth) for seed in range(tables)]
    findings = [sum((rows["p_bh"] <= LEVEL).any() for rows in part) for part in (null, planted)]
    about: Settings = {"study": case.study, "responses": case.responses, "scale": case.scale}
    about |= {"shape": str(case.shape or "default"), "tables": tables, "null": findings[0]}
    return about | {"planted": round(effect, 3), "unit": unit, "detected": findings[1]}


def headline(case: Case, seed: int, truth: Truth) -> pl.DataFrame:
    """Simulate one table and return the rows of the headline."""
    declared = HEADLINES[case.study]
    simulation = simulation_of(declared.analysis)
    schemas = analysis_of(declared.analysis)[0].SCHEMAS
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in declared.tables}
    for language in range(case.languages):
        rng = np.random.default_rng([1, seed, language])
        with tempfile.TemporaryDirectory() as folder:
            drawn = simulation.draw(Path(folder), truth, simulation.Shape(**case.shape), rng)
            tables = analyse(declared.analysis, drawn, seed + 1, **QUICK)
        for name, frames in parts.items():
            labels = {c.name: c.labels for c in schemas[name].columns if c.labels}
            several = {"language": pl.lit(f"l{language}")} if case.languages > 1 else {}
            frames.append(labelled(tables[name], labels).with_columns(**several))
    return declared.rows({name: pl.concat(frames) for name, frames in parts.items()})


def estimate(case: Case, rows: pl.DataFrame) -> float:
    """Return the estimate for the item of a case; nan if the headline does not contain it.

    A word is listed with either gender, so estimates for men are reversed.
    """
    row = rows.filter(pl.col("what").str.starts_with(case.item)).head(1)
    sign = -1 if row["what"].str.ends_with(" male").any() else 1
    return float("nan") if row["value"].count() == 0 else sign * row["value"][0]
