"""The folder ``private/``, which git and DVC ignore: the salt of pseudonyms, and the removal list.

Before anything is written, the identities of people are replaced with pseudonyms, which can be
traced back only with the salt. Files whose names begin with ``removed`` list the people and texts
that are never built into a dataset or published.
"""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from plumbline.builders.core.errors import UserError, reading, warn
from plumbline.builders.core.parquet import DATASETS, Reject, Row
from plumbline.builders.core.snapshot import write_bytes

FOLDER = Path("private")
SALT = FOLDER / "salt"
PAGE = "docs/howto/publishing.md#remove-a-person"
REMOVED = "on the removal list"
SHA256 = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
MATCHED = FOLDER / "matched"  # list of entries that matched a dataset before it was rebuilt
# Entries may be pasted with surrounding text, e.g. an item's address or a tool's output.
WHERE = r"(?:\S*wikidata\.org/(?:\S*[\W_])??|(?:\w*:|wiki(?:data)?/|entity/)*)"
ITEM = re.compile(rf"(?i){WHERE}Q\|?Q?0*(\d+)(?:[?&/.|]\S*)?")
LIKE_ITEM = re.compile(r"(?i)(?<![^\W_])Q[|:]?0*(\d+)(?![^\W_])|^Q[\W_]\d|(?-i:^0?Q\d)")
DIGEST = re.compile(r"(?i)(?:\S*[:=-] ?)?([0-9a-f]{64})(?: .*)?")
CERTAIN = re.compile(r"(?i)(?<!\w)(?:Q\d\d+|[0-9a-f]{64}|t[13]_\w+)(?!\w)")
NO_ID = re.compile(
    r"(?i)\s|(reddit|wikidata|wiki[pm]edia)\.(com|org)|redd\.it/"
    r"|[0-9a-f]{40}|([0-9a-f]{2}[:-]){15}|^(sha\d+[:-])?[a-z0-9+/]{43}$"  # other forms of hashes
)
AROUND = re.compile(r"^[\W_]+|[\W_]+$")  # punctuation around an entry
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
POSTS = ("t1_", "t3_")  # prefixes of the pseudonymised ids of Reddit comments and posts
POST = re.compile(r"(t[13]_)?([a-z0-9]{4,12})", re.IGNORECASE)


def pseudonym(identity: str) -> str:
    """Return a person's pseudonym: 16 hexadecimal digits that are constant for a given salt.

    The first call creates the salt. Anyone who has the salt can reverse pseudonyms by enumeration.
    """
    return _keyed(identity, salt())


def _keyed(identity: str, key: bytes) -> str:
    return hashlib.blake2b(identity.encode(), key=key, digest_size=8).hexdigest()


def salt() -> bytes:
    """Return the salt of this checkout.

    Raises UserError if its file does not contain 64 hexadecimal digits.
    """
    if not SALT.exists():
        FOLDER.mkdir(exist_ok=True)
        part = FOLDER / f".salt-{os.getpid()}"
        part.touch(mode=0o600)
        part.write_text(secrets.token_hex(32) + "\n", "ascii")
        with suppress(FileExistsError):
            os.link(part, SALT)  # atomic: only the first of two processes succeeds
        part.unlink()
    text = SALT.read_text("ascii", "replace").strip()
    if not SHA256.fullmatch(text):
        raise UserError(f"{SALT}: must contain 64 hexadecimal digits; restore the previous file")
    return bytes.fromhex(text)


@dataclass(frozen=True)
class Removed:
    """Entries of the removal list, by every form in which a cell may contain them."""

    forms: Mapping[str, str]  # entry by form: item, id, sha256 of a text, pseudonym
    places: Mapping[str, str]  # file and line, by entry
    texts: bool  # whether any entry is a sha256
    hits: set[str] = field(default_factory=set)  # entries that have matched a cell

    def has(self, value: Any) -> bool:
        """Return True if a cell, or any value in a cell with a list, matches an entry."""
        if isinstance(value, list | tuple):
            return True in {self.has(part) for part in value}  # a set, to record every match
        if not isinstance(value, str):
            return False
        forms = _digests(value) if self.texts else set[str]()
        if " " not in value:  # the source may precede an id, as in reddit/ID
            forms |= {value, value.partition("/")[2], *value.split("/")}
        hits = {self.forms[form] for form in forms & self.forms.keys()}
        self.hits.update(hits)
        return bool(hits)


def _digests(text: str) -> set[str]:
    """Return the hashes of a text as it is, in NFC and in NFD, with and without a line ending."""
    forms = {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}
    bodies = (form + end for form in forms for end in ("", "\n", "\r\n"))
    return {hashlib.sha256(body.encode("utf-8", "replace")).hexdigest() for body in bodies}


