import gzip
import json
from pathlib import Path

import pytest

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import (
    MANIFEST,
    Snapshot,
    resume,
    same_request,
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


@pytest.fixture
def folder(tmp_path) -> Path:
    into = tmp_path / "2026-11-21"
    write_bytes(into / "a" / "1.txt", b"one\n")
    write_gzip(into / "a" / "2.txt.gz", b"two\n")
    write_bytes(into / "b.txt", b"three\n")
    write_manifest(into, FACTS)
    return into


def test_a_whole_snapshot_opens_and_reads_as_it_was_written(folder):
    snapshot = Snapshot.open(folder)
    assert list(snapshot.names("a/")) == ["a/1.txt", "a/2.txt.gz"]
    assert snapshot.read("a/1.txt") == b"one\n"
    assert snapshot.read("a/2.txt.gz") == b"two\n"


def test_a_single_changed_byte_is_told_with_the_name_of_its_file(folder):
    (folder / "a" / "1.txt").write_bytes(b"One\n")
    with pytest.raises(UserError, match=r"a/1\.txt: its bytes differ .* never edited"):
        Snapshot.open(folder)


def test_a_missing_file_is_told_by_name(folder):
    (folder / "b.txt").unlink()
    with pytest.raises(UserError, match=r"b\.txt: named by the manifest but missing"):
        Snapshot.open(folder)


def test_a_snapshot_without_manifest_is_called_unfinished(folder):
    (folder / MANIFEST).unlink()
    with pytest.raises(UserError, match=r"not whole .* run the same fetch again"):
        Snapshot.open(folder)


def test_a_snapshot_that_does_not_exist_says_how_to_get_one(tmp_path):
    with pytest.raises(UserError, match="no such snapshot; fetch one"):
        Snapshot.open(tmp_path / "nothing")


@pytest.mark.parametrize("text", ["", "{", "<html>", "\xff"])
def test_a_manifest_that_is_not_json_is_told(folder, text):
    (folder / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match="not valid JSON"):
        Snapshot.open(folder)


@pytest.mark.parametrize("key", [*FACTS, "files"])
def test_a_manifest_without_licence_or_any_other_provenance_does_not_open(folder, key):
    tree = json.loads((folder / MANIFEST).read_text("utf-8"))
    del tree[key]
    (folder / MANIFEST).write_text(json.dumps(tree), "utf-8")
    with pytest.raises(UserError, match=f"no '{key}'"):
        Snapshot.open(folder)


@pytest.mark.parametrize("nothing", ["", None])
def test_an_empty_licence_counts_as_none(folder, nothing):
    path = folder / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"licence": nothing}), "utf-8")
    with pytest.raises(UserError, match="no 'licence'"):
        Snapshot.open(folder)


def test_no_manifest_is_written_without_a_licence(tmp_path):
    write_bytes(tmp_path / "a.txt", b"a")
    with pytest.raises(AssertionError, match="licence"):
        write_manifest(tmp_path, {k: v for k, v in FACTS.items() if k != "licence"})
    assert not (tmp_path / MANIFEST).exists()


def test_a_manifest_lists_neither_itself_nor_what_belongs_to_the_fetch_whose_parts_go(folder):
    (folder / ".request.json").write_text("{}")
    parts = (".dump-a.jsonl.zst", ".part-b", ".version-b", "a/.writing-xyz")
    for name in parts:
        (folder / name).write_text("half")
    write_manifest(folder, FACTS)
    listed = set(json.loads((folder / MANIFEST).read_text("utf-8"))["files"])
    assert listed == {"a/1.txt", "a/2.txt.gz", "b.txt"}
    assert not any((folder / name).exists() for name in parts)


def test_compressing_twice_gives_the_same_bytes(tmp_path):
    for name in ("1.gz", "2.gz"):
        write_gzip(tmp_path / name, b"the same\n" * 1000)
    assert (tmp_path / "1.gz").read_bytes() == (tmp_path / "2.gz").read_bytes()
    assert gzip.decompress((tmp_path / "1.gz").read_bytes()) == b"the same\n" * 1000


@pytest.mark.parametrize("obstacle", ["a file where a folder must be", "a folder of that name"])
def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path, obstacle):
    if obstacle == "a folder of that name":
        path = tmp_path / "x"
        path.mkdir()
    else:
        (tmp_path / "x").write_text("in the way")
        path = tmp_path / "x" / "y"
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match="could not be written"):
        write_bytes(path, b"body")
    assert sorted(tmp_path.rglob("*")) == before


def test_continuing_removes_half_written_and_edited_files_and_no_others(folder):
    (folder / ".writing-1").write_text("half")
    (folder / "b.txt").write_text("edited")
    resume(folder)
    left = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert left == {"a/1.txt", "a/2.txt.gz", MANIFEST}
    resume(folder / "nothing there")


def test_continuing_does_not_trust_a_broken_manifest(folder):
    (folder / MANIFEST).write_text("{")
    resume(folder)
    assert not (folder / MANIFEST).exists()
    assert (folder / "b.txt").exists()


def test_a_fetch_is_held_to_the_parameters_it_began_with(tmp_path, folder):
    path = tmp_path / "new" / ".request.json"
    same_request(path, {"tag": "r1"})
    same_request(path, {"tag": "r1"})
    with pytest.raises(UserError, match="other parameters"):
        same_request(path, {"tag": "r2"})
    with pytest.raises(UserError, match="other parameters"):
        same_request(folder / ".request.json", {"what": "some"})
    same_request(folder / ".request.json", {"what": "all"})
