"""Readers of files: the same records from every format, and ordinary damage is a ValueError."""

import csv
import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.builders.readers import table
from plumbline.builders.readers.archives import records

WANTED = {"outlet": "paper", "text": "body", "date": "day"}
ROWS = [
    {"paper": "A", "body": 'Two lines,\nand a "quote".', "day": "2020-01-02", "more": "x"},
    {"paper": "Ä", "body": "", "day": "", "more": ""},
]


def write_parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path)


def write_csv(path, rows):
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_jsons(path, rows):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("top/README.md", "nothing")
        for i, row in reversed(list(enumerate(rows))):
            archive.writestr(f"top/data/{i}.json", json.dumps(row))


WRITERS = {"parquet": write_parquet, "csv": write_csv, "jsonl": write_jsonl, "jsons": write_jsons}


@pytest.mark.parametrize("kind", WRITERS)
def test_records_every_format_and_half_of_it(tmp_path, kind):
    WRITERS[kind](tmp_path / "a", ROWS)
    wanted = [{name: row[column] for name, column in WANTED.items()} for row in ROWS]
    assert list(records(tmp_path / "a", kind, WANTED)) == wanted
    WRITERS[kind](tmp_path / "a", ROWS * 50)
    body = (tmp_path / "a").read_bytes()
    for damaged in (body[: len(body) // 2 + 3], b" <!DOCTYPE html>\n<p>Moved</p>\n", b""):
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ValueError):
            list(records(tmp_path / "damaged", kind, WANTED))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"paper,body,day\nA,x\n", "csv"),
        ("paper,body,day\nÄ,x,y\n".encode("latin-1"), "csv"),
        (b'{"paper": "A"\n', "jsonl"),
    ],
)
def test_records_damaged_line(tmp_path, body, kind):
    (tmp_path / "a").write_bytes(body)
    with pytest.raises(ValueError):
        list(records(tmp_path / "a", kind, WANTED))


def test_parsed_replaces_half_of_a_surrogate_pair():
    half = json.dumps({"t": "so \ud83d it is \ud83d\ude00"}).encode()
    assert table.parsed(half) == {"t": "so \ufffd it is \U0001f600"}
    assert table.parsed(rb'["\\ud83d"]') == [r"\ud83d"], "the backslash itself is escaped"
    assert table.literal(r"['\ud83d']") == ["\ufffd"]


@pytest.mark.parametrize("text", ["[{[]: 1}]", "(" * 5000, "len('a')", "["])
def test_literal_refuses_what_is_none(text):
    with pytest.raises(ValueError):
        table.literal(text)


ROW = {
    "item": {"type": "uri", "value": "http://www.wikidata.org/entity/Q2"},
    "label": {"type": "literal", "value": "Анна", "xml:lang": "ru"},
}
OTHER = ROW | {"item": ROW["item"] | {"value": "http://www.wikidata.org/entity/Q1"}}
RESULT = {"head": {"vars": [*ROW]}, "results": {"bindings": [ROW, OTHER, ROW]}}
BODY = json.dumps(RESULT, ensure_ascii=False).encode()


def test_bindings_and_their_items():
    rows = table.bindings(BODY)
    assert rows == [ROW, OTHER, ROW]
    assert [table.item(row) for row in rows] == ["Q2", "Q1", "Q2"]


def test_bindings_of_a_body_cut_anywhere():
    for end in range(len(BODY)):
        with pytest.raises(ValueError):
            table.bindings(BODY[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html></html>",
        b'{"head": {}, "boolean": true}',
        BODY + b"java.util.concurrent.TimeoutException",
    ],
)
def test_bindings_of_no_whole_result(body):
    with pytest.raises(ValueError):
        table.bindings(body)
