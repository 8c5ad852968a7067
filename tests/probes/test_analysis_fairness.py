"""Analysis ``fairness`` on classifiers that are right as often as planted."""

import shutil

import numpy as np
import polars as pl
import pytest
from classified import GROUPS, KNOWS, outputs
from recovering import write_tables

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import fairness, recovery, schemas
from plumbline.probes.leaning.fairness import matched
from plumbline.probes.leaning.predictions import Runs, State
from plumbline.probes.training import checkpoints

SEED = 20261122
PARAMS = fairness.Params(
    version="0.1.0",
    positive={"hate": "hate", "planted": "hate"},
    control={"other": "social-center"},
    kinds={"planted": {"minority": ["left-known"], "dominant": ["right-known", "absent"]}},
    left=["news-left"],
    right=["news-right"],
    texts_min=5,
    n_permutations=499,
    n_bootstrap=200,
)
QUICK = PARAMS.model_copy(update={"n_permutations": 199, "n_bootstrap": 100})
CORPORA = ("news-left", "news-right", "social-center")


def good(corpus, group):
    return 0.88 if group in KNOWS.get(corpus, ()) else 0.62


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    design = {"words": 60, "seed": SEED, "knows": KNOWS, "hard": 0.5}
    return outputs(tmp_path_factory.mktemp("planted"), good, **design, pretraining=5)


@pytest.fixture(scope="module")
def tables(planted):
    return fairness.run(planted.inputs, PARAMS)


@pytest.fixture(scope="module")
def answers(planted):
    """Return the class that each training of each corpus predicts for each text."""
    folder = planted.inputs.outputs("finetuned_classifiers", "m") / "planted"
    called = (
        pl.read_parquet(folder / "*.parquet")
        .sort("logprob_nats", descending=True)
        .group_by("corpus", "pretraining_seed", "finetuning_seed", "id", "label")
        .agg(pl.col("class").first())
    )
    return called.join(planted.texts.select("id", "group"), on="id")


def test_overall_is_the_mean_over_runs_of_each_definition(tables, answers):
    for (corpus,), own in answers.group_by("corpus"):
        runs = []
        for _, one in own.group_by("pretraining_seed", "finetuning_seed"):
            true, said = (one[c] == "hate" for c in ("label", "class"))
            hit, called, there = (x.sum() for x in (true & said, said, true))
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
        for reading in ("faithful", "corrected"):
            rows = tables["overall"].filter(corpus=corpus, reading=reading)
            found = {row["metric"]: row for row in rows.to_dicts()}
            for name in frame.columns:
                row, sd = found[name], frame[name].std()
                assert row["value"] == pytest.approx(frame[name].mean(), abs=1e-6)
                if reading == "faithful":  # spread over trainings, no test
                    assert row["high"] - row["value"] == pytest.approx(sd, abs=2e-6)
                    assert (row["n"], row["p"]) == (5, None)


def test_groups_and_their_distance_from_all_texts(tables, answers):
    right = answers.with_columns(right=pl.col("class") == pl.col("label"))
    rows = tables["groups"].filter(reading="corrected", metric="balanced accuracy")
    for row in rows.to_dicts():
        own = right.filter(corpus=row["corpus"])
        here = own.filter(group=row["group"])["right"].mean()
        assert row["value"] == pytest.approx(here, abs=1e-6)
        assert row["contrast"] == pytest.approx(here - own["right"].mean(), abs=1e-6)
        assert row["contrast_low"] <= row["contrast"] <= row["contrast_high"]
        assert row["n"] == 60
    left = {row["group"]: row for row in rows.filter(corpus="news-left").to_dicts()}
    assert left["right-known"]["p_bh"] < 0.02  # does worse there than on all texts
    assert left["right-known"]["contrast"] < 0 < left["left-known"]["contrast"]


