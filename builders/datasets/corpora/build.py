"""Dataset ``corpora``: partisan texts, news and posts of the left, the center and the right.

Feng et al. (2023), section 3.2, go on with the pretraining of language models on six such corpora.
The texts are read as streams, several times: what is held in memory is what may be drawn, not what
there is.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from plumbline.builders.core.describe import page, table
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import EVERY, REJECTS, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.corpora.sample import (
    CONFIGS,
    KINDS,
    LEANINGS,
    Drawn,
    Found,
    Params,
    draw,
)
from plumbline.builders.readers.articles import corpora_of, every, published

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plumbline.builders.core.snapshot import Snapshot

SOURCES = ("news", "reddit")
PERIODS = ("before", "from", "unknown")
TURN = date(2017, 1, 20)  # the inauguration that parts the paper's two periods
FOUNDED = date(2005, 6, 23)  # Reddit: nothing was posted before

SCHEMA = Schema(
    columns=(
        Column("id", "string", "source and id of the text in it"),
        Column("text", "string", "a paragraph a line, see Cleaning", role="tracked"),
        Column("kind", "label", "articles of news outlets, or posts", labels=KINDS),
        Column(
            "leaning",
            "label",
            "of the outlet's article or of the community",
            labels=LEANINGS,
            role="tracked",
        ),
        Column("outlet", "string", "outlet, or community as r/NAME"),
        Column("date", "string", "of publication, ISO 8601; empty where missing or impossible"),
        Column("period", "label", "before 2017-01-20, or from then on", labels=PERIODS),
        Column(
            "hate_score",
            "float64",
            "probability of hate by the classifier; null where none is set",
            nullable=True,
            minimum=0,
            maximum=1,
        ),
        Column("flags", "strings", "`date`: its date is missing or impossible"),
        Column("words", "int32", "words between spaces", minimum=1),
    ),
    key=("id",),
    unit=("text", "texts"),
)


def build(snapshots: dict[str, Snapshot], params: Params) -> Iterator[Row | Reject]:
    """Yield the six corpora, sorted by id, and what is left out."""

    def texts(want: Callable[[str], bool]) -> Iterator[Found]:
        yield from _articles(snapshots["news"], params, want)
        yield from _posts(snapshots["reddit"], params, want)

    for item in draw(texts, params):
        yield item if isinstance(item, Reject) else _row(item)


def _row(drawn: Drawn) -> Row:
    found = drawn.found
    kind, _, leaning = found.config.partition("-")
    period = "unknown" if found.when is None else PERIODS[found.when >= TURN]
    values: dict[str, Any] = {
        "id": found.id,
        "text": drawn.text,
        "kind": SCHEMA["kind"].code(kind),
        "leaning": SCHEMA["leaning"].code(leaning),
        "outlet": found.outlet,
        "date": "" if found.when is None else found.when.isoformat(),
        "period": SCHEMA["period"].code(period),
        "hate_score": drawn.score,
        "flags": ["date"] if found.when is None else [],
        "words": drawn.words,
    }
    return Row(found.config, values)


def _articles(snapshot: Snapshot, params: Params, want: Callable[[str], bool]) -> Iterator[Found]:
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    language = params.language
    instead = "name another under derived.corpora.language"
    for corpus, found in every(snapshot, corpora_of(snapshot, language, instead), language):
        if not want(found.article):
            continue
        known = found.leaning in LEANINGS
        when = published(found.published, corpus.dates, until)
        config = f"news-{found.leaning}" if known else EVERY
        reason = "" if known else "not of the lists"
        yield Found(config, found.article, found.outlet, found.text, when, reason)


def _posts(snapshot: Snapshot, params: Params, want: Callable[[str], bool]) -> Iterator[Found]:
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    leanings = reddit_dump.communities(
        snapshot.read(reddit_dump.LISTED), f"{snapshot.folder}/{reddit_dump.LISTED}"
    )
    for name in snapshot.names(""):
        if not name.endswith(".jsonl.zst"):
            continue
        try:
            for record in reddit_dump.records(snapshot.folder / name):
                if want(f"reddit/{record['id']}"):
                    yield _post(record, leanings, until, params)
        except (ValueError, KeyError) as error:
            raise UserError(
                f"{snapshot.folder / name}: cannot be read ({error}); fetch it again"
            ) from error


def _post(record: dict[str, Any], leanings: dict[str, str], until: date, params: Params) -> Found:
    parts = [record.get(name) or "" for name in ("title", "selftext", "body")]
    parts = [html.unescape(part).strip() for part in parts]
    text = "\n".join(part for part in parts if part)
    reason = ""
    if any(part.lower() in params.gone for part in parts):
        reason = "deleted"
    elif record["account"] == "bot" or _says(tuple(params.bots), text):
        reason = "bot"
    community = record["subreddit"]
    return Found(
        f"social-{leanings[community]}",
        f"reddit/{record['id']}",
        f"r/{community}",
        text,
        _day(record["created_utc"], until),
        reason,
    )


def _says(words: tuple[str, ...], text: str) -> bool:
    """Return whether one of some runs of words is in a text, as whole words."""
    return bool(_pattern(words).search(text.lower().replace("’", "'")))


@lru_cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words)) or '(?!)'})(?!\w)")


def _day(seconds: object, until: date) -> date | None:
    """Return the day of a post, in UTC; None where it has none, or one that cannot be."""
    try:
        found = datetime.fromtimestamp(float(str(seconds)), UTC).date()
    except (ValueError, OverflowError, OSError):
        return None
    return found if FOUNDED <= found <= until else None


def recorded(params: Params) -> str:
    """Return for the card how the corpora were drawn and cleared."""
    near, sizes = params.near, ", ".join(f"{c} {n:,}" for c, n in params.sizes.items())
    fitted = "; all made smaller alike where one has too little" if params.balance else ""
    alike = (
        f"- Near-duplicates: Jaccard index of {near.threshold:g} or more over runs of "
        f"{near.words} words, among {params.oversample:g} times the size of each corpus."
    )
    lines = [
        "### How they were drawn",
        "",
        f"- Sizes asked for, in {params.unit}: {sizes}{fitted}. Seed {params.seed}.",
        alike,
        f"- Hate: {params.hate or 'no filter'}.",
        "",
    ]
    return "\n".join(lines)


def describe(folder: Path) -> str:
    """Return how large the corpora are, and which texts stood in several, as Markdown."""
    import polars as pl

    found = []
    for config in CONFIGS:
        path = folder / f"{config}.parquet"
        if not path.is_file():
            continue
        dated = pl.col("date").filter(pl.col("date") != "")
        periods = [(pl.col("period") == i).sum().alias(p) for i, p in enumerate(PERIODS)]
        one = pl.scan_parquet(path).select(
            pl.len().alias("texts"),
            pl.col("words").sum(),
            pl.col("outlet").n_unique().alias("outlets"),
            *periods,
            dated.min().alias("first"),
            dated.max().alias("last"),
        )
        (cells,) = one.collect().rows()
        found.append((config, *(cell or "–" if cell != 0 else 0 for cell in cells)))
    head = (
        f"corpus | :texts | :words | :outlets | {' | '.join(f':{p}' for p in PERIODS)} | from | to"
    )
    corpora = table(head, found, "Corpora")
    rejects = pl.read_parquet(folder / REJECTS).filter(pl.col("reason") == "leak")
    if not rejects.height:
        return page(corpora, ["### Leaks", "", "No text stood in several corpora."])
    pairs: Counter[tuple[str, str]] = Counter()
    for config, detail in rejects.select("config", "detail").iter_rows():
        pairs.update({(config, told.partition(" ")[0]) for told in detail.split("; ")})
    rows = [(*pair, number) for pair, number in sorted(pairs.items())]
    text = "Texts left out of both, because they stood in two or more corpora."
    return page(corpora, table("corpus | also in | :texts", rows, "Leaks", text))
