"""Words and special tokens in texts, for each layout of a tokenizer's vocabulary."""

from functools import partial

import pytest
from models import tiny
from samples import TOP
from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
from tokenizers import models as layouts
from transformers import BertJapaneseTokenizer, PreTrainedTokenizerFast

from plumbline.builders.core.errors import UserError
from plumbline.probes.models.masked import Masked
from plumbline.probes.models.tokenizer import Tokens

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
STORIES = TOP.parent / "shared/data/models/stories260k"
SENTENCE = "the cat unhappily sat"
JAPANESE = ["▁", "私", "は", "学", "生", "です", "学生", "▁私", "、", "ラー", "メ", "ー", "ン"]


def save(folder, tokenizer):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    names = dict(zip(("pad", "bos", "eos", "unk", "mask"), SPECIAL, strict=True))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": token for name, token in names.items()}
    )
    fast.save_pretrained(folder)
    return Tokens(folder, "m")


def unigram(pieces):
    scores = [(piece, 0.0) for piece in SPECIAL] + [(p, -1.0 / len(p)) for p in pieces]
    return Tokenizer(layouts.Unigram(scores, unk_id=3))


def gemma(pieces):
    """Spaces become pieces by the normaliser; the pre-tokeniser finds no space to split at."""
    tokenizer = unigram(pieces)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


def llama(pieces):
    """A dummy prefix by the normaliser, and no pre-tokeniser."""
    tokenizer, steps = unigram(pieces), (normalizers.Prepend("▁"), normalizers.Replace(" ", "▁"))
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    return tokenizer


def sentencepiece(pieces, scheme="always"):
    tokenizer = unigram(pieces)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return tokenizer


def wordpiece(_):
    tokens = [*SPECIAL, "the", "cat", "un", "##happi", "##ly", "sat", "学", "生", "!"]
    model = layouts.WordPiece({t: i for i, t in enumerate(tokens)}, unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.normalizer = normalizers.BertNormalizer()
    return tokenizer


def byte_level(_):
    """Return a tokenizer whose tokens are exactly these, by their merges."""
    words = ["the", "Ġcat", "Ġun", "happi", "ly", "Ġsat", "çĮ«", "åŃ"]  # the last: two of 3 bytes
    merges = dict.fromkeys((w[:i], w[i]) for w in words for i in range(1, len(w)))
    tokens = dict.fromkeys([*SPECIAL, *"".join(words), "¦", "Ġ", *(a + b for a, b in merges)])
    model = layouts.BPE({t: i for i, t in enumerate(tokens)}, [*merges], unk_token="<unk>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


ENGLISH = ["▁the", "the", "▁cat", "▁un", "happi", "ly", "▁sat", "▁", "!", "x"]
LAYOUTS = {
    "wordpiece": wordpiece,
    "dummy prefix": sentencepiece,
    "no dummy prefix": partial(sentencepiece, scheme="never"),
    "gemma": gemma,
    "llama": llama,
    "byte level": byte_level,
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_words_layout(tmp_path, layout):
    tokens = save(tmp_path, LAYOUTS[layout](ENGLISH))
    (ids,) = tokens.encode([SENTENCE])
    assert tokens.words(SENTENCE, ids) == [None, 0, 1, 2, 2, 2, 3, None]


@pytest.mark.parametrize(
    ("layout", "text", "words"),
    [
        ("wordpiece", "cat!学生", [0, 1, 2, 3]),  # the tokenizer splits at punctuation
        ("gemma", "the ☃ sat", [0, 1, 1, 2]),  # a space, and a character that is unknown
        ("gemma", "the  cat", [0, 1, 2]),  # two spaces
        ("llama", "cat x!", [0, 1, 1, 1]),  # no marker before punctuation
        ("byte level", "the 猫学", [0, 1, 1, 2, 2]),  # two tokens in one character
    ],
)
def test_words_odd_texts(tmp_path, layout, text, words):
    tokens = save(tmp_path, LAYOUTS[layout](ENGLISH))
    (ids,) = tokens.encode([text])
    assert tokens.words(text, ids)[1:-1] == words


@pytest.mark.parametrize("layout", [gemma, sentencepiece])
def test_words_japanese_without_spaces(tmp_path, layout):
    """Each token is a word, except for marks that continue the previous token."""
    tokens, text = save(tmp_path, layout(JAPANESE)), "私は学生です、ラーメン"
    (ids,) = tokens.encode([text], "ja")
    pieces = tokens.tokenizer.convert_ids_to_tokens(ids)[1:-1]
    assert [p.strip("▁") for p in pieces] == ["私", "は", "学生", "です", "、", "ラー", "メ", "ン"]
    assert tokens.words(text, ids, "ja")[1:-1] == [0, 1, 2, 3, 3, 4, 5, 6]
    assert (tokens.gap("ja"), tokens.gap("en")) == ("", " ")


def test_words_slow_wordpiece(tmp_path):
    """A tokenizer without offsets, whose later tokens have the prefix ##."""
    rows = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "学", "##生", "で", "##す", "猫"]
    (tmp_path / "vocab.txt").write_text("\n".join(rows), encoding="utf-8")
    BertJapaneseTokenizer(
        tmp_path / "vocab.txt", word_tokenizer_type="basic", do_lower_case=False
    ).save_pretrained(tmp_path)
    tokens = Tokens(tmp_path, "m")
    assert not tokens.tokenizer.is_fast
    (ids,) = tokens.encode(["です 猫"])
    assert tokens.words("です 猫", ids) == [None, 0, 0, 1, None]


def test_special_token_inside_a_text(tmp_path):
    tokenizer = tiny.wordpiece(["she is happy"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["[PERSON]"]})
    tiny.save(tmp_path, tiny.bert(tokenizer), tokenizer)
    scorer = tiny.loaded(Masked, tmp_path)
    for inside in ("[PERSON]", "[SEP]", "[MASK]"):
        with pytest.raises(UserError) as error:
            list(scorer.pseudo_logprobs(["she is happy", f"{inside} is happy"]))
        assert repr(inside) in str(error.value)
        with pytest.raises(UserError, match="happy"):
            list(scorer.represent([f"{inside}happy"]))
    with pytest.raises(UserError) as error:
        list(scorer.predict(["[PERSON] is <mask>"], 1))
    assert "'[PERSON]'" in str(error.value)
    assert list(scorer.predict(["she is <mask>"], 1))
    assert scorer.tokens.candidates(["happy", "[PERSON]", "[SEP]"]).keys() == {"happy"}


@pytest.mark.shared
@pytest.mark.skipif(not STORIES.is_dir(), reason="no shared data beside the checkout")
def test_words_published_model():
    """A released SentencePiece vocabulary with a dummy prefix, byte fallback and no splitting."""
    tokens, text = Tokens(STORIES, "m"), "Lily's happy dog ran.\nÉl 日本"
    (ids,) = tokens.encode([text])
    pieces = tokens.tokenizer.convert_ids_to_tokens(ids)
    assert "<0xE6>" in pieces
    words = {}
    for i, word in zip(ids[1:], tokens.words(text, ids)[1:], strict=True):
        words.setdefault(word, []).append(i)
    assert [tokens.tokenizer.decode(w).strip() for w in words.values()] == [
        *["Lily's", "happy", "dog", "ran.", "Él", "日", "本"]
    ]
