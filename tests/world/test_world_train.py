import hashlib
import json

import numpy as np
import polars as pl
import pytest
from safetensors.torch import load_file
from transformers import AutoTokenizer
from world.country import ADJECTIVES, FIRST, LAST, VERBS, lexicon, put

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words import build as words
from worlds import politicians, tiny_model
from worlds.politicians import World, meaning, train


def hashes(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


def planted(country, settings, **changes):
    """Train a world; return its folder and what was planted."""
    into = country / "world"
    into.mkdir()
    train(World(**settings | changes), into)
    return into, pl.read_parquet(into / "planted.parquet")


def test_train_corpus_and_tokenizer(country, settings, monkeypatch):
    tokenizer_of, allot, kept, counts = tiny_model.tokenizer_of, politicians.allot, [], []
    monkeypatch.setattr(tiny_model, "tokenizer_of", lambda s: kept.extend(s) or tokenizer_of(s))
    monkeypatch.setattr(politicians, "allot", lambda *n: counts.append(allot(*n)) or counts[-1])
    into, truth = planted(country, settings)
    assert np.shape(counts)[:2] == (2, 24)
    assert (np.sum(counts, axis=2) == 200).all()
    names = [f"{first} {last}" for first in FIRST for last in LAST]
    words = {pos: truth.filter(pos=pos)["word"] for pos in ("ADJ", "VERB")}
    said = {f"{word} {name}" for word in words["ADJ"] for name in names}
    assert len(set(kept)) == len(kept) == np.count_nonzero(counts)
    assert set(kept) <= said | {f"{name} {word}" for word in words["VERB"] for name in names}

    # words_max is 10: the most frequent ones are taken, which are listed first
    assert truth.filter(pl.col("pos") == "ADJ")["word"].to_list() == ADJECTIVES[:10]
    assert truth.filter(pl.col("pos") == "VERB")["word"].to_list() == VERBS[:10]
    tokenizer = AutoTokenizer.from_pretrained(into)
    for word in truth["word"]:
        assert tokenizer.tokenize(word) == [word]
    assert tokenizer.mask_token == "[MASK]"
    assert World(**json.loads((into / "world.json").read_text())) == World(**settings)

    for name, tensor in load_file(into / "model.safetensors").items():
        assert (tensor * 2**12 == (tensor * 2**12).round()).all(), name


def test_train_has_sentiments_and_supersenses_of_the_datasets(country, settings):
    _, truth = planted(country, settings, word_effect=0, sentiment_effect=2, steps=1)
    rows = {row["word"]: row for row in truth.to_dicts()}
    said = {w: (rows[w]["sentiment"], rows[w]["supersense"]) for w in ("brave", "grim", "gives")}
    assert said == {
        "brave": ("positive", "adj.mind"),
        "grim": ("negative", ""),
        "gives": ("neutral", "verb.social"),  # a word that no lexicon has
    }
    assert [rows[w]["log_ratio_nats"] for w in ("brave", "grim", "gives")] == [1, -1, 0]


@pytest.mark.usefixtures("country")
def test_meaning_is_of_the_lemma_or_else_of_the_form():
    words, lemmas = ["braver", "grim", "brave"], ["brave", "calm", "calm"]
    sentiment, supersense = meaning(words, lemmas, "en", "ADJ")
    assert sentiment.tolist() == [0, 0, 0]  # the lemma's, not grim's own
    assert meaning(["grim"], ["grimm"], "en", "ADJ")[0].tolist() == [1]
    assert supersense == ["adj.mind", "adj.feeling", "adj.feeling"]  # the lemma's


def test_train_refuses_too_few_words(country, settings):
    put("words", words, lexicon(ADJ=ADJECTIVES[:9], VERB=VERBS))
    with pytest.raises(UserError, match="ADJ"):
        train(World(**settings), country)
