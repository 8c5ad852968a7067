"""Substitution of people's names, without other changes to the text."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from plumbline.builders.datasets.counterfactuals.find_people import PARTICLES, Span
from plumbline.builders.readers.gazetteer import Gazetteer, fold

Part = Literal["full", "first", "last"]
LEADING = re.compile(rf"(?<!\w)(?:(?:{'|'.join(PARTICLES)}) )+\Z", re.IGNORECASE)


class Mention(NamedTuple):
    """A mention of a person, and the part of the name that it contains."""

    start: int
    end: int
    part: Part


class Person(NamedTuple):
    """A person in a text, and all mentions of that person in order."""

    entity: str  # the longest mention, as written
    gender: str
    mentions: tuple[Mention, ...]

    def parts(self) -> set[str]:
        """Return the parts of a name that occur in the mentions."""
        needed = {mention.part for mention in self.mentions}
        return (needed - {"full"}) | ({"first", "last"} if "full" in needed else set())


class Name(NamedTuple):
    """A substitute name; a part that no mention needs may be empty."""

    first: str
    last: str

    def of(self, part: Part) -> str:
        """Return the given part of the name."""
        return {"full": f"{self.first} {self.last}", "first": self.first, "last": self.last}[part]


def remains(text: str, person: Person) -> bool:
    """Return True if a word of a person's name occurs in a text outside the mentions."""
    words = {word for m in person.mentions for word in fold(text[m.start : m.end]).split()}
    long = "|".join(re.escape(w) for w in words - PARTICLES if len(w.strip(".")) > 1) or "(?!)"
    for start, end, _ in reversed(person.mentions):
        text = f"{text[:start]} {text[end:]}"
    pattern = rf"(?<![^\W_])(?:{long})(?![^\W_])|[#@/]\w*(?:{long})"
    return re.search(pattern, fold(text)) is not None


def named(text: str, spans: Sequence[Span], gazetteer: Gazetteer) -> list[Person]:
    """Group mentions by person, in the order in which the persons appear.

    A single word refers to the person whose full name has the same first or last word; a doubled
    name ("Anna Anna") is one person. Repetitions of a name (also in capitals) and of the last
    word of a full name are added if the finder missed them. The gender is that of the first name,
    or ``unknown`` if only a last name is mentioned.
    """
    spans = [single for span in spans for single in _singles(text, span)]
    full = [s for s in spans if " " in text[s.start : s.end]]
    by_name: dict[tuple[str, str], list[Mention]] = {}
    for span in full:
        words = text[span.start : span.end].split(" ")
        key = (fold(words[0]), fold(words[-1]))
        by_name.setdefault(key, []).append(Mention(*span, "full"))
    for span in spans:
        word = fold(text[span.start : span.end])
        if span in full:
            continue
        key, part = _whose(word, by_name, gazetteer)
        by_name.setdefault(key, []).append(Mention(*span, part))
    taken = {index for span in spans for index in range(*span)}
    persons = []
    for (first, _), mentions in by_name.items():
        repeated = list(_again(text, mentions, taken))
        gender = gazetteer.gender(first) or "unknown"
        longest = max(mentions, key=lambda m: (m.end - m.start, -m.start))
        entity = text[longest.start : longest.end]
        places = []
        for mention in [*mentions, *repeated]:
            before = LEADING.search(text, 0, mention.start)
            if before and mention.part == "last" and fold(before[0]) in fold(entity):  # "da Silva"
                places.append(mention._replace(start=before.start()))
            else:
                places.append(mention)
        persons.append(Person(entity, gender, tuple(sorted(places))))
    return sorted(persons, key=lambda person: person.mentions[0].start)


def _singles(text: str, span: Span) -> list[Span]:
    """Split a span that repeats one word into single words; return other spans unchanged."""
    words = [Span(*word.span()) for word in re.compile(r"\S+").finditer(text, *span)]
    return words if len({fold(text[slice(*word)]) for word in words}) == 1 else [span]


