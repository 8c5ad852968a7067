import numpy as np
import polars as pl
import pytest
from recovering import write_tables
from scipy.stats import permutation_test
from society import society

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS, EMOTIONS
from plumbline.probes.stereotypes import emotions, recovery
from plumbline.probes.stereotypes.emotions import Params

SEED = 222
PARAMS = Params(
    version="0.1.0", top_k={"probability": 60, "corrected": 15}, n_permutations=199, n_bootstrap=100
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return society(tmp_path_factory.mktemp("planted"), SEED, 0.0, emotion=2.0)


@pytest.fixture(scope="module")
def table(world):
    return emotions.run(world.inputs, PARAMS)["emotions"]


def part(table, reading, level):
    return table.filter(reading=reading, level=level)


def test_run_profile_of_a_group_by_hand(world, table):
    group = world.groups[20][1]
    lists = pl.read_parquet(world.inputs.outputs("completions", "m") / "en/*.parquet")
    lists = lists.filter(group=group)
    lists = lists.with_columns(t=pl.col("logprob_nats") - pl.col("prior_nats"))
    words = set()
    for _, rows in lists.group_by("query"):
        words |= set(rows.sort("t", descending=True).head(15)["word"])
    lexicon = pl.read_parquet(world.inputs.datasets["emotions"] / "en.parquet")
    covered = lexicon.filter(pl.col("word").is_in(words))
    rows = part(table, "corrected", "group").filter(group=group)
    assert rows["affect"].to_list() == list(AFFECTS)
    assert rows["n"].unique().to_list() == [len(covered)]
    assert rows["value"].to_list() == pytest.approx(
        [covered[name].mean() for name in AFFECTS], abs=1e-6
    )
    assert rows["coverage"][0] == pytest.approx(len(covered) / len(words), abs=1e-6)


def test_run_p_of_categories_is_at_least_that_of_permuted_groups(table):
    groups = part(table, "corrected", "group")
    categories = part(table, "corrected", "category")
    assert len(categories) == 3 * 10
    row = categories.filter(category="age", affect="anger").row(0, named=True)
    inside = pl.col("category") == "age"
    one, other = (groups.filter(x, affect="anger")["value"] for x in (inside, ~inside))
    assert (row["value"], row["n"]) == (pytest.approx(one.mean(), abs=2e-6), len(one))
    assert row["difference"] == pytest.approx(one.mean() - other.mean(), abs=2e-6)
    test = permutation_test(
        (one, other), lambda x, y: np.mean(x) - np.mean(y), n_resamples=999, rng=SEED
    )
    assert row["p"] > test.pvalue - 0.1


def test_run_finds_the_planted_emotion_of_a_group(world, table):
    groups = part(table, "corrected", "group")
    number = {name: i for i, (_, name) in enumerate(world.groups)}
    planted = pl.Series([AFFECTS[number[g] % len(EMOTIONS)] for g in groups["group"]])
    found = groups.filter(groups["affect"] == planted)
    assert len(found) == 82
    assert (found["difference"] > 0).mean() > 0.9
    assert (found["p_bh"] <= 0.05).mean() > 0.5
    assert (groups.filter(groups["affect"] != planted)["p_bh"] <= 0.05).mean() < 0.1


def test_run_counts_strings_as_released_and_words_in_the_corrected_reading(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    path = there.inputs.outputs("completions", "m") / "en/00000.parquet"
    rows = pl.read_parquet(path)
    group = rows["group"][0]
    lexicon = pl.read_parquet(there.inputs.datasets["emotions"] / "en.parquet")
    first, second = lexicon["word"][:2]
    # one word in three strings, of a vocabulary of GPT-2's kind, and another in one
    forms = [(f"Ġ{first}", first), (first, first), (f"Ġ{first.title()}", first.title())]
    tokens = [*forms, (f"Ġ{second}", second)]
    own = rows.filter(group=group, query=rows["query"][0]).head(4)
    own = own.with_columns(
        token=pl.Series([token for token, _ in tokens]), word=pl.Series([w for _, w in tokens])
    )
    pl.concat([own, rows.filter(pl.col("group") != group)]).write_parquet(path)
    params = PARAMS.model_copy(update={"top_k": {"probability": 60, "corrected": 60}})
    table = emotions.run(there.inputs, params)["emotions"].filter(level="group", group=group)
    carries = lexicon[:2].select(AFFECTS).to_numpy()
    for reading, times in (("probability", (3, 1)), ("corrected", (1, 1))):
        seen = table.filter(reading=reading)
        assert seen["n"].unique().to_list() == [sum(times)]
        carrying = (seen["value"] * seen["n"]).round().to_list()
        assert carrying == (np.array(times) @ carries).tolist()


def test_run_group_without_a_covered_word_has_no_value(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    path = there.inputs.outputs("completions", "m") / "en/00000.parquet"
    lists = pl.read_parquet(path)
    first = lists["group"][0]
    unknown = pl.when(pl.col("group") == first).then("x" + pl.col("word")).otherwise("word")
    lists.with_columns(word=unknown).write_parquet(path)
    table = part(emotions.run(there.inputs, PARAMS)["emotions"], "corrected", "group")
    own = table.filter(group=first)
    for column in ("value", "difference", "p", "p_bh"):
        assert own[column].null_count() == 10
    assert own["n"].sum() == 0
    assert table["value"].null_count() == 10


def test_run_language_without_a_lexicon_is_an_error(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    path = there.inputs.datasets["emotions"] / "en.parquet"
    path.rename(path.with_stem("es"))
    with pytest.raises(UserError):
        emotions.run(there.inputs, PARAMS)


@pytest.mark.parametrize("mixed", [False, True])
def test_recovery_planted_and_groups_that_change_places(world, table, mixed):
    if mixed:
        table = table.with_columns(pl.col("difference").reverse())
    write_tables(world.inputs, "emotions", {"emotions": table})
    rows = recovery.run(world.inputs)["emotions"].filter(measure="rank_correlation")
    assert set(rows["world"]) == {"planted"}
    (corrected,) = rows.filter(reading="corrected").to_dicts()
    assert corrected["n"] == 82
    assert (corrected["low"] > 0.5) != mixed
    assert (corrected["low"] < 0.1) == mixed
