"""Polite and strict HTTP: single requests that state a contact, retries, and complete bodies only.

Each response has a time limit and a maximum size, measured in decompressed bytes.

A mirror is a folder that is read instead of the network; ``docs/howto/fresh-data.md`` describes
how its files are named.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

import requests
from pydantic import Field, field_validator
from urllib3.exceptions import HTTPError, InvalidHeader, ReadTimeoutError
from urllib3.util import Retry

from plumbline.builders.core.errors import UserError, reading
from plumbline.builders.core.params import Params
from plumbline.builders.core.snapshot import TooLarge, unzipped, within, writing

T = TypeVar("T")
ADDRESS = r"^https?://[^\s/]+"
PIECE = 1 << 16  # bytes read at once
HINT = "check the address in its sources.yaml"
PROJECT = "plumbline/0.1 (research data; contact {contact})"
PAGE = "docs/howto/fresh-data.md"
USUAL = {"http": ":80", "https": ":443"}


class Politeness(Params):
    """Settings for the requests of a client."""

    contact: str = Field(
        description="e-mail address or URL of the person who fetches data; it is sent to sources"
    )
    timeout_s: ClassVar[float] = 60  # time limit of one request
    attempts: ClassVar[int] = 6  # maximum number of attempts for a request
    backoff_s: ClassVar[float] = 2  # wait after the first failure, doubled after each further one
    longest_wait_s: ClassVar[float] = 600

    @field_validator("contact")
    @classmethod
    def _fits_the_header(cls, contact: str) -> str:
        if not (contact.strip().isascii() and contact.strip().isprintable()):
            raise ValueError("does not fit the User-Agent header; write one line in ASCII")
        return contact.strip()

    def user_agent(self) -> str:
        """Return the User-Agent header; raise UserError if the contact is empty."""
        if not self.contact.strip():
            raise UserError(
                "params.yaml, sources.politeness.contact: empty; give an e-mail address or URL"
            )
        return PROJECT.format(contact=self.contact)


class Reading(Politeness):
    """Settings of a client that reads a mirror: it sends no requests, and needs no contact."""

    contact: str = "reads a mirror"
    attempts: ClassVar[int] = 1
    mirror: Path


def mirror_of(policy: Politeness) -> Path | None:
    """Return the mirror that is read instead of the network, or None."""
    return policy.mirror if isinstance(policy, Reading) else None


class Busy(Exception):  # noqa: N818
    """A failure that may be temporary; ``wait_s`` is the waiting time that the service requests."""

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Slow(Busy):
    """A timeout; a smaller request may succeed."""


def retry_after(value: str | None) -> float | None:
    """Return the seconds to wait that a Retry-After header states (RFC 9110, 10.2.3), or None."""
    try:
        return None if value is None else Retry().parse_retry_after(value)
    except (InvalidHeader, ValueError):
        return None


def patiently(
    ask: Callable[[], T], request: str, policy: Politeness, slow_attempts: int | None = None
) -> T:
    """Call ``ask`` until it succeeds, with exponential back-off or the requested waiting time.

    ``ask``: function to call, which raises :class:`Busy` if another attempt may succeed.
    ``request``: name of the request, which is used in messages.
    ``slow_attempts``: after this number of timeouts, or a timeout in the last attempt,
    :class:`Slow` is raised, so that the caller can send a smaller request.

    Raises UserError if all attempts fail, or the service requests a longer wait than ``policy``
    allows.
    """
    slow, later = 0, "nothing fetched so far is lost; run the same command later to continue"
    for attempt in range(1, policy.attempts + 1):
        try:
            return ask()
        except Busy as error:
            reason, wait = str(error), error.wait_s or 0
            slow += isinstance(error, Slow)
            last = slow_attempts and (slow >= slow_attempts or attempt == policy.attempts)
            if isinstance(error, Slow) and last:
                raise
        if wait > policy.longest_wait_s:
            raise UserError(f"{request}: {reason}, with a request to wait {wait:.0f} s; {later}")
        if attempt < policy.attempts:
            jitter = random.uniform(1, 1.25)  # noqa: S311 - spreads clients, guards nothing
            pause = min(policy.backoff_s * 2 ** (attempt - 1) * jitter, policy.longest_wait_s)
            time.sleep(max(wait, pause))
    raise UserError(f"{request}: gave up after {policy.attempts} attempts ({reason}); {later}")


def get(url: str, policy: Politeness, expect: Callable[[bytes], str | None]) -> bytes:
    """Fetch one file, from the network or a mirror.

    ``expect``: a function that returns what is wrong with the body (for example, a web page sent
    with status 200 instead of a file), or None.

    Raises UserError if an error status is permanent, the body is wrong, or all attempts fail.
    """
    body = patiently(lambda: receive(url, policy)[0], url, policy)
    if wrong := expect(body):
        raise _wrong(url, policy, wrong)
    return body


def _wrong(url: str, policy: Politeness, wrong: str) -> UserError:
    """Return the error for a file whose content is wrong."""
    mirror = mirror_of(policy)
    hint = f"replace the file of the mirror, {find(mirror, url)}" if mirror else HINT
    return UserError(f"{url}: {wrong}; {hint}")


@contextmanager
def opened(
    url: str, policy: Politeness, headers: Mapping[str, str], form: Mapping[str, str] | None = None
) -> Iterator[requests.Response]:
    """Send one request, by POST if it has a form; yield the response before its body is read.

    Raises Busy if the connection fails and Slow if it times out, even while the body is read.
    """
    try:
        with requests.request(
            "GET" if form is None else "POST",
            url,
            data=form,
            headers={"User-Agent": policy.user_agent(), **headers},
            timeout=policy.timeout_s,
            stream=True,
            auth=lambda request: request,  # otherwise requests sends passwords from ~/.netrc
        ) as answer:
            yield answer
    except (requests.exceptions.Timeout, ReadTimeoutError) as error:
        raise Slow(f"no response within {policy.timeout_s:g} s") from error
    except (requests.exceptions.RequestException, HTTPError) as error:
        raise Busy(f"the connection failed ({type(error).__name__})") from error


def receive(
    url: str,
    policy: Politeness,
    throttling: Collection[int] = (),
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] = MappingProxyType({}),
    hint: str = HINT,
) -> tuple[bytes, str]:
    """Send one request, or read the mirror's file; return the complete body and its media type.

    ``throttling``: status codes, besides 429 and 503, with which this service limits the rate.
    ``form``: fields of a form, which is sent by POST.

    Raises Busy or Slow if another attempt may succeed, and UserError if an error status is
    permanent or the response is too large.
    """
    if mirror := mirror_of(policy):
        path = find(mirror, url)
        with reading(path, "use a smaller file"):
            within(path.stat().st_size)
            return path.read_bytes(), ""
    headers = {"Accept-Encoding": "gzip", **headers}
    with reading(url, hint), opened(url, policy, headers, form) as answer:
        if answer.status_code in throttling:
            wait = retry_after(answer.headers.get("Retry-After"))
            raise Busy(f"HTTP {answer.status_code}, refused for now", wait)
        refuse(answer, url, hint)
        body, end = bytearray(), time.monotonic() + policy.timeout_s
        while piece := answer.raw.read1(PIECE, decode_content=False):
            body += piece
            within(len(body))
            if time.monotonic() > end:
                raise Slow(f"no complete response within {policy.timeout_s:g} s")
        coding = answer.headers.get("Content-Encoding", "identity").strip().lower()
        if body and coding != "identity":
            body = bytearray(_decoded(bytes(body), coding))
        return bytes(body), answer.headers.get("Content-Type", "")


def _decoded(body: bytes, coding: str) -> bytes:
    """Decode a body strictly, since urllib3 accepts truncated gzip files."""
    if coding not in ("gzip", "x-gzip"):
        raise ValueError(f"sent in the coding {coding!r}, not in gzip")
    try:
        return unzipped(body)
    except TooLarge:
        raise
    except ValueError as error:
        raise Busy("the compressed body was cut") from error


def refuse(answer: requests.Response, request: str, hint: str = HINT) -> None:
    """Raise an error if the status is 400 or higher.

    ``hint``: advice for the user if the request is refused.

    Raises Busy if a later request may succeed, Slow if a smaller one may, and UserError if the
    error is permanent.
    """
    status = answer.status_code
    if status < 400:
        return
    try:
        begins = answer.raw.read(PIECE, decode_content=True)
    except (HTTPError, OSError):
        begins = b""  # the error is reported without the text
    text = " ".join(begins.decode("utf-8", "replace").split())
    wait = retry_after(answer.headers.get("Retry-After"))
    if status in (429, 503):
        raise Busy(f"HTTP {status}, too busy", wait)
    # Blazegraph reports a query timeout as a server error
    if status in (408, 504) or (status >= 500 and "timeout" in text.lower()):
        raise Slow(f"HTTP {status}, timed out")
    if status >= 500:
        raise Busy(f"HTTP {status}", wait)
    reason = "" if text[:1] in ("", "<") else f" ({text[:200]})"
    raise UserError(f"{request}: HTTP {status}{reason}; {hint}")


def download(
    url: str, policy: Politeness, path: Path, expect: Callable[[Path], str | None]
) -> None:
    """Download one file to disk in chunks, or copy the mirror's file.

    A partial file is stored next to the final one, under a name that begins with a dot. The
    download continues after a failure or a kill if the server identifies versions of the file (by
    a strong ETag or by Last-Modified) and sends ranges (RFC 9110, 14.2 and 13.1.5). Otherwise it
    starts from the beginning.

    ``expect``: a function that returns what is wrong with the complete file, or None.

    Raises UserError if an error status is permanent, the file is wrong, or all attempts fail.
    """
    if mirror := mirror_of(policy):
        source = find(mirror, url)
        if wrong := expect(source):
            raise _wrong(url, policy, wrong)
        with writing(path) as copy:
            shutil.copyfile(source, copy)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part, version = path.with_name(f".part-{path.name}"), path.with_name(f".version-{path.name}")
    patiently(lambda: _download_rest(url, policy, part, version), url, policy)
    version.unlink(missing_ok=True)
    if wrong := expect(part):
        part.unlink()
        raise _wrong(url, policy, wrong)
    part.replace(path)


def _download_rest(url: str, policy: Politeness, part: Path, version: Path) -> None:
    """Append the missing rest of the file ``part``; ``version`` stores its ETag or date.

    Raises Busy or Slow if another attempt may succeed.
    """
    have = part.stat().st_size if part.exists() and version.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": version.read_text("utf-8")}
    with opened(url, policy, headers) as answer:
        stated = answer.headers.get("Content-Range", "")
        status, partial = answer.status_code, answer.status_code == 206
        if status == 416 and stated == f"bytes */{have}":
            return  # the file was complete when the process was killed
        if status == 416 or (partial and not stated.startswith(f"bytes {have}-")):
            version.unlink(missing_ok=True)
            raise Busy(f"HTTP {status}, not the rest of the file")
        refuse(answer, url)
        if not partial:
            version.unlink(missing_ok=True)
            part.write_bytes(b"")  # must precede storing the new version
            tag, coding = (answer.headers.get(name, "") for name in ("ETag", "Content-Encoding"))
            strong = tag and not tag.startswith("W/")
            name = tag if strong else answer.headers.get("Last-Modified", "")
            if name and coding in ("", "identity"):
                version.write_text(name, "utf-8")
        with part.open("ab") as file:
            shutil.copyfileobj(answer.raw, file, PIECE)


def places(url: str) -> list[str]:
    """Return the paths at which a mirror may contain the file of an address.

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
    return [f"{host(url)}/{spelled}" for spelled in dict.fromkeys((name, plain))]


def host(url: str) -> str:
    """Return the host of an address, with the port unless it is the default."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2].lower().removesuffix(USUAL.get(parts.scheme, ""))


def find(mirror: Path, url: str) -> Path:
    """Return the path of the mirror's file for an address.

    Raises UserError if the file is missing.
    """
    paths = [mirror / path for path in places(url) if ".." not in path.split("/")]
    for path in paths:
        if os.path.isfile(path):  # noqa: PTH113 - False for names that are too long, no error
            return path
    raise UserError(
        f"{url}: the mirror has no file {paths[0] if paths else mirror}; add it ({PAGE} explains "
        "the names), or fetch without --mirror"
    )
