"""Train a small multilingual BERT on the real texts next to the checkout.

    python benchmarks/real_model.py FOLDER [MINUTES]

Where no model hub can be reached, this provides a model that has read real sentences: English news
and the sentences of the treebanks in all languages. It is weak, and its results are reported as
those of a weak model. Training uses one core and stops after the given minutes (default: 40).
"""

from __future__ import annotations

import random
import re
import sys
import time
from pathlib import Path

import polars as pl
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

SHARED = Path(__file__).parents[2] / "shared" / "data"
LANGUAGES = ("ar", "zh", "en", "fr", "hi", "ru", "es", "cs")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = 40_000
ARTICLES = 6_000
LENGTH = 48  # number of tokens in a training text
BATCH = 48
MASKED = 0.15


def main() -> None:
    into = Path(sys.argv[1])
    minutes = float(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng = random.Random(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    texts = treebanks()
    news = articles(rng)
    tokenizer = wordpiece([*(s for part in texts.values() for s in part * 6), *news])
    tokenizer.save_pretrained(into)
    pools = {code: pieces(tokenizer, part) for code, part in texts.items()}
    pools["news"] = pieces(tokenizer, news)
    print({code: len(part) for code, part in pools.items()}, flush=True)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            num_hidden_layers=3,
            num_attention_heads=4,
            intermediate_size=512,
            max_position_embeddings=128,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    fit(model, tokenizer, pools, rng, into, minutes)


def treebanks() -> dict[str, list[str]]:
    """Return the sentences of the treebanks by language."""
    return {
        code: [
            line[9:]
            for path in sorted((SHARED / "ud" / code).glob("*.conllu"))
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.startswith("# text = ")
        ]
        for code in LANGUAGES
    }


def articles(rng: random.Random) -> list[str]:
    """Return the sentences of some news articles."""
    frame = pl.read_parquet(SHARED / "news" / "allsides_articles.parquet", columns=["text"])
    chosen = rng.sample(frame["text"].to_list(), ARTICLES)
    return [s for text in chosen for s in re.split(r"(?<=[.!?])\s+|\n+", text) if len(s) > 20]


def wordpiece(sentences: list[str]) -> PreTrainedTokenizerFast:
    """Train a cased WordPiece tokenizer with one token per Chinese character, as in BERT."""
    inner = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(
        lowercase=False, strip_accents=False, handle_chinese_chars=False
    )
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False
    )
    inner.train_from_iterator(sentences, trainer)
    ends = [(token, inner.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        model_max_length=128,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


def pieces(tokenizer: PreTrainedTokenizerFast, sentences: list[str]) -> list[list[int]]:
    """Return the tokens of sentences; long ones are truncated, and short ones left out."""
    encoded = tokenizer(sentences, add_special_tokens=False)["input_ids"]
    return [ids[: LENGTH - 2] for ids in encoded if len(ids) >= 4]


def fit(model, tokenizer, pools, rng, into: Path, minutes: float) -> None:
    """Train by masking, with a third of the texts from the treebanks, in equal parts by
    language."""
    start = said = time.monotonic()
    rate = 1.5e-3
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    codes = list(LANGUAGES)
    begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    pad, mask = tokenizer.pad_token_id, tokenizer.mask_token_id
    loss_mean, step = 0.0, 0
    while (spent := (time.monotonic() - start) / 60) < minutes:
        warm = min(1.0, (step + 1) / 200)
        for group in optimizer.param_groups:
            group["lr"] = rate * warm * (1 - spent / minutes)
        rows = [
            rng.choice(pools[rng.choice(codes) if rng.random() < 1 / 3 else "news"])
            for _ in range(BATCH)
        ]
        width = max(map(len, rows)) + 2
        ids = torch.full((BATCH, width), pad)
        for i, row in enumerate(rows):
            ids[i, : len(row) + 2] = torch.tensor([begin, *row, end])
        real = (ids != pad) & (ids != begin) & (ids != end)
        chosen = real & (torch.rand(ids.shape) < MASKED)
        if not chosen.any():
            continue
        given = torch.where(chosen & (torch.rand(ids.shape) < 0.9), mask, ids)
        hidden = model.bert(input_ids=given, attention_mask=(ids != pad).long())[0]
        loss = torch.nn.functional.cross_entropy(model.cls(hidden[chosen]), ids[chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        loss_mean += (loss.item() - loss_mean) * 0.02
        if time.monotonic() - said > 60:
            said = time.monotonic()
            print(f"step {step}, {spent:.1f} min, loss {loss_mean:.3f}", flush=True)
            model.save_pretrained(into)
    model.eval().save_pretrained(into)
    print(f"{step} steps, loss {loss_mean:.3f}")


if __name__ == "__main__":
    main()
