"""Tiny encoders of many architectures, each with a tokenizer of its own kind and planted pieces.

Every vocabulary has each of WORDS twice: as the piece that follows a space, and as the piece that
continues a word. ENDS are only pieces of the latter sort.
"""

import json
from typing import NamedTuple

import pytest
import torch
import transformers as hf
from models.tiny import byte_level, opened, quickly, wordpiece
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers import models as pieces

WORDS = ["kind", "brave", "calm", "dull", "eager", "fair"]
OTHERS = ["a", "the", "is", "person", "very", "elan"]
ENDS = ["zed", "ly", "ness"]  # never after a space
SEVERAL = {
    "kindly": ("kind", "ly"),
    "kindness": ("kind", "ness"),
    "bravely": ("brave", "ly"),
    "calmnessly": ("calm", "ness", "ly"),
}
CAPITAL = "Kind"  # a piece of its own where case is told apart
POSITIONS = 40
SEED = 20240
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 40,
    "max_position_embeddings": POSITIONS,
    "initializer_range": 0.3,
}


class Encoder(NamedTuple):
    """One architecture: its class, what its config adds, and how its vocabulary is written."""

    name: str
    model: type
    options: dict
    tokenizer: object  # makes it
    initial: str  # before a piece that follows a space
    inner: str  # before a piece that continues a word
    cased: bool
    extra: int = 0  # rows of the embeddings without a piece, as published models have them
    positions: int = POSITIONS  # for tokens


def _wordpiece(kind, *, lowercase):
    def make(**options):
        texts = [*WORDS, *OTHERS, "善 良 - .", *([] if lowercase else [CAPITAL])]
        learnt = wordpiece(texts, lowercase=lowercase).get_vocab()
        planted = [f"##{piece}" for piece in [*WORDS, *ENDS]]
        letters = [sign + letter for letter in "zed" for sign in ("", "##")]
        every = dict.fromkeys([*sorted(learnt, key=learnt.get), *planted, *letters])
        vocabulary = {piece: number for number, piece in enumerate(every)}
        return kind(vocab=vocabulary, do_lower_case=lowercase, **options)

    return make


def _merged(special):
    """Train byte-level pieces; return vocabulary and merges."""
    alone = [word for word in [*WORDS, *ENDS] for _ in range(9)]
    spaced = [f"a {word}" for word in [*WORDS, *OTHERS, CAPITAL] for _ in range(9)]
    model = json.loads(byte_level([*alone, *spaced]).backend_tokenizer.to_str())["model"]
    renamed = dict(zip(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], special, strict=True))
    vocabulary = {renamed.get(piece, piece): number for piece, number in model["vocab"].items()}
    return vocabulary, [tuple(pair) for pair in model["merges"]]


def _mask(written):
    return AddedToken(written, lstrip=True, special=True)  # it takes the space before it


