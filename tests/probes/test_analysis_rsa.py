from itertools import product

import numpy as np
import polars as pl
import pytest
from society import society

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.stereotypes import emotions, rsa
from plumbline.probes.stereotypes.rsa import Params

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
    return there, table, rsa.run(there.inputs, PARAMS)["rsa"]


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """Two models of a world with planted emotions."""
    return compared(tmp_path_factory.mktemp("alike"), ("a", "b"), emotion=2.5)


@pytest.fixture(scope="module")
def apart(tmp_path_factory):
    """Two models with nothing in common but how frequent words are."""
    return compared(tmp_path_factory.mktemp("apart"), ("a", "b"))


def row(table, reading, category):
    (found,) = table.filter(reading=reading, category=category).to_dicts()
    return found


def test_run_value_is_the_estimator_on_the_table_of_emotions(alike):
    _, table, found = alike
    shares = {}
    for model in ("a", "b"):
        own = table.filter(model=model, category="country", level="group")
        shares[model] = own["value"].to_numpy().reshape(-1, len(AFFECTS))
    assert len(shares["a"]) == 30
    ten = rsa.similarity(shares["a"], shares["b"], diagonal=False)
    assert row(found, "corrected", "country")["value"] == pytest.approx(ten, abs=1e-3)
    nine = (np.delete(shares[m], FEAR, axis=1) for m in ("a", "b"))
    faithful = row(found, "faithful", "country")
    assert faithful["value"] == pytest.approx(rsa.similarity(*nine, diagonal=True), abs=1e-3)
    assert faithful["n"] == 30
    assert len(found) == 3 * 4
    assert found.select("first", "second").unique().rows() == [("a", "b")]


def test_run_models_that_share_emotions_are_similar_and_others_are_not(alike, apart):
    near, far = (row(found, "corrected", "all") for _, _, found in (alike, apart))
    assert near["low"] > 0.5
    assert near["p"] == 1 / 200
    assert far["high"] < 0.2
    assert far["low"] < 0.05


def test_run_the_diagonal_lifts_small_categories_most(apart):
    table = apart[2]
    for category, n in (("age", 12), ("country", 30), ("profession", 40)):
        lift = row(table, "released", category)["expected"]
        assert lift == pytest.approx(3 / (n + 1), rel=0.05)  # groups may tie
    without = row(table, "corrected", "age")
    assert abs(without["expected"]) < 1e-6
    assert row(table, "released", "age")["value"] > without["value"] + 0.1


def test_run_one_model_has_no_rows(tmp_path):
    assert compared(tmp_path, ("a",))[2].is_empty()


def test_run_leaves_groups_out_that_one_model_lacks(alike, tmp_path):
    there, table, _ = alike
    less = there.inputs._replace(data=tmp_path)
    home = less.tables("emotions")
    home.mkdir(parents=True)
    lost = (pl.col("model") == "b") & (pl.col("group") == there.groups[0][1])
    n = pl.when(lost).then(0).otherwise("n")
    table.with_columns(n=n).write_parquet(home / "emotions.parquet")
    found = rsa.run(less, PARAMS)["rsa"]
    assert row(found, "corrected", "age")["n"] == 11
    assert row(found, "corrected", "all")["n"] == 81


@pytest.mark.parametrize(
    ("second", "merged"), [("{} people", True), ("the {}", True), ("{} things", False)]
)
def test_run_groups_with_two_names_do_not_make_models_similar(second, merged, tmp_path):
    # of nine groups, three pairs have the same profile; the two models share nothing else
    rng, tables, keys = np.random.default_rng(SEED), 200, ("language", "model", "group", "affect")
    print("seed", SEED)
    pairs = [(f"{name}s", second.format(name)) for name in ("red", "blue", "green")]
    names = [*sum(pairs, ()), "x", "y", "z"]
    shares = rng.random((tables, 2, 6, len(AFFECTS)))[:, :, [0, 0, 1, 1, 2, 2, 3, 4, 5]].round(6)
    axes = (map(str, range(tables)), ["m", "n"], names, AFFECTS)
    constants = {"category": "race", "level": "group", "reading": "corrected", "top_k": 9}
    rows = pl.DataFrame(product(*axes), schema=keys, orient="row").with_columns(
        value=pl.Series(shares.ravel()), n=10**6, **{k: pl.lit(v) for k, v in constants.items()}
    )
    inputs = Inputs(("m", "n"), {}, tmp_path)
    rows.write_parquet(inputs.tables("emotions") / "emotions.parquet", mkdir=True)
    found = rsa.run(inputs, PARAMS)["rsa"].filter(category="race")
    corrected, faithful = (found.filter(reading=x) for x in ("corrected", "faithful"))
    assert (set(corrected["n"]), set(faithful["n"])) == ({6 if merged else 9}, {9})
    assert ((corrected["p"] <= 0.05).sum() <= 16) == merged
    assert faithful["p"].is_null().all() == merged
