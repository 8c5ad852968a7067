"""Large files: streamed to disk, continued where a broken line left them, whole at the end."""

from __future__ import annotations

import re
import time
from typing import IO, TYPE_CHECKING, Any

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import UNWRITTEN
from plumbline.builders.fetch.http import Busy, Slow, opened, patiently, refuse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import requests

    from plumbline.builders.fetch.http import Politeness

PIECE = 1 << 16
SLOWEST = 1 << 20  # bytes within timeout_s; a line slower than this counts as a failure


def download(
    url: str, policy: Politeness, path: Path, expect: Callable[[Path], str | None]
) -> None:
    """Fetch one file to disk, piece by piece.

    What has come of it lies beside it under a name that begins with a dot. An answer that takes
    longer than ``timeout_s`` is broken off and continued; so is one that a killed process left, if
    the server tells versions of a file apart (a strong ETag, or Last-Modified) and sends ranges
    (RFC 9110, 14.2 and 13.1.5). Elsewhere the file is downloaded anew.

    Parameters
    ----------
    expect
        Looks at the whole file and returns what is wrong with it, or None.

    Raises
    ------
    UserError
        On a status that no retry mends, a wrong file, a full disk, or when all attempts failed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part, version = path.with_name(f".part-{path.name}"), path.with_name(f".version-{path.name}")

    def ask() -> None:
        while not _piece(url, policy, part, version):
            pass

    try:
        patiently(ask, url, policy)
    except OSError as error:
        raise UserError(UNWRITTEN.format(path=path, why=error.strerror)) from error
    version.unlink(missing_ok=True)
    if wrong := expect(part):
        part.unlink()
        raise UserError(f"{url}: {wrong}; check the address in its sources.yaml")
    part.chmod(0o644)
    part.replace(path)


def _piece(url: str, policy: Politeness, part: Path, version: Path) -> bool:
    """Ask once for what is lacking; return whether the file is whole now."""
    have = part.stat().st_size if part.exists() and version.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.read_text("utf-8")}
    end = time.monotonic() + policy.timeout_s
    try:
        with opened(url, policy, **headers) as answer:
            if _goes_on(answer, have, version, url):
                mode = "ab"
            else:
                mode, have = "wb", 0
                _remember(version, answer.headers)
            with part.open(mode) as file:
                if _copy(answer.raw, file, end):
                    return True
    except Slow:
        if not _came(part, version, have):
            raise
    if not _came(part, version, have):
        raise Slow(f"no whole answer within {policy.timeout_s:g} s")
    return False


def _goes_on(answer: requests.Response, have: int, version: Path, url: str) -> bool:
    """Return whether the answer is what follows on the bytes that are here, or the whole file."""
    status = answer.status_code
    begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
    if status == 416 or (status == 206 and (begins is None or int(begins[1]) != have)):
        version.unlink(missing_ok=True)
        raise Busy(f"HTTP {status}, not the rest of the file")
    refuse(answer, url)
    return status == 206


def _copy(body: Any, file: IO[bytes], end: float) -> bool:
    """Write a body piece by piece until it ends, or until a time; return whether it ended."""
    while found := body.read1(PIECE, decode_content=True):
        file.write(found)
        if time.monotonic() > end:
            return False
    return True


def _came(part: Path, version: Path, have: int) -> bool:
    """Return whether enough has come to ask for the rest at once."""
    return version.exists() and part.exists() and part.stat().st_size - have >= SLOWEST


def _remember(version: Path, headers: requests.structures.CaseInsensitiveDict[str]) -> None:
    """Keep what tells this version of the file from others; nothing where that cannot be told."""
    tag = headers.get("ETag", "")
    known = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    encoded = headers.get("Content-Encoding", "identity") != "identity"
    if known and not encoded:
        version.write_text(known, "utf-8")
    else:
        version.unlink(missing_ok=True)
