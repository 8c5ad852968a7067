import gzip
import json
import re
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from recovering import write_tables
from society import society

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.stereotypes import recall, recovery
from plumbline.probes.stereotypes.recall import KINDS, Params
from plumbline.probes.stereotypes.typicality import MEAN, READINGS

SEED = 221
SHARED = Path(__file__).parents[3] / "shared/data"
PUBLISHED = SHARED / "published/stereotypes"
FIGURE_1 = PUBLISHED / "figure1_points.csv"  # 8 categories, 9 models, 41 values of k
NINE = (
    *("bert-base-uncased", "bert-large-uncased", "bert-base-multilingual-uncased"),
    *("roberta-base", "roberta-large", "xlm-roberta-base", "xlm-roberta-large"),
    *("bart-base", "bart-large"),
)
# Attributes that the figure does not count, though the released file contains them.
NOT_IN_FIGURE_1 = pl.any_horizontal(
    pl.col("group") == "millennials",
    *(
        pl.col("query").str.ends_with(query) & (pl.col("attribute") == attribute)
        for query, attribute in (
            ("croatia so good at", "soccer"),
            ("russians so good at", "hacking"),
            ("swedes so good at", "english"),
        )
    ),
)
PAPER = SHARED.parent / "papers/choenni2021.txt"
KNOWN = SHARED / "stereotypes/single_word_stereo_dataset.csv"
PARAMS = Params(version="0.1.0", top_k=60, tested=[5, 20], n_permutations=199)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return society(tmp_path_factory.mktemp("planted"), SEED, 3.0)


@pytest.fixture(scope="module")
def found(world):
    return recall.run(world.inputs, PARAMS)


def cell(table, reading, kind, category, k):
    where = {"reading": reading, "attributes": kind, "category": category, "k": k}
    (row,) = table.filter(**where).to_dicts()
    return row


def hits(row):
    return round(row["value"] * row["n_attributes"])


def test_run_recall_is_the_share_of_attributes_among_the_first_k_by_hand(world, found):
    lists = pl.read_parquet(world.inputs.outputs("completions", "m") / "en/*.parquet")
    lists = lists.with_columns(t=pl.col("logprob_nats") - pl.col("prior_nats"))
    wanted = world.attributes.filter(pl.col("single_word"), category="country")
    by_hand = 0
    for query, attribute in wanted.select("query", "attribute").iter_rows():
        own = lists.filter(query=query).sort("t", descending=True).head(20)
        by_hand += attribute.lower() in own["word"].to_list()
    row = cell(found["recall"], "corrected", "single word", "country", 20)
    assert (row["n_attributes"], row["n"]) == (len(wanted), 30)
    assert row["value"] == pytest.approx(by_hand / len(wanted), abs=1e-6)


def test_run_one_row_for_every_k_and_tests_where_they_are_set(found):
    for _, part in found["recall"].group_by("reading", "attributes", "category"):
        ordered = part.sort("k")
        assert ordered["k"].to_list() == list(range(1, 61))
        assert (ordered["value"].diff().drop_nulls() >= 0).all()
        assert ordered.select(pl.col("value").is_between("low", "high").all()).item()
        assert ordered["k"].filter(ordered["p"].is_not_null()).to_list() in ([5, 20], [])


def test_run_finds_planted_attributes_above_both_baselines(found):
    row = cell(found["recall"], "corrected", "single word", "all", 5)
    assert row["value"] > 0.6
    assert row["random_order"] < 0.1
    assert row["other_groups"] < 0.2
    assert row["p"] == 1 / 200
    assert row["p_bh"] <= 0.02
    longer = cell(found["recall"], "corrected", "first word", "all", 60)
    assert longer["value"] > 0.8


def test_run_readings_differ_where_their_priors_do(found):
    table = found["recall"].filter(k=5, category="all", attributes="single word")
    by = dict(table.select("reading", "value").iter_rows())
    assert list(by) == list(READINGS)
    assert by["corrected"] == by["corrected_one"]  # the same prior here
    assert by["faithful"] == by["probability"]  # a prior that is the same for all words
    assert by["corrected"] > by["probability"]


