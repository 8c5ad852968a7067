from __future__ import annotations

import pytest
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, labelled_texts_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.datasets.labelled_texts import fetch as labelled_texts
from sources.misbehaving import always, misbehaving, says

KEPT = SAMPLES / "labelled_texts" / DAY


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b"<!DOCTYPE html>\n<p>Moved.</p>\n", "a web page in place of the file"),
        (b"0\tnegative\n1\tneutral\n", "labels, line 1: .* is not in the mapping"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_address(address, tmp_path, body, wrong):
    with misbehaving(address, always(says(body, "text/plain"))) as server:
        with pytest.raises(UserError, match=wrong) as caught:
            labelled_texts.fetch(labelled_texts_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(server.address)
    assert not (tmp_path / DAY / MANIFEST).exists()


def test_labels_of_another_split_do_not_pass_for_the_labels(address, tmp_path):
    params = labelled_texts_params(address).model_dump()
    corpus = params["corpora"]["en"][0]
    corpus["testing"]["labels"] = corpus["mapping"]
    with pytest.raises(UserError, match="60 texts, but 3 labels"):
        labelled_texts.fetch(labelled_texts.Params(**params), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("testing_*"))


def test_corpora_that_cannot_be_kept_apart_and_bad_addresses_are_refused(address):
    params = labelled_texts_params(address).model_dump()
    twice = params["corpora"]["en"] * 2
    with pytest.raises(ValidationError, match="each under a name of its own"):
        labelled_texts.Params(corpora={"en": twice})
    with pytest.raises(ValidationError, match="is no http address"):
        labelled_texts_params(address, mapping="ftp.example.org/a")
