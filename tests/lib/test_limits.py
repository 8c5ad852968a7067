"""Parsers of files: ordinary damage is a ValueError, nothing is read above the maximum size."""

import gzip
import io
import json
import zipfile

import pytest

from plumbline.builders.core import snapshot
from plumbline.builders.readers import archives, table

HALF = json.dumps({"t": "so \ud83d it is \ud83d\ude00"}).encode()


def zipped(body):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", body)
    return out.getvalue()


def test_parsed_replaces_half_of_a_surrogate_pair():
    assert table.parsed(HALF) == {"t": "so \ufffd it is \U0001f600"}
    assert table.parsed(rb'["\\ud83d"]') == [r"\ud83d"], "the backslash itself is escaped"
    assert table.literal(r"['\ud83d']") == ["\ufffd"]


@pytest.mark.parametrize("text", ["[{[]: 1}]", "(" * 5000, "len('a')", "["])
def test_literal_refuses_what_is_none(text):
    with pytest.raises(ValueError):
        table.literal(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_table_rows_with_any_line_end(end):
    text = end.join(["a,b", 'c,"d\u2028e"', ""])
    assert [row for _, row in table.table_rows(text)] == [["a", "b"], ["c", "d\u2028e"]]


def test_nothing_is_read_above_the_maximum_size(monkeypatch):
    monkeypatch.setattr(snapshot, "READ", 1 << 20)
    body = bytes((1 << 20) + 1)
    with pytest.raises(snapshot.TooLarge):
        snapshot.unzipped(gzip.compress(body))
    with pytest.raises(snapshot.TooLarge):
        archives.unpacked(zipped(body), "a.txt")
    assert len(archives.unpacked(zipped(body[1:]), "a.txt")) == 1 << 20


def test_half_of_an_archive_is_refused():
    body = gzip.compress(bytes(1000))
    with pytest.raises(ValueError):
        snapshot.unzipped(body[:-9])
    with pytest.raises(ValueError):
        archives.unpacked(zipped(b"abc")[:-9], "a.txt")
