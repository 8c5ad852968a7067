"""The analysis fairness on classifiers that are right as often as planted."""

import shutil

import numpy as np
import polars as pl
import pytest
from classified import GROUPS, KNOWS, outputs
from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as student

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import fairness, recovery
from plumbline.probes.leaning.fairness import CORRECTED, FAITHFUL
from plumbline.probes.leaning.predictions import ALL, Case, Runs, State, matched
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.classification import METRICS

SEED = 20261122
PARAMS = fairness.Params(
    version="0.1.0",
    positive={"hate": "hate", "planted": "hate"},
    control={"other": "social-center"},
    left=["news-left"],
    right=["news-right"],
    texts_min=5,
    n_permutations=499,
    n_bootstrap=200,
)
QUICK = PARAMS.model_copy(update={"n_permutations": 199, "n_bootstrap": 100})
ALL_TEXTS, GROUP, SOURCE = range(3)


def good(corpus, group):
    return 0.88 if group in KNOWS.get(corpus, ()) else 0.62


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted")
    told = {"number": 60, "seed": SEED, "knows": KNOWS, "hard": 0.5}
    return outputs(folder, good, **told, pretraining=range(1, 6))


@pytest.fixture(scope="module")
def tables(planted):
    return fairness.run(planted.inputs, PARAMS)


def recovered(inputs, tables):
    """Write tables where the recovery reads them and return its rows."""
    folder = inputs.tables("fairness")
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    return recovery.run(inputs, recovery.Params())["fairness"]


@pytest.fixture(scope="module")
def answers(planted):
    found = pl.read_parquet(
        planted.inputs.outputs("finetuned_classifiers", "m") / "planted/*.parquet"
    )
    called = found.sort("logprob_nats", descending=True).group_by(
        *("corpus", "pretraining_seed", "finetuning_seed", "id", "label"), maintain_order=True
    )
    return called.agg(pl.col("class").first()).join(planted.texts.select("id", "group"), on="id")


def test_every_measure_is_the_mean_over_runs_of_its_definition(tables, answers):
    for (corpus,), own in answers.group_by("corpus"):
        runs = []
        for _, one in own.group_by("pretraining_seed", "finetuning_seed"):
            true, said = (one[c] == "hate" for c in ("label", "class"))
            hit, called, there = ((x).sum() for x in (true & said, said, true))
            recall, other = hit / there, (~true & ~said).sum() / (~true).sum()
            runs.append(
                {
                    "accuracy": (true == said).mean(),
                    "balanced accuracy": (recall + other) / 2,
                    "F1": 2 * hit / (called + there),
                    "precision": hit / called,
                    "recall": recall,
                }
            )
        frame = pl.DataFrame(runs)
        for reading in (FAITHFUL, CORRECTED):
            rows = tables["overall"].filter(corpus=corpus, reading=reading)
            found = dict(rows.select("metric", "value").iter_rows())
            for name in frame.columns:
                assert found[name] == pytest.approx(frame[name].mean(), abs=1e-6)
            spread = rows.filter(metric="F1")["sd_runs"].item()
            assert spread == pytest.approx(frame["F1"].std(), abs=1e-6)
            assert set(rows["runs"]) == {len(frame)}


def test_the_faithful_reading_has_the_spread_over_trainings_and_no_test(tables):
    own = tables["overall"].filter(reading=FAITHFUL, metric="accuracy")
    assert own["p"].null_count() == len(own)
    assert set(own["cluster"]) == {"training"}
    for row in own.to_dicts():
        for end in (row["high"] - row["value"], row["value"] - row["low"]):
            assert end == pytest.approx(row["sd_runs"], abs=2e-6)
        assert row["n"] == row["runs"] == 5


def test_the_spread_of_a_difference_is_that_over_its_trainings(tables, answers):
    pair = {"corpus": "news-left", "baseline": "news-right", "group": "all", "metric": "accuracy"}
    (row,) = tables["differences"].filter(reading=CORRECTED, **pair).to_dicts()
    seeds = ["pretraining_seed", "finetuning_seed"]
    right = answers.group_by("corpus", *seeds).agg(
        right=(pl.col("class") == pl.col("label")).mean()
    )
    one, other = (right.filter(corpus=pair[side]).sort(seeds)["right"] for side in [*pair][:2])
    assert row["value"] == pytest.approx((one - other).mean(), abs=1e-6)
    assert row["sd_runs"] == pytest.approx((one - other).std(), abs=1e-6)


