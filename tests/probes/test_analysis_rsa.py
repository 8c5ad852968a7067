import numpy as np
import polars as pl
import pytest
from society import society

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.site.controls import FOUND, HOLD, YES, judged
from plumbline.probes.stereotypes import emotions, recovery, rsa
from plumbline.probes.stereotypes import similarity as estimator
from plumbline.probes.stereotypes.rsa import READINGS, Params

SEED = 223
FEAR = AFFECTS.index("fear")
PARAMS = Params(version="0.1.0", n_permutations=199)
PROFILES = emotions.Params(
    version="0.1.0", top_k={"corrected": 15}, n_permutations=99, n_bootstrap=100
)


def compared(folder, models, **planted):
    there = society(folder, SEED, 0.0, models=models, **planted)
    table = emotions.run(there.inputs, PROFILES)["emotions"]
    home = there.inputs.tables("emotions")
    home.mkdir(parents=True)
    table.write_parquet(home / "emotions.parquet")
    found = rsa.run(there.inputs, PARAMS)
    home = there.inputs.tables("rsa")
    home.mkdir()
    found["rsa"].write_parquet(home / "rsa.parquet")
    return there, table, found


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Two models of a world with planted emotions."""
    return compared(tmp_path_factory.mktemp("alike"), ("a", "b"), emotion=2.5)


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """Two models with nothing in common but how frequent words are."""
    return compared(tmp_path_factory.mktemp("apart"), ("a", "b"))


def row(table, reading, category):
    (one,) = table.filter(reading=READINGS.index(reading), category=category).to_dicts()
    return one


def test_a_cell_is_the_estimator_on_the_table_of_emotions(alike):
    _, table, found = alike
    shares = {}
    for model in ("a", "b"):
        own = table.filter(model=model, category="country", level=0).sort("group", "affect")
        shares[model] = own["value"].to_numpy().reshape(-1, len(AFFECTS))
    assert len(shares["a"]) == 30
    ten = estimator.rsa(shares["a"], shares["b"], diagonal=False)
    assert row(found["rsa"], "corrected", "country")["value"] == pytest.approx(ten, abs=1e-3)
    nine = (np.delete(shares[m], FEAR, axis=1) for m in ("a", "b"))
    faithful = row(found["rsa"], "faithful", "country")
    assert faithful["value"] == pytest.approx(estimator.rsa(*nine, diagonal=True), abs=1e-3)
    assert (faithful["dimensions"], faithful["n"]) == (9, 30)
    assert faithful["shift"] == pytest.approx(faithful["value"] - 1, abs=1e-6)


def test_every_category_and_all_in_three_readings(alike):
    table = alike[2]["rsa"]
    assert len(table) == 3 * 4
    assert table["category"].unique().sort().to_list() == ["age", "all", "country", "profession"]
    assert table.select("first", "second").unique().rows() == [("a", "b")]
    assert table["family"].unique().to_list() == [4]


def test_models_that_share_emotions_are_alike_and_others_are_not(alike, apart):
    near, far = (row(found["rsa"], "corrected", "all") for _, _, found in (alike, apart))
    assert near["low"] > 0.5
    assert near["p"] == 1 / 200
    assert far["high"] < 0.2
    assert far["low"] < 0.05


def test_the_diagonal_lifts_small_categories_most(apart):
    table = apart[2]["rsa"]
    for category, n in (("age", 12), ("country", 30), ("profession", 40)):
        lift = row(table, "released", category)["expected"]
        assert lift == pytest.approx(3 / (n + 1), rel=0.05)  # groups may tie
    without = row(table, "corrected", "age")
    assert abs(without["expected"]) < 1e-6
    assert row(table, "released", "age")["value"] > without["value"] + 0.1


def verdicts(there):
    """Return what the report says of what recovery reads in the tables, by reading and question."""
    table = recovery.run(there.inputs, recovery.Params(n_bootstrap=100))["rsa"]
    found = [judged("rsa", row) for row in table.filter(model="a").to_dicts()]
    return {(row["way"], row["reading"], row["question"]): row["verdict"] for row in found}


def test_related_worlds_are_as_alike_as_they_were_planted(alike):
    found = verdicts(alike[0])
    assert {question for _, _, question in found} == {FOUND, HOLD}
    assert set(found.values()) == {YES}


@pytest.mark.parametrize("broken", ["sign", "groups"])
def test_that_control_fails_where_the_similarity_is_wrong(alike, tmp_path, broken):
    there, table, right = alike
    inputs = there.inputs._replace(data=tmp_path)
    for model in ("a", "b"):
        inputs.weights(model).parent.mkdir(parents=True, exist_ok=True)
        inputs.weights(model).symlink_to(there.inputs.weights(model))
    for name in ("emotions", "rsa"):
        inputs.tables(name).mkdir(parents=True)
    if broken == "groups":  # in one model each has the profile of another one
        names = [group for _, group in there.groups]
        names = dict(zip(names, sorted(names, key=lambda name: name[::-1]), strict=True))
        mixed = pl.when(pl.col("model") == "b").then(pl.col("group").replace(names))
        mixed = table.with_columns(group=mixed.otherwise("group"))
        mixed.write_parquet(inputs.tables("emotions") / "emotions.parquet")
        told = rsa.run(inputs, PARAMS)["rsa"]
    else:
        told = right["rsa"].with_columns(
            value=-pl.col("value"), low=-pl.col("high"), high=-pl.col("low")
        )
    table.write_parquet(inputs.tables("emotions") / "emotions.parquet")
    told.write_parquet(inputs.tables("rsa") / "rsa.parquet")
    found = verdicts(there._replace(inputs=inputs))
    assert len(found) == len(verdicts(there))
    assert YES not in found.values()


def test_one_model_has_no_pairs(tmp_path):
    there, _, found = compared(tmp_path, ("a",))
    assert found["rsa"].is_empty()
    assert "rsa" not in recovery.run(there.inputs, recovery.Params(n_bootstrap=100))


def test_groups_that_one_model_lacks_are_left_out(alike, tmp_path):
    there, table, _ = alike
    less = there.inputs._replace(data=tmp_path)
    home = less.tables("emotions")
    home.mkdir(parents=True)
    lost = (pl.col("model") == "b") & (pl.col("group") == there.groups[0][1])
    covered = pl.when(lost).then(0).otherwise("covered")
    table.with_columns(covered=covered).write_parquet(home / "emotions.parquet")
    found = rsa.run(less, PARAMS)["rsa"]
    assert row(found, "corrected", "age")["n"] == 11
    assert row(found, "corrected", "all")["n"] == 81


def test_the_same_table_again(alike):
    there, _, found = alike
    assert rsa.run(there.inputs, PARAMS)["rsa"].equals(found["rsa"])
