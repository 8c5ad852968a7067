"""The script that a language is written in."""

from __future__ import annotations

# Scripts that are several in Unicode, as part of a class in regular expressions.
COMPOUND = {"Hans": "Han", "Hant": "Han", "Jpan": r"Han}\p{Hira}\p{Kana", "Kore": "Hang"}


def script_of(language: str) -> str | None:
    """Return the Unicode name of the script that a language is usually written in (CLDR)."""
    from babel.core import get_global

    tag: str = get_global("likely_subtags").get(language, language)
    code = next((part for part in tag.split("_") if len(part) == 4), None)  # ISO 15924
    return COMPOUND.get(code, code) if code else None
