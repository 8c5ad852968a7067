"""Tiny language models with random weights, saved as anybody would save them."""

import random
from functools import cache
from typing import NamedTuple

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers import models as pieces
from tokenizers.normalizers import BertNormalizer
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from plumbline.probes.models import batching

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def wordpiece(sentences, *, lowercase=False, longest=64, mask="[MASK]"):
    """Train a WordPiece tokenizer; every word of the sentences becomes one piece."""

    def empty(vocabulary):
        tokenizer = Tokenizer(pieces.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer = BertNormalizer(lowercase=lowercase)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return tokenizer

    trained = empty({"[UNK]": 0})
    trainer = trainers.WordPieceTrainer(
        vocab_size=5000, min_frequency=1, special_tokens=SPECIAL, show_progress=False
    )
    trained.train_from_iterator(sentences, trainer)
    learnt = sorted(set(trained.get_vocab()) - set(SPECIAL))
    tokenizer = empty({piece: i for i, piece in enumerate([*SPECIAL, *learnt])})
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        **({"mask_token": mask} if mask else {}),
    )


def bert(tokenizer, *, seed=0, spread=0.3):
    """Return a BERT with random weights, wide enough apart that words differ."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=spread,
    )
    return BertForMaskedLM(config)


def byte_level(sentences, **options):
    """Train a byte-level BPE tokenizer like RoBERTa's, in which pieces carry their space."""
    tokenizer = Tokenizer(pieces.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]
    trainer = trainers.BpeTrainer(
        vocab_size=5000,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(sentences, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True),
        **options,
    )


def save(folder, model, tokenizer):
    """Save both into a folder, and return it."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@cache
def opened(kind, where, dtype="float64", attention=""):
    """Load a saved model and its tokenizer once in a session, as anybody would."""
    options = {"attn_implementation": attention} if attention else {}
    model = kind.from_pretrained(where, dtype=getattr(torch, dtype), **options)
    return AutoTokenizer.from_pretrained(where), model.eval()


@cache
def loaded(adapter, where, dtype="float64", **options):
    """Load a model once in a session: for tests that change nothing of it."""
    return adapter(where, "tiny", "r1", dtype=dtype, **options)


def fresh(adapter, where, dtype="float64", **options):
    """Load a model for a test that changes what it is loaded with."""
    return loaded.__wrapped__(adapter, where, dtype, **options)


def shared(monkeypatch, scorer, tokens=1024, *, rows=None, cores=1, block=4096):
    """Let the texts that a model is asked share batches of so many tokens, or of so many rows."""
    monkeypatch.setattr(batching, "TOKENS", tokens)
    monkeypatch.setattr(scorer.batches, "tokens", tokens)
    if rows:
        monkeypatch.setattr(scorer.batches, "most", rows)
    monkeypatch.setattr(batching, "BLOCK", block)
    if hasattr(scorer, "scored"):
        scorer.scored.clear()  # nothing is taken from what was asked before
    monkeypatch.setenv("PLUMBLINE_CORES", str(cores))


def in_any_company(monkeypatch, scorer, ask, asked):
    """Hold answers against those asked in another order, alone, in other batches, on more cores."""
    usual, mixed = ask(asked), list(range(len(asked)))
    random.Random(1).shuffle(mixed)
    assert [ask([one])[0] for one in asked[::9]] == usual[::9]
    for tokens, cores, block in ((1, 2, 5), (40, 1, 4096), (1 << 20, 2, 9)):
        shared(monkeypatch, scorer, tokens, cores=cores, block=block)
        assert ask([asked[i] for i in mixed]) == [usual[i] for i in mixed]
    assert ask([]) == []
    return usual


def quickly(every, *quick):
    """Return all parameters, those that are not named only for the slow suite."""
    assert set(quick) <= set(every)
    return [one if one in quick else _slowly(one) for one in every]


def _slowly(one):
    return pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow)


class Fill(NamedTuple):
    """The best candidates for one prompt."""

    prompt: str
    words: tuple  # best first
    logprobs_nats: tuple
    unknown: int
    pieces: tuple  # of each word


def answers(blocks):
    """Return the result of ``fill`` for each prompt."""
    fills = []
    for block in blocks:
        for i, prompt in enumerate(block.prompts):
            best = block.best[i].tolist()
            words = tuple(block.candidates[j] for j in best)
            pieces = tuple(block.pieces[best].tolist())
            nats = tuple(block.logprobs_nats[i].tolist())
            fills.append(Fill(prompt, words, nats, int(block.unknown[i]), pieces))
    return fills
