"""The analysis ``reliability`` on simulated responses: planted parts, and a null."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calibration.reliability import reliability as simulated
from plumbline.probes.reliability import reliability as analysis

SEED = 5
SHAPE = simulated.Shape()


def tables(folder, truth, shape=SHAPE, seed=SEED, **settings):
    print("seed", seed)
    drawn = simulated.draw(
        folder, simulated.TRUTHS[truth], shape, np.random.default_rng([seed, len(truth)])
    )
    params = analysis.Params.model_validate({"version": "0.1.0"} | simulated.PARAMS | settings)
    return analysis.run(drawn.inputs, params), drawn


def parts(found):
    own = found["parts"].filter(pl.col("probe") == "stances", pl.col("language") != "")
    own = own.filter(pl.col("model") != "", pl.col("value").is_not_null())
    return {row["term"]: row for row in own.to_dicts()}


def test_planted_parts_are_in_their_intervals(tmp_path):
    found, _ = tables(tmp_path, "parts")
    outside = [
        term
        for term, row in parts(found).items()
        if not row["low"] <= simulated.PARTS[term] * simulated.UNIT**2 <= row["high"]
    ]
    assert len(outside) <= 1  # of seven 95% intervals
    assert parts(found)["statement x template"]["unbiased"] == pytest.approx(0.005, rel=0.25)


def test_parts_that_are_0_have_intervals_that_begin_at_0(tmp_path):
    found, _ = tables(tmp_path, "statements alone")
    own = parts(found)
    assert own["statement"]["share"] > 0.75
    assert max(own[t]["low"] for t in own if t not in ("statement", "rest")) < 1e-4


def test_every_part_has_its_target(tmp_path):
    shape = simulated.SHAPES["20 statements, 3 templates, 5 seeds, 10% lost"]
    found, drawn = tables(tmp_path, "parts", shape)
    outcomes = simulated.outcomes(found, drawn)
    assert [len(outcomes[f"parts: {term}"]) for term in simulated.PARTS] == [1] * 7
    shares = found["valid"].filter(pl.col("probe") == "stances", pl.col("facet") == "")
    assert shares["value"].item() == pytest.approx(0.9, abs=0.05)


def test_reml_agrees_where_nothing_is_lost(tmp_path):
    found, _ = tables(tmp_path, "parts", reml_scores=600)
    for row in parts(found).values():
        if row["unbiased"] > 0.002:
            assert row["reml"] == pytest.approx(row["unbiased"], rel=0.05)
