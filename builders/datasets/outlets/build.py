"""Dataset ``outlets``: equal numbers of articles of news outlets, to fine-tune language models.

Choenni et al. (2021), section 5, fine-tune on 4,354 articles each of five outlets; a non-political
control corpus, which the paper lacks, is the baseline for the effect of fine-tuning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from datetime import date
from functools import partial
from typing import Annotated

from pydantic import Field, model_validator

from plumbline.builders.core.params import LanguageParams
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot, hash64
from plumbline.builders.readers import articles as news

CONTROL = "control"
UNDRAWN = "not drawn"
REPEATS = 5  # minimum articles of an outlet with a paragraph that is boilerplate

SOURCE = "news"
COLUMNS = (
    Column("outlet", "string", "short name of the outlet; `control`: the control corpus"),
    Column("leaning", "label", "political leaning stated by the source", labels=news.LEANINGS),
    Column("date", "date32", "date of publication; may be null", nullable=True),
    Column("topic", "string", "topic stated by the source; may be empty", empty=True),
    Column("text", "string", "the article, one paragraph per line; see Cleaning", prose="lines"),
    Column("article", "string", "corpus, and id of the article in the corpus"),
    Column("redistributable", "bool", "whether the terms of its source permit publishing the row"),
)
SCHEMA = Schema(COLUMNS, key=("article",))
COUNTS = ("outlet leaning",)  # tables of the card


class Control(Section):
    """The corpus with which an outlet's effect is compared."""

    topics: list[str] = Field(min_length=1, description="topics that are not political")


class Params(LanguageParams):
    """The snapshot, and the selection of articles."""

    outlets: dict[
        Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")],
        Annotated[list[str], Field(min_length=1)],
    ] = Field(min_length=1, description="short name of each outlet, and its names in the source")
    control: Control = Field(description="the control corpus")
    articles: int = Field(4354, ge=1, description="maximum articles per outlet")
    words_min: int = Field(20, ge=1, description="minimum words of an article without boilerplate")
    seed: int = Field(1, description="random seed")

    @model_validator(mode="after")
    def _told_apart(self) -> Params:
        names = [name for listed in self.outlets.values() for name in listed]
        if len(set(names)) < len(names) or CONTROL in self.outlets:
            raise ValueError(f"outlets: names must be unique, and not {CONTROL!r}")
        return self


def build(snapshot: Snapshot, params: Params) -> Iterator[Row | Reject]:
    """Yield one row per sampled article, sorted by outlet and article.

    The files are read three times, with one article in memory at a time: for repeated paragraphs,
    for the sample, and for its texts.
    """
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    for language in params.languages:
        articles = partial(_placed, snapshot, language, params)
        repeated = _repeated(articles())
        places = yield from _drawn(articles(), repeated, language, params)
        rows = []
        for corpus, article, outlet in articles():
            if outlet is not None and places.get(article.article) == outlet:
                del places[article.article]  # the first article with an id
                row = {
                    "outlet": outlet,
                    "leaning": SCHEMA["leaning"].code(article.leaning),
                    "date": news.published(article.published, corpus.dates, until),
                    "topic": article.topic,
                    "text": "\n".join(_without(news.paragraphs(article.text), repeated[outlet])),
                    "article": article.article,
                    "redistributable": corpus.redistribute,
                }
                rows.append(row)
        for row in sorted(rows, key=lambda row: (row["outlet"], row["article"])):
            yield Row(language, row)


def _placed(
    snapshot: Snapshot, language: str, params: Params
) -> Iterator[tuple[news.Corpus, news.Article, str | None]]:
    """Yield all articles of a language, each with its outlet or the control."""
    for corpus, article in news.every(snapshot, language):
        yield corpus, article, place(article, params)


def place(article: news.Article, params: Params) -> str | None:
    """Return the outlet of an article, the control, or None.

    The control has no articles of selected outlets, since it is compared with them.
    """
    for outlet, names in params.outlets.items():
        if article.outlet in names:
            return outlet
    return CONTROL if article.topic in params.control.topics else None


def _repeated(
    articles: Iterator[tuple[news.Corpus, news.Article, str | None]],
) -> dict[str, set[int]]:
    """Return the hashes of boilerplate paragraphs, by outlet."""
    counts: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for _, article, outlet in articles:
        if outlet is not None:
            counts[outlet].update({hash64(line) for line in news.paragraphs(article.text)})
    return {
        outlet: {line for line, number in lines.items() if number >= REPEATS}
        for outlet, lines in counts.items()
    }


def _drawn(
    articles: Iterator[tuple[news.Corpus, news.Article, str | None]],
    repeated: dict[str, set[int]],
    language: str,
    params: Params,
) -> Generator[Reject, None, dict[str, str]]:
    """Return the outlet of each sampled article; yield the rejects, by outlet."""
    out: Counter[tuple[str, str]] = Counter()
    seen: set[str] = set()
    texts: defaultdict[int, list[tuple[int, str, str]]] = defaultdict(list)
    for _, record, outlet in articles:
        if outlet is None:
            out[record.outlet, "neither of an outlet nor of the control"] += 1
        elif record.article in seen:
            out[outlet, "the same id again"] += 1
        else:
            seen.add(record.article)
            text = news.paragraphs(record.text)
            remaining = _without(text, repeated[outlet])
            if reason := _short(text, remaining, params.words_min):
                out[outlet, reason] += 1
            else:
                rank = hash64(f"{params.seed}/{record.article}")
                texts[hash64("\n".join(remaining))].append((rank, record.article, outlet))
    pools: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for copies in texts.values():
        shared = len({outlet for *_, outlet in copies}) > 1
        reason = "the same text in several outlets" if shared else "the same text again"
        out.update((outlet, reason) for *_, outlet in sorted(copies)[not shared :])
        if not shared:
            pools[copies[0][-1]].append(min(copies))
    places = {}
    for outlet, pool in pools.items():
        places.update({article: outlet for _, article, _ in sorted(pool)[: params.articles]})
        out[outlet, UNDRAWN] = max(0, len(pool) - params.articles)
    for (outlet, reason), number in sorted((+out).items()):
        yield Reject(language, outlet, reason, number=number)
    return places


def _short(text: list[str], remaining: list[str], words_min: int) -> str:
    """Return the reason why a text is not an article, or ""."""
    if not text:
        return "no text"
    if _words(remaining) >= words_min:
        return ""
    return "hardly anything but boilerplate" if _words(text) >= words_min else "too short"


def _words(lines: list[str]) -> int:
    return sum(len(line.split()) for line in lines)


def _without(lines: list[str], repeated: set[int]) -> list[str]:
    return [line for line in lines if hash64(line) not in repeated]
