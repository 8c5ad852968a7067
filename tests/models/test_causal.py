import math
from functools import partial
from itertools import product
from pathlib import Path

import pytest
import torch
from models import tiny
from models.tiny import in_any_company, save
from models.tiny_causal import (
    CAUSAL,
    CLOSING,
    LETTERS,
    NAMES,
    WORDS,
    gpt2,
    letters_tokenizer,
)
from transformers import AutoModelForCausalLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import kernels
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.scorer import Sampling

STORIES = Path(__file__).parents[3] / "shared" / "data" / "models" / "stories260k"
NARROW = ("mamba",)  # computes some of it in float32, whatever they are loaded in
# beginnings that many texts have, longer than the windows of five; and some that nobody shares
PAIRS = [
    (f"{name} is {word}, and {name} was {word}, and {other}", f" is {last}, and {last}.")
    for name in NAMES[:3]
    for word in WORDS[:2]
    for other in NAMES[3:]
    for last in WORDS[:3]
]
PAIRS += [("Cleo was", " tall."), ("Cleo", " was tall."), ("Élan Žižek is", " kind")]
PAIRS += [(f"{name} is", f" {word}") for name in NAMES for word in WORDS]


loaded = partial(tiny.loaded, Causal)
fresh = partial(tiny.fresh, Causal)
parts = partial(tiny.opened, AutoModelForCausalLM)
KINDS = tiny.quickly(CAUSAL, "gpt2", "llama", "gemma3", "gpt1", "mamba")


def summed(where, ids, start, dtype="float64"):
    """Compute the full forward of one text alone; sum over its tokens from ``start`` on."""
    _, model = parts(where, dtype)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]
    scores = torch.log_softmax(logits.double(), 1)
    return sum(scores[i - 1, ids[i]].item() for i in range(start, len(ids)))


def by_hand(where, pair, dtype="float64"):
    """Return the log-probability of a continuation, and the number of its tokens."""
    tokenizer, _ = parts(where, dtype)
    ids, head = tokenizer("".join(pair))["input_ids"], tokenizer(pair[0])["input_ids"]
    assert ids[: len(head)] == head
    return summed(where, ids, len(head), dtype), len(ids) - len(head)


def values(scores):
    return [score.logprob_nats for score in scores]


@pytest.mark.parametrize("dtype", tiny.quickly(["float64", "float32"], "float64"))
@pytest.mark.parametrize("kind", CAUSAL)
def test_logprobs_are_a_plain_forward(folder, kind, dtype):
    apart = 2e-5 if kind in NARROW or dtype == "float32" else 1e-6
    scores = list(loaded(folder(kind), dtype).logprobs(PAIRS))
    assert [score.text for score in scores] == ["".join(pair) for pair in PAIRS]
    for pair, score in zip(PAIRS, scores, strict=True):
        true, tokens = by_hand(folder(kind), pair, dtype)
        assert abs(score.logprob_nats - true) < apart
        assert score.tokens == tokens
    assert len(set(values(scores))) == len(set(PAIRS))  # so that a mix-up would be seen


def test_logprobs_model_that_cannot_share_prefixes(folder, monkeypatch):
    true = values(loaded(folder("llama")).logprobs(PAIRS))
    monkeypatch.setattr(kernels, "_pick", _turned)
    scorer = fresh(folder("llama"))
    assert not scorer.shares
    assert values(scorer.logprobs(PAIRS)) == pytest.approx(true, abs=1.01e-6)


def _turned(states, nodes):
    """Pick other nodes than those asked for."""
    chosen = states.index_select(0, nodes.flip(1).flatten())
    return chosen.view(*nodes.shape, *states.shape[1:]).transpose(1, 2)


@pytest.mark.parametrize("kind", ["llama", "gpt1"])
def test_logprobs_in_any_company(folder, kind, monkeypatch):
    scorer = loaded(folder(kind), "float32")
    in_any_company(monkeypatch, scorer, lambda pairs: list(scorer.logprobs(pairs)), PAIRS)


