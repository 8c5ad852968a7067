"""The maximum size of what is read into memory, and parsers whose errors are ValueErrors.

What a parser cannot read is a ValueError that says what is wrong and where.
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator
from typing import Any

MB = 1 << 20
READ = 256 * MB  # a file, a response or a member of an archive, decompressed
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class TooLarge(ValueError):  # noqa: N818
    """Content that is larger than the maximum size."""


def within(size: int) -> None:
    """Refuse a size in bytes above :data:`READ`."""
    if size > READ:
        raise TooLarge(f"larger than {READ // MB:,} MB, the most that is read")


def unzipped(body: bytes) -> bytes:
    """Return the content of a gzip file."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            content = file.read(READ + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError("not a whole gzip file") from error
    within(len(content))
    return content


def text_of(body: bytes, encoding: str = "utf-8-sig") -> str:
    """Return the text of a body, without a byte order mark; NUL characters are an error."""
    try:
        text = body.decode(encoding).removeprefix("\ufeff")
        text.encode()  # some encodings have half surrogate pairs
    except (UnicodeError, LookupError) as error:
        raise ValueError(f"not {'UTF-8' if encoding == 'utf-8-sig' else encoding}") from error
    if "\0" in text:
        raise ValueError(f"a NUL character in line {text[: text.index(chr(0))].count(chr(10)) + 1}")
    return text


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text; half of a surrogate pair becomes U+FFFD.

    Raises ValueError if it is not JSON in UTF-8; json.JSONDecodeError if it may have been cut.
    """
    text = text.decode() if isinstance(text, bytes) else text
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return _repaired(value) if SURROGATE.search(text) else value


def literal(text: str) -> Any:
    """Return the value of a Python literal; half of a surrogate pair becomes U+FFFD."""
    try:
        return _repaired(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("not a literal of Python") from error


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return [_repaired(item) for item in value] if isinstance(value, list) else value


def table_rows(text: str, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a delimited table, each with the number of its last line."""
    rows = csv.reader(io.StringIO(text, newline=""), **dialect)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error
