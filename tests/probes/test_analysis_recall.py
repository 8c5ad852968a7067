import gzip
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import hypergeom
from society import society

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.site.controls import NO, YES, judged
from plumbline.probes.stereotypes import recall, recovery
from plumbline.probes.stereotypes.match_attributes import KINDS
from plumbline.probes.stereotypes.recall import Params
from plumbline.probes.stereotypes.typicality import MEAN, READINGS

SEED = 221
SHARED = Path(__file__).parents[3] / "shared/data"
PUBLISHED = SHARED / "published/stereotypes"
KNOWN = SHARED / "stereotypes/single_word_stereo_dataset.csv"
PARAMS = Params(version="0.1.0", top_k=60, tested=[5, 20], flagged="all", n_permutations=199)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return society(tmp_path_factory.mktemp("planted"), SEED, 3.0)


@pytest.fixture(scope="module")
def found(world):
    return recovered(world.inputs)


@pytest.fixture(scope="module")
def null(tmp_path_factory):
    there = society(tmp_path_factory.mktemp("null"), SEED + 1, 0.0, own=6)
    return recovered(there.inputs)


def recovered(inputs):
    """Write the tables, and return them and what recovery reads in them."""
    home, tables = inputs.tables("recall"), recall.run(inputs, PARAMS)
    home.mkdir(parents=True)
    for name, table in tables.items():
        table.write_parquet(home / f"{name}.parquet")
    found = recovery.run(inputs, recovery.Params(n_bootstrap=100))
    assert set(found) == {"recall"}
    return tables | {"recovery": found["recall"]}


def cell(table, reading, kind, category, k):
    where = {"reading": READINGS.index(reading), "attributes": KINDS.index(kind)}
    (row,) = table.filter(category=category, k=k, **where).to_dicts()
    return row


def test_recall_is_the_share_of_attributes_among_the_first_k_by_hand(world, found):
    lists = pl.read_parquet(world.inputs.outputs("completions", "m") / "en/*.parquet")
    lists = lists.with_columns(t=pl.col("logprob_nats") - pl.col("prior_nats"))
    wanted = world.attributes.filter(pl.col("single_word"), category="country")
    hits = 0
    for query, attribute in wanted.select("query", "attribute").iter_rows():
        own = lists.filter(query=query).sort("t", descending=True).head(20)
        hits += attribute.lower() in own["word"].to_list()
    row = cell(found["recall"], "corrected", "single word", "country", 20)
    assert (row["hits"], row["n_attributes"], row["n"]) == (hits, len(wanted), 30)
    assert row["n_attributes_not_prompted"] == 0
    assert row["value"] == pytest.approx(hits / len(wanted), abs=1e-6)


def test_one_row_for_every_k_and_recall_rises_with_it(found):
    for _, part in found["recall"].group_by("reading", "attributes", "category"):
        ordered = part.sort("k")
        assert ordered["k"].to_list() == list(range(1, 61))
        assert (ordered["hits"].diff().drop_nulls() >= 0).all()
        inside = ordered.filter(pl.col("low") <= pl.col("value"), pl.col("value") <= pl.col("high"))
        assert len(inside) == 60


def test_what_is_detectable_is_the_least_hits_that_random_orders_make_significant(world, found):
    lists = pl.read_parquet(world.inputs.outputs("completions", "m") / "en/*.parquet")
    assert lists.group_by("query").len()["len"].unique().to_list() == [60]
    words = lists.select("query", attribute=pl.col("word").str.to_lowercase()).unique()
    wanted = world.attributes.filter(pl.col("single_word"), category="country")
    wanted = wanted.with_columns(pl.col("attribute").str.to_lowercase())
    listed = wanted.join(words, on=["query", "attribute"]).group_by("group").len()["len"]
    chances = np.ones(1)  # of so many hits: each group has one order of 60 words
    for number in listed:
        chances = np.convolve(chances, hypergeom.pmf(np.arange(number + 1), 60, number, 20))
    hits = np.arange(len(chances))
    far = np.abs(hits - (chances * hits).sum())
    tail = np.array([chances[far >= x - 1e-9].sum() for x in far])
    row = cell(found["recall"], "corrected", "single word", "country", 20)
    half = (far[tail <= 0.05].min() + far[tail > 0.05].max()) / 2 / len(wanted)
    error = (row["high"] - row["low"]) / 2 / 1.959964
    step = 1 / len(wanted)
    told = row["detectable_random_order"] - 0.841621 * error
    assert told == pytest.approx(half, abs=1.01 * step)
    # that of the other null, with its own distances, is another
    assert row["detectable"] != row["detectable_random_order"]


