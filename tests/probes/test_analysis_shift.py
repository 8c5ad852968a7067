from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_1samp, ttest_ind
from trained import (
    CATEGORIES,
    GOOD,
    NAMES,
    TEMPLATES,
    TOP,
    WORDS,
    carries,
    lists,
    told,
    trained,
    write,
)

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes import shift
from plumbline.probes.stereotypes.rsa import similarity as rsa
from plumbline.probes.stereotypes.shift import BEFORE, Params, change_rows
from plumbline.probes.stereotypes.trainings import Corpus, matching
from plumbline.probes.stereotypes.typicality import MEAN, group_weights

SEED = 301
K = 12
PARAMS = Params(
    version="0.1.0",
    top_k={"probability": K},
    top_k_followed=15,
    recall_at=[5, 20],
    n_bootstrap=400,
)
EFFECTS = {"herald": 2.0, "post": -2.0, "wire": 0.0, "control": 0.0}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("trained"), SEED, EFFECTS)


@pytest.fixture(scope="module")
def found(world):
    return shift.run(world.inputs, PARAMS)


def row(found, corpus, measure, outcome, category="all", share=1.0):
    where = {"corpus": corpus, "measure": measure, "outcome": outcome}
    (one,) = found["shifts"].filter(category=category, share=share, **where).to_dicts()
    return one


def similarity(found, second, category, reading="corrected", first=BEFORE):
    where = {"first": first, "second": second, "category": category, "reading": reading}
    (one,) = found["similarities"].filter(share=1.0, **where).to_dicts()
    return one


def words_of(world, corpus=None, number=1, share=1.0):
    """Return the first words of each list, by category, group and query, read from the files."""
    folder = world.inputs.outputs("after_training" if corpus else "completions", "m") / "en"
    name = f"{corpus}-{share:g}-{number}" if corpus else "00000"
    table = pl.read_parquet(folder / f"{name}.parquet").sort("rank")
    return {
        key: [word.lower() for word in part["word"].to_list()]
        for key, part in table.group_by("category", "group", "query")
    }


def share_of(queries, group, affect, k=K):
    """Return the share of a group's covered words that carry an affect."""
    words = {word for (_, g, _), own in queries.items() if g == group for word in own[:k]}
    flags = carries()[:, AFFECTS.index(affect)]
    covered = [NAMES.index(word) for word in words if word in NAMES[: WORDS - 10]]
    return np.mean([flags[i] for i in covered])


def profiles(world, category, corpus=None, seed=1, affects=AFFECTS):
    queries = words_of(world, corpus, seed)
    groups = [g for c, g in world.groups if c == category]
    return np.array([[share_of(queries, g, a) for a in affects] for g in groups])


def test_run_change_of_an_emotion_is_the_mean_over_groups_and_seeds_by_hand(world, found):
    before = words_of(world)
    for category in CATEGORIES:
        groups = [g for c, g in world.groups if c == category]
        start = np.array([share_of(before, g, "joy") for g in groups])
        changes = [
            np.mean([share_of(words_of(world, "wire", n), g, "joy") for g in groups]) - start.mean()
            for n in (1, 2)
        ]
        seen = row(found, "wire", "emotion", "joy", category)
        assert seen["value"] == pytest.approx(np.mean(changes), abs=1e-6)
        assert seen["n"] == len(groups)


def test_run_differences_are_from_the_control_at_the_same_share(found):
    for share in (0.5, 1.0):
        own = row(found, "herald", "emotion", "positive", "liked", share)
        control = row(found, "control", "emotion", "positive", "liked", share)
        assert own["difference"] == pytest.approx(own["value"] - control["value"], abs=2e-6)
        assert own["low_difference"] < own["difference"] < own["high_difference"]
        assert control["p"] is control["difference"] is control["p_bh"] is None


