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
from samples import DAY, POLITE, SAMPLES, TOP

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
    own = {"file": "answers.csv", "scale": "x", "simulated": False, "licence": "CC-BY-4.0"}
    return survey.Params(surveys={"mine": own | {"source": "us"} | changes})


def test_survey_fetch_replaces_respondent_ids():
    names = [f"5f3c2b1a09{n:02d}" for n in range(20)]
    rows = [f"{name},female,no,{1 + n % 5},\n" for n, name in enumerate(names)]
    Path("answers.csv").write_text(HEAD + "".join(rows), "utf-8")
    for day in ("a", "b"):
        survey.fetch(answers(), POLITE, Path("raw", day))
    kept = Path("raw/a/mine.csv").read_text("utf-8")
    assert kept == Path("raw/b/mine.csv").read_text("utf-8")
    assert not any(name.encode() in every_byte("raw") for name in names)
    head, *lines = kept.splitlines()
    assert head + "\n" == HEAD
    assert Counter(line.partition(",")[2] for line in lines) == Counter(
        row.strip().partition(",")[2] for row in rows
    )
    assert [line.partition(",")[0] for line in lines] == sorted(map(private.pseudonym, names))
    private.SALT.unlink()
    survey.fetch(answers(), POLITE, Path("raw/c"))
    assert set(kept.splitlines()) & set(Path("raw/c/mine.csv").read_text("utf-8").split()) == {
        head
    }, "another salt, other numbers"


def test_survey_fetch_errors_name_no_cell():
    for line, simulated in (("5f3c2b,female,no,1,2", True), ("5f3c2b,me@b.org,no,1,2", False)):
        Path("answers.csv").write_text(f"{HEAD}{line}\n", "utf-8")
        with pytest.raises(UserError) as told:
            survey.fetch(answers(simulated=simulated), POLITE, Path("raw", str(simulated)))
        assert "5f3c2b" not in str(told.value)
        assert "me@" not in str(told.value)
        assert b"5f3c2b" not in every_byte("raw")


def test_salt_is_private_and_a_damaged_one_is_an_error():
    private.pseudonym("somebody")
    assert private.SALT.stat().st_mode & 0o777 == 0o600
    private.SALT.write_text("short", "ascii")
    with pytest.raises(UserError):
        private.pseudonym("somebody")


@pytest.mark.parametrize("program", ["git", "dvc"])
def test_private_folder_is_ignored(program):
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


def test_posts_ids_are_pseudonyms():
    first = cut("Text.")
    assert "abc12" not in json.dumps(first)
    assert first["id"] == f"t1_{private.pseudonym('abc12')}"
    assert cut("Text.", id="t1_abc12")["id"] == first["id"]
    assert kept(first | {"account": ""}) == first


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (r"as u/foo\_bar said", "as u/[user] said"),
        ("reddit.com%2Fuser%2Ffoo_bar%2Fx", "reddit.com%2Fuser%2F[user]%2Fx"),
        ("user&#47;foo&#95;bar", "user&#47;[user]"),
        ("https://x.com/foo_bar/status/1", "https://x.com/[user]/status/1"),
        (r"foo\_bar+x@mail.example.org", "[e-mail]"),
        ("call 555-123-4567 or (555) 123-4567", "call [telephone] or [telephone]"),
        ("+49 30 1234567, 0171 2345678", "[telephone], [telephone]"),
        ("u/\u200bfoo\u200b_bar, u⁄foo_bar", "u/\u200b[user], u⁄[user]"),
        ("reddit.com/r/One/comments/abc12/some_title/def34/", "reddit.com/r/One/comments/[post]/"),
        ("write foo_bar at example dot org", "write [e-mail]"),
    ],
)  # fmt: skip
def test_masked_handles_addresses_and_numbers(text, left):
    assert cut(text)["body"] == left
    assert masked(left) == left, "and stays so"


@pytest.mark.parametrize(
    "text",
    [
        "r/politics and you/me",
        "2016-11-08, 2016-2020, 08.11.2016 10:30",
        "1,000,000,000 or 1 000 000 000 people, $1000000000",
        "meet @ 5, the menu/entry",
        "11/08/2016, 01/02/2016-03/04/2016, 12/2016/2020, and/or 24/7/365",
        "seen at a dot; comments/replies: 1/2",
    ],
)
def test_masked_keeps_other_text(text):
    assert masked(text) == text


def listed(*lines, name="removed.txt"):
    private.FOLDER.mkdir(exist_ok=True)
    (private.FOLDER / name).write_text("\n".join(lines), "utf-8")


