"""What leads to a person in a post: names of users, handles, e-mail addresses, telephone numbers.

Names stand as Reddit's editors write them: with backslashes, percent-encoded, in addresses.
"""

from __future__ import annotations

import re

SLASH = r"(?:\\?/|%(?:25)*2f|&(?:\#47|\#x2f|sol);)"
LETTER = r"(?:\\?[a-z0-9_-]|%(?:25)*(?:5f|2d)|&(?:\#95|\#x5f|lowbar);)"
BEGIN = r"(?:(?<![a-z0-9_])|(?<=%2f))"
USER = re.compile(rf"(?i){BEGIN}(u|user)({SLASH}){LETTER}{{3,20}}")
SITES = (
    r"twitter|x|instagram|facebook|fb|threads|tiktok|youtube|github|tumblr|linkedin|medium|patreon"
    r"|twitch|snapchat|telegram|t|paypal|venmo|gab|parler|gettr|vk|keybase"
)
# what follows the name in an address stays: it may be a status, and names no one by itself
PROFILE = re.compile(
    rf"(?i){BEGIN}((?:{SITES})\.(?:com|net|me|tv|social|ai|io){SLASH}(?:(?:in|add|c|user){SLASH})?)@?"
    rf"(?!(?:watch|search|hashtag|i|share|intent|groups|pages|r){SLASH}?(?![a-z0-9_-]))(?:{LETTER}|\.){{2,50}}"
)
DOT = r"(?:\.|\s?[\[({]\s?dot\s?[\])}]\s?)"
AT = r"(?:@|%40|&(?:\#64|\#x40|commat);|\s?[\[({]\s?at\s?[\])}]\s?)"
MAIL = re.compile(rf"(?i)(?<![\w.+-])(?:\\?[\w.+-])+{AT}[\w-]+(?:{DOT}[\w-]+)*{DOT}[a-z]{{2,}}")
HANDLE = re.compile(r"(?i)(?<![\w@])@(?=[\w.\\-]*[a-z])(?:\\?\w)(?:\\?[\w.-]){1,29}(?:@[\w.-]+)?")
DIGITS = re.compile(
    r"(?<![\w$€£¥.,/=#-])(?:tel:)?(?:\+|00)?\(?\d(?:[ .()-]{0,2}\d){6,14}(?![\w%]|,\d)"
)
NUMBER = re.compile(  # worldwide; as North America groups them; as others begin them
    r"(?:tel:.*|(?:\+|00)[\d .()-]{8,})|1?[ .-]?\(?\d{3}\)?[ .-]{0,2}\d{3}[ .-]?\d{4}"
    r"|\(?0\d{1,4}\)?(?:[ -]?\d{2,8}){1,5}(?<=\d)"
)


def masked(text: str) -> str:
    """Take what leads to a person out of a text.

    Examples
    --------
    >>> masked("as /u/Some_body said, see example.org/user/Some-body")
    'as /u/[user] said, see example.org/user/[user]'
    >>> masked("@some_body, some.body@example.org or +49 30 1234567")
    '@[user], [e-mail] or [telephone]'
    """
    text = MAIL.sub("[e-mail]", text)
    if "/" in text or "%" in text or "&" in text:
        text = USER.sub(r"\1\2[user]", text)
        text = PROFILE.sub(r"\1[user]", text)
    if "@" in text:
        text = HANDLE.sub("@[user]", text)
    return DIGITS.sub(_telephone, text)


def _telephone(found: re.Match[str]) -> str:
    plain = sum(letter.isdigit() for letter in found[0])
    is_one = NUMBER.fullmatch(found[0]) and plain >= (7 if found[0][0] in "+t" else 9)
    return "[telephone]" if is_one else found[0]
