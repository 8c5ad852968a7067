from __future__ import annotations

import pytest
from samples import DAY, POLITE, SAMPLES, files, targets_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.targets import fetch as targets
from sources.misbehaving import always, misbehaving, web_page

FOLDER = SAMPLES / "targets" / DAY / "sentiment-en/tweets"


def entry(place: str, **changes) -> dict:
    own = targets_params().corpora[0].model_dump()
    return own | {"parts": {"test": place}} | changes


def test_a_file_of_the_checkout_and_one_from_afar_are_kept_as_they_are(tmp_path):
    with files(FOLDER) as address:
        far = entry(f"{address}/test.tsv", name="far")
        targets.fetch(targets_params(entry(str(FOLDER / "test.tsv")), far), POLITE, tmp_path / DAY)
    for name in ("tweets", "far"):
        kept = tmp_path / DAY / "sentiment-en" / name / "test.tsv"
        assert kept.read_bytes() == (FOLDER / "test.tsv").read_bytes()
    counts = Snapshot.open(tmp_path / DAY).manifest["counts"]
    assert counts == {"sentiment-en/far/test": 62, "sentiment-en/tweets/test": 62}


def test_a_web_page_and_a_missing_file_are_told(tmp_path):
    with (
        files(FOLDER) as address,
        misbehaving(address, always(web_page)) as server,
        pytest.raises(Problem, match="a web page in place of the file"),
    ):
        targets.fetch(targets_params(entry(f"{server.address}/test.tsv")), POLITE, tmp_path / "a")
    assert not (tmp_path / "a" / MANIFEST).exists()
    with pytest.raises(Problem, match=r"nowhere\.tsv: no such file of texts"):
        targets.fetch(targets_params(entry("nowhere.tsv")), POLITE, tmp_path / "b")


def test_a_file_of_another_layout_leaves_nothing_behind(tmp_path):
    wrong = entry(str(FOLDER / "test.tsv"), layout="jsonl")
    with pytest.raises(Problem, match="line 1: not JSON"):
        targets.fetch(targets_params(wrong), POLITE, tmp_path / DAY)
    assert not list((tmp_path / DAY).rglob("*.jsonl"))


def test_other_parameters_are_refused_when_a_fetch_is_continued(tmp_path):
    targets.fetch(targets_params(), POLITE, tmp_path / DAY)
    other = entry(str(FOLDER / "test.tsv"), licence="another")
    with pytest.raises(Problem, match="begun with other parameters"):
        targets.fetch(targets_params(other), POLITE, tmp_path / DAY)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"layout": "tweeteval"}, "needs a mapping"),
        ({"columns": {"label": "label"}}, "columns must tell where the text is"),
        ({"parts": {"../x": "y"}}, "cannot be names of splits"),
        ({"task": "a/b"}, "String should match pattern"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_refused_before_it_is_fetched(changes, wrong):
    with pytest.raises(ValueError, match=wrong):
        targets_params(entry("x") | changes)


def test_two_corpora_of_one_name_are_refused():
    with pytest.raises(ValueError, match="a name of its own"):
        targets_params(entry("x"), entry("y"))
