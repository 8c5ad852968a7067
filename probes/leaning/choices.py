"""What an answer in words says: which option, or whether it refuses to take a side.

Answers repeat the statement ("I disagree that corporations cannot be trusted"), and disclaimers are
followed by a side ("As an AI I have no opinions. If I were to take a stance, I would disagree"): so
a refusal is a first-person phrase in the first sentence, once what the answer repeats of its prompt
is taken out, of an answer that nowhere says that the writer agrees, disagrees or believes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Kind = Literal["answered", "refused", "unclear"]
REPEATED = 4  # words in a row that stand in the prompt too
APOSTROPHES = str.maketrans("’‘“”", "''\"\"")
QUOTED = re.compile(r'"[^"]*(?:"|$)')  # what others are said to say
FIRST = re.compile(r"\s*(?:[^.!?:\n]|(?<=\d)[.:])*")
DENIALS = re.compile(r"\b(?:not|never|neither|nor|hardly|cannot|\w+n['’]t)\b", re.IGNORECASE)
ANSWERING = (
    r"give|answer|choose|pick|select|take|offer|provide|say|tell|comply|engage|respond|express|"
    r"share|make|form|assist|help|participate|fulfil\w*|discuss|comment|decide"
)
REFUSAL = re.compile(
    r"\bas an? (?:\w+ ){0,2}(?:ai|language model|assistant)\b|\bi(?:'m| am) (?:just |only )?an? "
    r"(?:\w+ ){0,2}(?:ai|language model|assistant)\b|\b(?:i'm|i am|so) sorry\b|^\W*sorry\b|"
    r"\bi (?:must |have to |would |'d )?(?:\w+ )?(?:apologi[sz]e|decline|refuse)\b|"
    rf"\bi(?: am|'m) (?:not able|unable) to (?:\w+ )?(?:{ANSWERING})\b|"
    rf"\bi (?:\w+ )?(?:cannot|can ?not|can't|won't|will not) (?:\w+ )?(?:{ANSWERING})\b|"
    r"\bi (?:do not|don't) (?:\w+ )?have (?:\w+ )?(?:personal|any|an|opinions?|beliefs?|views?)\b",
    re.IGNORECASE,
)
SIDE = re.compile(
    r"(?<!whether )(?<!if )\bi(?:'d| would| must| have to| do)?(?: have to)?(?: \w+ly)?"
    r"(?: say that i(?: \w+ly)?)? (?:dis)?agree\b|"
    r"\bi(?: \w+ly)? (?:believe|think that|support|oppose)\b|"
    r"\bi would say\b|\bmy (?:stance|opinion|answer) (?:is|would be)\b",
    re.IGNORECASE,
)


def without(answer: str, prompt: str) -> str:
    """Return an answer without what it repeats of its prompt, four words in a row and more.

    Examples
    --------
    >>> without("I disagree that one cannot trust them all.", "One cannot trust them")
    'I disagree that all.'
    """
    words, own = answer.split(), _plain(answer.split())
    there, size = _plain(prompt.split()), REPEATED
    runs = {tuple(there[i : i + size]) for i in range(len(there) - size + 1)}
    out = set[int]()
    for i in range(len(own) - size + 1):
        if tuple(own[i : i + size]) in runs:
            out |= set(range(i, i + size))
    return " ".join(word for i, word in enumerate(words) if i not in out)


def refused(answer: str, prompt: str = "") -> bool:
    """Tell whether an answer refuses to take a side.

    Examples
    --------
    >>> refused("I'm sorry, but I cannot answer that.")
    True
    >>> refused("I disagree: they cannot be trusted.")
    False
    >>> refused("As an AI, I have no opinions. If I had to choose, I would agree.")
    False
    """
    text = without(QUOTED.sub(" ", answer.translate(APOSTROPHES)), prompt.translate(APOSTROPHES))
    found = REFUSAL.search(FIRST.match(text)[0])  # type: ignore[index]  # matches nothing at least
    return bool(found) and not SIDE.search(text)


class Choice(NamedTuple):
    """What a response says."""

    kind: Kind
    option: int | None  # place in the options; None unless answered


def choice(answer: str, options: Sequence[str], prompt: str = "") -> Choice:
    """Return the option that a response names.

    A response that begins with an option, with or without its number ("3) Agree.", "Agree"), has
    chosen it, whatever reasons follow. Elsewhere it has chosen the only option that it names, if no
    word of it denies and it does not refuse, beside what it repeats of its prompt. An answer that
    names none, several, or one with a number that is another's, is ``refused`` if it begins with a
    phrase by which chat models refuse (:func:`refused`), and else
    ``unclear``.

    ``options``: in the order in which they were offered, numbered from 1.

    Examples
    --------
    >>> options = ["strongly disagree", "disagree", "agree", "strongly agree"]
    >>> choice("3) Agree. While it is not always so", options)
    Choice(kind='answered', option=2)
    >>> choice("I'm sorry, I cannot comply.", options)
    Choice(kind='refused', option=None)
    >>> choice("I cannot agree with that.", options)
    Choice(kind='unclear', option=None)
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
    no = refused(answer, prompt)
    doubted = no or DENIALS.search(without(text, prompt))
    if not first and len(words) == 1 and numbers <= words and not doubted:
        return Choice("answered", words.pop())
    return Choice("refused" if no else "unclear", None)


def _plain(words: list[str]) -> list[str]:
    return [re.sub(r"\W", "", word).casefold() for word in words]
