"""The probes classification and perplexity, put to models of planted worlds."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from passports import CONFIG, EACH

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.shards import Task
from plumbline.probes.models.load import load
from worlds.plant import plant


def rows():
    return pl.read_parquet(f"data/datasets/counterfactuals/{CONFIG}.parquet")


def classified():
    return pl.read_parquet(f"data/outputs/classification/planted/{CONFIG}/*.parquet")


def scored():
    return pl.read_parquet(f"data/outputs/perplexity/masked/{CONFIG}/*.parquet")


def test_identical_texts_are_classified_once(nations):
    found = classified()
    assert len(rows()) > rows()["text"].n_unique()
    plain = pl.read_parquet(f"data/datasets/targets/{CONFIG}.parquet")["text"]
    assert set(found["text"]) == {*rows()["text"], *plain}
    assert len(found) == 3 * found["text"].n_unique()


def test_probabilities_of_a_text_add_up_to_one_and_are_the_models_own(nations):
    found = classified()
    sums = found.group_by("text").agg(pl.col("logprob_nats").exp().sum())["logprob_nats"]
    assert np.abs(sums.to_numpy() - 1).max() < 1e-5
    texts = found["text"].unique(maintain_order=True).to_list()[:5]
    for each in load("planted").classify(texts):
        own = found.filter(pl.col("text") == each.text)
        assert own["class"].to_list() == ["negative", "neutral", "positive"]
        assert own["logprob_nats"].to_list() == list(each.logprobs_nats)
        assert own["logprob_nats"].exp().to_list() == pytest.approx(each.probabilities, abs=2e-6)


def test_pieces_has_the_names_that_may_be_used(nations):
    found = pl.read_parquet("data/outputs/classification/planted/pieces/*.parquet")
    assert len(found) == 3 * 3 * (EACH - 1)  # the last of each kind is flagged
    assert set(found["tokens"]) == {1}  # the world's tokenizer knows all names


def test_pieces_are_counted_behind_another_word(nations):
    scorer = load("planted")
    words = ["again", "zzz"]
    whole = scorer.tokens.encode([f"a {w}" for w in words], special=False)
    assert scorer.lengths(words) == [len(ids) - 1 for ids in whole]
    assert scorer.lengths(["zzz"]) > scorer.lengths(["again"])


def test_the_planted_offsets_are_in_what_the_models_say(nations):
    known = pl.read_parquet("data/samples/worlds/planted/texts.parquet")
    wide = (
        classified()
        .with_columns(pl.col("logprob_nats").exp())
        .pivot(on="class", index="text", values="logprob_nats")
    )
    both = wide.join(known, on="text").with_columns(d=pl.col("positive") - pl.col("negative"))
    assert both.select(pl.corr("d", "planted")).item() > 0.98
    assert both.select((pl.col("d") - pl.col("planted")).abs().mean()).item() < 0.02


def test_worlds_of_one_seed_have_their_countries_in_one_order(nations):
    both = [
        pl.read_parquet(f"data/samples/worlds/{name}/planted.parquet")
        for name in ("planted", "masked")
    ]
    assert [sorted(each["offset"].to_list()) for each in both] == [[-0.2, 0, 0.2], [-1.5, 0, 1.5]]
    orders = [each.sort("offset")["country"].to_list() for each in both]
    assert orders[0] == orders[1]


def test_perplexity_is_of_originals_and_the_wanted_readings(nations):
    plain = pl.read_parquet(f"data/datasets/targets/{CONFIG}.parquet")["text"]
    wanted = rows().filter(pl.col("reading").is_in([0, 2]))["text"].unique()
    assert set(plain) - set(rows()["text"])  # texts without a person
    assert set(scored()["text"]) == {*wanted, *plain}
    assert set(rows()["text"]) - set(scored()["text"])


def test_sums_are_the_engines_log_likelihoods(nations):
    found = scored().sort("text").head(4)
    scorer = load("masked")
    for column, method in (("sum_original_nats", "original"), ("sum_l2r_nats", "within_word_l2r")):
        each = list(scorer.pseudo_logprobs(found["text"].to_list(), method))
        assert found[column].to_list() == pytest.approx([s.logprob_nats for s in each], abs=1e-6)
        assert found["tokens"].to_list() == [s.tokens for s in each]


@pytest.mark.slow
def test_the_same_world_has_the_same_bytes(nations, tmp_path):
    before = Path("data/samples/worlds/masked/manifest.json").read_bytes()
    facts = json.loads(before)
    given = {"world": "nations", **facts["parameters"], **facts["model"]}
    del given["control"]
    again = json.loads((plant("masked", given, tmp_path) / "manifest.json").read_text())
    assert again | {"id": facts["id"]} == facts


def test_a_masked_model_cannot_classify_and_a_classifier_has_no_perplexity(nations):
    with pytest.raises(UserError, match="cannot classify"):
        Task("classification", "masked")
    with pytest.raises(UserError, match="cannot pseudo_logprobs"):
        Task("perplexity", "planted")


def test_a_config_that_is_not_there_is_told(nations, monkeypatch, tmp_path):
    tree = yaml.safe_load(Path("params.yaml").read_text())
    tree["probes"]["classification"]["targets"] = ["hate-en"]
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(tree))
    (tmp_path / "data").symlink_to(nations / "data")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=rf"hate-en not in counterfactuals or targets; there are {CONFIG}"
    ):
        Task("classification", "planted").shards()
