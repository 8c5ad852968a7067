"""XLM, XLNet, BERTweet, BART and mBART, against a plain forward of the class alone.

Pieces are written out as each vocabulary spells them; a tokenizer gives their numbers alone.
"""

import json
import math
from functools import cache, partial

import pytest
import torch
import transformers as hf
from models import tiny, tiny_special
from models.tiny_special import LANGUAGES, WORDS

from plumbline.builders.core.errors import UserError
from plumbline.probes.models import masked
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.scorer import METHODS

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


@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, "float64") for name in NAMES), ("xlnet", "float32")]
)
def test_fill_is_a_plain_forward(special, name, dtype):
    folder, language = special(name), SPOKEN[name]
    prompts = [written(words) for words in TEXTS]
    fills = filled(loaded(folder, dtype), prompts, WORDS, language=language)
    for words, fill in zip(TEXTS, fills, strict=True):
        assert fill.prompt == written(words).replace("<mask>", MASKS[name])
        assert (fill.unknown, set(fill.pieces)) == (0, {1})
        tokens = spelt(name, words)
        ids = numbered(folder, tokens)
        true = by_hand(name, folder, dtype, ids, tokens.index(MASKS[name]))
        assert sum(math.exp(x) for x in true) == pytest.approx(1)
        agreed(fill, name, folder, true, dtype)


@pytest.mark.parametrize("method", ["original", "within_word_l2r"])
@pytest.mark.parametrize("name", BOTH_SIDES)
def test_pseudo_logprobs_hide_each_token(special, name, method):
    folder, language = special(name), SPOKEN[name]
    (blank,) = numbered(folder, [MASKS[name]])
    texts = [written(words) for words in SENTENCES]
    found = list(loaded(folder).pseudo_logprobs(texts, method, language=language))
    assert [score.text for score in found] == texts
    for words, score in zip(SENTENCES, found, strict=True):
        ids = numbered(folder, spelt(name, words))
        start, total = (0 if name == "xlnet" else 1), 0.0
        for word in words:
            for n in range(len(word)):
                last = len(word) if method == "within_word_l2r" else n + 1
                unseen = list(range(start + n, start + last))
                row = [blank if i in unseen else piece for i, piece in enumerate(ids)]
                true = by_hand(name, folder, "float64", row, start + n, hidden=unseen)
                total += true[ids[start + n]]
            start += len(word)
        assert score.tokens == sum(len(word) for word in words)
        assert abs(score.logprob_nats - total) < 2e-6


@pytest.mark.parametrize(("name", "method"), [*(("bart", m) for m in METHODS), ("mbart", "aul")])
def test_pseudo_logprobs_of_a_decoder(special, name, method):
    scorer = loaded(special(name))
    with pytest.raises(UserError, match="pseudo-log-likelihood"):
        list(scorer.pseudo_logprobs(["Ada the kind"], method, language="en"))


def test_xlm_language(special):
    folder, answers = special("xlm"), {}
    ids = numbered(folder, spelt("xlm", TEXTS[0]))
    for language in LANGUAGES:
        (fill,) = filled(loaded(folder), [written(TEXTS[0])], WORDS, language=language)
        true = by_hand("xlm", folder, "float64", ids, 2, language=language)
        answers[language] = agreed(fill, "xlm", folder, true)
    assert abs(answers["en"]["kind"] - answers["fr"]["kind"]) > 0.01
    assert abs(answers["en"]["kind"] - answers["de"]["kind"]) > 0.01


@pytest.mark.parametrize("language", ["", "sw"])
def test_xlm_unknown_language(special, language):
    scorer = loaded(special("xlm"))
    with pytest.raises(UserError, match="de, en, fr"):
        filled(scorer, ["the <mask> Ada"], WORDS, language=language)
    for method in masked.METHODS:
        with pytest.raises(UserError, match="de, en, fr"):
            list(scorer.pseudo_logprobs(["Ada the kind"], method, language=language))


def test_bertweet_normalises_users_links_and_emoji(special):
    folder = special("bertweet")
    said = json.loads((folder / "tokenizer_config.json").read_text())
    assert said["normalization"] is False
    prompt = "@ada the <mask> https://t.co/abc 😂 Bo"
    tokens = ["<s>", "@USER", "the", "<mask>", "HTTPURL", ":face_with_tears_of_joy:", "Bo", "</s>"]
    true = by_hand("bertweet", folder, "float64", numbered(folder, tokens), 3)
    (fill,) = filled(loaded(folder), [prompt], WORDS)
    assert fill.prompt == prompt
    assert fill.unknown == 0
    agreed(fill, "bertweet", folder, true)


def test_bertweet_merges_without_counts(special, tmp_path):
    # as transformers 5.23 saves them, though it reads them with their counts
    tiny_special.bertweet(tiny_special.bertweet_files(tmp_path, counts=False)).save_pretrained(
        tmp_path
    )
    with pytest.raises(UserError, match=r"bpe\.codes"):
        loaded(tmp_path)


def test_xlnet_context(special):
    folder = special("xlnet")
    before = (*TEXTS[3][:2], *[("brave",), ("Cleo",)] * 40)
    alone = loaded(folder)
    primed = loaded(folder, context=written(before))
    (short,) = filled(alone, [written(TEXTS[0])], WORDS)
    (fill,) = filled(primed, [written(TEXTS[0])], WORDS)
    assert fill.prompt == f"{written(before)} {short.prompt}"
    tokens = spelt("xlnet", [*before, *TEXTS[0]])
    ids, place = numbered(folder, tokens), tokens.index("<mask>")
    true = by_hand("xlnet", folder, "float64", ids, place)
    said = agreed(fill, "xlnet", folder, true)
    for word, unprimed in zip(short.words, short.logprobs_nats, strict=True):
        assert abs(said[word] - unprimed) > 0.01


def test_mbart_language(special):
    folder, answers = special("mbart"), {}
    scorer = loaded(folder)
    for language, code in [("de", "de_DE"), ("en", "en_XX"), ("de", "de_DE")]:
        tokens = spelt("mbart", TEXTS[0], code)
        ids, place = numbered(folder, tokens), tokens.index("<mask>")
        true = by_hand("mbart", folder, "float64", ids, place)
        (fill,) = filled(scorer, [written(TEXTS[0])], WORDS, language=language)
        answers[language] = agreed(fill, "mbart", folder, true)
    assert abs(answers["en"]["kind"] - answers["de"]["kind"]) > 0.01
    with pytest.raises(UserError, match="sw"):
        filled(scorer, [written(TEXTS[0])], WORDS, language="sw")
    with pytest.raises(UserError, match="language"):
        filled(scorer, [written(TEXTS[0])], WORDS)


def test_bart_folder_without_tokenizer_json(special, tmp_path):
    # vocabulary and merges alone: transformers 5 makes a mask of them that leaves the space
    plain("bart", special("bart"), "float64").save_pretrained(tmp_path)
    model = json.loads((special("bart") / "tokenizer.json").read_text())["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"])]
    (tmp_path / "merges.txt").write_text("\n".join(lines) + "\n")
    prompts = [written(words) for words in TEXTS]
    new, old = (filled(loaded(x), prompts, WORDS) for x in (special("bart"), tmp_path))
    assert new == old