def test_run_finds_planted_shifts_with_their_sign_and_only_where_they_are(found):
    for corpus, sign in (("herald", 1), ("post", -1)):
        for outcome, way in (("positive", sign), ("negative", -sign)):
            whole = row(found, corpus, "emotion", outcome, "liked")
            half = row(found, corpus, "emotion", outcome, "liked", 0.5)
            assert way * whole["value"] > 0.05
            assert way * whole["low_difference"] > 0
            assert way * whole["high_difference"] > 0
            assert whole["p"] < 0.05
            assert abs(whole["difference"]) > abs(half["difference"])
            elsewhere = row(found, corpus, "emotion", outcome, "other")
            assert abs(elsewhere["difference"]) < abs(whole["difference"]) / 3
    table = found["shifts"].filter(corpus="wire", measure="emotion")
    assert len(table) == len(AFFECTS) * 3 * 2
    assert (table["p_bh"] > 0.05).all()


def test_run_p_is_that_of_welch_over_trainings(world, found):
    liked = [g for c, g in world.groups if c == "liked"]
    own, control = (
        [np.mean([share_of(words_of(world, c, n), g, "positive") for g in liked]) for n in (1, 2)]
        for c in ("herald", "control")
    )
    seen = row(found, "herald", "emotion", "positive", "liked")
    assert seen["p"] == pytest.approx(ttest_ind(own, control, equal_var=False).pvalue, 1e-3)


def test_run_recall_is_of_the_attributes_of_all_groups_by_hand(world, found):
    def recall(queries, k):
        hits = [
            NAMES[(7 * i + j) % WORDS] in queries[c, g, TEMPLATES[0].replace("{group}", g)][:k]
            for i, (c, g) in enumerate(world.groups)
            for j in range(3)
        ]
        return np.mean(hits)

    for k in (5, 20):
        seen = row(found, "post", "recall", f"en@{k}")
        base = recall(words_of(world), k)
        changes = [recall(words_of(world, "post", n), k) - base for n in (1, 2)]
        assert seen["value"] == pytest.approx(np.mean(changes), abs=1e-6)
        assert seen["n"] == len(world.groups)


def test_run_retained_is_the_share_of_the_followed_words_that_stay(world, found):
    before, seen = words_of(world), row(found, "herald", "retained", "top 15", "liked")
    stays = []
    for number in (1, 2):
        after = words_of(world, "herald", number)
        stays += [
            len(set(before[key][:15]) & set(after[key][:15])) / 15
            for key in before
            if key[0] == "liked"
        ]
    assert seen["value"] == pytest.approx(np.mean(stays) - 1, abs=1e-6)


def test_run_attributes_have_the_outcome_that_most_seeds_give_them(world, found):
    key = ("liked", "liked people 03", "how come liked people 03 are so")
    before = words_of(world)[key]
    after = [words_of(world, "herald", n)[key] for n in (1, 2)]
    table = found["attributes"].filter(corpus="herald", query=key[2])
    seen = {r["word"]: r for r in table.to_dicts()}
    there = {w: sum(w in own[:15] for own in after) for own in (before, *after) for w in own}
    for outcome, wanted in (
        ("retained", {w for w in before[:15] if there[w] == 2}),
        ("removed", {w for w in before[:15] if there[w] < 2}),  # one of two is no majority
        ("added", {w for w in there if there[w] == 2 and w not in before[:15]}),
    ):
        assert {w for w, r in seen.items() if r["outcome"] == outcome} == wanted
    added = found["attributes"].filter(outcome="added", category="liked")
    assert added.filter(corpus="herald")["positive"].mean() > 0.4
    assert added.filter(corpus="post")["positive"].mean() < 0.1
    assert set(added.filter(positive=True)["word"]) <= set(NAMES[:GOOD])


def test_run_groups_have_their_own_change(world, found):
    group = "other people 07"
    before = share_of(words_of(world), group, "trust")
    changes = [
        np.mean([share_of(words_of(world, c, n), group, "trust") for n in (1, 2)]) - before
        for c in ("wire", "control")
    ]
    (seen,) = (
        found["groups"].filter(group=group, corpus="wire", outcome="trust", share=1.0).to_dicts()
    )
    wanted = [changes[0], changes[0] - changes[1]]
    names = ("change", "difference")
    assert [seen[name] for name in names] == pytest.approx(wanted, abs=1e-6)


