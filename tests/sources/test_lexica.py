from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, lexica_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.lexica import fetch as lexica
from sources.misbehaving import always, misbehaving, says, status

if TYPE_CHECKING:
    from pathlib import Path

KEPT = SAMPLES / "lexica" / DAY


def contents(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


def test_the_sample_snapshot_is_what_the_client_makes_of_the_sample_lexica(made):
    assert contents(made / "lexica" / DAY) == contents(KEPT)
    Snapshot.open(made / "lexica" / DAY)


def test_an_interrupted_fetch_continues_and_asks_only_for_what_is_missing(address, tmp_path):
    into = tmp_path / DAY
    tired = True
    with misbehaving(address, lambda n, body: status(403) if tired and n >= 5 else None) as server:
        with pytest.raises(Problem, match=server.address):
            lexica.fetch(lexica_params(server.address), POLITE, into)
        assert not (into / MANIFEST).exists()
        before = [request.path for request in server.asked][:-1]
        tired = False
        lexica.fetch(lexica_params(server.address), POLITE, into)
    again = [request.path for request in server.asked][len(before) + 1 :]
    assert not set(before) & set(again)
    assert {n: b for n, b in contents(into).items() if n != MANIFEST} == {
        n: b for n, b in contents(KEPT).items() if n != MANIFEST
    }


def test_a_web_page_in_place_of_a_lexicon_is_refused_with_its_address(address, tmp_path):
    page = always(says(b"<!DOCTYPE html>\n<p>Moved.</p>", "text/plain"))
    with misbehaving(address, page) as server:
        with pytest.raises(Problem, match="a web page in place of the file") as caught:
            lexica.fetch(lexica_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(server.address)
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_the_manifest_has_each_licence_and_marks_rows_that_must_not_be_published(address, tmp_path):
    params = lexica_params(address).model_dump()
    params["views"] = {"cs": params["views"]["cs"]}
    params["views"]["cs"][0] |= {"licence": "research use", "redistribute": False}
    lexica.fetch(lexica.Params(**params), POLITE, tmp_path / DAY)
    facts = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert facts["licence"] == (
        "degrees: CC0-1.0; poles: research use (rows not to be published); shares: CC0-1.0"
    )
    assert facts["request"]["views"]["cs"][0]["redistribute"] is False


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"files": {"positive": "ftp.example.org/a"}}, "no http address"),
        ({"name": "degrees"}, "each under a name of its own"),
        ({"files": {"positive": "http://a/x.txt", "negative": "http://b/x.txt"}}, "same name"),
    ],
)
def test_views_that_cannot_be_kept_apart_are_refused_before_fetching(address, change, told):
    params = lexica_params(address).model_dump()
    params["views"]["en"][0] |= change
    with pytest.raises(ValidationError, match=told):
        lexica.Params(**params)
