from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, labelled_texts_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.labelled_texts import fetch as labelled_texts
from sources.misbehaving import always, at_first, cut, misbehaving, says, status

if TYPE_CHECKING:
    from pathlib import Path

KEPT = SAMPLES / "labelled_texts" / DAY


def contents(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def texts(folder: Path) -> dict[str, bytes]:
    return {name: body for name, body in contents(folder).items() if name != MANIFEST}


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


def test_the_sample_snapshot_is_what_the_client_makes_of_the_sample_texts(made):
    assert contents(made / "labelled_texts" / DAY) == contents(KEPT)
    Snapshot.open(made / "labelled_texts" / DAY)


def test_an_interrupted_fetch_continues_with_the_split_that_is_missing(address, tmp_path):
    into = tmp_path / DAY
    tired = True
    with misbehaving(address, lambda n, body: status(403) if tired and n >= 4 else None) as server:
        with pytest.raises(Problem, match=server.address):
            labelled_texts.fetch(labelled_texts_params(server.address), POLITE, into)
        assert not (into / MANIFEST).exists()
        number = len(server.asked)
        tired = False
        labelled_texts.fetch(labelled_texts_params(server.address), POLITE, into)
        again = [request.path for request in server.asked[number:]]
    assert all("testing" in path for path in again)
    assert texts(into) == texts(KEPT)


def test_a_broken_line_is_tried_again(address, tmp_path):
    with misbehaving(address, at_first(1, cut)) as server:
        labelled_texts.fetch(labelled_texts_params(server.address), POLITE, tmp_path / DAY)
    assert texts(tmp_path / DAY) == texts(KEPT)


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b"<!DOCTYPE html>\n<p>Moved.</p>\n", "a web page in place of the file"),
        (b"0\tnegative\n1\tneutral\n", "labels, line 1: .* is not in the mapping"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_address(address, tmp_path, body, wrong):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(Problem, match=wrong) as caught:
            labelled_texts.fetch(labelled_texts_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(server.address)
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_labels_of_another_split_do_not_pass_for_the_labels(address, tmp_path):
    params = labelled_texts_params(address).model_dump()
    corpus = params["corpora"]["en"][0]
    corpus["testing"]["labels"] = corpus["mapping"]
    with pytest.raises(Problem, match="60 texts, but 3 labels"):
        labelled_texts.fetch(labelled_texts.Params(**params), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("testing_*"))


def test_the_manifest_marks_texts_that_must_not_be_published(address, tmp_path):
    params = labelled_texts_params(address, licence="research use", redistribute=False)
    labelled_texts.fetch(params, POLITE, tmp_path / DAY)
    facts = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert facts["licence"] == "sentences: research use (rows not to be published)"
    assert facts["request"]["corpora"]["en"][0]["redistribute"] is False


def test_corpora_that_cannot_be_kept_apart_and_bad_addresses_are_refused(address):
    params = labelled_texts_params(address).model_dump()
    twice = params["corpora"]["en"] * 2
    with pytest.raises(ValidationError, match="each under a name of its own"):
        labelled_texts.Params(corpora={"en": twice})
    with pytest.raises(ValidationError, match="is no http address"):
        labelled_texts_params(address, mapping="ftp.example.org/a")
