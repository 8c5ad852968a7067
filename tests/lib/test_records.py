import csv
import json
import zipfile
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plumbline.builders.readers.archives import records

WANTED = {"outlet": "paper", "text": "body", "date": "day"}
ROWS = [
    {"paper": "A", "body": 'Two lines,\nand a "quote".', "day": "2020-01-02", "more": "x"},
    {"paper": "Ä", "body": "", "day": "", "more": ""},
]
TOLD = [{own: row[column] for own, column in WANTED.items()} for row in ROWS]


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
def test_every_format_gives_the_same_records(tmp_path, kind):
    WRITERS[kind](tmp_path / "a", ROWS)
    assert list(records(tmp_path / "a", kind, WANTED)) == TOLD


@pytest.mark.parametrize("kind", WRITERS)
def test_a_column_that_is_not_there_is_named(tmp_path, kind):
    WRITERS[kind](tmp_path / "a", ROWS)
    with pytest.raises(ValueError, match="no column 'title'; there are body, day, more, paper"):
        list(records(tmp_path / "a", kind, WANTED | {"x": "title"}))


@pytest.mark.parametrize("kind", WRITERS)
def test_half_a_file_and_a_web_page_are_refused(tmp_path, kind):
    WRITERS[kind](tmp_path / "a", ROWS * 50)
    body = (tmp_path / "a").read_bytes()
    (tmp_path / "half").write_bytes(body[: len(body) // 2 + 3])
    with pytest.raises(ValueError, match=r"cut short|not a whole|not JSON"):
        list(records(tmp_path / "half", kind, WANTED))
    (tmp_path / "page").write_bytes(b" <!DOCTYPE html>\n<p>Moved</p>\n")
    with pytest.raises(ValueError, match="a web page"):
        list(records(tmp_path / "page", kind, WANTED))
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ValueError, match=r"cut short|not a whole"):
        list(records(tmp_path / "empty", kind, WANTED))


def test_dates_and_nulls_of_parquet_become_texts(tmp_path):
    write_parquet(tmp_path / "a", [{"paper": None, "body": "x", "day": date(2020, 1, 2)}])
    assert list(records(tmp_path / "a", "parquet", WANTED)) == [
        {"outlet": "", "text": "x", "date": "2020-01-02"}
    ]


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        (b'paper,body,day\nA,"x"y,z\n', "csv", "after line 1: "),
        (b"paper,body,day\nA,x\n", "csv", "line 2: not as many cells"),
        (b"paper,body,day\nA,x,y,z\n", "csv", "line 2: not as many cells"),
        ("paper,body,day\nÄ,x,y\n".encode("latin-1"), "csv", "not UTF-8"),
        (b'{"paper": "A"\n', "jsonl", "line 1: not JSON"),
        (b"[1]\n", "jsonl", "line 1: no JSON object"),
        ('{"paper": "Ä"}\n'.encode("latin-1"), "jsonl", "line 1: not UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, body, kind, told):
    (tmp_path / "a").write_bytes(body)
    with pytest.raises(ValueError, match=told):
        list(records(tmp_path / "a", kind, WANTED))


def spoilt(path, method, at, mark):
    """Write an archive of one compressed member, and then one byte of its headers or body."""
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.json", json.dumps(ROWS * 40))
    body = bytearray(path.read_bytes())
    entry = body.rindex(b"PK\x01\x02")  # in the directory; the member's own header is at 0
    for place in (entry + 2 + at, at) if at < 10 else (at,):
        body[place] = mark
    path.write_bytes(body)


@pytest.mark.parametrize(
    ("method", "at", "mark", "told"),
    [
        (zipfile.ZIP_STORED, 60, 0, "damaged"),  # another checksum
        (zipfile.ZIP_DEFLATED, 36, 0xFF, "damaged"),  # no such kind of block
        (zipfile.ZIP_BZIP2, 36, 0xFF, "damaged"),
        (zipfile.ZIP_LZMA, 60, 0xFF, "damaged"),
        (zipfile.ZIP_DEFLATED, 6, 1, "encrypted"),
        (zipfile.ZIP_DEFLATED, 8, 99, "a method that cannot be read"),
    ],
)
def test_a_member_of_an_archive_that_cannot_be_read_is_named(tmp_path, method, at, mark, told):
    spoilt(tmp_path / "a", method, at, mark)
    with pytest.raises(ValueError, match=f"a.json: .*{told}"):
        list(records(tmp_path / "a", "jsons", WANTED))


def test_an_archive_of_a_later_version_of_the_format_is_refused(tmp_path):
    write_jsons(tmp_path / "a", ROWS)
    body = bytearray((tmp_path / "a").read_bytes())
    body[body.index(b"PK\x01\x02") + 6] = 250  # version needed to read it
    (tmp_path / "a").write_bytes(body)
    with pytest.raises(ValueError, match="not a whole zip archive"):
        list(records(tmp_path / "a", "jsons", WANTED))


def test_a_cell_may_be_longer_than_the_standard_library_allows_by_default(tmp_path):
    write_csv(tmp_path / "a", [{"paper": "A", "body": "x" * 200_000, "day": ""}])
    (found,) = records(tmp_path / "a", "csv", WANTED)
    assert len(found["text"]) == 200_000
