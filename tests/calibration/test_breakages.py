"""Analyses that are broken are seen as broken by their simulations."""

import importlib

import polars as pl
import pytest

from calibration.calibrate import Chunk, simulate, simulation_of
from calibration.rates import rows
from plumbline.probes.report.error_rates import COVERAGE

pytestmark = pytest.mark.slow


def coverage(analysis, truth, test):
    """Return how often intervals of a test hold the truth where most is planted, in four tables."""
    shape = next(iter(simulation_of(analysis).SHAPES))
    table = rows(analysis, simulate(Chunk(analysis, shape, truth, 0, 4), 1))
    return table.filter(test=test, measure=COVERAGE).sort("effect")["value"][-1]


def swap(column, one, other):
    """Return a change of a table that takes one value for another."""
    return lambda table: table.with_columns(pl.col(column).replace({one: other, other: one}))


@pytest.mark.parametrize(
    ("analysis", "truth", "test", "files", "change"),
    [
        ("pmi", "words planted", "pmi: smoothed", "people/*", swap("gender", 0, 1)),
        (
            "values",
            "genders differ",
            "gender, corrected, pooled, value: difference",
            "outputs/agreement/*/*/*",
            swap("gender", "feminine", "masculine"),
        ),
        (
            "compass",
            "corpora",
            "shifts, interval: corrected",
            "outputs/stances/*/*/*",
            swap("corpus", "left", "right"),
        ),
    ],
    ids=["pmi", "values", "compass"],
)
def test_swapped_sides_are_seen(analysis, truth, test, files, change, monkeypatch):
    simulation, whole = simulation_of(analysis), coverage(analysis, truth, test)
    draw = simulation.draw

    def draw_swapped(folder, *arguments):
        drawn = draw(folder, *arguments)
        paths = list(folder.glob(f"**/{files}.parquet"))
        assert paths
        for path in paths:
            change(pl.read_parquet(path)).write_parquet(path)
        return drawn

    monkeypatch.setattr(simulation, "draw", draw_swapped)
    broken = coverage(analysis, truth, test)
    assert whole > 0.8
    assert broken < 0.5


def test_intervals_of_half_the_confidence_are_seen(monkeypatch):
    module = importlib.import_module("plumbline.probes.politicians.pmi")
    intervals, whole = module.intervals, coverage("pmi", "words planted", "pmi: smoothed")

    def narrow(draws, smoothing, seed, confidence, *arguments):
        return intervals(draws, smoothing, seed, confidence / 2, *arguments)

    monkeypatch.setattr(module, "intervals", narrow)
    broken = coverage("pmi", "words planted", "pmi: smoothed")
    assert whole > 0.9
    assert broken < 0.7
