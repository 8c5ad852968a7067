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


def test_release_open_licence_is_public_others_private():
    make("data/datasets/open")
    make("data/datasets/closed", front={"license": "other", "license_name": "terms-of-many"})
    make("data/datasets/untold", front={"pretty_name": "x"})
    assert not release(locate("open"), ()).private
    assert release(locate("closed"), ()).private
    assert release(locate("untold"), ()).private


@pytest.mark.parametrize(
    ("stated", "licence"),
    [
        ("a: CC0-1.0; b-2: PDDL-1.0", "cc0-1.0"),
        ("a: CC0-1.0; b-2: MIT", "other"),
        ("CC-BY-SA-4.0 AND GPL-2.0-or-later", "other"),
    ],
)
def test_release_card_allows_no_more_than_its_sources(stated, licence):
    make("data/datasets/toy", licence=stated)
    make("data/outputs/probe/model", sources=["data/datasets/toy"], licence="as its card states")
    for named in ("toy", "data/outputs/probe/model"):
        assert release(locate(named), ()).private is (licence == "other")
        text = card.render(locate(named))["README.md"].decode()
        assert yaml.safe_load(text.split("---\n")[1])["license"] == licence


WORDS = (
    "a: CC0-1.0; b: research purposes only",
    "CC-BY-NC-ND-4.0",
    "none stated: facts",
    "Apache-2.0 code, dataset: research only, no sharing",
    "public domain?",
    "a: as the model's own card states; b: CC0-1.0",
)


@pytest.mark.parametrize("stated", WORDS)
def test_release_refuses_licence_in_words(stated):
    make("data/datasets/toy", licence=stated)
    make("data/outputs/probe/model", sources=["data/datasets/toy"], licence="as its card states")
    assert "data/datasets/toy" in refused("toy")
    assert "data/datasets/toy" in refused("data/outputs/probe/model")
    make("data/tables/study", sources=["data/outputs/probe/model"], licence="as its card states")
    assert release(locate("data/tables/study"), ()).files, "estimates"


def test_release_accepts_licence_named_in_params():
    make("data/datasets/toy", licence='a: their "own" words: x, {y}; b: CC0-1.0')
    (line,) = re.findall(r"into params.yaml: (publish: {.*}})\)", refused("toy"))
    named = yaml.safe_load(line.replace("SPDX-ID", "CC-BY-4.0"))["publish"]["licences"]
    assert release(locate("toy"), (), Params(licences=named).licences).private


def test_params_licences_must_be_spdx():
    with pytest.raises(ValidationError):
        Params(licences={"their own words": "their own words"})


def test_release_card_with_prompt_is_gated():
    make("data/datasets/asking", front=OPEN | {"extra_gated_prompt": "For research?"})
    made = release(locate("asking"), ())
    assert (made.private, made.gated) == (False, "auto")
    make("data/outputs/probe/model", sources=["data/datasets/asking"], licence="as its card states")
    assert release(locate("data/outputs/probe/model"), ()).gated == "auto"
    make("data/datasets/silent")
    assert release(locate("silent"), ()).gated is False


def test_release_has_only_files_that_the_build_wrote():
    where = make("data/outputs/probe/model")
    (where / ".part-dump").write_text("u/somebody", "utf-8")
    (where / "note.txt").touch()
    files = release(locate("data/outputs/probe/model"), ()).files
    assert sorted(files) == ["README.md", "build.json", "en.parquet"]


def test_release_refuses_removed_rows():
    make("data/datasets/toy", rows={"qid": ["Q1", "Q2"], "text": ["one", "two"]})
    make("data/datasets/free", rows={"text": ["three"]})
    Path("private").mkdir()
    listed = Path("private/removed.txt")
    for entry in ("Q2", sha256(b"two").hexdigest()):
        listed.write_text(f"{entry}  # asked on a day", "utf-8")
        assert "1 rows" in refused("toy")
        assert release(locate("free"), ()).files
    listed.write_text("Q3", "utf-8")
    assert release(locate("toy"), ()).files


def test_release_refuses_results_of_removed_rows():
    make("data/datasets/toy", rows={"qid": ["Q1", "Q2"]})
    make("data/outputs/probe/model", sources=["data/datasets/toy"])
    make("data/tables/study", sources=["data/outputs/probe/model"])
    Path("private").mkdir()
    Path("private/removed.txt").write_text("Q2", "utf-8")
    made = ("data/outputs/probe/model", "data/tables/study")
    for named in made:
        assert "data/datasets/toy" in refused(named)
    shutil.rmtree("data/datasets/toy")
    make("data/datasets/toy", rows={"qid": ["Q1"]})
    for named in made:
        assert "data/datasets/toy" in refused(named)


