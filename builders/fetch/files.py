"""Snapshots of published files: each from the address, or the place in the checkout, of the params.

A fetch is resumable: a file that is there is not downloaded again, and the manifest is written
last. The manifest holds the files as declared, so that a snapshot says by itself how it is read.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.fetch.download import UNWRITTEN, download
from plumbline.builders.fetch.http import ADDRESS, get

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from plumbline.builders.core.params import Params
    from plumbline.builders.fetch.http import Politeness


class Licensed(Protocol):
    """The licence of a file that others wrote."""

    @property
    def licence(self) -> str:
        """On what terms it may be used."""

    @property
    def redistribute(self) -> bool:
        """Whether its rows may be published."""


class Cited(Protocol):
    """The citation of a file that others wrote."""

    @property
    def citation(self) -> str:
        """What to cite."""


class Fetch:
    """One fetch, into a folder whose name is its date.

    Parameters
    ----------
    exclude
        Parameters that a fetch may be continued with others of.
    more
        What else belongs to the request.

    Raises
    ------
    Problem
        If the folder holds a fetch that was begun with other parameters.
    """

    def __init__(
        self,
        source: str,
        params: Params,
        politeness: Politeness,
        into: Path,
        exclude: frozenset[str] = frozenset(),
        **more: object,
    ) -> None:
        self.source, self.politeness, self.into = source, politeness, into
        resume(into)
        self.request = params.model_dump(mode="json", exclude=set(exclude)) | more
        self._begun = into / ".request.json"  # until the manifest, which holds it too, is written
        same_request(self._begun, self.request)

    def body(
        self,
        path: str,
        place: str,
        wrong: Callable[[bytes], str | None],
        missing: str = "no such file",
    ) -> bytes:
        """Return the bytes of a file of the snapshot, or of its place, if it is not there yet.

        Parameters
        ----------
        wrong
            Returns what is wrong with the bytes, or None.
        missing
            The message where the checkout has no such file.

        Raises
        ------
        Problem
            If it is not there, or something is wrong with it.
        """
        if (self.into / path).exists():
            return (self.into / path).read_bytes()
        if re.match(ADDRESS, place):
            return get(place, self.politeness, wrong)
        if not Path(place).is_file():
            raise Problem(f"{place}: {missing}")
        body = Path(place).read_bytes()
        if said := wrong(body):
            raise Problem(f"{place}: {said}; mend the file, or how it is declared in params.yaml")
        return body

    def keep(self, path: str, body: bytes) -> None:
        """Write a file of the snapshot, unless it is there."""
        if not (self.into / path).exists():
            write_bytes(self.into / path, body)

    def file(
        self,
        path: str,
        place: str,
        wrong: Callable[[bytes], str | None],
        missing: str = "no such file",
    ) -> bytes:
        """Download or copy a file into the snapshot; see :meth:`body`."""
        body = self.body(path, place, wrong, missing)
        self.keep(path, body)
        return body

    def large(self, path: str, place: str, wrong: Callable[[Path], str | None]) -> Path:
        """Download or copy a file that need not fit into memory; return where it is."""
        kept, own = self.into / path, Path(place)
        if kept.exists():
            return kept
        if re.match(ADDRESS, place):
            download(place, self.politeness, kept, wrong)
            return kept
        if not own.is_file():
            raise Problem(f"{own}: no such file; name your copy in params.yaml under sources")
        if said := wrong(own):
            raise Problem(f"{own}: {said}; mend it, or how it is declared in params.yaml")
        writing = kept.with_name(f".writing-{kept.name}")
        try:
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own, writing)
            writing.chmod(0o644)
            writing.replace(kept)
        except OSError as error:
            raise Problem(UNWRITTEN.format(path=kept, why=error.strerror)) from error
        return kept

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
        self._begun.unlink()


def licences(declared: Iterable[tuple[str, Licensed]]) -> str:
    """Return the licence of each of some files by name, and which rows must not be published."""
    return joined(
        f"{name}: {terms.licence}{'' if terms.redistribute else ' (rows not to be published)'}"
        for name, terms in declared
    )


def citations(declared: Iterable[tuple[str, Cited]]) -> str:
    """Return what to cite for each of some files, by name."""
    return joined(f"{name}: {terms.citation}" for name, terms in declared)


def joined(texts: Iterable[str]) -> str:
    """Return texts, each once and sorted, in one line."""
    return "; ".join(sorted(set(texts)))


def web_page(body: bytes) -> str | None:
    """Return that a web page came in place of a file of texts, which any bytes may be, or None."""
    if body.lstrip()[:15].lower().startswith((b"<!doctype", b"<html")):
        return "a web page in place of the file"
    return None


def unreadable(reader: Callable[[bytes], Iterable[object]]) -> Callable[[bytes], str | None]:
    """Return a check of a body by the reader that the dataset is built with."""

    def wrong(body: bytes) -> str | None:
        try:
            for _ in () if web_page(body) else reader(body):
                pass
        except UnicodeDecodeError:
            return "not UTF-8"
        except ValueError as error:
            return str(error)
        return web_page(body)

    return wrong
