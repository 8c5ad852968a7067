"""Dataset ``words``: adjectives and verbs from Universal Dependencies treebanks, with counts.

Stańczak et al. (2023), section 3 (word lists) and supplement S2 (word order).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Literal

from pydantic import Field, model_validator

from plumbline.builders.core.errors import reading
from plumbline.builders.core.params import LanguageParams
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers.spelling import lowered
from plumbline.builders.readers.table import decoded, lines

POS = ("ADJ", "VERB")
PLACES = ("before", "after")
FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
GOES = "goeswith"  # the relation of a later part of a word to its first part

SOURCE = "ud"
COLUMNS = (
    Column("form", "string", "the word form in running text, NFC; see Normalisation", prose="word"),
    Column("lemma", "string", "dictionary form in the treebank, NFC", prose="word"),
    Column("pos", "label", "universal part of speech", labels=POS),
    Column("count", "int64", "number of tokens in all treebanks", minimum=1),
    Column("treebanks", "strings", "files in which the word occurs"),
    Column("treebank_counts", "integers", "number of tokens in each of these files, in this order"),
    Column(
        "place",
        "label",
        "position of this part of speech relative to a name, from the language's word order (the "
        "paper's supplement S2, or the params for other languages)",
        labels=PLACES,
    ),
)
SCHEMA = Schema(COLUMNS, key=("form", "lemma", "pos"))
COUNTS = ("pos place",)  # columns tabulated in the card


class Order(Section):
    """Word order of a language."""

    adjective: Literal["Adj-N", "N-Adj"] = Field(description="order of adjective and noun")
    clause: Literal["SVO", "SOV", "VSO"] = Field(description="order of subject, verb and object")

    def place(self, pos: str) -> str:
        """Return the position of this part of speech: before or after the name."""
        first = self.adjective == "Adj-N" if pos == "ADJ" else self.clause == "VSO"
        return "before" if first else "after"


class Params(LanguageParams):
    """The snapshot, and the word order of each language."""

    word_order: dict[str, Order] = Field(
        description="word order of each language, from the paper's supplement S2"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Params:
        missing = sorted(set(self.languages) - set(self.word_order))
        if missing:
            raise ValueError(f"no word_order for {', '.join(missing)}")
        return self


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per form, lemma and part of speech, sorted; count rejects by reason."""
    for language in params.languages:
        words_of_language: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
        rejects: Counter[tuple[str, str]] = Counter()
        for name in snapshot.names(f"{language}/"):
            file = name.split("/", 1)[1]
            with reading(snapshot.folder / name, "fetch it again"):
                for written, stated, upos, problem in words(snapshot.read(name), language):
                    form, lemma = normalise(written, stated, language)
                    if upos not in POS:
                        rejects[file, f"part of speech {upos}"] += 1
                    elif problem:
                        rejects[file, problem] += 1
                    elif not form or not all(map(_letterlike, form)):
                        rejects[file, "not a plain word"] += 1
                    else:
                        words_of_language[form, lemma, upos][file] += 1
        for (file, reason), count in sorted(rejects.items()):
            yield Reject(language, file, reason, number=count)
        for (form, lemma, upos), counts in sorted(words_of_language.items()):
            values = {
                "form": form,
                "lemma": lemma,
                "pos": POS.index(upos),
                "count": counts.total(),
                "treebanks": sorted(counts),
                "treebank_counts": [counts[file] for file in sorted(counts)],
                "place": PLACES.index(params.word_order[language].place(upos)),
            }
            yield Row(language, values)


def words(body: bytes, language: str = "") -> Iterator[tuple[str, str, str, str]]:
    """Yield each syntactic word of a CoNLL-U treebank: form, lemma, part of speech, problem.

    The problem is "" unless the annotation states that the form is no word of the language: it is
    misspelt, a part of a word that was written apart, or foreign. Ranges (multiword tokens) and
    empty nodes are left out. Raises ValueError, naming the position and the problem.
    """
    rows = lines(decoded(body))
    if len(rows) < 2 or rows[-1]:
        raise ValueError("truncated: CoNLL-U must end with a blank line")
    sentence: list[list[str]] = []
    for number, line in enumerate(rows, start=1):
        fields = line.split("\t")
        if not line.strip():
            yield from _syntactic(sentence, language)
            sentence = []
        elif not line.startswith("#") and len(fields) != len(FIELDS):
            raise ValueError(f"line {number}: {len(fields)} columns, not {len(FIELDS)}")
        elif not line.startswith("#") and not re.fullmatch(r"\d+[-.]\d+", fields[0]):
            sentence.append(fields)
            if fields[0] != str(len(sentence)):
                raise ValueError(f"line {number}: id {fields[0]!r} instead of {len(sentence)}")


def _syntactic(sentence: list[list[str]], language: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the form, the lemma, the part of speech and the problem of each word of a sentence."""
    apart = {number for row in sentence if row[7] == GOES for number in (row[0], row[6])}
    for number, form, lemma, upos, _, feats, _, _, _, misc in sentence:
        facts, tongue = feats.split("|"), re.search(r"(?:^|\|)Lang=([^|]+)", misc)
        foreign = "Foreign=Yes" in facts or (tongue and tongue[1] != language)
        problem = "misspelt" if "Typo=Yes" in facts else "foreign" if foreign else ""
        yield form, lemma, upos, "part of a word written apart" if number in apart else problem


def normalise(form: str, lemma: str, language: str = "") -> tuple[str, str]:
    """Normalise a word for counting.

    Words are in NFC. Capitals that are due to the position in a sentence are removed: a form is
    lower-cased unless its lemma begins with a capital (as German nouns or English "American" do). A
    missing lemma is replaced with the lower-cased form.
    """
    form = unicodedata.normalize("NFC", form)
    small = lowered(form, language)
    lemma = small if lemma == "_" else unicodedata.normalize("NFC", lemma)
    return (form if lemma[:1] != lowered(lemma[:1], language) else small), lemma


def _letterlike(character: str) -> bool:
    """Return True for letters, their marks and joiners, but not for digits or punctuation."""
    return unicodedata.category(character)[0] in "LM" or character in "\u200c\u200d"
