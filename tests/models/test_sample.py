import math

import numpy as np
import pytest
import torch
from models import tiny
from models.tiny import in_any_company
from models.tiny_causal import CLOSING, NAMES
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import sampling as sample
from plumbline.probes.models.causal import Causal
from plumbline.probes.models.sampling import draw
from plumbline.probes.models.scorer import Sampling
from plumbline.probes.models.seq2seq import Seq2Seq

KINDS = dict.fromkeys(("gpt2", "llama", "gemma3", "gpt1", "mamba"), Causal)
KINDS |= {"t5": Seq2Seq, "bart": Seq2Seq}
NEARLY = math.nextafter(1, 0)  # the largest number that is drawn
PROMPTS = [
    f"{name} {rest}" for name in NAMES for rest in ("is", "and Bo Falk is tall, and Cleo was")
]
SEEDS = list(range(40, 40 + len(PROMPTS)))


def chosen(probabilities, luck, **sampling):
    """Draw once from a distribution over tokens 0, 1, ..."""
    logits = torch.tensor([probabilities], dtype=torch.float64).log()
    (token,) = draw(logits, torch.tensor([luck], dtype=torch.float64), Sampling(**sampling))
    return int(token)


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        ({}, {0, 1, 2, 3}),
        ({"top_k": 1}, {1}),
        ({"top_k": 3}, {0, 1, 3}),  # of two equal ones the first
        ({"top_p": 0.5}, {1}),  # half is reached with one
        ({"top_p": 0.76}, {0, 1, 3}),
        ({"top_p": 0.0}, {1}),  # the best always stays
        ({"top_k": 2, "top_p": 0.66}, {1}),  # 1/2 of 3/4
        ({"temperature": 0.5, "top_p": 0.7}, {1}),  # squares: 16, 4, 1, 1 of 22
        ({"temperature": 2.0, "top_p": 0.6}, {1, 3}),  # roots: 2, 1.41, 1, 1 of 5.41
        ({"temperature": 0.0, "top_k": 3}, {1}),
    ],
)
def test_draw_top_k_and_top_p(sampling, kept):
    luck = [0.0, *np.linspace(0.0005, 0.9995, 1000), NEARLY]
    logits = torch.tensor([0.125, 0.5, 0.125, 0.25]).log().expand(len(luck), 4)
    assert set(draw(logits, torch.tensor(luck), Sampling(**sampling)).tolist()) == kept


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, 0, 0.9), (0.7, 20, 1.0), (1.3, 12, 0.8), (0.5, 0, 0.3), (2.0, 50, 0.95)],
)
def test_draw_equals_transformers_warpers(temperature, top_k, top_p):
    generator = torch.Generator().manual_seed(5)
    logits = torch.log_softmax(2 * torch.randn(300, 60, generator=generator).double(), 1)
    scores = TemperatureLogitsWarper(temperature)(None, logits)
    scores = TopKLogitsWarper(top_k)(None, scores) if top_k else scores
    scores = TopPLogitsWarper(top_p)(None, scores) if top_p < 1 else scores
    chances = torch.softmax(scores, 1).sort(descending=True)
    luck = torch.rand(300, generator=generator, dtype=torch.float64)
    place = (chances.values.cumsum(1) <= luck.unsqueeze(1)).sum(1, keepdim=True)
    expected = chances.indices.gather(1, place).squeeze(1)
    sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    assert draw(logits, luck, sampling).tolist() == expected.tolist()


def loaded(folder, kind, dtype="float32"):
    return tiny.loaded(KINDS[kind], folder(kind), dtype)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gemma3", "gpt1", "t5"])
def test_generate_in_any_company(folder, kind, monkeypatch):
    sampling = Sampling(tokens=6)
    scorer = loaded(folder, kind)
    pairs = [*zip(PROMPTS, SEEDS, strict=True)]

    def written(pairs):
        return list(scorer.generate([p for p, _ in pairs], [s for _, s in pairs], sampling))

    together = in_any_company(monkeypatch, scorer, written, pairs)
    assert [(text.prompt, text.seed) for text in together] == pairs
    assert len({text.text for text in together}) > len(PROMPTS) / 2  # so a mix-up would be seen