def test_every_row_says_cluster_and_null(tables):
    for name in ("overall", "groups", "differences"):
        table = tables[name]
        assert set(table["cluster"]) <= {"word", "training"}
        tested = table.filter(pl.col("p").is_not_null())
        assert (tested["null"] != "none: no test").all()
        assert (table.filter(pl.col("p").is_null())["null"] == "none: no test").all()


def test_groups_and_their_distance_from_all_texts(tables, answers):
    right = answers.with_columns(right=pl.col("class") == pl.col("label"))
    for row in tables["groups"].filter(reading=CORRECTED, metric="balanced accuracy").to_dicts():
        own = right.filter(corpus=row["corpus"])
        here = own.filter(group=row["group"])["right"].mean()
        assert row["value"] == pytest.approx(here, abs=1e-6)
        assert row["contrast"] == pytest.approx(here - own["right"].mean(), abs=1e-6)
        assert row["contrast_low"] <= row["contrast"] <= row["contrast_high"]
        assert row["n"] == 60
    unknown = tables["groups"].filter(
        reading=CORRECTED, corpus="news-left", metric="balanced accuracy", level=GROUP
    )
    found = dict(unknown.select("group", "p_bh").iter_rows())
    assert found["right-known"] < 0.02  # does worse there than on all texts
    contrast = dict(unknown.select("group", "contrast").iter_rows())
    assert contrast["right-known"] < 0 < contrast["left-known"]


def test_what_is_compared(tables):
    own = tables["differences"].filter(reading=CORRECTED, metric="F1", level=ALL_TEXTS)
    assert set(own.select("corpus", "baseline").iter_rows()) == {
        *((c, "") for c in ("news-left", "news-right", "social-center")),
        *((c, "social-center") for c in ("news-left", "news-right")),
        ("news-left", "news-right"),
    }
    assert set(tables["differences"]["group"]) == {"all", *GROUPS}
    told = set(own.select("baseline", "steps", "baseline_steps").iter_rows())
    assert told == {("", 10, 0), ("social-center", 10, 10), ("news-right", 10, 10)}


def test_each_corpus_has_a_control_of_its_own_and_unequal_training_no_test(planted, tmp_path):
    inputs = planted.inputs
    shutil.copytree(inputs.data, tmp_path / "data")
    (path,) = (tmp_path / "data/outputs/finetuned_classifiers").rglob("*.parquet")
    longer = pl.when(corpus="news-left").then(12).otherwise("steps")
    pl.read_parquet(path).with_columns(steps=longer.cast(pl.Int32)).write_parquet(path)
    control = {"news-left": "news-right", "other": "social-center"}
    params = PARAMS.model_copy(update={"control": control, "n_permutations": 99})
    found = fairness.run(inputs._replace(data=tmp_path / "data"), params)["differences"]
    own = found.filter(reading=CORRECTED, metric="F1", level=ALL_TEXTS)
    p = {(one, two): of for one, two, of in own["corpus", "baseline", "p"].rows()}
    assert set(p) == {
        *((corpus, "") for corpus in ("news-left", "news-right", "social-center")),
        *(("news-left", "news-right"), ("news-right", "social-center")),
    }
    assert p.pop(("news-left", "news-right")) is None
    assert None not in p.values()
    null = own.filter(corpus="news-left", baseline="news-right")["null"]
    assert null.to_list() == ["no test: trained for 12 steps, the other side for 10"]


def test_interval_p_and_detectable_of_a_difference_are_of_one_error(tables):
    table = tables["differences"].filter(pl.col("p").is_not_null())
    assert len(table) > 10
    own = table.filter(pl.col("p").is_between(0.001, 0.9), pl.col("value").abs() > 0.01)
    seen = 0
    for row in own.to_dicts():
        half = (row["high"] - row["low"]) / 2
        middle = (row["high"] + row["low"]) / 2

        def apart(df, half=half, middle=middle, p=row["p"]):
            return 2 * student.sf(abs(middle) / half * student.isf(0.025, df), df) - p

        df = brentq(apart, 1, 1e5)  # by interval and p, error and degrees of freedom are known
        error = half / student.isf(0.025, df)
        if df < 4.9:
            assert row["detectable"] is None
        elif df > 5.1:
            at = row["detectable"] / error
            assert nct.sf(student.isf(0.025, df), df, at) == pytest.approx(0.8, abs=2e-3)
            assert row["detectable"] <= row["detectable_bh"]
            seen += 1
    assert seen > 3
    untested = tables["differences"].filter(pl.col("p").is_null())
    assert untested["detectable"].null_count() == len(untested) > 0


