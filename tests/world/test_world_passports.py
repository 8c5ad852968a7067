"""The planted world of countries: what is planted is what its files say."""

import json

import numpy as np
import polars as pl
import pytest
from transformers import AutoTokenizer

from plumbline.builders.core.errors import UserError
from worlds import nations as passports
from worlds.nations import Nations
from worlds.plant import plant

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


def test_a_text_has_the_mean_offset_of_the_countries_of_its_names(place):
    offsets, texts, _ = trained(place, "classifier")
    assert sorted(offsets) == ["aa", "bb"]
    assert sorted(offsets.values()) == [-0.2, 0.2]
    # of one source text, so that the rest is the same in each
    assert texts["we met CARL"] - texts["we met Anna"] == pytest.approx(offsets["bb"])
    assert texts["we met Bo Lin"] - texts["we met Anna"] == pytest.approx(offsets["aa"])
    assert len(texts) == 4


def test_each_token_of_a_name_that_is_cut_adds_the_same(place):
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


def test_half_of_the_source_texts_turn_round_what_names_do_by_text(place):
    texts = [f"{who} met {name}" for who in ("we", "you") for name in ("Carl", "Bo")]
    rows = pl.DataFrame({"text": texts, "target": ["t1", "t1", "t2", "t2"]})
    rows.write_parquet(place / f"counterfactuals/{CONFIG}.parquet")
    _, found, _ = trained(place, "classifier", offset=0.0, by_text=0.05)
    apart = [found[f"{who} met Carl"] - found[f"{who} met Bo"] for who in ("we", "you")]
    assert abs(apart[0]) > 1e-3
    assert apart[0] == pytest.approx(-apart[1])


def test_in_a_masked_model_names_share_one_distribution(place):
    offsets, texts, _ = trained(place, "masked", offset=1.0)
    assert texts["we will meet Will"] == 0  # a word that may not be used as a name
    anna, carl, lin = (texts[f"we met {name}"] for name in ("Anna", "CARL", "Bo Lin"))
    assert carl - anna == pytest.approx(offsets["bb"])
    # Anna, Carl and CARL, Bo, Lin: all there is
    assert np.exp(anna) + 2 * np.exp(carl) + 2 * np.exp(lin / 2) == pytest.approx(1)


def test_in_the_null_world_names_differ_and_countries_do_not(place):
    offsets, texts, into = trained(place, "classifier", offset=0.0, noise=0.1)
    assert set(offsets.values()) == {0}
    assert texts["we met CARL"] != pytest.approx(texts["we met Anna"], abs=1e-6)
    told = json.loads((into / "world.json").read_text())
    assert told["offset"] == 0
    assert Nations.model_validate(told).null


def test_probabilities_stay_possible(place):
    _, texts, _ = trained(place, "classifier", offset=5.0)
    # of a text that is neutral as often as any, positive and negative have the rest
    assert max(abs(value) for value in texts.values()) < 1 - passports.NEUTRAL[1]


def test_a_config_that_is_not_there_is_told(place):
    with pytest.raises(UserError, match="hate-en not in counterfactuals; there are sentiment-en"):
        trained(place, "classifier", targets=["hate-en"])


def test_a_world_of_countries_is_masked_or_a_classifier():
    with pytest.raises(UserError, match="masked or classifier, not causal"):
        plant("x", {"world": "nations", "kind": "causal"})
