"""The best tokens of the whole vocabulary, architecture by architecture, against plain forwards."""

from functools import partial

import numpy as np
import pytest
from models import tiny
from models.tiny_encoders import WORDS, Plain, in_both, tokenizers_of_all_kinds

from plumbline.probes.models.causal import Causal
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import Predicts

PROMPTS = ["a <mask> person", "<mask> <mask> is <mask>", "the very <mask> <mask> <mask> a"]


loaded = partial(tiny.loaded, Masked)


def one(blocks):
    (block,) = blocks
    return block


def at_last(plain, prompt):
    """Return the log-probability of every piece at the last mask, the others masked."""
    ids = plain.encode(prompt)
    places = [i for i, own in enumerate(ids) if own == plain.mask]
    return plain.ask(ids)[places[-1]], len(ids)


@in_both(1.01e-6, 2e-5)
def test_predict_is_a_plain_forward(saved, encoder, dtype, apart):
    scorer, plain = loaded(saved, dtype), Plain(encoder, saved, dtype)
    assert isinstance(scorer, Predicts)
    names = len(plain.tokenizer)
    block = one(scorer.predict(PROMPTS, 10**6))
    assert block.ids.shape == (len(PROMPTS), names)  # no column of a head that is no token
    for prompt, ids, values, length in zip(
        PROMPTS, block.ids, block.logprobs_nats, block.length, strict=True
    ):
        true, tokens = at_last(plain, prompt)
        assert length == tokens
        assert sorted(ids) == list(range(names))
        assert np.abs(true.numpy()[ids] - values).max() <= apart
        assert (np.diff(values) <= 0).all()


@tokenizers_of_all_kinds
def test_pieces_starts(saved, encoder):
    scorer = loaded(saved)
    found = scorer.pieces()
    vocabulary = scorer.tokens.tokenizer.get_vocab()
    assert [vocabulary[t] for t in found.tokens] == list(range(len(found.tokens)))
    for word in WORDS:
        piece, other = vocabulary[encoder.initial + word], vocabulary[encoder.inner + word]
        assert (found.words[piece], found.starts[piece]) == (word, True)
        assert not found.starts[other]
        bare = vocabulary.get(found.words[other], -1)  # what a look-up of the text finds
        assert found.bare[other] == bare
    for special in scorer.tokens.tokenizer.all_special_ids:
        assert not found.starts[special]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_predict_causal(folder, kind):
    scorer = tiny.loaded(Causal, folder(kind))
    assert isinstance(scorer, Predicts)
    block = one(scorer.predict(["Ada is <mask>", "Bo Falk was <mask>"], 10**6))
    assert np.exp(block.logprobs_nats).sum(axis=1) == pytest.approx(1)
    words = ["kind", "brave"]
    ids = {word: tail[0] for word, tail in scorer.tokens.candidates(words).items()}
    starts = scorer.pieces().starts
    for row, prefix in enumerate(["Ada is", "Bo Falk was"]):
        values = dict(zip(block.ids[row].tolist(), block.logprobs_nats[row].tolist(), strict=True))
        scores = scorer.logprobs((prefix, f" {word}") for word in words)
        for word, score in zip(words, scores, strict=True):
            assert values[ids[word]] == pytest.approx(score.logprob_nats, abs=1.01e-6)
            assert starts[ids[word]]
