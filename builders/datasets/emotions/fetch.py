"""The NRC Word-Emotion Association Lexicon (EmoLex), as its authors publish it: one archive."""

from __future__ import annotations

import hashlib
import io
import zipfile
import zlib
from typing import TYPE_CHECKING

from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.progress import Bar
from plumbline.builders.core.snapshot import resume, same_request, write_bytes, write_manifest
from plumbline.builders.datasets.emotions.build import FILE, lexicon
from plumbline.builders.fetch.http import ADDRESS, Politeness, get

if TYPE_CHECKING:
    from pathlib import Path

CITATION = (
    "Mohammad and Turney (2013), Crowdsourcing a word-emotion association lexicon, Computational "
    "Intelligence 29(3), 436-465, https://doi.org/10.1111/j.1467-8640.2012.00460.x; "
    "http://saifmohammad.com/WebPages/NRC-Emotion-Lexicon.htm"
)


class Params(Section):
    """Where the archive is, and which of its files are taken."""

    address: str = Field(pattern=ADDRESS, description="address of the zip archive")
    files: dict[str, str] = Field(
        min_length=1, description="for each language, the path of its lexicon inside the archive"
    )
    licence: str = Field(description="the authors' terms")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Fetch the archive and keep the files named in the params, byte for byte as they are in it.

    The manifest has the sha256 of the archive. Resumable: where all files are there, the archive
    is not asked for again; the manifest comes last.

    Raises
    ------
    Problem
        If the address is wrong or out of reach, the body is no whole zip archive, a file is not
        in it or not a lexicon, or the folder holds a fetch that was begun with other parameters.
    """
    resume(into)
    request = params.model_dump(mode="json")
    begun = into / ".request.json"  # until the manifest, which holds it too, is written
    same_request(begun, request)
    digest = into / "archive.sha256"
    wanted = sorted(params.files.items())
    if not digest.exists() or any(not (into / code / FILE).exists() for code, _ in wanted):
        body = get(params.address, politeness, lambda found: _wrong(found, params.files))
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            for code, name in Bar(wanted, desc="emotions", unit="file"):
                write_bytes(into / code / FILE, archive.read(name))
        write_bytes(digest, f"{hashlib.sha256(body).hexdigest()}\n".encode())
    write_manifest(
        into,
        {
            "source": "emotions",
            "address": params.address,
            "retrieved": into.name,
            "licence": params.licence,
            "citation": CITATION,
            "request": request,
            "counts": {"languages": len(params.files)},
        },
    )
    begun.unlink()


def _wrong(body: bytes, files: dict[str, str]) -> str | None:
    """Return what is wrong with an archive, or None if every file in it is a whole lexicon."""
    if body.lstrip()[:1] == b"<":
        return "a web page, not a zip archive"
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            for name in files.values():
                for _ in lexicon(archive.read(name)):
                    pass
    except (zipfile.BadZipFile, zlib.error, RuntimeError, EOFError):  # damaged, or encrypted
        return "not a whole zip archive"
    except KeyError:
        return f"no {name} in the archive"
    except ValueError as error:
        return f"{name}: {error}"
    return None
