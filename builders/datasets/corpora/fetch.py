"""Posts from Reddit communities, extracted without authors from Arctic Shift or Pushshift dumps."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.private import pseudonym
from plumbline.builders.core.snapshot import digest, write_bytes, writing
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.fetch.files import Fetch
from plumbline.builders.fetch.http import ADDRESS, Politeness, download
from plumbline.builders.readers.declared import Shared


class Params(Shared):
    """Dumps, communities and automated accounts."""

    dumps: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")], str] = Field(
        min_length=1, description="address or path of each dump, under a name of your choice"
    )
    communities: str = Field(
        description="CSV file of the communities, with the columns community and leaning"
    )
    bots: reddit_dump.Bots = Field(
        reddit_dump.Bots(), description="automated accounts, whose posts are marked"
    )
    citation: str = Field(min_length=1, description="reference to cite")


def fetch(
    params: Params,
    politeness: Politeness,
    into: Path,
    hide: Callable[[str], str] | None = pseudonym,
) -> None:
    """Extract the posts of the communities from every dump into a folder named after the date.

    A dump at an address is downloaded under a name that begins with a dot, resumed after an
    interruption, read as a stream, and removed once its posts are written; a local file is read
    directly. A dump whose posts have been extracted is not downloaded again. The address, size,
    sha256 and number of lines of each dump are stored next to its posts.

    ``hide``: function that maps a post's id, which identifies its author, to a pseudonym; if None,
    ids are retained, which is safe only for simulated posts.
    """
    if not Path(params.communities).is_file():
        raise UserError(
            f"{params.communities}: no such list of communities; name one under "
            "sources.reddit.communities"
        )
    body = Path(params.communities).read_bytes()
    listed = reddit_dump.communities(body, params.communities)
    sha256 = hashlib.sha256(body).hexdigest()
    more: dict[str, Any] = {"ids": "salted"} if hide else {}
    fetch = Fetch("reddit", params, politeness, into, listed=sha256, **more)
    write_bytes(into / reddit_dump.LISTED, body)
    names = {name.lower(): name for name in listed}
    posts = partial(reddit_dump.posts, communities=names, bots=params.bots, hide=hide)
    counts: dict[str, int] = {}
    for name, source in sorted(params.dumps.items()):
        path, facts = into / f"{name}.jsonl.zst", into / f"{name}.json"
        if not (path.exists() and facts.exists()):
            _cut(source, fetch.politeness, path, posts)
        record = json.loads(facts.read_text("utf-8"))
        counts |= {f"{name}/{key}": record[key] for key in ("lines", "kept")}
    places = "; ".join(source for _, source in sorted(params.dumps.items()))
    fetch.close(places, params.stated, params.citation, counts)


def _cut(
    source: str, politeness: Politeness, path: Path, posts: Callable[..., Iterator[bytes]]
) -> None:
    """Write a file that describes one dump, then the file of its posts."""
    away = re.match(ADDRESS, source)
    dump = path.with_name(f".dump-{path.name}") if away else Path(source)
    if away and not dump.exists():
        download(source, politeness, dump, reddit_dump.begins_wrong)
    if not dump.is_file():
        raise UserError(f"{source}: no such dump; name your own copy under sources.reddit.dumps")
    count = Counter[str]()
    with writing(path) as part:
        try:
            reddit_dump.write(part, posts(reddit_dump.lines(dump), count=count))
        except ValueError as error:
            if away:
                dump.unlink()
            raise UserError(
                f"{source}: {error}; check the address or the file under sources.reddit.dumps, "
                "and fetch it again"
            ) from error
        facts = {"place": source, "bytes": dump.stat().st_size, "sha256": digest(dump)}
        facts |= {"lines": count.pop("lines", 0), "kept": count.pop("kept", 0)}
        text = json.dumps(facts | {"posts": dict(count)}, indent=1, sort_keys=True) + "\n"
        write_bytes(path.with_suffix("").with_suffix(".json"), text.encode())
    if away:
        dump.unlink()
