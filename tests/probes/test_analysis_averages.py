"""Shares averaged over models: the mean, and an interval whose cluster is the model."""

from types import SimpleNamespace

import polars as pl
import pytest

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.politicians import averages

PARAMS = averages.Params(version="1.0.0")
KEYS = ["language", "pos", "deviation", "reading", "people", "response", "sentiment"]


@pytest.fixture
def found(tmp_path, monkeypatch):
    """Average shares of the models a, b and c, and of two worlds; c has no Spanish."""
    kinds = {"a": None, "b": None, "c": None, "w": "positive", "z": "negative"}
    facts = {name: SimpleNamespace(control=kind) for name, kind in kinds.items()}
    monkeypatch.setattr(averages, "params_of", lambda name, _: facts[name])
    inputs = Inputs(tuple(kinds), {}, tmp_path)

    def average(shares, parts=()):
        names = ["model", "language", "gender", "sentiment", "value"]
        table = pl.DataFrame(shares, schema=names, orient="row")
        same = {name: pl.lit(0, pl.Int64) for name in ("pos", "deviation", "reading")}
        inputs.tables("sentiment").mkdir(parents=True)
        table.with_columns(**same).write_parquet(inputs.tables("sentiment") / "shares.parquet")
        for model, subgroup, gender, value in parts:
            folder = inputs.tables("subgroups", model)
            folder.mkdir(parents=True, exist_ok=True)
            row = {"model": model, "language": "en", "pos": 0, "subgroup": subgroup}
            row |= {"gender": gender, "sentiment": 1, "value": value}
            pl.DataFrame([row]).write_parquet(folder / "shares.parquet")
        rows = averages.run(inputs, PARAMS)["averages"].to_dicts()
        return {tuple(row[k] for k in ("models", *KEYS)): row for row in rows}

    return average


def test_the_mean_over_three_models_has_students_interval(found):
    men, women = {"a": 0.2, "b": 0.3, "c": 0.4}, {"a": 0.1, "b": 0.1, "c": 0.4}
    shares = [(m, "en", g, 1, of[m]) for g, of in ((0, men), (1, women)) for m in "abc"]
    shares += [("a", "es", 0, 1, 0.5), ("w", "en", 0, 1, 0.9), ("z", "en", 0, 1, 0.0)]
    rows = found(shares)
    place = ("en", 0, 0, 0, 0)
    own = rows[(0, *place, 0, 1)]
    # t(.975, 2) = 4.302653 (any table of t); the standard error of .2, .3, .4 is .1 / sqrt 3
    half = 4.302653 * 0.1 / 3**0.5
    assert (own["value"], own["n"], own["cluster"]) == (0.3, 3, "model")
    assert own["low"] == pytest.approx(0.3 - half, abs=1e-6)
    assert own["high"] == pytest.approx(0.3 + half, abs=1e-6)
    assert (own["lowest"], own["highest"], own["p"]) == (0.2, 0.4, None)
    # within models women have .1, .2 and 0 less: .1 on average, with the same standard error
    apart = rows[(0, *place, averages.RESPONSES.index("male minus female"), 1)]
    assert (apart["value"], apart["low"]) == (0.1, pytest.approx(0.1 - half, abs=1e-6))
    # a share is never below 0
    assert rows[(0, *place, 1, 1)]["low"] == 0
    # worlds are never mixed with models, and one model has no interval
    assert rows[(1, *place, 0, 1)]["value"] == 0.9
    assert rows[(2, *place, 0, 1)]["value"] == 0.0
    alone = rows[(0, "es", 0, 0, 0, 0, 0, 1)]
    assert (alone["value"], alone["low"], alone["n"]) == (0.5, None, 1)
    assert alone["method"] == "none: one model"


def test_parts_of_the_people_are_averaged_by_themselves(found):
    native, popular = (averages.SUBGROUPS.index(name) for name in ("native", "popular"))
    parts = [("a", native, 0, 0.2), ("b", native, 0, 0.6), ("w", popular, 0, 0.7)]
    rows = found([("a", "en", 0, 1, 0.1)], parts)
    argmax = averages.READINGS.index("argmax")
    of = {name: averages.PEOPLE.index(name) for name in ("native", "popular")}
    own = rows[(0, "en", 0, 0, argmax, of["native"], 0, 1)]
    assert (own["value"], own["n"]) == (0.4, 2)
    assert rows[(1, "en", 0, 0, argmax, of["popular"], 0, 1)]["value"] == 0.7
    assert rows[(0, "en", 0, 0, 0, 0, 0, 1)]["value"] == 0.1
    assert len(rows) == 3


def test_without_shares_there_is_nothing_to_average(found):
    with pytest.raises(UserError, match="no model has shares"):
        found([])
