"""Scores of sentences, architecture by architecture, against sums taken by hand."""

from functools import partial

import pytest
import torch
from models import tiny
from models.tiny_encoders import (
    SEVERAL,
    Plain,
    few,
    in_both,
    some,
)

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import METHODS

SENTENCES = [
    "a person",
    "a kindly person is calm",
    "a calmnessly very bravely kind person is kindness",
    "a zed person",
    "a добрый person",
]


loaded = partial(tiny.loaded, Masked)


def sizes(encoder, sentence):
    """Return how many pieces each word has, as the vocabularies were planted."""
    # WordPiece spells zed and lacks the Cyrillic word as a whole; bytes are two to a letter
    odd = {"##": {"zed": 3, "добрый": 1}, "Ġ": {"zed": 2, "добрый": 13}}
    other = odd.get(encoder.inner or encoder.initial, {"zed": 2, "добрый": 2})
    return [other.get(word) or len(SEVERAL.get(word, (word,))) for word in sentence.split()]


def masked_one_by_one(plain, sentence, words, *, behind):
    """Sum over all tokens, each masked; with ``behind``, also those behind it in its word."""
    ids = plain.encode(sentence)
    assert len(ids) == sum(words) + 2
    total, start = 0.0, 1
    for size in words:
        for place in range(start, start + size):
            end = start + size if behind else place + 1
            given = [*ids[:place], *[plain.mask] * (end - place), *ids[end:]]
            total += plain.ask(given)[place][ids[place]].item()
        start += size
    return total


def unmasked(plain, sentence, *, attention):
    """Sum over all tokens, weighed as in the code that Kaneko and Bollegala published."""
    ids = plain.encode(sentence)
    scores = plain.ask(ids)[range(len(ids)), ids]
    if attention:
        with torch.no_grad():
            layers = plain.model(torch.tensor([ids]), output_attentions=True).attentions
        assert len(layers) == plain.model.config.num_hidden_layers
        received = torch.cat(layers).mean(0).mean(0).mean(0)  # layers, heads, who looks
        assert received.sum().item() == pytest.approx(1)
        scores = scores * received
    return scores[1:-1].sum().item()


@in_both(2e-6, 1e-4)
@pytest.mark.parametrize("method", METHODS)
def test_pseudo_logprobs_are_the_sums_of_plain_forwards(encoder, saved, method, dtype, apart):
    attention = "eager" if method == "aula" else ""  # the others do not give it out
    plain = Plain(encoder, saved, dtype, attention)
    scores = list(loaded(saved, dtype).pseudo_logprobs(iter(SENTENCES), method))
    assert [score.text for score in scores] == SENTENCES
    for sentence, score in zip(SENTENCES, scores, strict=True):
        words = sizes(encoder, sentence)
        if method in METHODS[:2]:
            behind = method == "within_word_l2r"
            true = masked_one_by_one(plain, sentence, words, behind=behind)
        else:
            true = unmasked(plain, sentence, attention=method == "aula")
        assert score.logprob_nats == pytest.approx(true, abs=apart)
        assert score.tokens == sum(words)
        no_symbol = "добрый" in sentence and encoder.initial != "Ġ"
        assert score.unknown == int(no_symbol)


@few
@pytest.mark.parametrize("method", METHODS)
def test_pseudo_logprobs_prefix(encoder, saved, method):
    scorer, begun = loaded(saved), loaded(saved, context="a very")
    pairs = [("a very ", "kindly person"), ("a very", " kindly person"), ("", "a kindly person")]
    found = list(
        scorer.pseudo_logprobs([t for _, t in pairs], method, prefixes=[p for p, _ in pairs])
    )
    (behind,) = begun.pseudo_logprobs(["kindly person"], method)
    (alone,) = scorer.pseudo_logprobs(["a kindly person"], method)
    assert found == [behind, behind, alone]
    with pytest.raises(ValueError, match="longer"):
        list(scorer.pseudo_logprobs(["a kind", "a calm"], method, prefixes=["a"]))


@few
def test_pseudo_logprobs_prefix_within_a_token(encoder, saved):
    with pytest.raises(UserError, match="a kin"):
        list(loaded(saved).pseudo_logprobs(["d person"], prefixes=["a kin"]))


@some("bert")
def test_pseudo_logprobs_too_long_or_empty(encoder, saved):
    scorer, longest = loaded(saved), encoder.positions
    fits = " ".join(["a"] * (longest - 2))
    for method in METHODS:
        (score,) = scorer.pseudo_logprobs([fits], method)
        assert score.tokens == longest - 2
        with pytest.raises(UserError, match=f"{longest + 1} tokens"):
            list(scorer.pseudo_logprobs(["a kind", f"{fits} a"], method))
        with pytest.raises(UserError, match="nothing to score"):
            list(scorer.pseudo_logprobs(["a kind", ""], method))
        assert list(scorer.pseudo_logprobs(iter([]), method)) == []


@some("bert")
def test_pseudo_logprobs_unknown_method(saved):
    with pytest.raises(UserError, match="pppl"):
        list(loaded(saved).pseudo_logprobs(["a kind"], "pppl"))
