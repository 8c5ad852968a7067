"""How much a file of others may hold, and parsers that keep to it.

Whatever these parsers cannot read is a ValueError that says what is wrong and where: nothing a file
holds may end in another exception, or take memory without end.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterator
from typing import IO, Any

MB = 1 << 20
READ = 64 * MB  # a file, an answer, a member of an archive that is read whole; decompressed
LARGEST = {  # of these sources
    "autocomplete": MB,
    "news": 8 << 30,  # read as a stream
    "reddit": 256 << 30,  # read as a stream; as it is compressed
    "ud": 192 * MB,
}
STREAM = 4 << 40  # a dump, decompressed
LINE = 16 * MB  # of a file that is read line by line
CELL = 4 * MB  # characters of a table's cell; articles of news are long
DEPTH = 100  # of JSON
MANY = 2 << 20  # lines, cells or values of a text, which take more memory than their characters
LITERAL = 1 << 16  # characters of a literal of Python, which takes hundreds of times as many bytes
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def largest(source: str) -> int:
    """Return how many bytes one file or answer of a source may have."""
    return LARGEST.get(source, READ)


def within(size: int, most: int = READ) -> None:
    """Refuse a size in bytes that is over a limit."""
    if size > most:
        raise ValueError(f"larger than {most // MB:,} MB, the most that is read")


def few(text: str, signs: str, most: int = MANY) -> None:
    """Refuse a text with more lines, cells or values than may be, told by the signs around them."""
    if sum(map(text.count, signs)) > most:
        raise ValueError(f"more than {most:,} lines, cells or values")


def text_of(body: bytes, encoding: str = "utf-8-sig") -> str:
    """Return a body's text; NUL characters are no text."""
    try:
        text = body.decode(encoding).removeprefix("\ufeff")
        text.encode()  # some codings give halves of characters
    except (UnicodeError, LookupError) as error:
        raise ValueError(f"not {'UTF-8' if encoding == 'utf-8-sig' else encoding}") from error
    if "\0" in text:
        raise ValueError(f"a NUL character in line {text[: text.index(chr(0))].count(chr(10)) + 1}")
    few(text, "\n\r")
    return text


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text; half of a surrogate pair becomes U+FFFD.

    Raises ValueError where it is not JSON in UTF-8; json.JSONDecodeError where it may have been cut
    short.
    """
    text = text.decode() if isinstance(text, bytes) else text
    few(text, "[{[{,")
    if SURROGATE.search(text):
        text = ESCAPE.sub(lambda found: "\\ufffd" if found[1] else found[0], text)
    try:
        tree = json.loads(text)
    except RecursionError as error:
        raise ValueError(f"nested more than {DEPTH} deep") from error
    if text.count("[") + text.count("{") > DEPTH:
        _shallow(tree)
    return tree


def _shallow(tree: Any) -> None:
    level, depth = [tree], 0
    while level := [
        each
        for node in level
        if isinstance(node, dict | list)
        for each in (node.values() if isinstance(node, dict) else node)
        if isinstance(each, dict | list)
    ]:
        depth += 1
        if depth >= DEPTH:
            raise ValueError(f"nested more than {DEPTH} deep")


def literal(text: str) -> Any:
    """Return the value of a literal of Python, which is parsed and never executed."""
    if len(text) > LITERAL:
        raise ValueError(f"a literal of more than {LITERAL:,} characters")
    try:
        return _mended(ast.literal_eval(text))
    except (
        ValueError,
        SyntaxError,
        TypeError,
        MemoryError,
        RecursionError,
        OverflowError,
    ) as error:
        raise ValueError("no literal that can be read") from error


def _mended(value: Any) -> Any:
    """Return a value whose texts have no half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return [_mended(each) for each in value] if isinstance(value, list) else value


def table_rows(text: str, **dialect: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a delimited table, each with the number of its last line."""
    few(text, f"\n\r{dialect.get('delimiter', ',')}", 2 * MANY)  # of one row, if it has them all
    rows = csv.reader((found[0] for found in ROW.finditer(text)), **dialect)
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from error


def file_lines(file: IO[bytes], most: int = LINE) -> Iterator[bytes]:
    """Yield the lines of a file, with their ends."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if len(line) > most:
            raise ValueError(f"line {number}: longer than {most // MB:,} MB")
        yield line


def unzipped(body: bytes, most: int = READ) -> bytes:
    """Return what a gzip file holds."""
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as file:
            found = file.read(most + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError("not a whole gzip file") from error
    within(len(found), most)
    return found
