from __future__ import annotations

import pytest
from samples import targets_params


def entry(place: str, **changes) -> dict:
    own = targets_params().corpora[0].model_dump()
    return own | {"parts": {"test": place}} | changes


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"format": "tweeteval"}, "needs a mapping"),
        ({"columns": {"label": "label"}}, "columns must name that of the text"),
        ({"task": "a/b"}, "String should match pattern"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_refused_before_it_is_fetched(changes, wrong):
    with pytest.raises(ValueError, match=wrong):
        targets_params(entry("x") | changes)
