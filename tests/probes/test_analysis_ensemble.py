"""Analysis ``ensemble`` on classifiers that are right as often as planted."""

import numpy as np
import polars as pl
import pytest
from classified import outputs
from scipy.stats import t as student

from plumbline.probes.leaning import ensemble
from plumbline.probes.leaning.ensemble import (
    BEST,
    BLIND,
    ITSELF,
    MEAN,
    ONE,
    ONES,
    PARTISAN,
    Trained,
    all_runs,
    first_run,
    over_trainings,
    without_seeds,
)
from plumbline.probes.leaning.predictions import Case, Runs
from plumbline.probes.stats.crossed import Part

SEED = 20261122
PARAMS = ensemble.Params(
    version="0.1.0",
    partisan=["news-left", "news-right", "social-left"],
    positive={"planted": "hate"},
    max_ensembles=30,
    n_bootstrap=200,
)
CORPORA = ("news-left", "news-right", "social-left", "social-center")


@pytest.fixture(scope="module")
def independent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("independent")
    there = outputs(folder, lambda *_: 0.7, words=1500, corpora=CORPORA, seed=SEED)
    return ensemble.run(there.inputs, PARAMS)


def case_of(true):
    ids = [f"t{i}" for i in range(len(true))]
    return Case("m", "t", ids, ids, true, {}, {})


def test_ensembles_of_identical_models_are_the_model():
    rng = np.random.default_rng(SEED)
    probability, case = rng.random(60), case_of(rng.random(60) < 0.5)
    runs = Runs([(1, s) for s in range(3)], np.tile(probability, (3, 1)))
    members = {"a": runs, "b": runs, "c": runs}
    trained = Trained(case, members, runs, 50, 1)
    voters = [*all_runs(trained), *first_run(trained)]
    names = {one.name for one in voters}
    assert names == {PARTISAN, MEAN, BEST, BLIND, ONES, ITSELF, *(ONE.format(c) for c in "abc")}
    for one in voters:
        assert (one.predicted == (probability > 0.5)).all(), one.name


def test_differences_of_identical_models_are_zero(tmp_path):
    inputs = outputs(tmp_path, lambda *_: 0.7, words=20, corpora=CORPORA, seed=SEED).inputs
    path = inputs.outputs("finetuned_classifiers", "m") / "planted/all.parquet"
    frame = pl.read_parquet(path)
    itself = frame.filter(corpus="").select("id", "class", "logprob_nats").unique(["id", "class"])
    same = frame.drop("logprob_nats").join(itself, on=["id", "class"])
    same.select(frame.columns).write_parquet(path)
    found = ensemble.run(inputs, PARAMS)["differences"]
    for name in ("value", "low", "high"):
        assert found[name].abs().max() == 0
    assert set(found["p"].drop_nulls()) == {1}


def test_scores_of_three_independent_voters_follow_condorcet(independent):
    rows = independent["scores"].filter(metric="accuracy", reading="corrected")
    p = rows.filter(ensemble=MEAN)["value"].item()
    assert p == pytest.approx(0.7, abs=0.01)
    for name in (PARTISAN, ITSELF, ONES):
        found = rows.filter(ensemble=name)["value"].item()
        assert found == pytest.approx(3 * p**2 - 2 * p**3, abs=0.02), name


def test_differences_voting_alone_is_not_taken_for_partisanship(independent):
    rows = independent["differences"].filter(metric="balanced accuracy")
    by = {row["baseline"]: row for row in rows.to_dicts()}
    assert by[MEAN]["low"] > 0.04  # better than its members
    assert by[MEAN]["p_bh"] < 0.05
    for name in (ONES, ITSELF):  # and no better than as many that differ in their seeds
        assert by[name]["baseline_size"] == 3
        assert abs(by[name]["value"]) < 0.02


