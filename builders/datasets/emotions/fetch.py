"""The NRC Word-Emotion Association Lexicon (EmoLex), from its authors' archive."""

from __future__ import annotations

import hashlib
from collections import deque
from pathlib import Path

from pydantic import Field

from plumbline.builders.core.errors import Bar, reading
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.datasets.emotions.build import FILE, lexicon
from plumbline.builders.fetch.files import Fetch
from plumbline.builders.fetch.http import ADDRESS, Politeness, get
from plumbline.builders.readers.archives import unpacked
from plumbline.builders.readers.table import web_page

DIGEST = "archive.sha256"
CITATION = (
    "Mohammad and Turney (2013), Crowdsourcing a word-emotion association lexicon, Computational "
    "Intelligence 29(3), 436-465, https://doi.org/10.1111/j.1467-8640.2012.00460.x; "
    "http://saifmohammad.com/WebPages/NRC-Emotion-Lexicon.htm"
)


class Params(Section):
    """Address of the archive, and its files."""

    address: str = Field(pattern=ADDRESS, description="address of the zip archive")
    files: dict[str, str] = Field(
        min_length=1, description="for each language, the path of its lexicon inside the archive"
    )
    licence: str = Field(description="terms of use stated by the authors")


def fetch(params: Params, politeness: Politeness, into: Path) -> None:
    """Download the archive and extract the files named in the params, byte for byte.

    The sha256 of the archive is stored next to them.
    """
    fetch = Fetch("emotions", params, politeness, into)
    files = [(f"{code}/{FILE}", name) for code, name in sorted(params.files.items())]
    if not all((into / path).exists() for path in (DIGEST, *(path for path, _ in files))):
        body = get(params.address, politeness, web_page)
        advice = "check the paths under sources.emotions.files, and fetch again"
        for path, name in Bar(files, desc="emotions", unit="file"):
            with reading(f"{params.address}: {name}", advice):
                text = unpacked(body, name)
                deque(lexicon(text), maxlen=0)
            write_bytes(into / path, text)
        write_bytes(into / DIGEST, f"{hashlib.sha256(body).hexdigest()}\n".encode())
    fetch.close(params.address, params.licence, CITATION, {"languages": len(files)})