def test_all_categories_are_their_sum(found):
    sums = (
        found["recall"]
        .filter(~pl.col("category").is_in(["all", MEAN]))
        .group_by("reading", "attributes", "k")
    )
    sums = sums.agg(pl.col("hits", "n_attributes", "n").sum())
    whole = found["recall"].filter(category="all")
    both = whole.join(sums, on=["reading", "attributes", "k"])
    assert len(both) == len(whole) == 4 * 2 * 60
    for name in ("hits", "n_attributes", "n"):
        assert both[name].equals(both[f"{name}_right"], null_equal=True)


def test_planted_attributes_are_found_far_above_both_baselines(found):
    row = cell(found["recall"], "corrected", "single word", "all", 5)
    assert row["value"] > 0.6
    assert row["random_order"] < 0.1
    assert row["other_groups"] < 0.2
    assert row["p"] == row["p_random_order"] == 1 / 200
    assert row["p_bh"] <= 0.02
    assert row["family"] == 4 * 4 * 2  # readings, categories with all, tested k: of this kind


def test_chance_is_what_random_order_gives_and_listed_its_end(found):
    row = cell(found["recall"], "corrected", "single word", "all", 20)
    assert row["random_order"] == pytest.approx(row["share_ranked"] * 20 / 60, abs=1e-6)
    end = cell(found["recall"], "corrected", "single word", "all", 60)
    assert end["random_order"] == end["value"] == pytest.approx(end["share_ranked"])


def test_readings_differ_where_they_should(found):
    table = found["recall"].filter(k=5, category="all", attributes=0).sort("reading")
    by = dict(zip(READINGS, table["hits"].to_list(), strict=True))
    assert by["corrected"] == by["corrected_one"]  # the same prior here
    assert by["faithful"] == by["probability"]  # a prior that is the same for all words
    assert by["corrected"] > by["probability"]


def test_first_words_of_longer_attributes_are_apart(found, world):
    row = cell(found["recall"], "corrected", "first word", "all", 60)
    assert row["n_attributes"] == world.attributes.filter(~pl.col("single_word")).height
    assert row["value"] > 0.8


def test_out_of_vocabulary_is_what_is_not_one_token(found, world):
    row = cell(found["recall"], "corrected", "single word", "age", 5)
    own = world.attributes.filter(pl.col("single_word"), category="age")
    beyond = sum(int(a[1:]) >= 120 for a in own["attribute"])
    assert row["out_of_vocabulary"] == pytest.approx(beyond / len(own), abs=1e-6)


def test_what_the_model_was_not_asked_to_write_has_no_share(tmp_path):
    there = society(tmp_path, SEED, 3.0)
    path = there.inputs.outputs("completions", "m") / "vocabulary/en.parquet"
    words = set(there.attributes.filter("single_word")["attribute"].str.to_lowercase())
    spelled = pl.read_parquet(path).filter(pl.col("attribute").is_in(words))
    spelled.write_parquet(path)  # as of real ones: whole attributes, not their first words
    table = recall.run(there.inputs, PARAMS)["recall"]
    for kind, known in zip(KINDS, (True, False), strict=True):
        row = cell(table, "corrected", kind, "all", 5)
        assert (row["out_of_vocabulary"] is not None) is known


def test_tests_only_where_they_are_asked_for(found):
    table = found["recall"]
    assert sorted(table.filter(pl.col("p").is_not_null())["k"].unique()) == [5, 20]
    assert table["p_bh"].null_count() == table["p"].null_count()