def test_run_out_of_vocabulary_is_what_is_not_one_token(found, world):
    row = cell(found["recall"], "corrected", "single word", "age", 5)
    own = world.attributes.filter(pl.col("single_word"), category="age")
    beyond = sum(int(a[1:]) >= 120 for a in own["attribute"])
    assert row["out_of_vocabulary"] == pytest.approx(beyond / len(own), abs=1e-6)


def test_run_leaves_flagged_attributes_out_but_of_a_set_that_was_cleaned_by_hand(tmp_path):
    there = society(tmp_path, SEED, 3.0, own=7)
    own = there.attributes.with_columns(source_row=pl.int_range(1, pl.len() + 1))
    own.write_parquet(there.inputs.datasets["stereotypes"] / "choenni2021.parquet")
    table = recall.run(there.inputs, PARAMS)["recall"]
    # the seventh attribute of each group, of several words, has the flag of a trend
    for config, sought in (("en", 2 * 82), ("choenni2021", 3 * 82)):
        row = cell(table.filter(dataset=config), "corrected", "first word", "all", 5)
        assert row["n_attributes"] == sought


def test_run_attributes_in_rewritten_queries_are_hits_and_no_part_of_the_exchange(tmp_path):
    there = society(tmp_path / "one", SEED, 3.0)
    before = recall.run(there.inputs, PARAMS)
    some = there.attributes.filter("single_word", category="age").head(1)
    query = some["query"].str.replace(" so$", " so good at")
    further = some.with_columns(query=query, attribute=pl.lit("behind"))
    known = there.inputs.datasets["stereotypes"] / "en.parquet"
    pl.concat([there.attributes, further]).write_parquet(known)
    path = there.inputs.outputs("completions", "m") / "en/00000.parquet"
    lists = pl.read_parquet(path)
    own = lists.filter(pl.col("rank") <= 2, query=lists["query"][0]).with_columns(
        query=pl.lit(query[0]),
        template=pl.lit("why are {group} so good at"),
        category=pl.lit("age"),
        group=pl.lit(some["group"][0]),
        token=pl.Series(["behind", "other"]),
        word=pl.Series(["behind", "other"]),
        rewritten=pl.lit(value=True),
    )
    pl.concat([lists, own]).write_parquet(path)
    after = recall.run(there.inputs, PARAMS)
    one, two = (cell(x["recall"], "probability", "single word", "age", 5) for x in (before, after))
    assert (hits(two), two["n_attributes"]) == (hits(one) + 1, one["n_attributes"] + 1)
    assert [two[x] for x in ("p", "other_groups")] == [one[x] for x in ("p", "other_groups")]


def test_run_exchanges_categories_independently_of_each_other(tmp_path):
    there = society(tmp_path, SEED, 20.0, own=1, noise=0.0, categories={"age": 3, "race": 3})
    assert there.attributes["attribute"].n_unique() == 6
    params = PARAMS.model_copy(update={"tested": [1], "n_permutations": 1999})
    table = recall.run(there.inputs, params)["recall"]
    # every group has the one attribute of its own first in its list, and in no other: all three
    # are found in one exchange of six, in both categories at once in one of 36
    # and of three groups there is no test
    for category, p in (("age", None), ("race", None), ("all", 1 / 36)):
        row = cell(table, "corrected", "first word", category, 1)
        assert (row["value"], row["other_groups"]) == (1, 0)
        assert row["p"] == (p and pytest.approx(p, abs=0.25 * p + 0.01))


def test_run_tests_whole_lists_once(world):
    whole = PARAMS.model_copy(update={"tested": [20, 60]})
    table = recall.run(world.inputs, whole)["recall"].filter(k=60, category="all")
    tested = table.drop_nulls("p").select("reading", "attributes").rows()
    assert tested == [(r, kind) for r in ("probability", "corrected") for kind in KINDS]