def _roberta(**options):
    vocabulary, merges = _merged(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    mask = _mask("<mask>")
    return hf.RobertaTokenizer(vocab=vocabulary, merges=merges, mask_token=mask, **options)


def _modernbert(**options):
    vocabulary, merges = _merged(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"])
    tokenizer = Tokenizer(pieces.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 2)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=_mask("[MASK]"),
        **options,
    )


def _unigram(kind, *special, **own):
    def make(**options):
        initial = [f"▁{word}" for word in [*WORDS, *OTHERS, CAPITAL, "善良"]]
        scored = [(piece, 0.0) for piece in special]
        scored += [(piece, -3.0) for piece in [*initial, *WORDS, *ENDS, "善良", "智慧"]]
        scored += [(letter, -10.0) for letter in "▁.KEabcdefghijklmnopqrstuvwxyz"]
        return kind(vocab=scored, mask_token=_mask(special[-1]), **own, **options)

    return make


ROBERTA = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
MODERNBERT = {
    **ROBERTA,
    "cls_token_id": 0,
    "sep_token_id": 2,
    "num_hidden_layers": 3,  # one of them sees everything, two only their neighbourhood
    "local_attention": 6,
}
DEBERTA = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
    "position_buckets": 4,
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "type_vocab_size": 0,
}
BERT_CASED = _wordpiece(hf.BertTokenizer, lowercase=False)
BERT_UNCASED = _wordpiece(hf.BertTokenizer, lowercase=True)
DISTILBERT = _wordpiece(hf.DistilBertTokenizer, lowercase=True)
ELECTRA = _wordpiece(hf.ElectraTokenizer, lowercase=True)
ALBERT = _unigram(hf.AlbertTokenizer, "<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
XLM_ROBERTA = _unigram(hf.XLMRobertaTokenizer, "<s>", "<pad>", "</s>", "<unk>", "<mask>")
DEBERTA_V3 = _unigram(hf.DebertaV2Tokenizer, "[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", unk_id=3)
LEGACY, OWN_HEAD = ({**DEBERTA, "legacy": own} for own in (True, False))
NARROW, WIDE = {"embedding_size": 16}, {"hidden_dim": 64}
VECTORS = {"embedding_size": 32, "hidden_size": 64, "intermediate_size": 128}  # SIMD, in full
OFFSET = POSITIONS - 2  # positions 0 and 1 belong to the padding
EVERY = [
    Encoder("bert", hf.BertForMaskedLM, {}, BERT_CASED, "", "##", cased=True),
    Encoder("bert-uncased", hf.BertForMaskedLM, {}, BERT_UNCASED, "", "##", cased=False),
    Encoder("distilbert", hf.DistilBertForMaskedLM, WIDE, DISTILBERT, "", "##", cased=False),
    Encoder("electra", hf.ElectraForMaskedLM, NARROW, ELECTRA, "", "##", cased=False),
    Encoder("roberta", hf.RobertaForMaskedLM, ROBERTA, _roberta, "Ġ", "", True, 0, OFFSET),
    Encoder("modernbert", hf.ModernBertForMaskedLM, MODERNBERT, _modernbert, "Ġ", "", True, 5),
    Encoder("albert", hf.AlbertForMaskedLM, VECTORS, ALBERT, "▁", "", cased=False),
    Encoder("xlmr", hf.XLMRobertaForMaskedLM, ROBERTA, XLM_ROBERTA, "▁", "", True, 0, OFFSET),
    Encoder("deberta-v3", hf.DebertaV2ForMaskedLM, OWN_HEAD, DEBERTA_V3, "▁", "", True, extra=3),
    Encoder("deberta-legacy", hf.DebertaV2ForMaskedLM, LEGACY, DEBERTA_V3, "▁", "", cased=True),
]
ENCODERS = {encoder.name: encoder for encoder in EVERY}


def build(encoder, **options):
    """Return a model with random weights, wide enough apart that words differ, and its tokenizer.

    The options are the tokenizer's. It says nothing of its longest input unless told to.
    """
    torch.manual_seed(SEED)
    tokenizer = encoder.tokenizer(**options)
    size = len(tokenizer) + encoder.extra
    config = encoder.model.config_class(vocab_size=size, **{**SMALL, **encoder.options})
    model = encoder.model(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # biases begin at nought, where nobody would miss them
                parameter.add_(0.3 * torch.randn(parameter.shape))
    return model, tokenizer


def context_free(encoder, weights):
    """Return a model that answers alike everywhere, and its tokenizer.

    Its probabilities are proportional to the weights of the pieces; 1 for those not named.
    """
    model, tokenizer = build(encoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        (bias,) = (p for p in model.parameters() if p.shape == (model.config.vocab_size,))
        known = tokenizer.get_vocab()
        for piece, weight in weights.items():
            bias[known[piece]] = torch.tensor(weight, dtype=torch.float64).log()
    return model, tokenizer


class Plain:
    """A saved model asked as the handbook of transformers asks it, one text at a time."""

    def __init__(self, encoder, folder, dtype="float64", attention=""):
        self.encoder = encoder
        self.tokenizer, self.model = opened(encoder.model, folder, dtype, attention)
        self.mask = self.tokenizer.mask_token_id

    def encode(self, text):
        return self.tokenizer(text.replace("<mask>", self.tokenizer.mask_token))["input_ids"]

    def ask(self, ids):
        """Return log-probabilities (tokens, vocabulary)."""
        with torch.no_grad():
            logits = self.model(
                input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))
            ).logits
        assert logits.shape == (1, len(ids), self.model.config.vocab_size)
        return torch.log_softmax(logits[0].double(), -1)

    def at_mask(self, prompt):
        """Return the log-probability of every piece at the mask."""
        ids = self.encode(prompt)
        return self.ask(ids)[ids.index(self.mask)]

    def pieces(self, first, *others):
        """Return the pieces of a word that follows a space."""
        written = [self.encoder.initial + first, *(self.encoder.inner + other for other in others)]
        return [self.tokenizer.get_vocab()[piece] for piece in written]

    def word(self, prompt, tail):
        """Return the log-probability of a word at the mask, piece after piece."""
        ids = self.encode(prompt)
        place = ids.index(self.mask)
        total = 0.0
        for done, piece in enumerate(tail):
            inside = [*tail[:done], *[self.mask] * (len(tail) - done)]
            given = [*ids[:place], *inside, *ids[place + 1 :]]
            total += self.ask(given)[place + done][piece].item()
        return total


def some(*names):
    """Run a test for these architectures: on the others it would run the same lines."""
    return pytest.mark.parametrize("encoder", names, indirect=True)


few = some("bert", "roberta")
# one a kind of tokenizer: WordPiece with case and without, bytes, SentencePiece in two layouts
tokenizers_of_all_kinds = some("bert", "bert-uncased", "roberta", "xlmr", "deberta-v3")


# of a family, those that others in it do not show: the rest is asked in the slow suite
FAMILIES = ("bert", "distilbert", "electra", "roberta", "modernbert", "albert", "deberta-v3")


def in_both(apart, apart32):
    """Run a test in double precision for every architecture, in single precision for one."""
    cases = [(name, "float64", apart) for name in ENCODERS] + [("roberta", "float32", apart32)]
    quick = [case for case in cases if case[0] in FAMILIES]
    return pytest.mark.parametrize(
        ("encoder", "dtype", "apart"), quickly(cases, *quick), indirect=["encoder"]
    )
