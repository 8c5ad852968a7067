"""Files and folders are written whole or not at all, also at a kill and on a full disk."""

import os
import resource
import signal
import subprocess
import sys
from argparse import Namespace
from contextlib import contextmanager

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from dvc.lock import Lock

from plumbline.builders.core import cli, parquet
from plumbline.builders.core.errors import UserError, each, unwritten
from plumbline.builders.core.front_matter import Origin
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.dvc import lock
from plumbline.probes.core.run_analysis import write_tables

SCHEMA = pa.schema([pa.field("x", pa.int64(), nullable=False)])
NUMBERS = np.random.default_rng(1).random(50_000)
FRAME = pl.DataFrame({"a": NUMBERS})


class Killed(BaseException):
    pass


def killed(*_):
    raise Killed


@pytest.mark.parametrize("number", [0, 1])
def test_finish_killed_leaves_one_whole_folder(tmp_path, monkeypatch, number):
    folder, renames = tmp_path / "words", []
    for where, text in ((folder, "old"), (parquet.partial(folder), "new")):
        where.mkdir()
        (where / "en.parquet").write_text(text)

    def replace(self, target):
        renames.append(self)
        if len(renames) > number:
            raise Killed
        self.rename(target)

    with monkeypatch.context() as patch, pytest.raises(Killed):  # noqa: PT012
        patch.setattr(type(folder), "replace", replace)
        parquet.finish(folder)
    parquet.recover(folder)
    assert (folder / "en.parquet").read_text() == "old"
    parquet.finish(folder)
    assert (folder / "en.parquet").read_text() == "new"
    assert [path.name for path in folder.parent.iterdir()] == ["words"]


@pytest.mark.parametrize("target", ["disk", "nowhere"])
def test_finish_replaces_a_linked_folder_and_keeps_its_target(tmp_path, target):
    folder, mine = tmp_path / "data/words", tmp_path / "disk/mine.txt"
    for path in (folder, mine):
        path.parent.mkdir()
    mine.touch()
    folder.symlink_to(tmp_path / target)
    parquet._aside(folder).symlink_to(mine.parent)
    for _ in range(2):
        parquet.fresh(folder)
        parquet.finish(folder)
        assert [path.is_symlink() for path in folder.parent.iterdir()] == [False]
    assert mine.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_run_stopped_by_a_signal_cleans_up_as_after_an_interrupt(number):
    assert cli.run(Namespace(), lambda: signal.raise_signal(number)) == cli.STOPPED
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_write_bytes_killed_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    write_bytes(path, b"old")
    with monkeypatch.context() as patch, pytest.raises(Killed):  # noqa: PT012
        patch.setattr(os, "fsync", killed)
        patch.setattr(type(tmp_path), "unlink", lambda *_, **__: None)
        write_bytes(path, b"1")
    assert (path.read_bytes(), len(list(tmp_path.iterdir()))) == (b"old", 2)
    write_bytes(path, b"2")
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.json", b"2")]