def test_what_is_detectable_of_a_group_is_of_the_permutations_of_its_members(tables, answers):
    rng = np.random.default_rng(SEED)
    corpus, apart = "news-left", []
    own = answers.filter(corpus=corpus)
    wide = own.with_columns(called=pl.col("class") == "hate").pivot(
        "id", index=("pretraining_seed", "finetuning_seed"), values="called"
    )
    texts = own.unique("id").sort("id")
    called = wide.select(texts["id"].to_list()).to_numpy()
    hate = (texts["label"] == "hate").to_numpy()

    def measures(of):
        """Return balanced accuracy and F1, means over classifiers."""
        right = (called & hate & of).sum(axis=1), (~called & ~hate & of).sum(axis=1)
        both = (right[0] / (hate & of).sum() + right[1] / (~hate & of).sum()) / 2
        f1 = 2 * right[0] / ((called & of).sum(axis=1) + (hate & of).sum())
        return both.mean(), f1.mean()

    whole = measures(np.ones_like(hate))
    rows = tables["groups"].filter(corpus=corpus, reading=CORRECTED).drop_nulls("p")
    rows = rows.filter(pl.col("group").is_in(texts["group"].unique().to_list()))
    assert len(rows) == 2 * texts["group"].n_unique() > 2
    for (group,), own in rows.partition_by("group", as_dict=True).items():
        member, null = (texts["group"] == group).to_numpy(), []
        for _ in range(2000):
            drawn = member.copy()
            for of in (hate, ~hate):
                drawn[of] = rng.permutation(member[of])
            null.append(measures(drawn))
        for row in own.to_dicts():
            m = ("balanced accuracy", "F1").index(row["metric"])
            orders = np.array(null)[:, m]
            assert row["contrast"] == pytest.approx(measures(member)[m] - whole[m], abs=1e-6)
            far = max(abs(np.quantile(orders, q) - whole[m]) for q in (0.025, 0.975))
            told = far + 0.8416 * orders.std()
            assert row["detectable"] == pytest.approx(told, rel=0.08)
            apart.append((row["high"] - row["low"]) / 3.92 * 2.8016 / told - 1)
    # intervals are of the group's own value, and some of another width
    assert max(np.abs(apart)) > 0.1


def test_by_fewer_than_five_trainings_nothing_is_told_of_what_would_be_found(tmp_path):
    told = {"number": 40, "seed": SEED, "knows": KNOWS, "hard": 0.5, "spread": 0.3}
    for trainings in (4, 5):
        there = outputs(tmp_path / f"{trainings}", good, **told, pretraining=range(trainings))
        few = PARAMS.model_copy(update={"n_permutations": 19, "n_bootstrap": 100})
        own = fairness.run(there.inputs, few)["differences"].drop_nulls("p")
        assert len(own)
        assert bool(own["detectable"].count()) == (trainings == 5)


def test_texts_on_which_sides_disagree_are_those_of_two_majorities(planted, tables):
    (path,) = planted.inputs.data.rglob("finetuned_classifiers/m/planted/all.parquet")
    told = pl.read_parquet(path).filter(pl.col("class") == "hate")
    called = pl.col("logprob_nats").exp() > 0.5
    share = told.group_by("id", "corpus", "label").agg(share=called.mean())
    wide = share.pivot("corpus", index=["id", "label"], values="share").sort("id")
    left, right = pl.col("news-left") > 0.5, pl.col("news-right") > 0.5
    wanted = wide.filter(left != right)
    found = tables["disagreements"]
    assert 0 < len(wanted) < len(wide) / 2
    for name, column in {"left": "news-left", "right": "news-right", "base_model": ""}.items():
        assert found[name].to_list() == pytest.approx(wanted[column].to_list(), abs=1e-6)
    assert found["id"].to_list() == wanted["id"].to_list()
    assert found["positive"].to_list() == (wanted["label"] == "hate").to_list()
    assert found["corpora"].to_list() == [["news-left", "news-right"]] * len(wanted)
    assert found["positive_rates"].to_list() == [
        [*row] for row in found.select("left", "right").rows()
    ]


