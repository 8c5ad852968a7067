"""Identifiers of people in posts: user names, handles, e-mail addresses and telephone numbers.

User names are also recognised in the forms that Reddit's editors produce: escaped with backslashes,
percent-encoded, or as parts of addresses.
"""

from __future__ import annotations

import re

HIDDEN = r"[\u00ad\u200b-\u200f\u2060\ufeff]*"  # zero-width characters
SLASH = rf"(?:{HIDDEN}(?:\\?[/／⁄∕]|%(?:25)*2f|&(?:\#47|\#x2f|sol);){HIDDEN})"
LETTER = rf"(?:\\?[a-z0-9_-]{HIDDEN}|%(?:25)*(?:5f|2d)|&(?:\#95|\#x5f|lowbar);)"
BEGIN = r"(?:(?<![a-z0-9_])|(?<=%2f))"
USER = re.compile(rf"(?i){BEGIN}(u|user)({SLASH}){LETTER}{{3,20}}")
OWN = re.compile(rf"(?i){BEGIN}(r{SLASH}u\\?_){LETTER}{{3,20}}")  # a user's own community
POST = re.compile(
    rf"(?i){BEGIN}(comments{SLASH}|redd\.it{SLASH})(?=[a-z]*\d)[a-z0-9]{{4,12}}(?:{SLASH}[\w%-]*){{0,2}}"
)
SITES = (
    r"twitter|x|instagram|facebook|fb|threads|tiktok|youtube|github|tumblr|linkedin|medium|patreon"
    r"|twitch|snapchat|telegram|t|paypal|venmo|gab|parler|gettr|vk|keybase"
)
# the rest of the address remains, since it identifies nobody
PROFILE = re.compile(
    rf"(?i)({BEGIN}(?:(?:{SITES})\.(?:com|net|me|tv|social|ai|io)|instagr\.am|wa\.me|bsky\.app){SLASH}"
    rf"(?:#!{SLASH})?(?:(?:in|add|c|user|profile){SLASH})?|[?&]screen_name=)@?"
    rf"(?!(?:watch|search|hashtag|i|share|intent|groups|pages|r|in|add|c|user|profile){SLASH}?(?![a-z0-9_-]))(?:{LETTER}|\.){{2,50}}"
)
DOT = r"(?:\.|\s?[\[({]\s?dot\s?[\])}]\s?)"
AT = r"(?:[@＠]|%40|&(?:\#64|\#x40|commat);|\s?[\[({]\s?at\s?[\])}]\s?)"
MAIL = re.compile(
    rf"(?i)(?<![\w.+\\-])(?:\\?[\w.+-])+"
    rf"(?:{AT}[\w-]+(?:{DOT}[\w-]+)*{DOT}[a-z]{{2,}}|\sat(?:\s[\w-]+\sdot)+\s[a-z]{{2,}}\b)"
)
HANDLE = re.compile(
    r"(?i)(?<![\w@])([@＠])(?=[\w.\\-]*[^\W\d_])(?:\\?\w)(?:\\?[\w.-]){1,29}(?:@[\w.-]+)?"
)
DIGITS = re.compile(
    r"(?<![\w$€£¥.,/=#-])(?:tel:)?(?:\+|00)?\(?\d(?:[ ./()-]{0,2}\d){6,14}(?![\w%]|,\d)"
)
NUMBER = re.compile(  # in this order: international, North American and other national numbers
    r"(?:tel:.*|(?:\+|00)[\d ./()-]{8,})|1?[ .-]?\(?\d{3}\)?[ .-]{0,2}\d{3}[ .-]?\d{4}"
    r"|\(?0\d{1,4}\)?(?:[ -]?\d{2,8}){1,5}(?<=\d)|\(?0\d{1,4}\)? ?/ ?\d{5,8}"
)


def masked(text: str) -> str:
    """Mask the identifiers of people in a text.

    Examples
    --------
    >>> masked("as /u/Some_body said, see example.org/user/Some-body")
    'as /u/[user] said, see example.org/user/[user]'
    >>> masked("@some_body, some.body@example.org or +49 30 1234567")
    '@[user], [e-mail] or [telephone]'
    """
    text = MAIL.sub("[e-mail]", text)
    if re.search("[/%&／⁄∕]", text):
        text = USER.sub(r"\1\2[user]", text)
        text = OWN.sub(r"\1[user]", text)
        text = POST.sub(r"\1[post]", text)
        text = PROFILE.sub(r"\1[user]", text)
    text = HANDLE.sub(r"\1[user]", text)
    return DIGITS.sub(_telephone, text)


def _telephone(match: re.Match[str]) -> str:
    digits = "".join(str(int(c)) if c.isdigit() else c for c in match[0])
    plain = sum(letter.isdigit() for letter in digits)
    is_one = NUMBER.fullmatch(digits) and plain >= (7 if digits[0] in "+t" else 9)
    return "[telephone]" if is_one else match[0]