def test_run_causal_model_has_the_readings_it_can(tmp_path):
    there = society(tmp_path, SEED, 3.0)
    for path in there.inputs.outputs("completions", "m").glob("en/*.parquet"):
        none = pl.lit(None, dtype=pl.Float64)
        lists = pl.read_parquet(path)
        lists.with_columns(prior_one_nats=none, prior_released_nats=none).write_parquet(path)
    table = recall.run(there.inputs, PARAMS)["recall"]
    assert table["reading"].unique(maintain_order=True).to_list() == ["probability", "corrected"]


def test_run_pieces_of_words_count_in_the_released_readings_alone(tmp_path, found):
    there = society(tmp_path, SEED, 3.0)
    attribute = there.attributes.row(1, named=True)
    word = attribute["attribute"].lower()
    for path in there.inputs.outputs("completions", "m").glob("en/*.parquet"):
        table = pl.read_parquet(path)
        piece = (pl.col("query") == attribute["query"]) & (pl.col("word") == word)
        table.with_columns(starts_word=~piece).write_parquet(path)
    pieces = recall.run(there.inputs, PARAMS)
    for reading, less in (("faithful", 0), ("corrected", 1)):
        one, two = (
            hits(cell(t["recall"], reading, "single word", attribute["category"], 60))
            for t in (found, pieces)
        )
        assert one - two == less


def test_run_without_anything_to_test_is_an_error(tmp_path):
    there = society(tmp_path, SEED, 0.0)
    with pytest.raises(UserError):
        recall.run(there.inputs, PARAMS.model_copy(update={"tested": [100]}))
    path = tmp_path / "stereotypes/en.parquet"
    away = there.attributes.with_columns(query=pl.lit("why"))
    pl.concat([there.attributes.filter("single_word").head(6), away]).write_parquet(path)
    table = recall.run(there.inputs, PARAMS)["recall"]
    assert cell(table, "faithful", "single word", "all", 5)["n_attributes"] == 6
    away.write_parquet(path)
    with pytest.raises(UserError):
        recall.run(there.inputs, PARAMS)


def released(model):
    """Return the lists that the authors released, by query: [[string, score], ...]."""
    path = PUBLISHED / f"{model}-corrected.json.gz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return json.loads(gzip.decompress(path.read_bytes()))


def named():
    """Return the attributes that section 6 names; the last two are read from the paper."""
    if not PAPER.is_file():
        pytest.skip(f"{PAPER} is not there")
    text = PAPER.read_text("utf-8")
    rows = [
        ("why is croatia so good at", "sports"),
        ("why is russia so good at", "hacking"),
        ("why is pakistan so bad at", "football"),
        ("why is romania so good at", "gymnastics"),
        ("why is south africa so good at", "rugby"),
        ("why are black women so", re.search(r"black women are \*(\w+)", text)[1]),
        ("why are white americans so", re.search(r"(\w+)\* for White", text)[1]),
    ]
    return pl.DataFrame(rows, schema=["query", "attribute"], orient="row")


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
    """Return the table of the lists and attributes that were released, by model.

    With ``figure_1``, of the attributes that Figure 1 counts; with ``examples``, of those that
    section 6 names, by group.
    """

    def table(model, *, figure_1=False, examples=False):
        folder = tmp_path_factory.mktemp("published")
        attributes = said.filter(~NOT_IN_FIGURE_1) if figure_1 else said
        if examples:
            attributes = attributes.drop("attribute").unique("query").join(named(), on="query")
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
            .with_columns(logprob_top_nats=pl.col("logprob_nats"), rewritten=False)
        )
        inputs = Inputs((model,), {"stereotypes": folder / "stereotypes"}, folder)
        home = inputs.outputs("completions", model) / "en"
        for made in (home, folder / "stereotypes"):
            made.mkdir(parents=True)
        answers.write_parquet(home / "00000.parquet")
        attributes.write_parquet(folder / "stereotypes/choenni2021.parquet")
        tested = [*range(1, 201)] if examples else [50, 100]
        depth = {"top_k": 200, "tested": tested, "n_permutations": 99}
        tables = recall.run(inputs, PARAMS.model_copy(update=depth))
        return tables["groups" if examples else "recall"]

    return cache(table)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("model", NINE)
