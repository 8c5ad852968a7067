"""People: salted numbers in place of ids, posts without what leads to anybody, the removal list."""

import json
import re
import subprocess
import sys
from collections import Counter
from hashlib import sha256
from pathlib import Path

import building
import polars as pl
import pytest
import whole
import yaml
from samples import DAY, POLITE, TOP

from plumbline.builders.core import parquet, private
from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.parquet import Reject, Row
from plumbline.builders.core.snapshot import MANIFEST, write_manifest
from plumbline.builders.datasets.corpora import reddit_dump
from plumbline.builders.datasets.corpora.people import masked
from plumbline.builders.datasets.survey import fetch as survey
from plumbline.builders.dvc import track

HEAD = "respondent,gender,infected,a,b\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def every_byte(folder) -> bytes:
    return b"".join(path.read_bytes() for path in Path(folder).rglob("*") if path.is_file())


def answers(**changes) -> survey.Params:
    own = {"file": "answers.csv", "scale": "x", "items": ["a", "b"], "licence": "CC-BY-4.0"}
    own |= {"source": "us", "simulated": False}
    return survey.Params(surveys={"mine": own | changes})


def test_fetch_survey_pseudonyms():
    names = [f"5f3c2b1a09{n:02d}" for n in range(20)]
    rows = [f"{name},female,no,{1 + n % 5},\n" for n, name in enumerate(names)]
    Path("answers.csv").write_text(HEAD + "".join(rows), "utf-8")
    survey.fetch(answers(), POLITE, Path("raw/a"))
    text = Path("raw/a/mine.csv").read_text("utf-8")
    assert not any(name.encode() in every_byte("raw") for name in names)
    head, *lines = text.splitlines()
    assert head + "\n" == HEAD
    assert Counter(line.partition(",")[2] for line in lines) == Counter(
        row.strip().partition(",")[2] for row in rows
    )
    assert [line.partition(",")[0] for line in lines] == sorted(map(private.pseudonym, names))
    private.SALT.unlink()
    survey.fetch(answers(), POLITE, Path("raw/b"))
    other = Path("raw/b/mine.csv").read_text("utf-8")
    assert {*text.split()} & {*other.split()} == {head}, "another salt, other numbers"


def test_salt_permissions_and_damage():
    private.pseudonym("somebody")
    assert private.SALT.stat().st_mode & 0o777 == 0o600
    private.SALT.write_text("short", "ascii")
    with pytest.raises(UserError):
        private.pseudonym("somebody")


