"""Snapshots of a few articles and posts, for the tests of the dataset ``corpora``."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import TYPE_CHECKING

from plumbline.builders.core.snapshot import Snapshot, write_manifest
from plumbline.builders.datasets.corpora import build as corpora
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.corpora.sample import CONFIGS

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {"article": "id", "outlet": "outlet", "leaning": "leaning", "date": "date"}
CORPUS = {
    "name": "mine",
    "address": "x",
    "format": "jsonl",
    "columns": COLUMNS | {"text": "text"},
    "dates": ["%Y-%m-%d", "%m/%d/%y"],
    "licence": "theirs",
    "citation": "test",
}
LISTED = "community,leaning\nLeftOnes,left\nMiddle,center\nRightOnes,right\n"
COMMUNITIES = {"left": "LeftOnes", "center": "Middle", "right": "RightOnes"}
SIZES = dict.fromkeys(CONFIGS, 1000)
PARAMS = {
    "version": "0.1.0",
    "snapshots": {"news": "x", "reddit": "y"},
    "sizes": SIZES,
    "unit": "texts",
    "balance": False,
    "words_min": {"news": 3, "social": 3},
}
RNG = random.Random(11)
NOON = 1_500_000_000  # 14 July 2017


def words(number: int, rng: random.Random = RNG) -> str:
    """Return so many words that no two texts share."""
    return " ".join(f"w{rng.randrange(16**8):08x}" for _ in range(number))


def article(own: str, leaning: str = "left", **changes) -> dict[str, str]:
    facts = {"id": own, "outlet": "Paper", "leaning": leaning, "date": "2018-02-03"}
    return facts | {"text": words(12)} | changes


def post(own: str, leaning: str = "left", **changes) -> dict[str, object]:
    facts = {"id": own, "subreddit": COMMUNITIES[leaning], "author": "somebody"}
    return facts | {"created_utc": NOON, "body": words(12)} | changes


def base() -> tuple[list, list]:
    """Return one text for each corpus."""
    sides = corpora.LEANINGS
    return [article(f"base-{s}", s) for s in sides], [post(f"base-{s}", s) for s in sides]


def snapshots(folder: Path, articles: list, posts: list) -> dict[str, Snapshot]:
    """Write both snapshots, that of posts as the client would."""
    facts = dict.fromkeys(("address", "licence", "citation"), "test") | {"retrieved": "2020-06-01"}
    news, reddit = folder / "news", folder / "reddit"
    (news / "en").mkdir(parents=True)
    reddit.mkdir()
    lines = "".join(json.dumps(e) + "\n" for e in articles)
    (news / "en/mine.jsonl").write_text(lines, "utf-8")
    request = {"corpora": {"en": [CORPUS]}}
    write_manifest(news, facts | {"source": "news", "request": request, "counts": {}})
    (reddit / reddit_dump.LISTED).write_text(LISTED)
    bots = reddit_dump.Bots(names=["AutoModerator"], pattern="Bot$")
    names = {name.lower(): name for name in COMMUNITIES.values()}
    found = (json.dumps(e).encode() for e in posts)
    reddit_dump.write(reddit / "posts.jsonl.zst", reddit_dump.posts(found, names, bots, Counter()))
    write_manifest(reddit, facts | {"source": "reddit", "request": {"x": 1}, "counts": {}})
    return {"news": Snapshot.open(news), "reddit": Snapshot.open(reddit)}