def test_published_lists_give_every_point_of_figure_1(published, model):
    figure = published(model, figure_1=True)  # skips where the lists are absent
    figure = figure.filter(reading="faithful", attributes="single word")
    points = pl.read_csv(FIGURE_1).filter(model=model)
    both = points.join(figure, on=["category", "k"])
    assert len(both) == len(points) == 8 * 41
    assert (both["recall"] - both["value"]).abs().max() < 1e-6


@pytest.mark.shared
def test_the_mean_of_categories_is_that_of_figure_4(published):
    # the untrained model's bar at 50; `all`, which counts attributes, is another number
    table = published("bert-base-uncased")
    mean, pooled = (cell(table, "faithful", "single word", c, 50) for c in (MEAN, "all"))
    assert (round(mean["value"], 3), round(pooled["value"], 3)) == (0.310, 0.329)
    assert mean["p"] is None
    each = table.filter(
        ~pl.col("category").is_in([MEAN, "all"]),
        reading="faithful",
        attributes="single word",
        k=50,
    )
    for name in ("value", "other_groups", "random_order"):
        assert mean[name] == pytest.approx(each[name].mean(), abs=1e-6)


@pytest.mark.shared
def test_casefolding_finds_more_attributes_of_a_cased_model(published):
    for reading, value in (("faithful", 0.225), ("corrected", 0.228)):
        found = cell(published("roberta-base"), reading, "single word", "race", 50)
        assert round(found["value"], 3) == value


# Ranks of the attributes in the released lists; section 6 looks at the first 25.
RANKS = {
    "": (96, None, 15, 37, 48, 27, 26),
    "-new_yorker": (57, None, 4, 49, 77, 44, 33),
    "-guardian": (87, 25, 5, 60, 46, 27, 23),
    "-reuters": (25, 13, 54, None, None, 90, 53),
    "-fox": (86, None, 9, 62, 42, 25, 31),
    "-breitbart": (87, None, 10, 62, 49, 20, 21),
}


@pytest.mark.shared
@pytest.mark.parametrize("outlet", RANKS)
def test_ranks_of_the_examples_of_section_6(published, outlet):
    table = published(f"bert-base-uncased{outlet}", examples=True)
    table = table.filter(pl.col("hits") > 0, reading="faithful")
    ranks = dict(table.group_by("group").agg(pl.col("k").min()).iter_rows())
    groups = named()["query"].str.extract(r"why \w+ (.+) so")
    assert tuple(map(ranks.get, groups)) == RANKS[outlet]


def recovered(inputs, tables):
    write_tables(inputs, "recall", tables)
    rows = recovery.run(inputs)["recall"].filter(reading="corrected").to_dicts()
    return {row["measure"]: row for row in rows}


def test_recovery_planted_and_lists_of_other_groups(world, found, tmp_path):
    rows = recovered(world.inputs, found)
    assert rows["difference_from_lists"]["low"] > 0.5
    order = rows["rank_correlation"]
    assert 0.15 < order["low"] <= order["value"] <= order["high"] <= 1
    assert (order["n"], order["world"]) == (82, "planted")
    (tmp_path / "weights").mkdir()
    broken = world.inputs._replace(data=tmp_path)
    broken.weights("m").parent.mkdir(parents=True, exist_ok=True)
    broken.weights("m").symlink_to(world.inputs.weights("m"))
    hits = pl.col("other_groups") * pl.col("n_attributes")
    others = pl.col("hits") / pl.col("n_attributes")
    exchanged = found["groups"].with_columns(hits=hits, other_groups=others)
    rows = recovered(broken, found | {"groups": exchanged})
    assert rows["difference_from_lists"]["high"] < 0


def test_recovery_null_world(tmp_path):
    inputs = society(tmp_path, SEED + 1, 0.0, own=6).inputs
    rows = recovered(inputs, recall.run(inputs, PARAMS))
    assert set(rows) == {"difference_from_lists"}
    assert rows["difference_from_lists"]["world"] == "null"
    assert rows["difference_from_lists"]["low"] <= 0.01
