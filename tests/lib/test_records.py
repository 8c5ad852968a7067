import csv
import json
import zipfile

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
def test_half_a_file_and_a_web_page_are_refused(tmp_path, kind):
    WRITERS[kind](tmp_path / "a", ROWS * 50)
    body = (tmp_path / "a").read_bytes()
    (tmp_path / "half").write_bytes(body[: len(body) // 2 + 3])
    with pytest.raises(ValueError):
        list(records(tmp_path / "half", kind, WANTED))
    (tmp_path / "page").write_bytes(b" <!DOCTYPE html>\n<p>Moved</p>\n")
    with pytest.raises(ValueError):
        list(records(tmp_path / "page", kind, WANTED))
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(ValueError):
        list(records(tmp_path / "empty", kind, WANTED))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"paper,body,day\nA,x\n", "csv"),
        ("paper,body,day\nÄ,x,y\n".encode("latin-1"), "csv"),
        (b'{"paper": "A"\n', "jsonl"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, body, kind):
    (tmp_path / "a").write_bytes(body)
    with pytest.raises(ValueError):
        list(records(tmp_path / "a", kind, WANTED))
