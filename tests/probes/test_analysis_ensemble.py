"""The analysis ensemble on classifiers that are right as often as planted."""

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
    _choices,
    _over_trainings,
    all_runs,
    first_run,
    without_seeds,
)
from plumbline.probes.leaning.predictions import Case, Runs
from plumbline.probes.stats.classification import VOTES

SEED = 20261122
PARAMS = ensemble.Params(
    version="0.1.0",
    partisan=["news-left", "news-right", "social-left"],
    positive={"planted": "hate"},
    max_ensembles=30,
    n_bootstrap=200,
)
FAITHFUL, CORRECTED = range(2)
CORPORA = ("news-left", "news-right", "social-left", "social-center")


def value(table, **wanted):
    return table.filter(metric="accuracy", **wanted)["value"].item()


@pytest.fixture(scope="module")
def independent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("independent")
    there = outputs(folder, lambda *_: 0.7, number=1500, corpora=CORPORA, seed=SEED)
    return ensemble.run(there.inputs, PARAMS)


def same(number, texts=60):
    rng = np.random.default_rng(SEED)
    probability = rng.random(texts)
    true = rng.random(texts) < 0.5
    case = Case("m", "t", [f"t{i}" for i in range(texts)], true, {}, {})
    runs = Runs([(1, s) for s in range(number)], np.tile(probability, (number, 1)))
    return case, runs, probability > 0.5


def test_ensembles_of_identical_models_are_the_model():
    case, runs, predicted = same(3)
    members = {"a": runs, "b": runs, "c": runs}
    every = [*all_runs(case, members, runs, 50, 1), *first_run(case, list(members.values()))]
    names = {voters.name for voters in every}
    assert names == {PARTISAN, MEAN, BEST, BLIND, ONES, ITSELF, *(ONE.format(c) for c in "abc")}
    for voters in every:
        assert (voters.predicted == predicted).all(), voters.name


def test_identical_models_differ_in_nothing(tmp_path):
    there = outputs(tmp_path, lambda *_: 0.7, number=20, corpora=CORPORA, seed=SEED)
    path = there.inputs.outputs("finetuned_classifiers", "m") / "planted/all.parquet"
    frame = pl.read_parquet(path)
    itself = frame.filter(corpus="").select("id", "class", "logprob_nats").unique(["id", "class"])
    frame.drop("logprob_nats").join(itself, on=["id", "class"]).select(frame.columns).write_parquet(
        path
    )
    found = ensemble.run(there.inputs, PARAMS)["differences"]
    for name in ("value", "low", "high"):
        assert found[name].abs().max() == 0
    assert found["p"].drop_nulls().to_list() == [1] * found["p"].drop_nulls().len()


def test_three_independent_models_are_right_in_three_p_squared_minus_two_p_cubed(independent):
    scores = independent["scores"]
    p = value(scores, ensemble=MEAN, vote="", reading=CORRECTED)
    assert p == pytest.approx(0.7, abs=0.01)
    wanted = 3 * p**2 - 2 * p**3
    for name in (PARTISAN, ITSELF, ONES):
        found = value(scores, ensemble=name, vote="hard", reading=CORRECTED)
        assert found == pytest.approx(wanted, abs=0.02), name


def test_voting_alone_is_not_taken_for_partisanship(independent):
    own = independent["differences"].filter(
        metric="balanced accuracy", vote="hard", reading=CORRECTED
    )
    by = {row["baseline"]: row for row in own.to_dicts()}
    assert by[MEAN]["low"] > 0.04  # better than its members
    assert by[MEAN]["p_bh"] < 0.05
    for name in (ONES, ITSELF):  # and no better than as many that differ in their seeds
        assert by[name]["size"] == by[name]["baseline_size"] == 3
        assert abs(by[name]["value"]) < 0.02


def test_partisanship_that_helps_is_found(tmp_path):
    # each corpus alone knows another group well: of three voters two are right where one errs
    def good(corpus, group):
        worst = {"news-left": 0, "news-right": 1, "social-left": 2}.get(corpus)
        return 0.05 if worst is not None and group == groups[worst] else 0.9

    groups = ("a", "b", "c")
    trained = {"corpora": CORPORA[:3], "pretraining": (1, 2, 3, 4)}
    there = outputs(tmp_path, good, number=80, groups=groups, seed=SEED, **trained)
    own = ensemble.run(there.inputs, PARAMS)["differences"].filter(reading=CORRECTED)
    row = own.filter(baseline=ONES, vote="hard", metric="balanced accuracy").to_dicts()[0]
    assert row["low"] > 0.05
    assert row["p_bh"] < 0.05


def test_the_best_chosen_on_the_same_texts_is_too_good(tmp_path):
    rng = np.random.default_rng(SEED)
    lucky, fair = [], []
    for _ in range(100):
        true = rng.random(80) < 0.5
        members = []
        for _ in range(6):
            right = rng.random((1, 80)) < 0.7
            members.append(Runs([(1, 1)], np.where(right == true, 0.8, 0.2)))
        case = Case("m", "t", [f"t{i}" for i in range(80)], true, {}, {})
        named = dict(zip("abcdef", members, strict=True))
        for voters in all_runs(case, named, None, 5, 1):
            if voters.name in (BEST, BLIND):
                into = lucky if voters.name == BEST else fair
                into.append((voters.predicted == true).mean())
    assert np.mean(lucky) > 0.74  # all are right on 0.7 of the texts
    assert np.mean(fair) == pytest.approx(0.7, abs=0.02)


