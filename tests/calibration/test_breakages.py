"""Analyses that are broken are seen as broken by their simulations."""

import importlib

import numpy as np
import pytest

from calibration.calibrate import Chunk, simulate, simulation_of
from calibration.rates import rows
from calibration.truth import NULL
from plumbline.probes.report import error_rates

pytestmark = pytest.mark.slow


def rates(analysis):
    simulation = simulation_of(analysis)
    truth = next(name for name, truth in simulation.TRUTHS.items() if truth.kind == NULL)
    chunk = Chunk(analysis, next(iter(simulation.SHAPES)), truth, 0, 30)
    return error_rates.lines(rows(analysis, simulate(chunk, 1)))


def test_narrow_intervals_of_pmi_are_seen(monkeypatch):
    module = importlib.import_module("calibration.calibrate")
    true = module.replicate

    def broken(*arguments):
        tables, outcomes = true(*arguments)
        middle = {name: (frame["low"] + frame["high"]) / 2 for name, frame in outcomes.items()}
        for name, frame in outcomes.items():
            half = (frame["high"] - frame["low"]) / 6
            outcomes[name] = frame.with_columns(low=middle[name] - half, high=middle[name] + half)
        return tables, outcomes

    whole = [line["coverage of intervals"][0] for line in rates("pmi")]
    monkeypatch.setattr(module, "replicate", broken)
    lines = rates("pmi")
    assert min(whole) > 0.9
    assert all("coverage" in " ".join(line["outside"]) for line in lines)
    assert np.max([line["coverage of intervals"][0] for line in lines]) < 0.7