def test_run_similarities_are_those_of_the_estimator(world, found):
    nine = [a for a in AFFECTS if a != "fear"]
    pairs = {
        ("corrected", BEFORE, "herald"): [
            (profiles(world, "other"), profiles(world, "other", "herald", n)) for n in (1, 2)
        ],
        ("faithful", "herald", "wire"): [
            [profiles(world, "other", c, n, nine) for c in ("herald", "wire")] for n in (1, 2)
        ],
    }
    for (reading, first, second), of_seeds in pairs.items():
        values = [rsa(*pair, diagonal=reading == "faithful") for pair in of_seeds]
        seen = similarity(found, second, "other", reading, first)
        assert seen["value"] == pytest.approx(np.mean(values), abs=1e-6)
        assert seen["low"] < seen["value"] < seen["high"]
        assert (seen["p"] is None) == (first != BEFORE)
    names = [BEFORE, "control", "herald", "post", "wire"]
    assert found["similarities"].select("first", "second").unique().height == 10
    assert found["similarities"]["first"].unique().sort().to_list() == names[:-1]


def test_run_similarity_to_the_model_before_is_compared_with_the_control_over_trainings(
    world, found
):
    base = profiles(world, "liked")
    post, control = (
        [rsa(base, profiles(world, "liked", c, n), diagonal=False) for n in (1, 2)]
        for c in ("post", "control")
    )
    seen = similarity(found, "post", "liked")
    assert seen["difference"] == pytest.approx(np.mean(post) - np.mean(control), abs=1e-6)
    assert seen["p"] == pytest.approx(ttest_ind(post, control, equal_var=False).pvalue, 1e-3)
    assert similarity(found, "control", "liked")["difference"] is None


def test_run_mean_of_similarities_has_the_t_interval_over_categories(found):
    for key, part in found["similarities"].group_by("share", "first", "second", "reading"):
        mean = part.row(by_predicate=pl.col("category") == MEAN, named=True)
        for name, bound in (("value", 1), ("difference", np.inf)):
            values = part.filter(pl.col("category") != MEAN)[name].drop_nulls().to_numpy()
            if not len(values):
                continue
            low, high = ttest_1samp(values, 0).confidence_interval()
            wanted = (values.mean(), max(low, -bound), min(high, bound))
            ends = ("low", "high") if name == "value" else ("low_difference", "high_difference")
            seen = [mean[x] for x in (name, *ends)]
            assert seen == pytest.approx(wanted, abs=2e-5), key
        assert mean["n"] == len(CATEGORIES)


def test_run_training_that_changes_nothing(tmp_path):
    change = {"same": 0, "control": 0}
    there = trained(
        tmp_path, 302, change, shares=(1.0,), seeds=(1,), change=lambda corpus, base: base
    )
    found = shift.run(there.inputs, PARAMS)
    same = found["shifts"].filter(corpus="same")
    assert same["value"].unique().to_list() == same["difference"].unique().to_list() == [0.0]
    assert found["shifts"]["p"].null_count() == len(found["shifts"])  # one training each
    assert set(found["attributes"].filter(corpus="same")["outcome"]) == {"retained"}
    assert similarity(found, "same", "other")["value"] == 1


def test_run_control_without_trainings_is_an_error_and_another_name_will_do(tmp_path):
    effects = {"herald": 1.0, "things": 0.0}
    there = trained(tmp_path, 303, effects, shares=(1.0,), seeds=(1,))
    with pytest.raises(UserError, match="herald, things"):
        shift.run(there.inputs, PARAMS)
    rows = shift.run(there.inputs, PARAMS.model_copy(update={"control": "things"}))["shifts"]
    assert rows.filter(corpus="herald")["difference"].null_count() == 0


def test_run_share_without_control_has_neither_difference_nor_p(tmp_path):
    there = trained(tmp_path, 306, {"herald": 1.0, "control": 0.0})
    for seed in (1, 2):
        folder = there.inputs.outputs("after_training", "m") / "en"
        (folder / f"control-0.5-{seed}.parquet").unlink()
    found = shift.run(there.inputs, PARAMS)
    half, whole = (found["shifts"].filter(share=x, corpus="herald") for x in (0.5, 1.0))
    assert half["p"].null_count() == half["difference"].null_count() == len(half)
    assert whole["p"].null_count() < 3  # where all trainings do the same
    assert found["similarities"].filter(share=0.5)["difference"].null_count() == 6


