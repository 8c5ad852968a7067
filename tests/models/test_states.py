"""States of words alone, held against plain forwards of the saved models."""

import numpy as np
import pytest
import torch
from models import tiny, tiny_special
from models.test_special import NAMES, SPOKEN
from models.tiny import loaded
from models.tiny_encoders import SEVERAL, WORDS, Plain, in_both
from transformers import AutoModel

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import Represents

ASKED = [*WORDS, *SEVERAL, "zed", "kind"]
CAUSAL = ("gpt2", "llama", "gemma3", "gpt1")


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
def test_represent_is_the_mean_of_a_plain_forward(encoder, saved, dtype, apart):
    scorer, by_hand = loaded(Masked, saved, dtype), Plain(encoder, saved, dtype)
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
def test_represent_special_architectures(special, name):
    language = SPOKEN[name]
    dtype = "float32" if name == "xlnet" else "float64"  # its class cannot do with others
    scorer = loaded(Masked, special(name), dtype)
    _, model = tiny.opened(AutoModel, special(name), dtype)
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
def test_represent_causal(folder, name):
    scorer = loaded(Causal, folder(name))
    assert isinstance(scorer, Represents)
    tokenizer, model = tiny.opened(AutoModel, folder(name))
    before = [] if name == "gpt1" else [tokenizer.bos_token_id]  # GPT-1 has no such token
    words = ["kind", "brave", "kindest", "tall", "Ada"]
    found, pieces = represented(scorer, words)
    for row, number, word in zip(found, pieces, words, strict=True):
        true, own = plain(lambda ids: model(ids)[0], tokenizer, word, before)
        assert number == own
        assert np.abs(row - true.numpy()).max() < 1e-6


def test_represent_context_and_errors(folder):
    where = folder("gpt2")
    scorer, own = loaded(Causal, where, context="Ada is kind."), loaded(Causal, where)
    assert (represented(scorer, ["tall"])[0] == represented(own, ["tall"])[0]).all()
    with pytest.raises(UserError, match="no token"):
        represented(own, ["tall", ""])
    with pytest.raises(UserError, match="the model takes 64"):
        represented(own, ["x" * 99])
