"""Rules for flagging completions that are not stereotypes; no row is removed."""

from __future__ import annotations

import re

from pydantic import Field

from plumbline.builders.core.params import Params

# In this order: several words, no adjective, a trend, neutral, a repetition of an earlier row,
# and a single word that the authors left out.
FLAGS = ("multi_word", "not_adjective", "trend", "neutral", "repeated", "left_out")
YEAR = re.compile(r"\b(19|20)\d\d\b")


class Cleaning(Params):
    """Lower-case word lists of one language for the rules of :func:`flags`."""

    key_terms: list[str] = Field(
        description="key terms such as 'so good at', which belong to the query and its template; "
        "the attribute follows them"
    )
    trends: list[str] = Field(description="words and phrases that indicate trends")
    neutral: list[str] = Field(description="first words of neutral completions")
    not_adjectives: list[str] = Field(description="words that are not adjectives")
    endings: list[str] = Field(description="endings of words that are not adjectives")
    adjective_endings: list[str] = Field(
        description="longer endings that adjectives may have, such as ous despite the ending s"
    )
    adjectives: list[str] = Field(description="words that are adjectives despite their endings")


def key_term(attribute: str, rules: Cleaning) -> tuple[str, str]:
    """Split a completion into its key term ("" if it has none) and the rest.

    Examples
    --------
    >>> empty = dict.fromkeys(Cleaning.model_fields, ())
    >>> key_term("good at chess", Cleaning(**empty | {"key_terms": ["good at"]}))
    ('good at', 'chess')
    """
    for term in sorted(rules.key_terms, key=len, reverse=True):
        if attribute.startswith(f"{term} ") and attribute != f"{term} ":
            return term, attribute.removeprefix(f"{term} ")
    return "", attribute


def flags(attribute: str, rules: Cleaning, term: str = "") -> list[str]:
    """Return the reasons why a completion is not a stereotype expressed by one adjective.

    ``term``: the key term before the attribute, or ""; after it, the attribute may be a noun.
    """
    low = attribute.casefold()
    words = low.split()
    reasons = []
    if len(words) > 1:
        reasons.append("multi_word")
    elif not term and not adjective(low, rules):
        reasons.append("not_adjective")
    trends = "|".join(map(re.escape, rules.trends))
    if YEAR.search(low) or (trends and re.search(rf"(?<!\w)({trends})(?!\w)", low)):
        reasons.append("trend")
    if words[0] in rules.neutral:
        reasons.append("neutral")
    return sorted(reasons)


def adjective(word: str, rules: Cleaning) -> bool:
    """Return True if no rule prevents a word from being an adjective.

    The rules use words and endings but no context: a noun without a typical ending passes.
    """
    if word in rules.adjectives:
        return True
    if word in rules.not_adjectives or any(c.isdigit() for c in word):
        return False
    against, for_it = (
        max((len(end) for end in ends if word.endswith(end)), default=0)
        for ends in (rules.endings, rules.adjective_endings)
    )
    return for_it > against or not against
