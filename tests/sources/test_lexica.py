from __future__ import annotations

import pytest
from pydantic import ValidationError
from samples import DAY, SAMPLES, files, lexica_params

from plumbline.builders.datasets.lexica import fetch as lexica

KEPT = SAMPLES / "lexica" / DAY


@pytest.fixture(scope="module")
def address():
    with files(KEPT) as found:
        yield found


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
