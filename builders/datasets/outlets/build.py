"""Dataset ``outlets``: articles of news outlets, as many of each, to fine-tune language models on.

Choenni et al. (2021), section 5, fine-tune on 4,354 articles each of five outlets; a control
corpus about other things, which the paper has not, is the baseline of any fine-tuning.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from datetime import date
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field, model_validator

from plumbline.builders.core.describe import page, table
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.params import SnapshotParams
from plumbline.builders.core.parquet import REJECTS, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import hash64
from plumbline.builders.readers.articles import (
    LEANINGS,
    corpora_of,
    every,
    paragraphs,
    published,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot
    from plumbline.builders.readers.articles import Article, Corpus

CONTROL = "control"
UNDRAWN = "not drawn"
FEWER = "Where all sound articles of an outlet are here it may have had fewer than were asked for."

SOURCE = "news"
SCHEMA = Schema(
    columns=(
        Column("outlet", "string", "short name of the outlet; `control`: the control corpus"),
        Column(
            "leaning",
            "label",
            "political leaning, as the source has it",
            labels=LEANINGS,
            role="tracked",
        ),
        Column("date", "date32", "of publication; null where it has none", nullable=True),
        Column("topic", "string", "as the source has it; may be empty"),
        Column("text", "string", "the article; a paragraph a line, see Cleaning"),
        Column("article", "string", "corpus and id of the article in it"),
        Column("redistributable", "bool", "no terms of its source forbid to publish the row"),
    ),
    key=("article",),
    unit=("article", "articles"),
)


class Control(Section):
    """The corpus that an outlet's effect is judged against."""

    topics: list[str] = Field(min_length=1, description="topics that are not political")


class Params(SnapshotParams):
    """The snapshot to build from, and which articles are taken."""

    languages: list[str] = Field(min_length=1, description="one config for each")
    outlets: dict[
        Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")],
        Annotated[list[str], Field(min_length=1)],
    ] = Field(min_length=1, description="short name of an outlet, and its names in the source")
    control: Control = Field(description="the control corpus")
    articles: int = Field(4354, ge=1, description="articles of each outlet, if it has so many")
    words_min: int = Field(20, ge=1, description="fewest words of an article, boilerplate left out")
    repeats: int = Field(
        5, ge=2, description="a paragraph in so many articles of an outlet is boilerplate"
    )
    seed: int = Field(1, description="of the draw")

    @model_validator(mode="after")
    def _told_apart(self) -> Params:
        names = [name for each in self.outlets.values() for name in each]
        if len(set(names)) < len(names) or CONTROL in self.outlets:
            raise ValueError(f"outlets: each name once, and none called {CONTROL!r}")
        return self


