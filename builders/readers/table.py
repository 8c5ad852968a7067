"""Text files: CSV, TSV, JSON, JSON lines and SPARQL results.

Invalid content raises a ValueError that states its position.
"""

from __future__ import annotations

import ast
import codecs
import csv
import html
import io
import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import IO, Any, Literal

ITEM = re.compile(r"http://www\.wikidata\.org/entity/(Q[1-9][0-9]{0,17})")
# variants and scripts of a language, to which MediaWiki falls back before other languages
VARIANTS: dict[str, tuple[str, ...]] = {
    "zh": ("zh-hans", "zh-hant", "zh-cn", "zh-tw", "zh-hk", "zh-sg", "zh-mo", "zh-my"),
    "sr": ("sr-ec", "sr-cyrl", "sr-el", "sr-latn"),
}
VARIANTS |= {"kk": ("kk-cyrl", "kk-latn", "kk-arab"), "ku": ("ku-latn", "ku-arab")}
VARIANTS |= {"tg": ("tg-cyrl", "tg-latn"), "pt": ("pt-br",), "no": ("nb",)}
Binding = dict[str, dict[str, str]]
DELIMITERS = (",", ";", "\t", "|")
STATED = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE)
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32"}  # byte order marks
MARKS |= {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}  # begin those of UTF-32
ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def web_page(body: bytes) -> str | None:
    """Return the problem if a body is a web page instead of the expected file, or None."""
    start = body.removeprefix(b"\xef\xbb\xbf").lstrip()[:15].lower()
    page = start.startswith((b"<!doctype", b"<html"))
    return "a web page instead of the file" if page else None


def parsed(text: str | bytes, *, unique: bool = False) -> Any:
    """Parse a JSON text; a lone surrogate becomes U+FFFD.

    Raises ValueError if it is not JSON in UTF-8, or json.JSONDecodeError if it may be truncated.

    ``unique``: whether a repeated key, of whose values only the last would be read, is an error.
    """
    text = (text.decode() if isinstance(text, bytes) else text).removeprefix("\ufeff")
    try:
        value = json.loads(text, object_pairs_hook=_unique if unique else None)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return _repaired(value) if SURROGATE.search(text) else value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, value in pairs:
        if tree.setdefault(key, value) is not value:
            raise ValueError(f"key {key!r} is repeated")
    return tree


