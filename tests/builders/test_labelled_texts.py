from __future__ import annotations

import io
import shutil
import zipfile
from pathlib import Path

import building
import polars as pl
import pytest

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.labelled_texts import build as labelled_texts
from plumbline.builders.datasets.labelled_texts.build import LABELS, SPLITS

REAL = building.REAL / "tweets/sentiment"
MAPPING = "0\tnegative\n1\tneutral\n2\tpositive\n"
CORPUS = {
    "name": "mine",
    "tuning": {"texts": "x", "labels": "x"},
    "testing": {"texts": "x", "labels": "x"},
    "mapping": "x",
    "licence": "CC0-1.0",
    "citation": "test",
}
ENGLISH = labelled_texts.Params(version="0.1.0", snapshot="x", languages=["en"])
Texts = list[tuple[str, int]]


def snapshot(folder: Path, tuning: Texts, testing: Texts, mapping: str = MAPPING, **changes):
    files = {"en/mine/mapping.txt": mapping}
    for split, texts in (("tuning", tuning), ("testing", testing)):
        files[f"en/mine/{split}_text.txt"] = "".join(f"{t}\n" for t, _ in texts)
        files[f"en/mine/{split}_labels.txt"] = "".join(f"{n}\n" for _, n in texts)
    request = {"corpora": {"en": [CORPUS | changes]}}
    return building.snapshot(folder, "labelled_texts", files, request)


def built_from(folder: Path, *texts: Texts, params=ENGLISH, **changes):
    found = labelled_texts.build(snapshot(folder, *texts, **changes), params)
    rows, rejects = building.parted(found)
    return [row.values for row in rows], rejects


def told(row) -> tuple[str, str, str]:
    return SPLITS[row["split"]], row["text"], LABELS[row["label"]]


def test_every_line_ends_in_a_row_or_in_a_counted_reject(tmp_path):
    tuning = [("Seen", 2), ("Twice", 0), ("Twice", 0), (" Twice ", 0), ("Torn", 0), ("Torn", 2)]
    rows, rejects = built_from(tmp_path, tuning, [("Seen", 1), ("", 1), ("New", 1)])
    assert [told(row) for row in rows] == [
        ("tuning", "Twice", "negative"),
        ("testing", "New", "neutral"),
        ("testing", "Seen", "neutral"),
    ]
    assert {(r.key, r.reason, r.detail) for r in rejects} == {
        *(("mine/tuning", "the same text again", f"line {n}") for n in (3, 4)),
        *(("mine/tuning", "the same text with several labels", f"line {n}") for n in (5, 6)),
        ("mine/tuning", "among the testing texts too", "line 1"),
        ("mine/testing", "no text", "line 2"),
    }
    assert len(rows) + sum(r.number for r in rejects) == 9


TABLE = {
    "name": "mine",
    "format": "csv",
    "testing": {"texts": "x"},
    "columns": {"text": "review", "label": "stars"},
    "labels": {"1": "negative", "5": "positive"},
    "licence": "CC0-1.0",
    "citation": "test",
}


def table_from(folder: Path, files: dict[str, bytes], **changes):
    (folder / "en/mine").mkdir(parents=True)
    for name, body in files.items():
        (folder / "en/mine" / name).write_bytes(body)
    made = Snapshot(
        folder, {"source": "labelled_texts", "request": {"corpora": {"en": [TABLE | changes]}}}
    )
    rows, rejects = building.parted(labelled_texts.build(made, ENGLISH))
    return [told(row.values) for row in rows], rejects


def test_build_reads_a_utf16_table_in_an_archive(tmp_path):
    lines = ["no\tstars\treview", "1\t5\tفندق “رائع”", "2\t1\tسيئ", "3\t3\tعادي"]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data/reviews.txt", "\n".join([*lines, ""]).encode("utf-16"))
    part = {"texts": "http://x/a.zip#reviews.txt"}
    rows, rejects = table_from(
        tmp_path,
        {"testing.zip": archive.getvalue(), "tuning.zip": archive.getvalue()},
        format="tsv",
        encoding="utf-16",
        testing=part,
        tuning=part,
    )
    assert rows == [("testing", "سيئ", "negative"), ("testing", "فندق “رائع”", "positive")]
    assert ("mine/testing", "label of no declared sentiment") in {
        (r.key, r.reason) for r in rejects
    }


def test_build_reads_parquet_and_csv(tmp_path):
    body = io.BytesIO()
    pl.DataFrame({"review": ["Good", None, "Bad"], "stars": [5, 5, 1], "x": 0}).write_parquet(body)
    csv = b'stars,review\n5,"Fine, really"\n1,Awful\n'
    rows, rejects = table_from(
        tmp_path / "a", {"testing.parquet": body.getvalue(), "tuning.parquet": body.getvalue()},
        format="parquet", tuning={"texts": "y"},
    )  # fmt: skip
    assert rows == [("testing", "Bad", "negative"), ("testing", "Good", "positive")]
    assert ("mine/testing", "no text", 1) in {(r.key, r.reason, r.number) for r in rejects}
    with pytest.raises(UserError):
        table_from(tmp_path / "b", {"testing.parquet": csv}, format="parquet")
    rows, _ = table_from(
        tmp_path / "c", {"testing.csv": csv, "tuning.csv": csv}, tuning={"texts": "y"}
    )
    assert rows == [("testing", "Awful", "negative"), ("testing", "Fine, really", "positive")]


def test_build_draws_a_share_for_tuning(tmp_path):
    numbers = range(1000)
    lines = ["stars,review", *(f"{1 + 4 * (n % 2)},text {n}" for n in numbers), ""]
    rows, _ = table_from(
        tmp_path / "a", {"testing.csv": "\n".join(lines).encode()}, tuning_share=0.3
    )
    tuning = {text for split, text, _ in rows if split == "tuning"}
    assert len(rows) == 1000
    assert 250 < len(tuning) < 350
    # a text stays where it is whatever others there are
    fewer = "\n".join([*lines[:500], ""]).encode()
    rows, _ = table_from(tmp_path / "b", {"testing.csv": fewer}, tuning_share=0.3)
    again = {text for split, text, _ in rows if split == "tuning"}
    assert again == tuning & {text for _, text, _ in rows}


@building.reads("tweets/sentiment")
def test_build_real_tweets_have_the_published_counts(tmp_path):
    folder = tmp_path / "real"
    snapshot(folder, [("x", 1)], [("x", 1)], redistribute=False)
    for split, name in (("tuning", "val"), ("testing", "test")):
        for kind in ("text", "labels"):
            shutil.copy(REAL / f"{name}_{kind}.txt", folder / f"en/mine/{split}_{kind}.txt")
    request = {"corpora": {"en": [CORPUS]}}
    manifest = Snapshot(folder, {"source": "labelled_texts", "request": request})
    rows, rejects = building.parted(labelled_texts.build(manifest, ENGLISH))
    rows = [row.values for row in rows]
    assert sum(row["split"] == 0 for row in rows) == 2000  # TweetEval, Table 1: 2,000 and 12,284
    refused = sum(reject.number for reject in rejects)
    assert len(rows) + refused == 2000 + 12284
    assert refused <= 5
    assert not [row["text"] for row in rows if r"\u20" in row["text"] or "&amp;" in row["text"]]
    assert len({row["text"] for row in rows}) == len(rows)
