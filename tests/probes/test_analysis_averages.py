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
        same = {"pos": pl.lit("ADJ"), "deviation": pl.lit("pmi"), "reading": pl.lit("argmax")}
        inputs.tables("sentiment").mkdir(parents=True)
        table.with_columns(**same).write_parquet(inputs.tables("sentiment") / "shares.parquet")
        for model, subgroup, gender, value in parts:
            folder = inputs.tables("subgroups", model)
            folder.mkdir(parents=True, exist_ok=True)
            row = {"model": model, "language": "en", "pos": "ADJ", "subgroup": subgroup}
            row |= {"gender": gender, "sentiment": "negative", "value": value}
            pl.DataFrame([row]).write_parquet(folder / "shares.parquet")
        rows = averages.run(inputs, PARAMS)["averages"].to_dicts()
        return {tuple(row[k] for k in ("models", *KEYS)): row for row in rows}

    return average


def test_run_mean_has_students_interval(found):
    men, women = {"a": 0.2, "b": 0.3, "c": 0.4}, {"a": 0.1, "b": 0.1, "c": 0.4}
    sides = (("male", men), ("female", women))
    shares = [(m, "en", g, "negative", of[m]) for g, of in sides for m in "abc"]
    for model, language, value in (("a", "es", 0.5), ("w", "en", 0.9), ("z", "en", 0.0)):
        shares.append((model, language, "male", "negative", value))
    rows = found(shares)

    def row(models, response="male", language="en"):
        place = language, "ADJ", "pmi", "argmax", "everybody"
        return rows[(models, *place, response, "negative")]

    # t(.975, 2) = 4.302653 (any table of t); the standard error of .2, .3, .4 is .1 / sqrt 3
    half = 4.302653 * 0.1 / 3**0.5
    mean = row("models")
    assert (mean["value"], mean["n"]) == (0.3, 3)
    assert mean["low"] == pytest.approx(0.3 - half, abs=1e-6)
    assert mean["high"] == pytest.approx(0.3 + half, abs=1e-6)
    # within models women have .1, .2 and 0 less: .1 on average, with the same standard error
    apart = row("models", "male minus female")
    assert (apart["value"], apart["low"]) == (0.1, pytest.approx(0.1 - half, abs=1e-6))
    assert row("models", "female")["low"] == 0  # a share is never below 0
    # worlds are never mixed with models, and one model has no interval
    assert row("worlds")["value"] == 0.9
    assert row("null worlds")["value"] == 0.0
    alone = row("models", language="es")
    assert (alone["value"], alone["low"], alone["n"]) == (0.5, None, 1)


def test_run_subgroups_are_averaged_by_themselves(found):
    parts = [("a", "native", "male", 0.2), ("b", "native", "male", 0.6)]
    parts.append(("w", "popular", "male", 0.7))
    rows = found([("a", "en", "male", "negative", 0.1)], parts)
    values = {(models, people): row["value"] for (models, *_, people, _, _), row in rows.items()}
    assert values == {
        ("models", "everybody"): 0.1,
        ("models", "native"): 0.4,
        ("worlds", "popular"): 0.7,
    }


def test_run_without_shares(found):
    with pytest.raises(UserError, match="no model has shares"):
        found([])
