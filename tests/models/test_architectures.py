"""Candidates at the mask, architecture by architecture, against a plain forward of the class."""

import json
import math
from functools import partial

import pytest
import torch
from models import tiny
from models.tiny import answers, save
from models.tiny_encoders import (
    ENDS,
    SEVERAL,
    WORDS,
    Plain,
    build,
    context_free,
    few,
    in_both,
    some,
    tokenizers_of_all_kinds,
)

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.masked import Masked

PROMPTS = [
    "<mask>",
    "a <mask> person",
    "the person is <mask>.",
    "<mask> is a calm person",
    "kindly the <mask> zed is a calmnessly very dull person",
    "the person is very very very kind and a fair <mask>",
]


loaded = partial(tiny.loaded, Masked)


def said(fill):
    return dict(zip(fill.words, fill.logprobs_nats, strict=True))


@in_both(1e-6, 2e-5)
def test_fill_is_a_plain_forward(encoder, saved, dtype, apart, monkeypatch):
    scorer, plain = loaded(saved, dtype), Plain(encoder, saved, dtype)
    size = plain.model.config.vocab_size
    every = {str(piece): (piece,) for piece in range(size)}  # also those that are no words
    monkeypatch.setattr(scorer.tokens, "candidates", lambda *_: every)
    fills = answers(scorer.fill(PROMPTS, list(every), size))
    own = plain.tokenizer.mask_token
    assert [fill.prompt for fill in fills] == [p.replace("<mask>", own) for p in PROMPTS]
    assert len({fill.words for fill in fills}) == len(PROMPTS)
    for prompt, fill in zip(PROMPTS, fills, strict=True):
        true = plain.at_mask(prompt)
        got = torch.tensor([said(fill)[str(piece)] for piece in range(size)], dtype=true.dtype)
        assert torch.allclose(got, true, rtol=0, atol=apart)
        assert math.fsum(map(math.exp, fill.logprobs_nats)) == pytest.approx(1, abs=1e-4)
        assert list(fill.logprobs_nats) == sorted(fill.logprobs_nats, reverse=True)


def planted(encoder):
    """Weigh a word's two pieces in opposite directions; the unknown and the endings most of all."""
    initial = {encoder.initial + word: 2.0**n for n, word in enumerate(WORDS)}
    inner = {encoder.inner + word: 4096.0 / 2**n for n, word in enumerate(WORDS)}
    unknown = encoder.tokenizer().unk_token
    return {**initial, **inner, **{encoder.inner + end: 8192.0 for end in ENDS}, unknown: 1e5}


@tokenizers_of_all_kinds
def test_fill_takes_the_piece_after_a_space(encoder, tmp_path):
    weights = planted(encoder)
    model, tokenizer = context_free(encoder, weights)
    whole = sum(weights.values()) + model.config.vocab_size - len(weights)
    scorer = loaded(save(tmp_path, model, tokenizer))
    asked = ["kindly", "zed", "добрый", *WORDS]
    true = {word: math.log(2.0**n / whole) for n, word in enumerate(WORDS)}
    fills = answers(scorer.fill(PROMPTS, asked, 100))
    assert len(fills) == len(PROMPTS)
    for fill in fills:
        assert fill.words == tuple(reversed(WORDS))
        assert fill.pieces == (1,) * len(WORDS)
        assert said(fill) == pytest.approx(true, abs=1e-6)
    (fill,) = answers(scorer.fill(PROMPTS[:1], asked, 100, multi=True))
    both = math.log(weights[encoder.initial + "kind"] / whole) + math.log(8192 / whole)
    assert said(fill)["kindly"] == pytest.approx(both, abs=1e-6)
    assert fill.pieces[fill.words.index("kindly")] == 2


@tokenizers_of_all_kinds
def test_candidates_of_one_token(encoder, saved):
    tokenizer = Plain(encoder, saved).tokenizer
    unknown = tokenizer.unk_token
    asked = [*WORDS, "zed", "kindly", "добрый", unknown, "Kind", "kind", "élan", "elan"]
    found = loaded(saved).tokens.candidates(asked)
    known = [*WORDS, *(["Kind"] if encoder.cased else []), "elan"]
    pieces = tokenizer.get_vocab()
    # others: only inside words; two pieces; no symbols, or many; another case; accents
    single = {word: tail[0] for word, tail in found.items() if len(tail) == 1}
    assert single == {word: pieces[encoder.initial + word] for word in known}