def test_what_the_paper_reports_of_a_group_stands_beside_ours(tmp_path):
    inputs = outputs(tmp_path, good, groups=("Black", "Men"), task="hate-en").inputs
    found = fairness.run(inputs, PARAMS.model_copy(update={"n_permutations": 99}))["groups"]
    own = found.filter(pl.col("published").is_not_null(), reading=FAITHFUL)
    table = {row[:3]: row[3] for row in own["corpus", "group", "metric", "published"].rows()}
    assert table == {
        ("news-left", "Black", "precision"): 0.8244,
        ("news-left", "Black", "recall"): 0.8467,
        ("news-left", "Men", "precision"): 0.7885,
        ("news-left", "Men", "recall"): 0.7092,
        ("news-right", "Black", "precision"): 0.7924,
        ("news-right", "Black", "recall"): 0.8526,
        ("news-right", "Men", "precision"): 0.7899,
        ("news-right", "Men", "recall"): 0.7663,
    }


def test_differences_are_of_the_overall_values(tables):
    table = tables["overall"].filter(reading=CORRECTED, metric="balanced accuracy")
    value = dict(table.select("corpus", "value").iter_rows())
    own = tables["differences"].filter(reading=CORRECTED, metric="accuracy", level=ALL_TEXTS)
    assert len(own) == 6
    for row in own.to_dicts():
        wanted = value[row["corpus"]] - value[row["baseline"]]
        assert row["value"] == pytest.approx(wanted, abs=2e-6)
        assert row["low"] <= row["value"] <= row["high"]


def test_planted_differences_are_found_with_their_sign(planted, tables):
    found = recovered(planted.inputs, tables)
    by = {row["measure"]: row for row in found.to_dicts()}
    left = by["balanced accuracy at left-known: news-left minus social-center"]
    right = by["balanced accuracy at right-known: news-right minus social-center"]
    both = by["balanced accuracy at both-known: news-left minus news-right"]
    for row in (left, right):
        assert row["low"] > 0
        assert row["null"] == "above 0: planted"
        assert 0.15 < row["value"] < 0.4  # 0.88 - 0.62, less for texts that are hard
    assert both["low"] < 0 < both["high"]
    assert both["null"] == "0: nothing planted"
    assert by["balanced accuracy at right-known: news-left minus news-right"]["value"] < 0
    assert by["share of planted differences that are found, over trainings"]["value"] >= 0.8
    assert set(found["world"]) == {0}


def test_the_control_fails_where_the_sides_are_swapped(planted, tables):
    turned = tables["differences"].with_columns(value=-pl.col("value"))
    found = recovered(planted.inputs, tables | {"differences": turned})
    by = dict(found.select("measure", "value").iter_rows())
    assert by["share of planted differences that are found, over trainings"] == 0


def test_the_family_is_all_tests_of_a_task_and_a_reading(tables):
    for name, size in (("overall", 2 * 4), ("groups", 2 * 4 * 3), ("differences", 2 * 6 * 4)):
        own = tables[name].filter(reading=CORRECTED)
        assert own["p"].drop_nulls().len() == size
        assert set(own["family"]) == {size}
        p, adjusted = (own[c].drop_nulls().to_numpy() for c in ("p", "p_bh"))
        order = np.argsort(p)
        wanted = np.minimum.accumulate((p[order] * size / np.arange(1, size + 1))[::-1])[::-1]
        assert adjusted[order] == pytest.approx(np.minimum(wanted, 1), rel=1e-4)


@pytest.mark.slow
def test_where_nothing_was_planted_discoveries_are_at_the_nominal_rate(tmp_path):
    raw, adjusted = [], []
    for seed in range(6):
        where = tmp_path / str(seed)
        there = outputs(where, lambda *_: 0.7, number=25, seed=SEED + seed, knows={}, hard=0.8)
        found = fairness.run(there.inputs, QUICK)
        own = found["differences"].filter(reading=CORRECTED, metric="balanced accuracy")
        raw += own["p"].to_list()
        adjusted.append((own["p_bh"] <= 0.05).any())
        if not seed:
            rows = recovered(there.inputs, found)
            assert set(rows["world"]) == {1}
            assert "planted differences" not in " ".join(rows["measure"])
    assert np.mean(np.array(raw) <= 0.05) <= 0.05
    assert sum(adjusted) <= 1