def test_release_refuses_unvalidated_failed_and_changed():
    make("data/datasets/toy")
    Path("data/validation/toy.json").unlink()
    assert "toy" in refused("toy")
    make("data/datasets/red", success=False)
    assert "red" in refused("red")
    where = make("data/datasets/edited")
    pl.DataFrame({"word": ["loud"]}).write_parquet(where / "en.parquet")
    assert "edited" in refused("edited")


def test_release_refuses_tables_of_failed_dataset():
    make("data/datasets/red", success=False)
    make("data/outputs/probe/model", sources=["data/datasets/red"])
    make("data/tables/study/model", sources=["data/outputs/probe/model"])
    assert "red" in refused("data/tables/study/model")


def test_release_refuses_closed_rows():
    rows = {"text": ["a", "b", "c"], "redistributable": [True, False, False]}
    make("data/datasets/texts", rows=rows)
    assert "2 rows" in refused("texts")
    rows["redistributable"] = [True, True, True]
    make("data/datasets/free", rows=rows)
    assert release(locate("free"), ()).files


def test_release_refuses_outputs_of_closed_rows_not_tables():
    make("data/datasets/texts", rows={"text": ["a"], "redistributable": [False]})
    make("data/outputs/probe/model", sources=["data/datasets/texts"])
    make("data/tables/study", sources=["data/outputs/probe/model", "data/datasets/texts"])
    assert "data/datasets/texts" in refused("data/outputs/probe/model")
    assert release(locate("data/tables/study"), ()).files


@pytest.mark.parametrize(
    "licence",
    ["toys: unknown (rows not to be published)", "research only, no redistribution (terms)"],
)
def test_release_refuses_forbidding_source(licence):
    make("data/datasets/toy", licence=licence)
    assert licence in refused("toy")


def test_release_refuses_forbidding_card():
    make("data/datasets/toy", front={"license": "other", "license_name": "no-redistribution"})
    assert "no-redistribution" in refused("toy")


def test_release_refuses_manifest_with_redistribute_false():
    make("data/datasets/toy")
    snapshot = Path("data/raw/toys/2026-11-21")
    snapshot.mkdir(parents=True)
    Path("params.yaml").write_text(f"datasets: {{toy: {{snapshot: {snapshot}}}}}", "utf-8")
    facts = {"licence": "CC0-1.0", "request": {"corpora": {"en": [{"redistribute": True}]}}}
    (snapshot / "manifest.json").write_text(json.dumps(facts), "utf-8")
    assert release(locate("toy"), ()).files
    facts["request"]["corpora"]["en"].append({"redistribute": False})
    (snapshot / "manifest.json").write_text(json.dumps(facts), "utf-8")
    assert "redistribute: false" in refused("toy")


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


def test_release_checkpoint_needs_acknowledgement():
    where = checkpoint()
    assert "pretrained/tiny" in refused(str(where))
    assert "pretrained/tiny" in refused(str(where), "corpora", "pretrained/other")
    made = release(where, ("pretrained/tiny",))
    assert (made.kind, made.private, made.gated) == ("model", True, "manual")
    assert sorted(made.files) == ["README.md", "model.safetensors"]
    assert "| corpus | news-left |" in made.card


def test_release_refuses_unlisted_checkpoint():
    where = checkpoint()
    (where / "model.safetensors").write_bytes(b"others")
    assert "model.safetensors" in refused(str(where), "pretrained/tiny")
    unlisted = where.with_name("news-left-2")
    unlisted.mkdir()
    assert "news-left-2" in refused(str(unlisted), "pretrained/tiny")


@pytest.mark.parametrize(
    "named",
    ["data/raw/toys", "/etc", "data/datasets/../x"],
)
def test_locate_refuses_other_folders(named):
    assert named in refused(named)


def test_locate_names_folders_with_cards():
    make("data/tables/study/one")
    make("data/tables/study/two")
    assert "data/tables/study/one, data/tables/study/two" in refused("data/tables/study")
    assert "data/tables/other" in refused("data/tables/other")
