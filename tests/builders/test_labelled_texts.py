from __future__ import annotations

import shutil
from pathlib import Path

import building
import polars as pl
import pytest
from samples import DAY, SAMPLES

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS, labelled, normal

REAL = Path(__file__).parents[3] / "shared/data/tweets/sentiment"
MAPPING = "0\tnegative\n1\tneutral\n2\tpositive\n"
CORPUS = {
    "name": "mine",
    "tuning": {"texts": "x", "labels": "x"},
    "testing": {"texts": "x", "labels": "x"},
    "mapping": "x",
    "licence": "CC0-1.0",
    "citation": "test",
}
Texts = list[tuple[str, int]]


def snapshot(folder: Path, tuning: Texts, testing: Texts, mapping: str = MAPPING, **changes):
    files = {"en/mine/mapping.txt": mapping}
    for split, texts in (("tuning", tuning), ("testing", testing)):
        files[f"en/mine/{split}_text.txt"] = "".join(f"{t}\n" for t, _ in texts)
        files[f"en/mine/{split}_labels.txt"] = "".join(f"{n}\n" for _, n in texts)
    request = {"corpora": {"en": [CORPUS | changes]}}
    return building.snapshot(folder, "labelled_texts", files, request)


def built_from(folder: Path, *texts: Texts, languages=("en",), **changes):
    params = labelled_texts.Params(version="0.1.0", snapshot="x", languages=list(languages))
    found = labelled_texts.build(snapshot(folder, *texts, **changes), params)
    rows, rejects = building.parted(found)
    return [row.values for row in rows], rejects


def told(row) -> tuple[str, str, str]:
    return SPLITS[row["split"]], row["text"], LABELS[row["label"]]


def test_texts_get_the_labels_of_their_lines_and_their_split(tmp_path):
    rows, rejects = built_from(
        tmp_path, [("Well done", 2), ("Awful", 0)], [("A table", 1), ("A fine day", 2)]
    )
    assert [told(row) for row in rows] == [
        ("tuning", "Awful", "negative"),
        ("tuning", "Well done", "positive"),
        ("testing", "A fine day", "positive"),
        ("testing", "A table", "neutral"),
    ]
    assert {row["source"] for row in rows} == {"mine"}
    assert rejects == []


def test_every_line_ends_in_a_row_or_in_a_counted_reject(tmp_path):
    tuning = [("Seen", 2), ("Twice", 0), ("Twice", 0), (" Twice ", 0), ("Torn", 0), ("Torn", 2)]
    rows, rejects = built_from(tmp_path, tuning, [("Seen", 1), ("", 1), ("New", 1)])
    assert [told(row)[:2] for row in rows] == [
        ("tuning", "Twice"),
        ("testing", "New"),
        ("testing", "Seen"),
    ]
    assert {(r.key, r.reason, r.number) for r in rejects} == {
        ("mine/tuning", "the same text again", 2),
        ("mine/tuning", "the same text with several labels", 2),
        ("mine/tuning", "among the testing texts too", 1),
        ("mine/testing", "no text", 1),
    }
    assert len(rows) + sum(r.number for r in rejects) == 9


def test_other_names_of_labels_are_declared_and_the_rest_are_rejected(tmp_path):
    rows, rejects = built_from(
        tmp_path,
        [("Good", 1), ("Bad", 7)],
        [("Odd", 3), ("Fine", 1)],
        mapping="7\tneg\n1\tpos\n3\tmixed\n",
        labels={"neg": "negative", "pos": "positive"},
    )
    assert [told(row)[2] for row in rows] == ["negative", "positive", "positive"]
    assert [(r.reason, r.detail) for r in rejects] == [
        ("label of no declared sentiment", "line 1: mixed")
    ]


