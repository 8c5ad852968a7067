"""What XLM, XLNet, BERTweet, BART and mBART answer, by a plain forward of the class alone.

Pieces are written out as each vocabulary spells them; a tokenizer is asked for their numbers alone.
"""

from functools import cache, partial

import torch
import transformers as hf
from models import tiny
from models.tiny_special import LANGUAGES, WORDS

from plumbline.probes.models.masked import Masked

CLASSES = {
    "xlm": hf.XLMWithLMHeadModel,
    "bertweet": hf.RobertaForMaskedLM,
    "xlnet": hf.XLNetLMHeadModel,
    "bart": hf.BartForConditionalGeneration,
    "mbart": hf.MBartForConditionalGeneration,
}
NAMES = tuple(CLASSES)
BOTH_SIDES = ("xlm", "bertweet", "xlnet")  # those with a pseudo-log-likelihood
SPOKEN = dict.fromkeys(NAMES, "") | {"xlm": "en", "mbart": "en"}  # which need the language
MASKS = dict.fromkeys(NAMES, "<mask>") | {"xlm": "<special1>"}
M = ("<mask>",)
TEXTS = [  # words in pieces
    (("Ada",), M, ("the",)),
    (M, ("kind", "ly"), ("Bo",)),
    (("a",), ("calm",), ("un", "kind", "ly"), M),
    (("Dag",), ("the",), M, ("Cleo",), ("a",), ("brave",), ("Ada",)),
]
SENTENCES = [
    (("Ada",), ("kind", "ly"), ("the",)),
    (("un", "kind", "ly"), ("kind",), ("Bo",)),
    (("Cleo",),),
]
APART = {"float64": 1e-6, "float32": 2e-5}
loaded = partial(tiny.loaded, Masked)


def written(words):
    return " ".join("".join(pieces) for pieces in words)


def spelt(name, words, code="en_XX"):
    """Return the tokens of a text as each vocabulary writes them."""
    tokens = []
    for word in words:
        *first, last = word
        if word == M:
            tokens.append(MASKS[name])
        elif name == "xlm":
            tokens += [*first, f"{last}</w>"]
        elif name == "bertweet":
            tokens += [*(f"{piece}@@" for piece in first), last]
        else:
            space = ("Ġ" if tokens else "") if name == "bart" else "▁"
            tokens += [space + word[0], *word[1:]]
    ends = {"xlnet": ["<sep>", "<cls>"], "mbart": ["</s>", code]}
    return [*tokens, *ends[name]] if name in ends else ["<s>", *tokens, "</s>"]


@cache
def vocabulary(folder):
    return hf.AutoTokenizer.from_pretrained(folder).get_vocab()


def numbered(folder, tokens):
    known = vocabulary(folder)
    return [known[token] for token in tokens]


@cache
def plain(name, folder, dtype):
    model = CLASSES[name].from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    if name == "xlnet" and dtype != "float32":  # as it is, it answers in no other

        def cast(_, given, options):
            return given, {**options, "r": options["r"].to(model.dtype)}

        model.to(getattr(torch, dtype))
        for layer in model.transformer.layer:
            layer.register_forward_pre_hook(cast, with_kwargs=True)
    return model


def by_hand(name, folder, dtype, ids, place, *, hidden=None, language="en"):
    """Return the log-probability of every piece at one place of one text."""
    model = plain(name, folder, dtype)
    tokens = torch.tensor([ids])
    options = {}
    if name == "xlm" and model.config.use_lang_emb:
        options["langs"] = torch.tensor([[LANGUAGES[language]] * len(ids)])
    if name == "xlnet":
        blind = torch.zeros(1, len(ids), len(ids), dtype=model.dtype)
        for unseen in hidden or [place]:
            blind[0, :, unseen] = 1
        target = torch.zeros(1, 1, len(ids), dtype=model.dtype)
        target[0, 0, place] = 1
        kinds = torch.tensor([[0] * (len(ids) - 1) + [2]])
        options = {"perm_mask": blind, "target_mapping": target, "token_type_ids": kinds}
    with torch.no_grad():
        logits = model(input_ids=tokens, **options).logits
    row = logits[0, 0 if name == "xlnet" else place]
    return torch.log_softmax(row.double(), 0).tolist()


def filled(scorer, prompts, words, **options):
    return tiny.answers(scorer.fill(prompts, words, len(words), **options))


def pieces(name, folder, word):
    """Return the ids of a word's pieces behind another word."""
    *first, last = word
    if name == "xlm":
        return numbered(folder, [*first, f"{last}</w>"])
    if name == "bertweet":
        return numbered(folder, [*(f"{piece}@@" for piece in first), last])
    return numbered(folder, [("Ġ" if name == "bart" else "▁") + word[0], *word[1:]])


def agreed(fill, name, folder, true, dtype="float64"):
    """Hold all words at a mask against what was computed by hand; return what was said of each."""
    said = dict(zip(fill.words, fill.logprobs_nats, strict=True))
    assert sorted(said) == sorted(WORDS)
    for word, value in said.items():
        (piece,) = pieces(name, folder, (word,))
        assert abs(value - true[piece]) < APART[dtype]
    return said
