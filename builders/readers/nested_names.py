"""Reader for names of people, with language and gender, from JSON that is nested in any order.

The layout of the names published by the authors of Stańczak et al. (2023) is undocumented, so a
language or a gender is recognised by its text, as a key or a value, and applies to all values
inside or next to it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

from plumbline.builders.readers.table import parsed

LANGUAGE = {
    "arabic": "ar",
    "chinese": "zh",
    "english": "en",
    "french": "fr",
    "hindi": "hi",
    "russian": "ru",
    "spanish": "es",
    "czech": "cs",
    **{code: code for code in ("ar", "zh", "en", "fr", "hi", "ru", "es", "cs")},
}
OTHER = ("nonbinary", "non binary", "genderfluid", "genderqueer", "third gender", "transfeminine")
GENDER = {
    **dict.fromkeys(("m", "man", "men", "male", "males"), "male"),
    **dict.fromkeys(("f", "woman", "women", "female", "females", "cisgender female"), "female"),
    **dict.fromkeys(("non-binary", *OTHER, "transgender female", "transgender male"), "non-binary"),
}
FRAME = {"name", "gender"}  # columns that mark a data frame, given as lists
NAME = {"name", "names", "label", "labels", "politician", "person"}
TOLD = {"language", "lang", "gender", "sex"}  # words in keys that mark a language or gender
BESIDE = NAME | {"code", "or", "of", "item"}  # further words in such keys
WORDS = re.compile(r"[^\W_]+?(?=[A-Z\W_]|$)|[A-Z]+")
Told = tuple[str, str, str]
Entry = tuple[str, str, str, str]


def normal(name: str) -> str:
    """Return a name in NFC, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def entries(text: str, items: Mapping[str, str]) -> Iterator[Entry]:
    """Yield language, name, gender, and the word or item for the gender; names may be repeated.

    ``items``: gender for further words, such as Wikidata items.

    Raises ValueError if the text is not JSON, or contains no name with a language and a gender.

    Examples
    --------
    >>> list(entries('{"en": {"female": ["Ada Example"]}}', {}))
    [('en', 'Ada Example', 'female', 'female')]
    >>> list(entries('[{"qid": "Q5", "sex": "Q1", "names": {"fr": "Ada"}}]', {"Q1": "female"}))
    [('fr', 'Ada', 'female', 'Q1')]
    """
    genders = {**GENDER, **items}
    people = list(_people(parsed(text), {w.lower(): w for w in genders}, "", "", named=False))
    if not people:
        raise ValueError(
            "no name with a language and a gender found; write it as CSV with the columns "
            f"language (a code), name, gender ({', '.join(sorted(set(GENDER.values())))})"
        )
    for language, name, word in people:
        yield language, name, genders[word], word


def _people(
    node: Any, genders: dict[str, str], language: str, gender: str, *, named: bool
) -> Iterator[Told]:
    """Yield the names in a tree; ``named``: whether the texts in it are names."""
    if isinstance(node, str) and named and language and gender and normal(node):
        yield language, normal(node), gender
    elif isinstance(node, list):
        for inner in node:
            yield from _people(inner, genders, language, gender, named=named)
    elif isinstance(node, dict) and node.keys() >= FRAME and {*map(type, node.values())} == {list}:
        rows = [dict(zip(node, row, strict=True)) for row in zip(*node.values(), strict=False)]
        yield from _people(rows, genders, language, gender, named=False)
    elif isinstance(node, dict):
        keys = {key: {word.lower() for word in WORDS.findall(str(key))} for key in node}
        telling = [k for k, words in keys.items() if words & TOLD and words <= TOLD | BESIDE]
        language = _known(LANGUAGE, [node[key] for key in telling]) or language
        gender = _known(genders, [node[key] for key in telling]) or gender
        record = telling or any(words & NAME for words in keys.values())
        for key, inner in node.items():
            words, sex = keys[key], genders.get(str(key).strip().lower())
            tongue = _known(LANGUAGE, sorted(words)) if len(words) == 1 or words & NAME else ""
            value = _known(genders, [inner]) if isinstance(inner, str) else ""
            if value and not (tongue or sex or record):  # the key is a name, the value its gender
                yield from _people(key, genders, language, value, named=True)
            elif key not in telling:
                is_name = bool(tongue or sex or words & NAME) or (named and not record)
                inside = tongue or language, sex or gender
                yield from _people(inner, genders, *inside, named=is_name)


def _known(meanings: dict[str, str], values: list[Any]) -> str:
    """Return the meaning of the first value that has one; lists are flattened."""
    flat = (part for value in values for part in (value if isinstance(value, list) else [value]))
    texts = (str(part).rsplit("/", 1)[-1].strip().lower() for part in flat)
    return next((meanings[text] for text in texts if text in meanings), "")
