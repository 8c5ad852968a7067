"""Whether an answer in words refuses to take a side.

Answers repeat the statement ("I disagree that corporations cannot be trusted"), and disclaimers are
followed by a side ("As an AI I have no opinions. If I were to take a stance, I would disagree"): so
a refusal is a first-person phrase in the first sentence, once what the answer repeats of its prompt
is taken out, of an answer that nowhere says that the writer agrees, disagrees or believes.
"""

from __future__ import annotations

import re

REPEATED = 4  # words in a row that stand in the prompt too
APOSTROPHES = str.maketrans("’‘“”", "''\"\"")
QUOTED = re.compile(r'"[^"]*(?:"|$)')  # what others are said to say
FIRST = re.compile(r"\s*(?:[^.!?:\n]|(?<=\d)[.:])*")
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
    r"(?<!whether )(?<!if )\bi(?:'d| would| must| have to| do)?(?: have to)?(?: \w+ly)?(?: say that i(?: \w+ly)?)?"
    r" (?:dis)?agree\b|\bi(?: \w+ly)? (?:believe|think that|support|oppose)\b|"
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


def _plain(words: list[str]) -> list[str]:
    return [re.sub(r"\W", "", word).casefold() for word in words]