@pytest.mark.parametrize("program", ["git", "dvc"])
def test_private_files_are_ignored_by_git_and_dvc(program):
    files = {"private/salt", "private/removed.txt"}
    asked = [sys.executable, "-m", "dvc"] if program == "dvc" else ["git"]
    asked += ["check-ignore", "params.yaml", *files]
    done = subprocess.run(asked, cwd=TOP, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == files


def kept(record):
    """Return what is kept of a post."""
    line, bots = json.dumps(record).encode(), reddit_dump.Bots()
    (found,) = reddit_dump.posts(iter([line]), {"one": "One"}, bots, Counter(), private.pseudonym)
    return json.loads(found)


def cut(text, **changes):
    return kept({"id": "abc12", "subreddit": "One", "author": "somebody", "body": text} | changes)


@pytest.mark.parametrize(
    ("text", "left"),
    [(r"as u/foo\_bar said", "as u/[user] said"),
("u%252Ffoo%255Fbar", "u%252F[user]"),
("ask @foo_bar!", "ask @[user]!"),
("https://x.com/foo_bar/status/1", "https://x.com/[user]/status/1"),
(r"foo\_bar+x@mail.example.org", "[e-mail]"),
("foo [at] example [dot] org", "[e-mail]"),
("call 555-123-4567 or (555) 123-4567", "call [telephone] or [telephone]"),
("tel:5551234", "[telephone]"),
("reddit.com/r/One/comments/abc12/some_title/def34/", "reddit.com/r/One/comments/[post]/"),
("https://redd.it/abc12!", "https://redd.it/[post]!"),
("twitter.com/#!/foo_bar", "twitter.com/#!/[user]"),
("bsky.app/profile/foo.bsky.social", "bsky.app/profile/[user]"),
("write foo_bar at example dot org", "write [e-mail]"),
("٠١٧١٢٣٤٥٦٧٨", "[telephone]")],
)  # fmt: skip
def test_masked_identifiers(text, left):
    assert cut(text)["body"] == left
    assert masked(left) == left, "and stays so"


@pytest.mark.parametrize(
    "text",
    [
        "r/politics and you/me",
        "2016-11-08, 2016-2020, 08.11.2016 10:30",
        "ISBN 978-3-16-148410-0",
        "youtube.com/watch?v=1",
        "bus at [noon] (at home), r/u is one",
    ],
)
def test_masked_keeps_other_text(text):
    assert masked(text) == text


def listed(*lines, name="removed.txt"):
    private.FOLDER.mkdir(exist_ok=True)
    (private.FOLDER / name).write_text("\n".join(lines), "utf-8")


def rows(*values):
    return [Row("en", {"qid": qid, "ids": list(ids), "text": text}) for qid, ids, text in values]


def test_without_drops_listed_rows():
    texts = [sha256(text).hexdigest().upper() for text in (b"three", b"a text")]
    listed("Q2  # asked on a day", *texts, "t3_x, a remark", "")
    stream = [
        *rows(("Q1", ["a"], "one"), ("Q2", [], "two"), ("Q3", [], "three"), ("Q4", ["r/t3_x"], "")),
        Reject("*", "Q2", "no label"),
        Reject("*", "Q5", "duplicate", "left t3_x; Q6", 2),
        Reject("en", "Q7", "no label"),
        *rows(("Q20", ["t3_xy"], "it is Q2")),
    ]
    left = list(private.without(stream, private.removed()))
    assert [item.values["qid"] for item in left if isinstance(item, Row)] == ["Q1", "Q20"]
    assert [item for item in left if isinstance(item, Reject)] == [
        Reject("en", "Q7", "no label"),
        Reject("*", "", private.REMOVED, number=3),
        Reject("en", "", private.REMOVED, number=3),
    ]


@pytest.mark.parametrize(
    ("entry", "cell", "other"),
    [
        ("t3_abc12", "reddit/t3_{}", "reddit/t1_{}"),
        ("abc12", "reddit/t1_{}", "abc13"),
        ("https://example.org/x", "corpus/https://example.org/x", "corpus/x"),
    ],
)
def test_removed_reads_copied_entries(entry, cell, other):
    hidden = cut("Text.")["id"].removeprefix("t1_")
    listed(entry)
    assert private.removed().has(cell.format(hidden))
    assert not private.removed().has(other.format(hidden))


def test_build_without_a_removed_person(sample, linking, tmp_path):
    whole.write(tmp_path)
    linking(tmp_path)
    before = [pl.read_parquet(p) for p in sorted(sample("politicians").glob("??.parquet"))]
    entry = before[0]["qid"][0]
    listed(entry)
    build("politicians", building.builder("politicians"))
    folder = parquet.DATASETS / "politicians"
    cells = [pl.read_parquet(p).to_dicts() for p in folder.glob("*.parquet")]
    assert not re.search(rf'[/"]{entry}"', json.dumps(cells, default=str))
    after = [pl.read_parquet(p) for p in sorted(folder.glob("??.parquet"))]
    gone = sum((frame["qid"] == entry).sum() for frame in before)
    assert sum(map(len, before)) - sum(map(len, after)) == gone > 0
    assert private.held(folder, private.removed()) == 0
    rejects = pl.read_parquet(folder / parquet.REJECTS).filter(reason=private.REMOVED)
    assert rejects["number"].sum() > 0
    assert set(rejects["key"]) | set(rejects["detail"]) == {""}
    assert "rejects" not in building.failing("politicians", folder)


FACTS = dict.fromkeys(("source", "address", "retrieved", "licence", "citation"), "x")


def test_track_refuses_files_outside_the_manifest(monkeypatch):
    folder = Path("data/raw/reddit", DAY)
    folder.mkdir(parents=True)
    (folder / "posts.jsonl.zst").write_bytes(b"posts")
    write_manifest(folder, FACTS | {"request": {"x": 1}, "counts": {}})
    (folder / ".dump-posts.zst").write_bytes(b"with authors")
    pointer = folder.with_name(f"{DAY}.dvc")
    added = []

    def dvc(*words):
        added.extend(sorted(p.name for p in folder.rglob("*")))
        pointer.write_text("outs: []", "utf-8")

    monkeypatch.setattr(track, "_dvc", dvc)
    track.track(folder)
    assert added == [MANIFEST, "posts.jsonl.zst"]
    assert yaml.safe_load(pointer.read_text("utf-8"))["meta"]["source"] == "x"
    added.clear()
    (folder / "note.txt").write_text("mine", "utf-8")
    with pytest.raises(UserError, match=r"note\.txt"):
        track.track(folder)
    assert not added
