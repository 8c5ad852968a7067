"""Corpora of news articles: how a file of them is declared, and read one by one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from builders.lib.params import Params as Section
from builders.lib.records import ENDINGS, Format, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LEANINGS = ("left", "center", "right", "unknown")
Leaning = Literal["left", "center", "right", "unknown"]


class Article(NamedTuple):
    """An article as its source has it."""

    outlet: str
    text: str
    article: str
    topic: str
    leaning: str
    published: str


class Columns(Section):
    """Which column of the file is what; what it has not is left out."""

    outlet: str = Field(description="name of the outlet")
    text: str = Field(description="text of the article")
    leaning: str | None = Field(None, description="political leaning")
    date: str | None = Field(None, description="date of publication")
    topic: str | None = Field(None, description="topic")
    article: str | None = Field(None, description="id; else one is made of outlet and text")


class Corpus(Section):
    """Articles of one file, and on what terms they may be used."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="name of the corpus")
    address: str = Field(description="address of the file")
    format: Format = Field(description="jsons: a zip archive of JSON files, an article each")
    columns: Columns = Field(description="names of its columns, or of the keys of its objects")
    dates: list[str] = Field(
        ["%Y-%m-%d"], description="how dates are written (strptime), tried in this order"
    )
    leanings: dict[str, Leaning] = Field(
        {"left": "left", "center": "center", "right": "right"},
        description="leaning for each value of its column; others are unknown",
    )
    licence: str = Field(min_length=1, description="terms of the texts")
    citation: str = Field(min_length=1, description="what to cite")
    redistribute: bool = Field(False, description="whether the terms let its texts be published")

    def path(self, language: str) -> str:
        """Return the file of the snapshot that keeps it."""
        return f"{language}/{self.name}.{ENDINGS[self.format]}"

    def articles(self, file: Path) -> Iterator[Article]:
        """Yield the articles of its file.

        Raises
        ------
        ValueError
            With what is wrong and where.
        """
        wanted = {n: c for n, c in self.columns.model_dump().items() if c is not None}
        for record in records(file, self.format, wanted):
            own = record.get("article") or _made(record["outlet"], record["text"])
            yield Article(
                record["outlet"].strip(),
                record["text"],
                f"{self.name}/{own}",
                record.get("topic", "").strip(),
                self.leanings.get(record.get("leaning", ""), "unknown"),
                record.get("date", ""),
            )


def _made(outlet: str, text: str) -> str:
    return hashlib.blake2b(f"{outlet}\n{text}".encode(), digest_size=8).hexdigest()
