import json

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, supersenses_params

from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.supersenses import fetch as supersenses
from sources.misbehaving import misbehaving

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
