from __future__ import annotations

import json

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, supersenses_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.supersenses import fetch as supersenses
from sources.misbehaving import always, misbehaving, says

KEPT = SAMPLES / "supersenses" / DAY


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


def test_all_fifteen_files_of_verbs_are_asked_for_at_the_tag(address, tmp_path):
    with misbehaving(address) as server:
        params = supersenses_params(server.address).model_dump()
        params["verbs"]["address"] = server.address + "/verbs/{file}?{tag}"
        supersenses.fetch(supersenses.Params(**params), POLITE, tmp_path / DAY)
        asked = [request.path for request in server.asked]
    verbs = [path for path in asked if path.startswith("/verbs/verb.")]
    assert len(verbs) == len(set(verbs)) == 15
    assert all(path.endswith(f".yaml?{DAY}") for path in verbs)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<!DOCTYPE html>\n<p>Not here.</p>\n", "a web page"),
        (b"calm\tFEELING\n", "line 1 has 2 columns"),
        ("na\u00efve\t".encode("latin-1"), "not UTF-8"),
    ],
)
def test_a_body_that_is_no_list_is_refused_with_its_address(address, tmp_path, body, told):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(UserError, match=told) as caught:
            supersenses.fetch(supersenses_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/adjectives/")
    assert not (tmp_path / DAY / MANIFEST).exists()
    assert not list((tmp_path / DAY).rglob("*.predicted"))


def test_the_manifest_names_both_licences_and_both_works(address, tmp_path):
    params = supersenses_params(address).model_dump()
    params["adjectives"]["licence"], params["verbs"]["licence"] = "GPL-2.0", "CC-BY-4.0"
    supersenses.fetch(supersenses.Params(**params), POLITE, tmp_path / DAY)
    manifest = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert manifest["licence"] == "CC-BY-4.0 AND GPL-2.0"
    assert "Tsvetkov" in manifest["citation"]
    assert "WordNet" in manifest["citation"]


@pytest.mark.parametrize("wrong", ["raw.example.org/{file}", "https://x/{edition}/{file}"])
def test_an_address_that_cannot_be_filled_in_is_refused_before_fetching(wrong):
    with pytest.raises(ValidationError, match="address"):
        supersenses.Verbs(address=wrong, tag="x", licence="x")
