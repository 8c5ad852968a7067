"""Dataset ``targets``: texts of the domain that a classifier is used on, with their gold class."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.describe import frames, page, table
from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.declared import declared
from plumbline.builders.readers.table import decoded, json_lines, records
from plumbline.builders.readers.tweeteval import normal, tweeteval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot

NAME = r"^[a-z0-9][a-z0-9-]*$"

SCHEMA = Schema(
    columns=(
        Column("id", "string", "corpus, split and line or id of the text"),
        Column("text", "string", "the text; see Normalisation", role="tracked"),
        Column("label", "string", "its gold class; may be empty", role="tracked"),
        Column("task", "string", "what it is classified for"),
        Column("language", "string", "its language"),
        Column("split", "string", "part of its corpus; may be empty"),
        Column("redistributable", "bool", "no terms of its source forbid to publish the row"),
    ),
    key=("id",),
    unit=("text", "texts"),
)


class Params(Section):
    """The snapshot to build from, and which of its texts."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the dataset")
    source: str = Field("targets", pattern="^targets$", description="client of the snapshot")
    snapshot: str = Field(description="folder of the snapshot")
    configs: list[str] = Field(
        min_length=1, description="task and language, e.g. sentiment-en; one config for each"
    )
    splits: list[str] = Field(default_factory=list, description="parts wanted; empty: all")


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
    """Yield the texts of a split, in their order."""
    rows: Iterable[dict[str, Any]]
    if corpus.layout == "tweeteval":
        rows = ({"text": text, "label": label} for text, label in tweeteval(*bodies))
    elif corpus.layout == "tsv":
        found = records(decoded(bodies[0]), corpus.columns, "\t", strict=False)
        rows = (row for _, row in found)
    else:
        rows = (row for _, row in json_lines(decoded(bodies[0]), corpus.columns, "text"))
    number = 0
    ids: set[str] = set()
    for number, row in enumerate(rows, start=1):
        values = {key: "" if value is None else str(value) for key, value in row.items()}
        ident = values.get("id") or str(number)
        if ident in ids:
            raise ValueError(f"{part}: id {ident!r} a second time")
        ids.add(ident)
        label = values.get("label", "").strip()
        label = corpus.labels.get(label, label)
        yield Tagged(ident, normal(values["text"]), label, values.get("split", ""))
    if not number:
        raise ValueError(f"{part}: no text in it")


def wanted(params: Params) -> list[str]:
    """Return the configs that must be there."""
    return params.configs


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per text, in the order of its corpus; a text is there once in a config."""
    otherwise = "declares no readable corpora; fetch it again"
    every = declared(snapshot, Corpus, "corpora", otherwise=otherwise)
    for config in params.configs:
        corpora = [corpus for corpus in every if corpus.config == config]
        if not corpora:
            raise Problem(
                f"{snapshot.folder}: declares no corpus for {config!r}; add one under "
                "sources.targets.corpora and fetch, or take it out of datasets.targets.configs"
            )
        seen: dict[str, str] = {}
        for corpus in corpora:
            for part in sorted(corpus.parts):
                asked = not params.splits or part in params.splits
                yield from _rows(snapshot, corpus, part, seen, asked=asked)


def _rows(
    snapshot: Snapshot, corpus: Corpus, part: str, seen: dict[str, str], *, asked: bool
) -> Iterator[Row | Reject]:
    try:
        found = texts(corpus, part, [snapshot.read(path) for path in corpus.paths(part)])
        for text in found:
            place = f"{corpus.name}/{text.split or part}/{text.id}"
            if not asked:
                yield Reject(corpus.config, place, "of a split not asked for")
            elif not text.text:
                yield Reject(corpus.config, place, "no text")
            elif text.text in seen:
                same = seen[text.text] == text.label
                reason = "the same text again" if same else "the same text with another label"
                yield Reject(corpus.config, place, reason)
            else:
                seen[text.text] = text.label
                yield Row(corpus.config, _row(corpus, part, place, text._asdict()))
    except (ValueError, OSError) as error:
        raise Problem(
            f"{snapshot.folder}: {corpus.config}/{corpus.name}/{part} cannot be read ({error}); "
            "mend it, or how it is declared under sources.targets, and fetch again"
        ) from error


def _row(corpus: Corpus, part: str, place: str, text: dict[str, str]) -> dict[str, Any]:
    return {
        "id": place,
        "text": text["text"],
        "label": text["label"],
        "task": corpus.task,
        "language": corpus.language,
        "split": text["split"] or part,
        "redistributable": corpus.redistribute,
    }


def describe(folder: Path) -> str:
    """Return the texts of each split and class, as Markdown."""
    import polars as pl

    rows = [
        (config, split, label or "-", *counts)
        for config, frame in frames(folder)
        for split, label, *counts in frame.group_by("split", "label")
        .agg(pl.len(), pl.col("redistributable").all())
        .sort("split", "label")
        .iter_rows()
    ]
    head = "config | split | class | :texts | publishable"
    return page(table(head, rows, "Texts by split and class"))