@some("albert", "xlmr", "deberta-v3", "deberta-legacy")
def test_candidates_of_unspaced_languages(encoder, saved):
    scorer = loaded(saved)
    pieces = scorer.tokens.tokenizer.get_vocab()
    words = ["善良", "智慧"]
    chinese, english = (scorer.tokens.candidates(words, language) for language in ("zh", "en"))
    assert chinese == {word: (pieces[word],) for word in words}
    assert english["善良"] == (pieces["▁善良"],)
    assert len(english.get("智慧", ())) != 1
    plain = Plain(encoder, saved)
    for language, piece in (("zh", "善良"), ("en", "▁善良")):
        (fill,) = answers(scorer.fill(["a <mask> person"], words, 9, language=language))
        true = plain.at_mask("a <mask> person")[pieces[piece]].item()
        assert said(fill)["善良"] == pytest.approx(true, abs=1e-6)


@tokenizers_of_all_kinds
def test_fill_words_of_several_pieces(encoder, saved):
    scorer, plain = loaded(saved), Plain(encoder, saved)
    asked = ["bravely", *WORDS, *SEVERAL, "zed"]  # one of them asked twice
    options = {"top_k": 100, "language": "en"}
    alone = answers(scorer.fill(PROMPTS, asked, **options))
    for prompt, fill, one in zip(
        PROMPTS, answers(scorer.fill(PROMPTS, asked, multi=True, **options)), alone, strict=True
    ):
        assert sorted(fill.words) == sorted(set(asked))
        got, count = said(fill), dict(zip(fill.words, fill.pieces, strict=True))
        assert {word: got[word] for word in WORDS} == said(one)
        assert {word for word in count if count[word] == 1} == set(WORDS)
        assert list(fill.logprobs_nats) == sorted(fill.logprobs_nats, reverse=True)
        for word, tail in SEVERAL.items():
            assert count[word] == len(tail)
            true = plain.word(prompt, plain.pieces(*tail))
            assert got[word] == pytest.approx(true, abs=1e-6)


@some("bert", "roberta", "deberta-legacy", "modernbert")
def test_fill_prompt_too_long(encoder, saved):
    scorer, longest = loaded(saved), encoder.positions  # the tokenizer names no limit
    fits = " ".join(["a"] * (longest - 3))  # and the mask, and two special tokens
    (fill,) = answers(scorer.fill([f"{fits} <mask>"], ["kind"], 1))
    assert fill.words == ("kind",)
    with pytest.raises(UserError, match=f"{longest + 1} tokens"):
        answers(scorer.fill(["a <mask>", f"a {fits} <mask>"], ["kind"], 1))
    with pytest.raises(UserError, match=f"{longest + 1} tokens"):  # it has room for one mask
        answers(scorer.fill([f"{fits} <mask>"], ["kindly"], 1, multi=True))


@few
def test_weights_that_are_not_finite(encoder, tmp_path):
    model, tokenizer = build(encoder)
    with torch.no_grad():
        (bias,) = (p for p in model.parameters() if p.shape == (model.config.vocab_size,))
        bias[-1] = float("nan")
    scorer = loaded(save(tmp_path, model, tokenizer), "float32")
    with pytest.raises(UserError, match="float32"):
        answers(scorer.fill(["a <mask>", "the <mask>", "<mask> is"], WORDS, 3))
    with pytest.raises(UserError, match="float32"):
        answers(scorer.fill(["a <mask>"], ["kindly"], 3, multi=True))
    with pytest.raises(UserError, match="float32"):
        list(scorer.pseudo_logprobs(["a kind", "a calm", "a fair"], "aul"))


@some("bert", "roberta", "deberta-v3")
def test_load_without_the_head(encoder, tmp_path):
    model, tokenizer = build(encoder)
    save(tmp_path, model.base_model, tokenizer)  # as sentence encoders are published
    with pytest.raises(UserError, match="no weights"):
        loaded(tmp_path)


@some("deberta-v3")
def test_load_deberta_head_of_its_weights(encoder, tmp_path):
    # published configs of DeBERTa do not tell of their head, and the default is another one
    save(tmp_path, *build(encoder))
    plain = Plain(encoder, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config.pop("legacy") is False
    (tmp_path / "config.json").write_text(json.dumps(config))
    (fill,) = answers(loaded(tmp_path).fill(PROMPTS[1:2], WORDS, 9))
    true = plain.at_mask(PROMPTS[1])
    wanted = {word: true[plain.pieces(word)].item() for word in WORDS}
    assert said(fill) == pytest.approx(wanted, abs=1e-6)
