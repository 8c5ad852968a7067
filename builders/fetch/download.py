"""Large files: streamed to disk, continued where a broken line left them, whole at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from plumbline.builders.core.errors import UNWRITTEN, UserError
from plumbline.builders.fetch.http import (
    HINT,
    Busy,
    Politeness,
    Slow,
    opened,
    patiently,
    pieces,
    refuse,
)

SLOWEST = 1 << 20  # bytes within timeout_s; a line slower than this counts as a failure


def download(
    url: str, policy: Politeness, path: Path, expect: Callable[[Path], str | None]
) -> None:
    """Fetch one file to disk, piece by piece.

    An unfinished file is kept next to the final one under a name that begins with a dot. It is
    continued after ``timeout_s`` and after a kill, if the server names versions of the file (a
    strong ETag, or Last-Modified) and sends ranges (RFC 9110, 14.2 and 13.1.5). Elsewhere the file
    is downloaded again.

    ``expect``: returns what is wrong with the complete file, or None.

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
    except OSError as error:
        raise UserError(UNWRITTEN.format(path=path, why=error.strerror)) from error
    version.unlink(missing_ok=True)
    if wrong := expect(part):
        part.unlink()
        raise UserError(f"{url}: {wrong}; {HINT}")
    part.chmod(0o644)
    part.replace(path)


def _piece(url: str, policy: Politeness, part: Path, version: Path) -> bool:
    """Request the missing part once; return whether the file is complete.

    Raises Slow if it is not, and too little was received to request the rest at once.
    """
    have = part.stat().st_size if part.exists() and version.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.read_text("utf-8")}
    came = 0
    try:
        with opened(url, policy, headers) as answer:
            begins = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range", ""))
            status, rest = answer.status_code, answer.status_code == 206
            if status == 416 and answer.headers.get("Content-Range") == f"bytes */{have}":
                return True  # the process was killed when it had the last byte
            if status == 416 or (rest and (begins is None or int(begins[1]) != have)):
                version.unlink(missing_ok=True)
                raise Busy(f"HTTP {status}, not the rest of the file")
            refuse(answer, url)
            with part.open("ab" if rest else "wb") as file:
                if not rest:
                    _remember(version, answer.headers)
                for piece in pieces(answer, policy):
                    came += file.write(piece)
            return True
    except Slow:
        if came < SLOWEST or not version.exists():
            raise
    return False


def _remember(version: Path, headers: Mapping[str, str]) -> None:
    """Store the name of this version of the file, if the server has one."""
    tag = headers.get("ETag", "")
    name = headers.get("Last-Modified", "") if not tag or tag.startswith("W/") else tag
    version.unlink(missing_ok=True)
    if name and headers.get("Content-Encoding", "identity") == "identity":
        version.write_text(name, "utf-8")