@pytest.mark.slow
def test_texts_of_one_word_are_no_independent_draws(tmp_path):
    found = {}
    for task, clusters in (("planted", 20), ("hate-en", 80)):
        significant = []
        for seed in range(4):
            planted = {"number": 20, "each": 4, "seed": SEED + seed, "task": task}
            there = outputs(tmp_path / task / str(seed), lambda *_: 0.7, **planted)
            table = fairness.run(there.inputs, QUICK)["groups"]
            own = table.filter(reading=CORRECTED, metric="balanced accuracy")
            significant += (own["p"] <= 0.05).to_list()
            assert set(own.filter(level=GROUP)["n"]) == {clusters}
        found[task] = np.mean(significant)
    assert found["planted"] <= 0.12
    assert found["hate-en"] > 0.2  # nothing tells there which texts belong together


@pytest.mark.slow
def test_differences_of_trainings_alone_have_their_size(tmp_path):
    """By the test over the texts of these trainings a fifth of such comparisons had p below .05."""
    found = []
    for seed in range(67):
        there = outputs(
            tmp_path / str(seed),
            lambda *_: 0.7,
            number=25,
            seed=SEED + seed,
            knows={},
            spread=0.5,
            groups=("one", "other"),
            pretraining=range(1, 6),
        )
        own = fairness.run(there.inputs, QUICK)["differences"].filter(level=ALL_TEXTS)
        found.append(own.filter(pl.col("baseline") != "", reading=CORRECTED))
    for metric in ("balanced accuracy", "F1"):
        p = pl.concat(found).filter(metric=metric)["p"][:200]
        assert (p <= 0.05).sum() <= 16 < len(p.drop_nulls())


def test_intervals_over_texts_hold_the_truth_at_their_rate():
    rng = np.random.default_rng(SEED)
    ids = [f"t{i}" for i in range(150)]
    held = np.zeros(3)
    for number in range(200):
        true = rng.random(150) < 0.5
        difficulty = rng.uniform(0.5, 0.9, 150)  # 0.7 on average
        right = rng.random((4, 150)) < difficulty
        runs = Runs([(1, s) for s in range(4)], np.where(right == true, 0.8, 0.2))
        members = {ALL: np.ones(150, dtype=bool)}
        case = Case("m", "t", [f"{number}{i}" for i in ids], true, {}, members)
        own = case.measured(runs.predicted, members[ALL], case.weights(200, 1))
        low, high = percentiles(own.mean[1:].T, PARAMS.confidence)
        held += [low[m] <= 0.7 <= high[m] for m in (0, 1, METRICS.index("recall"))]
    assert (held / 200 >= 0.9).all()
    assert (held / 200 <= 0.99).all()


def test_runs_are_paired_by_their_seeds():
    def runs(seeds):
        return Runs(seeds, np.array([[10.0 * a + b] for a, b in seeds]))

    own = runs([(1, 1), (1, 2), (2, 1), (2, 3)])
    one, other = matched(own, runs([(0, 1), (0, 2)]), State("", 0, 0.0))
    assert one.probability.ravel().tolist() == [11, 12, 21]
    assert other.probability.ravel().tolist() == [1, 2, 1]
    one, other = matched(own, runs([(1, 2), (2, 1), (3, 3)]), State("c", 0, 1.0))
    assert one.probability.tolist() == other.probability.tolist() == [[12], [21]]


def test_groups_and_sources_of_the_dataset_with_enough_texts(tmp_path):
    there = outputs(tmp_path, good, number=20, seed=SEED, task="hate-en", knows=KNOWS)
    found = fairness.run(there.inputs, PARAMS)
    assert set(found["groups"]["group"]) == set(GROUPS)  # one source of all texts is none
    many = PARAMS.model_copy(update={"texts_min": 21})
    assert "groups" not in fairness.run(there.inputs, many)


def test_a_class_that_is_not_there_is_told(planted):
    wrong = PARAMS.model_copy(update={"positive": {"planted": "insult"}})
    with pytest.raises(UserError, match="planted has the classes hate, not-hate; name one"):
        fairness.run(planted.inputs, wrong)


def test_left_and_right_must_be_as_many():
    with pytest.raises(ValueError, match="as many of one as of the other"):
        fairness.Params.model_validate(PARAMS.model_dump() | {"left": []})


def test_names_are_those_of_the_outputs():
    from plumbline.probes.leaning import schemas
    from plumbline.probes.training import checkpoints

    assert schemas.PERIODS == checkpoints.PERIODS
    assert schemas.KEY == checkpoints.KEY
