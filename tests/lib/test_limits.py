"""Parsers of files: ordinary damage is a ValueError, nothing is read above the maximum size."""

import gzip
import io
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.builders.core import limits
from plumbline.builders.readers import archives

HALF = json.dumps({"t": "so \ud83d it is \ud83d\ude00"}).encode()


def zipped(body):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", body)
    return out.getvalue()


def test_parsed_replaces_half_of_a_surrogate_pair():
    assert limits.parsed(HALF) == {"t": "so \ufffd it is \U0001f600"}
    assert limits.parsed(rb'["\\ud83d"]') == [r"\ud83d"], "the backslash itself is escaped"
    assert limits.literal(r"['\ud83d']") == ["\ufffd"]


@pytest.mark.parametrize("text", ["[{[]: 1}]", "(" * 5000, "len('a')", "["])
def test_literal_refuses_what_is_none(text):
    with pytest.raises(ValueError):
        limits.literal(text)


def test_parsed_tells_a_cut_text_from_a_deep_one():
    with pytest.raises(json.JSONDecodeError):
        limits.parsed(HALF[:-1])
    with pytest.raises(ValueError):
        limits.parsed(b"[" * 200_000)


@pytest.mark.parametrize("body", [b"a\0b", b"\xff", "a".encode("utf-16")])
def test_text_of_refuses_what_is_no_text(body):
    with pytest.raises(ValueError):
        limits.text_of(body)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_table_rows_with_any_line_end(end):
    text = end.join(["a,b", 'c,"d\u2028e"', ""])
    assert [row for _, row in limits.table_rows(text)] == [["a", "b"], ["c", "d\u2028e"]]


def test_nothing_is_read_above_the_maximum_size(monkeypatch):
    monkeypatch.setattr(limits, "READ", 1 << 20)
    body = bytes((1 << 20) + 1)
    with pytest.raises(limits.TooLarge):
        limits.unzipped(gzip.compress(body))
    with pytest.raises(limits.TooLarge):
        archives.unpacked(zipped(body), "a.txt")
    assert len(archives.unpacked(zipped(body[1:]), "a.txt")) == 1 << 20


def test_half_of_an_archive_is_refused():
    body = gzip.compress(bytes(1000))
    with pytest.raises(ValueError):
        limits.unzipped(body[:-9])
    with pytest.raises(ValueError):
        archives.unpacked(zipped(b"abc")[:-9], "a.txt")


def test_parquet_of_other_types_is_read_as_text(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": ["a", None], "l": [True, False]}), path)
    rows = list(archives.records(path, "parquet", {"text": "t", "label": "l"}))
    assert rows == [{"text": "a", "label": "True"}, {"text": "", "label": "False"}]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError):
        list(archives.records(path, "parquet", {"text": "t"}))
