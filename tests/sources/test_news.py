from __future__ import annotations

import json
from pathlib import Path

import pytest
from articles import FILES, almanac
from pydantic import ValidationError
from samples import DAY, POLITE, SAMPLES, files, make_news, news_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.outlets import fetch as news
from sources.misbehaving import always, at_first, cut, half, misbehaving, says, status

KEPT = SAMPLES / "news" / DAY
REAL = Path(__file__).parents[3] / "shared/data/news"


def contents(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {name: path.read_bytes() for name, path in found.items()}


def texts(folder: Path) -> dict[str, bytes]:
    return {name: body for name, body in contents(folder).items() if name != MANIFEST}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("news")
    for name, write in FILES.items():
        (folder / name).write_bytes(write())
    with files(folder) as found:
        yield found


def test_the_sample_snapshot_is_what_the_client_makes_of_the_written_articles(tmp_path):
    make_news(tmp_path)
    assert contents(tmp_path / "news" / DAY) == contents(KEPT)
    Snapshot.open(tmp_path / "news" / DAY)


def test_an_interrupted_fetch_continues_with_the_file_that_is_missing(address, tmp_path):
    into = tmp_path / DAY
    tired = True
    with misbehaving(address, lambda n, body: status(403) if tired and n >= 2 else None) as server:
        with pytest.raises(Problem, match=server.address):
            news.fetch(news_params(server.address), POLITE, into)
        assert not (into / MANIFEST).exists()
        tired, number = False, len(server.asked)
        news.fetch(news_params(server.address), POLITE, into)
    assert [request.path for request in server.asked[number:]] == ["/almanac.jsonl"]
    assert texts(into) == texts(KEPT)


@pytest.mark.parametrize("behaviour", [cut, status(429), status(500)])
def test_a_failure_that_passes_leaves_no_trace(address, tmp_path, behaviour):
    with misbehaving(address, at_first(2, behaviour)) as server:
        news.fetch(news_params(server.address), POLITE, tmp_path / DAY)
    assert texts(tmp_path / DAY) == texts(KEPT)


@pytest.mark.parametrize(
    ("behaviour", "wrong"),
    [
        (half, "cut short"),
        (says(b"<!DOCTYPE html>\n<p>Moved.</p>\n"), "a web page in place of the file"),
        (says(b'{"id": "1"}\n'), "no column 'about'"),
        (says(b"\n"), "no article in it"),
    ],
    ids=["half", "HTML", "columns", "empty"],
)
def test_what_is_no_file_of_articles_is_refused_with_its_address(
    address, tmp_path, behaviour, wrong
):
    with misbehaving(address, always(behaviour)) as server:
        with pytest.raises(Problem, match=wrong) as caught:
            news.fetch(news_params(server.address), POLITE, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/herald.jsonl: ")
    assert texts(tmp_path / DAY).keys() == {".request.json"}


def test_the_manifest_marks_texts_that_must_not_be_published(address, tmp_path):
    changed = {"licence": "the outlets'", "redistribute": False}
    news.fetch(news_params(address, **changed), POLITE, tmp_path / DAY)
    facts = json.loads((tmp_path / DAY / MANIFEST).read_text("utf-8"))
    assert facts["licence"].startswith("almanac: the outlets' (rows not to be published); herald")
    assert facts["counts"]["en/almanac"] == almanac().count(b"\n")


def test_texts_are_not_to_be_published_unless_a_corpus_says_so(address):
    entry = news_params(address).corpora["en"][0].model_dump(exclude={"redistribute"})
    assert news.Params(corpora={"en": [entry]}).corpora["en"][0].redistribute is False


def test_corpora_that_cannot_be_kept_apart_and_bad_addresses_are_refused(address):
    entry = news_params(address).model_dump()["corpora"]["en"][0]
    with pytest.raises(ValidationError, match="each under a name of its own"):
        news.Params(corpora={"en": [entry, entry]})
    with pytest.raises(ValidationError, match="is no http address"):
        news.Params(corpora={"en": [entry | {"address": "ftp.example.org/a"}]})


def test_a_file_of_ones_own_is_copied_byte_for_byte_and_checked(address, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    own = Path("mine.jsonl")
    own.write_bytes(FILES["herald.jsonl"]())
    entry = news_params(address).model_dump()["corpora"]["en"][0]
    params = news.Params(corpora={"en": [entry | {"address": "./mine.jsonl"}]})
    news.fetch(params, POLITE, tmp_path / DAY)
    assert (tmp_path / DAY / "en/herald.jsonl").read_bytes() == own.read_bytes()
    own.write_bytes(own.read_bytes()[:-9])
    with pytest.raises(Problem, match=r"^mine\.jsonl: cut short"):
        news.fetch(params, POLITE, tmp_path / "b")
    own.unlink()
    with pytest.raises(Problem, match="no such file"):
        news.fetch(params, POLITE, tmp_path / "b")


@pytest.mark.shared
def test_the_real_articles_come_whole_over_the_network(tmp_path):
    if not REAL.is_dir():
        pytest.skip("needs ../shared/data/news")
    columns = {"outlet": "outlet", "text": "text", "leaning": "leaning", "date": "date"}
    entry = {"name": "allsides", "format": "parquet", "columns": columns, "licence": "theirs"}
    with files(REAL) as at:
        address = f"{at}/allsides_articles.parquet"
        corpus = entry | {"address": address, "citation": "Baly et al. (2020)"}
        news.fetch(news.Params(corpora={"en": [corpus]}), POLITE, tmp_path / DAY)
    whole = Snapshot.open(tmp_path / DAY)
    assert whole.manifest["counts"] == {"en/allsides": 37_554}
    assert (tmp_path / DAY / "en/allsides.parquet").stat().st_size > 70_000_000
