"""Answers that depend neither on who shares the batch nor on how many cores there are."""

import random

import pytest
from models import tiny
from models.tiny import answers, loaded, shared
from models.tiny_encoders import SEVERAL, WORDS

from plumbline.probes.models import forward
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import METHODS

SEED = 31
SOME = ["bert", "deberta-v3"]
EVERY = tiny.quickly([*SOME, "roberta", "modernbert", "albert"], *SOME, "modernbert")


def texts(number, lengths):
    """Return random texts of so many words each."""
    draw = random.Random(SEED)
    words = [*WORDS, *SEVERAL, "zed", "is", "person"]
    return [" ".join(draw.choices(words, k=draw.choice(lengths))) for _ in range(number)]


# few of most lengths, and of one length more than the largest batch holds
PROMPTS = ["<mask>", *(f"{text} <mask>" for text in texts(9, [1, 4, 9]))]
PROMPTS += [f"{one} {other} <mask>" for one in WORDS for other in [*WORDS, "is"]]
SENTENCES = ["kind", " ".join(WORDS), " ".join(WORDS[::-1]), "fair", *texts(6, [2, 5])]


def everything(scorer, prompts=PROMPTS, sentences=SENTENCES):
    """Ask a model all that it can answer; return each answer under its verb and text."""
    several = [prompt for prompt in prompts if prompt in PROMPTS[:5]]
    told = {
        "fill": answers(scorer.fill(prompts, WORDS, 9)),
        "multi": answers(scorer.fill(several, [*WORDS, *SEVERAL], 99, multi=True)),
    }
    found = {(verb, fill.prompt): fill[1:] for verb, fills in told.items() for fill in fills}
    for method in METHODS:
        scores = scorer.pseudo_logprobs(sentences, method)
        found |= {(method, score.text): score[1:] for score in scores}
    return found


@pytest.fixture(scope="module", autouse=True)
def bare():
    """Keep the digits that rounding would hide; one batch at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "DECIMALS", 12)
        patch.setenv("PLUMBLINE_DEVICE", "cpu")  # a GPU promises less
        patch.setenv("PLUMBLINE_CORES", "1")
        yield


@pytest.fixture(scope="module")
def usual(bare, saved):
    """Return all answers with batches as they are."""
    return everything(loaded(Masked, saved, "float32"))


@pytest.mark.slow
@pytest.mark.parametrize("encoder", EVERY, indirect=True)
def test_results_in_batches_of_other_sizes(saved, usual, monkeypatch):
    scorer = loaded(Masked, saved, "float32")
    shared(monkeypatch, scorer, 1 << 20, rows=7)
    assert everything(scorer) == usual
    shared(monkeypatch, scorer, 1 << 20, rows=1)
    alone = everything(scorer, PROMPTS[:20], SENTENCES[:4])
    assert len(alone) > 30
    assert alone.items() <= usual.items()
