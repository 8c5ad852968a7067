"""Dataset ``corpora``: partisan news articles and posts, from the left, center and right.

Feng et al. (2023), section 3.2, continue the pretraining of language models on six such corpora.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from itertools import chain
from typing import Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import EVERY, Reject, Row
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.corpora.near_duplicates import THRESHOLD, WORDS
from plumbline.builders.datasets.corpora.people import masked
from plumbline.builders.datasets.corpora.sample import (
    KINDS,
    LEANINGS,
    Candidate,
    Params,
    clean,
    draw,
)
from plumbline.builders.readers.articles import every, published

SOURCES = ("news", "reddit")
PERIODS = ("before", "from", "unknown")
TURN = date(2017, 1, 20)  # the inauguration that separates the paper's two periods
FOUNDED = date(2005, 6, 23)  # founding of Reddit
# lower-case texts that replace a removed post
GONE = ("[deleted]", "[removed]", "[deleted by user]", "[removed by reddit]")
# phrases, in lower case, that mark automated posts
BOTS = re.compile(
    r"(?<!\w)(?:i am a bot|i'm a bot|beep boop|this action was performed automatically)(?!\w)"
)

COLUMNS = (
    Column("id", "string", "name of the source, and id of the text in it"),
    Column("text", "string", "the text, one paragraph per line; see Cleaning", prose="lines"),
    Column("kind", "label", "whether the text is a news article or a post", labels=KINDS),
    Column("leaning", "label", "political leaning of the article or community", labels=LEANINGS),
    Column("outlet", "string", "news outlet, or Reddit community as r/NAME"),
    Column("date", "string", "publication date, ISO 8601; empty if missing or invalid", empty=True),
    Column("period", "label", "whether the date is before 2017-01-20", labels=PERIODS),
    Column(
        "hate_score",
        "float64",
        "probability of hate according to the classifier; null if no classifier is used",
        nullable=True,
        minimum=0,
        maximum=1,
    ),
    Column("flags", "strings", "`date` if the date is missing or impossible; otherwise empty"),
    Column("words", "int32", "number of words (separated by spaces)", minimum=1),
)
SCHEMA = Schema(COLUMNS, key=("id",))
COUNTS = ("kind leaning period",)  # columns tabulated in the card


def build(snapshots: dict[str, Snapshot], params: Params) -> Iterator[Row | Reject]:
    """Yield the rows of the six corpora, sorted by id, and the rejects."""
    texts = chain(_articles(snapshots["news"], params.language), _posts(snapshots["reddit"]))
    for item in draw(texts, params):
        yield item if isinstance(item, Reject) else _row(item)


def _row(candidate: Candidate) -> Row:
    kind, _, leaning = candidate.config.partition("-")
    period = "unknown" if candidate.when is None else PERIODS[candidate.when >= TURN]
    values = {
        "id": candidate.id,
        "text": candidate.text,
        "kind": KINDS.index(kind),
        "leaning": LEANINGS.index(leaning),
        "outlet": candidate.outlet,
        "date": candidate.when.isoformat() if candidate.when else "",
        "period": PERIODS.index(period),
        "hate_score": candidate.score,
        "flags": [] if candidate.when else ["date"],
        "words": candidate.words,
    }
    return Row(candidate.config, values)


def _articles(snapshot: Snapshot, language: str) -> Iterator[Candidate]:
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    for corpus, article in every(snapshot, language):
        listed = article.leaning in LEANINGS
        config, reason = (f"news-{article.leaning}", "") if listed else (EVERY, "not of the lists")
        when, text = published(article.published, corpus.dates, until), clean(article.text)
        yield Candidate(config, article.article, article.outlet, when, text, reason)


def _posts(snapshot: Snapshot) -> Iterator[Candidate]:
    until = date.fromisoformat(snapshot.manifest["retrieved"])
    listed = reddit_dump.LISTED
    leanings = reddit_dump.communities(snapshot.read(listed), f"{snapshot.folder}/{listed}")
    for name in snapshot.names(""):
        if not name.endswith(".jsonl.zst"):
            continue
        try:
            for record in reddit_dump.records(snapshot.folder / name):
                yield _post(record, leanings, until)
        except (ValueError, KeyError) as error:
            raise UserError(
                f"{snapshot.folder / name}: cannot be read ({error}); fetch it again"
            ) from error


def _post(record: dict[str, Any], leanings: dict[str, str], until: date) -> Candidate:
    parts = [record.get(name) or "" for name in ("title", "selftext", "body")]
    parts = [masked(html.unescape(part)).strip() for part in parts]
    text = "\n".join(filter(None, parts))
    reason = ""
    if any(part.lower() in GONE for part in parts):
        reason = "deleted"
    elif record["account"] == "bot" or BOTS.search(text.lower().replace("’", "'")):
        reason = "bot"
    community, when = record["subreddit"], _day(record["created_utc"], until)
    config, ident = f"social-{leanings[community]}", f"reddit/{record['id']}"
    return Candidate(config, ident, f"r/{community}", when, clean(text), reason)


def _day(seconds: object, until: date) -> date | None:
    """Return the date of a post in UTC, or None if it is missing or impossible."""
    try:
        day = datetime.fromtimestamp(float(str(seconds)), UTC).date()
    except (ValueError, OverflowError, OSError):
        return None
    return day if FOUNDED <= day <= until else None


def recorded(params: Params) -> str:
    """Describe the sampling and filtering of the corpora, for the card."""
    sizes = ", ".join(f"{c} {n:,}" for c, n in params.sizes.items())
    fitted = "; all are reduced in proportion if one has too few" if params.balance else ""
    return f"""### How they were drawn

- Requested sizes, in {params.unit}: {sizes}{fitted}. Seed {params.seed}.
- Near-duplicates: Jaccard index of {THRESHOLD:g} or more over runs of {WORDS} words, \
among {params.oversample:g} times the size of each corpus.
- Hate: {params.hate or "no filter"}.
"""