def test_flagged_attributes_are_left_out_where_asked(tmp_path):
    there = society(tmp_path, SEED, 3.0, own=7)
    less = recall.run(there.inputs, PARAMS.model_copy(update={"flagged": "none", "tested": [5]}))
    # of the seven attributes of each of 82 groups the seventh has the flag of a trend; three,
    # that one among them, are of several words, which is a flag too but not of first words
    for kind, sought in (("single word", 4 * 82), ("first word", 2 * 82)):
        assert cell(less["recall"], "corrected", kind, "all", 5)["n_attributes"] == sought


def test_flagged_attributes_of_a_set_that_was_cleaned_by_hand_are_sought(tmp_path):
    there = society(tmp_path, SEED, 3.0, own=7)
    own = there.attributes.with_columns(source_row=pl.int_range(1, pl.len() + 1))
    own.write_parquet(there.inputs.datasets["stereotypes"] / "choenni2021.parquet")
    params = PARAMS.model_copy(update={"flagged": "published", "tested": [5]})
    table = recall.run(there.inputs, params)["recall"]
    # the seventh attribute of each group, of several words, has the flag of a trend
    for config, sought in (("en", 2 * 82), ("choenni2021", 3 * 82)):
        row = cell(table.filter(dataset=config), "corrected", "first word", "all", 5)
        assert row["n_attributes"] == sought


def test_queries_that_were_not_asked_are_counted_and_left_out(tmp_path):
    there = society(tmp_path, SEED, 3.0)
    path = tmp_path / "stereotypes/choenni2021.parquet"
    some = there.attributes.filter("single_word", category="age").head(6)
    away = some.head(2).with_columns(query=pl.lit("why are strangers so"))
    pl.concat([some, away]).write_parquet(path)
    table = recall.run(there.inputs, PARAMS)["recall"]
    assert sorted(table["dataset"].unique()) == ["choenni2021", "en"]
    row = cell(table.filter(dataset="choenni2021"), "faithful", "single word", "all", 5)
    assert (row["n_attributes"], row["n_attributes_not_prompted"], row["language"]) == (6, 2, "en")


def test_attributes_in_rewritten_queries_are_hits_and_no_part_of_the_exchange(tmp_path):
    there = society(tmp_path / "one", SEED, 3.0)
    before = recall.run(there.inputs, PARAMS)
    known = there.inputs.datasets["stereotypes"] / "en.parquet"
    some = there.attributes.filter("single_word", category="age").head(1)
    query = some["query"].str.replace(" so$", " so good at")
    further = some.with_columns(query=query, attribute=pl.lit("behind"))
    pl.concat([there.attributes, further]).write_parquet(known)
    home = there.inputs.outputs("completions", "m") / "en"
    path = next(home.glob("*.parquet"))
    rows = pl.read_parquet(path)
    own = rows.filter(pl.col("rank") <= 2, query=rows["query"][0])
    own = own.with_columns(
        query=pl.lit(query[0]),
        template=pl.lit("why are {group} so good at"),
        category=pl.lit("age"),
        group=pl.lit(some["group"][0]),
        token=pl.Series(["behind", "other"]),
        word=pl.Series(["behind", "other"]),
    )
    for file in home.glob("*.parquet"):
        table = pl.read_parquet(file).with_columns(rewritten=pl.lit(value=False))
        parts = [table, own.with_columns(rewritten=pl.lit(value=True))] if file == path else [table]
        pl.concat(parts).write_parquet(file)
    after = recall.run(there.inputs, PARAMS)
    one, two = (cell(x["recall"], "probability", "single word", "age", 5) for x in (before, after))
    assert (two["hits"], two["n_attributes"]) == (one["hits"] + 1, one["n_attributes"] + 1)
    assert [two[x] for x in ("p", "other_groups")] == [one[x] for x in ("p", "other_groups")]
    groups = ["reading", "attributes", "category", "group", "k"]
    others = [x["groups"].sort(groups).select(*groups, "other_groups") for x in (before, after)]
    assert others[1].equals(others[0])  # also of the group itself, which has one attribute more


def test_without_an_effect_tests_find_something_at_the_nominal_rate(null):
    tested = null["recall"].filter(
        pl.col("p").is_not_null(), pl.col("category") != "all", attributes=0
    )
    corrected = tested.filter(reading=READINGS.index("corrected"))
    assert (corrected["p"] <= 0.05).sum() <= 1  # of six
    assert corrected["p_bh"].min() > 0.05