@pytest.mark.parametrize(
    ("kind", "prefix", "rest"),
    [
        ("gpt2", "Ada is ", "kind"),  # the space belongs to the next piece
        ("llama", "Bo Fal", "k is kind"),
        ("gpt1", "Ada is ki", "nd"),
    ],
)
def test_logprobs_prefix_within_a_token(folder, kind, prefix, rest):
    scorer = loaded(folder(kind))
    with pytest.raises(UserError, match=f"{prefix!r}.*{prefix + rest!r}"):
        list(scorer.logprobs([*PAIRS, (prefix, rest)]))


@pytest.mark.parametrize(("kind", "opening"), [("llama", "<s>"), ("gpt2", CLOSING)])
def test_logprobs_empty_prefix(folder, kind, opening):
    where = folder(kind)
    tokenizer, _ = parts(where)
    texts = ["Ada is kind", "Ada", " tall", "Élan Žižek was calm, and kind."]
    for text, score in zip(texts, loaded(where).logprobs([("", t) for t in texts]), strict=True):
        own = tokenizer(text, add_special_tokens=False)["input_ids"]
        ids = [tokenizer.convert_tokens_to_ids(opening), *own]
        assert score.text == text
        assert score.tokens == len(own)
        assert score.logprob_nats == pytest.approx(summed(where, ids, 1), abs=1e-6)


def test_logprobs_empty_prefix_without_beginning(folder):
    scorer = loaded(folder("gpt1"))
    for results in (scorer.logprobs([("", "Ada is kind")]), scorer.generate([""], [0])):
        with pytest.raises(UserError, match="beginning-of-text"):
            list(results)


def test_logprobs_add_up_to_one(tmp_path, monkeypatch):
    tokenizer = letters_tokenizer()
    scorer = loaded(save(tmp_path, gpt2(tokenizer), tokenizer))
    # the end of the text is one of the outcomes, although it is refused inside other texts
    monkeypatch.setattr(scorer.tokens, "refuse_special", lambda texts: None)
    every = (*LETTERS, CLOSING)
    for prefix in ("", "x", "zy", "xyzzyxyz"):
        for length in (1, 2, 3):
            rests = ["".join(letters) for letters in product(every, repeat=length)]
            scores = list(scorer.logprobs([(prefix, rest) for rest in rests]))
            assert {score.tokens for score in scores} == {length}
            assert len(scores) == 4**length
            assert sum(math.exp(v) for v in values(scores)) == pytest.approx(1, abs=1e-6)
            assert len(set(values(scores))) > 3**length


def test_logprobs_too_long_or_empty(folder):
    scorer = loaded(folder("llama"))
    fits = "Ada" + " is" * 61  # and the opening token
    (score,) = scorer.logprobs([(fits, " kind")])
    assert score.tokens == 1
    with pytest.raises(UserError, match="has 65 tokens, the model takes 64"):
        list(scorer.logprobs([PAIRS[0], (fits, " kind."), PAIRS[1]]))
    with pytest.raises(UserError, match="'Ada is'"):
        list(scorer.logprobs([("Ada is", "")]))


def test_context(folder):
    where = folder("llama")
    said = loaded(where, context="Cleo was calm.").logprobs([("Ada is", " kind"), ("", " Bo")])
    asked = [("Cleo was calm. Ada is", " kind"), ("Cleo was calm.", " Bo")]
    assert list(said) == list(loaded(where).logprobs(asked))
    (text,) = loaded(where, context="Cleo was calm.").generate(["Ada"], [5], Sampling(tokens=9))
    assert text == next(loaded(where).generate(["Cleo was calm. Ada"], [5], Sampling(tokens=9)))


@pytest.mark.shared
@pytest.mark.skipif(not STORIES.is_dir(), reason=f"no {STORIES}")
def test_logprobs_of_a_real_model():
    beginning = "Once upon a time, there was a little girl named Lily."
    sense = ["She", "loved", "to", "play", "with", "her", "toys"]
    scorer = loaded(STORIES, "float32")
    mixed = [sense[3:] + sense[:3], sense[::-1], [*sense[1:], sense[0]]]
    true, *others = values(
        scorer.logprobs([(beginning, " " + " ".join(words)) for words in (sense, *mixed)])
    )
    assert true > max(others) + 10
    she, he = values(scorer.logprobs([(beginning, " She was"), (beginning, " He was")]))
    assert she > he + 1
