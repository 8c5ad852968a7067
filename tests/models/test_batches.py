"""Answers that depend neither on who shares the batch nor on how many cores there are."""

import random

import pytest
import torch
from models.tiny import answers
from models.tiny_encoders import SEVERAL, WORDS

from probes.models import batches, masked, packed
from probes.models.masked import Masked
from probes.models.scorer import METHODS

SEED = 31
CPU = torch.device("cpu")


def texts(number, lengths):
    """Return random texts of so many words each."""
    draw = random.Random(SEED)
    words = [*WORDS, *SEVERAL, "zed", "is", "person"]
    return [" ".join(draw.choices(words, k=draw.choice(lengths))) for _ in range(number)]


# few of every length, and of one length more than the largest batch holds
PROMPTS = ["<mask>", *(f"{text} <mask>" for text in texts(14, [1, 2, 5, 9]))]
PROMPTS += [f"{one} {other} <mask>" for one in WORDS for other in [*WORDS, "is", "person"]] * 3
SENTENCES = ["kind", "fair", *texts(9, [2, 3, 5])]


def everything(folder, prompts, sentences, *, forced=False):
    """Ask a model all that it can answer, in its last digits; each answer under its text."""
    scorer = Masked(folder, "tiny", "r1", dtype="float32")
    if forced:
        assert packed.pack(scorer.body.model) > 4
    told = {"fill": answers(scorer.fill(prompts, WORDS, 9))}
    multi = [prompt for prompt in prompts if prompt in PROMPTS[:9]]
    told["multi"] = answers(scorer.fill(multi, [*WORDS, *SEVERAL], 99, multi=True))
    found = {(verb, fill.prompt): fill[1:] for verb, fills in told.items() for fill in fills}
    for method in METHODS:
        scores = scorer.pseudo_logprobs(sentences, method)
        found |= {(method, score.text): score[1:] for score in scores}
    return found


@pytest.fixture
def unrounded(monkeypatch):
    """Keep the digits that rounding would hide."""
    monkeypatch.setattr(masked, "DECIMALS", 12)


def rows(monkeypatch, number):
    monkeypatch.setattr(batches, "ROWS", (number, number))
    monkeypatch.setattr(batches, "TOKENS", 1 << 20)


@pytest.mark.parametrize("forced", [False, True])
def test_answers_are_bitwise_the_same_whoever_shares_the_batch(
    saved, monkeypatch, unrounded, forced
):
    if forced and not packed.works(torch.float32):
        pytest.skip("no packed products here")
    monkeypatch.setenv("PLUMBLINE_CORES", "1")
    usual = everything(saved, PROMPTS, SENTENCES, forced=forced)
    for number in (7, 48, 128):
        rows(monkeypatch, number)
        assert everything(saved, PROMPTS, SENTENCES, forced=forced) == usual, number
    rows(monkeypatch, 1)
    alone = everything(saved, PROMPTS[:20], SENTENCES[:6], forced=forced)
    assert len(alone) > 50
    assert alone.items() <= usual.items()


def test_answers_are_bitwise_the_same_in_any_order_and_on_any_cores(saved, monkeypatch, unrounded):
    monkeypatch.setenv("PLUMBLINE_CORES", "1")
    usual = everything(saved, PROMPTS, SENTENCES)
    monkeypatch.setenv("PLUMBLINE_CORES", "2")
    assert everything(saved, PROMPTS, SENTENCES) == usual
    prompts, sentences = list(PROMPTS), list(SENTENCES)
    random.Random(SEED).shuffle(prompts)
    random.Random(SEED).shuffle(sentences)
    monkeypatch.setattr(batches, "BLOCK", 11)
    assert everything(saved, prompts, sentences) == usual


def test_packed_products_are_the_plain_ones_but_for_the_last_digits(saved, monkeypatch):
    if not packed.works(torch.float32):
        pytest.skip("no packed products here")
    monkeypatch.setattr(packed, "pays", lambda dtype: False)
    plain = everything(saved, PROMPTS, SENTENCES)
    forced = everything(saved, PROMPTS, SENTENCES, forced=True)
    assert plain.keys() == forced.keys()
    for (verb, text), true in plain.items():
        said = forced[verb, text]
        if verb in METHODS:
            assert said[0] == pytest.approx(true[0], abs=1e-4)
            assert said[1:] == true[1:]
        else:
            values = (
                dict(zip(words, logprobs, strict=True)) for words, logprobs, *_ in (said, true)
            )
            assert next(values) == pytest.approx(next(values), abs=1e-4)
