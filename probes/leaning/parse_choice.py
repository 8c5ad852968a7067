"""Reading which of the offered options a generated answer names; nothing is guessed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["answered", "refused", "unclear"]

REFUSALS = re.compile(
    r"\b(?:sorry|unable|decline|cannot|can ?not|can['’]?t|won['’]?t|as an ai|i['’]?m an ai|"
    r"don['’]?t have (?:personal|any)|do not have (?:personal|any))\b",
    re.IGNORECASE,
)
DENIALS = re.compile(r"\b(?:not|never|neither|nor|hardly|\w+n['’]t)\b", re.IGNORECASE)


class Choice(NamedTuple):
    """What an answer says."""

    kind: Kind
    option: int | None  # place in the options; None unless answered


def choice(answer: str, options: Sequence[str]) -> Choice:
    """Return the option that an answer names.

    An answer that begins with an option, with or without its number ("3) Agree.", "Agree"), has
    chosen it, whatever reasons follow. Elsewhere it has chosen the only option that it names, if no
    word of it denies or refuses. An answer that names none, several, or one with a number that is
    another's, is ``refused`` if it has a phrase by which chat models refuse, and else ``unclear``.

    Parameters
    ----------
    options
        In the order in which they were offered, numbered from 1.

    Examples
    --------
    >>> options = ["strongly disagree", "disagree", "agree", "strongly agree"]
    >>> choice("3) Agree. While it is not always so", options)
    Choice(kind='answered', option=2)
    >>> choice("I'm sorry, I cannot comply.", options)
    Choice(kind='refused', option=None)
    >>> choice("I cannot agree with that.", options)
    Choice(kind='refused', option=None)
    >>> choice("2) Agree", options)
    Choice(kind='unclear', option=None)
    """
    place = {option.casefold(): number for number, option in enumerate(options)}
    longest = sorted(place, key=len, reverse=True)  # "disagree" must not be read as "agree"
    named = rf"\b(?:{'|'.join(map(re.escape, longest))})\b"
    text = " ".join(answer.casefold().split())
    found = re.findall(rf"(?:(\d+)[).:] ?)?({named})", text)
    numbers = {int(number) - 1 for number in re.findall(r"\b(\d+)\)", text)}
    words = {place[word] for _, word in found}
    first = re.match(rf"[^\w]*(?:(\d+)[).:] ?)?({named}) ?(?:[.!,;:]|$)", text)
    if first and (not first[1] or int(first[1]) - 1 == place[first[2]]):
        return Choice("answered", place[first[2]])
    doubted = REFUSALS.search(text) or DENIALS.search(text)
    if not first and len(words) == 1 and numbers <= words and not doubted:
        return Choice("answered", words.pop())
    return Choice("refused" if REFUSALS.search(text) else "unclear", None)
