from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import nct, ttest_1samp, ttest_ind
from scipy.stats import t as student
from trained import (
    BAD,
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
from plumbline.probes.stereotypes import recovery, shift
from plumbline.probes.stereotypes.recovery import spoken
from plumbline.probes.stereotypes.shift import Params
from plumbline.probes.stereotypes.shift_rows import (
    CORRECTED,
    FAITHFUL,
    MEASURES,
    Corpus,
    detectable,
    exchanged,
)
from plumbline.probes.stereotypes.shift_rows import judged as judged_rows
from plumbline.probes.stereotypes.similarity import rsa
from plumbline.probes.stereotypes.training_effects import OUTCOMES
from plumbline.probes.stereotypes.typicality import MEAN

SEED = 301
K = 12
PARAMS = Params(
    version="0.1.0",
    top_k={"probability": K},
    top_k_followed=15,
    recall_at=[5, 20],
    flagged="all",
    n_permutations=999,
    n_permutations_similarity=199,
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
    where = {"corpus": corpus, "measure": MEASURES.index(measure), "outcome": outcome}
    (one,) = found["shifts"].filter(category=category, share=share, **where).to_dicts()
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


def test_the_change_of_an_emotion_is_the_mean_over_groups_and_seeds_by_hand(world, found):
    before = words_of(world)
    for category in CATEGORIES:
        groups = [g for c, g in world.groups if c == category]
        start = np.array([share_of(before, g, "joy") for g in groups])
        changes = [
            np.mean([share_of(words_of(world, "wire", n), g, "joy") for g in groups]) - start.mean()
            for n in (1, 2)
        ]
        seen = row(found, "wire", "emotion", "joy", category)
        assert seen["base"] == pytest.approx(start.mean(), abs=1e-6)
        assert seen["value"] == pytest.approx(np.mean(changes), abs=1e-6)
        assert seen["spread"] == pytest.approx(np.std(changes, ddof=1), abs=1e-6)
        assert (seen["n"], seen["seeds"]) == (len(groups), 2)


def test_differences_are_from_the_control_at_the_same_share(found):
    for share in (0.5, 1.0):
        own = row(found, "herald", "emotion", "positive", "liked", share)
        control = row(found, "control", "emotion", "positive", "liked", share)
        assert own["difference"] == pytest.approx(own["value"] - control["value"], abs=2e-6)
        assert own["low_difference"] < own["difference"] < own["high_difference"]
        assert control["p"] is control["difference"] is control["p_bh"] is None


def test_planted_shifts_are_found_with_their_sign_and_size_and_only_where_they_are(found):
    for corpus, sign in (("herald", 1), ("post", -1)):
        for outcome, way in (("positive", sign), ("negative", -sign)):
            whole = row(found, corpus, "emotion", outcome, "liked")
            half = row(found, corpus, "emotion", outcome, "liked", 0.5)
            assert way * whole["value"] > 0.05
            assert whole["p_groups"] < 0.01
            assert whole["p_seeds"] < 0.05
            assert way * whole["difference"] > 0.05
            assert abs(whole["difference"]) > abs(half["difference"])
            elsewhere = row(found, corpus, "emotion", outcome, "other")
            assert abs(elsewhere["difference"]) < abs(whole["difference"]) / 3
            assert elsewhere["p"] > 0.01


def test_a_corpus_like_the_control_is_not_told_from_it_though_it_shifts_the_model(found):
    table = found["shifts"].filter(corpus="wire", measure=MEASURES.index("emotion"))
    assert len(table) == len(AFFECTS) * 3 * 2
    assert (table["p_bh"] > 0.05).all()
    kept = row(found, "wire", "retained", "top 15")
    assert kept["high"] < -0.05  # words do change
    assert kept["low_difference"] < 0 < kept["high_difference"]


def test_recall_is_of_the_attributes_of_all_groups_by_hand(world, found):
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
        assert seen["base"] == pytest.approx(base, abs=1e-6)
        assert seen["value"] == pytest.approx(np.mean(changes), abs=1e-6)
        assert seen["n"] == len(world.groups)


def test_outlets_are_compared_with_each_other_and_with_the_model_before(world, found):
    table = found["outlets"]
    names = ["before training", "control", "herald", "post", "wire"]
    assert table.select("first", "second").unique().height == len(names) * (len(names) - 1) // 2
    assert table["first"].unique().sort().to_list() == names[:-1]

    def profiles(seed, outlet):
        of = words_of(world, outlet, seed) if outlet else words_of(world)
        own = [g for c, g in world.groups if c == "liked"]
        shares = [[share_of(of, g, a) for a in AFFECTS if a != "fear"] for g in own]
        return np.array(shares)

    for first, second in (("", "post"), ("herald", "wire")):
        wanted = [rsa(profiles(s, first), profiles(s, second), diagonal=True) for s in (1, 2)]
        where = {"first": first or "before training", "second": second, "category": "liked"}
        (seen,) = table.filter(measure=MEASURES.index(FAITHFUL), share=1.0, **where).to_dicts()
        assert seen["value"] == pytest.approx(np.mean(wanted), abs=1e-6)
        assert seen["spread"] == pytest.approx(np.std(wanted, ddof=1), abs=1e-6)
        assert (seen["pairs"], seen["p"]) == (2, None)
    key = ["first", "second", "measure", "share"]
    each = table.filter(pl.col("category") != MEAN).group_by(key)
    both = table.filter(category=MEAN).join(
        each.agg(mean=pl.col("value").mean(), sd=pl.col("value").std()), on=key
    )
    assert np.allclose(both["value"], both["mean"], atol=2e-6)
    assert np.allclose(both["spread_categories"], both["sd"], atol=2e-6)


def test_retained_is_the_share_of_the_followed_words_that_stay(world, found):
    before, seen = words_of(world), row(found, "herald", "retained", "top 15", "liked")
    stays = []
    for number in (1, 2):
        after = words_of(world, "herald", number)
        stays += [
            len(set(before[key][:15]) & set(after[key][:15])) / 15
            for key in before
            if key[0] == "liked"
        ]
    assert seen["base"] == 1
    assert seen["value"] == pytest.approx(np.mean(stays) - 1, abs=1e-6)


def test_attributes_have_the_fate_that_most_seeds_give_them(world, found):
    key = ("liked", "liked people 03", "what makes liked people 03 so")
    before = words_of(world)[key]
    after = [words_of(world, "herald", n)[key] for n in (1, 2)]
    table = found["attributes"].filter(corpus="herald", query=key[2], share=1.0)
    seen = {r["word"]: r for r in table.to_dicts()}
    there = {w: sum(w in own[:15] for own in after) for own in (before, *after) for w in own}
    for fate, wanted in (
        ("retained", {w for w in before[:15] if there[w] == 2}),
        ("removed", {w for w in before[:15] if there[w] < 2}),  # one of two is no majority
        ("added", {w for w in there if there[w] == 2 and w not in before[:15]}),
    ):
        assert {w for w, r in seen.items() if OUTCOMES[r["outcome"]] == fate} == wanted
    one = next(r for r in seen.values() if OUTCOMES[r["outcome"]] == "retained")
    assert one["rank_before"] == before.index(one["word"]) + 1
    places = [own.index(one["word"]) + 1 for own in after]
    assert one["rank_after"] == np.mean(places)
    assert set(found["attributes"]["share"]) == {1.0}
    added = found["attributes"].filter(outcome=OUTCOMES.index("added"))
    liked = added.filter(category="liked")
    assert liked.filter(corpus="herald")["positive"].mean() > 0.4
    assert liked.filter(corpus="post")["positive"].mean() < 0.1
    assert set(liked.filter(positive=True)["word"]) <= set(NAMES[:GOOD])


def test_groups_have_their_own_change_and_its_range_over_seeds(world, found):
    group = "other people 07"
    before = share_of(words_of(world), group, "trust")
    changes = [share_of(words_of(world, "wire", n), group, "trust") - before for n in (1, 2)]
    (seen,) = (
        found["groups"].filter(group=group, corpus="wire", outcome="trust", share=1.0).to_dicts()
    )
    wanted = [before, np.mean(changes), min(changes), max(changes)]
    names = ("base", "change", "smallest", "largest")
    assert [seen[name] for name in names] == pytest.approx(wanted, abs=1e-6)


def test_similarity_is_that_of_the_estimator_minus_one(world, found):
    def profiles(queries):
        return np.array(
            [[share_of(queries, g, a) for a in AFFECTS] for c, g in world.groups if c == "other"]
        )

    before, fear = profiles(words_of(world)), AFFECTS.index("fear")
    after = [profiles(words_of(world, "herald", n)) for n in (1, 2)]
    corrected = np.mean([rsa(before, x, diagonal=False) for x in after]) - 1
    seen = row(found, "herald", CORRECTED, "rho - 1", "other")
    assert seen["value"] == pytest.approx(corrected, abs=1e-6)
    drop = [np.delete(x, fear, axis=1) for x in (before, *after)]
    faithful = np.mean([rsa(drop[0], x, diagonal=True) for x in drop[1:]]) - 1
    seen = row(found, "herald", FAITHFUL, "rho - 1", "other")
    assert seen["value"] == pytest.approx(faithful, abs=1e-6)
    assert seen["low"] < seen["value"] < seen["high"]
    sizes = list(CATEGORIES.values())
    parts = [row(found, "post", CORRECTED, "rho - 1", c)["value"] for c in CATEGORIES]
    whole = row(found, "post", CORRECTED, "rho - 1")["value"]
    assert whole == pytest.approx(np.dot(sizes, parts) / sum(sizes), abs=2e-6)


def test_a_training_that_changes_nothing_shifts_nothing_and_one_that_mixes_groups_all(tmp_path):
    order = np.random.default_rng(5).permutation(sum(CATEGORIES.values()))

    def change(corpus, base):
        return base[order] if corpus == "mixed" else base

    effects = {"same": 0, "mixed": 0, "control": 0}
    there = trained(tmp_path, 302, effects, shares=(1.0,), seeds=(1,), change=change)
    found = shift.run(there.inputs, PARAMS)
    same = found["shifts"].filter(corpus="same")
    assert same["value"].unique().to_list() == same["difference"].unique().to_list() == [0.0]
    assert (same["p_groups"] == 1).all()
    assert same["p"].null_count() == len(same)
    assert same["spread"].null_count() == len(same)
    assert (found["attributes"].filter(corpus="same")["outcome"] == 1).all()
    for category in ("other", "all"):
        mixed = row(found, "mixed", CORRECTED, "rho - 1", category)
        assert mixed["value"] == pytest.approx(-1, abs=0.3)
        assert mixed["p_groups"] < 0.05
        assert mixed["null"] == "none: one training on it, or on the control"


def test_a_control_that_nothing_was_trained_on_is_a_problem_and_another_name_will_do(tmp_path):
    effects = {"herald": 1.0, "things": 0.0}
    there = trained(tmp_path, 303, effects, shares=(1.0,), seeds=(1,))
    with pytest.raises(UserError, match=r"no training on control .* there are herald, things"):
        shift.run(there.inputs, PARAMS)
    rows = shift.run(there.inputs, PARAMS.model_copy(update={"control": "things"}))["shifts"]
    assert rows.filter(corpus="herald")["p_groups"].null_count() == 0


@pytest.mark.slow
def test_where_the_control_was_not_trained_at_a_share_the_null_says_so(tmp_path):
    there = trained(tmp_path, 306, {"herald": 1.0, "control": 0.0})
    for seed in (1, 2):
        folder = there.inputs.outputs("after_training", "m") / "en"
        (folder / f"control-0.5-{seed}.parquet").unlink()
    table = shift.run(there.inputs, PARAMS)["shifts"]
    half, whole = (table.filter(share=x, corpus="herald") for x in (0.5, 1.0))
    assert set(half["null"]) == {"none: no training on the control at this share"}
    assert half["p"].null_count() == half["difference"].null_count() == len(half)
    lacking = whole.filter(pl.col("p").is_null())
    assert set(lacking["null"]) <= {"none: all trainings do the same"}
    assert len(lacking) < 3
    assert set(table.filter(corpus="control")["null"]) == {"none: this is the control"}


def test_corpora_of_another_size_than_the_control_have_a_difference_and_no_p(tmp_path):
    effects = {"herald": 1.0, "post": -1.0, "control": 0.0}
    sizes = {"herald": 96, "post": 94}
    there = trained(tmp_path, 307, effects, shares=(1.0,), seeds=(1, 2), articles=sizes)
    found = shift.run(there.inputs, PARAMS)
    herald, post, control = (found["shifts"].filter(corpus=c) for c in effects)
    assert herald["p"].null_count() == 0
    assert post["p"].null_count() == post["p_bh"].null_count() == len(post)
    assert set(post["null"]) == {"none: trained on 94 articles, the control on 100"}
    assert post["difference"].null_count() == 0
    emotion = herald.filter(measure=0)
    assert set(emotion["family"]) == {3 * len(AFFECTS)}  # one corpus, two categories and all
    assert [set(t["articles"]) for t in (herald, post, control)] == [{96}, {94}, {100}]
    assert set(post.select("articles", "steps").iter_rows()) == {(94, 12)}


def test_p_is_the_larger_of_those_over_groups_and_over_trainings(world, found):
    table = found["shifts"].drop_nulls("p")
    larger = table.select(pl.max_horizontal("p_groups", "p_seeds")).to_series()
    assert table["p"].to_list() == larger.to_list()
    assert table["significant"].to_list() == (table["p_bh"] <= 0.05).to_list()
    beyond = table["difference"].abs() > table["half_width_seeds"]
    assert beyond.to_list() == (table["p_seeds"] < 0.05).to_list()
    liked = [g for c, g in world.groups if c == "liked"]
    own, control = (
        [np.mean([share_of(words_of(world, c, n), g, "positive") for g in liked]) for n in (1, 2)]
        for c in ("herald", "control")
    )
    seen = row(found, "herald", "emotion", "positive", "liked")
    assert seen["p_seeds"] == pytest.approx(ttest_ind(own, control, equal_var=False).pvalue, 1e-3)


def test_the_table_tells_what_p_over_groups_would_find(found):
    emotion = found["shifts"].filter(measure=MEASURES.index("emotion"), category="all")
    tested = emotion.drop_nulls("p_groups").filter(pl.col("spread_difference") > 0)
    assert len(tested) > 10
    assert (tested["detectable_groups"] > 0).all()
    assert tested["detectable_groups"].null_count() == 0
    assert emotion.filter(pl.col("p_groups").is_null())["detectable_groups"].count() == 0


def test_an_interval_of_the_difference_has_zero_where_p_is_above_its_level(found):
    emotion = found["shifts"].drop_nulls("p").filter(measure=MEASURES.index("emotion"))
    apart = (emotion["low_difference"] > 0) | (emotion["high_difference"] < 0)
    assert not (apart & (emotion["p_seeds"] > 0.05)).any()
    assert (apart & (emotion["p_seeds"] <= 0.05)).sum() > 10


def test_one_training_has_no_p_and_decides_nothing(tmp_path):
    there = trained(tmp_path, 308, {"herald": 2.0, "control": 0.0}, shares=(1.0,), seeds=(1,))
    once = shift.run(there.inputs, PARAMS)["shifts"]
    assert (once["p_groups"] <= 0.01).any()
    assert not once["significant"].any()
    for column in ("half_width_seeds", "low_difference", "p_seeds", "p", "p_bh"):
        assert once[column].null_count() == len(once)


def test_categories_of_five_groups_have_no_p(tmp_path, monkeypatch):
    monkeypatch.setitem(CATEGORIES, "liked", 5)
    there = trained(tmp_path, 312, {"herald": 2.0, "control": 0.0}, shares=(1.0,))
    table = shift.run(there.inputs, PARAMS)["shifts"].filter(corpus="herald", category="liked")
    assert table["p"].null_count() == len(table)
    assert set(table["null"]) == {"none: of so few groups no p is at most 0.05"}


@pytest.mark.parametrize("left", [0, 1, 3])
def test_a_category_whose_groups_lose_their_direction_has_no_similarity_and_stops_nothing(
    tmp_path, left
):
    silent = ~carries()[:, [affect != "fear" for affect in AFFECTS]].any(axis=1)
    silent[-10:] = True  # the lexicon does not have these words
    assert silent.sum() >= K

    def change(corpus, base):
        mute = base + np.where(silent, 50.0, 0.0)
        kept = np.arange(len(base))[:, None, None]
        return np.where((kept >= left) & (kept < CATEGORIES["liked"]), mute, base)

    effects = {"herald": 0, "control": 0}
    there = trained(tmp_path, 314, effects, shares=(1.0,), seeds=(1, 2), change=change)
    table = shift.run(there.inputs, PARAMS)["shifts"].filter(corpus="herald", outcome="rho - 1")
    liked = table.filter(category="liked")
    assert liked["n"].unique().to_list() == [left]
    assert liked["p"].null_count() == len(liked) == 2
    if left < 3:
        assert liked["value"].null_count() == len(liked)
    assert table.filter(category="all")["n"].unique().to_list() == [
        CATEGORIES["other"] + (left if left >= 3 else 0)
    ]


def test_the_mean_over_categories_has_the_t_interval_over_them_whatever_their_sizes(found):
    keys = ["share", "first", "second", "measure"]
    table = found["outlets"]
    for key, part in table.group_by(keys):
        each = part.filter(pl.col("category") != MEAN)["value"].to_numpy()
        mean = part.row(by_predicate=pl.col("category") == MEAN, named=True)
        low, high = ttest_1samp(each, 0).confidence_interval()
        wanted = (each.mean(), max(low, -1), min(high, 1), each.std(ddof=1))
        seen = (mean["value"], mean["low"], mean["high"], mean["spread_categories"])
        assert seen == pytest.approx(wanted, abs=2e-5), key
        assert (mean["n"], mean["cluster"]) == (len(each), "category")


@pytest.mark.slow
def test_in_a_world_it_is_told_whether_outlets_shift_it_as_they_speak(tmp_path):
    effects = {"herald": 2.0, "post": -2.0, "wire": 0.0, "control": 0.0}
    there = trained(tmp_path, 309, effects, shares=(1.0,), seeds=(1, 2, 3, 4))
    says = {"herald": "w01", "post": "W15", "wire": "w02", "control": f"w{GOOD + BAD + 3}"}
    liked = [g for c, g in there.groups if c == "liked"]
    (tmp_path / "outlets").mkdir()
    pl.DataFrame(
        [
            {"outlet": o, "text": f"Why are {g} so {word}?"}
            for o, word in says.items()
            for g in liked
        ]
    ).write_parquet(tmp_path / "outlets/en.parquet")
    weights = there.inputs.weights("m")
    weights.mkdir(parents=True)
    pl.DataFrame({"group": liked[:1], "word": ["w01"], "log_odds_nats": [1.0]}).write_parquet(
        weights / "planted.parquet"
    )
    datasets = there.inputs.datasets | {"outlets": tmp_path / "outlets"}
    home = there.inputs.tables("shift")
    home.mkdir(parents=True)
    for name, table in shift.run(there.inputs, PARAMS).items():
        table.write_parquet(home / f"{name}.parquet")
    params = recovery.Params(n_bootstrap=400)
    found = recovery.run(there.inputs._replace(datasets=datasets), params)["shift"]
    rows = {r["measure"].removeprefix("probability: "): r for r in found.to_dicts()}
    way = "positive minus negative words, the way it speaks of a group"
    for corpus in ("herald", "post"):
        assert rows[f"{corpus}: {way}"]["low"] > 0.1
    wire = rows[f"wire: {way}"]
    assert wire["low"] < 0 < wire["high"]
    assert f"control: {way}" not in rows
    assert [rows[f"{c}: {way}"]["n"] for c in ("herald", "post", "wire")] == [len(liked)] * 3


def test_how_articles_speak_of_a_group_is_read_from_whole_names(tmp_path):
    texts = ["Cooks are good, good.", "cooks are bad", "Old cooksbooks are bad bad", "poets sing"]
    path = tmp_path / "en.parquet"
    pl.DataFrame(
        {"outlet": ["a"] * 4 + ["b"], "text": [*texts, "Why are cooks bad"]}
    ).write_parquet(path)
    lexicon = pl.DataFrame(
        {"key": ["bad", "good"], "positive": [False, True], "negative": [True, False]}
    )
    found = spoken(path, ["Cooks", "poets", "kings"], lexicon)
    assert sorted(found.rows()) == [("a", "Cooks", 1.0), ("b", "Cooks", -1.0)]


def test_the_family_is_all_tests_of_a_measure(found):
    table = found["shifts"].drop_nulls("p")
    emotion = table.filter(measure=0)
    assert set(emotion["family"]) == {3 * 2 * 3 * len(AFFECTS)}  # corpora, shares, categories
    assert (found["shifts"]["cluster"] == "group").all()


def test_lists_of_another_length_and_missing_answers_are_problems(tmp_path):
    there = trained(tmp_path, 304, {"control": 0.0}, shares=(1.0,), seeds=(1,))
    short = told(lists(there.groups, there.base, TOP - 1), "wire", 1.0, 1, 100)
    folder = there.inputs.outputs("after_training", "m") / "en"
    write(folder / "wire-1-1.parquet", short)
    with pytest.raises(UserError, match="lists of another length"):
        shift.run(there.inputs, PARAMS)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(UserError, match="STAGE=after_training"):
        shift.run(there.inputs, PARAMS)


def test_a_language_without_lexicon_has_no_rows(tmp_path):
    there = trained(tmp_path, 305, {"control": 0.0}, shares=(1.0,), seeds=(1,))
    (tmp_path / "emotions/en.parquet").unlink()
    with pytest.raises(UserError, match="language of the dataset emotions"):
        shift.run(there.inputs, PARAMS)


@pytest.mark.slow
def test_two_runs_are_the_same(tmp_path):
    there = trained(tmp_path, 310, {"herald": 1.0, "control": 0.0}, shares=(1.0,))
    found, again = (shift.run(there.inputs, PARAMS) for _ in range(2))
    assert set(found) == set(shift.SCHEMAS)
    for name, table in found.items():
        assert again[name].equals(table), name


DRAWN = Params(
    version="0.1.0", n_bootstrap=400, n_permutations=199, n_permutations_similarity=999, seed=3
)


def rows_of(base, own, sizes, control=None):
    weights = DRAWN.weights([str(i) for i in range(len(base))])
    if control is not None:
        own = against(own, control)
    return judged_rows(base, own, sizes, weights, DRAWN).to_dicts()


def against(own, control):
    return own._replace(control=control, untested="")


def test_groups_with_more_attributes_count_for_more_and_those_without_do_not():
    base = np.array([[0.5], [0.0], [np.nan], [0.2]])
    own = Corpus([1], np.array([[[1.0], [0.0], [np.nan], [0.9]]]))
    sizes = np.array([[2.0], [6.0], [0.0], [0.0]])
    (seen,) = rows_of(base, own, sizes)
    assert seen["base"] == pytest.approx(0.125)
    assert seen["value"] == pytest.approx(0.125)
    assert (seen["n"], seen["p"]) == (2, None)


def test_each_part_of_p_has_what_it_would_find_by_its_own_error():
    rng = np.random.default_rng(314)
    base = rng.random((30, 1))
    told = {}
    for trainings in (2, 6):
        own, other = (
            Corpus([*range(trainings)], base + rng.normal(0, 0.1, (trainings, 30, 1)) + alike)
            for alike in rng.normal(0, 0.05, (2, trainings, 1, 1))
        )
        rows = pl.DataFrame(rows_of(base, own, np.ones_like(base), other))
        (told[trainings],) = detectable(rows).to_dicts()
        seen = [(x.values - base).mean(axis=1).ravel() for x in (own, other)]
        welch = ttest_ind(*seen, equal_var=False)
        at = told[trainings]["detectable_seeds"]
        if trainings == 2:
            assert welch.df < 5
            assert at is None
            continue
        error = np.ptp(welch.confidence_interval(0.95)) / 2 / student.isf(0.025, welch.df)
        critical = student.isf(0.025, welch.df)
        assert nct.sf(critical, welch.df, at / error) == pytest.approx(0.8, abs=1e-3)
    # groups are drawn, and a bootstrap's error is about s / sqrt(n)
    apart = (own.values.mean(axis=0) - other.values.mean(axis=0)).std() / 30**0.5
    found = told[6]["detectable_groups"]
    assert nct.sf(student.isf(0.025, 29), 29, found / apart) == pytest.approx(0.8, abs=0.1)
    assert told[6]["detectable_seeds"] > 2 * found  # trainings move all groups together


def test_intervals_cover_and_tests_reject_at_their_rate():
    """Groups of a category are a draw; corpora and control have the same mean change."""
    rng, times = np.random.default_rng(8), 600
    base = rng.random((30, times))
    control = Corpus([1, 2], base + 0.1 + rng.normal(0, 0.1, (2, 30, times)))
    own = Corpus([1, 2], base + 0.1 + rng.normal(0, 0.1, (2, 30, times)))
    rows = rows_of(base, own, np.ones_like(base), control)
    p = np.array([r["p_groups"] for r in rows])
    assert abs((p <= 0.05).mean() - 0.05) < 4 * (0.05 * 0.95 / times) ** 0.5
    covered = np.mean([r["low"] <= 0.1 <= r["high"] for r in rows])
    assert 0.90 < covered < 0.98
    apart = np.mean([r["low_difference"] <= 0 <= r["high_difference"] for r in rows])
    assert apart > 0.93  # of two seeds those over trainings are wider


def test_trainings_that_move_all_groups_alike_have_small_p_and_do_not_pass_over_seeds():
    """Two seeds of one corpus: what they have in common is chance, and no group knows it."""
    rng, times = np.random.default_rng(11), 400
    base = rng.random((12, times))

    def corpus():
        common = rng.normal(0, 0.1, (2, 1, times))
        return Corpus([1, 2], base + common + rng.normal(0, 0.05, (2, 12, times)))

    rows = rows_of(base, corpus(), np.ones_like(base), corpus())
    assert np.mean([r["p_groups"] <= 0.05 for r in rows]) > 0.5
    for p in ("p_seeds", "p"):
        assert np.mean([r[p] <= 0.05 for r in rows]) < 0.05 + 4 * (0.05 * 0.95 / times) ** 0.5
    covered = np.mean([r["low_difference"] <= 0 <= r["high_difference"] for r in rows])
    assert covered > 0.95 - 4 * (0.05 * 0.95 / times) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(("affects", "diagonal"), [(9, True), (10, False)])
@pytest.mark.parametrize("groups", [3, 4, 9])
def test_similarities_of_two_corpora_alike_are_told_apart_at_their_rate_at_most(
    groups, affects, diagonal
):
    """Few groups too: a bootstrap of three rows would tell half of such corpora apart."""
    rng, times = np.random.default_rng([9, groups]), 150
    p = []
    for _ in range(times):
        base = rng.random((groups, affects))
        one, two = (
            Corpus([1, 2], base[None] + rng.normal(0, 0.1, (2, *base.shape))) for _ in range(2)
        )
        p.append(exchanged(base, against(one, two), "c", DRAWN, diagonal=diagonal).p())
    assert min(p) >= 2 / 2**groups
    for level in (0.05, 0.3):
        assert np.mean(np.array(p) <= level) <= level + 4 * (level * (1 - level) / times) ** 0.5
    assert min(p) <= 0.3  # it can tell something apart


def test_of_a_corpus_that_mixes_groups_similarity_differs_at_the_least_p_that_there_is():
    rng = np.random.default_rng(10)
    base = rng.random((9, len(AFFECTS)))
    still = Corpus([1, 2], base[None] + rng.normal(0, 0.001, (2, *base.shape)))
    mixed = Corpus([1, 2], rng.random((2, *base.shape)))
    seen = exchanged(base, against(mixed, still), "c", DRAWN, diagonal=False)
    assert seen.seen < -0.5
    assert seen.p() == 2 / 2**9