def test_differences_planted_partisanship_is_significant(tmp_path):
    # each corpus alone errs on another group: of three voters two are right where one errs
    def good(corpus, group):
        worst = {"news-left": "a", "news-right": "b", "social-left": "c"}.get(corpus)
        return 0.05 if group == worst else 0.9

    design = {"corpora": CORPORA[:3], "pretraining": 4, "groups": ("a", "b", "c")}
    inputs = outputs(tmp_path, good, words=80, seed=SEED, **design).inputs
    rows = ensemble.run(inputs, PARAMS)["differences"]
    (row,) = rows.filter(baseline=ONES, metric="balanced accuracy").to_dicts()
    assert row["low"] > 0.05
    assert row["p_bh"] < 0.05


def test_best_member_on_the_same_texts_is_biased():
    rng = np.random.default_rng(SEED)
    shares = {BEST: [], BLIND: []}
    for _ in range(100):
        true = rng.random(80) < 0.5
        members = {}
        for name in "abcdef":
            right = rng.random((1, 80)) < 0.7
            members[name] = Runs([(1, 1)], np.where(right == true, 0.8, 0.2))
        for voters in all_runs(Trained(case_of(true), members, None, 5, 1)):
            if voters.name in shares:
                shares[voters.name].append((voters.predicted == true).mean())
    assert np.mean(shares[BEST]) > 0.74  # all are right on 0.7 of the texts
    assert np.mean(shares[BLIND]) == pytest.approx(0.7, abs=0.02)


def test_run_needs_two_partisan_corpora_and_two_pretrainings(tmp_path):
    design = {"words": 20, "seed": SEED, "pretraining": 1}
    one = outputs(tmp_path / "one", lambda *_: 0.7, corpora=("news-left",), **design)
    assert ensemble.run(one.inputs, PARAMS) == {}
    several = outputs(tmp_path / "several", lambda *_: 0.7, corpora=CORPORA, **design)
    found = ensemble.run(several.inputs, PARAMS)["differences"]
    for column in ("low", "high", "p", "p_bh", "detectable"):
        assert found[column].null_count() == len(found)


def test_over_trainings_adds_the_variances_of_jackknife_and_texts():
    left = np.array([[4.0, 0.0, 0.0], [3.5, 0.0, 0.0], [1.5, 0.0, 0.0]])
    found = over_trainings(np.array([3.0, 0.0, 0.0]), left, Part(0.5, 50), 0.95)
    total = 7 / 3 + 0.5  # 7 / 3 as of the mean of 1, 2 and 6
    df = total**2 / ((7 / 3) ** 2 / 2 + 0.5**2 / 50)
    assert found.p == pytest.approx(2 * student.sf(3 / total**0.5, df))
    assert (found.error, found.df) == pytest.approx((total**0.5, df))


def test_without_seeds_leaves_out_all_runs_of_a_training():
    rng, texts = np.random.default_rng(SEED), 40
    case = case_of(rng.random(texts) < 0.5)
    seeds = [(1, 10), (1, 11), (2, 20), (3, 30)]
    members = {c: Runs(seeds, rng.random((4, texts))) for c in ("a", "b")}
    itself = Runs([(0, own[1]) for own in seeds], rng.random((4, texts)))
    weights = case.weights(3, 1)
    trained = Trained(case, members, itself, 30, 1)
    for out, scored in without_seeds(trained, weights).items():
        left = [own for own in seeds if own[0] != out]
        kept = {c: runs.pick(left) for c, runs in members.items()}
        rest = itself.pick([(0, own[1]) for own in left])
        voters = all_runs(trained._replace(members=kept, itself=rest))
        wanted = {v.name: v for v in voters if "best" not in v.name}
        assert set(scored) == set(wanted)
        for name, (drawn, size) in scored.items():
            mean = case.measured(wanted[name].predicted, weights).mean(axis=0)
            assert np.allclose(drawn, mean, equal_nan=True)
            assert size == wanted[name].size
