"""Words at the end of a prompt, held against the scores of continuations and plain forwards."""

from functools import partial
from pathlib import Path

import pytest
from models import tiny
from models.tiny import answers
from models.tiny_causal import NAMES, WORDS

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.scorer import Fills

STORIES = Path(__file__).parents[3] / "shared" / "data" / "models" / "stories260k"
KINDS = ("gpt2", "llama", "gemma3", "gpt1", "mamba")
PROMPTS = [f"{name} {verb} <mask>" for name in NAMES for verb in ("is", "was", "is kind, and was")]
LACKED = ["Zyx", "kindest"]  # several pieces


loaded = partial(tiny.loaded, Causal)


def by_continuation(scorer, prompts, words, gap=" "):
    """Return for every prompt the words with the scores of ``logprobs``, best first."""
    prefixes = [prompt.removesuffix(f"{gap}<mask>") for prompt in prompts]
    pairs = [(prefix, f"{gap}{word}") for prefix in prefixes for word in words]
    scores = iter(scorer.logprobs(pairs))
    lists = [[(word, next(scores).logprob_nats) for word in words] for _ in prefixes]
    return [sorted(found, key=lambda pair: -pair[1]) for found in lists]


def same(found, expected, apart):
    for fill, pairs in zip(found, expected, strict=True):
        assert len(fill.words) == len(pairs)
        values = dict(pairs)
        for (_, wanted), word, value in zip(pairs, fill.words, fill.logprobs_nats, strict=True):
            assert abs(value - values[word]) <= apart
            assert abs(value - wanted) <= 2 * apart  # the order is that of the values


@pytest.mark.parametrize(
    ("kind", "dtype", "apart"),
    [*((kind, "float64", 1.01e-6) for kind in KINDS), ("llama", "float32", 2e-5)],
)
def test_fill_equals_logprobs(folder, kind, dtype, apart):
    if kind == "mamba":
        apart = 2e-5  # computes some of it in float32
    scorer = loaded(folder(kind), dtype)
    assert isinstance(scorer, Fills)
    found = answers(scorer.fill(iter(PROMPTS), WORDS, 99))
    same(found, by_continuation(scorer, PROMPTS, WORDS), apart)
    assert [fill.prompt for fill in found] == [p.removesuffix(" <mask>") for p in PROMPTS]
    assert {fill.pieces for fill in found} == {(1,) * len(WORDS)}
    assert len({fill.logprobs_nats for fill in found}) == len(PROMPTS)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_fill_words_of_several_pieces(folder, kind):
    scorer = loaded(folder(kind))
    words = [*WORDS, *LACKED]
    single = answers(scorer.fill(PROMPTS, words, 99))
    assert all(set(fill.words) == set(WORDS) for fill in single)
    several = answers(scorer.fill(PROMPTS, words, 99, multi=True))
    same(several, by_continuation(scorer, PROMPTS, words), 1.01e-6)
    for fill in several:
        pieces = dict(zip(fill.words, fill.pieces, strict=True))
        assert all((pieces[word] > 1) == (word in LACKED) for word in words)


@pytest.mark.parametrize(
    "prompt", ["<mask> Ada", "Ada <mask> is", "Ada is <mask>.", "Ada is", "<mask> is <mask>"]
)
def test_fill_mask_not_at_the_end(folder, prompt):
    scorer = loaded(folder("gpt2"))
    with pytest.raises(UserError, match="tiny") as caught:
        list(scorer.fill(["Ada is <mask>", prompt], WORDS, 2))
    assert repr(prompt) in str(caught.value)


def test_fill_word_that_runs_into_the_prompt(folder, monkeypatch):
    scorer = loaded(folder("gpt2"))
    # without spaces, as in Chinese: "is" and "kind" have no boundary that is the same alone
    monkeypatch.setattr(scorer.tokens, "gap", lambda _="": "")
    assert answers(scorer.fill(["Ada:<mask>"], ["kind"], 1))
    with pytest.raises(UserError, match="kin") as caught:
        list(scorer.fill(["Ada:<mask>", "Ada is kin<mask>"], ["kind", "d"], 1))
    assert "Ada is kin" in str(caught.value)
