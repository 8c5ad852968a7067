"""What a kill leaves at the points where it hurts most, and what the next run makes of it."""

import json
import os
import re

import pytest
from samples import POLITE

from plumbline.builders.core import parquet
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.dvc import lock
from plumbline.builders.fetch import sparql
from plumbline.builders.fetch.http import Answer


class Killed(BaseException):
    pass


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "words"
    for where, text in ((made, "old"), (parquet.partial(made), "new")):
        where.mkdir()
        (where / "en.parquet").write_text(text)
    return made


@pytest.mark.parametrize("number", [0, 1])
def test_finish_killed_leaves_one_whole_folder(folder, monkeypatch, number):
    renames = []

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


def test_write_bytes_removes_leftovers(tmp_path, monkeypatch):
    def killed(*_):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):  # noqa: PT012
        patch.setattr(os, "fsync", killed)
        patch.setattr(type(tmp_path), "unlink", lambda *_, **__: None)
        write_bytes(tmp_path / "a.json", b"1")
    assert len(list(tmp_path.iterdir())) == 1
    write_bytes(tmp_path / "a.json", b"2")
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "text", ["", "schema: '2.0'\nstages:\n  a:\n    cmd: x\n    deps:\n    -", "a: ["]
)
def test_sound_lock_or_conflict(tmp_path, text):
    path = tmp_path / "dvc.lock"
    path.write_text(text)
    assert not lock._sound(path)
    path.write_text("<<<<<<< ours\n" + text)
    assert lock._sound(path)
    path.write_text("schema: '2.0'\nstages:\n  a:\n    cmd: x\n")
    assert lock._sound(path)


def answer(ids, value="x"):
    rows = [
        {
            "item": {"type": "uri", "value": f"http://www.wikidata.org/entity/{qid}"},
            "label": {"type": "literal", "value": value, "xml:lang": "en"},
        }
        for qid in ids
    ]
    return json.dumps({"results": {"bindings": rows}}).encode()


def asking(monkeypatch, tmp_path, known, most=10**9, strange=(), count=len):
    """Return an endpoint that sends no more than so many labels, and counts all."""

    def receive(url, policy, form, headers, hint):
        ids = [q for q in re.findall(r"/(Q\d+)>", form["query"]) if q in known]
        if "(COUNT(*) AS ?count)" not in form["query"]:
            return Answer(answer([*ids[:most], *strange]), "")
        row = {"count": {"type": "literal", "value": str(count(ids))}}
        return Answer(json.dumps({"results": {"bindings": [row]}}).encode(), "")

    monkeypatch.setattr(sparql, "receive", receive)
    return sparql.Endpoint("http://x/y", POLITE, tmp_path)


def labels(batch):
    return f"SELECT ?item ?label WHERE {{ VALUES ?item {{ {sparql.values(batch.ids)} }} }}"


IDS = [f"Q{number}" for number in range(1, 41)]


def test_gather_splits_incomplete_answers(monkeypatch, tmp_path):
    client = asking(monkeypatch, tmp_path, set(IDS), most=15)
    client.gather(sparql.Batch("00000", IDS), "labels", labels)
    assert client.items("labels") == sorted(IDS, key=lambda qid: int(qid[1:]))
    assert not (tmp_path / "labels/00000.json.gz").exists()


@pytest.mark.parametrize(("text", "left"), [('{"write": ', False), ("{}", True)])
def test_mend_removes_a_torn_rwlock(tmp_path, monkeypatch, text, left):
    monkeypatch.chdir(tmp_path)
    lock.USED.parent.mkdir(parents=True)
    lock.USED.write_text(text)
    assert lock.mend() == [lock.USED] * (not left)
    assert lock.USED.exists() is left
