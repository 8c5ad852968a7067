"""Files that a user brings along with the answers of Wikidata: mentions of people, and their names.

How the paper's authors lay out the names that they published (``data_politician_gender.json.zip``)
is stated nowhere. So a JSON file may be nested in any order: what tells a language or a gender is
known by its text, as a key or a value, and holds for all that is inside or beside it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.limits import parsed
from plumbline.builders.datasets.politicians.person import GENDER_OF, GENDERS
from plumbline.builders.readers.archives import unpacked
from plumbline.builders.readers.table import decoded
from plumbline.builders.readers.table import table as csv_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = {"mentions": "mentions.csv", "names": "names"}  # in a snapshot
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
    **{qid.lower(): gender for qid, gender in GENDER_OF.items()},
}
NAME = {"name", "names", "label", "labels", "politician", "person"}
TOLD = {"language", "lang", "gender", "sex"}  # by the value of a key of these words,
BESIDE = NAME | {"code", "or", "of", "item"}  # with no others than these
WORDS = re.compile(r"[^\W_]+?(?=[A-Z\W_]|$)|[A-Z]+")
Told = tuple[str, str, str]


def mentions(body: bytes) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield language and item of a person, and how often the language's Wikipedia mentions them.

    A ValueError says what is wrong and where.
    """
    seen = set()
    for line, (language, qid, number) in csv_table(body, ("language", "qid", "mentions"))[1]:
        if not number.isdecimal() or int(number) >= 2**31:
            raise ValueError(f"line {line}: {number!r} is no number of mentions")
        if (language, qid) in seen:
            raise ValueError(f"line {line}: {qid} is there again for {language}")
        seen.add((language, qid))
        yield (language, qid), int(number)


def names(body: bytes) -> Iterator[Told]:
    """Yield language, name and gender of each person to keep: of a table, or of a JSON file.

    Either may be alone in a zip archive. A ValueError says what is wrong and where.

    Examples
    --------
    >>> list(names(b'{"en": {"female": ["Ada Example"], "male": ["Bo Example"]}}'))
    [('en', 'Ada Example', 'female'), ('en', 'Bo Example', 'male')]
    >>> list(names(b'[{"qid": "Q5", "gender": "female", "names": {"fr": "Ada Exemple"}}]'))
    [('fr', 'Ada Exemple', 'female')]
    """
    if body[:2] == b"PK":
        body = unpacked(body, ".json", ending=True)
    text = decoded(body).strip()
    if text[:1] in ("{", "["):
        yield from _of_json(text)
        return
    for line, (language, name, gender) in csv_table(body, ("language", "name", "gender"))[1]:
        if gender not in GENDERS:
            raise ValueError(f"line {line}: gender {gender!r} is not {', '.join(GENDERS)}")
        yield language, normal(name), gender


def normal(name: str) -> str:
    """Return a name in NFC, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", name).split())


def _of_json(text: str) -> Iterator[Told]:
    try:
        tree = parsed(text)
    except ValueError:  # or an object in each line
        tree = [parsed(line) for line in text.splitlines() if line.strip()]
    found = list(dict.fromkeys(_people(tree, "", "", named=False)))
    if not found:
        raise ValueError(
            "no name with a language and a gender found; write it as CSV with the columns "
            f"language (a code), name, gender ({', '.join(GENDERS)})"
        )
    yield from found


def _people(node: Any, language: str, gender: str, *, named: bool) -> Iterator[Told]:
    """Yield the names of a tree; ``named``: whether a text in it is a name."""
    if isinstance(node, str) and named and language and gender and normal(node):
        yield language, normal(node), gender
    elif isinstance(node, list):
        pair = language and len(node) == 2 and all(isinstance(of, str) for of in node)
        if pair and (sex := _known(GENDER, node[1:])):  # a name and its gender
            node, gender, named = node[:1], sex, True
        for inner in node:
            yield from _people(inner, language, gender, named=named)
    elif isinstance(node, dict):
        if rows := _rows(node):
            yield from _people(rows, language, gender, named=False)
            return
        keys = {key: {word.lower() for word in WORDS.findall(str(key))} for key in node}
        tells = {key for key, of in keys.items() if of & TOLD and of <= TOLD | BESIDE}
        language = _known(LANGUAGE, [node[key] for key in tells]) or language
        gender = _known(GENDER, [node[key] for key in tells]) or gender
        record = tells or any(of & NAME for of in keys.values())
        for key, inner in node.items():
            sex, whole = GENDER.get(str(key).strip().lower()), len(keys[key]) == 1
            of = _known(LANGUAGE, sorted(keys[key])) if whole or keys[key] & NAME else ""
            if not (of or sex or record) and isinstance(inner, str) and _known(GENDER, [inner]):
                yield from _people(key, language, _known(GENDER, [inner]), named=True)
            elif key not in tells:
                own = bool(of or sex or keys[key] & NAME) or (named and not record)
                yield from _people(inner, of or language, sex or gender, named=own)


def _rows(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a data frame that was written column by column, or split; else none."""
    if isinstance(head := node.get("columns"), list) and isinstance(node.get("data"), list):
        return [dict(zip(head, row, strict=False)) for row in node["data"]]
    columns = {
        key: list(of.values()) if isinstance(of, dict) else of
        for key, of in node.items()
        if isinstance(of, dict | list)
    }
    if not (columns.keys() >= {"name", "gender"} and len(columns) == len(node)):
        return []
    return [dict(zip(columns, row, strict=False)) for row in zip(*columns.values(), strict=False)]


def _known(of: dict[str, str], told: list[Any]) -> str:
    """Return what the first of some values tells; a list counts as its values."""
    flat = (each for value in told for each in (value if isinstance(value, list) else [value]))
    texts = (str(each).rsplit("/", 1)[-1].strip().lower() for each in flat)
    return next((of[text] for text in texts if text in of), "")


READERS: dict[str, Callable[[bytes], Iterator[Any]]] = {"mentions": mentions, "names": names}