def rows(*values):
    return [Row("en", {"qid": qid, "ids": list(ids), "text": text}) for qid, ids, text in values]


def test_without_counts_removed_rows_and_names_nobody():
    texts = [sha256(text).hexdigest().upper() for text in (b"three", b"a text")]
    listed("Q2  # asked on a day", *texts, "t3_x, a remark", "")
    stream = [
        *rows(("Q1", ["a"], "one"), ("Q2", [], "two"), ("Q3", [], "three"), ("Q4", ["r/t3_x"], "")),
        Reject("*", "Q2", "no label"),
        Reject("*", "Q5", "duplicate", "left t3_x; Q6", 2),
        Reject("*", "Q6", "duplicate", "a text"),
        Reject("en", "Q7", "no label"),
        *rows(("Q20", ["t3_xy"], "it is Q2")),
    ]
    left = list(private.without(stream, private.removed()))
    assert [item.values["qid"] for item in left if isinstance(item, Row)] == ["Q1", "Q20"]
    assert [item for item in left if isinstance(item, Reject)] == [
        Reject("en", "Q7", "no label"),
        Reject("*", "", private.REMOVED, number=4),
        Reject("en", "", private.REMOVED, number=3),
    ]


def test_removed_matches_pseudonym_of_listed_id():
    listed("5f3c2b")
    assert not private.removed().has(private.pseudonym("else"))
    assert private.removed().has(private.pseudonym("5f3c2b"))


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("politicians", "qid"),
        ("survey", "respondent"),
        ("corpora", "id"),
        ("corpora", "text"),
        ("labelled_texts", "text"),
    ],
)
def test_build_leaves_out_removed_rows(sample, linking, tmp_path, name, column):
    whole.write(tmp_path)
    linking(tmp_path)
    frames = {p: pl.read_parquet(p) for p in sorted(sample(name).glob("*.parquet"))}
    before = {p.stem: f for p, f in frames.items() if p.name != parquet.REJECTS}
    one = next(iter(before.values()))[column][0]
    entry = sha256(one.encode()).hexdigest() if column == "text" else one.rpartition("/")[2]
    listed(entry)
    build(name, building.builder(name))
    own = parquet.DATASETS / name
    if column != "text":
        cells = [pl.read_parquet(p).to_dicts() for p in own.glob("*.parquet")]
        assert not re.search(rf'[/"]{entry}"', json.dumps(cells, default=str))
    after = {c: pl.read_parquet(own / f"{c}.parquet") for c in before}
    if name != "corpora":  # whose draw is filled up
        gone = sum((f[column] == one).sum() for f in before.values())
        assert sum(map(len, before.values())) - sum(map(len, after.values())) == gone > 0
    assert private.held(own, private.removed()) == 0
    rejects = pl.read_parquet(own / parquet.REJECTS).filter(pl.col("reason") == private.REMOVED)
    assert rejects["number"].sum() > 0
    assert set(rejects["key"]) | set(rejects["detail"]) == {""}
    assert "rejects" not in building.failing(name, own)


def test_removed_command_lists_stages(sample, linking, tmp_path):
    whole.write(tmp_path)
    linking(tmp_path)
    own = parquet.DATASETS / "politicians"
    own.parent.mkdir(parents=True)
    own.symlink_to(sample("politicians"))

    def stages():
        command = [sys.executable, "-m", "plumbline.builders", "removed"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert stages() == []
    listed(pl.read_parquet(own / "en.parquet")["qid"][0])
    assert stages() == ["build@politicians"]


FACTS = dict.fromkeys(("source", "address", "retrieved", "licence", "citation"), "x")


def test_track_adds_only_files_of_the_manifest(monkeypatch):
    folder = Path("data/raw/reddit", DAY)
    folder.mkdir(parents=True)
    (folder / "posts.jsonl.zst").write_bytes(b"posts")
    write_manifest(folder, FACTS | {"request": {"x": 1}, "counts": {}})
    (folder / ".dump-posts.zst").write_bytes(b"with authors")
    (folder / ".part").mkdir()
    (folder / ".part/x").write_bytes(b"with authors")
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


def test_sample_snapshots_hold_files_of_their_manifests():
    manifests = list(SAMPLES.glob(f"*/*/{MANIFEST}"))
    assert manifests
    for path in manifests:
        named = {*json.loads(path.read_text("utf-8"))["files"], MANIFEST}
        there = {p.relative_to(path.parent).as_posix() for p in path.parent.rglob("*")}
        assert {n for n in there if (path.parent / n).is_file()} == named, path
