"""Snapshots of published files; the params contain their addresses or paths in the checkout.

A fetch is resumable: existing files are not downloaded again, and the manifest is written last. The
manifest contains the declarations of the files, so that a snapshot can be read without the params.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from string import Formatter
from typing import Any

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import resume, within, write_bytes, write_manifest, writing
from plumbline.builders.fetch.http import ADDRESS, Politeness, download, get, mirror_of
from plumbline.builders.readers.table import web_page


class Fetch:
    """A fetch into a folder that is named after its date.

    Raises UserError if the folder contains a fetch with other parameters.

    ``page``: page of the docs that describes the file formats, to be cited in messages.
    ``exclude``: parameters that may differ when a fetch is continued.
    ``begun``: file that stores the request. When the manifest is written, the file is removed if
    its name begins with a dot.
    ``more``: additional parts of the request.
    """

    def __init__(
        self,
        source: str,
        params: Params,
        politeness: Politeness,
        into: Path,
        page: str = "",
        exclude: frozenset[str] = frozenset(),
        begun: str = ".request.json",
        **more: object,
    ) -> None:
        self.source, self.into, self.politeness = source, into, politeness
        self.where = f"under sources.{source}{f' ({page} describes the formats)' if page else ''}"
        self.request = params.model_dump(mode="json", exclude=set(exclude)) | more
        if mirror_of(politeness):  # without its path, which differs by machine
            self.request["mirror"] = True
        self._begun = into / begun
        resume(self._begun, self.request)

    def read(
        self,
        files: Mapping[str, str],
        reader: Callable[..., Iterable[object]],
        missing: str = "no such file",
        cleared: Callable[[bytes], bytes] = bytes,
    ) -> int:
        """Download or copy files that are read together into the snapshot, byte for byte.

        Returns the number of items that the reader yields.

        Raises UserError if a file is missing or invalid.

        ``files``: address of each file, or its path in the checkout, by its path in the snapshot.
        ``reader``: the reader that also builds the dataset, called with the files' bodies in
        order. Files for which it raises ValueError are not stored.
        ``missing``: message for a file that is not in the checkout.
        ``cleared``: function that removes from a body the bytes that must not be stored.
        """
        bodies = [self._body(path, address, missing) for path, address in files.items()]
        try:
            number = sum(1 for _ in reader(*bodies))
        except ValueError as error:
            wrong = "not UTF-8" if isinstance(error, UnicodeDecodeError) else error
            places = ", ".join(files.values())
            raise UserError(
                f"{places}: {wrong}; fix the file, or its declaration {self.where}"
            ) from error
        for path, body in zip(files, bodies, strict=True):
            if not (self.into / path).exists():
                write_bytes(self.into / path, cleared(body))
        return number

    def _body(self, path: str, address: str, missing: str) -> bytes:
        """Return the bytes of a file, from the snapshot if stored there, else from its address."""
        if (self.into / path).exists():
            return (self.into / path).read_bytes()
        if re.match(ADDRESS, address):
            return get(address, self.politeness, web_page)
        if not Path(address).is_file():
            raise UserError(f"{address}: {missing}; name your file {self.where}")
        with reading(address, f"name another file {self.where}"):
            within(Path(address).stat().st_size)
            body = Path(address).read_bytes()
            if wrong := web_page(body):
                raise ValueError(wrong)
        return body

    def large(self, path: str, address: str, wrong: Callable[[Path], str | None]) -> Path:
        """Download or copy a file, which may be larger than memory; return its path."""
        copy, local = self.into / path, Path(address)
        if copy.exists():
            return copy
        if re.match(ADDRESS, address):
            download(address, self.politeness, copy, wrong)
            return copy
        if not local.is_file():
            raise UserError(f"{local}: no such file; name your file {self.where}")
        if reason := wrong(local):
            raise UserError(f"{local}: {reason}; fix the file, or its declaration {self.where}")
        with writing(copy) as part:
            shutil.copyfile(local, part)
        return copy

    def close(
        self,
        address: str,
        licence: str,
        citation: str,
        counts: Mapping[str, int],
        **more: object,
    ) -> None:
        """Write the manifest; ``more`` is added to the request in it."""
        facts = {
            "source": self.source,
            "address": address,
            "retrieved": self.into.name,
            "licence": licence,
            "citation": citation,
            "request": self.request | more,
            "counts": dict(counts),
        }
        write_manifest(self.into, facts)
        if self._begun.name.startswith("."):
            self._begun.unlink()


def licences(declared: Iterable[tuple[str, Any]]) -> str:
    """Return the licences of files, each with its file's name and any ban on publishing rows."""
    return joined(f"{name}: {getattr(entry, 'stated', entry.licence)}" for name, entry in declared)


def citations(declared: Iterable[tuple[str, Any]]) -> str:
    """Return the citations of files, each with the file's name."""
    return joined(f"{name}: {entry.citation}" for name, entry in declared)


def joined(texts: Iterable[str]) -> str:
    """Return the distinct texts, sorted and joined into one line."""
    return "; ".join(sorted(set(texts)))


def declared_once(
    declared: Mapping[str, Sequence[Any]],
    addresses: Callable[[Any], Iterable[str]],
    form: str = ADDRESS,
) -> None:
    """Check that the files of each language have distinct names and valid addresses.

    Raises a ValueError that names the language, and the address if that is invalid.
    """
    for language, entries in declared.items():
        names = [entry.name for entry in entries]
        if len(set(names)) < len(names) or not names:
            raise ValueError(f"{language}: needs entries with distinct names")
        for address in (address for entry in entries for address in addresses(entry)):
            if not re.match(form, address):
                raise ValueError(f"{language}: {address!r} is not an http address")


def fillable(*names: str) -> Callable[[str], str]:
    """Return a validator for addresses, in which only placeholders with these names are allowed."""

    def check(value: str) -> str:
        if {name for _, name, _, _ in Formatter().parse(value)} - {None, *names}:
            raise ValueError(f"only {', '.join(f'{{{n}}}' for n in names)} may be in braces")
        return value

    return check