def literal(text: str) -> Any:
    """Parse a Python literal; a lone surrogate becomes U+FFFD."""
    try:
        return _repaired(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError("not a Python literal") from error


def _repaired(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_repaired(key): _repaired(item) for key, item in value.items()}
    return [_repaired(item) for item in value] if isinstance(value, list) else value


def table_rows(
    text: str | IO[str],
    delimiter: str = ",",
    columns: Collection[str] = (),
    *,
    quoted: bool = True,
    multiline: bool = True,
) -> Iterator[tuple[int, list[str]]]:
    """Yield the first line's number and the fields of each row that is not empty.

    If lines have equally many tabs, a quote that does not enclose a field is text; otherwise, an
    open quote raises a ValueError that states its line.

    ``columns``: columns of the header, by which another of :data:`DELIMITERS` is recognised.
    ``quoted``: whether quotes enclose fields; otherwise they are part of the text.
    ``multiline``: whether a quoted field may contain line breaks.
    """
    source = iter(io.StringIO(text, newline="") if isinstance(text, str) else text)
    first, line = next(source, ""), 1
    while first and not first.strip():
        first, line = next(source, ""), line + 1
    if stated := STATED.fullmatch(first):  # written by spreadsheets
        delimiter, first, line = stated[1], next(source, ""), line + 1
    elif columns:
        tried = (delimiter, *DELIMITERS)
        suited = (d for d in tried if {*columns} <= {*map(str.strip, _fields(first, d))})
        delimiter = next(suited, delimiter)
    if isinstance(text, str) and delimiter == "\t" and quoted:
        rest = [first, *source]
        if len({row.count("\t") for row in rest if row.strip()}) == 1:
            yield from ((n, _fields(row, "\t")) for n, row in enumerate(rest, line) if row.strip())
            return
        source = iter(rest[1:])
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    rows = csv.reader(chain([first], source), delimiter=delimiter, quoting=quoting, strict=quoted)
    number = line
    try:
        for row in rows:
            after = line + rows.line_num
            if after - number > 1 and not multiline:
                raise ValueError(f"line {number}: a quote is not closed in its line")
            if any(map(str.strip, row)):
                yield number, row
            number = after
    except csv.Error as error:
        raise ValueError(f"line {number}: {error}") from error


def _fields(line: str, delimiter: str) -> list[str]:
    """Return the fields of one line; quotes that do not enclose a field are text."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        return line.rstrip("\r\n").split(delimiter)


def decoded(body: bytes, encoding: str = "utf-8", *, complete: bool = False) -> str:
    r"""Return the text of a file, without a byte order mark and with ``\n`` as its line ends.

    A byte order mark takes precedence over ``encoding``.

    ``complete``: whether the file must end with a line break, which a truncated file lacks.

    Raises ValueError if the file is truncated or a web page, or has another encoding or NULs.
    """
    if wrong := web_page(body):
        raise ValueError(wrong)
    encoding = next((name for mark, name in MARKS.items() if body.startswith(mark)), encoding)
    try:
        text = body.decode(encoding).removeprefix("\ufeff")
        text.encode()  # some encodings yield lone surrogates
    except (UnicodeError, LookupError) as error:
        place = body[: error.start].count(b"\n") + 1 if isinstance(error, UnicodeDecodeError) else 0
        raise ValueError(f"{f'line {place}: ' if place else ''}not {encoding.upper()}") from error
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        raise ValueError(f"a NUL character in line {text[: text.index(chr(0))].count(chr(10)) + 1}")
    if complete and not text.endswith("\n"):
        raise ValueError("truncated: no line break at the end")
    return text


def lines(text: str) -> list[str]:
    """Split a decoded text at line breaks only, since lines may contain other separators."""
    return text.removesuffix("\n").split("\n")


def table(
    body: bytes, columns: Sequence[str], *, more: bool = False
) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return the header of a file, which must have exactly these columns, and its numbered rows.

    ``more``: whether the file may have further columns after these.

    Raises a ValueError that states the position and the problem; the header is line 1.
    """
    text = decoded(body, complete=True)
    (_, head), *rows = [*table_rows(text, ",", columns, multiline=False)] or [(1, [])]
    head = [name.strip() for name in _trimmed(head, len(columns))]
    if head[: len(columns)] != list(columns) or (len(head) > len(columns)) > more:
        raise ValueError(f"line 1: the columns must be {', '.join(columns)}")
    return head, [(number, _trimmed(fields, len(head), number)) for number, fields in rows]


def _trimmed(fields: list[str], length: int, line: int = 0) -> list[str]:
    """Drop empty fields after ``length``, which spreadsheets append; check the length of a row."""
    while len(fields) > length and not fields[-1].strip():
        fields = fields[:-1]
    if line and len(fields) != length:
        raise ValueError(f"line {line}: {len(fields)} fields, not {length}")
    return fields


def records(
    text: str | IO[str],
    columns: Mapping[Any, str],
    delimiter: str = ",",
    head: Sequence[str] = (),
    *,
    quoted: bool = True,
    multiline: bool = True,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line and the renamed fields of each row of a table; see :func:`table_rows`.

    Raises a ValueError that states the position and the problem.

    ``columns``: names of the columns in the file, by their new names.
    ``head``: names of the columns if the file has no header.
    """
    needed = [] if head else [*columns.values()]
    rows = table_rows(text, delimiter, needed, quoted=quoted, multiline=multiline)
    head = head or [name.strip() for name in next(rows, (0, []))[1]]
    if wrong := sorted(name for name in columns.values() if head.count(name) != 1):
        raise ValueError(f"line 1: not exactly one column {', '.join(wrong)}")
    indices = {name: head.index(column) for name, column in columns.items()}
    for line, fields in rows:
        row = _trimmed(fields, len(head), line)
        yield line, {name: row[index] for name, index in indices.items()}


def json_object(body: str | bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object; raise a ValueError that begins with ``where`` if the body is not one."""
    try:
        value = parsed(body)
    except ValueError as error:
        wrong = "not UTF-8" if isinstance(error, UnicodeDecodeError) else "not JSON"
        raise ValueError(f"{where}: {wrong}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{where}: not a JSON object")  # noqa: TRY004 - an error in the file
    return value


def json_lines(
    text: str, columns: Mapping[Any, str], needed: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line and renamed values of each object; the value of ``needed`` must be a string.

    Raises a ValueError that states the position and the problem.
    """
    for number, line in enumerate(lines(text.rstrip("\n")), start=1):
        row = json_object(line, f"line {number}")
        if not isinstance(row.get(columns[needed]), str):
            raise ValueError(f"line {number}: not an object with a text {columns[needed]!r}")  # noqa: TRY004
        yield number, {name: row.get(key) for name, key in columns.items()}


def bindings(body: bytes) -> list[Binding]:
    """Return the rows of a SPARQL 1.1 result in JSON (W3C, 21 March 2013).

    Raises ValueError if it is invalid, or json.JSONDecodeError if it may be truncated.
    """
    tree: Any = parsed(body)
    try:
        rows = tree["results"]["bindings"]
        sound = isinstance(rows, list) and all(
            isinstance(term["value"], str) and isinstance(term["type"], str)
            for row in rows
            for term in row.values()
        )
    except (TypeError, KeyError, AttributeError):
        sound = False
    if not sound:
        raise ValueError("JSON, but not a SPARQL SELECT result")
    return list(rows)


def entity(value: dict[str, str]) -> str | None:
    """Return the item id of a term, or None for an unknown value (a blank or skolem node)."""
    iri = value.get("value", "")
    if value.get("type") == "uri" and (match := ITEM.fullmatch(iri)):
        return match[1]
    return None


def label_codes(language: str) -> tuple[str, ...]:
    """Return the codes of a language and its variants, in the order of Wikidata's fallback."""
    return (language, *VARIANTS.get(language, ()))


def item(row: Binding, name: str = "item") -> str:
    """Return the item id of a row; raise ValueError if it is missing."""
    qid = entity(row.get(name, {}))
    if qid is None:
        raise ValueError(f"a row without an item in ?{name}")
    return qid


def tweeteval(
    texts: bytes, labels: bytes, mapping: bytes, *, complete: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield unchanged texts and the names of their labels from files in TweetEval's layout.

    ``texts``, ``labels``: files with one text per line, and with the label number of each text.
    ``mapping``: a number, a tab and a name on each line.
    ``complete``: whether the files must end with a line break.
    """
    bodies = (texts, labels, mapping)
    rows, keys, named = (lines(decoded(body, complete=complete)) for body in bodies)
    pairs = (line.partition("\t") for line in named)
    names = {key.strip(): name.strip() for key, _, name in pairs}
    if not all(names.values()):
        raise ValueError("mapping: a line is not a number, a tab and a name")
    if len(rows) != len(keys):
        raise ValueError(f"{len(rows)} texts, but {len(keys)} labels")
    for number, (text, key) in enumerate(zip(rows, keys, strict=True), start=1):
        if key.strip() not in names:
            raise ValueError(f"labels, line {number}: {key!r} is not in the mapping")
        yield text, names[key.strip()]


def normal(text: str) -> str:
    r"""Resolve the escapes of web exports; normalise to NFC and single spaces.

    Examples
    --------
    >>> normal("Fish &amp; chips\\u002c  it\\u2019s fine ")
    'Fish & chips, it’s fine'
    """
    text = html.unescape(ESCAPES.sub(_characters, text))
    return " ".join(unicodedata.normalize("NFC", text).split())


def _characters(match: re.Match[str]) -> str:
    """Resolve a run of escapes together, since a surrogate pair denotes one character."""
    units = bytes.fromhex(match[0].replace("\\u", ""))
    return units.decode("utf-16-be", "replace")


# Scripts that Unicode splits or merges, in the form that is inserted into ``\p{}``.
COMPOUND = {"Hans": "Han", "Hant": "Han", "Jpan": r"Han}\p{Hira}\p{Kana", "Kore": "Hang"}


def script_of(language: str) -> str | None:
    """Return the Unicode name of a language's usual script (CLDR)."""
    from babel.core import get_global

    tag: str = get_global("likely_subtags").get(language, language)
    code = next((part for part in tag.split("_") if len(part) == 4), None)  # ISO 15924
    return COMPOUND.get(code, code) if code else None
