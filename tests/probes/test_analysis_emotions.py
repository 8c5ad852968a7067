import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri
from scipy.stats import t
from society import society

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.emotions.build import AFFECTS, EMOTIONS
from plumbline.probes.stereotypes import emotions, recovery
from plumbline.probes.stereotypes.emotions import LEVELS, Params
from plumbline.probes.stereotypes.typicality import READINGS

SEED = 222
PARAMS = Params(
    version="0.1.0", top_k={"probability": 60, "corrected": 15}, n_permutations=199, n_bootstrap=100
)
GROUP, CATEGORY = (LEVELS.index(name) for name in ("group", "category"))


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return society(tmp_path_factory.mktemp("planted"), SEED, 0.0, emotion=2.0)


@pytest.fixture(scope="module")
def found(world):
    return emotions.run(world.inputs, PARAMS)


def recovered(inputs, table):
    home = inputs.tables("emotions")
    home.mkdir(parents=True)
    table.write_parquet(home / "emotions.parquet")
    return recovery.run(inputs, recovery.Params(n_bootstrap=100))["emotions"]


@pytest.fixture(scope="module")
def null(tmp_path_factory):
    there = society(tmp_path_factory.mktemp("null"), SEED + 1, 0.0)
    return emotions.run(there.inputs, PARAMS) | {"inputs": there.inputs}


def part(table, reading, level):
    return table.filter(reading=READINGS.index(reading), level=level)


def test_a_profile_by_hand(world, found):
    group = world.groups[20][1]
    lists = pl.read_parquet(world.inputs.outputs("completions", "m") / "en/*.parquet")
    own = lists.filter(group=group)
    own = own.with_columns(t=pl.col("logprob_nats") - pl.col("prior_nats"))
    words = set()
    for _, rows in own.group_by("query"):
        words |= set(rows.sort("t", descending=True).head(15)["word"])
    lexicon = pl.read_parquet(world.inputs.datasets["emotions"] / "en.parquet")
    covered = lexicon.filter(pl.col("word").is_in(words))
    rows = part(found["emotions"], "corrected", GROUP).filter(group=group).sort("affect")
    assert rows["words"].unique().to_list() == [len(words)]
    assert rows["covered"].unique().to_list() == [len(covered)]
    assert rows["carrying"].to_list() == [covered[name].sum() for name in AFFECTS]
    shares = [covered[name].mean() for name in AFFECTS]
    assert rows["value"].to_list() == pytest.approx(shares, abs=1e-6)
    assert rows["coverage"][0] == pytest.approx(len(covered) / len(words), abs=1e-6)


def test_every_group_and_category_has_every_affect(found):
    table = part(found["emotions"], "corrected", GROUP)
    assert len(table) == 82 * 10
    assert table["family"].unique().to_list() == [820]
    assert part(found["emotions"], "corrected", CATEGORY).height == 3 * 10


def test_differences_are_from_the_mean_of_the_other_groups(found):
    table = part(found["emotions"], "corrected", GROUP).filter(affect=2)
    value = table["value"].to_numpy()
    others = (value.sum() - value) / (len(value) - 1)
    assert table["difference"].to_numpy() == pytest.approx(value - others, abs=2e-6)
    inside = (table["low_difference"] <= table["difference"]) & (
        table["difference"] <= table["high_difference"]
    )
    assert inside.mean() > 0.95


def test_categories_are_the_mean_of_their_groups(found):
    groups = part(found["emotions"], "corrected", GROUP)
    categories = part(found["emotions"], "corrected", CATEGORY)
    mean = groups.group_by("category", "affect").agg(pl.col("value").mean(), pl.len())
    both = categories.join(mean, on=["category", "affect"])
    assert both["value"].to_numpy() == pytest.approx(both["value_right"].to_numpy(), abs=2e-6)
    assert both["n"].to_list() == both["len"].to_list()
    age = categories.filter(category="age", affect=0).row(0, named=True)
    others = groups.filter(pl.col("category") != "age", affect=0)["value"].mean()
    assert age["difference"] == pytest.approx(age["value"] - others, abs=2e-6)


def test_the_planted_emotion_of_a_group_is_found(world, found):
    table = part(found["emotions"], "corrected", GROUP)
    row = {name: i for i, (_, name) in enumerate(world.groups)}
    planted = pl.Series([row[g] % len(EMOTIONS) for g in table["group"]], dtype=pl.Int64)
    own = table.filter(table["affect"] == planted)
    assert len(own) == 82
    assert (own["difference"] > 0).mean() > 0.9
    assert (own["p_bh"] <= 0.05).mean() > 0.5
    assert (table.filter(table["affect"] != planted)["p_bh"] <= 0.05).mean() < 0.1


def test_what_is_detectable_is_what_permutations_need_and_errors_of_the_difference(found):
    table = found["emotions"].filter(pl.col("p").is_not_null())
    width = (table["high_difference"] - table["low_difference"]).to_numpy()
    error = width / 2 / t.ppf(0.975, table["n"].to_numpy() - 1)  # intervals are of t
    least = table["detectable"] - ndtri(0.8) * error
    apart = table["difference"].abs()
    assert (least <= apart + 2e-6).filter(table["p"] < 0.049).all()
    assert (least >= apart - 2e-6).filter(table["p"] > 0.051).all()
    assert min((table["p"] < 0.049).sum(), (table["p"] > 0.051).sum()) > 100


