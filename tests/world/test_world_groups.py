"""The planted world of social groups."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import whole
from pydantic import ValidationError
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
from plumbline.probes.worlds.groups import Society, train

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


def test_what_is_planted_is_the_attributes_and_an_emotion_of_each_group(tmp_path):
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


def test_nothing_is_planted_in_the_null_world(tmp_path):
    world = planted(tmp_path / "w", attribute_effect=0, emotion_effect=0)
    assert world["log_odds_nats"].unique().to_list() == [0.0]
    assert world.group_by("word").agg(pl.col("probability").n_unique())["probability"].min() > 1
    assert Society(**SETTINGS | {"attribute_effect": 0, "emotion_effect": 0}).null


def test_the_world_of_the_default_run_says_what_was_planted_in_every_template():
    folder = TOP / "data/samples/worlds/world-groups"
    world = pl.read_parquet(folder / "planted.parquet")
    scorer = Masked(folder, "w", "r", dtype="float64")
    folders = {n: Path(f"data/datasets/{n}") for n in ("social_groups", "stereotypes")}
    some = queries(asking(), folders, "en")[::3]
    words = world["word"].unique().sort().to_list()
    true = {(g, w): p for g, w, p in world.select("group", "word", "probability").iter_rows()}
    prompts = [f"{q.text[:1].upper()}{q.text[1:]} <mask>?" for q in some]
    (block,) = scorer.fill(prompts, words, len(words))
    likeness = []
    for query, fill in zip(some, block.each(), strict=True):
        wanted = np.log([true[query.group, w] for w in fill.words])
        likeness.append(np.corrcoef(wanted, fill.logprobs_nats)[0, 1])
    print(f"lowest {min(likeness):.3f}, mean {np.mean(likeness):.3f}")
    assert np.mean(likeness) > 0.8  # in so small and short a training
    assert len({q.template for q in some}) > 5


@pytest.mark.parametrize("wrong", [{"noise": 0}, {"attribute_effect": -1}, {"strength": 3}])
def test_settings_that_make_no_world_are_refused(wrong):
    with pytest.raises(ValidationError):
        Society(**SETTINGS | wrong)
