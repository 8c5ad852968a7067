"""Large files: streamed to disk, continued where a broken line left them, whole at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from plumbline.builders.core.errors import UNWRITTEN, UserError
from plumbline.builders.fetch.http import (
    HINT,
    Busy,
    Politeness,
    Slow,
    TooLarge,
    opened,
    patiently,
    pieces,
    refuse,
    too_large,
)

SLOWEST = 1 << 20  # bytes within timeout_s; a line slower than this counts as a failure


def download(
    url: str, policy: Politeness, path: Path, expect: Callable[[Path], str | None]
) -> None:
    """Fetch one file to disk, piece by piece.

    What has come of it lies beside it under a name that begins with a dot. An answer that takes
    longer than ``timeout_s`` is broken off and continued; so is one that a killed process left, if
    the server tells versions of a file apart (a strong ETag, or Last-Modified) and sends ranges
    (RFC 9110, 14.2 and 13.1.5). Elsewhere the file is downloaded anew.

    ``expect``: looks at the whole file and returns what is wrong with it, or None.

    Raises UserError on a status that no retry mends, a wrong file, a full disk, or when all
    attempts failed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part, version = path.with_name(f".part-{path.name}"), path.with_name(f".version-{path.name}")

    def ask() -> None:
        while not _piece(url, policy, part, version):
            pass

    try:
        patiently(ask, url, policy)
    except TooLarge:
        part.unlink()
        raise
    except OSError as error:
        raise UserError(UNWRITTEN.format(path=path, why=error.strerror)) from error
    version.unlink(missing_ok=True)
    if wrong := expect(part):
        part.unlink()
        raise UserError(f"{url}: {wrong}; {HINT}")
    part.chmod(0o644)
    part.replace(path)


def _piece(url: str, policy: Politeness, part: Path, version: Path) -> bool:
    """Ask once for what is lacking; return whether the file is whole.

    Raises Slow if it is not, and too little has come to ask for the rest at once.
    """
    have = part.stat().st_size if part.exists() and version.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.read_text("utf-8")}
    end, came = time.monotonic() + policy.timeout_s, 0
    try:
        with opened(url, policy, headers) as answer:
            begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
            status, rest = answer.status_code, answer.status_code == 206
            if status == 416 and answer.headers.get("Content-Range") == f"bytes */{have}":
                return True  # a process that had the last of it was killed while it looked at it
            if status == 416 or (rest and (begins is None or int(begins[1]) != have)):
                version.unlink(missing_ok=True)
                raise Busy(f"HTTP {status}, not the rest of the file")
            refuse(answer, url)
            with part.open("ab" if rest else "wb") as file:
                if not rest:
                    _remember(version, answer.headers)
                for found in pieces(answer, policy, end):
                    came += file.write(found)
                    if have * rest + came > policy.most:
                        raise too_large(url, policy.most)
            return True
    except Slow:
        if came < SLOWEST or not version.exists():
            raise
    return False


def _remember(version: Path, headers: Mapping[str, str]) -> None:
    """Keep what tells this version of the file from others; nothing where that cannot be told."""
    tag = headers.get("ETag", "")
    known = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    version.unlink(missing_ok=True)
    if known and headers.get("Content-Encoding", "identity") == "identity":
        version.write_text(known, "utf-8")
