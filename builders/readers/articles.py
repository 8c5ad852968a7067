"""Corpora of news articles: the declaration of their files, and a reader for them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from plumbline.builders.core.errors import reading
from plumbline.builders.core.params import Name
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import Snapshot, hash64
from plumbline.builders.readers.archives import Format, records
from plumbline.builders.readers.declared import Terms, declared

LEANINGS = ("left", "center", "right", "unknown")
EARLIEST = date(1900, 1, 1)  # earlier dates, such as 0001-11-30, are errors
Leaning = Literal["left", "center", "right", "unknown"]


class Article(NamedTuple):
    """An article, unchanged from its source."""

    outlet: str
    text: str
    article: str
    topic: str
    leaning: str
    published: str


class Columns(Section):
    """Names of the columns in the file, by meaning; None if the file has no such column."""

    outlet: str = Field(description="name of the outlet")
    text: str = Field(description="text of the article")
    leaning: str | None = Field(None, description="political leaning")
    date: str | None = Field(None, description="date of publication")
    topic: str | None = Field(None, description="topic")
    article: str | None = Field(None, description="id; if missing, derived from outlet and text")


class Corpus(Terms):
    """The articles in one file, and their terms of use."""

    name: Name = Field(description="name of the corpus")
    address: str = Field(description="address of the file, or a path that begins with / or ./")
    format: Format = Field(description="jsons: a zip archive of JSON files with one article each")
    columns: Columns = Field(description="names of the columns or keys in the file")
    dates: list[str] = Field(
        ["%Y-%m-%d"], description="date formats (strptime), tried in this order"
    )
    leanings: dict[str, Leaning] = Field(
        {"left": "left", "center": "center", "right": "right"},
        description="leaning for each value of the leaning column; other values mean unknown",
    )

    def path(self, language: str) -> str:
        """Return the path of the corpus's file in the snapshot."""
        return f"{language}/{self.name}.{'zip' if self.format == 'jsons' else self.format}"

    def articles(self, file: Path) -> Iterator[Article]:
        """Yield the articles in the corpus's file."""
        columns = {n: c for n, c in self.columns.model_dump().items() if c is not None}
        for record in records(file, self.format, columns):
            made = hash64(f"{record['outlet']}\n{record['text']}")
            identity = record.get("article") or f"{made:016x}"
            yield Article(
                record["outlet"].strip(),
                record["text"],
                f"{self.name}/{identity}",
                record.get("topic", "").strip(),
                self.leanings.get(record.get("leaning", ""), "unknown"),
                record.get("date", ""),
            )


def every(snapshot: Snapshot, language: str) -> Iterator[tuple[Corpus, Article]]:
    """Yield the articles in a language from a snapshot, each with its corpus, sorted by corpus."""
    corpora = declared(snapshot, Corpus, "corpora", language)
    for corpus in sorted(corpora, key=lambda corpus: corpus.name):
        path = snapshot.folder / corpus.path(language)
        with reading(path, "fetch it again"):
            for article in corpus.articles(path):
                yield corpus, article


def paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs of a text, in NFC and with single spaces.

    Examples
    --------
    >>> paragraphs(" It  rains.\r\n\n\tStill. ")
    ['It rains.', 'Still.']
    """
    lines = unicodedata.normalize("NFC", text).splitlines()
    return [line for line in (" ".join(line.split()) for line in lines) if line]


def published(text: str, formats: list[str], until: date) -> date | None:
    """Parse a date; return None if it is missing, unreadable or impossible.

    Examples
    --------
    >>> published("9/16/17", ["%Y-%m-%d", "%m/%d/%y"], date(2020, 1, 1))
    datetime.date(2017, 9, 16)
    >>> published("0001-11-30", ["%Y-%m-%d"], date(2020, 1, 1)) is None
    True
    """
    for layout in formats:
        try:
            day = datetime.strptime(text.strip(), layout).date()  # noqa: DTZ007 - a day, no time
        except ValueError:
            continue
        return day if EARLIEST <= day <= until else None
    return None
