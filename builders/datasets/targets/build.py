"""Dataset ``targets``: texts of the domain that a classifier is used on, with their gold class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import REJECTS, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.readers.tagged_texts import Corpus, texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot

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


def wanted(params: Params) -> list[str]:
    """Return the configs that must be there."""
    return params.configs


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per text, in the order of its corpus; a text is there once in a config.

    Raises
    ------
    Problem
        If a file is missing or not of its layout, or a config has no corpus.
    """
    declared = _declared(snapshot)
    for config in params.configs:
        corpora = [corpus for corpus in declared if corpus.config == config]
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


def _declared(snapshot: Snapshot) -> list[Corpus]:
    """Return the corpora as the snapshot's manifest declares them."""
    try:
        found = snapshot.manifest["request"]["corpora"]
        return [Corpus.model_validate(corpus) for corpus in found]
    except (KeyError, TypeError, ValidationError) as error:
        raise Problem(f"{snapshot.folder}: declares no readable corpora; fetch it again") from error


def describe(folder: Path) -> str:
    """Return the texts of each split and class, as Markdown."""
    import polars as pl

    lines = ["### Texts by split and class", ""]
    lines += ["| config | split | class | texts | publishable |", "|---|---|---|---:|---|"]
    for path in sorted(folder.glob("*.parquet")):
        if path.name == REJECTS:
            continue
        counts = (
            pl.read_parquet(path)
            .group_by("split", "label")
            .agg(pl.len(), pl.col("redistributable").all())
            .sort("split", "label")
        )
        for split, label, number, may in counts.iter_rows():
            publish = "yes" if may else "no"
            lines.append(f"| {path.stem} | {split} | {label or '-'} | {number:,} | {publish} |")
    return "\n".join(lines) + "\n"
