"""The script that a language is written in."""

from __future__ import annotations

# ISO 15924 code of a script -> its name in Unicode regular expressions
SCRIPTS = {
    "Arab": "Arabic",
    "Armn": "Armenian",
    "Beng": "Bengali",
    "Cyrl": "Cyrillic",
    "Deva": "Devanagari",
    "Ethi": "Ethiopic",
    "Geor": "Georgian",
    "Grek": "Greek",
    "Gujr": "Gujarati",
    "Guru": "Gurmukhi",
    "Hans": "Han",
    "Hant": "Han",
    "Hebr": "Hebrew",
    "Jpan": "Han}\\p{Hiragana}\\p{Katakana",
    "Knda": "Kannada",
    "Kore": "Hangul",
    "Latn": "Latin",
    "Mlym": "Malayalam",
    "Taml": "Tamil",
    "Telu": "Telugu",
    "Thai": "Thai",
}


def script_of(language: str) -> str | None:
    """Return the Unicode name of the script that a language is usually written in (CLDR)."""
    from babel.core import get_global

    tag: str = get_global("likely_subtags").get(language, language)
    return next((SCRIPTS[part] for part in tag.split("_") if part in SCRIPTS), None)
