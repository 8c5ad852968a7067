"""Readers on hostile files of 200 MB, or of as much as they read, whose memory is measured."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[1]
MOST = 500  # MB in the process, Python and its libraries included
SIZE = 200 << 20
CHILD = """
import sys
from functools import partial
from pathlib import Path
sys.path.insert(0, "tests")
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.words.conllu import words
from plumbline.builders.fetch.files import Fetch
from plumbline.builders.core.limits import literal, parsed, text_of
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.supersenses.build import synsets
from plumbline.builders.fetch.http import Politeness
from plumbline.builders.readers import archives
from plumbline.builders.readers.table import lines, table
kind, path = sys.argv[1], Path(sys.argv[2])
def fetched(source, reader):
    fetch = Fetch(source, Params(), Politeness(contact="x"), path.parent / "into")
    return fetch.read({"x": str(path)}, reader)
def archive(body):
    return [archives.unpacked(body, "a")]
do = {
    "csv": lambda: list(archives.records(path, "csv", {"t": "t"})),
    "jsonl": lambda: list(archives.records(path, "jsonl", {"t": "t"})),
    "zip": lambda: fetched("emotions", archive),
    "zstd": lambda: list(reddit_dump.lines(path)),
    "conllu": lambda: fetched("ud", words),
    "table": lambda: fetched("lexica", lambda body: body.split()),
    "json": lambda: fetched("statements", parsed),
    "yaml": lambda: fetched("supersenses", lambda body: list(synsets(body))),
    "literal": lambda: fetched("lexica", lambda body: literal(text_of(body))),
    "lines": lambda: fetched("emotions", lines),
    "rows": lambda: fetched("survey", lambda body: table(body, ["a"], more=True)),
    "parquet": lambda: sum(1 for _ in archives.records(path, "parquet", {"t": "t"})),
}[kind]
try:
    do()
    print("read", end=" ")
except (ValueError, UserError) as error:
    print("refused:", " ".join(str(error).split())[:90].replace(str(path), "FILE"), end=" ")
status = Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) >> 10)
"""


def csv_of_one_cell(path):
    path.write_bytes(b't\n"' + b"x" * SIZE + b'"\n')


def csv_of_lines_in_one_cell(path):
    path.write_bytes(b't\n"' + b"x\n" * (SIZE // 2) + b'"\n')


def one_line_of_json(path):
    path.write_bytes(b'{"t": "' + b"x" * SIZE + b'"}\n')


def bomb(path):
    import zipfile

    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as found,
        found.open("a", "w", force_zip64=True) as file,
    ):
        for _ in range(40):
            file.write(bytes(64 << 20))


def archive_of_many(path):
    head = (b"PK\3\4", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0)
    entry = (b"PK\1\2", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    first, each = struct.pack("<4s5H3I2H", *head) + b"a", struct.pack("<4s6H3I5H2I", *entry) + b"a"
    number, at = (60 << 20) // len(each), len(first)
    size = number * len(each)
    end = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, at)
    end += struct.pack("<4sIQI", b"PK\6\7", 0, at + size, 1)
    end += struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path.write_bytes(first + each * number + end)


def endless_line(path):
    import zstandard

    with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as out:
        for _ in range(SIZE >> 20):
            out.write(b"x" * (1 << 20))


def one_sentence(path):
    path.write_bytes(b"1\tword\n" * (180 * (1 << 20) // 7) + b"\n")


def one_token(path):
    path.write_bytes(b"1\t" + b"x" * (180 << 20) + b"\n\n")


def larger_than_may_be(path):
    path.write_bytes(b"a\t1\n" * (SIZE // 4))


def parquet_of_one_cell(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"t": ["x" * SIZE]}), path)


def of(piece, size=60 << 20, begin=b"", end=b""):
    """Return what writes a file of one piece again and again, as large as is read."""

    def many(path):
        path.write_bytes(begin + piece * (size // len(piece)) + end)

    many.__name__ = f"{size >> 20} MB of {piece}"
    return many


def parquet_of_one_cell_again(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells = pa.DictionaryArray.from_arrays(pa.array([0] * 9999, pa.int32()), ["x" * (1 << 22)])
    pq.write_table(pa.table({"t": cells}), path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("csv", csv_of_one_cell),
        ("csv", csv_of_lines_in_one_cell),
        ("jsonl", one_line_of_json),
        ("zip", bomb),
        ("zip", archive_of_many),
        ("zstd", endless_line),
        ("conllu", one_sentence),
        ("conllu", one_token),
        ("table", larger_than_may_be),
        ("parquet", parquet_of_one_cell),
        ("parquet", parquet_of_one_cell_again),
        ("json", of(b"[],", begin=b"[", end=b"0]")),
        ("json", of(b"[],", 2 << 20, b"[", b"0]")),
        ("json", of(b'{"a":"b"},', 5 << 20, b"[", b"0]")),
        ("json", of(b'"abc",', 12 << 20, b"[", b"0]")),
        ("yaml", of(b"- a\n")),
        ("yaml", of(b"- a\n", 1 << 19)),
        ("literal", of(b"[],", begin=b"[", end=b"0]")),
        ("lines", of(b"abc\n")),
        ("lines", of(b"x" * 29 + b"\n")),
        ("rows", of(b"a,b\n")),
        ("rows", of(b"ab,cd\n", 5 << 20, b"a,b\n")),
    ],
)
def test_a_hostile_file_takes_no_more_memory_than_stated(tmp_path, kind, make):
    make(tmp_path / "file")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, kind, str(tmp_path / "file")],
        env=os.environ | {"PYTHONPATH": str(TOP)},
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    said, _, memory = done.stdout.rpartition(" ")
    print(f"{make.__name__}: {memory.strip()} MB, {said}")
    assert int(memory) < MOST, done.stdout
