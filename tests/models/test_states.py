"""States of words alone, held against plain forwards of the saved models."""

import math
import random

import numpy as np
import pytest
import torch
from models import tiny_special
from models.special_by_hand import NAMES, SPOKEN
from models.tiny import save
from models.tiny_causal import (
    gemma3,
    gpt1,
    gpt1_tokenizer,
    gpt2,
    gpt2_tokenizer,
    llama,
    llama_tokenizer,
)
from models.tiny_encoders import SEVERAL, WORDS, Plain, in_both
from transformers import AutoModel, AutoTokenizer

from plumbline.builders.core.errors import Problem
from plumbline.probes.models import batching, hidden_states
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import Represents

ASKED = [*WORDS, *SEVERAL, "zed", "kind"]
CAUSAL = {
    "gpt2": (gpt2, gpt2_tokenizer),
    "llama": (llama, llama_tokenizer),
    "gemma3": (gemma3, llama_tokenizer),
    "gpt1": (gpt1, gpt1_tokenizer),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a folder with a model of each of the kinds that need care."""
    found = {n: tiny_special.saved(n, tmp_path_factory.mktemp(n)) for n in NAMES}
    for name, (build, tokenizer) in CAUSAL.items():
        found[name] = save(tmp_path_factory.mktemp(name), build(tokenizer()), tokenizer())
    return found


def represented(scorer, words, language=""):
    """Return the state of each word, and its number of pieces."""
    blocks = list(scorer.represent(iter(words), language=language))
    assert [word for block in blocks for word in block.words] == list(words)
    return np.concatenate([b.states for b in blocks]), [n for b in blocks for n in b.pieces]


def plain(states_of, tokenizer, word, before=None):
    """Return the mean state of a word's own tokens, from a forward of it alone."""
    own = tokenizer(word, add_special_tokens=False)["input_ids"]
    ids = tokenizer(word)["input_ids"] if before is None else [*before, *own]
    (start,) = [n for n in range(len(ids)) if ids[n : n + len(own)] == own]
    with torch.no_grad():
        return states_of(torch.tensor([ids]))[0, start : start + len(own)].mean(0), len(own)


@in_both(1e-6, 2e-5)
def test_the_state_is_the_mean_over_the_words_own_pieces(encoder, saved, dtype, apart):
    scorer, by_hand = Masked(saved, "tiny", "r1", dtype=dtype), Plain(encoder, saved, dtype)
    assert isinstance(scorer, Represents)
    body = getattr(by_hand.model, by_hand.model.base_model_prefix)
    found, pieces = represented(scorer, ASKED)
    for row, number, word in zip(found, pieces, ASKED, strict=True):
        true, own = plain(lambda ids: body(ids)[0], by_hand.tokenizer, word)
        assert number == own
        assert np.abs(row - true.double().numpy()).max() < apart
    assert len({row.tobytes() for row in found}) == len(set(ASKED))
    assert max(pieces) > 1


@pytest.mark.parametrize("name", NAMES)
def test_models_that_need_care_are_asked_as_their_handbooks_say(folders, name):
    language = SPOKEN.get(name, "")
    dtype = "float32" if name == "xlnet" else "float64"  # its class cannot do with others
    scorer = Masked(folders[name], "tiny", "r1", dtype=dtype)
    model = AutoModel.from_pretrained(folders[name], dtype=getattr(torch, dtype)).eval()
    tokenizer = scorer.tokens.tokenizer
    scorer.tokens.encode(["kind"], language)  # tells the tokenizer the language

    def states_of(ids):
        if name in ("bart", "mbart"):
            return model.get_encoder()(ids).last_hidden_state
        if name == "xlm":
            return model(ids, langs=torch.full_like(ids, model.config.lang2id[language]))[0]
        if name == "xlnet":  # the classifying token is of a segment of its own
            return model(ids, token_type_ids=torch.where(ids == tokenizer.cls_token_id, 2, 0))[0]
        return model(ids)[0]

    words = [*tiny_special.WORDS, *tiny_special.SPLIT]
    found, pieces = represented(scorer, words, language)
    for row, number, word in zip(found, pieces, words, strict=True):
        true, own = plain(states_of, tokenizer, word)
        assert number == own
        assert np.abs(row - true.numpy()).max() < (1e-6 if dtype == "float64" else 2e-5)


@pytest.mark.parametrize("name", CAUSAL)
def test_a_causal_model_sees_what_begins_texts_before_the_word(folders, name):
    scorer = Causal(folders[name], "tiny", "r1", dtype="float64")
    assert isinstance(scorer, Represents)
    tokenizer = AutoTokenizer.from_pretrained(folders[name])
    model = AutoModel.from_pretrained(folders[name], dtype=torch.float64).eval()
    before = [] if name == "gpt1" else [tokenizer.bos_token_id]  # GPT-1 has no such token
    words = ["kind", "brave", "kindest", "tall", "Ada"]
    found, pieces = represented(scorer, words)
    for row, number, word in zip(found, pieces, words, strict=True):
        true, own = plain(lambda ids: model(ids)[0], tokenizer, word, before)
        assert number == own
        assert np.abs(row - true.numpy()).max() < 1e-6


@pytest.mark.parametrize("name", ["bertweet", "bart", "gpt2", "llama"])
def test_neither_company_nor_order_nor_cores_change_a_bit(folders, name, monkeypatch):
    kind = Causal if name in CAUSAL else Masked
    monkeypatch.setattr(hidden_states, "DECIMALS", 12)  # all that float32 has
    words = [f"{a}{b}" for a in WORDS for b in ("", *WORDS)]
    usual, _ = represented(kind(folders[name], "tiny", "r1", dtype="float32"), words)
    order = list(range(len(words)))
    random.Random(7).shuffle(order)
    for tokens, cores, block in ((1, 1, 9), (30, 2, 1024), (1 << 20, 2, 3)):
        monkeypatch.setattr(batching, "TOKENS", tokens)
        monkeypatch.setattr(hidden_states, "BLOCK", block)
        monkeypatch.setenv("PLUMBLINE_CORES", str(cores))
        scorer = kind(folders[name], "tiny", "r1", dtype="float32")
        mixed, _ = represented(scorer, [words[i] for i in order])
        assert mixed.tobytes() == usual[order].tobytes()


def test_the_context_is_left_out_and_what_cannot_be_represented_is_named(folders):
    where = folders["gpt2"]
    scorer = Causal(where, "tiny", "r1", dtype="float64", context="Ada is kind.")
    own = Causal(where, "tiny", "r1", dtype="float64")
    assert (represented(scorer, ["tall"])[0] == represented(own, ["tall"])[0]).all()
    with pytest.raises(Problem, match="no token of its own in ''"):
        represented(own, ["tall", ""])
    with pytest.raises(Problem, match="the model takes 64"):
        represented(own, ["x" * 99])


def test_states_that_are_not_numbers_are_told(tmp_path):
    tokenizer = gpt2_tokenizer()
    model = gpt2(tokenizer)
    with torch.no_grad():
        model.transformer.wte.weight[tokenizer("kind")["input_ids"]] = math.nan
    scorer = Causal(save(tmp_path, model, tokenizer), "tiny", "r1", dtype="float32")
    with pytest.raises(Problem, match=r"models\.tiny: states are not finite"):
        represented(scorer, ["tall", "kind"])
