"""Texts cut into words, by the rules of their language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import regex

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Collection

# at the default boundaries of Unicode; what hyphens join is one word
WORD = regex.compile(r"(?ws)\b\w.*?\b(?:-\w.*?\b)*")
ELIDED = regex.compile(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu)['’](?=\w)")
UNSPACED = ("ja", "km", "lo", "my", "th", "zh")  # languages written without spaces


def words(text: str, language: str) -> list[str]:
    """Return the words of a text in lower case.

    Boundaries are those of Unicode Standard Annex 29, Unicode Text Segmentation: vowel signs
    and other marks stay with their letters, apostrophes between letters too. What hyphens join is
    one word. French elided words (``l'``, ``qu'``) are words of their own. Of languages that are
    written without spaces the words are those of ICU's dictionaries.

    ``language``: code of ISO 639-1.

    Raises UserError if the language has no spaces, and icu4py is not installed.

    Examples
    --------
    >>> words("A well-made film, isn't it?", "en")
    ['a', 'well-made', 'film', "isn't", 'it']
    >>> words("मुझे यह फ़िल्म अच्छी लगी।", "hi")
    ['मुझे', 'यह', 'फ़िल्म', 'अच्छी', 'लगी']
    >>> words("J'aime l’histoire d'aujourd'hui", "fr")
    ['j', 'aime', 'l', 'histoire', 'd', "aujourd'hui"]
    """
    lower = text.lower()
    if language in UNSPACED:
        segments = _breaker(language)(lower, language)
        return [word for word in segments if word[0].isalnum()]
    found: list[str] = WORD.findall(lower)
    if language != "fr":
        return found
    return [part for word in found for part in _apart(word)]


def known_words(texts: Collection[str], known: Collection[str], language: str) -> list[list[str]]:
    """Return the words of each text that are among the known ones, in their order."""
    return [[word for word in words(text, language) if word in known] for text in texts]


def _apart(word: str) -> list[str]:
    elided = ELIDED.match(word)
    return [word[: elided.end() - 1], word[elided.end() :]] if elided else [word]


def _breaker(language: str) -> Any:
    """Return ICU's breaker of words."""
    try:
        from icu4py.breakers import WordBreaker
    except ModuleNotFoundError as error:
        raise UserError(
            f"texts in {language!r} have no spaces between words, and icu4py, which cuts them, is "
            "not installed; run `pip install 'plumbline[segmentation]'`"
        ) from error
    return WordBreaker