@contextmanager
def full_disk(most: int):
    """Let no file of this process grow above a number of bytes: the same calls are refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_table(folder):
    path = parquet.fresh(folder / "a") / "a.parquet"
    parquet.write_table(FRAME, FRAME.to_arrow().schema, path)


@pytest.mark.parametrize("write", [lambda f: write_bytes(f / "a", NUMBERS.tobytes()), write_table])
def test_full_disk_is_one_sentence_and_leaves_no_file(tmp_path, write):
    with full_disk(5000), pytest.raises(Exception) as caught:
        write(tmp_path)
    assert "could not be written" in (unwritten(caught.value) or str(caught.value))
    assert not [path.name for path in tmp_path.iterdir() if not path.name.endswith(".partial")]
    write(tmp_path)


@pytest.mark.parametrize("rows", [0, 1, parquet.GROUP, 2 * parquet.GROUP + 1])
def test_written_bytes_do_not_depend_on_how_rows_come(tmp_path, rows):
    def written(name, tables):
        parquet.write_tables(tables, SCHEMA, tmp_path / name)
        return (tmp_path / name).read_bytes()

    table = pa.table({"x": range(rows)}, SCHEMA)
    whole = written("whole", [table])
    assert written("pieces", [table.slice(start, 700) for start in range(0, rows, 700)]) == whole
    layout = Schema.keyed([Column("x", "int64", "a number")])
    parquet.write((parquet.Row("en", {"x": x}) for x in range(rows)), layout, tmp_path / "rows")
    path = parquet.partial(tmp_path / "rows") / "en.parquet"
    assert not rows or path.read_bytes() == whole


def test_each_passes_variables_and_reports_a_kill():
    names = ["PLUMBLINE_TOLD", "PLUMBLINE_NOT_TOLD"]
    assert dict(each(os.getenv, [(n,) for n in names], 2, {names[0]: "so"})) == {0: "so", 1: None}
    assert names[0] not in os.environ
    with pytest.raises(UserError):
        list(each(os._exit, [(9,), (9,)], 1))


def test_each_with_preloaded_modules_passes_current_variables(monkeypatch):
    names = ["PLUMBLINE_TOLD", "PLUMBLINE_SET_LATER"]
    asked, preload = [(name,) for name in names], ["json"]
    assert dict(each(os.getenv, asked, 1, {names[0]: "so"}, preload)) == {0: "so", 1: None}
    monkeypatch.setenv(names[1], "now")
    assert dict(each(os.getenv, asked, 1, {}, preload)) == {0: None, 1: "now"}


def test_each_where_the_path_of_temporary_files_is_long(tmp_path):
    folder = tmp_path / ("long" * 25)  # the path of a socket has at most 107 bytes
    folder.mkdir()
    code = "import os; from plumbline.builders.core.errors import each; E = {'A': 'b'}; "
    code += "print(*each(os.getenv, [('A',)], 1, E, ['json']), 'A' in os.environ)"
    command, env = [sys.executable, "-c", code], os.environ | {"TMPDIR": str(folder)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "(0, 'b') False\n"


@pytest.mark.parametrize(
    "text", ["", "schema: '2.0'\nstages:\n  a:\n    cmd: x\n    deps:\n    -", "a: ["]
)
def test_sound_lock_or_conflict(tmp_path, text):
    path = tmp_path / "dvc.lock"
    for body, sound in (
        (text, False),
        ("<<<<<<< ours\n" + text, True),
        ("schema: '2.0'\nstages:\n  a:\n    cmd: x\n", True),
    ):
        path.write_text(body)
        assert lock._sound(path) is sound


@pytest.mark.parametrize(("text", "left"), [('{"write": ', False), ("{}", True)])
def test_mend_removes_a_torn_rwlock(tmp_path, monkeypatch, text, left):
    monkeypatch.chdir(tmp_path)
    lock.USED.parent.mkdir(parents=True)
    lock.USED.write_text(text)
    with Lock(str(lock.HELD)):
        assert (lock.mend(), lock.USED.exists()) == ([], True), "another process may be writing"
    assert lock.mend() == [lock.USED] * (not left)
    assert lock.USED.exists() is left


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_write_tables_refuses_numbers_that_are_not_finite(tmp_path, number):
    for kind, half, odd in (("float64", 0.5, number), ("floats", [0.5], [number])):
        columns = (Column("key", "string", "x"), Column("value", kind, "x", nullable=True))
        schemas, origin = {"t": Schema(columns, key=("key",))}, Origin([], "x", "0.1.0")
        frame = pl.DataFrame({"key": ["a", "b", "c"], "value": [half, None, odd]})
        write_tables(tmp_path / kind, {"t": frame.head(2)}, schemas, {}, origin)
        with pytest.raises(ValueError, match="value"):
            write_tables(tmp_path / kind, {"t": frame}, schemas, {}, origin)
