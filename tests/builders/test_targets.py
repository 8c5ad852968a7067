from __future__ import annotations

from pathlib import Path

import building
import pytest
from samples import DAY, POLITE, targets_params

from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.targets import build as targets
from plumbline.builders.datasets.targets import fetch as client

SHARED = building.REAL / "tweets"
TERMS = {"licence": "CC0-1.0", "citation": "the project", "task": "mood", "language": "en"}


def corpus(**changes) -> dict:
    return {"name": "mine", "format": "tsv", "parts": {"test": "x"}, **TERMS} | changes


def made(folder: Path, *corpora: dict, **changes):
    client.fetch(targets_params(*corpora), POLITE, folder / DAY)
    configs = sorted({f"{c['task']}-{c['language']}" for c in corpora})
    params = targets.Params(version="0.1.0", snapshot="x", **({"configs": configs} | changes))
    rows, rejects = building.parted(targets.build(Snapshot.open(folder / DAY), params))
    return [row.values for row in rows], rejects


def test_build_reads_tsv_with_quotes(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text('\ufeffid\ttweet\tgold\n7\t"A &amp; B\nC"\t2\n9\tcafe\u0301\t0\n', "utf-8")
    columns = {"id": "id", "text": "tweet", "label": "gold"}
    entry = corpus(parts={"test": str(file)}, columns=columns, labels={"2": "joy"})
    rows, rejects = made(tmp_path, entry)
    assert not rejects
    assert [(r["id"], r["text"], r["label"]) for r in rows] == [
        ("mine/test/7", "A & B C", "joy"),
        ("mine/test/9", "café", "0"),
    ]
    assert not any(r["redistributable"] for r in rows)  # unless the user says so


def test_build_counts_a_text_once(tmp_path):
    for part, text in (("test", "a\tx\nb\tx\na\ty\na\tx\n \tx\n"), ("train", "c\tx\n")):
        (tmp_path / f"{part}.tsv").write_text("text\tlabel\n" + text, "utf-8")
    parts = {part: str(tmp_path / f"{part}.tsv") for part in ("test", "train")}
    rows, rejects = made(tmp_path, corpus(parts=parts))
    assert [(r["text"], r["label"]) for r in rows] == [("a", "x"), ("b", "x"), ("c", "x")]
    assert sorted((r.key, r.reason) for r in rejects) == [
        ("mine/test/3", "the same text with another label"),
        ("mine/test/4", "the same text again"),
        ("mine/test/5", "no text"),
    ]


@building.reads("tweets")
@pytest.mark.parametrize(
    ("task", "number", "classes"),
    [
        ("emotion", 1421, {"anger", "joy", "optimism", "sadness"}),
        ("hate", 2970, {"hate", "not-hate"}),
        ("offensive", 860, {"offensive", "not-offensive"}),
        ("sentiment", 12284, {"negative", "neutral", "positive"}),
    ],
)
def test_build_real_tweeteval_counts(task, number, classes, tmp_path):
    entry = corpus(
        format="tweeteval",
        parts={"test": str(SHARED / task / "test_{what}.txt")},
        mapping=str(SHARED / task / "mapping.txt"),
        task=task,
    )
    rows, rejects = made(tmp_path, entry)
    assert len(rows) + sum(r.number for r in rejects) == number
    assert {r["label"] for r in rows} == classes
    assert len(rows) > 0.98 * number
    assert {r.reason for r in rejects} <= {
        "the same text again",
        "the same text with another label",
    }
