"""Tiny language models with random weights, saved as anybody would save them."""

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers, processors, trainers
from tokenizers import models as pieces
from tokenizers.normalizers import BertNormalizer
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
)

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


def bert(tokenizer, *, seed=0, spread=0.3, positions=64):
    """Return a BERT with random weights, wide enough apart that words differ."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
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


def own_products_agree():
    """Tell whether torch's own products have the same digits here for any number of rows.

    On Intel's processors with AVX2 they do not; there models answer alike in any company only if
    all their products are packed.
    """
    draw = torch.Generator().manual_seed(0)
    states, weight = (torch.randn(size, 32, generator=draw) for size in (64, 32))
    return all(torch.equal(states[:n] @ weight, (states @ weight)[:n]) for n in (16, 19, 33))


def save(folder, model, tokenizer):
    """Save both into a folder, and return it."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def answers(blocks):
    """Return what ``fill`` says, prompt by prompt."""
    return [fill for block in blocks for fill in block.each()]
