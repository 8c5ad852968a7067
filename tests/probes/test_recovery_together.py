"""What several worlds say together, held against what was planted in all of them."""

import json

import polars as pl
import pytest
from recovering import plant

from plumbline.probes.controls.recovery import RECOVERY
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians.recovery import together
from plumbline.probes.politicians.recovery.control import Control, Params, planted
from plumbline.probes.stats.estimate import Table

SIZES = {"one": "base", "two": "small", "tres": "base", "cuatro": "small"}
WORDS = {"word": ["a", "b", "c", "d"], "pos": ["ADJ"] * 4, "sentiment": ["positive"] * 4}
WORDS |= {"frequency_nats": [0.0] * 4}


@pytest.fixture
def worlds(tmp_path):
    """Four worlds of two languages and two sizes; nothing is planted in the second."""
    table = Table(RECOVERY, 0.95)
    inputs = Inputs(tuple(SIZES), {}, tmp_path)
    for name, size in SIZES.items():
        effect = [0.0] * 4 if name == "two" else [2.0, -2.0, 0.0, 0.0]
        language = "en" if name in ("one", "two") else "es"
        plant(inputs.weights(name), WORDS | {"log_ratio_nats": effect}, language=language)
        facts = {"family": "F", "size": size, "control": "positive"}
        folder = tmp_path / "samples/worlds" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "manifest.json").write_text(json.dumps({"model": facts}), encoding="utf-8")
    return [Control(inputs, name, planted(inputs.weights(name)), table, Params()) for name in SIZES]


def test_lists_of_a_planted_and_a_neutral_world_add_up(worlds):
    lists = pl.DataFrame(
        {"pos": 0, "gender": [0, 1], "people": 10, "list_length": 1, "language": "en", "unit": 0}
    )
    for world in worlds[:2]:
        folder = world.inputs.tables("pmi", world.model)
        folder.mkdir(parents=True)
        lists.write_parquet(folder / "pmi.parquet")
    pmi = []
    for some in (worlds[:1], worlds[1:2], worlds[:2]):
        (table,) = together._pooled(some, lists)
        pmi.append({(r["word"], r["gender"]): r["true"] for r in table.iter_rows(named=True)})
    one, neutral, both = pmi
    assert list(neutral.values()) == pytest.approx([0] * 8, abs=0.05)
    # half of the lists say nothing of gender
    assert 0 < both["a", 1] < one["a", 1]
    assert 0 > both["a", 0] > one["a", 0]
    assert [both["c", 0], both["c", 1]] == pytest.approx([0, 0], abs=0.05)


def test_coefficients_of_differences_without_error_are_those_that_were_planted(worlds):
    """20 points, 5 more of small models, 30 less in Spanish: the same whatever is the reference."""
    response = [20.0, 25.0, -10.0, -5.0]
    rows = [(0, "", ""), (2, "small", "base"), (3, "es", "en"), (1, "F", "F")]
    part = pl.DataFrame(rows, schema=["factor", "level", "reference"], orient="row")
    found = together._fitted(worlds, response, part)
    assert found[:3].to_list() == pytest.approx([20, 5, -30])
    assert found[3] is None
    rows = [(0, "", ""), (2, "base", "small"), (3, "en", "es")]
    part = pl.DataFrame(rows, schema=["factor", "level", "reference"], orient="row")
    assert together._fitted(worlds, response, part).to_list() == pytest.approx([-5, -5, 30])