@pytest.mark.parametrize("may", [True, False])
def test_rows_of_a_corpus_that_forbids_it_are_marked(tmp_path, may):
    rows, _ = built_from(tmp_path, [("Good", 2)], [("Bad", 0)], redistribute=may)
    assert {row["redistributable"] for row in rows} == {may}


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (r"it\u2019s\u002c  well", "it’s, well"),
        (r"\ud83d\ude00 a pair", "😀 a pair"),
        ("Fish &amp; chips &lt;3", "Fish & chips <3"),
        ("cafe\u0301\tau  lait ", "café au lait"),
        ("line\u2028separator", "line separator"),
        (r"C:\users", r"C:\users"),
    ],
)
def test_escapes_of_web_exports_are_resolved(raw, wanted):
    assert normal(raw) == wanted


def test_a_separator_inside_a_text_ends_no_line():
    texts = "one\u2028two\nthree\u0085four\n".encode()
    assert [text for text, *_ in labelled(texts, b"0\n1\n", MAPPING.encode())] == [
        "one two",
        "three four",
    ]


@pytest.mark.parametrize(
    ("texts", "labels", "mapping", "wrong"),
    [
        (b"a\nb\n", b"0\n", MAPPING, "2 texts, but 1 labels"),
        (b"a\nb", b"0\n1\n", MAPPING, "texts: cut short"),
        (b"a\nb\n", b"0\n5\n", MAPPING, "labels, line 2: '5' is not in the mapping"),
        (b"a\n", b"0\n", "0 negative\n", "mapping, line 1: not a number, a tab and a name"),
        (b"<!DOCTYPE html>\n", b"0\n", MAPPING, "texts: a web page"),
        (b"\xff\n", b"0\n", MAPPING, "texts: not UTF-8"),
    ],
)
def test_files_that_do_not_fit_are_refused(texts, labels, mapping, wrong):
    with pytest.raises(ValueError, match=wrong):
        list(labelled(texts, labels, mapping.encode()))


def test_a_language_without_corpus_and_a_broken_file_are_named(tmp_path):
    with pytest.raises(UserError, match="no readable corpus for 'sw'"):
        built_from(tmp_path / "a", [("Good", 2)], [("Bad", 0)], languages=["sw"])
    with pytest.raises(UserError, match=r"en/mine/testing: .*'9' is not in"):
        built_from(tmp_path / "b", [("Good", 2)], [("Bad", 9)])


def test_the_sample_has_twenty_texts_of_each_label_in_each_split(sample):
    frame = pl.read_parquet(sample("labelled_texts") / "en.parquet")
    counts = frame.group_by("split", "label").len().sort("split", "label")
    assert counts["len"].to_list() == [20] * 6
    first = SAMPLES / "labelled_texts" / DAY / "en/sentences/tuning_text.txt"
    assert first.read_text("utf-8").splitlines()[0] in frame["text"].to_list()


@pytest.mark.shared
@pytest.mark.skipif(not REAL.is_dir(), reason="no shared data beside the checkout")
def test_the_real_tweets_have_the_published_numbers(tmp_path):
    folder = tmp_path / "real"
    snapshot(folder, [("x", 1)], [("x", 1)], redistribute=False)
    for split, name in (("tuning", "val"), ("testing", "test")):
        for kind in ("text", "labels"):
            shutil.copy(REAL / f"{name}_{kind}.txt", folder / f"en/mine/{split}_{kind}.txt")
    manifest = Snapshot(folder, {"request": {"corpora": {"en": [CORPUS]}}})
    params = labelled_texts.Params(version="0.1.0", snapshot="x", languages=["en"])
    items = list(labelled_texts.build(manifest, params))
    rows = [i.values for i in items if isinstance(i, Row)]
    assert sum(row["split"] == 0 for row in rows) == 2000  # TweetEval, Table 1: 2,000 and 12,284
    refused = sum(i.number for i in items if isinstance(i, Reject))
    assert len(rows) + refused == 2000 + 12284
    assert refused <= 5
    assert not [row["text"] for row in rows if r"\u20" in row["text"] or "&amp;" in row["text"]]
    assert len({row["text"] for row in rows}) == len(rows)
