"""What stands beside a name: whether it is a person's there, and whether all of it was found."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from plumbline.builders.core.params import yaml_of
from plumbline.builders.readers.gazetteer import Gazetteer, fold

LISTS = Path(__file__).with_name("beside_names.yaml")
BEFORE = re.compile(r"([^\W\d_][\w'’-]*)\.? $")
AFTER = re.compile(r" ([^\W\d_][\w-]*)")
INITIALS = re.compile(r"(?:[^\W\d_]\. ?)+")
STOPS = re.compile(r"[.!?:…]+\s+")
BEGINS = re.compile(r"(?:^|[.!?:…]\s+)\W*$")
ANYWHERE = "en"  # English words beside names are in texts of all languages
NOUNS = ("de",)  # languages that write nouns with a capital


@cache
def _lists() -> dict[str, Any]:
    found: dict[str, Any] = yaml_of(LISTS.read_bytes())
    return found


def particles() -> frozenset[str]:
    """Return the words that stand within names, folded."""
    return frozenset(map(fold, _lists()["particles"].split()))


class Context(NamedTuple):
    """What the words of a text are that no list of names has, all of them folded."""

    titles: frozenset[str]
    places: frozenset[str]
    suffixes: frozenset[str]
    ordinary: frozenset[str]  # function words, and those that these texts mostly write small
    nouns: bool  # a capital says little

    @classmethod
    def of(cls, language: str, ordinary: frozenset[str]) -> Context:
        """Return what is known of a language, and of every one."""
        own = [_lists().get(key, {}) for key in {ANYWHERE, language}]
        titles, places = (
            frozenset(fold(word) for each in own for word in each.get(kind, "").split())
            for kind in ("titles", "places")
        )
        suffixes = frozenset(_lists()["suffixes"].split())
        return cls(titles, places, suffixes, ordinary, language in NOUNS)

    def person(
        self,
        text: str,
        span: tuple[int, int],
        lasts: set[str],
        gazetteer: Gazetteer,
        common: frozenset[str],
    ) -> bool:
        """Return whether what was found is a person's name there, and the whole of it.

        A name that is part of a longer one, of a person, a place or a firm, has a word with a
        capital beside it. A last name alone is a word or a firm as often as a person: it needs a
        title before it, or the text has to have it in a full name too; so does a first name that no
        country's list has, for long lists have words too. Capitals are those of an
        abbreviation unless most of the text has them.

        ``lasts``: last names, folded, that the text has in full names.
        ``common``: first names, folded, that some country has in its lists.
        """
        start, end = span
        names = [fold(name) for name in text[start:end].split()]
        left, right = BEFORE.search(text[:start]), AFTER.match(text, end)
        before, after = (fold(found[1]) if found else "" for found in (left, right))
        shouted = _shouted(text, start)
        if self.places & {before, after, *names} or names[0] in self.suffixes | self.titles:
            return False
        if right and after not in self.suffixes and not (shouted and len(names) > 1):
            large = right[1][0].isupper() and len(right[1]) > 1
            goes_on = (large or after in gazetteer.surnames) and after not in self.ordinary
            if goes_on or (large and len(names) == 1 and not shouted):
                return False
        large = left is not None and left[1][0].isupper() and not (shouted or self.nouns)
        if len(names) > 1:
            first = names[0] in gazetteer.genders or names[0] in gazetteer.words
            return first or (not large and INITIALS.match(text, start) is not None)
        if before in self.titles or names[0] not in common:
            return before in self.titles or names[0] in lasts
        begins = left is not None and BEGINS.search(text[: left.start()]) is not None
        free = not large or (begins and before in self.ordinary)
        return free and (shouted or not text[start:end].isupper())


def _shouted(text: str, at: int) -> bool:
    """Return whether most letters of a sentence are large, so that they say nothing."""
    begins = max((stop.end() for stop in STOPS.finditer(text, 0, at)), default=0)
    ends = STOPS.search(text, at)
    sentence = text[begins : ends.start() if ends else None]
    return sum(map(str.isupper, sentence)) > sum(map(str.islower, sentence))
