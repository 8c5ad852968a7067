"""The analysis ``reliability`` on simulated responses: planted parts and items, and a null."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from calibration.reliability import reliability as simulated
from plumbline.probes.reliability import reliability as analysis

SEED = 5
SHAPE = simulated.Shape()
MANY = simulated.SHAPES["20 statements, 30 templates, 3 seeds, 2 languages"]
MANY = MANY.model_copy(update={"templates": 90})  # of 30 the larger is found in .7


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
    found, _ = tables(tmp_path, "parts, and items", seed=8)
    for term, row in parts(found).items():
        true = simulated.PARTS[term] * simulated.UNIT**2
        assert row["low"] <= true <= row["high"], term
    assert parts(found)["statement x template"]["unbiased"] == pytest.approx(0.005, rel=0.25)


def test_the_items_that_work_otherwise_are_found_with_their_sign(tmp_path):
    found, drawn = tables(tmp_path, "parts, and items")
    own = found["items"].filter(pl.col("statement") != "", pl.col("p_bh") <= 0.05)
    large = dict(zip(drawn.known["names"], simulated.OTHERWISE, strict=False))
    for row in own.to_dicts():
        assert row["value"] * large.get(row["statement"], 0) > 0, row
    assert {"s001", "s002"} <= set(own["statement"])
    lost = found["items"].filter(pl.col("statement") == "s002")["anchor"]
    assert lost.to_list() == [False]


@pytest.mark.parametrize("truth", ["statements alone", "language"])
def test_no_item_is_found_where_none_was_planted(tmp_path, truth):
    found, _ = tables(tmp_path, truth)
    tested = found["items"].drop_nulls("p")
    assert len(tested) == SHAPE.statements
    assert tested["p_bh"].min() > 0.05
    if truth == "statements alone":
        own = parts(found)
        assert own["statement"]["share"] > 0.75
        assert max(own[t]["low"] for t in own if t not in ("statement", "rest")) < 1e-4


def test_odds_of_agreement_are_found_with_their_sign(tmp_path):
    found, _ = tables(tmp_path, "parts, and items", MANY)
    own = found["odds"].filter(pl.col("probe") == "agreement", pl.col("p_bh") <= 0.05)
    assert {"s000", "s001", "s002"} <= set(own["statement"])
    large = dict(zip(("s000", "s001", "s002"), simulated.OTHERWISE, strict=True))
    for row in own.to_dicts():
        assert row["value"] * large.get(row["statement"], 0) > 0, row
    few, _ = tables(tmp_path / "few", "parts, and items")
    assert {*few["odds"]["reason"]} >= {"5 templates in all languages: 10 are needed"}


def test_every_p_is_an_outcome_and_every_part_has_its_target(tmp_path):
    shape = simulated.SHAPES["20 statements, 3 templates, 5 seeds, 4 languages, 10% lost"]
    found, drawn = tables(tmp_path, "parts, and items", shape)
    outcomes = simulated.outcomes(found, drawn)
    tests = sum(frame["p"].count() for frame in outcomes.values())
    assert tests == sum(table["p"].count() for table in found.values()) == 20 * 4
    assert [len(outcomes[f"parts: {term}"]) for term in simulated.PARTS] == [1] * 7
    assert outcomes["items"].filter(pl.col("effect") > 2)["effect"].to_list() == [2.6]
    shares = found["valid"].filter(pl.col("probe") == "stances", pl.col("facet") == "")
    assert shares["value"].item() == pytest.approx(0.9, abs=0.05)


def test_reml_agrees_where_nothing_is_lost_and_a_facet_of_two_has_a_reason(tmp_path):
    found, _ = tables(tmp_path, "parts, and items", reml_scores=600)
    for row in parts(found).values():
        if row["unbiased"] > 0.002:
            assert row["reml"] == pytest.approx(row["unbiased"], rel=0.05)
    two = found["parts"].filter(pl.col("term") == "language", pl.col("probe") == "agreement")
    assert two["reason"].to_list() == ["2 levels of language: 3 are needed"]
    assert two["value"].to_list() == [None]
