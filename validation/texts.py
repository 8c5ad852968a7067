"""Checks on the strings in every dataset, column by column.

Strings must be clean: in NFC, without extra spaces, control or invisible characters, markup, or
mojibake. Prose must be in the language of its config, judged by script and function words, and no
text may be in two splits, regardless of case and punctuation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.table import script_of
from plumbline.validation.suite import Params, Table, frames, listed, retrieved

READ = 5_000  # number of evenly spaced texts per config whose language is judged
LETTER = r"\p{L}"
INVISIBLE = (  # joiners are allowed in scripts whose letters join
    r"[\x{AD}\x{200B}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2060}-\x{206F}\x{FEFF}\x{FFF9}-\x{FFFB}]"
    r"|[\p{Latin}\p{Cyrillic}\p{Greek}\p{Han}][\x{200C}\x{200D}]"
)
TAGS = "a|b|blockquote|body|br|div|em|font|h[1-6]|head|html|i|iframe|img|li|meta|ol|p|pre|script|"
TAGS += "span|strong|style|sub|sup|table|td|tr|u|ul"
MARKUP = rf"(?i)</?(?:{TAGS})(?:\s[^<>]*)?/?>|&(?:#\d{{1,7}}|#x[0-9a-f]{{1,6}}|[a-z]{{2,8}}\d?);"
# UTF-8 bytes decoded as Latin-1 or Windows-1252. Letters that often precede such a sign in
# French are counted only if several characters are wrong.
_REST = r"[\x{80}-\x{BF}€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
MOJIBAKE = (
    rf"\x{{FFFD}}|[ÃÂÄÅ]{_REST}|(?:[ÎÏÐÑØÙÚÛ]{_REST}){{2}}|â[\x{{80}}-\x{{83}}€‚]{_REST}"
    rf"|(?:[à-é]{_REST}{_REST}){{2}}|ðŸ{_REST}|ð\x{{9F}}{_REST}"
)
NOTHING = r"^(?:N/A|n/a|#N/A|<NA>|NaN|nan|None|NULL|undefined|\[deleted\]|\[removed\]|[?#-]+)$"
MIXED = r"\p{Latin}[\p{Cyrillic}\p{Greek}]|[\p{Cyrillic}\p{Greek}]\p{Latin}"
CUT = r"(?:…|\.\.\.|[,(\-–&])$"
WORDS = {  # function words that distinguish languages in Latin script
    "cs": "aby ale být by jako je jeho jejich jsou která které který lidé mají měl mělo na nebo "
    "není od podle pro při se si to ve za že",
    "de": "auch auf dem den der die das ein eine für ich ist mit nicht sich sind und von wird zu",
    "en": "and are be been for from has have he her his in is it of not on should that the their "
    "there they this to was we what which who why will with would you",
    "es": "como con de deben debe del el en es está fue hay la las los más muy no para pero por "
    "que se ser sin son su sus también una y",
    "fr": "au aux avec ce cette dans de des du elle en est et il la le les mais nous ou par pas "
    "plus pour que qui sont sur un une vous être",
    "it": "alla anche che con dei della di gli il in la le nel non per più si sono un una è",
    "pt": "ao as com como da das de do dos e em foi mais muito na no não o os para por que ser "
    "são também uma",
}

SPOKEN = "config column language others loud in_its_language few_in_capitals"
ABBREVIATION = 6  # letters
LOUD = 0.2  # maximum share of texts written in capitals
FOREIGN = 0.02  # maximum share of texts judged to be in another language


def tables(schema: Schema, params: Params, folder: Path) -> list[Table]:
    """Count the strings that violate each rule, by config and column."""
    clean, spoken, dates, copies = [], [], [], []
    until = retrieved(folder)
    for config, frame in frames(folder):
        columns = schema.config(config).columns
        texts = [c for c in columns if c.kind == "string"]
        prose = [c.name for c in texts if c.prose in ("text", "lines", "word")]
        split = "split" in {c.name for c in columns}
        wrong = {(c.name, rule): by for c in texts for rule, by in _rules(c).items()}
        sums = frame.select(by.sum().alias("\t".join(key)) for key, by in wrong.items()).row(0)
        for (column, rule), number in zip(wrong, sums, strict=True):
            most = params.damaged_max_share * len(frame)
            first = frame.filter(wrong[column, rule])[column][0] if number else ""
            clean.append((config, column, rule, first[:60], number, number <= most))
        language = _language(config, frame)
        for column in prose if language else ():
            read = frame[:: max(1, len(frame) // READ)]
            judged = read.select(foreign(column, language).mean(), _shouted(column).mean()).row(0)
            strange, loud = (round(share or 0.0, 4) for share in judged)
            fine = strange <= FOREIGN
            spoken.append((config, column, language, strange, loud, fine, loud <= LOUD))
        if "language" in frame:
            named = set(frame["language"].drop_nulls())
            spoken.append((config, "language", language, 0.0, 0.0, named == {language}, True))
        for column in (c.name for c in columns if c.kind == "date32" or c.name == "date"):
            days = frame[column].drop_nulls()
            if days.dtype == pl.String:
                days = days.str.to_date("%Y-%m-%d", strict=False).drop_nulls()
            out = int((~days.is_between(params.dated_from, until)).sum())
            fine = out <= params.odd_max_share * len(frame)
            dates.append((config, column, str(days.min()), str(days.max()), out, fine))
        for column in prose if split else ():
            folded = pl.col(column).str.to_lowercase().str.replace_all(r"[^\p{L}\p{N}]+", "")
            twice = (folded != "") & (pl.col("split").n_unique().over(folded) > 1)
            leak = frame.select(twice.sum()).item()
            most = params.near_max_share * len(frame)
            copies.append((config, column, leak, leak <= most))
    return [
        listed("strings", "config column rule first number unbroken", clean, 5),
        listed("languages-of-texts", SPOKEN, spoken, 5),
        listed("dates", "config column first last outside in_time", dates, 5),
        listed("splits", "config column near_copies split_from_each_other", copies, 3),
    ]


def _rules(column: Column) -> dict[str, pl.Expr]:
    """Return expressions that are true for strings that violate a rule, by name of the rule."""
    text, lines = pl.col(column.name), column.prose == "lines"
    single = text.str.replace_all(r"[^\S\n]+" if lines else r"\s+", " ")
    single = single.str.replace_all(r" ?\n[ \n]*", "\n")  # only ``lines`` may contain line breaks
    wrong = {
        "single_spaces": single.str.strip_chars() != text,
        "composed": text != text.str.normalize("NFC"),
        "no_control_character": text.str.contains(r"[^\P{Cc}\n]" if lines else r"\p{Cc}"),
        "nothing_invisible": text.str.contains(INVISIBLE),
        "no_markup": text.str.contains(MARKUP),
        "no_mojibake": text.str.contains(MOJIBAKE),
        "filled": text == "",
        "no_stand_in": text.str.contains(NOTHING),
        "has_a_letter": ~text.str.contains(LETTER),
        "not_cut": text.str.contains(CUT),
        "one_script_a_word": text.str.contains(MIXED),
        "no_address": text.str.contains(r"://|^www\.|\w@\w"),
        "no_item": text.str.contains(r"^Q[1-9]\d+$"),
    }
    applies = dict.fromkeys(("no_stand_in", "has_a_letter", "no_item"), column.prose is not None)
    applies |= {"filled": not column.empty, "not_cut": column.prose == "name"}
    applies |= dict.fromkeys(("one_script_a_word", "no_address"), column.prose in ("name", "word"))
    return {rule: by for rule, by in wrong.items() if applies.get(rule, True)}


def _language(config: str, frame: pl.DataFrame) -> str:
    """Return the language in the name of a config, or else the most frequent one in its rows."""
    last = config.rpartition("-")[2]
    if re.fullmatch(r"[a-z]{2}", last) and script_of(last):
        return last
    if "language" in frame:
        return str(frame["language"].fill_null("").mode().sort()[0])
    counts = frame.head(READ).select(_counts("text")).sum().row(0) if "text" in frame else ()
    return max(zip(counts, WORDS, strict=True))[1] if any(counts) else ""


@lru_cache
def foreign(column: str, language: str) -> pl.Expr:
    """Return True for a text in another script or (in Latin script) another language."""
    text = pl.col(column)
    letters = text.str.count_matches(LETTER)
    script = script_of(language)
    in_script = text.str.count_matches(rf"[\p{{{script}}}]") if script else letters
    strange = 2 * in_script < letters
    if language not in WORDS:
        return strange
    counts = dict(zip(WORDS, _counts(column), strict=True))
    most = pl.max_horizontal(by for name, by in counts.items() if name != language)
    return strange | ((most >= 2) & (most > counts[language]))


def _shouted(column: str) -> pl.Expr:
    """Return True for a text in capitals that is longer than an abbreviation."""
    text = pl.col(column)
    capitals = (text == text.str.to_uppercase()) & (text != text.str.to_lowercase())
    return capitals & (text.str.count_matches(LETTER) > ABBREVIATION)


def _counts(column: str) -> list[pl.Expr]:
    """Count the function words of each language in a text."""
    low = pl.col(column).str.to_lowercase()
    either = ((name, "|".join(words.split())) for name, words in WORDS.items())
    return [low.str.count_matches(rf"\b(?:{words})\b").alias(name) for name, words in either]
