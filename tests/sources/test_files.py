"""What holds of every client of published files, whatever the files are."""

import importlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import articles
import hostile
import pytest
import samples
from samples import DAY, POLITE, SAMPLES, files

from plumbline.builders import client_of
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.fetch.http import Reading
from sources.misbehaving import always, at_first, cut, half, misbehaving, status, web_page


def statements_params(address: str):
    own = samples.statements_params().model_dump()["questionnaires"]
    return samples.statements_params(
        **{name: one | {"file": f"{address}/{Path(one['file']).name}"} for name, one in own.items()}
    )


def corpus(**changes):
    """Declare the corpus of targets, changed."""
    return samples.targets_params(samples.targets_params().corpora[0].model_dump() | changes)


class Client(NamedTuple):
    params: Callable[[str], Any]  # of the address, or the folder, that the files are at
    whole: bool = True  # half of a file is told by what it holds
    local: bool = False  # a file of the checkout will do
    served: str = ""  # folder of the sample that is served as it is


CLIENTS = {
    "downstream": Client(samples.downstream_params, local=True),
    "emotions": Client(samples.emotions_params),
    "labelled_texts": Client(samples.labelled_texts_params),
    "lexica": Client(samples.lexica_params, whole=False, local=True),
    "names": Client(lambda at: samples.names_params(f"{at}/common.csv"), False, True, "lists"),
    "news": Client(samples.news_params, local=True),
    "social_groups": Client(lambda at: samples.social_groups_params(en=f"{at}/en.csv"), local=True),
    "statements": Client(statements_params, local=True),
    "supersenses": Client(samples.supersenses_params),
    "survey": Client(samples.survey_params, local=True),
    "targets": Client(
        lambda at: corpus(parts={"test": f"{at}/test.tsv"}),
        False,
        True,
        served="sentiment-en/tweets",
    ),
    "ud": Client(samples.ud_params),
}
every = pytest.mark.parametrize("source", CLIENTS)
# one of a file, one of an archive, one of many files: they share what is tested of them
some = pytest.mark.parametrize("source", ["news", "emotions", "ud"])


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a snapshot but its manifest."""
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}
    return {n: p.read_bytes() for n, p in found.items() if n not in (MANIFEST, ".request.json")}


def fetch(source: str, address: str, into: Path) -> None:
    client = importlib.import_module(client_of(source))
    client.fetch(CLIENTS[source].params(address), POLITE, into)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders that are served: of the samples, or written as the samples were."""
    found = {name: SAMPLES / name / DAY / client.served for name, client in CLIENTS.items()}
    for name in ("downstream", "news", "emotions"):
        found[name] = tmp_path_factory.mktemp(name)
    bodies = {"hate.csv": hostile.hate_file()} | hostile.claims_files()
    for name, body in bodies.items():
        (found["downstream"] / name).write_bytes(body)
    for name, write in articles.FILES.items():
        (found["news"] / name).write_bytes(write())
    packed = samples.archive(en=(SAMPLES / "emotions" / DAY / "en/emolex.txt").read_bytes())
    (found["emotions"] / "lexicon.zip").write_bytes(packed)
    return found


@pytest.fixture(scope="module")
def addresses(folders):
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield {name: stack.enter_context(files(folder)) for name, folder in folders.items()}


def manifest(folder: Path) -> dict:
    """Return a manifest; samples of earlier versions have a format under another name."""
    text = (folder / MANIFEST).read_text("utf-8").replace('"layout"', '"format"')
    return json.loads(text)


@pytest.mark.slow
@pytest.mark.parametrize("source", [*CLIENTS, "autocomplete"])
def test_fetch_makes_the_samples_in_git(made, source):
    for kept in (SAMPLES / source).iterdir():
        folder = made / source / kept.name
        assert contents(folder) == contents(kept)
        assert manifest(folder) == manifest(kept)
        Snapshot.open(folder)