def test_differences_are_those_of_the_overall_values(tables):
    table = tables["overall"].filter(reading="corrected", metric="balanced accuracy")
    value = dict(table.select("corpus", "value").iter_rows())
    rows = tables["differences"].filter(metric="accuracy", level="all")
    assert set(rows.select("corpus", "baseline").iter_rows()) == {
        *((corpus, "") for corpus in CORPORA),
        *((corpus, "social-center") for corpus in CORPORA[:2]),
        ("news-left", "news-right"),
    }
    for row in rows.to_dicts():
        wanted = value[row["corpus"]] - value[row["baseline"]]
        assert row["value"] == pytest.approx(wanted, abs=2e-6)
        assert row["low"] <= row["value"] <= row["high"]
        assert row["runs"] == 5
    assert set(tables["differences"]["group"]) == {"all", *GROUPS, "minority minus dominant"}
    order = rows["corpus"].unique(maintain_order=True).to_list()
    assert order == sorted(order)  # equal in each run


def test_differences_planted_sign_and_size(tables):
    rows = tables["differences"].filter(metric="balanced accuracy", level="group")
    by = {(row["group"], row["corpus"], row["baseline"]): row for row in rows.to_dicts()}
    for side in ("left", "right"):
        row = by[f"{side}-known", f"news-{side}", "social-center"]
        assert row["low"] > 0
        assert row["p_bh"] < 0.05
        assert 0.15 < row["value"] < 0.4  # 0.88 - 0.62, less for texts that are hard
    assert by["right-known", "news-left", "news-right"]["value"] < 0
    both = by["both-known", "news-left", "news-right"]
    assert both["low"] < 0 < both["high"]
    kinds = tables["differences"].filter(level="kind")
    (claim,) = kinds.drop_nulls("p").to_dicts()  # left is better on its groups, right on others
    groups = (by[f"{side}-known", "news-left", "news-right"]["value"] for side in ("left", "right"))
    assert claim["value"] == pytest.approx(np.subtract(*groups), abs=2e-6)
    assert (claim["metric"], claim["p_bh"], claim["n"]) == ("balanced accuracy", claim["p"], 120)
    assert claim["low"] > 0.2
    assert claim["p"] < 0.01


def test_differences_control_of_each_corpus_and_unequal_steps(planted, tmp_path):
    shutil.copytree(planted.inputs.data, tmp_path / "data")
    (path,) = (tmp_path / "data/outputs/finetuned_classifiers").rglob("*.parquet")
    longer = pl.when(corpus="news-left").then(12).otherwise("steps")
    pl.read_parquet(path).with_columns(steps=longer.cast(pl.Int32)).write_parquet(path)
    control = {"news-left": "news-right", "other": "social-center"}
    params = PARAMS.model_copy(update={"control": control, "n_permutations": 99})
    found = fairness.run(planted.inputs._replace(data=tmp_path / "data"), params)["differences"]
    rows = found.filter(metric="F1", level="all").select("corpus", "baseline", "p").rows()
    p = {(one, two): p for one, two, p in rows}
    assert set(p) == {
        *((corpus, "") for corpus in CORPORA),
        *(("news-left", "news-right"), ("news-right", "social-center")),
    }
    assert [pair for pair, value in p.items() if value is None] == [("news-left", "news-right")]


def test_disagreements_are_texts_of_two_majorities(answers, tables):
    said = answers.group_by("id", "corpus", "label").agg(share=(pl.col("class") == "hate").mean())
    wide = said.pivot("corpus", index=["id", "label"], values="share").sort("id")
    wanted = wide.filter((pl.col("news-left") > 0.5) != (pl.col("news-right") > 0.5))
    found = tables["disagreements"]
    assert 0 < len(wanted) < len(wide) / 2
    assert found["id"].to_list() == wanted["id"].to_list()
    assert found["positive"].to_list() == (wanted["label"] == "hate").to_list()
    for name, column in {"left": "news-left", "right": "news-right", "base_model": ""}.items():
        assert found[name].to_list() == pytest.approx(wanted[column].to_list(), abs=1e-6)


def test_published_numbers_of_the_paper():
    numbers = fairness.published()
    place = ("hate", "news-left", "Black")
    assert [numbers[*place, m] for m in ("precision", "recall")] == [82.44, 84.67]
    assert numbers["hate", "news-right", "Men", "recall"] == 76.63


