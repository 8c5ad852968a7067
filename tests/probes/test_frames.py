"""Causal models are asked what masked ones are, in sentences that end with the word."""

import polars as pl
import pytest
from models.tiny import byte_level, save
from models.tiny_causal import gpt2

from plumbline.probes.commands.cost import plan
from plumbline.probes.core.run_probe import probe
from plumbline.probes.models.load import load, pin


@pytest.fixture
def framed(place, change):
    """A place with a causal model, and a masked one that is asked in three frames."""
    words = pl.read_parquet("data/datasets/words/en.parquet")["form"].to_list()
    people = pl.read_parquet("data/datasets/politicians/en.parquet")["name"].to_list()
    sentences = [f"{name} is {word}" for name, word in zip(people * 9, words, strict=False)]
    tokenizer = byte_level([*sentences, "Yesterday this person"] * 3, model_max_length=64)
    save(place / "causal", gpt2(tokenizer), tokenizer)

    def models(tree):
        tree["assignments"]["associations"] = ["causal", "tiny"]
        own = {"dtype": "float64", "languages": ["en"]}
        tree["models"]["causal"] = {"id": "./causal", "kind": "causal", **own}
        tree["models"]["tiny"]["languages"] = ["en"]
        part = tree["probes"]["associations"]
        part["frames_of"]["masked"] = ["bare", "neutral", "paraphrase"]

    change(models)
    for name in ("causal", "tiny"):
        pin(name)


@pytest.mark.slow
def test_probe_causal(framed):
    folder = probe("associations", "causal")
    rows = pl.read_parquet(folder / "en/*.parquet")
    assert set(rows["frame"]) == {"neutral"}
    scorer = load("causal")
    for pos, frame, neutral in (("ADJ", "{} is", "This person is"), ("VERB", "Yesterday {}", None)):
        part = rows.filter(pl.col("pos") == pos)
        assert set(part["prompt"]) == {frame.format(name) for name in set(part["name"])}
        some = part.sample(40, seed=1)
        pairs = [(prompt, f" {word}") for prompt, word in some.select("prompt", "word").rows()]
        for value, score in zip(some["logprob_nats"], scorer.logprobs(pairs), strict=True):
            assert value == pytest.approx(score.logprob_nats, abs=1.01e-6)
        text = neutral or "Yesterday this person"
        priors = scorer.logprobs([(text, f" {word}") for word in some["word"]])
        for value, score in zip(some["prior_nats"], priors, strict=True):
            assert value == pytest.approx(score.logprob_nats, abs=1.01e-6)
    assert plan("associations", "causal", 0).prompts == rows.select("pos", "prompt").n_unique()
    coverage = pl.read_parquet(folder / "coverage/en.parquet")
    assert coverage["covered"].min() > 0


@pytest.mark.slow
def test_probe_frames(framed, change):
    rows = pl.read_parquet(probe("associations", "tiny") / "en/*.parquet")
    assert rows["frame"].unique(maintain_order=True).to_list() == ["bare", "neutral", "paraphrase"]
    names = pl.read_parquet("data/datasets/politicians/en.parquet")["name"].n_unique()
    lists = rows.select("pos", "frame", "name").unique()
    assert len(lists) == 2 * 3 * names
    assert plan("associations", "tiny", 0).prompts == 2 * 3 * names
    bare = rows.filter(frame="bare")
    assert bare["prior_nats"].is_null().all()
    others = rows.filter(pl.col("frame") != "bare")
    assert others["prior_nats"].null_count() == 0
    # one prior for a word and a frame, whoever is named
    priors = others.group_by("frame", "pos", "word").agg(pl.col("prior_nats").n_unique())
    assert set(priors["prior_nats"]) == {1}
    change(lambda tree: tree["probes"]["associations"]["frames_of"].update(masked=["bare"]))
    alone = pl.read_parquet(probe("associations", "tiny") / "en/*.parquet")
    assert alone.equals(bare)
