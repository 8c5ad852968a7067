"""Dataset ``labelled_texts``: texts with human ratings of sentiment, for evaluating lexica.

Stańczak et al. (2023), Table 12, compare lexica on texts of this kind.
"""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Generator, Iterator
from typing import Any, Literal

from pydantic import Field, model_validator

from plumbline.builders.core.errors import reading
from plumbline.builders.core.params import LanguageParams as Params
from plumbline.builders.core.params import Name
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot, hash64
from plumbline.builders.readers.archives import parquet_rows, unpacked
from plumbline.builders.readers.declared import Terms, declared
from plumbline.builders.readers.table import decoded, normal, records, tweeteval

LABELS = ("positive", "negative", "neutral")
SPLITS = ("tuning", "testing")
Sentiment = Literal["positive", "negative", "neutral"]
Judged = dict[str, tuple[str, int]]  # sentiment and line of each text

COLUMNS = (
    Column("text", "string", "the text; see Normalisation", prose="text"),
    Column("label", "label", "sentiment according to human raters", labels=LABELS),
    Column("split", "label", "purpose: tuning of settings, or testing", labels=SPLITS),
    Column("source", "string", "name of the corpus"),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("source", "text"))
COUNTS = ("source split label",)  # columns tabulated in the card


class Part(Section):
    """One split of a corpus."""

    texts: str = Field(
        description="address of the texts: one per line, or a table; FILE.zip#MEMBER in an archive"
    )
    labels: str = Field(
        "", description="TweetEval's layout: address of the file with the label number of each line"
    )


class Corpus(Terms):
    """Labelled texts from one source, and their terms of use."""

    name: Name = Field(description="name of the corpus")
    format: Literal["tweeteval", "csv", "tsv", "parquet"] = Field(
        "tweeteval", description="format of the files"
    )
    tuning: Part | None = Field(
        None,
        description="texts for tuning settings; if missing, a share of the testing texts is used",
    )
    testing: Part = Field(description="texts for testing")
    tuning_share: float = Field(
        0.2, gt=0, lt=1, description="share drawn for tuning if `tuning` is missing"
    )
    mapping: str = Field(
        "", description="TweetEval's layout: address of the file that maps label numbers to names"
    )
    columns: dict[Literal["text", "label"], str] = Field(
        {"text": "text", "label": "label"}, description="names of the two columns of a table"
    )
    encoding: str = Field("utf-8", description="encoding of csv and tsv files")
    labels: dict[str, Sentiment] = Field(
        {"positive": "positive", "negative": "negative", "neutral": "neutral"},
        description="sentiment for each label name; texts with other labels are rejected",
    )

    @model_validator(mode="after")
    def _whole(self) -> Corpus:
        parts = [part for part in (self.tuning, self.testing) if part]
        if self.format == "tweeteval" and not all([self.mapping, *(p.labels for p in parts)]):
            raise ValueError(f"{self.name}: TweetEval's layout needs labels and a mapping")
        if set(self.columns) != {"text", "label"}:
            raise ValueError(f"{self.name}: columns must include text and label")
        return self

    def splits(self) -> tuple[str, ...]:
        """Return the splits that have files of their own."""
        return SPLITS if self.tuning else SPLITS[1:]

    def files(self, language: str, split: str) -> dict[str, str]:
        """Return the addresses of a split's files, keyed by path in the snapshot."""
        part: Part = getattr(self, split)
        folder = f"{language}/{self.name}"
        if self.format != "tweeteval":
            address, _, member = part.texts.partition("#")
            return {f"{folder}/{split}.{'zip' if member else self.format}": address}
        return {
            f"{folder}/{split}_text.txt": part.texts,
            f"{folder}/{split}_labels.txt": part.labels,
            f"{folder}/mapping.txt": self.mapping,
        }

    def read(self, split: str, *bodies: bytes) -> Iterator[tuple[str, str, int]]:
        """Yield normalised texts, the names of their labels, and their line or row numbers.

        ``bodies``: contents of the split's files, in the order of :meth:`files`.
        """
        if self.format == "tweeteval":
            pairs = enumerate(tweeteval(*bodies, complete=True), start=1)
            yield from ((normal(text), label, line) for line, (text, label) in pairs)
            return
        part: Part = getattr(self, split)
        (body,) = bodies
        if member := part.texts.partition("#")[2]:
            body = unpacked(body, member, ending=True)
        rows = self._parquet(body)
        if self.format != "parquet":
            text = decoded(body, self.encoding, complete=True)
            rows = records(text, self.columns, "\t" if self.format == "tsv" else ",")
        for line, row in rows:
            yield normal(row["text"]), row["label"].strip(), line

    def _parquet(self, body: bytes) -> Iterator[tuple[int, dict[str, str]]]:
        rows = parquet_rows(io.BytesIO(body), list(self.columns.values()))
        for line, row in enumerate(rows, start=1):
            yield line, {name: _text(row[column]) for name, column in self.columns.items()}


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per text of each corpus, sorted by split; no text is in two splits."""
    for language in params.languages:
        corpora = declared(snapshot, Corpus, "corpora", language)
        for corpus in sorted(corpora, key=lambda corpus: corpus.name):
            by_split: dict[str, Judged] = {}
            for split in corpus.splits():
                by_split[split] = yield from _texts(snapshot, corpus, language, split)
            if not corpus.tuning:
                by_split = _drawn(corpus, by_split["testing"])
            for text in sorted(by_split["tuning"].keys() & by_split["testing"].keys()):
                _, line = by_split["tuning"].pop(text)
                reason = "among the testing texts too"
                yield Reject(language, f"{corpus.name}/tuning", reason, f"line {line}")
            facts = {"source": corpus.name, "redistributable": corpus.redistribute}
            for code, texts in enumerate(by_split.values()):
                for text, (label, _) in sorted(texts.items()):
                    values = {"text": text, "label": LABELS.index(label), "split": code}
                    yield Row(language, values | facts)


def _texts(
    snapshot: Snapshot, corpus: Corpus, language: str, split: str
) -> Generator[Reject, None, Judged]:
    """Return the sentiment and first line of each text of a split; yield the rejects."""
    key = f"{corpus.name}/{split}"
    with reading(f"{snapshot.folder}: {language}/{key}", "fetch it again"):
        bodies = map(snapshot.read, corpus.files(language, split))
        lines = list(corpus.read(split, *bodies))
    sentiments: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for text, label, line in lines:
        if label not in corpus.labels:
            yield Reject(language, key, "label of no declared sentiment", f"line {line}: {label}")
        elif not text:
            yield Reject(language, key, "no text", f"line {line}")
        else:
            sentiments[text].append((corpus.labels[label], line))
    for text, judged in sorted(sentiments.items()):
        several = len({label for label, _ in judged}) > 1
        reason = "the same text with several labels" if several else "the same text again"
        for _, line in judged[not several :]:
            yield Reject(language, key, reason, f"line {line}")
        if several:
            del sentiments[text]
    return {text: judged[0] for text, judged in sentiments.items()}


def _drawn(corpus: Corpus, texts: Judged) -> dict[str, Judged]:
    """Assign each text to a split by a hash of its content, independently of other texts."""
    by_split: dict[str, Judged] = {split: {} for split in SPLITS}
    for text, judged in texts.items():
        tuning = hash64(f"{corpus.name}/{text}") < corpus.tuning_share * 2**64
        by_split[SPLITS[not tuning]][text] = judged
    return by_split