@every
def test_fetch_continues_with_missing_files(addresses, tmp_path, source):
    into, tired, most = tmp_path / DAY, False, 0
    script = lambda n, body: status(403) if tired and n >= most else None  # noqa: E731
    with misbehaving(addresses[source], script) as server:
        fetch(source, server.address, tmp_path / "whole" / DAY)
        number = len(server.asked)
        tired, most = True, number + number // 2
        with pytest.raises(UserError):
            fetch(source, server.address, into)
        assert not (into / MANIFEST).exists()
        with pytest.raises(UserError):
            Snapshot.open(into)
        have, before, tired = len(contents(into)), len(server.asked), False
        fetch(source, server.address, into)
        assert len(server.asked) - before == number - have
    assert contents(into) == contents(SAMPLES / source / DAY)
    Snapshot.open(into)


@some
@pytest.mark.parametrize("behaviour", [cut, status(503)], ids=["cut", "503"])
def test_fetch_retries_passing_failures(addresses, tmp_path, source, behaviour):
    with misbehaving(addresses[source], at_first(2, behaviour)) as server:
        fetch(source, server.address, tmp_path / DAY)
    assert contents(tmp_path / DAY) == contents(SAMPLES / source / DAY)


@every
@pytest.mark.parametrize("behaviour", [web_page, half])
def test_fetch_refuses_web_pages_and_half_files(addresses, tmp_path, source, behaviour):
    if behaviour is half and not CLIENTS[source].whole:
        pytest.skip("half of such a file is such a file")
    with misbehaving(addresses[source], always(behaviour)) as server:
        with pytest.raises(UserError) as caught:
            fetch(source, server.address, tmp_path / DAY)
        assert str(caught.value).startswith(f"{server.address}/")
    assert contents(tmp_path / DAY) == {}
    assert not (tmp_path / DAY / MANIFEST).exists()


@some
def test_fetch_refuses_other_params_and_replaces_edited_files(addresses, tmp_path, source):
    into = tmp_path / DAY
    fetch(source, addresses[source], into)
    before = contents(into)
    with pytest.raises(UserError):
        fetch(source, addresses[source].replace("127.0.0.1", "localhost"), into)
    (into / max(before)).write_bytes(b"edited")
    (into / ".writing-x").write_bytes(b"of a process that was killed")
    fetch(source, addresses[source], into)
    assert contents(into) == before


@every
def test_fetch_from_a_mirror(folders, tmp_path, source):
    mirror, into = tmp_path / "mirror", tmp_path / DAY
    shutil.copytree(folders[source], mirror / "files.invalid" / "a b")
    nobody = Reading(mirror=mirror)
    module = importlib.import_module(client_of(source))
    params = CLIENTS[source].params("https://files.invalid/a%20b")
    away = max(p for p in mirror.rglob("*") if p.is_file() and p.name != MANIFEST)
    away.rename(tmp_path / "away")
    with pytest.raises(UserError) as caught:
        module.fetch(params, nobody, into)
    named = (
        "https://files.invalid/a%20b/" + away.relative_to(mirror / "files.invalid/a b").as_posix()
    )
    assert str(caught.value).startswith(f"{named}: ")
    assert f" {mirror}/files.invalid/a%20b/" in str(caught.value)
    assert not (into / MANIFEST).exists()
    (tmp_path / "away").rename(away)
    module.fetch(params, nobody, into)
    assert contents(into) == contents(SAMPLES / source / DAY)
    found = Snapshot.open(into).manifest
    assert found["request"]["mirror"] is True
    told = (into / MANIFEST).read_text("utf-8")
    assert str(tmp_path) not in told
    assert "https://files.invalid/a%20b" in told
    with pytest.raises(UserError):
        module.fetch(params, POLITE, into)


@every
def test_fetch_copies_local_files(folders, tmp_path, source):
    if not CLIENTS[source].local:
        with pytest.raises(ValueError):
            CLIENTS[source].params(str(folders[source]))
        return
    fetch(source, str(folders[source]), tmp_path / "a" / DAY)
    assert contents(tmp_path / "a" / DAY) == contents(SAMPLES / source / DAY)
    with pytest.raises(UserError):
        fetch(source, str(tmp_path), tmp_path / "b" / DAY)
    assert not (tmp_path / "b" / DAY / MANIFEST).exists()
