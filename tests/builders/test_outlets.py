from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import building
import polars as pl
import pytest
import yaml
from samples import DAY

from plumbline.builders.core.snapshot import Snapshot, write_manifest
from plumbline.builders.datasets.outlets import build as outlets
from plumbline.builders.readers.articles import LEANINGS

PAGE = Path(__file__).parents[2] / "docs/datasets/outlets.md"
REAL = building.REAL / "news/allsides_articles.parquet"
COLUMNS = {"outlet": "outlet", "text": "text", "leaning": "leaning", "date": "date"}
COLUMNS |= {"topic": "topic", "article": "id"}
CORPUS = {
    "name": "mine",
    "address": "x",
    "format": "jsonl",
    "columns": COLUMNS,
    "licence": "theirs",
    "citation": "test",
}
PARAMS = {
    "version": "0.1.0",
    "snapshot": "x",
    "languages": ["en"],
    "outlets": {"one": ["One", "One Online"], "two": ["Two"]},
    "control": {"topics": ["bread"]},
    "words_min": 3,
    "articles": 100,
}


def entry(number: int, outlet: str = "One", **changes) -> dict[str, str]:
    text = f"This is article {number} of {outlet}."
    facts = {"id": str(number), "outlet": outlet, "topic": "politics", "text": text}
    return facts | {"leaning": "left", "date": "2020-01-02"} | changes


BASE = [entry(900), entry(901, "Two"), entry(902, "Three", topic="bread")]


def snapshot(folder: Path, entries: list[dict[str, str]], **changes) -> Snapshot:
    files = {"en/mine.jsonl": "".join(json.dumps(e) + "\n" for e in entries)}
    request = {"corpora": {"en": [CORPUS | changes]}}
    return building.snapshot(folder, "news", files, request, "2020-06-01")


def built_from(folder: Path, entries, params=None, **changes):
    chosen = outlets.Params(**(PARAMS | (params or {})))
    found = outlets.build(snapshot(folder, [*BASE, *entries], **changes), chosen)
    rows, rejects = building.parted(found)
    return [row.values for row in rows], {(r.key, r.reason): r.number for r in rejects}


def ids(rows, outlet: str | None = None) -> list[str]:
    found = [row["article"] for row in rows if outlet in (None, row["outlet"])]
    return [name.removeprefix("mine/") for name in found]


def test_build_outlets_and_control(tmp_path):
    rows, rejects = built_from(
        tmp_path,
        [
            entry(1, "One Online"),
            entry(2, "Two", topic="bread"),  # an outlet's own, not the control's
            entry(3, "Four", topic="bread", leaning="right"),
            entry(4, "Four"),
        ],
    )
    names = {outlet: ids(rows, outlet) for outlet in ("control", "one", "two")}
    assert names == {"control": ["3", "902"], "one": ["1", "900"], "two": ["2", "901"]}
    assert [LEANINGS[row["leaning"]] for row in rows[:2]] == ["right", "left"]
    assert rejects == {("Four", "neither of an outlet nor of the control"): 1}
    assert not any(row["redistributable"] for row in rows)


def test_every_article_ends_in_a_row_or_in_a_counted_reject(tmp_path):
    notice = "Please do subscribe to our letters."
    same = "One text that two outlets have."
    entries = [
        entry(1, text=""),
        entry(2, text=" \n\t\n"),
        entry(3, text="Too short"),
        entry(4, text="The same text here."),
        entry(5, text="The  same text\there.\r\n"),
        entry(6, text=same),
        entry(7, "Two", text=same),
        entry(8),
        entry(8, text="Another text of the same id."),
        entry(9, "Elsewhere"),
        *(entry(n, text=f"Article {n} says something.\n\n{notice}") for n in range(20, 25)),
        entry(25, text=f"{notice}\nPhoto: One"),
        entry(26, "Two", text=f"Elsewhere it is no boilerplate.\n{notice}"),
    ]
    rows, rejects = built_from(tmp_path, entries)
    assert rejects == {
        ("one", "no text"): 2,
        ("one", "too short"): 1,
        ("one", "the same text again"): 1,
        ("one", "the same text in several outlets"): 1,
        ("two", "the same text in several outlets"): 1,
        ("one", "the same id again"): 1,
        ("Elsewhere", "neither of an outlet nor of the control"): 1,
        ("one", "hardly anything but boilerplate"): 1,
    }
    assert len(rows) + sum(rejects.values()) == len(BASE) + len(entries)
    by = dict(zip(ids(rows), rows, strict=True))
    assert by["8"]["text"] == "This is article 8 of One."
    assert {by[str(n)]["text"] for n in range(20, 25)} == {
        f"Article {n} says something." for n in range(20, 25)
    }
    assert by["26"]["text"] == f"Elsewhere it is no boilerplate.\n{notice}"


def test_build_draw_depends_on_the_seed_alone(tmp_path):
    entries = [entry(n) for n in range(1, 60)]
    few, rejects = built_from(tmp_path / "a", entries, {"articles": 10})
    again, _ = built_from(tmp_path / "b", entries[::-1], {"articles": 10})
    more, _ = built_from(tmp_path / "c", entries, {"articles": 30})
    other, _ = built_from(tmp_path / "d", entries, {"articles": 10, "seed": 2})
    assert few == again
    assert rejects == {("one", "not drawn"): 50}
    assert len(ids(few, "one")) == 10
    assert set(ids(few)) < set(ids(more))
    assert ids(few, "one") != ids(other, "one")
    assert ids(few, "two") == ids(other, "two") == ["901"]


@building.reads("news/allsides_articles.parquet")
@pytest.mark.slow
def test_build_real_articles_of_the_documented_outlets(tmp_path):
    page = PAGE.read_text("utf-8")
    own = page.partition("### The AllSides articles")[2]
    given = yaml.safe_load(own.partition("```yaml\n")[2].partition("```")[0])["outlets"]
    (tmp_path / "en").mkdir()
    (tmp_path / "en/mine.parquet").symlink_to(REAL)
    facts = dict.fromkeys(("address", "licence", "citation"), "test") | {"retrieved": DAY}
    corpus = CORPUS | {"format": "parquet", "dates": ["%Y-%m-%d", "%m/%d/%y"]}
    request = {"corpora": {"en": [corpus]}}
    write_manifest(tmp_path, facts | {"source": "news", "request": request, "counts": {}})
    params = outlets.Params(**PARAMS | given | {"articles": 1000, "words_min": 20})
    rows, rejects = building.parted(outlets.build(Snapshot.open(tmp_path), params))
    rows = pl.DataFrame([row.values for row in rows], infer_schema_length=None)
    assert len(rows) + sum(i.number for i in rejects) == 37_554
    sizes = Counter(rows["outlet"].to_list())
    sizes.update({i.key: i.number for i in rejects if i.reason == "not drawn"})
    raw = Counter(pl.read_parquet(REAL, columns=["outlet"])["outlet"].to_list())
    for outlet, names in given["outlets"].items():
        assert 0.5 <= sizes[outlet] / sum(raw[name] for name in names) <= 1, outlet
    assert not rows["text"].str.contains("Slideshow \\(2 Images\\)").any()
