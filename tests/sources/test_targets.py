from __future__ import annotations

import pytest
from samples import DAY, POLITE, SAMPLES, targets_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.targets import fetch as targets

FOLDER = SAMPLES / "targets" / DAY / "sentiment-en/tweets"


def entry(place: str, **changes) -> dict:
    own = targets_params().corpora[0].model_dump()
    return own | {"parts": {"test": place}} | changes


def test_a_file_of_another_layout_leaves_nothing_behind(tmp_path):
    wrong = entry(str(FOLDER / "test.tsv"), format="jsonl")
    with pytest.raises(UserError, match="line 1: not JSON"):
        targets.fetch(targets_params(wrong), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("*.jsonl"))


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


def test_two_corpora_of_one_name_are_refused():
    with pytest.raises(ValueError, match="a name of its own"):
        targets_params(entry("x"), entry("y"))
