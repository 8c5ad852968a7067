from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, ud_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.words import fetch as ud
from sources.misbehaving import (
    always,
    at_first,
    cut,
    gzipped,
    misbehaving,
    reset,
    says,
    status,
    trickle,
    web_page,
)

if TYPE_CHECKING:
    from pathlib import Path

KEPT = SAMPLES / "ud" / DAY
FILE = "en/en_sample-ud-test.conllu"
TEXT = (KEPT / FILE).read_text("utf-8")
SENTENCES = TEXT.split("\n\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def only_english(address: str, **changes) -> ud.Params:
    bank = {"name": "en", "tag": DAY, "files": [FILE.split("/")[1]], "licence": "CC0-1.0"}
    return ud.Params(
        address=address + "/{treebank}/{file}", treebanks={"en": [ud.Treebank(**(bank | changes))]}
    )


def third(change) -> bytes:
    """Return the treebank with its third sentence changed."""
    sentences = list(SENTENCES)
    sentences[2] = change(sentences[2])
    return ("\n\n".join(sentences) + "\n\n").encode()


def columns(number: int):
    def change(sentence: str) -> str:
        lines = sentence.split("\n")
        lines[-1] = "\t".join(([*lines[-1].split("\t"), "_"])[:number])
        return "\n".join(lines)

    return change


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


def test_the_sample_snapshot_is_what_the_client_makes_of_the_sample_treebanks(made):
    assert contents(made / "ud" / DAY) == contents(KEPT)
    Snapshot.open(made / "ud" / DAY)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<!DOCTYPE html>\n<p>Not here.</p>\n\n", "a web page"),
        (TEXT.encode()[:-40], "cut short"),
        (third(columns(9)), "sentence 3: a token has 9 columns, not ten"),
        (third(columns(11)), "sentence 3: a token has more columns, not ten"),
        (third(lambda s: s.replace("\n1\t", "\none\t")), "sentence 3 .*'one' is not a valid ID"),
        (third(lambda s: s.replace("\n1\t", "\n_\t")), "sentence 3: id _ where 1 belongs"),
        (third(lambda s: s.replace("\n2\t", "\n3\t", 1)), "sentence 3: id 3 where 2 belongs"),
        (b"", "cut short"),
        (b"\n\n", "no sentence in it"),
        (b"# text = nothing\n\n", "sentence 1: no word in it"),
        (TEXT.replace("minister", "minist\u00e8re").encode("latin-1"), "not UTF-8"),
    ],
    ids=[
        *("HTML", "cut short", "nine columns", "eleven columns", "wrong id", "no id", "lost word"),
        *("empty", "blank", "only a comment", "latin-1"),
    ],
)
def test_a_body_that_is_no_treebank_is_refused_with_its_address(address, tmp_path, body, told):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(Problem, match=told) as caught:
            ud.fetch(only_english(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/{FILE}: ")
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / DAY).rglob("*.conllu"))
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_a_wrong_address_is_told_at_once_and_in_full(address, tmp_path):
    with misbehaving(address) as server, pytest.raises(Problem) as caught:
        ud.fetch(only_english(server.address, name="nowhere"), POLITE, tmp_path / DAY)
    assert str(caught.value).startswith(f"{server.address}/nowhere/en_sample-ud-test.conllu: ")
    assert "HTTP 404" in str(caught.value)
    assert "params.yaml" in str(caught.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "behaviour",
    [status(429), status(503), status(500), cut, reset],
    ids=["429", "503", "500", "cut", "reset"],
)
def test_a_failure_that_passes_leaves_no_trace(address, tmp_path, behaviour):
    with misbehaving(address, at_first(2, behaviour)) as server:
        ud.fetch(only_english(server.address), POLITE, tmp_path / DAY)
    assert (tmp_path / DAY / FILE).read_text("utf-8") == TEXT
    assert {request.headers["User-Agent"] for request in server.asked} == {POLITE.user_agent()}


