import numpy as np
import polars as pl
import pytest
from models.tiny import save
from models.tiny_causal import gpt2, gpt2_tokenizer
from transformers import AutoTokenizer

from plumbline.builders.core.errors import UserError
from plumbline.probes.core.run_probe import probe
from plumbline.probes.models.load import load, pin
from plumbline.probes.politicians import representations


@pytest.fixture
def ready(place, change, monkeypatch):
    """A place with a masked and a causal model, and shards of few words."""
    tokenizer = gpt2_tokenizer()
    save(place / "causal", gpt2(tokenizer), tokenizer)
    change(lambda tree: tree["models"]["tiny"].update(dtype="float32"))
    causal = {"id": "./causal", "kind": "causal", "languages": ["fr"]}
    change(lambda tree: tree["models"].update(causal=causal))
    monkeypatch.setattr(representations, "SHARD", 70)
    for name in ("tiny", "causal"):
        pin(name)
    return place


def test_probe_writes_each_word_once(ready, monkeypatch):
    folder = probe("representations", "tiny")
    assert len(list(folder.glob("en/*.parquet"))) > 2
    rows = pl.read_parquet(folder / "en/*.parquet")
    words = pl.read_parquet("data/datasets/words/en.parquet")["form"].unique().sort()
    assert rows["word"].to_list() == words.to_list()
    tokenizer = AutoTokenizer.from_pretrained("tiny")
    assert rows["pieces"].to_list() == [len(tokenizer.tokenize(word)) for word in words]
    assert rows["pieces"].max() > 1
    assert set(rows["model"]) == {"tiny"}
    states = np.stack(rows["state"].to_list())
    assert states.shape == (len(words), 32)
    assert (np.round(states, 6) == states).all()
    some = [words[-1], *words[:3]]
    (direct,) = load("tiny").represent(some)
    for word, state in zip(some, direct.states, strict=True):
        assert rows.filter(pl.col("word") == word)["state"][0].to_list() == state.tolist()
    monkeypatch.setattr(representations, "SHARD", 5000)
    whole = pl.read_parquet(probe("representations", "tiny") / "en/00000.parquet")
    assert whole.equals(rows)


def test_probe_rejects(ready, change):
    change(lambda tree: tree["models"]["tiny"].update(kind="seq2seq"))
    with pytest.raises(UserError, match="kind seq2seq cannot represent"):
        probe("representations", "tiny")
    change(lambda tree: tree["probes"]["representations"].update(languages=["fr", "cs"]))
    change(lambda tree: tree["models"]["causal"].update(languages=["cs"]))
    with pytest.raises(UserError, match=r"representations\.languages: cs must be in words"):
        probe("representations", "causal")
