"""Texts with a class each, in TweetEval's layout, as TSV, or as JSON lines."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.params import Params as Section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
NAME = r"^[a-z0-9][a-z0-9-]*$"


class Corpus(Section):
    """Texts of one source for one task and language, and on what terms they may be used."""

    name: str = Field(pattern=NAME, description="name of the corpus")
    task: str = Field(pattern=NAME, description="what the texts are classified for")
    language: str = Field(pattern="^[a-z]{2,3}$", description="their language")
    layout: Literal["tweeteval", "tsv", "jsonl"] = Field(
        description="tweeteval: a text a line, its label's number in the same line of another file"
    )
    parts: dict[str, str] = Field(
        min_length=1,
        description="for each split its file or address; tweeteval: with {what} for text and label",
    )
    mapping: str = Field("", description="tweeteval: file with each number and its name")
    columns: dict[Literal["id", "text", "label", "split"], str] = Field(
        {"text": "text", "label": "label"},
        description="tsv, jsonl: its head or key for each of ours; text is needed",
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="our name of a class for each of theirs that differs"
    )
    licence: str = Field(min_length=1, description="as its authors state it")
    citation: str = Field(min_length=1, description="what to cite")
    redistribute: bool = Field(False, description="whether the terms let its texts be published")

    @model_validator(mode="after")
    def _told(self) -> Corpus:
        if self.layout == "tweeteval":
            wrong = [part for part, place in self.parts.items() if "{what}" not in place]
            if wrong or not self.mapping:
                raise ValueError(f"{self.name}: needs a mapping, and {{what}} in every part")
        elif "text" not in self.columns:
            raise ValueError(f"{self.name}: columns must tell where the text is")
        bad = [part for part in self.parts if not re.match(NAME, part)]
        if bad:
            raise ValueError(
                f"{self.name}: {bad} cannot be names of splits; use letters, - and digits"
            )
        return self

    @property
    def config(self) -> str:
        """Its config: task and language."""
        return f"{self.task}-{self.language}"

    def places(self, part: str) -> list[str]:
        """Return where the files of a split are."""
        place = self.parts[part]
        if self.layout != "tweeteval":
            return [place]
        return [place.replace("{what}", "text"), place.replace("{what}", "labels"), self.mapping]

    def paths(self, part: str) -> list[str]:
        """Return the files of the snapshot that keep a split, as :meth:`places` has them."""
        stem = f"{self.config}/{self.name}"
        if self.layout != "tweeteval":
            return [f"{stem}/{part}.{self.layout}"]
        return [f"{stem}/{part}_text.txt", f"{stem}/{part}_labels.txt", f"{stem}/mapping.txt"]


class Tagged(NamedTuple):
    """A text, made normal, and its class; ``split`` is empty where the file tells none."""

    id: str
    text: str
    label: str
    split: str


def texts(corpus: Corpus, part: str, bodies: Sequence[bytes]) -> Iterator[Tagged]:
    """Yield the texts of a split, in their order.

    Raises
    ------
    ValueError
        With what is wrong and where.
    """
    found = [_decoded(body) for body in bodies]
    if corpus.layout == "tweeteval":
        rows = _tweeteval(*found)
    elif corpus.layout == "tsv":
        rows = _tsv(corpus, found[0])
    else:
        rows = _jsonl(corpus, found[0])
    number = 0
    ids: set[str] = set()
    for number, row in enumerate(rows, start=1):
        ident = row.get("id") or str(number)
        if ident in ids:
            raise ValueError(f"{part}: id {ident!r} a second time")
        ids.add(ident)
        label = row.get("label", "").strip()
        label = corpus.labels.get(label, label)
        yield Tagged(ident, normal(row["text"]), label, row.get("split", ""))
    if not number:
        raise ValueError(f"{part}: no text in it")


def _decoded(body: bytes) -> str:
    try:
        text = body.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise ValueError("not UTF-8") from error
    if text.lstrip()[:15].lower().startswith(("<!doctype", "<html")):
        raise ValueError("a web page in place of the file")
    return text


def _tweeteval(text: str, labels: str, mapping: str) -> Iterator[dict[str, str]]:
    names = {}
    for number, line in enumerate(_lines(mapping), start=1):
        key, tab, name = line.partition("\t")
        if not tab or not key.strip().isdecimal() or not name.strip():
            raise ValueError(f"mapping, line {number}: not a number, a tab and a name")
        names[key.strip()] = name.strip()
    rows, keys = _lines(text), _lines(labels)
    if len(rows) != len(keys):
        raise ValueError(f"{len(rows)} texts, but {len(keys)} labels")
    for at, (row, key) in enumerate(zip(rows, keys, strict=True), start=1):
        if key.strip() not in names:
            raise ValueError(f"labels, line {at}: {key!r} is not in the mapping")
        yield {"text": row, "label": names[key.strip()]}


def _tsv(corpus: Corpus, text: str) -> Iterator[dict[str, str]]:
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter="\t")
    lacking = sorted(set(corpus.columns.values()) - set(rows.fieldnames or ()))
    if lacking:
        raise ValueError(f"line 1: no column {', '.join(lacking)}")
    for row in rows:
        if None in row or None in row.values():
            raise ValueError(f"line {rows.line_num}: not as many fields as the head has")
        yield {key: row[column] for key, column in corpus.columns.items()}


def _jsonl(corpus: Corpus, text: str) -> Iterator[dict[str, str]]:
    for number, line in enumerate(_lines(text), start=1):
        try:
            row: Any = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: not JSON") from error
        wanted = corpus.columns["text"]
        if not isinstance(row, dict) or not isinstance(row.get(wanted), str):
            raise ValueError(  # noqa: TRY004
                f"line {number}: not a JSON object with a text {wanted!r}"
            )
        values = {key: row.get(column) for key, column in corpus.columns.items()}
        yield {key: "" if value is None else str(value) for key, value in values.items()}


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")  # a text may hold other line separators


def normal(text: str) -> str:
    r"""Undo the escapes of web exports; NFC, single spaces.

    Examples
    --------
    >>> normal("Fish &amp; chips\\u002c  it\\u2019s fine ")
    'Fish & chips, it’s fine'
    """
    text = html.unescape(ESCAPES.sub(_characters, text))
    return " ".join(unicodedata.normalize("NFC", text).split())


def _characters(found: re.Match[str]) -> str:
    """Resolve a run of escapes as one, since a pair of surrogates is one character."""
    units = bytes.fromhex(found[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")
