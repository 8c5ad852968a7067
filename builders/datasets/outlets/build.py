"""Dataset ``outlets``: equal numbers of articles per news outlet, for fine-tuning language models.

Choenni et al. (2021), section 5, fine-tune on 4,354 articles from each of five outlets; a
non-political control corpus, which the paper lacks, is the baseline for the effect of fine-tuning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Any

from pydantic import Field, model_validator

from plumbline.builders.core.params import LanguageParams
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot, hash64
from plumbline.builders.readers import articles as news

CONTROL = "control"
UNDRAWN = "not drawn"
REPEATS = 5  # a paragraph in at least this many articles of an outlet is boilerplate

SOURCE = "news"
COLUMNS = (
    Column("outlet", "string", "short name of the outlet, or `control` for the control corpus"),
    Column("leaning", "label", "political leaning stated by the source", labels=news.LEANINGS),
    Column("date", "date32", "date of publication; may be null", nullable=True),
    Column("topic", "string", "topic stated by the source; may be empty", empty=True),
    Column("text", "string", "the article, one paragraph per line; see Cleaning", prose="lines"),
    Column("article", "string", "name of the corpus, and id of the article in it"),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("article",))
COUNTS = ("outlet leaning",)  # columns tabulated in the card

Counts = Counter[tuple[str, str]]  # by outlet and reason
Lines = defaultdict[str, Counter[int]]  # number of articles per line, by outlet


class Control(Section):
    """The corpus with which an outlet's effect is compared."""

    topics: list[str] = Field(min_length=1, description="topics that are not political")


class Params(LanguageParams):
    """The snapshot, and the selection of articles."""

    outlets: dict[
        Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")],
        Annotated[list[str], Field(min_length=1)],
    ] = Field(min_length=1, description="names of each outlet in the source, by short name")
    control: Control = Field(description="the control corpus")
    articles: int = Field(4354, ge=1, description="maximum number of articles per outlet")
    words_min: int = Field(20, ge=1, description="minimum word count, excluding boilerplate")
    seed: int = Field(1, description="random seed")

    @model_validator(mode="after")
    def _told_apart(self) -> Params:
        names = [name for listed in self.outlets.values() for name in listed]
        if len(set(names)) < len(names) or CONTROL in self.outlets:
            raise ValueError(f"outlets: names must be unique, and not {CONTROL!r}")
        return self


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per sampled article, sorted by outlet and article, after the rejects.

    The files are read three times, so that only the texts of sampled articles are in memory.
    """
    for language in params.languages:
        rejected, lines = Counts(), Lines(Counter)
        seen: set[str] = set()
        for _, article in news.every(snapshot, language):
            if (outlet := place(article, params)) is None:
                rejected[article.outlet, "neither of an outlet nor of the control"] += 1
                continue
            lines[outlet].update({hash64(line) for line in news.paragraphs(article.text)})
            rejected[outlet, "the same id again"] += article.article in seen
            seen.add(article.article)
        rows = [
            {"outlet": row["outlet"], "article": row["article"], "text": hash64(row["text"])}
            for row in _rows(snapshot, language, params, lines, rejected, seen)
        ]
        drawn = {row["article"] for row in _drawn(rows, params, rejected)}
        for (outlet, reason), number in sorted((+rejected).items()):
            yield Reject(language, outlet, reason, number=number)
        sampled = _rows(snapshot, language, params, lines, Counts(), drawn)
        for row in sorted(sampled, key=lambda row: (row["outlet"], row["article"])):
            yield Row(language, row)


def _rows(
    snapshot: Snapshot, language: str, params: Params, lines: Lines, out: Counts, todo: set[str]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of articles, and remove their ids from ``todo``; count the rejected ones."""
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    for corpus, article in news.every(snapshot, language):
        outlet = place(article, params)
        if outlet is None or article.article not in todo:
            continue
        todo.remove(article.article)  # the first article with an id is used
        text = news.paragraphs(article.text)
        remaining = [line for line in text if lines[outlet][hash64(line)] < REPEATS]
        if reason := _short(text, remaining, params.words_min):
            out[outlet, reason] += 1
            continue
        yield {
            "outlet": outlet,
            "leaning": SCHEMA["leaning"].code(article.leaning),
            "date": news.published(article.published, corpus.dates, until),
            "topic": article.topic,
            "text": "\n".join(remaining),
            "article": article.article,
            "redistributable": corpus.redistribute,
        }


def place(article: news.Article, params: Params) -> str | None:
    """Return the short name of an article's outlet, that of the control corpus, or None.

    The control corpus has no articles from selected outlets, since it is compared with them.
    """
    for outlet, names in params.outlets.items():
        if article.outlet in names:
            return outlet
    return CONTROL if article.topic in params.control.topics else None


def _drawn(rows: list[dict[str, Any]], params: Params, rejected: Counts) -> list[dict[str, Any]]:
    """Return the sampled rows, whose texts are unique; count the others by outlet and reason."""
    rows.sort(key=lambda row: (hash64(f"{params.seed}/{row['article']}"), row["article"]))
    texts: defaultdict[int, list[dict[str, Any]]] = defaultdict(list)  # by hash
    for row in rows:
        texts[row["text"]].append(row)
    pools: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for copies in texts.values():
        shared = len({row["outlet"] for row in copies}) > 1
        reason = "the same text in several outlets" if shared else "the same text again"
        rejected.update((row["outlet"], reason) for row in copies[not shared :])
        if not shared:
            pools[copies[0]["outlet"]].append(copies[0])
    for outlet, pool in pools.items():
        rejected[outlet, UNDRAWN] = max(0, len(pool) - params.articles)
    return [row for pool in pools.values() for row in pool[: params.articles]]


def _short(text: list[str], remaining: list[str], words_min: int) -> str:
    """Return the reason why a text is not an article, or ""."""
    if not text:
        return "no text"
    if _words(remaining) >= words_min:
        return ""
    return "hardly anything but boilerplate" if _words(text) >= words_min else "too short"


def _words(lines: list[str]) -> int:
    return sum(len(line.split()) for line in lines)