def test_after_adjustment_the_detectable_distance_is_that_of_permutations_at_that_level():
    # whatever is as far has a p that is low enough, and nothing else
    rng = np.random.default_rng(7)
    members = (rng.random((12, 60)) < 0.3).astype(np.int64)
    affects = rng.random((60, len(AFFECTS))) < 0.3
    own = emotions.Members(members, affects, np.ones(60, dtype=bool))
    tested = own.shuffled(999, 3)
    assert tested.critical_at(np.full(tested.p.size, 0.05)) == pytest.approx(
        tested.critical.ravel()
    )
    seen = np.abs(emotions.differences(own.share)).ravel()
    for steps in (1, 5, 20):
        reach = tested.critical_at(np.full(tested.p.size, (steps - 1 / 3) / 1000))
        found = tested.p.ravel() <= steps / 1000 + 1e-12
        assert (seen[found] >= reach[found] - 1e-9).all()
        assert (seen[~found] <= reach[~found] + 1e-9).all()


def test_without_an_effect_nothing_passes_and_p_is_nominal(null):
    table = part(null["emotions"], "corrected", GROUP)
    assert (table["p"] <= 0.05).mean() < 0.08
    assert (table["p_bh"] <= 0.05).mean() < 0.01
    assert (part(null["emotions"], "corrected", CATEGORY)["p_bh"] <= 0.05).sum() <= 1


def test_recovery(world, found, null):
    table = recovered(world.inputs, found["emotions"])
    rows = {r["measure"]: r for r in table.iter_rows(named=True)}
    order = rows[
        "corrected, 15 words: Spearman correlation of planted and measured differences "
        "over affects, mean over groups"
    ]
    assert order["low"] > 0.5
    assert (order["n"], order["world"], order["model"]) == (82, 0, "m")
    silent = recovered(null["inputs"], null["emotions"])
    nominal = {r["measure"]: r for r in silent.iter_rows(named=True)}
    assert not [m for m in nominal if "Spearman" in m]
    share = nominal["corrected, 15 words: share of differences with p at or below 0.05"]
    assert share["low"] <= 0.05
    assert share["null"] == "at most 0.05: nominal"


def test_recovery_fails_where_groups_change_places(world, found, tmp_path):
    mixed = found["emotions"].with_columns(pl.col("difference").reverse())
    home = world.inputs._replace(data=tmp_path)
    home.weights("m").parent.mkdir(parents=True)
    home.weights("m").symlink_to(world.inputs.weights("m"))
    table = recovered(home, mixed).filter(pl.col("measure").str.contains("Spearman"))
    assert len(table) == 2
    assert (table["low"] < 0.1).all()


def test_the_ranking_does_not_matter_where_lists_are_taken_whole(world):
    whole = PARAMS.model_copy(update={"top_k": {"probability": 60, "faithful": 60}})
    table = emotions.run(world.inputs, whole)["emotions"]
    columns = ["level", "category", "group", "affect", "value", "p"]
    one, two = (table.filter(reading=i).select(columns) for i in (0, 1))
    assert one.equals(two)


def test_released_code_counts_strings_and_the_corrected_reading_words(tmp_path):
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
    table = emotions.run(there.inputs, params)["emotions"].filter(level=GROUP, group=group)
    carries = lexicon[:2].select(AFFECTS).to_numpy()
    for reading, times in (("probability", (3, 1)), ("corrected", (1, 1))):
        seen = table.filter(reading=READINGS.index(reading)).sort("affect")
        assert seen["words"].unique().to_list() == [sum(times)]
        assert seen["carrying"].to_list() == (np.array(times) @ carries).tolist()


def test_groups_without_a_covered_word_have_no_value(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    path = there.inputs.datasets["emotions"] / "en.parquet"
    pl.read_parquet(path).with_columns(word=pl.lit("x") + pl.col("word")).write_parquet(path)
    path2 = there.inputs.outputs("completions", "m") / "en/00000.parquet"
    some = pl.read_parquet(path2)
    first = some["group"][0]
    word = pl.when(pl.col("group") != first).then(pl.lit("x") + pl.col("word"))
    some.with_columns(word=word.otherwise("word")).write_parquet(path2)
    table = part(emotions.run(there.inputs, PARAMS)["emotions"], "corrected", GROUP)
    own = table.filter(group=first)
    assert own["value"].null_count() == own["difference"].null_count() == 10
    assert own["p"].null_count() == own["p_bh"].null_count() == 10
    assert own["covered"].sum() == 0
    assert table.filter(pl.col("value").is_not_null()).height >= 10 * 40


def test_a_language_without_lexicon_is_told(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    path = there.inputs.datasets["emotions"] / "en.parquet"
    path.rename(path.with_stem("es"))
    with pytest.raises(UserError, match="a language of the dataset emotions"):
        emotions.run(there.inputs, PARAMS)


def test_the_same_table_again_in_whatever_order_rows_come(world, found):
    path = world.inputs.outputs("completions", "m") / "en/00000.parquet"
    rows = pl.read_parquet(path)
    rows.sample(fraction=1, shuffle=True, seed=SEED).write_parquet(path)
    again = emotions.run(world.inputs, PARAMS)
    rows.write_parquet(path)
    assert again["emotions"].equals(found["emotions"])
    assert np.isfinite(again["emotions"]["p"].to_numpy()).all()
