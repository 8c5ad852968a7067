import json
from pathlib import Path

import pytest
import whole

from plumbline.builders.__main__ import main
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import (
    MANIFEST,
    Snapshot,
    lock_folder,
    resume,
    write_bytes,
    write_gzip,
    write_manifest,
)

FACTS = {
    "source": "here",
    "address": "http://example.org",
    "retrieved": "2026-11-21",
    "licence": "CC0-1.0",
    "citation": "nobody",
    "request": {"what": "all"},
    "counts": {},
}


def test_second_fetch_into_a_folder_is_refused_until_the_first_ends(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    whole.write(tmp_path)
    into = Path("data/raw/ud/2026-11-21")
    for _ in range(2):
        with lock_folder(into):
            assert main(["fetch", "ud", "--date", into.name]) == 1
        assert str(into) in capsys.readouterr().err
        assert [*into.parent.iterdir()] == []


@pytest.fixture
def folder(tmp_path) -> Path:
    into = tmp_path / "2026-11-21"
    write_bytes(into / "a" / "1.txt", b"one\n")
    write_gzip(into / "a" / "2.txt.gz", b"two\n")
    write_bytes(into / "b.txt", b"three\n")
    write_manifest(into, FACTS)
    return into


def test_open_whole_snapshot(folder):
    snapshot = Snapshot.open(folder)
    assert list(snapshot.names("a/")) == ["a/1.txt", "a/2.txt.gz"]
    assert snapshot.read("a/1.txt") == b"one\n"
    assert snapshot.read("a/2.txt.gz") == b"two\n"


def test_open_changed_file_or_without_manifest(folder):
    (folder / "a" / "1.txt").write_bytes(b"One\n")
    with pytest.raises(UserError, match=r"1\.txt"):
        Snapshot.open(folder)
    (folder / MANIFEST).unlink()
    with pytest.raises(UserError):
        Snapshot.open(folder)


@pytest.mark.parametrize("key", ["licence", "files"])
def test_open_without_provenance(folder, key):
    tree = json.loads((folder / MANIFEST).read_text("utf-8"))
    del tree[key]
    (folder / MANIFEST).write_text(json.dumps(tree), "utf-8")
    with pytest.raises(UserError):
        Snapshot.open(folder)


@pytest.mark.parametrize("tree", [[], None, {"files": {}}, {"files": None, "request": {}}])
@pytest.mark.parametrize("name", [MANIFEST, ".request.json"])
def test_resume_with_a_damaged_record(tmp_path, tree, name):
    (tmp_path / name).write_text(json.dumps(tree), "utf-8")
    with pytest.raises(UserError):
        resume(tmp_path / ".request.json", {"seed": 1})


def test_write_manifest_lists_files(folder):
    (folder / ".request.json").write_text("{}")
    parts = (".dump-a.jsonl.zst", ".part-b", ".version-b", "a/.writing-xyz")
    for name in parts:
        (folder / name).write_text("half")
    write_manifest(folder, FACTS)
    listed = set(json.loads((folder / MANIFEST).read_text("utf-8"))["files"])
    assert listed == {"a/1.txt", "a/2.txt.gz", "b.txt"}
    assert not any((folder / name).exists() for name in parts)