def _read_entry(line: str) -> str:
    """Return the item, sha256 or id in a line, or "" if the line is empty or a comment.

    Raises ValueError if the line contains none of these, or more than one.
    """
    plain = unicodedata.normalize("NFKC", re.sub(r"\s", " ", unescape(line))).partition("#")[0]
    plain = "".join(c for c in plain if unicodedata.category(c)[0] not in "CM")
    first, *remarks = re.split("[,;]", plain)
    entry = AROUND.sub("", unquote(first))
    items = {match[1] for match in LIKE_ITEM.finditer(entry)}
    if len(items) > 1 or any(map(CERTAIN.search, remarks)):
        raise ValueError("more than one entry; write each on a separate line")
    if digest := DIGEST.fullmatch(entry):
        return digest[1].lower()
    if item := ITEM.fullmatch(entry):
        return f"Q{int(item[1])}"
    if items or NO_ID.search(entry):
        raise ValueError(
            "not an item, sha256 or id; write the sha256 of a text, the id of a post, or the item "
            f"of a page, not the address ({PAGE})"
        )
    return entry


def _is_list(path: Path) -> bool:
    """Return True if the name of a file, or of its folder in private/, begins with 'removed'.

    Raises UserError if another file contains only entries, or has a name that contains 'remov'.
    """
    if not path.is_file():
        return False
    names = [part.lower() for part in path.relative_to(FOLDER).parts]
    if any(name.startswith("removed") for name in names):
        return True
    listed = "remov" in names[-1] and names[-1][0] != "."  # an editor's copy begins with a dot
    with suppress(OSError, ValueError), path.open("rb") as file:
        body = b"".join(file.readlines(4096))  # complete lines
        lines = body.decode("utf-16" if body[:2] in UTF16 else "utf-8-sig").splitlines()[:100]
        entries = [entry for line in lines if (entry := _read_entry(line))]
        listed |= bool(entries) and all(map(CERTAIN.fullmatch, entries))
    if listed and path not in (SALT, MATCHED):
        raise UserError(f"{path}: the name of a removal list must begin with 'removed'")
    return False


def removed() -> Removed:
    """Return the entries of the removal list.

    Each line contains one entry, before any comma or semicolon; ``#`` begins a comment.

    Raises UserError if a file cannot be read, or a line is not an item, sha256 or id.
    """
    forms: dict[str, str] = {}
    places: dict[str, str] = {}
    for path in filter(_is_list, sorted(FOLDER.rglob("*"))):
        with reading(path, "save it as UTF-8"):
            lines = path.read_text("utf-8-sig").splitlines()
        for number, line in enumerate(lines, start=1):
            with reading(f"{path}, line {number}", "fix the line"):
                entry = _read_entry(line)
            if entry:
                places[entry] = f"{path}, line {number}"
                first = re.split("[#,;]", line)[0].strip(" \t\"'")
                forms |= dict.fromkeys({first, line.strip(), entry} - {""}, entry)
    if forms and SALT.exists():
        key = salt()
        for form, entry in [*forms.items()]:
            forms[_keyed(form, key)] = entry
            if post := POST.fullmatch(form.lower()):
                kinds = [post[1]] if post[1] else POSTS
                forms |= {f"{kind}{_keyed(post[2], key)}": entry for kind in kinds}
    return Removed(forms, places, any(map(SHA256.fullmatch, places)))


def note_matched(gone: Removed) -> set[str]:
    """Return the entries that match a dataset, or did so before, and write them to a file."""
    matched = set(MATCHED.read_text("utf-8").splitlines()) if MATCHED.exists() else set()
    if gone.hits - matched:
        lines = sorted((matched | gone.hits) & gone.places.keys())
        write_bytes(MATCHED, "".join(f"{line}\n" for line in lines).encode())
    return matched | gone.hits


def warn_unmatched() -> None:
    """Warn about entries that match no dataset and have never matched one."""
    gone = removed()
    if gone.places.keys() - note_matched(gone):
        held(DATASETS, gone)
    for entry in sorted(gone.places.keys() - note_matched(gone)):
        warn(f"{gone.places[entry]}: {entry} matches no row of any dataset; correct the entry")


def without(stream: Iterable[Row | Reject], gone: Removed) -> Iterator[Row | Reject]:
    """Yield the items of a build that match no entry, then the number of removals per config."""
    count: Counter[str] = Counter()
    for item in stream:
        if isinstance(item, Row):
            cells, number = [*item.values.values()], 1
        else:
            words = re.split(r"[\s;,]+", f"{item.key} {item.detail}")
            cells, number = [item.key, item.detail, *words], item.number
        if gone.has(cells):
            count[item.config] += number
        else:
            yield item
    note_matched(gone)
    for config, number in sorted(count.items()):
        yield Reject(config, "", REMOVED, number=number)


def held(folder: Path, gone: Removed) -> int:
    """Count the rows in a folder's parquet files that match an entry of the removal list."""
    import polars as pl

    rows = 0
    for path in sorted(folder.rglob("*.parquet")) if gone.places else ():
        frame, hits = pl.read_parquet(path), [pl.lit(value=False)]
        for name in frame.select(pl.selectors.by_dtype(pl.String, pl.List(pl.String))).columns:
            listed = frame.schema[name] == pl.List(pl.String)
            cells = frame[name].explode() if listed else frame[name]
            listed_cells = [cell for cell in cells.drop_nulls().unique() if gone.has(cell)]
            inner = pl.element() if listed else pl.col(name)
            hit = inner.is_in(listed_cells)
            hits.append(pl.col(name).list.eval(hit).list.any() if listed else hit)
        rows += frame.filter(pl.any_horizontal(hits)).height
    return rows
