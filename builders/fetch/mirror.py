"""Mirrors: folders on disk that are read in place of the network.

``DIR/HOST/PATH`` is what ``https://HOST/PATH`` sends, as ``wget --force-directories`` writes it: a
port other than the usual one follows the host after a colon, a path that ends in ``/`` is its
``index.html``, a query follows after ``?``. Names are spelled as in the address, or with the
percent-encoding undone. Of a SPARQL endpoint ``DIR/HOST/PATH`` is a folder of triples, from which
an engine on this machine answers.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlsplit

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.snapshot import within, writing
from plumbline.builders.fetch import download as network_files
from plumbline.builders.fetch import http as network

PAGE = "docs/howto/fresh-data.md"
TRIPLES = (".nt", ".ttl", ".nt.gz", ".ttl.gz")
STARTING_S = 60.0  # longest time in which the engine must answer
AGAIN = "{url}: {wrong}; bring the file anew that was read in its place, {path}"
USUAL = {"http": ":80", "https": ":443"}


class Reading(network.Politeness):
    """The policy of a client that reads a mirror: nobody is asked, so there is no contact."""

    contact: str = "reads a mirror"
    attempts: ClassVar[int] = 1
    mirror: Path


def of(policy: network.Politeness) -> Path | None:
    """Return the mirror that is read in place of the network, if one is."""
    return policy.mirror if isinstance(policy, Reading) else None


def receive(
    url: str, policy: network.Politeness, throttling: Collection[int] = ()
) -> network.Answer:
    """Do as :func:`plumbline.builders.fetch.http.receive`, or read the file that stands for it."""
    if mirror := of(policy):
        return network.Answer(_read(find(mirror, url)), "")
    return network.receive(url, policy, throttling)


def get(url: str, policy: network.Politeness, expect: Callable[[bytes], str | None]) -> bytes:
    """Do as :func:`plumbline.builders.fetch.http.get`, or read the file that stands for it."""
    mirror = of(policy)
    if mirror is None:
        return network.get(url, policy, expect)
    path = find(mirror, url)
    body = _read(path)
    if wrong := expect(body):
        raise UserError(AGAIN.format(url=url, wrong=wrong, path=path))
    return body


def download(
    url: str, policy: network.Politeness, path: Path, expect: Callable[[Path], str | None]
) -> None:
    """Do as :func:`plumbline.builders.fetch.download.download`, or copy the file of the mirror."""
    mirror = of(policy)
    if mirror is None:
        network_files.download(url, policy, path, expect)
        return
    own = find(mirror, url)
    if wrong := expect(own):
        raise UserError(AGAIN.format(url=url, wrong=wrong, path=own))
    with writing(path) as part:
        shutil.copyfile(own, part)


def _read(path: Path) -> bytes:
    with reading(path, "bring a smaller file"):
        within(path.stat().st_size)
    return path.read_bytes()


def places(url: str) -> list[str]:
    """Return the paths, relative to a mirror, that may hold what an address sends.

    Examples
    --------
    >>> places("https://example.org/data/a%20b.csv#first")
    ['example.org/data/a%20b.csv', 'example.org/data/a b.csv']
    >>> places("http://example.org:8000/?q=why")
    ['example.org:8000/index.html?q=why']
    """
    parts = urlsplit(url)
    path = parts.path.lstrip("/")
    path += "index.html" if not path or path.endswith("/") else ""
    name = f"{path}?{parts.query}" if parts.query else path
    plain = "/".join(unquote(part).replace("/", "%2F") for part in name.split("/"))
    return [f"{_host(url)}/{each}" for each in dict.fromkeys((name, plain))]


def _host(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower().removesuffix(USUAL.get(parts.scheme, ""))


def find(mirror: Path, url: str) -> Path:
    """Return the file of a mirror that an address stands for.

    Raises UserError if there is none, or it cannot be read.
    """
    wanted = [mirror / place for place in places(url) if ".." not in place.split("/")]
    for path in wanted:
        if os.path.isfile(path):  # noqa: PTH113 - False for names that are too long, no error
            if not os.access(path, os.R_OK):
                raise UserError(f"{path}: may not be read; it stands for {url}")
            return path
    looked = wanted[0] if wanted else mirror
    raise UserError(
        f"{url}: not in the mirror, there is no file {looked}; bring it there ({PAGE} has the "
        "names), or fetch without --mirror"
    )


@contextmanager
def answering(mirror: Path, endpoint: str) -> Iterator[str]:
    """Serve the triples of a mirror, and yield the address that stands for an endpoint.

    Raises UserError if the mirror has no triples of it, or there is no engine.
    """
    folder = mirror / _host(endpoint) / urlsplit(endpoint).path.strip("/")
    found = sorted(path for path in folder.glob("*") if path.name.endswith(TRIPLES))
    if not found:
        raise UserError(
            f"{endpoint}: not in the mirror, there is no file of triples in {folder} "
            f"({', '.join(f'*{end}' for end in TRIPLES)}); bring one there, or name an endpoint of "
            f"your own and fetch without --mirror ({PAGE})"
        )
    with serving(*found) as address:
        yield address


@contextmanager
def serving(*triples: Path) -> Iterator[str]:
    """Run a SPARQL engine over files of triples; yield the address of its endpoint.

    ``triples``: N-Triples or Turtle, also compressed by gzip.

    Raises UserError if the engine is not installed, or a file is none of triples.
    """
    own = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    engine = shutil.which("oxigraph", path=own)
    if engine is None:
        raise UserError(
            "oxigraph is not installed, which answers queries from files of triples: `pip install "
            f"oxigraph`, or name an endpoint of your own and fetch without --mirror ({PAGE})"
        )
    with tempfile.TemporaryDirectory() as folder:
        at = ["--location", folder]
        load = [engine, "load", *at, "--file", *map(str, triples)]
        loaded = subprocess.run(load, check=False, capture_output=True, text=True)  # noqa: S603
        if loaded.returncode:
            said = " ".join(loaded.stderr.split())[-200:]
            raise UserError(f"{', '.join(map(str, triples))}: no triples that can be read ({said})")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        serve = [engine, "serve", *at, "--bind", f"127.0.0.1:{port}"]
        quiet = subprocess.DEVNULL
        with subprocess.Popen(serve, stdout=quiet, stderr=quiet) as server:  # noqa: S603
            try:
                _wait(server, port)
                yield f"http://127.0.0.1:{port}/query"
            finally:
                server.terminate()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the engine listens."""
    end = time.monotonic() + STARTING_S
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise UserError("oxigraph: does not answer; run the same command again")