def test_categories_are_exchanged_independently_of_each_other(tmp_path):
    there = society(tmp_path, SEED, 20.0, own=1, noise=0.0, categories={"age": 3, "race": 3})
    assert there.attributes["attribute"].n_unique() == 6
    params = PARAMS.model_copy(update={"tested": [1], "n_permutations": 1999})
    table = recall.run(there.inputs, params)["recall"]
    # every group has the one attribute of its own first in its list, and in no other: all three
    # are found in one exchange of six, in both categories at once in one of 36
    # and of three groups there is no test
    for category, hits, p in (("age", 3, None), ("race", 3, None), ("all", 6, 1 / 36)):
        row = cell(table, "corrected", "first word", category, 1)
        assert (row["hits"], row["other_groups"]) == (hits, 0)
        assert row["p"] == (p and pytest.approx(p, abs=0.25 * p + 0.01))


def test_whole_lists_are_not_tested_against_their_order_and_once_against_other_groups(world):
    whole = PARAMS.model_copy(update={"tested": [20, 60]})
    table = recall.run(world.inputs, whole)["recall"].filter(k=60, category="all")
    assert table["p_random_order"].null_count() == len(table) == 2 * len(READINGS)
    tested = table.drop_nulls("p").sort("attributes", "reading").select("attributes", "reading")
    first = [READINGS.index(name) for name in ("probability", "corrected")]
    assert tested.rows() == [(kind, reading) for kind in (0, 1) for reading in first]


def verdicts(table):
    """Return what the report says of the corrected reading, by measure."""
    found = [judged("recall", row) for row in table.to_dicts() if row["value"] is not None]
    return {row["measure"]: row["verdict"] for row in found if row["reading"] == "corrected"}


def of_others(lists):
    """Give each group the lists of the group after it."""
    lists = lists.sort("category", "group", "query", "rank")
    taken = [c for c in lists.columns if c in {"token", "word", "starts_word"} or "_nats" in c]
    size = lists.filter(group=lists["group"][0]).height
    return lists.with_columns(
        pl.concat([lists[taken].slice(size), lists[taken].slice(0, size)]).get_columns()
    )


SCORE = pl.col("logprob_nats") - pl.col("prior_nats")
BREAKS = {
    "nothing": lambda lists: lists,
    "sign": lambda lists: lists.rename(
        {"logprob_nats": "prior_nats", "prior_nats": "logprob_nats"}
    ),
    "groups": of_others,
    "first word": lambda lists: lists.filter(
        pl.col("word") != pl.col("word").sort_by(SCORE, descending=True).first().over("query")
    ),
}


