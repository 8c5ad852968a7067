"""Dataset ``targets``: texts from the domain of a classifier, with their gold classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.errors import reading
from plumbline.builders.core.params import Name, SnapshotParams
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.readers.declared import FORMAT, Terms, declared
from plumbline.builders.readers.table import decoded, json_lines, normal, records, tweeteval

COLUMNS = (
    Column("id", "string", "corpus, split, and id or line number of the text"),
    Column("text", "string", "the text; see Normalisation", prose="text"),
    Column("label", "string", "gold class of the text; may be empty", empty=True),
    Column("task", "string", "classification task"),
    Column("language", "string", "language of the text"),
    Column("split", "string", "split in its corpus; may be empty", empty=True),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("id",))
COUNTS = ("split label",)  # columns tabulated in the card


class Params(SnapshotParams):
    """The snapshot, and the selection of texts."""

    configs: list[str] = Field(
        min_length=1, description="task and language, e.g. sentiment-en; one config for each"
    )


class Corpus(Terms):
    """Texts from one source for one task and language, and their terms of use."""

    name: Name = Field(description="name of the corpus")
    task: Name = Field(description="classification task of the texts")
    language: str = Field(pattern="^[a-z]{2,3}$", description="language of the texts")
    format: Literal["tweeteval", "tsv", "jsonl"] = Field(
        validation_alias=FORMAT,
        description="tweeteval: one text per line; the number of its label is in another file",
    )
    parts: dict[Name, str] = Field(
        min_length=1,
        description="address or path of each split; for tweeteval, {what} stands for text and "
        "labels",
    )
    mapping: str = Field("", description="tweeteval: file that maps label numbers to names")
    columns: dict[Literal["id", "text", "label", "split"], str] = Field(
        {"text": "text", "label": "label"},
        description="tsv, jsonl: column or key in the file for each field; text is required",
    )
    labels: dict[str, str] = Field(
        default_factory=dict, description="class for each label that the file spells differently"
    )

    @model_validator(mode="after")
    def _told(self) -> Corpus:
        if self.format == "tweeteval":
            wrong = [part for part, pattern in self.parts.items() if "{what}" not in pattern]
            if wrong or not self.mapping:
                raise ValueError(f"{self.name}: needs a mapping, and {{what}} in every part")
        elif "text" not in self.columns:
            raise ValueError(f"{self.name}: columns must include text")
        return self

    @property
    def config(self) -> str:
        """Config of the corpus: task and language."""
        return f"{self.task}-{self.language}"

    def files(self, part: str) -> dict[str, str]:
        """Return the addresses of a split's files, keyed by path in the snapshot."""
        stem, address = f"{self.config}/{self.name}", self.parts[part]
        if self.format != "tweeteval":
            return {f"{stem}/{part}.{self.format}": address}
        return {
            f"{stem}/{part}_text.txt": address.replace("{what}", "text"),
            f"{stem}/{part}_labels.txt": address.replace("{what}", "labels"),
            f"{stem}/mapping.txt": self.mapping,
        }


class Tagged(NamedTuple):
    """A normalised text, and its class; ``split`` is empty if the file has none."""

    id: str
    text: str
    label: str
    split: str


def texts(corpus: Corpus, part: str, *bodies: bytes) -> Iterator[Tagged]:
    """Yield the texts of a split, in the order of the file."""
    rows: Iterable[dict[str, Any]]
    if corpus.format == "tweeteval":
        rows = ({"text": text, "label": label} for text, label in tweeteval(*bodies))
    elif corpus.format == "tsv":
        rows = (row for _, row in records(decoded(bodies[0]), corpus.columns, "\t"))
    else:
        rows = (row for _, row in json_lines(decoded(bodies[0]), corpus.columns, "text"))
    ids: set[str] = set()
    for number, row in enumerate(rows, start=1):
        values = {key: "" if value is None else str(value) for key, value in row.items()}
        ident = values.get("id") or str(number)
        if ident in ids:
            raise ValueError(f"{part}: id {ident!r} is repeated")
        ids.add(ident)
        label = values.get("label", "").strip()
        label = corpus.labels.get(label, label)
        yield Tagged(ident, normal(values["text"]), label, values.get("split", ""))
    if not ids:
        raise ValueError(f"{part}: the file has no texts")


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per text, in the order of the corpora; the texts in a config are unique."""
    declared_corpora = declared(snapshot, Corpus, "corpora")
    for config in params.configs:
        seen: dict[str, str] = {}
        for corpus in (corpus for corpus in declared_corpora if corpus.config == config):
            for part in sorted(corpus.parts):
                yield from _rows(snapshot, corpus, part, seen)


def _rows(
    snapshot: Snapshot, corpus: Corpus, part: str, seen: dict[str, str]
) -> Iterator[Row | Reject]:
    where = f"{snapshot.folder}: {corpus.config}/{corpus.name}/{part}"
    facts: dict[str, object] = {"task": corpus.task, "language": corpus.language}
    facts["redistributable"] = corpus.redistribute
    with reading(where, "fix it or its declaration under sources.targets, and fetch again"):
        for text in texts(corpus, part, *(snapshot.read(path) for path in corpus.files(part))):
            split, reason = text.split or part, ""
            key = f"{corpus.name}/{split}/{text.id}"
            if not text.text:
                reason = "no text"
            elif text.text in seen:
                equal = seen[text.text] == text.label
                reason = "the same text again" if equal else "the same text with another label"
            if reason:
                yield Reject(corpus.config, key, reason)
            else:
                seen[text.text] = text.label
                yield Row(corpus.config, text._asdict() | {"id": key, "split": split} | facts)
