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


def test_the_corpus_says_what_was_planted_and_the_tokenizer_has_its_words_whole(
    country, settings, monkeypatch
):
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


def test_sentiments_and_supersenses_are_those_of_the_datasets(country, settings):
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
def test_a_language_without_lexicon_is_told():
    with pytest.raises(UserError, match="no lexicon of 'xx', which a world needs"):
        meaning(["brave"], ["brave"], "xx", "ADJ")


@pytest.mark.usefixtures("country")
def test_words_are_looked_up_by_their_lemma_and_those_without_by_their_form():
    found = meaning(["braver", "grim", "brave"], ["brave", "calm", "calm"], "en", "ADJ")
    assert found.sentiment.tolist() == [0, 0, 0]  # the lemma's, not grim's own
    assert meaning(["grim"], ["grimm"], "en", "ADJ").sentiment.tolist() == [1]
    assert found.supersense == ("adj.mind", "adj.feeling", "adj.feeling")  # the lemma's


def test_an_albert_shares_its_layers(country, settings):
    sizes = {}
    for kind in ("bert", "albert"):
        into = country / kind
        into.mkdir()
        train(World(**settings | {"architecture": kind, "layers": 2, "steps": 1}), into)
        assert json.loads((into / "config.json").read_text())["model_type"] == kind
        sizes[kind] = sum(t.numel() for t in load_file(into / "model.safetensors").values())
    assert sizes["albert"] < sizes["bert"]


def test_another_training_seed_is_another_model_of_the_same_language_and_corpus(country, settings):
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


def test_a_word_that_is_adjective_and_verb_is_not_planted(country, settings):
    put("words", words, lexicon(ADJ=["open", *ADJECTIVES], VERB=["open", *VERBS]))
    _, truth = planted(country, settings, steps=1)
    assert "open" not in truth["word"]


def test_too_few_words_are_told(country, settings):
    put("words", words, lexicon(ADJ=ADJECTIVES[:9], VERB=VERBS))
    with pytest.raises(UserError, match="world in 'en': only 9 ADJ in words; it needs 10"):
        train(World(**settings), country)
