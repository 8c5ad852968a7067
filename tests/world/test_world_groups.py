"""The planted world of social groups."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import whole
from models.tiny import answers
from tokenizers import Tokenizer
from world.country import vouch

from plumbline.builders.core.build import build
from plumbline.builders.core.params import section
from plumbline.builders.datasets.emotions import build as emotions
from plumbline.builders.datasets.emotions.build import EMOTIONS
from plumbline.builders.datasets.social_groups import build as social_groups
from plumbline.builders.datasets.stereotypes import build as stereotypes
from plumbline.probes.models.masked import Masked
from plumbline.probes.prompts.groups import queries
from plumbline.probes.stereotypes.completions import Params as Asking
from worlds.groups import Society, train

TOP = Path(__file__).parents[2]
SETTINGS = {
    "seed": 3,
    "attribute_effect": 2.0,
    "emotion_effect": 1.0,
    "noise": 0.5,
    "words_max": 20,
    "hidden": 64,
    "steps": 6,
    "batch": 99,
    "learning_rate": 0.005,
}


@pytest.fixture(scope="module")
def land(tmp_path_factory, linking):
    """Return a folder with the datasets that the world is made of."""
    folder = tmp_path_factory.mktemp("land")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        linking(folder)
        (folder / "docs").symlink_to(TOP / "docs")
        whole.write(folder)
        for module in (social_groups, stereotypes, emotions):
            name = module.__name__.split(".")[-2]
            build(name, module)
            vouch(name)
    return folder


@pytest.fixture(autouse=True)
def there(land, monkeypatch):
    monkeypatch.chdir(land)


def asking():
    return section("probes.completions", Asking)


def planted(into, **changes):
    into.mkdir()
    train(Society(**SETTINGS | changes), asking(), into)
    return pl.read_parquet(into / "planted.parquet")


def test_train_plants_attributes_and_an_emotion(tmp_path):
    world = planted(tmp_path / "w")
    said = pl.read_parquet("data/datasets/stereotypes/en.parquet")
    said = said.filter(pl.col("single_word") & (pl.col("flags").list.len() == 0))
    pairs = set(said.select("group", pl.col("attribute").str.to_lowercase()).iter_rows())
    felt = pl.read_parquet("data/datasets/emotions/en.parquet")
    carries = {row["word"]: {e for e in EMOTIONS if row[e]} for row in felt.iter_rows(named=True)}
    assert {group for group, _ in pairs} == set(world["group"])
    for row in world.iter_rows(named=True):
        wanted = 2.0 * ((row["group"], row["word"]) in pairs)
        wanted += 1.0 * (row["emotion"] in carries.get(row["word"], ()))
        assert row["log_odds_nats"] == pytest.approx(wanted), (row["group"], row["word"])
    total = world.group_by("group").agg(pl.col("probability").sum())
    assert total["probability"].to_numpy() == pytest.approx(1)


def test_train_null_world_has_no_effects(tmp_path):
    world = planted(tmp_path / "w", attribute_effect=0, emotion_effect=0)
    assert world["log_odds_nats"].unique().to_list() == [0.0]
    assert world.group_by("word").agg(pl.col("probability").n_unique())["probability"].min() > 1
    assert Society(**SETTINGS | {"attribute_effect": 0, "emotion_effect": 0}).null


def test_world_groups_says_what_was_planted():
    folder = TOP / "data/samples/worlds/world-groups"
    world = pl.read_parquet(folder / "planted.parquet")
    scorer = Masked(folder, "w", "r", dtype="float64")
    folders = {n: Path(f"data/datasets/{n}") for n in ("social_groups", "stereotypes")}
    some = queries(asking(), folders, "en")[::3]
    words = world["word"].unique().sort().to_list()
    true = {(g, w): p for g, w, p in world.select("group", "word", "probability").iter_rows()}
    prompts = [f"{q.text[:1].upper()}{q.text[1:]} <mask>?" for q in some]
    fills = answers(scorer.fill(prompts, words, len(words)))
    likeness = []
    for query, fill in zip(some, fills, strict=True):
        wanted = np.log([true[query.group, w] for w in fill.words])
        likeness.append(np.corrcoef(wanted, fill.logprobs_nats)[0, 1])
    print(f"lowest {min(likeness):.3f}, mean {np.mean(likeness):.3f}")
    assert np.mean(likeness) > 0.8  # in so small and short a training
    assert len({q.template for q in some}) > 5


def sample(name):
    table = pl.read_parquet(TOP / "data/samples/worlds" / name / "planted.parquet")
    return table.sort("group", "word")


def test_world_groups_half_shares_half_of_the_words():
    one, other = sample("world-groups"), sample("world-groups-half")
    told = (
        one.join(other, on=["group", "word"])
        .group_by("word")
        .agg(
            same=(pl.col("log_odds_nats") == pl.col("log_odds_nats_right")).all(),
            emotion=(pl.col("emotion") == pl.col("emotion_right")).all(),
            # probabilities differ by how much is said of a group in all: a factor of each group
            taste=pl.corr(pl.col("probability").log(), pl.col("probability_right").log()),
        )
    )
    shared = told.filter("emotion")
    assert len(shared) == round(len(told) / 2)
    assert shared["same"].all()
    assert shared["taste"].min() > 0.6 > 0.2 > abs(told.filter(~pl.col("emotion"))["taste"].mean())


def test_world_groups_bytes_pieces_and_priors():
    folder = TOP / "data/samples/worlds/world-groups-bytes"
    world = sample("world-groups-bytes")
    words = world.unique("word").sort("word")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    pieces = [len(tokenizer.encode(f" {w}", add_special_tokens=False).ids) for w in words["word"]]
    assert words["pieces"].to_list() == pieces
    assert 0.15 < np.mean([n > 1 for n in pieces]) < 0.45
    kinds = pl.read_parquet("data/datasets/social_groups/en.parquet").unique("group")
    country = pl.col("category") == "country"
    known = world.join(kinds.select("group", kind=country), on="group", how="left")
    means = known.group_by("kind", "word").agg(
        pl.col("probability").mean(), pl.col("prior").first()
    )
    assert means["prior"].to_numpy() == pytest.approx(means["probability"].to_numpy(), rel=1e-4)