@pytest.mark.parametrize("broken", BREAKS)
def test_the_control_fails_where_lists_are_not_as_the_model_gave_them(world, tmp_path, broken):
    inputs = world.inputs._replace(data=tmp_path)
    shutil.copytree(world.inputs.data, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(inputs.tables("recall"), ignore_errors=True)
    for path in inputs.outputs("completions", "m").glob("en/*.parquet"):
        lists = BREAKS[broken](pl.read_parquet(path))
        lists.select(pl.read_parquet_schema(path).keys()).write_parquet(path)
    said = verdicts(recovered(inputs)["recovery"])
    planted = next(name for name in said if "as planted" in name)
    if broken == "nothing":
        assert set(said.values()) == {YES}
    elif broken == "first word":  # the others still find something, in its order
        assert said[planted] == NO
    else:
        assert YES not in said.values()


def test_recovery_of_a_planted_world(found):
    rows = {row["measure"]: row for row in found["recovery"].iter_rows(named=True)}
    excess = next(r for m, r in rows.items() if m.startswith("corrected: recall@5"))
    assert excess["low"] > 0.5
    order = next(r for m, r in rows.items() if m.startswith("corrected: Spearman"))
    assert 0.15 < order["low"] <= order["value"] <= order["high"] <= 1
    assert (order["n"], order["world"]) == (82, 0)


def test_recovery_of_a_null_world_is_nominal(null):
    table = null["recovery"]
    assert table["world"].unique().to_list() == [1]
    assert table["measure"].str.contains("recall@5 of the attributes minus that").all()
    assert [name.partition(":")[0] for name in table["measure"]] == list(READINGS)
    assert (table["low"] <= 0.01).all()
    assert (table["high"] >= -0.01).all()


def test_a_model_that_reads_from_left_to_right_has_the_readings_it_can(tmp_path):
    there = society(tmp_path, SEED, 3.0)
    for path in there.inputs.outputs("completions", "m").glob("en/*.parquet"):
        lacking = pl.lit(None, dtype=pl.Float64)
        pl.read_parquet(path).with_columns(
            prior_one_nats=lacking, prior_released_nats=lacking
        ).write_parquet(path)
    table = recall.run(there.inputs, PARAMS)["recall"]
    names = [READINGS[i] for i in table["reading"].unique().sort()]
    assert names == ["probability", "corrected"]


def test_pieces_of_words_count_in_the_released_readings_alone(tmp_path):
    there = society(tmp_path, SEED, 3.0)
    attribute = there.attributes.row(1, named=True)
    word = attribute["attribute"].lower()
    for path in there.inputs.outputs("completions", "m").glob("en/*.parquet"):
        table = pl.read_parquet(path)
        piece = (pl.col("query") == attribute["query"]) & (pl.col("word") == word)
        table.with_columns(starts_word=~piece).write_parquet(path)
    found = recall.run(there.inputs, PARAMS)["recall"]
    whole = recall.run(society(tmp_path / "b", SEED, 3.0).inputs, PARAMS)["recall"]
    for reading, less in (("faithful", 0), ("corrected", 1)):
        hits = [
            cell(t, reading, "single word", attribute["category"], 60)["hits"]
            for t in (whole, found)
        ]
        assert hits[0] - hits[1] == less


def test_the_same_tables_again(world, found):
    again = recall.run(world.inputs, PARAMS)
    assert again["recall"].equals(found["recall"])
    assert again["groups"].equals(found["groups"])


def test_what_cannot_be_computed_is_told(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    with pytest.raises(UserError, match="above top_k"):
        recall.run(there.inputs, PARAMS.model_copy(update={"tested": [100]}))
    path = tmp_path / "stereotypes/en.parquet"
    pl.read_parquet(path).with_columns(query=pl.lit("why")).write_parquet(path)
    with pytest.raises(UserError, match="no attribute is in a query"):
        recall.run(there.inputs, PARAMS)


def released(model):
    """Return the lists that the authors released, by query: [[string, score], ...]."""
    path = PUBLISHED / f"{model}-corrected.json.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture(scope="module")
def said():
    """Return the published attributes, as rows of the dataset `stereotypes`."""
    if not KNOWN.is_file():
        pytest.skip(f"{KNOWN} is not there")
    rows = pl.read_csv(KNOWN, separator="\t").select(
        category=pl.col("target_category").str.strip_chars(),
        group=pl.col("target_group").str.strip_chars(),
        query=pl.col("input").str.strip_chars(),
        attribute=pl.col("completion").str.strip_chars(),
    )
    template = pl.struct("query", "group").map_elements(
        lambda row: row["query"].replace(row["group"], "{group}"), return_dtype=pl.String
    )
    return rows.with_columns(
        template=template,
        language=pl.lit("en"),
        single_word=pl.lit(value=True),
        source_row=pl.lit(1),
        flags=pl.lit([], pl.List(pl.String)),
    )


@pytest.fixture(scope="module")
def published(said, tmp_path_factory):
    """Return the table of the lists and attributes that were released, by model."""

    @cache
    def table(model):
        folder = tmp_path_factory.mktemp("published")
        rows = [
            (query, word, rank, score)
            for query, ranked in released(model).items()
            for rank, (word, score) in enumerate(ranked, start=1)
        ]
        zero = pl.lit(0.0)
        answers = (
            pl.DataFrame(rows, orient="row", schema=["query", "word", "rank", "logprob_nats"])
            .join(said.select("category", "group", "template", "query").unique(), on="query")
            .with_columns(token=pl.col("word"), starts_word=pl.lit(value=True), prior_nats=zero)
            .with_columns(prior_one_nats=zero, prior_released_nats=zero)
            .with_columns(logprob_top_nats=pl.col("logprob_nats"))
        )
        inputs = Inputs((model,), {"stereotypes": folder / "stereotypes"}, folder)
        home = inputs.outputs("completions", model) / "en"
        for made in (home, folder / "stereotypes"):
            made.mkdir(parents=True)
        answers.write_parquet(home / "00000.parquet")
        said.write_parquet(folder / "stereotypes/choenni2021.parquet")
        depth = {"top_k": 200, "tested": [50, 100], "n_permutations": 99}
        return recall.run(inputs, PARAMS.model_copy(update=depth))["recall"]

    return table


@pytest.mark.slow
@pytest.mark.shared
def test_the_table_of_the_published_lists_has_the_published_recall(published):
    table = published("bert-base-uncased")
    wanted = {"country": (50, 0.534, 352), "race": (50, 0.257, 377), "age": (100, 0.470, 151)}
    wanted |= {"profession": (100, 0.454, 650), "gender": (100, 0.571, 163)}
    wanted |= {"political": (100, 0.295, 44)}
    for category, (k, value, attributes) in wanted.items():
        row = cell(table, "faithful", "single word", category, k)
        assert (round(row["value"], 3), row["n_attributes"]) == (value, attributes)
        assert row["n_attributes_not_prompted"] == 0
    whole = cell(table, "faithful", "single word", "all", 100)
    assert whole["n"] == 263
    assert whole["n_attributes"] == 1886


@pytest.mark.shared
def test_the_mean_of_categories_is_that_of_figure_4(published):
    # the untrained model's bar at 50; `all`, which counts attributes, is another number
    table = published("bert-base-uncased")
    mean, pooled = (cell(table, "faithful", "single word", c, 50) for c in (MEAN, "all"))
    assert (round(mean["value"], 3), round(pooled["value"], 3)) == (0.310, 0.329)
    assert (mean["p"], mean["p_random_order"]) == (None, None)
    each = table.filter(
        ~pl.col("category").is_in([MEAN, "all"]),
        reading=READINGS.index("faithful"),
        attributes=0,
        k=50,
    )
    for name in ("value", "other_groups", "random_order"):
        assert mean[name] == pytest.approx(each[name].mean(), abs=1e-6)


@pytest.mark.shared
@pytest.mark.parametrize(
    "model", ["roberta-base", pytest.param("xlm-roberta-base", marks=pytest.mark.slow)]
)
def test_faithful_recall_of_a_cased_model_counts_strings(published, said, model):
    # as the release counts: an attribute is found where its very letters are among the first k
    lists = released(model)
    for k in (50, 200):
        found = [
            attribute in [word for word, _ in lists[query][:k]]
            for query, attribute in said.select("query", "attribute").iter_rows()
        ]
        each = said.with_columns(found=pl.Series(found)).group_by("category")
        for category, share in each.agg(pl.col("found").mean()).iter_rows():
            row = cell(published(model), "faithful", "single word", category, k)
            assert row["value"] == pytest.approx(share, abs=1e-6)
    if model == "roberta-base":  # the paper's figure 1
        for category, k, value in (("race", 50, 0.225), ("profession", 200, 0.755)):
            row = cell(published(model), "faithful", "single word", category, k)
            assert round(row["value"], 3) == value
        casefolded = cell(published(model), "corrected", "single word", "race", 50)["value"]
        assert round(casefolded, 3) == 0.228  # more are found


@pytest.mark.shared
def test_published_recall_is_more_than_order_by_chance_would_give(published):
    row = cell(published("bert-base-uncased"), "faithful", "single word", "all", 50)
    assert row["p_random_order"] == 1 / 100
    assert row["random_order"] < row["value"]


def test_a_world_of_an_older_version_is_told_to_be_planted_anew(tmp_path):
    weights = tmp_path / "my-world"
    weights.mkdir()
    words = {"group": ["a"], "word": ["kind"], "log_odds_nats": [1.0]}
    pl.DataFrame(words).write_parquet(weights / "planted.parquet")
    with pytest.raises(UserError, match=r"older version; run `.* plant my-world`"):
        recovery.ideal(weights, "corrected", 1)