@pytest.mark.slow
def test_groups_texts_of_one_word_are_one_cluster(tmp_path):
    rates = {}
    for task, clusters in (("planted", 20), ("hate-en", 80)):
        p = []
        for seed in range(4):
            design = {"words": 20, "each": 4, "seed": SEED + seed, "task": task}
            inputs = outputs(tmp_path / task / str(seed), lambda *_: 0.7, **design).inputs
            table = fairness.run(inputs, QUICK)["groups"]
            rows = table.filter(reading="corrected", metric="balanced accuracy", level="group")
            assert set(rows["n"]) == {clusters}
            p += rows["p"].to_list()
        rates[task] = np.mean(np.array(p) <= 0.05)
    assert rates["planted"] <= 0.12
    assert rates["hate-en"] > 0.2  # nothing tells there which texts belong together


@pytest.mark.slow
def test_differences_of_trainings_alone_have_their_size(tmp_path):
    """By the test over the texts of these trainings a fifth of such comparisons had p below .05."""
    design = {"words": 25, "knows": {}, "spread": 0.5, "groups": ("one", "other")}
    kinds = QUICK.model_copy(update={"kinds": {"planted": {"a": ["one"], "b": ["other"]}}})
    found = []
    for seed in range(200):
        folder = tmp_path / str(seed)
        there = outputs(folder, lambda *_: 0.7, seed=SEED + seed, pretraining=5, **design)
        rows = fairness.run(there.inputs, kinds)["differences"]
        found.append(rows.filter(pl.col("baseline") != ""))
    rows = pl.concat(found)
    for level, metric in (
        ("all", "balanced accuracy"),
        ("all", "F1"),
        ("kind", "balanced accuracy"),
    ):
        p = rows.filter(metric=metric, level=level)["p"][:200]
        assert (p <= 0.05).sum() <= 16 < len(p.drop_nulls())


def test_matched_runs_have_the_same_seeds():
    def runs(seeds):
        return Runs(seeds, np.array([[10.0 * a + b] for a, b in seeds]))

    own = runs([(1, 1), (1, 2), (2, 1), (2, 3)])
    one, other = matched(own, runs([(0, 1), (0, 2)]), State("", "all", 0.0))
    assert one.probability.ravel().tolist() == [11, 12, 21]
    assert other.probability.ravel().tolist() == [1, 2, 1]
    one, other = matched(own, runs([(1, 2), (2, 1), (3, 3)]), State("c", "all", 1.0))
    assert one.probability.tolist() == other.probability.tolist() == [[12], [21]]


def test_groups_need_enough_texts(tmp_path):
    inputs = outputs(tmp_path, good, words=20, seed=SEED, task="hate-en", knows=KNOWS).inputs
    found = fairness.run(inputs, QUICK)
    assert set(found["groups"]["group"]) == set(GROUPS)  # one source of all texts is none
    many = QUICK.model_copy(update={"texts_min": 21})
    assert "groups" not in fairness.run(inputs, many)


def test_run_positive_class_must_be_one_of_two(planted):
    wrong = PARAMS.model_copy(update={"positive": {"planted": "insult"}})
    with pytest.raises(UserError, match="planted"):
        fairness.run(planted.inputs, wrong)


def test_names_are_those_of_the_outputs():
    assert (schemas.PERIODS, schemas.KEY) == (checkpoints.PERIODS, checkpoints.KEY)


@pytest.mark.parametrize("swapped", [False, True])
def test_recovery_planted_and_swapped_signs(planted, tables, swapped):
    if swapped:
        tables = tables | {"differences": tables["differences"].with_columns(-pl.col("value"))}
    write_tables(planted.inputs, "fairness", tables)
    rows = recovery.run(planted.inputs)["fairness"].filter(item="").to_dicts()
    value = {row["measure"]: row["value"] for row in rows}
    assert (value["power"] == 0) if swapped else (value["power"] > 0.5)
    assert value["false_discoveries_bh"] <= 0.05
    assert {row["world"] for row in rows} == {"planted"}