@pytest.mark.parametrize("kind", ["gpt2", "t5"])
def test_generate_seeds_and_limits(folder, kind):
    scorer = loaded(folder, kind)
    texts = list(scorer.generate(["Ada is"] * 30, range(30), Sampling(tokens=8)))
    assert len({text.text for text in texts}) == 30
    assert texts == list(scorer.generate(["Ada is"] * 30, range(30), Sampling(tokens=8)))
    for short, text in zip(
        scorer.generate(["Ada is"] * 30, range(30), Sampling(tokens=3)), texts, strict=True
    ):
        # the third piece may be one byte of a letter
        assert text.text.startswith(short.text.rstrip("\ufffd"))
        assert short.tokens == min(3, text.tokens)


def greedy(where, auto, prompt, tokens, **options):
    """Write as transformers does; return text and number of tokens."""
    tokenizer, model = tiny.opened(auto, where)
    given = tokenizer(prompt, return_tensors="pt")["input_ids"]
    out = model.generate(
        given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        max_new_tokens=tokens,
        pad_token_id=0,
        **options,
    )[0].tolist()
    if auto is AutoModelForCausalLM:
        out = out[given.shape[1] :]
        before = tokenizer.decode(given[0], skip_special_tokens=True)
        whole = tokenizer.decode([*given[0].tolist(), *out], skip_special_tokens=True)
        return whole[len(before) :], len(out)
    return tokenizer.decode(out, skip_special_tokens=True), len(out) - 1


@pytest.mark.parametrize("kind", tiny.quickly(KINDS, "llama", "gemma3", "mamba", "t5"))
def test_generate_greedy_equals_transformers(folder, kind):
    scorer = loaded(folder, kind, "float64")
    sequence = KINDS[kind] is Seq2Seq
    auto = AutoModelForSeq2SeqLM if sequence else AutoModelForCausalLM
    options = {"forced_eos_token_id": None} if sequence else {}
    texts = list(scorer.generate(PROMPTS[:4], [0] * 4, Sampling(tokens=9, temperature=0)))
    for text in texts:
        true = greedy(folder(kind), auto, text.prompt, 9, **options)
        assert (text.text, text.tokens) == true
    assert len({text.text for text in texts}) > 1


@pytest.mark.parametrize(
    ("kind", "prompt", "pieces", "text"),
    [
        ("gpt2", "Ada is", ["Ġkind", "Ġand", "Ġtall"], " kind and tall"),
        ("gpt2", "Ada is k", ["i", "n", "d", ".", "ĠBo"], "ind. Bo"),
        ("gpt2", "Ada", ["Ã", "¼", "Ġis", CLOSING], "ü is"),
        ("llama", "Ada is", ["▁kind", "▁and", "▁tall"], " kind and tall"),
        ("llama", "Ada is kind", [",", "▁and", "</s>"], ", and"),
        # answers are no continuations
        ("t5", "Ada is", ["▁kind", "▁and", "▁tall"], "kind and tall"),
        ("t5", "Ada is", ["<extra_id_0>", "▁kind", "</s>"], "kind"),
    ],
)
def test_generate_text_behind_the_prompt(folder, kind, prompt, pieces, text, monkeypatch):
    scorer = loaded(folder, kind)
    tokens = iter([scorer.tokens.tokenizer.get_vocab()[piece] for piece in pieces])
    monkeypatch.setattr(sample, "draw", lambda scores, *_: torch.full((1,), next(tokens)))
    (written,) = scorer.generate([prompt], [0], Sampling(tokens=len(pieces)))
    assert written.text == text
    assert written.tokens == len(pieces)
    assert written.finished == (pieces[-1] in {"</s>", CLOSING})


@pytest.mark.parametrize(("kind", "given"), [("gpt2", 54), ("llama", 53)])
def test_generate_too_long(folder, kind, given):
    scorer = loaded(folder, kind)
    fits = "Ada" + " is" * (given - 1)  # Llama's has an opening token besides
    (text,) = scorer.generate([fits], [0], Sampling(tokens=10))
    assert text.tokens <= 10
    with pytest.raises(UserError, match="has 65 tokens, the model takes 64") as caught:
        list(scorer.generate(["Ada", fits], [0, 1], Sampling(tokens=11)))
    assert repr(fits) in str(caught.value)
