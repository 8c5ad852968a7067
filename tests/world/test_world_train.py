import hashlib
import json

import polars as pl
import pytest
from safetensors.torch import load_file
from transformers import AutoTokenizer
from world.country import ADJECTIVES, VERBS, lexicon, put

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.words import build as words
from worlds import politicians
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
    plain, kept = politicians.corpus, []
    monkeypatch.setattr(politicians, "corpus", lambda *given: kept.extend(plain(*given)) or kept)
    into, truth = planted(country, settings)
    corpus = pl.DataFrame(kept, ["name", "pos", "word", "sentence", "count"], orient="row")
    per = corpus.group_by("name", "pos").agg(pl.col("count").sum(), pl.col("word").n_unique())
    assert len(per) == 2 * 24
    assert (per["count"] == 200).all()
    adjective = corpus.filter(pl.col("pos") == "ADJ")
    said = (adjective["word"] + " " + adjective["name"]).to_list()
    assert adjective["sentence"].to_list() == said
    verb = corpus.filter(pl.col("pos") == "VERB")
    assert verb["sentence"].to_list() == (verb["name"] + " " + verb["word"]).to_list()

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
    found = meaning(["braver", "grim", "brave"], ["brave", "calm", "calm"], "en", "ADJ")
    assert found.sentiment.tolist() == [0, 0, 0]  # the lemma's, not grim's own
    assert meaning(["grim"], ["grimm"], "en", "ADJ").sentiment.tolist() == [1]
    assert found.supersense == ("adj.mind", "adj.feeling", "adj.feeling")  # the lemma's


def test_train_seed_changes_the_model_alone(country, settings):
    found = []
    for seed in (None, settings["seed"], settings["seed"] + 1):
        into = country / f"trained{seed}"
        into.mkdir()
        train(World(**settings | {"training_seed": seed}), into)
        found.append(hashes(into))
    default, same, other = found
    for name in ("planted.parquet", "tokenizer.json"):
        assert default[name] == same[name] == other[name]
    assert default["model.safetensors"] == same["model.safetensors"]
    assert default["model.safetensors"] != other["model.safetensors"]


def test_train_refuses_too_few_words(country, settings):
    put("words", words, lexicon(ADJ=ADJECTIVES[:9], VERB=VERBS))
    with pytest.raises(UserError, match="ADJ"):
        train(World(**settings), country)