def test_the_faithful_reading_is_one_training_of_each(independent):
    own = independent["scores"].filter(reading=FAITHFUL, metric="F1")
    assert set(own["ensemble"]) == {PARTISAN, MEAN, BEST}
    assert dict(own.select("ensemble", "ensembles").iter_rows()) == {PARTISAN: 1, MEAN: 3, BEST: 1}
    assert set(own.filter(ensemble=PARTISAN)["vote"]) == {"hard"}
    corrected = independent["scores"].filter(reading=CORRECTED, metric="F1", ensemble=PARTISAN)
    assert set(corrected["vote"]) == set(VOTES)
    assert set(corrected["size"]) == {3}


def test_corpora_that_are_not_partisan_do_not_vote(independent):
    names = set(independent["scores"]["ensemble"])
    assert ONE.format("social-left") in names
    assert ONE.format("social-center") not in names


def test_choices_are_all_or_follow_from_the_key():
    assert _choices(4, 2, 6, "k") == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    some = _choices(9, 4, 20, "k")
    assert len(set(some)) == 20
    assert all(len(set(c)) == 4 for c in some)
    assert some == _choices(9, 4, 20, "k") != _choices(9, 4, 20, "l")
    assert _choices(2, 3, 5, "k") == [(0, 1)]  # fewer than wanted: all there are


def test_a_model_with_one_partisan_corpus_has_no_ensemble(tmp_path):
    there = outputs(tmp_path, lambda *_: 0.7, number=10, corpora=("news-left",), seed=SEED)
    assert ensemble.run(there.inputs, PARAMS) == {}


def test_every_row_says_cluster_and_null(independent):
    for table in independent.values():
        assert set(table["cluster"]) == {"word"}
        untested = table["null"] == "none: no test"
        assert (untested == table["p"].is_null()).all()
    own = independent["differences"].filter(reading=CORRECTED)
    assert set(own["family"]) == {own["p"].drop_nulls().len()}


@pytest.mark.slow
def test_trainings_that_differ_are_no_partisanship(tmp_path):
    p = []
    for seed in range(4):
        planted = {"number": 60, "spread": 0.6, "seed": SEED + seed}
        trained = {"corpora": CORPORA[:3], "pretraining": (1, 2, 3, 4)}
        there = outputs(tmp_path / str(seed), lambda *_: 0.7, **planted, **trained)
        own = ensemble.run(there.inputs, PARAMS)["differences"].filter(reading=CORRECTED)
        own = own.filter(metric="balanced accuracy", vote="hard").filter(
            pl.col("baseline").str.starts_with("one corpus, by seed: ")
            & (pl.col("baseline") != ONES)
        )
        assert own["p"].null_count() == 0
        p += own["p"].to_list()
    assert np.mean(np.array(p) <= 0.05) <= 0.1  # over texts, of these trainings, it is above .3


def test_with_one_pretraining_nothing_is_said_of_others(tmp_path):
    there = outputs(
        tmp_path, lambda *_: 0.7, number=20, corpora=CORPORA, pretraining=(1,), seed=SEED
    )
    found = ensemble.run(there.inputs, PARAMS)["differences"]
    for column in ("low", "high", "p", "p_bh", "detectable"):
        assert found[column].null_count() == len(found)


def test_the_error_over_trainings_is_the_jackknifes_and_that_of_texts_together():
    gains = {seed: np.array([value, 0.0, 0.0]) for seed, value in ((1, 4.0), (2, 3.5), (3, 1.5))}
    found = _over_trainings(np.array([3.0, 0.0, 0.0]), gains, (0.5, 50), 0.95)
    total = 7 / 3 + 0.5  # 7 / 3 as of the mean of 1, 2 and 6
    df = total**2 / ((7 / 3) ** 2 / 2 + 0.5**2 / 50)
    assert found.p == pytest.approx(2 * student.sf(3 / total**0.5, df))
    assert (found.error, found.df) == pytest.approx((total**0.5, df))
    assert _over_trainings(np.zeros(3), {1: gains[1]}, (0.5, 50), 0.95) is None


def test_without_a_training_are_all_but_those_of_its_seeds():
    rng, texts = np.random.default_rng(SEED), 40
    case = Case("m", "t", [f"t{i}" for i in range(texts)], rng.random(texts) < 0.5, {}, {})
    seeds = [(1, 10), (1, 11), (2, 20), (3, 30)]
    members = {c: Runs(seeds, rng.random((4, texts))) for c in ("a", "b")}
    itself = Runs([(0, own[1]) for own in seeds], rng.random((4, texts)))
    weights = case.weights(3, 1)
    for out, scored in without_seeds(case, members, itself, 30, 1, weights).items():
        left = [own for own in seeds if own[0] != out]
        kept = {c: runs.pick(left) for c, runs in members.items()}
        rest = itself.pick([(0, own[1]) for own in left])
        wanted = {v[:2]: v for v in all_runs(case, kept, rest, 30, 1) if "best" not in v.name}
        assert set(scored) == set(wanted)
        for name, (drawn, size) in scored.items():
            mean = case.measured(wanted[name].predicted, case.every, weights).mean
            assert np.allclose(drawn, mean, equal_nan=True)
            assert size == wanted[name].size
