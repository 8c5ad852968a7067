import json
from collections import Counter

import partisans
import pytest
import zstandard
from samples import PARTISAN, POLITE, SAMPLES, files, make_partisans, reddit_params

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.corpora import fetch as reddit
from plumbline.builders.datasets.corpora import reddit_dump
from sources.misbehaving import always, half, misbehaving, says, status, web_page

KEPT = SAMPLES / "reddit" / PARTISAN
NOBODY = reddit_dump.Bots(names=[], pattern="(?!)")
LISTED = {"one": "One", "two": "Two"}


def contents(folder):
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def texts(folder):
    """Return the posts that a snapshot has: all of its files that do not name their address."""
    return {n: b for n, b in contents(folder).items() if n.endswith((".zst", ".csv"))}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reddit")
    (folder / "communities.csv").write_bytes(partisans.listed())
    for name, found in partisans.entries().items():
        (folder / f"{name}.zst").write_bytes(partisans.dump(found))
    with files(folder) as address:
        yield folder, address


def fetch(address, folder, into, **changes):
    params = reddit_params(address, folder / "communities.csv", **changes)
    reddit.fetch(params, POLITE, into, hide=None)


def cut_of(tmp_path, lines, bots=NOBODY, listed=LISTED):
    """Return what is kept of some lines, and the counts."""
    path, count = tmp_path / "dump.zst", Counter()
    path.write_bytes(zstandard.ZstdCompressor().compress(b"".join(lines)))
    found = [
        json.loads(line) for line in reddit_dump.posts(reddit_dump.lines(path), listed, bots, count)
    ]
    return found, count


def line(**changes) -> bytes:
    entry = {"id": "a1", "subreddit": "One", "author": "somebody", "created_utc": 1}
    return json.dumps(entry | {"body": "Text."} | changes).encode() + b"\n"


def test_fetch_makes_the_partisan_samples(tmp_path):
    make_partisans(tmp_path)
    for source in ("news", "reddit"):
        kept = SAMPLES / source / PARTISAN
        assert contents(tmp_path / source / PARTISAN) == contents(kept)
        assert Snapshot.open(kept).manifest["source"] == source


def test_fetch_reddit_drops_authors(served, tmp_path):
    folder, address = served
    authors = {e["author"] for found in partisans.entries().values() for e in found}
    authors -= {"[deleted]"}
    assert len(authors) > 15
    fetch(address, folder, tmp_path / PARTISAN)
    for name in ("comments", "submissions"):
        rows = list(reddit_dump.records(tmp_path / PARTISAN / f"{name}.jsonl.zst"))
        assert rows
        for row in rows:
            assert not any(author in json.dumps(row) for author in authors), row["id"]
            assert set(row) <= {*("id", "subreddit", "created_utc", "account", "body")} | {
                *("title", "selftext")
            }
    beside = {n: b for n, b in contents(tmp_path / PARTISAN).items() if not n.endswith(".zst")}
    assert {"comments.json", MANIFEST} <= beside.keys()
    assert not any(word in b"".join(beside.values()) for word in (b"writer_", b"flair"))


def test_fetch_reddit_continues_with_the_missing_dump(served, tmp_path):
    folder, address = served
    into = tmp_path / PARTISAN
    tired = True
    with misbehaving(address, lambda n, body: status(403) if tired and n else None) as server:
        with pytest.raises(UserError, match=r"submissions.zst"):
            fetch(server.address, folder, into)
        assert not (into / MANIFEST).exists()
        tired, number = False, len(server.asked)
        fetch(server.address, folder, into)
    assert [request.path for request in server.asked[number:]] == ["/submissions.zst"]
    assert texts(into) == texts(KEPT)
    assert not list(into.glob(".*"))


@pytest.mark.parametrize(
    "behaviour",
    [
        half,
        web_page,
        says(zstandard.compress(b"no\n")),
    ],
    ids=["half", "HTML", "no JSON"],
)
def test_fetch_reddit_refuses_other_files(served, tmp_path, behaviour):
    folder, address = served
    with misbehaving(address, always(behaviour)) as server:
        with pytest.raises(UserError) as caught:
            fetch(server.address, folder, tmp_path / PARTISAN)
        assert str(caught.value).startswith(f"{server.address}/comments.zst: ")
        assert "\n" not in str(caught.value)
    left = {p.name for p in (tmp_path / PARTISAN).iterdir()}
    assert not {name for name in left if name.startswith((".dump", ".part"))}
    assert not (tmp_path / PARTISAN / MANIFEST).exists()


def test_lines_reads_windows_of_two_gibibytes(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=10, write_content_size=False)
    frame = bytearray(zstandard.ZstdCompressor(compression_params=parameters).compress(line()))
    assert not frame[4] & 0x20  # not a single segment: byte 5 is the window's (RFC 8878, 3.1.1.1)
    frame[5] = (31 - 10) << 3
    with pytest.raises(zstandard.ZstdError):
        zstandard.ZstdDecompressor().decompressobj().decompress(bytes(frame))
    path = tmp_path / "long.zst"
    path.write_bytes(frame)
    assert list(reddit_dump.lines(path)) == [line().rstrip(b"\n")]


def test_lines_joins_frames(tmp_path):
    whole = b"".join(line(id=str(n), body="a long text " * n) for n in range(500))
    skipped = b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc"
    parts = [zstandard.compress(whole[i : i + 1013]) for i in range(0, len(whole), 1013)]
    path = tmp_path / "frames.zst"
    path.write_bytes(skipped + b"".join(parts))
    assert b"\n".join(reddit_dump.lines(path)) + b"\n" == whole


def test_posts_match_the_community_of_the_line(tmp_path):
    crossed = line(subreddit="Three", crosspost_parent_list=[{"subreddit": "One"}])
    quoted = line(subreddit="Three", body='he wrote {"subreddit":"One"}')
    spelt = line(id="a2").replace(b'"subreddit"', b'"\\u0073ubreddit"')
    spaced = line(id="a3", subreddit="ONE").replace(b": ", b" :  ")
    found, count = cut_of(tmp_path, [crossed, quoted, spelt, spaced, b"\n"])
    assert [row["id"] for row in found] == ["t1_a2", "t1_a3"]
    assert {row["subreddit"] for row in found} == {"One"}
    assert count == {"lines": 4, "kept": 2, "One": 2}


def test_posts_mark_bots_and_deleted_accounts(tmp_path):
    names = ["AutoModerator", "price_bot", "PriceBot", "SUMBOT", "Talbot", "botanist", "[deleted]"]
    lines = [line(id=str(n), author=name) for n, name in enumerate(names)]
    found, _ = cut_of(tmp_path, lines, reddit_dump.Bots())
    assert [row["account"] for row in found] == ["bot"] * 4 + ["", "", "deleted"]
