"""Dumps of posts: newline-delimited JSON in zstd, read as a stream and filtered by community.

The layout is that of the Pushshift and Arctic Shift dumps of Reddit, whose zstd frames have
windows of up to 2 GiB. Names of authors are removed before anything is written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from plumbline.builders.core.errors import Bar, UserError
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.corpora.people import masked
from plumbline.builders.readers.table import decoded, json_object, web_page
from plumbline.builders.readers.table import records as table_records

MAGIC = b"\x28\xb5\x2f\xfd"  # magic number of a zstd frame (RFC 8878, 3.1.1)
SKIPPABLE = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18", re.DOTALL)  # RFC 8878, 3.1.2
WINDOW = 1 << 31  # largest window of a frame; memory use depends on the frame
PIECE = 1 << 12  # compressed bytes per read; they may expand a thousandfold
LISTED = "communities.csv"  # a snapshot's file of communities and their leanings
SIDES = ("left", "center", "right")
GONE = "[deleted]"  # author of posts from deleted accounts in a dump


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a dump, holding one chunk in memory at a time."""
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    frame, remainder, size = None, b"", path.stat().st_size
    if wrong := begins_wrong(path):
        raise ValueError(wrong)
    with (
        path.open("rb") as file,
        Bar(total=size, desc=path.name, unit="B", unit_scale=True, leave=False) as bar,
    ):
        while piece := file.read(PIECE):
            bar.update(len(piece))
            while piece:
                frame = frame or decompressor.decompressobj()
                try:
                    content = frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise ValueError(f"damaged after byte {file.tell() - len(piece):,}") from error
                piece = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
                *complete, end = content.split(b"\n")
                if complete:
                    yield remainder + complete[0]
                    yield from complete[1:]
                    remainder = b""
                remainder += end
    if frame is not None:
        raise ValueError("truncated in the middle of a zstd frame")
    if remainder:
        yield remainder


def begins_wrong(path: Path) -> str | None:
    """Return the fault that a dump's first bytes reveal, or None if there is none."""
    with path.open("rb") as file:
        beginning = file.read(256)
    if beginning.startswith(MAGIC) or SKIPPABLE.match(beginning):
        return None
    return web_page(beginning) or ("not compressed with zstd" if beginning else "empty")


class Bots(Params):
    """Names of automated accounts."""

    names: list[str] = Field(["AutoModerator"], description="names of accounts")
    pattern: str = Field(
        r"[_-][Bb][Oo][Tt]$|[a-z0-9]Bot$|BOT$",
        description="regular expression that matches part of an automated account's name",
    )

    def has(self, author: str) -> bool:
        """Return True if an account is automated."""
        listed = author.lower() in (name.lower() for name in self.names)
        return listed or bool(re.search(self.pattern, author))


def posts(
    lines: Iterator[bytes],
    communities: Mapping[str, str],
    bots: Bots,
    count: Counter[str],
    hide: Callable[[str], str] | None = None,
) -> Iterator[bytes]:
    """Yield each post and comment of the communities as one line, without its author.

    Each line is first searched for the communities' names, so that other lines are not parsed.

    ``communities``: names of the communities as spelled in their list, keyed by lower-case name.
    ``count``: counter that receives the numbers of ``lines`` and of posts ``kept``, the latter also
    by community.
    ``hide``: function that maps the id of a post to a pseudonym; ids in extracted dumps remain.

    Yields
    ------
    bytes
        JSON objects with sorted keys: ``id``, prefixed with its kind (t1 or t3); ``subreddit``;
        ``created_utc`` as in the dump; ``title`` and ``selftext``, or ``body``, with identifiers of
        people masked; and ``account``, which is ``bot``, ``deleted`` or empty.
    """
    names = b"|".join(re.escape(name.encode()) for name in sorted(communities))
    matches = re.compile(rb'"subreddit"\s*:\s*"(?i:' + names + rb')"').search
    for number, line in enumerate(lines, start=1):
        blank = not line.strip()
        count["lines"] += not blank
        if blank or (not matches(line) and b'"subreddit"' in line):
            continue
        record = json_object(line, f"line {number}")
        community = communities.get(str(record.get("subreddit", "")).lower())
        if community is None:
            continue
        count.update(("kept", community))
        try:
            post = {"subreddit": community, **_cleared(record, bots, hide)}
        except (KeyError, TypeError) as error:
            raise ValueError(f"line {number}: no readable {error}") from error
        yield json.dumps(post, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _cleared(
    record: dict[str, Any], bots: Bots, hide: Callable[[str], str] | None
) -> dict[str, Any]:
    """Return the selected fields of a post, omitting those that name its author."""
    author, kind = record.get("author"), "t1" if "body" in record else "t3"
    account = "bot" if bots.has(str(author)) else ""
    account = "deleted" if author == GONE else account
    name = re.sub("^t[13]_", "", str(record["id"]))
    texts = ("body",) if kind == "t1" else ("title", "selftext")
    return {
        "id": f"{kind}_{hide(name) if hide and 'account' not in record else name}",
        "created_utc": record.get("created_utc"),
        "account": record.get("account", "") if author is None else account,
        **{name: masked(record[name] or "") for name in texts},
    }


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of an extracted dump."""
    for number, line in enumerate(lines(path), start=1):
        yield json_object(line, f"line {number}")


def write(path: Path, content: Iterator[bytes]) -> None:
    """Write lines to a compressed file; equal lines give equal bytes."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3, write_checksum=True)
    with path.open("wb") as file, compressor.stream_writer(file, closefd=False) as writer:
        for line in content:
            writer.write(line)


def communities(body: bytes, where: str) -> dict[str, str]:
    """Return the leaning of each community in a CSV file."""
    try:
        rows = table_records(decoded(body), {"name": "community", "leaning": "leaning"})
        pairs = [(row["name"].strip(), row["leaning"].strip()) for _, row in rows]
    except ValueError as error:
        raise UserError(
            f"{where}: not a CSV file with the columns community and leaning; fix it, or name "
            "another under sources.reddit.communities"
        ) from error
    valid = all(re.fullmatch(r"[A-Za-z0-9_]{2,21}", n) and side in SIDES for n, side in pairs)
    if not pairs or not valid or len({name.lower() for name, _ in pairs}) < len(pairs):
        raise UserError(
            f"{where}: each community must have one line with its name (without r/) and one of "
            f"{', '.join(SIDES)}"
        )
    return dict(pairs)
