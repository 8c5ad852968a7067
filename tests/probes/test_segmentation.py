"""Words of texts, by the rules of their language."""

from __future__ import annotations

import sys

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.probes.politicians.lexicon_evaluation import known_words, words

CHINESE = "今天天气很好，他好像不太高兴。"


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        # vowel signs, a nukta and a joiner are parts of their words
        ("hi", "मुझे यह फ़िल्म बहुत अच्छी लगी।", "मुझे यह फ़िल्म बहुत अच्छी लगी"),
        ("hi", "क्‍या किताब ज़रूरी है?", "क्‍या किताब ज़रूरी है"),
        ("ar", "الفندقُ جميلٌ جدًّا، شكرًا!", "الفندقُ جميلٌ جدًّا شكرًا"),
        ("ru", "Кто-то ОЧЕНЬ рад: ёлка!", "кто-то очень рад ёлка"),
        ("es", "¿Qué tal? Muy bien-hecho…", "qué tal muy bien-hecho"),
        ("fr", "Aujourd'hui j’ai vu l'île qu'il aime.", "aujourd'hui j ai vu l île qu il aime"),
        ("en", "It's a well-made film - isn't it? :)", "it's a well-made film isn't it"),
    ],
)
def test_words_of_languages_with_spaces(language, text, wanted):
    assert words(text, language) == wanted.split()


def test_of_decomposed_letters_none_is_torn():
    assert words("cafe\u0301 cre\u0300me", "es") == ["cafe\u0301", "cre\u0300me"]


def test_words_of_chinese_are_those_of_a_dictionary():
    # 好 (good) is in 好像 (seem), and is no word there
    assert words(CHINESE, "zh") == ["今天", "天气", "很好", "他", "好像", "不太", "高兴"]
    assert known_words([CHINESE], {"好", "高兴"}, "zh") == [["高兴"]]
    # what is cut already stays cut
    assert words("AP 好 任性", "zh") == ["ap", "好", "任性"]


def test_without_the_cutter_chinese_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    with pytest.raises(UserError, match=r"'zh'.*pip install 'plumbline\[segmentation\]'"):
        words(CHINESE, "zh")
