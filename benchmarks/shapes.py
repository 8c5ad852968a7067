"""Provide models of realistic shapes with random weights, and real texts for them.

Speed does not depend on the values of the weights. The tokenizers are trained on the texts, so that
lengths are realistic; the remaining rows of a large vocabulary stay unused.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
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
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

SHARED = Path(__file__).parent.parent.parent / "shared" / "data"
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
SYLLABLES = ("an", "ber", "cor", "dal", "el", "fi", "gor", "hu", "il", "jo", "kem", "lu", "mar")
_ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1}
_XLM = {**_ROBERTA, "vocab_size": 250_002, "layer_norm_eps": 1e-5}
_LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16}
SHAPES = {
    "bert-base": (BertConfig, BertForMaskedLM, {}),
    "roberta-base": (RobertaConfig, RobertaForMaskedLM, _ROBERTA),
    "roberta-base-classifier": (
        RobertaConfig,
        RobertaForSequenceClassification,
        {**_ROBERTA, "num_labels": 3},
    ),
    "xlm-roberta-base": (XLMRobertaConfig, XLMRobertaForMaskedLM, _XLM),
    "xlm-roberta-large": (
        XLMRobertaConfig,
        XLMRobertaForMaskedLM,
        {**_XLM, **_LARGE, "intermediate_size": 4096},
    ),
    "gpt2": (GPT2Config, GPT2LMHeadModel, {}),
}


def names() -> list[str]:
    """Return the English names of politicians."""
    path = SHARED / "politicians" / "wikidata_people.parquet"
    if not path.is_file():
        raise SystemExit(f"error: {path}: the real inputs are not there; the benchmark needs them")
    frame = pl.read_parquet(path)
    column = "en" if "en" in frame.columns else next(c for c in frame.columns if c.endswith("en"))
    return sorted(set(frame[column].drop_nulls().to_list()))


def tweets() -> list[str]:
    """Return tweets, one line each."""
    text = (SHARED / "tweets" / "sentiment" / "test_text.txt").read_text(encoding="utf-8")
    return [line.strip() for line in text.splitlines() if line.strip()]


def words() -> list[str]:
    """Return English adjectives, in the order of the list (most frequent first)."""
    path = SHARED / "supersenses" / "adjective_words.predicted"
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split()[0] for line in lines if line.split() and line.split()[0].isalpha()]


def invented(number: int, mean: float = 44.5, sigma: float = 1.0, seed: int = 1) -> list[str]:
    """Return texts of made-up words, most of which are single tokens.

    Lengths are those of :func:`lengths`, including the two special tokens.
    """
    rng = np.random.default_rng(seed)
    words = np.array(["".join(parts) for parts in product(SYLLABLES, repeat=3)])
    often = 1 / np.arange(1, len(words) + 1)
    drawn = lengths(number, mean, sigma, seed) - 2
    every = rng.choice(words, drawn.sum(), p=often / often.sum())
    return [" ".join(own) for own in np.split(every, drawn.cumsum()[:-1])]


def lengths(number: int, mean: float, sigma: float, seed: int = 1) -> np.ndarray:
    """Return numbers of tokens in texts: lognormal, as in posts, and truncated for the model."""
    drawn = np.random.default_rng(seed).lognormal(np.log(mean) - sigma**2 / 2, sigma, number)
    return np.clip(drawn.round(), 4, 512).astype(int)


def make(shape: str, folder: Path, texts: list[str] | None = None, **sizes: float) -> Path:
    """Save a model and its tokenizer, and return the folder.

    Parameters
    ----------
    texts
        Texts that the tokenizer is trained on; by default, the real ones.
    sizes
        Sizes of the model that differ from its own.
    """
    torch.manual_seed(0)
    given = texts or [*names(), *tweets(), *(f"a {word}" for word in words())]
    make_config, make_model, own = SHAPES[shape]
    special = ("<|endoftext|>",) if shape == "gpt2" else ROBERTA
    tokenizer = wordpiece(given) if shape == "bert-base" else byte_level(given, special)
    make_model(make_config(**{**own, **sizes})).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"  # Transformers 4, in which minicons runs, has
    text = settings.read_text(encoding="utf-8")  # another name for the same class
    settings.write_text(text.replace("TokenizersBackend", "PreTrainedTokenizerFast"), "utf-8")
    return folder


def wordpiece(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=30_000, special_tokens=list(BERT), show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    keys = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=512, **dict(zip(keys, BERT, strict=True))
    )


def byte_level(texts: list[str], special: tuple[str, ...] = ROBERTA) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=40_000,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    if special != ROBERTA:
        end = special[0]
        return PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token=end, eos_token=end, unk_token=end
        )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    keys = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token")
    extra = {"cls_token": "<s>", "sep_token": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=512,
        **dict(zip(keys, ROBERTA, strict=True)),
        **extra,
    )
