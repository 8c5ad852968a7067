"""What may be published, and how open: on small folders written here."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
import yaml
from lib.small_folders import OPEN, checkpoint, make
from pydantic import ValidationError

from plumbline.builders.core.errors import UserError
from plumbline.builders.release import card
from plumbline.builders.release.params import Params
from plumbline.builders.release.terms import locate, release

TOY, OUTPUTS, TABLES = "data/datasets/toy", "data/outputs/probe/model", "data/tables/study"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty project as the working folder."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("publish: {contact: me@example.org}", encoding="utf-8")
    return tmp_path


def refused(named, *acknowledged) -> str:
    with pytest.raises(UserError) as told:
        release(locate(named), acknowledged)
    return str(told.value)


def make_chain(**options) -> None:
    """Write a dataset, outputs of it and a table of these."""
    make(TOY, **options)
    make(OUTPUTS, sources=[TOY])
    make(TABLES, sources=[OUTPUTS])


@pytest.mark.parametrize(
    ("front", "private"),
    [
        (OPEN, False),
        ({"license": "other", "license_name": "terms-of-many"}, True),
        ({"pretty_name": "x"}, True),
    ],
)
def test_release_open_licence_is_public_others_private(front, private):
    make(TOY, front=front)
    assert release(locate("toy"), ()).private is private


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ("a: CC0-1.0; b-2: PDDL-1.0", "cc0-1.0"),
        ("a: CC0-1.0; b-2: MIT", "other"),
        ("CC-BY-SA-4.0 AND GPL-2.0-or-later", "other"),
    ],
)
def test_release_card_allows_no_more_than_its_sources(stated, licence):
    make_chain(licence=stated)
    for named in ("toy", OUTPUTS):
        assert release(locate(named), ()).private is (licence == "other")
        text = card.render(locate(named))["README.md"].decode()
        assert yaml.safe_load(text.split("---\n")[1])["license"] == licence


@pytest.mark.parametrize(
    "stated",
    [
        "a: CC0-1.0; b: research purposes only",
        "CC-BY-NC-ND-4.0",
        "public domain?",
        "a: as the model's own card states; b: CC0-1.0",
        "toys: unknown (rows not to be published)",
        "research only, no redistribution (terms)",
    ],
)
def test_release_refuses_licence_in_words(stated):
    make_chain(licence=stated)
    assert TOY in refused("toy")
    assert TOY in refused(OUTPUTS)
    assert release(locate(TABLES), ()).files, "estimates"


def test_release_accepts_licence_named_in_params():
    make(TOY, licence='a: their "own" words: x, {y}; b: CC0-1.0')
    (line,) = re.findall(r"into params.yaml: (publish: {.*}})\)", refused("toy"))
    named = yaml.safe_load(line.replace("SPDX-ID", "CC-BY-4.0"))["publish"]["licences"]
    assert release(locate("toy"), (), Params(licences=named).licences).private
    with pytest.raises(ValidationError):
        Params(licences={"their own words": "their own words"})


def test_release_refuses_forbidding_card():
    make(TOY, front={"license": "other", "license_name": "no-redistribution"})
    assert "no-redistribution" in refused("toy")


@pytest.mark.parametrize("stated", [False, "false", "no", "true", 0, 1, None, []])
def test_release_refuses_manifest_unless_redistribute_is_true(stated):
    make(TOY)
    snapshot = Path("data/raw/toys/2026-11-21")
    snapshot.mkdir(parents=True)
    Path("params.yaml").write_text(f"datasets: {{toy: {{snapshot: {snapshot}}}}}", "utf-8")
    entries = [{"redistribute": True}]
    for number in (1, 2):
        facts = {"licence": "CC0-1.0", "request": {"corpora": {"en": entries[:number]}}}
        (snapshot / "manifest.json").write_text(json.dumps(facts), "utf-8")
        if number == 1:
            assert release(locate("toy"), ()).files
            entries.append({"redistribute": stated})
    assert str(snapshot) in refused("toy")


def test_release_card_with_prompt_is_gated():
    make_chain(front=OPEN | {"extra_gated_prompt": "For research?"})
    for named in ("toy", OUTPUTS):
        made = release(locate(named), ())
        assert (made.private, made.gated) == (False, "auto")
    make("data/datasets/silent")
    assert release(locate("silent"), ()).gated is False


def test_release_has_only_files_that_the_build_wrote():
    where = make(OUTPUTS)
    (where / ".part-dump").write_text("u/somebody", "utf-8")
    (where / "note.txt").touch()
    assert sorted(release(locate(OUTPUTS), ()).files) == ["README.md", "build.json", "en.parquet"]


def test_release_refuses_removed_rows_and_results_of_them():
    make_chain(rows={"qid": ["Q1", "Q2"], "text": ["one", "two"]})
    listed = Path("private/removed.txt")
    listed.parent.mkdir()
    listed.write_text("Q3", "utf-8")
    assert release(locate("toy"), ()).files
    for entry in ("Q2", sha256(b"two").hexdigest()):
        listed.write_text(f"{entry}  # asked on a day", "utf-8")
        assert "1 rows" in refused("toy")
        for named in (OUTPUTS, TABLES):
            assert TOY in refused(named)
    shutil.rmtree(TOY)
    make(TOY, rows={"qid": ["Q1"]})
    for named in (OUTPUTS, TABLES):
        assert TOY in refused(named), "of rows that are gone"


def test_release_refuses_unvalidated_failed_and_changed():
    make(TOY)
    Path("data/validation/toy.json").unlink()
    assert "toy" in refused("toy")
    make("data/datasets/red", success=False)
    assert "red" in refused("red")
    make(TABLES, sources=["data/datasets/red"])
    assert "red" in refused(TABLES)
    where = make("data/datasets/edited")
    pl.DataFrame({"word": ["loud"]}).write_parquet(where / "en.parquet")
    assert "edited" in refused("edited")


def test_release_refuses_closed_rows_and_outputs_of_them_not_tables():
    make_chain(rows={"text": ["a", "b", "c"], "redistributable": [True, False, False]})
    assert "2 rows" in refused("toy")
    assert TOY in refused(OUTPUTS)
    assert release(locate(TABLES), ()).files
    make("data/datasets/free", rows={"text": ["a"], "redistributable": [True]})
    assert release(locate("free"), ()).files


@pytest.mark.parametrize("name", ["corpora", "outlets"])
def test_release_partisan_texts_need_acknowledgement(name):
    make(f"data/datasets/{name}")  # an open licence changes nothing
    assert name in refused(name)
    assert name in refused(name, "pretrained/tiny")
    made = release(locate(name), (name,))
    assert (made.private, made.gated) == (True, "manual")


def test_release_refuses_acknowledged_texts_that_a_source_forbids():
    make("data/datasets/corpora", licence="herald: theirs (rows not to be published)")
    assert "not to be published" in refused("corpora", "corpora")


def test_release_checkpoint_needs_acknowledgement_and_its_list():
    where = checkpoint()
    assert "pretrained/tiny" in refused(str(where), "corpora", "pretrained/other")
    made = release(where, ("pretrained/tiny",))
    assert (made.kind, made.private, made.gated) == ("model", True, "manual")
    assert sorted(made.files) == ["README.md", "model.safetensors"]
    assert "| corpus | news-left |" in made.card
    (where / "model.safetensors").write_bytes(b"others")
    assert "model.safetensors" in refused(str(where), "pretrained/tiny")
    unlisted = where.with_name("news-left-2")
    unlisted.mkdir()
    assert "news-left-2" in refused(str(unlisted), "pretrained/tiny")


@pytest.mark.parametrize("named", ["data/raw/toys", "/etc", "data/datasets/../x", "data/tables/x"])
def test_locate_refuses_other_folders(named):
    assert named in refused(named)


def test_locate_names_folders_with_cards():
    make(f"{TABLES}/one")
    make(f"{TABLES}/two")
    assert f"{TABLES}/one, {TABLES}/two" in refused(TABLES)
