"""The planted world of countries: what is planted is what its files say."""

import json

import numpy as np
import polars as pl
import pytest
from transformers import AutoTokenizer

from plumbline.builders.core.errors import UserError
from worlds import nations as passports
from worlds.nations import Nations

CONFIG = "sentiment-en"
SEEN = {"aa": ["Anna", "Bo-Lin"], "bb": ["Carl", "Anna"]}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Change to a folder with two tiny datasets, which count as validated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(passports.parquet, "require_validated", lambda name: tmp_path / name)
    (tmp_path / "names").mkdir()
    for country, names in SEEN.items():
        flags = [[] for _ in names]
        frame = pl.DataFrame(
            {"name": [*names, "Will"], "flags": [*flags, ["word"]]},
            schema={"name": pl.String, "flags": pl.List(pl.String)},
        )
        frame.write_parquet(tmp_path / f"names/{country}.parquet")
    texts = ["we met Anna", "we met CARL", "we met Bo Lin", "we will meet Will", "we met Anna"]
    (tmp_path / "counterfactuals").mkdir()
    rows = pl.DataFrame({"text": texts, "target": ["t1", "t1", "t1", "t2", "t1"]})
    rows.write_parquet(tmp_path / f"counterfactuals/{CONFIG}.parquet")
    return tmp_path


def trained(place, kind, **changed):
    given = {"targets": [CONFIG], "seed": 4, "offset": 0.2, "noise": 0.0, "hidden": 32}
    given |= {"steps": 3, "learning_rate": 0.01, "batch": 4}
    into = place / "world"
    into.mkdir()
    passports.train(Nations.model_validate(given | changed), kind, into)
    planted = pl.read_parquet(into / "planted.parquet")
    texts = pl.read_parquet(into / "texts.parquet")
    return dict(planted.iter_rows()), dict(texts.select("text", "planted").iter_rows()), into


def test_train_texts_have_the_offset_of_their_countries(place):
    offsets, texts, _ = trained(place, "classifier")
    assert sorted(offsets) == ["aa", "bb"]
    assert sorted(offsets.values()) == [-0.2, 0.2]
    # of one source text, so that the rest is the same in each
    assert texts["we met CARL"] - texts["we met Anna"] == pytest.approx(offsets["bb"])
    assert texts["we met Bo Lin"] - texts["we met Anna"] == pytest.approx(offsets["aa"])
    assert len(texts) == 4


def test_train_adds_an_effect_of_each_token(place):
    """One of two countries has all its names cut, those that both have by the toss of a coin."""
    _, plain, _ = trained(place, "classifier")
    (place / "world").rename(place / "plain")
    _, texts, into = trained(place, "classifier", cut=1.0, per_token=0.05)
    tokenizer = AutoTokenizer.from_pretrained(into)
    table = pl.read_parquet(into / "texts.parquet")
    of_tokens = dict(table.select("text", "of_tokens").iter_rows())
    more = {text: len(tokenizer.tokenize(text)) - len(text.split()) for text in texts}
    assert max(more.values()) > 0
    assert more["we will meet Will"] == 0
    for text, number in more.items():
        assert of_tokens[text] == pytest.approx(0.05 * number)
        assert texts[text] - plain[text] == pytest.approx(0.05 * number)


def test_train_masked_names_share_one_distribution(place):
    offsets, texts, _ = trained(place, "masked", offset=1.0)
    assert texts["we will meet Will"] == 0  # a word that may not be used as a name
    anna, carl, lin = (texts[f"we met {name}"] for name in ("Anna", "CARL", "Bo Lin"))
    assert carl - anna == pytest.approx(offsets["bb"])
    # Anna, Carl and CARL, Bo, Lin: all there is
    assert np.exp(anna) + 2 * np.exp(carl) + 2 * np.exp(lin / 2) == pytest.approx(1)


def test_train_null_world_differs_by_name_alone(place):
    offsets, texts, into = trained(place, "classifier", offset=0.0, noise=0.1)
    assert set(offsets.values()) == {0}
    assert texts["we met CARL"] != pytest.approx(texts["we met Anna"], abs=1e-6)
    told = json.loads((into / "world.json").read_text())
    assert told["offset"] == 0
    assert Nations.model_validate(told).null


def test_train_refuses_an_unknown_config(place):
    with pytest.raises(UserError, match="hate-en"):
        trained(place, "classifier", targets=["hate-en"])
