"""Tiny models and their tokenizers, made so that the same world gives the same bytes.

Arithmetic is float64 and the weights are rounded to a grid of 2^-12 at the end. Last bits depend on
the kind of processor, and hundreds of steps make 1e-9 to 2e-8 of them. So the files of one kind of
processor are the same, and those of another differ in a weight here and there, by one step of the
grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from tokenizers import (
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
)

from plumbline.probes.models.scorer import MASK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plumbline.probes.worlds.tiny import Tiny

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
INIT = 0.05  # spread of the initial weights; BERT's 0.02 learns more slowly at this size
LONGEST = 64  # tokens that a model takes, where its world does not say otherwise
GRID = 2.0**-12  # weights are whole multiples of it


def tokenizer_of(sentences: Sequence[str], longest: int = LONGEST) -> PreTrainedTokenizerFast:
    """Train a cased WordPiece tokenizer on the corpus, each distinct sentence once.

    The trainer numbers the pieces of one character in an order that changes from run to run; they
    are handed to it in a fixed order as if they were special, and the vocabulary that comes out is
    put into a plain tokenizer.
    """
    characters = sorted({c for sentence in sentences for c in sentence if not c.isspace()})
    fixed = [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    trained = _wordpiece({piece: i for i, piece in enumerate(SPECIAL)})
    trainer = trainers.WordPieceTrainer(
        vocab_size=30_000, min_frequency=1, special_tokens=fixed, show_progress=False
    )
    trained.train_from_iterator(sentences, trainer)
    tokenizer = _wordpiece(trained.get_vocab())
    ids = [("[CLS]", tokenizer.token_to_id("[CLS]")), ("[SEP]", tokenizer.token_to_id("[SEP]"))]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ids
    )
    wrap: Any = PreTrainedTokenizerFast
    wrapped: PreTrainedTokenizerFast = wrap(
        tokenizer_object=tokenizer,
        model_max_length=longest,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )
    return wrapped


def _wordpiece(vocabulary: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def model_of(shape: Tiny, tokenizer: PreTrainedTokenizerFast) -> Any:
    """Return the model with its first weights, in double precision."""
    options = _options(shape, tokenizer)
    if shape.architecture == "albert":
        config = AlbertConfig(**options, embedding_size=shape.hidden // 2)
        return AlbertForMaskedLM(config).double()
    return BertForMaskedLM(BertConfig(**options)).double()


def classifier_of(shape: Tiny, tokenizer: PreTrainedTokenizerFast, labels: Sequence[str]) -> Any:
    """Return a BERT that tells labels, with its first weights, in double precision."""
    named: dict[str, Any] = {
        "id2label": dict(enumerate(labels)),
        "label2id": {label: i for i, label in enumerate(labels)},
        "classifier_dropout": 0.0,
    }
    config = BertConfig(**_options(shape, tokenizer), **named)
    return BertForSequenceClassification(config).double()


def decoder_of(shape: Tiny, tokenizer: PreTrainedTokenizerFast) -> Any:
    """Return a GPT-2 with its first weights, in double precision."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_embd=shape.hidden,
        n_layer=shape.layers,
        n_head=max(1, shape.hidden // 32),
        n_positions=getattr(shape, "positions", LONGEST),
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=INIT,
    )
    return GPT2LMHeadModel(config).double()


def _options(shape: Tiny, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": max(1, shape.hidden // 32),
        "intermediate_size": 2 * shape.hidden,
        "max_position_embeddings": getattr(shape, "positions", LONGEST),
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": INIT,
    }


def rounded(model: Any) -> Any:
    """Return the trained model in single precision, its weights on the grid."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.round(parameter / GRID) * GRID + 0.0)  # no -0.0
    return model.float().eval()


def head_of(model: Any) -> Any:
    """Return the part that turns states into logits."""
    return model.predictions if hasattr(model, "predictions") else model.cls


def by_length(
    tokenizer: PreTrainedTokenizerFast, prompts: list[str]
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return the prompts by length: their tokens (n, length), and which of them these are (n,)."""
    encoded = tokenizer([p.replace(MASK, "[MASK]") for p in prompts])["input_ids"]
    rows: dict[int, list[int]] = {}
    for i, ids in enumerate(encoded):
        rows.setdefault(len(ids), []).append(i)
    return [
        (torch.tensor([encoded[i] for i in rows[n]]), torch.tensor(rows[n])) for n in sorted(rows)
    ]
