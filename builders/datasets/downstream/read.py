"""Readers for texts that have a class and groups that they target or come from."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.readers.archives import unpacked
from plumbline.builders.readers.declared import FORMAT, Terms
from plumbline.builders.readers.table import decoded, json_lines, literal, normal, records

SPLITS = ("train", "validation", "test")
Split = Literal["train", "validation", "test"]
ALL = "all"
DELIMITERS = {"csv": ",", "tsv": "\t"}
Key = Literal["id", "text", "label", "groups", "source", "split", "together"]


class Corpus(Terms):
    """Texts from one source for one task, and their terms of use."""

    language: str = Field(pattern="^[a-z]{2,3}$", description="language of the texts")
    format: Literal["csv", "tsv", "jsonl"] = Field(
        validation_alias=FORMAT, description="format of the files"
    )
    parts: dict[Literal["train", "validation", "test", "all"], str] = Field(
        min_length=1,
        description="address or path of each split, or FILE.zip#MEMBER in an archive; `all` is a "
        "single file without splits or with a column of splits",
    )
    columns: dict[Key, str] = Field(
        description="column or key in the file for each field; text and label are required. "
        "Texts with equal `together` stay in one split when splits are drawn"
    )
    head: list[str] = Field(
        default_factory=list, description="csv, tsv: names of the columns if the file has no header"
    )
    quoted: bool = Field(
        True, description="csv, tsv: whether quotes enclose fields; if not, they are text"
    )
    group_separator: str = Field("", description="separator of groups; empty for a single group")
    label_separator: str = Field("", description="separator of labels; empty for a single label")
    splits: dict[str, Split] = Field(
        default_factory=dict,
        description="split for each value in the column of splits that is not a split's name",
    )

    @model_validator(mode="after")
    def _told(self) -> Corpus:
        if not {"text", "label"} <= set(self.columns):
            raise ValueError("columns must include text and label")
        if ALL in self.parts and len(self.parts) > 1:
            raise ValueError("parts: a file with all splits must be the only one")
        if "split" in self.columns and ALL not in self.parts:
            raise ValueError("columns: split requires one file with all splits")
        if self.head and (lost := sorted(set(self.columns.values()) - set(self.head))):
            raise ValueError(f"head: has no column {', '.join(lost)}")
        return self

    def path(self, config: str, part: str) -> str:
        """Return the path of a part's file in the snapshot; archives are not unpacked."""
        address, _, member = self.parts[part].partition("#")  # type: ignore[index]
        if member:
            return f"{config}/{address.rpartition('/')[2]}"
        return f"{config}/{part}.{self.format}"


class Text(NamedTuple):
    """A normalised text, and its annotations in the source."""

    id: str
    text: str
    label: str  # as in the source
    groups: tuple[str, ...]  # names from the source
    source: str  # "" if there is no such column
    split: str  # "" if none is stated
    together: str  # unit of the text; its id if there is no such column


def read(corpus: Corpus, part: str, body: bytes) -> list[Text]:
    """Return the texts of a part, in order; its file may be an archive.

    Rows with the same id that differ only in their groups are merged.
    """
    member = corpus.parts[part].partition("#")[2]  # type: ignore[index]
    try:
        text = decoded(unpacked(body, member) if member else body)
    except ValueError as error:
        raise ValueError(f"{part}: {error}") from error
    rows: Iterator[tuple[int, dict[str, Any]]]
    if corpus.format == "jsonl":
        rows = json_lines(text, corpus.columns, "text")
    else:
        delimiter = DELIMITERS[corpus.format]
        rows = records(text, corpus.columns, delimiter, corpus.head, quoted=corpus.quoted)
    texts: dict[str, Text] = {}
    for number, (line, row) in enumerate(rows, start=1):
        try:
            made = _text(corpus, part, number, row)
        except ValueError as error:
            raise ValueError(f"{part}, line {line}: {error}") from error
        before = texts.get(made.id, made)
        if before._replace(groups=()) != made._replace(groups=()):
            raise ValueError(f"{part}, line {line}: id {made.id!r} is repeated with another text")
        groups = dict.fromkeys([*before.groups, *made.groups])
        texts[made.id] = made._replace(groups=tuple(groups))
    if not texts:
        raise ValueError(f"{part}: the file has no texts")
    return list(texts.values())


def _text(corpus: Corpus, part: str, number: int, row: dict[str, Any]) -> Text:
    values = {key: "" if v is None else v for key, v in row.items()}
    plain = {key: str(value).strip() for key, value in values.items() if key != "groups"}
    ident, split = plain.get("id") or f"{part}-{number}", part
    if part == ALL:
        stated = plain.get("split", "")
        split = corpus.splits.get(stated, stated)
    if split not in ("", *SPLITS):
        raise ValueError(f"split {split!r} is none of {', '.join(SPLITS)}; map it under splits")
    text, groups = clean(str(values["text"])), _groups(corpus, values.get("groups", ""))
    together = plain.get("together") or ident
    return Text(ident, text, plain["label"], groups, plain.get("source", ""), split, together)


def clean(text: str) -> str:
    r"""Resolve escapes in web exports, normalise to NFC and single spaces, drop control characters.

    Examples
    --------
    >>> clean("Fish &amp; chips \x90")
    'Fish & chips'
    """
    letters = (c for c in text if c.isspace() or unicodedata.category(c) != "Cc")
    return normal("".join(letters))


def _groups(corpus: Corpus, value: Any) -> tuple[str, ...]:
    """Return the groups in a field: a list, a list literal in Python or JSON, or a text."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = literal(value.strip())
        except ValueError as error:
            raise ValueError(f"groups: {value!r} is not a list") from error
    elif isinstance(value, str):
        value = value.split(corpus.group_separator) if corpus.group_separator else [value]
    if not isinstance(value, list) or not all(isinstance(group, str) for group in value):
        raise ValueError(f"groups: {value!r} is not a list of texts")
    return tuple(dict.fromkeys(filter(None, map(str.strip, value))))