def _whose(
    word: str, by_name: dict[tuple[str, str], list[Mention]], gazetteer: Gazetteer
) -> tuple[tuple[str, str], Part]:
    """Return the key of the person to whom a word refers, and the part of the name that it is."""
    for first, last in by_name:
        if last and word == last:
            return (first, last), "last"
        if first and last and word == first:
            return (first, last), "first"
    if word in gazetteer.surnames and not gazetteer.gender(word):
        return ("", word), "last"
    return (word, ""), "first"


def _again(text: str, mentions: Iterable[Mention], taken: set[int]) -> Iterator[Mention]:
    """Yield further mentions of a full or last name, outside tags and addresses.

    Capitalised matches are mentions; lower-case ones may be other words ("Will", "will").
    """
    spelled: dict[str, Part] = {text[m.start : m.end]: m.part for m in mentions}
    for last in [name.split(" ")[-1] for name, part in spelled.items() if part == "full"]:
        if len(last.strip(".")) > 1:
            spelled.setdefault(last, "last")
    for name, part in sorted(spelled.items(), key=lambda item: (-len(item[0]), item[0])):
        pattern = rf"(?<![\w#@'’_/.-]){re.escape(name)}(?![\w_@-])"
        for match in re.finditer(pattern, text, re.IGNORECASE):
            places = range(*match.span())
            small = match[0] != name and match[0][0].islower()
            if taken.isdisjoint(places) and not small:
                taken.update(places)
                yield Mention(*match.span(), part)


def replaced(text: str, person: Person, name: Name) -> str:
    """Replace all mentions of a person with a name, in the case of the original.

    Examples
    --------
    >>> anna = Person("ANNA", "female", (Mention(0, 4, "first"),))
    >>> replaced("ANNA'S dog", anna, Name("Zoë", ""))
    "ZOË'S dog"
    """
    parts, index = [], 0
    for start, end, part in person.mentions:
        old = text[start:end]
        new = _cased(old, name, part)
        parts += [text[index:start], new]
        index = end
        if _bare_possessive(text, end) and old[-1:] in "sS" and new[-1:] not in "sS":
            parts.append(text[end] + ("S" if new.isupper() else "s"))
            index = end + 1
    return "".join([*parts, text[index:]])


def _cased(old: str, name: Name, part: Part) -> str:
    if part != "full":
        return cased(name.of(part), old)
    first, _, ending = old.partition(" ")
    return f"{cased(name.first, first)} {cased(name.last, ending)}"


def cased(new: str, old: str) -> str:
    """Return a name in upper or lower case if the old name is in that case, otherwise unchanged."""
    if re.search(r"[^\W\d_]{2}", old):  # initials are not words in capitals
        if old.isupper():
            return new.upper()
        if old.islower():
            return new.lower()
    return new


def _bare_possessive(text: str, end: int) -> bool:
    """Return True for a possessive apostrophe, as in "James' dog", but not for a closing quote."""
    after = text[end : end + 2]
    bare = len(after) == 2 and after[0] in "'’" and after[1].isspace()
    return bare and not re.search(r"(?<!\w)['‘](?=\w)", text[:end])


def draws(key: str, size: int, number: int) -> list[int]:
    """Draw ``number`` indices below ``size``, seeded by ``key``; none repeats before all are drawn.

    They are the start of a Fisher-Yates shuffle whose random numbers come from SHAKE-256 of the key
    (FIPS 202), so that they are the same on every machine. The bias due to the modulus
    is below size / 2^32.
    """
    indices: list[int] = []
    pool: list[int] = []
    for value in _random(key, number):
        pool = pool or list(range(size))
        index = value % len(pool)
        pool[index], pool[-1] = pool[-1], pool[index]
        indices.append(pool.pop())
    return indices


def draws_again(key: str, size: int, number: int) -> list[int]:
    """Draw ``number`` indices below ``size`` with replacement, seeded by ``key``."""
    return [value % size for value in _random(key, number)]


def _random(key: str, number: int) -> tuple[int, ...]:
    return struct.unpack(f">{number}I", hashlib.shake_256(key.encode()).digest(4 * number))