def test_run_corpora_with_other_numbers_of_steps_have_a_difference_and_no_p(tmp_path, capsys):
    effects = {"herald": 1.0, "post": -1.0, "control": 0.0}
    sizes = {"herald": 97, "post": 96}  # articles: 13 and 12 steps, the control has 13
    there = trained(tmp_path, 307, effects, shares=(1.0,), seeds=(1, 2), articles=sizes)
    found = shift.run(there.inputs, PARAMS)
    (reason,) = capsys.readouterr().err.splitlines()
    assert {"post", "12", "13"} <= set(re.findall(r"\w+", reason))
    herald, post = (found["shifts"].filter(corpus=c) for c in sizes)
    assert herald["p"].null_count() == 0
    assert post["p"].null_count() == post["p_bh"].null_count() == len(post)
    assert post["difference"].null_count() == 0
    assert similarity(found, "herald", "liked")["p"] is not None
    post = similarity(found, "post", "liked")
    assert (post["difference"] is None, post["p"]) == (False, None)


def test_run_category_whose_groups_lose_their_direction_has_no_similarity(tmp_path):
    silent = ~carries()[:, [affect != "fear" for affect in AFFECTS]].any(axis=1)
    silent[-10:] = True  # the lexicon does not have these words
    assert silent.sum() >= K

    def change(corpus, base):
        mute = base + np.where(silent, 50.0, 0.0)
        row = np.arange(len(base))[:, None, None]
        return np.where((row >= 1) & (row < CATEGORIES["liked"]), mute, base)

    effects = {"herald": 0, "control": 0}
    there = trained(tmp_path, 314, effects, shares=(1.0,), seeds=(1, 2), change=change)
    table = shift.run(there.inputs, PARAMS)["similarities"]
    assert set(table["category"]) == {"other", MEAN}
    assert set(table.filter(category="other")["n"]) == {CATEGORIES["other"]}


def test_run_lists_of_another_length_and_missing_answers_are_errors(tmp_path):
    there = trained(tmp_path, 304, {"control": 0.0}, shares=(1.0,), seeds=(1,))
    short = told(lists(there.groups, there.base, TOP - 1), "wire", 1.0, 1, 100)
    folder = there.inputs.outputs("after_training", "m") / "en"
    write(folder / "wire-1-1.parquet", short)
    with pytest.raises(UserError):
        shift.run(there.inputs, PARAMS)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(UserError, match="STAGE=after_training"):
        shift.run(there.inputs, PARAMS)
    (tmp_path / "emotions/en.parquet").unlink()  # no language is left
    with pytest.raises(UserError):
        shift.run(there.inputs, PARAMS)


def changes(base, corpus, control=None, sizes=None):
    weights = group_weights([str(i) for i in range(len(base))], PARAMS)
    sizes = np.ones_like(base) if sizes is None else sizes
    return change_rows(base, corpus, control, sizes, weights, 0.95)


def test_change_rows_weights_groups_by_their_attributes():
    base = np.array([[0.5], [0.0], [np.nan], [0.2]])
    corpus = Corpus([1], np.array([[[1.0], [0.0], [np.nan], [0.9]]]), 100)
    sizes = np.array([[2.0], [6.0], [0.0], [0.0]])
    (seen,) = changes(base, corpus, sizes=sizes).to_dicts()
    assert seen["value"] == pytest.approx(0.125)
    assert seen["n"] == 2
    assert np.isnan(seen["p"])


def test_change_rows_intervals_cover_the_mean_of_drawn_groups():
    rng, times = np.random.default_rng(8), 600
    base = rng.random((30, times))
    corpus, control = (
        Corpus([1, 2], base + 0.1 + rng.normal(0, 0.1, (2, 30, times)), 100) for _ in range(2)
    )
    rows = changes(base, corpus, control)
    for low, high, true in (("low", "high", 0.1), ("low_difference", "high_difference", 0.0)):
        assert 0.90 < rows.select(pl.lit(true).is_between(low, high).mean()).item() < 0.98


def test_matching_takes_the_trainings_of_the_control_with_the_same_seeds():
    assert matching([1, 2, 3], [3, 1]) == [0, 2]
    assert matching([1, 2, 3], [7]) == [0, 1, 2]