@pytest.mark.parametrize("behaviour", [status(429), cut, web_page], ids=["429", "cut", "web page"])
def test_an_interrupted_fetch_keeps_its_files_and_asks_only_for_the_others(
    address, tmp_path, behaviour
):
    into = tmp_path / DAY
    tired = True
    with misbehaving(address, lambda n, body: behaviour if tired and n >= 3 else None) as server:
        with pytest.raises(Problem, match=server.address):
            ud.fetch(ud_params(server.address), POLITE, into)
        assert len(list(into.rglob("*.conllu"))) == 3
        assert not (into / MANIFEST).exists()
        with pytest.raises(Problem, match="no manifest"):
            Snapshot.open(into)
        tired, before = False, len(server.asked)
        ud.fetch(ud_params(server.address), POLITE, into)
    paths = [request.path for request in server.asked]
    assert len(paths[before:]) == 4
    assert not set(paths[:3]) & set(paths[before:])
    assert {n: b for n, b in contents(into).items() if n != MANIFEST} == {
        n: b for n, b in contents(KEPT).items() if n != MANIFEST
    }
    Snapshot.open(into)


def test_a_body_that_only_trickles_in_does_not_hold_the_fetch_for_ever(address, tmp_path):
    patience = POLITE.model_copy(update={"timeout_s": 1.0, "attempts": 1})
    told = pytest.raises(Problem, match="no whole answer within 1 s")
    with misbehaving(address, always(trickle(0.3))) as server, told:
        ud.fetch(only_english(server.address), patience, tmp_path / DAY)


def test_a_compressed_body_is_kept_as_its_content(address, tmp_path):
    with misbehaving(address, always(gzipped)) as server:
        ud.fetch(only_english(server.address), POLITE, tmp_path / DAY)
    assert (tmp_path / DAY / FILE).read_text("utf-8") == TEXT


@pytest.mark.parametrize("finished", [False, True])
def test_files_of_two_releases_never_end_in_one_snapshot(address, tmp_path, finished):
    into = tmp_path / DAY
    script = (lambda n, body: None) if finished else (lambda n, body: n > 2 and status(403))
    with misbehaving(address, script) as server:
        try:
            ud.fetch(ud_params(server.address), POLITE, into)
        except Problem:
            assert not finished
        other = ud_params(server.address).model_dump()
        other["treebanks"]["ru"][0]["tag"] = "r2.99"
        before = contents(into)
        with pytest.raises(Problem, match=r"begun with other parameters.*--date"):
            ud.fetch(ud.Params(**other), POLITE, into)
    assert contents(into) == before
    assert (MANIFEST in before) is finished


def test_fetching_again_replaces_an_edited_file_in_place_of_believing_it(address, tmp_path):
    into = tmp_path / DAY
    ud.fetch(ud_params(address), POLITE, into)
    before = contents(into)
    (into / FILE).write_text("\n\n".join(SENTENCES[1:]) + "\n\n", "utf-8")
    ud.fetch(ud_params(address), POLITE, into)
    assert contents(into) == before


def test_the_manifest_names_every_licence_once(address, tmp_path):
    params = ud_params(address).model_dump()
    for code in ("ru", "hi"):
        params["treebanks"][code][0]["licence"] = "CC-BY-4.0"
    ud.fetch(ud.Params(**params), POLITE, tmp_path / DAY)
    manifest = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert manifest["licence"] == "CC-BY-4.0 AND CC0-1.0"
    assert manifest["retrieved"] == DAY


@pytest.mark.parametrize(
    "wrong",
    ["raw.example.org/{file}", "https://x/{repository}/{file}", "https://x/{0}", "https://x/{"],
)
def test_an_address_that_cannot_be_filled_in_is_refused_before_fetching(wrong):
    with pytest.raises(ValidationError, match="address"):
        ud.Params(address=wrong, treebanks=ud_params("http://x").treebanks)


def test_a_half_written_file_of_a_killed_fetch_is_swept_away(address, tmp_path):
    into = tmp_path / DAY
    shutil.copytree(KEPT / "ar", into / "ar")
    (into / "ar" / ".writing-abc").write_bytes(b"# text = ")
    ud.fetch(ud_params(address), POLITE, into)
    assert not list(into.rglob(".*"))
