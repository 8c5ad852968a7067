"""What lies under ``private/``, which git and DVC never see: a salt, and who wants to be left out.

Identities of people are replaced before anything is written, by numbers that only the salt joins to
them. ``removed.txt`` or ``removed.csv`` lists what no build takes and no command publishes.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row

FOLDER = Path("private")
SALT = FOLDER / "salt"
PAGE = "docs/howto/publishing.md#remove-a-person"
REMOVED = "on the removal list"
SHA256 = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
# As people copy them: an item of Wikidata from its page, a digest from the tools that make one.
ITEM = re.compile(
    r"(?:https?://(?:www\.)?wikidata\.org/(?:wiki|entity)/|wd:)?(q\d+)", re.IGNORECASE
)
DIGEST = re.compile(r"(?:sha256[:-])?([0-9a-f]{64})", re.IGNORECASE)
POSTS = ("t1_", "t3_")  # comments and posts of Reddit, whose ids are hidden behind these
POST = re.compile(r"(t[13]_)?([a-z0-9]{4,12})", re.IGNORECASE)


def pseudonym(identity: str) -> str:
    """Return the number that stands for somebody: the same as long as the salt is, 16 digits.

    The first call makes the salt. Whoever has it can tell again who is who by trying.
    """
    return _keyed(identity, salt())


def _keyed(identity: str, key: bytes) -> str:
    return hashlib.blake2b(identity.encode(), key=key, digest_size=8).hexdigest()


def salt() -> bytes:
    """Return the salt of this checkout.

    Raises UserError if its file cannot be read or written, or is none.
    """
    try:
        FOLDER.mkdir(exist_ok=True)
        if not SALT.exists():
            part = FOLDER / f".salt-{os.getpid()}"
            part.touch(mode=0o600)
            try:
                part.write_text(secrets.token_hex(32) + "\n", "ascii")
                os.link(part, SALT)  # whole or not at all; the first of two processes wins
            except FileExistsError:
                pass
            finally:
                part.unlink()
        text = SALT.read_text("ascii").strip()
    except (OSError, ValueError) as error:
        raise UserError(f"{SALT}: cannot be read or written ({error}); mend that first") from error
    if not SHA256.fullmatch(text):
        raise UserError(f"{SALT}: not 64 hexadecimal digits; put the file back that was there")
    return bytes.fromhex(text)


@dataclass(frozen=True)
class Removed:
    """What is to be left out: Wikidata items and ids, with their pseudonyms; sha256 of texts."""

    ids: frozenset[str]
    texts: frozenset[str]

    def __bool__(self) -> bool:
        """Tell whether there is anything."""
        return bool(self.ids or self.texts)

    def has(self, value: Any) -> bool:
        """Tell whether a cell is something to be left out, or a list that has such in it."""
        if isinstance(value, list | tuple):
            return any(map(self.has, value))
        if not isinstance(value, str):
            return False
        if (
            self.texts
            and hashlib.sha256(value.encode("utf-8", "replace")).hexdigest() in self.texts
        ):
            return True
        # an id may have its source before it: reddit/ID
        own = (value, value.partition("/")[2], *value.split("/"))
        return " " not in value and not self.ids.isdisjoint(own)


def removed() -> Removed:
    """Return what the removal list names.

    A line names one thing, before any comma; what follows ``#`` is a remark.

    Raises UserError if a file cannot be read, or a line is no item, sha256 or id.
    """
    ids, texts = set(), set()
    for path in sorted(FOLDER.glob("removed.*")):
        if path.suffix not in (".txt", ".csv"):
            raise UserError(f"{path}: the removal list is removed.txt or removed.csv; rename it")
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); save it as UTF-8") from error
        for number, line in enumerate(lines, start=1):
            entry = re.split("[#,]", line)[0].strip().strip("\"'")
            if found := DIGEST.fullmatch(entry):
                texts.add(found[1].lower())
            elif found := ITEM.fullmatch(entry):
                ids |= {entry, found[1].upper()}
            elif re.search(r"\s|reddit\.com/|redd\.it/", entry):
                raise UserError(
                    f"{path}, line {number}: an item, a sha256 or an id has no spaces; of a text "
                    f"write the sha256, of a post write its id, not the address ({PAGE})"
                )
            elif entry:
                ids.add(entry)
    if ids and SALT.exists():
        key = salt()
        posts = [found for entry in ids if (found := POST.fullmatch(entry))]
        kinds = {(kind, post[2]) for post in posts for kind in ([post[1]] if post[1] else POSTS)}
        ids |= {_keyed(entry, key) for entry in ids}
        ids |= {f"{kind}{_keyed(own, key)}" for kind, own in kinds}
    return Removed(frozenset(ids), frozenset(texts))


def without(stream: Iterable[Row | Reject], gone: Removed) -> Iterator[Row | Reject]:
    """Yield what a build yields without what the list names, then how much that was, no more."""
    count: Counter[str] = Counter()
    for item in stream:
        if isinstance(item, Row):
            said, number = [*item.values.values()], 1
        else:
            words = re.split(r"[\s;,]+", f"{item.key} {item.detail}")
            said, number = [item.key, item.detail, *words], item.number
        if any(map(gone.has, said)):
            count[item.config] += number
        else:
            yield item
    for config, number in sorted(count.items()):
        yield Reject(config, "", REMOVED, number=number)


def held(folder: Path, gone: Removed) -> int:
    """Return how many rows of a folder's parquet files hold something that is to be left out."""
    import polars as pl

    rows = 0
    for path in sorted(folder.rglob("*.parquet")) if gone else ():
        frame, hits = pl.read_parquet(path), [pl.lit(value=False)]
        for name, kind in frame.schema.items():
            if kind == pl.String:
                own = [cell for cell in frame[name].drop_nulls().unique() if gone.has(cell)]
                hits.append(pl.col(name).is_in(own))
            elif kind == pl.List(pl.String):
                cells = frame[name].drop_nulls().explode().drop_nulls().unique()
                own = [cell for cell in cells if gone.has(cell)]
                hits.append(pl.col(name).list.eval(pl.element().is_in(own)).list.any())
        rows += frame.filter(pl.any_horizontal(hits)).height
    return rows
