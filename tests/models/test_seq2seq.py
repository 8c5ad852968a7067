import math
from functools import partial

import pytest
import torch
from models import tiny
from models.tiny import save
from models.tiny_causal import NAMES, WORDS, bart_tokenizer, forced_bart
from transformers import AutoModelForSeq2SeqLM

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.scorer import Sampling
from plumbline.probes.models.seq2seq import Seq2Seq

PAIRS = [(f"{name} is", f" {word}, and tall.") for name in NAMES for word in WORDS]
PAIRS += [("Ada is <mask>.", "kind"), ("Bo Falk", "was"), ("Ada", "Ada is kind, and Ada is tall.")]
PROMPTS = [f"{name} is <mask>." for name in NAMES[1:4]]
PROMPTS += [f"<mask> is {word}, and {word}." for word in WORDS[:3]]
# the last three in several pieces: no such words in the vocabulary
CANDIDATES = ["kind", "brave", "tall", "honest", "Ada", "was", "sad", "land", "kinder"]


loaded = partial(tiny.loaded, Seq2Seq)
fresh = partial(tiny.fresh, Seq2Seq)
parts = partial(tiny.opened, AutoModelForSeq2SeqLM)


def summed(where, text, opening, tail, dtype="float64"):
    """Compute one text alone; sum over ``tail`` after the decoder has written ``opening``."""
    tokenizer, model = parts(where, dtype)
    given = [*opening, *tail]
    with torch.no_grad():
        logits = model(
            input_ids=tokenizer(text, return_tensors="pt")["input_ids"],
            decoder_input_ids=torch.tensor([given]),
        ).logits[0]
    scores = torch.log_softmax(logits.double(), 1)
    return sum(scores[i - 1, given[i]].item() for i in range(len(opening), len(given)))


def own(where, text):
    return parts(where)[0](text, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    # T5 begins with <pad>; BART with </s>, and after it <s> where its config says so
    ("kind", "opening", "dtype", "apart"),
    [
        ("t5", [0], "float64", 1e-6),
        ("bart", [2], "float32", 2e-5),
        ("forced", [2, 0], "float64", 1e-6),
    ],
)
def test_logprobs_are_a_plain_forward(folder, kind, opening, dtype, apart):
    where = folder(kind)
    scores = list(loaded(where, dtype).logprobs(PAIRS))
    for (prefix, rest), score in zip(PAIRS, scores, strict=True):
        written = prefix.replace("<mask>", "<extra_id_0>")
        tail = own(where, rest)
        assert score.text == f"{written}\t{rest}"
        assert score.tokens == len(tail)
        assert abs(score.logprob_nats - summed(where, written, opening, tail, dtype)) < apart
    assert len({score.logprob_nats for score in scores}) == len(PAIRS)


def test_fill_after_the_sentinel(folder):
    where = folder("t5")
    sentinel = parts(where)[0].convert_tokens_to_ids("<extra_id_0>")
    fills = tiny.answers(loaded(where).fill(PROMPTS, CANDIDATES, 20))
    assert [fill.prompt for fill in fills] == [p.replace("<mask>", "<extra_id_0>") for p in PROMPTS]
    for fill in fills:
        assert sorted(fill.words) == sorted(CANDIDATES[:6])
        assert list(fill.logprobs_nats) == sorted(fill.logprobs_nats, reverse=True)
        for word, said in zip(fill.words, fill.logprobs_nats, strict=True):
            (piece,) = own(where, word)
            assert abs(said - summed(where, fill.prompt, [0, sentinel], [piece])) < 1e-6
        assert sum(math.exp(value) for value in fill.logprobs_nats) < 0.9  # not over candidates


def test_fill_without_sentinels(folder):
    scorer = loaded(folder("bart"))
    assert scorer.facts()["mask_token"] == ""
    with pytest.raises(UserError, match="extra_id_0"):
        list(scorer.fill(PROMPTS, CANDIDATES, 3))


@pytest.mark.parametrize("wrong", ["<mask> Ada <mask>", "Ada is kind", "<mask> is <extra_id_0>"])
def test_fill_not_one_gap(folder, wrong):
    with pytest.raises(UserError, match=wrong.replace("<mask>", "<extra_id_0>")):
        list(loaded(folder("t5")).fill([PROMPTS[0], wrong], CANDIDATES, 3))


def test_too_long_or_empty(folder):
    scorer = loaded(folder("forced"))
    fits = "Ada" + " is" * 61  # <s> and </s> besides
    tail = "Ada" + " is" * 62  # <s> before it
    assert len(list(scorer.logprobs([(fits, tail)]))) == 1
    for pair, value in (((fits + " is", "Ada"), "65"), (("Ada", tail + " is"), "65")):
        with pytest.raises(UserError, match=f"{value} tokens"):
            list(scorer.logprobs([("Ada", "Bo"), pair]))
    with pytest.raises(UserError, match="'Ada is'"):
        list(scorer.logprobs([("Ada is", "")]))
    with pytest.raises(UserError, match="66 tokens"):
        list(loaded(folder("t5")).fill(["Ada <mask>" + " is" * 63], CANDIDATES, 1))


def test_generate_forced_beginning(folder, tmp_path):
    where = save(tmp_path, forced_bart(bart_tokenizer()), bart_tokenizer())
    tokenizer, model = parts(where)
    prompts = [f"{name} is" for name in NAMES[:3]]
    texts = list(loaded(where).generate(prompts, [0] * 3, Sampling(tokens=9, temperature=0)))
    for text in texts:
        ids = tokenizer(text.prompt, return_tensors="pt")["input_ids"]
        # one more token, as transformers counts the forced one; the last is not forced
        (out,) = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=10,
            forced_eos_token_id=None,
        ).tolist()
        assert out[:2] == [2, 0]
        assert text.text == tokenizer.decode(out, skip_special_tokens=True)
        assert text.tokens == len(out) - 2
    free = loaded(folder("bart")).generate(prompts, [0] * 3, Sampling(tokens=9, temperature=0))
    assert [text.text for text in free] != [text.text for text in texts]