class Candidate(NamedTuple):
    """What is remembered of an article until it is known which are drawn."""

    rank: int
    article: str


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per article drawn, sorted by outlet and article.

    The files are read three times, one article in memory at a time: for paragraphs that repeat, for
    what is to be drawn, and for the texts drawn.
    """
    lacking = {*params.outlets, CONTROL}
    for language in params.languages:
        corpora = corpora_of(snapshot, language, "take it out of datasets.outlets.languages")
        repeated = _repeated(snapshot, corpora, language, params)
        places = yield from _drawn(snapshot, corpora, language, repeated, params)
        lacking -= set(places.values())
        rows = []
        for corpus, found in every(snapshot, corpora, language):
            outlet = place(found, params)
            if outlet is not None and places.get(found.article) == outlet:
                del places[found.article]  # the first of those with one id
                rows.append(_row(outlet, corpus, found, repeated, snapshot.manifest["retrieved"]))
        rows.sort(key=lambda row: (row["outlet"], row["article"]))
        for row in rows:
            yield Row(language, row)
    if lacking:
        raise UserError(
            f"{snapshot.folder}: no article left of {', '.join(sorted(lacking))}; look at the "
            "names and topics under datasets.outlets, and at words_min"
        )


def _row(
    outlet: str, corpus: Corpus, found: Article, repeated: dict[str, set[int]], until: str
) -> dict[str, object]:
    return {
        "outlet": outlet,
        "leaning": SCHEMA["leaning"].code(found.leaning),
        "date": published(found.published, corpus.dates, date.fromisoformat(until)),
        "topic": found.topic,
        "text": "\n".join(_without(paragraphs(found.text), repeated[outlet])),
        "article": found.article,
        "redistributable": corpus.redistribute,
    }


def place(found: Article, params: Params) -> str | None:
    """Return the outlet that an article counts for, the control, or None.

    No article of a kept outlet is in the control: what is judged against it must not be in it.
    """
    for outlet, names in params.outlets.items():
        if found.outlet in names:
            return outlet
    return CONTROL if found.topic in params.control.topics else None


def _repeated(
    snapshot: Snapshot, corpora: list[Corpus], language: str, params: Params
) -> dict[str, set[int]]:
    """Return the hashes of the paragraphs that are boilerplate, for each outlet."""
    import numpy as np

    lines: defaultdict[str, array[int]] = defaultdict(lambda: array("Q"))
    for _, found in every(snapshot, corpora, language):
        outlet = place(found, params)
        if outlet is not None:
            lines[outlet].extend({hash64(line) for line in paragraphs(found.text)})
    repeated = {}
    for outlet, hashes in lines.items():
        values, counts = np.unique(np.frombuffer(hashes, dtype=np.uint64), return_counts=True)
        repeated[outlet] = {int(value) for value in values[counts >= params.repeats]}
    return repeated


def _drawn(
    snapshot: Snapshot,
    corpora: list[Corpus],
    language: str,
    repeated: dict[str, set[int]],
    params: Params,
) -> Generator[Reject, None, dict[str, str]]:
    """Return the outlet of each article that is drawn; yield what is left out, by outlet."""
    out: Counter[tuple[str, str]] = Counter()
    pools: defaultdict[str, list[Candidate]] = defaultdict(list)
    for same in _sound(every(snapshot, corpora, language), repeated, params, out):
        outlets = {outlet for outlet, _ in same}
        for outlet in outlets:
            own = sorted(kept for name, kept in same if name == outlet)
            if len(outlets) > 1:
                out[outlet, "the same text in several outlets"] += len(own)
            else:
                pools[outlet].append(own[0])
                out[outlet, "the same text again"] += len(own) - 1
    places = {}
    for outlet, pool in pools.items():
        drawn = sorted(pool)[: params.articles]
        places.update({kept.article: outlet for kept in drawn})
        out[outlet, UNDRAWN] += len(pool) - len(drawn)
    for (outlet, reason), number in sorted(out.items()):
        if number:
            yield Reject(language, outlet, reason, number=number)
    return places


def _sound(
    articles: Iterator[tuple[Corpus, Article]],
    repeated: dict[str, set[int]],
    params: Params,
    out: Counter[tuple[str, str]],
) -> list[list[tuple[str, Candidate]]]:
    """Return the articles that may be drawn, those of one text together; count the others."""
    seen: set[str] = set()
    texts: defaultdict[int, list[tuple[str, Candidate]]] = defaultdict(list)
    for _, found in articles:
        outlet = place(found, params)
        if outlet is None:
            out[found.outlet, "neither of an outlet nor of the control"] += 1
        elif found.article in seen:
            out[outlet, "the same id again"] += 1
        else:
            seen.add(found.article)
            whole = paragraphs(found.text)
            left = _without(whole, repeated[outlet])
            if reason := _short(whole, left, params.words_min):
                out[outlet, reason] += 1
            else:
                rank = hash64(f"{params.seed}/{found.article}")
                texts[hash64("\n".join(left))].append((outlet, Candidate(rank, found.article)))
    return list(texts.values())


def _short(whole: list[str], left: list[str], words_min: int) -> str:
    """Return why a text is no article, or nothing."""
    if not whole:
        return "no text"
    if _words(left) >= words_min:
        return ""
    return "hardly anything but boilerplate" if _words(whole) >= words_min else "too short"


def _words(lines: list[str]) -> int:
    return sum(len(line.split()) for line in lines)


def describe(folder: Path) -> str:
    """Return how many articles of each outlet there are, as Markdown."""
    import polars as pl

    undrawn = {
        (config, outlet): number
        for config, outlet, reason, number in pl.read_parquet(folder / REJECTS)
        .select("config", "key", "reason", "number")
        .iter_rows()
        if reason == UNDRAWN
    }
    found = []
    for path in sorted(folder.glob("*.parquet")):
        if path.name == REJECTS:
            continue
        frame = pl.scan_parquet(path).with_columns(words=pl.col("text").str.count_matches(r"\S+"))
        per = (
            frame.group_by("outlet")
            .agg(
                pl.len(),
                *((pl.col("leaning") == i).sum().alias(name) for i, name in enumerate(LEANINGS)),
                pl.col("date").null_count().alias("undated"),
                pl.col("date").min().alias("first"),
                pl.col("date").max().alias("last"),
                pl.col("words").median(),
                pl.col("redistributable").all(),
            )
            .sort("outlet")
            .collect()
        )
        for outlet, number, *counts, first, last, words, may in per.iter_rows():
            left = undrawn.get((path.stem, outlet), 0)
            dates = (first or "–", last or "–", f"{words:,.0f}", may)
            sound = number + left if left else "all"
            found.append((path.stem, outlet, number, sound, *counts, *dates))
    leanings = " | ".join(f":{name}" for name in LEANINGS)
    head = (
        f"language | outlet | :articles | :of sound ones | {leanings} | :undated | from | to | "
        ":words, median | publishable"
    )
    return page(table(head, found, "Articles by outlet", FEWER))


def _without(lines: list[str], repeated: set[int]) -> list[str]:
    return [line for line in lines if hash64(line) not in repeated]
