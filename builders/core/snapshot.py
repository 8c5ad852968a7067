"""Snapshots: the responses of a source, byte for byte, and a manifest that is written last.

A folder without ``manifest.json`` is an unfinished fetch, and is never read as an input.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plumbline.builders.core.errors import UNWRITTEN, UserError, mask, reading

MANIFEST = "manifest.json"
LEFT = (".writing-*", ".part-*", ".version-*", ".dump-*")  # temporary files of an interrupted fetch
REQUIRED = ("source", "address", "retrieved", "licence", "citation", "request", "counts", "files")
READ = 256 << 20  # maximum decompressed bytes of a file, a response or an archive member


class TooLarge(ValueError):  # noqa: N818
    """Content that is larger than the maximum size."""


def within(size: int) -> None:
    """Raise TooLarge if a size in bytes exceeds :data:`READ`."""
    if size > READ:
        raise TooLarge(f"larger than {READ >> 20:,} MB, the maximum that is read")


def unzipped(body: bytes) -> bytes:
    """Return the content of a gzip file.

    Raises ValueError if it is too large or damaged.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            content = file.read(READ + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError("not a complete gzip file") from error
    within(len(content))
    return content


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Write a file atomically: yield the path of a temporary file, which is renamed at the end.

    Raises UserError if the file cannot be written.
    """
    part = path.with_name(f".writing-{path.name}")  # the next write overwrites a leftover
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(UNWRITTEN.format(path=path, why=error.strerror)) from error


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during a fetch; the system releases it if the process is killed.

    Raises UserError if another fetch holds the lock.
    """
    from filelock import FileLock, Timeout

    path = folder.with_name(f".{folder.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, blocking=False):
            try:
                yield
            finally:  # before the lock is released, so that a waiting process creates its own
                path.unlink(missing_ok=True)
    except Timeout as error:
        raise UserError(f"{folder}: another fetch uses this folder; wait until it ends") from error


def write_bytes(path: Path, body: bytes) -> None:
    """Write a file atomically; see :func:`writing`."""
    with writing(path) as part:
        part.write_bytes(body)


def write_gzip(path: Path, body: bytes) -> None:
    """Compress a body and write it; equal bodies give equal bytes."""
    write_bytes(path, gzip.compress(body, compresslevel=6, mtime=0))


def digest(path: Path) -> str:
    """Return a file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def manifest_digests(snapshots: Iterable[Snapshot]) -> dict[str, str]:
    """Return the sha256 of each snapshot's manifest, by path."""
    manifests = [snapshot.folder / MANIFEST for snapshot in snapshots]
    return {path.as_posix(): digest(path) for path in manifests}


def hash64(text: str) -> int:
    """Return a 64-bit hash of a text, which is the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def resume(begun: Path, request: dict[str, Any]) -> None:
    """Prepare the folder of a new or interrupted fetch, and remove edited files from it.

    ``begun``: file in the folder that stores the request until the manifest is written.

    Raises UserError if the fetch was begun with other parameters.
    """
    folder, manifest, files, stored = begun.parent, begun.with_name(MANIFEST), {}, request
    try:
        if manifest.is_file():
            facts = json.loads(manifest.read_text(encoding="utf-8"))
            files, stored = dict(facts["files"]), dict(facts["request"])
        elif begun.is_file():
            stored = dict(json.loads(begun.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{folder}: damaged ({error}); remove the folder and fetch again"
        ) from error
    if any(stored.get(key) != request.get(key) for key in {*request, "mirror"}):
        raise UserError(
            f"{folder}: contains a fetch with other parameters; restore those in params.yaml, or "
            "fetch with another --date"
        )
    for path, sha256 in ((folder / name, sha256) for name, sha256 in files.items()):
        if path.is_file() and digest(path) != sha256:
            path.unlink()
    if not begun.is_file():
        write_bytes(begun, _as_json(request).encode())


def _as_json(tree: dict[str, Any]) -> str:
    return json.dumps(tree, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Complete a snapshot: hash its files, then write the manifest.

    Files whose names begin with a dot are not part of the snapshot.
    """
    for path in [path for kind in LEFT for path in folder.rglob(kind)]:
        path.unlink()
    files = sorted(p for p in folder.rglob("[!.]*") if p.is_file() and p.name != MANIFEST)
    facts = facts | {"files": {p.relative_to(folder).as_posix(): digest(p) for p in files}}
    assert not (missing := _missing(facts)), f"a manifest needs {missing}"
    write_bytes(folder / MANIFEST, mask(_as_json(facts)).encode())


def _missing(facts: dict[str, Any]) -> list[str]:
    return [key for key in REQUIRED if key not in facts or not (facts[key] or key == "counts")]


@dataclass(frozen=True)
class Snapshot:
    """A complete snapshot, opened for reading."""

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Snapshot:
        """Open a snapshot, and check that every file exists and is unchanged.

        Raises UserError if the manifest, a file, or a fact in the manifest is missing, or a file
        has changed.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise UserError(
                f"{folder}: not a complete snapshot; fetch it (python -m plumbline.builders fetch "
                "SOURCE continues where it stopped), `dvc pull` it, or name another in params.yaml"
            )
        with reading(path, "fetch the snapshot again"):
            manifest = json.loads(path.read_text(encoding="utf-8"))
        if missing := _missing(manifest):
            raise UserError(f"{path}: {missing[0]!r} is missing; fetch the snapshot again")
        for name, sha256 in manifest["files"].items():
            file = folder / name
            if not file.is_file() or digest(file) != sha256:
                raise UserError(
                    f"{file}: missing, or its bytes differ from the manifest's sha256; fetch it "
                    "again or `dvc checkout` it"
                )
        return cls(folder, manifest)

    def names(self, prefix: str) -> Iterator[str]:
        """Yield the file names that begin with a prefix, sorted."""
        yield from sorted(n for n in self.manifest["files"] if n.startswith(prefix))

    def read(self, name: str) -> bytes:
        """Return the content of a file, decompressed if its name ends in ``.gz``."""
        return whole(self.folder / name)


def whole(path: Path) -> bytes:
    """Return a file's content, decompressed if its name ends in ``.gz``.

    Raises ValueError if it is too large or damaged.
    """
    within(path.stat().st_size)
    body = path.read_bytes()
    return unzipped(body) if path.suffix == ".gz" else body
