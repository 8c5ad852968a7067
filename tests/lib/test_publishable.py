"""What may be published, and how open: on small folders written here."""

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest
import yaml
from dvc.repo import Repo
from imports import TOP
from lib.small_folders import OPEN, checkpoint, make
from pydantic import ValidationError

from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.stereotypes.fetch import LICENCE
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


def test_an_open_licence_is_public_and_any_other_is_private():
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
def test_a_card_never_allows_more_than_its_sources(stated, licence):
    make("data/datasets/toy", licence=stated)
    make("data/outputs/probe/model", sources=["data/datasets/toy"], licence="as its card states")
    for named in ("toy", "data/outputs/probe/model"):
        assert release(locate(named), ()).private is (licence == "other")
        text = card.render(locate(named))["README.md"].decode()
        assert yaml.safe_load(text.split("---\n")[1])["license"] == licence


WORDS = (
    "a: CC0-1.0; b: research purposes only",
    "MIT (the wrapper's)",
    "CC-BY-NC-ND-4.0",
    "none stated: facts",
    "CC BY 4.0 for the items, answers of respondents are confidential",
    "Apache-2.0 code, dataset: research only, no sharing",
    "non-redistributable",
    "public domain?",
    "as its card states",
    "a: as the model's own card states; b: CC0-1.0",
)


@pytest.mark.parametrize("stated", WORDS)
def test_a_licence_in_words_is_refused_and_not_guessed(stated):
    make("data/datasets/toy", licence=stated)
    make("data/outputs/probe/model", sources=["data/datasets/toy"], licence="as its card states")
    assert "data/datasets/toy" in refused("toy")
    assert "data/datasets/toy" in refused("data/outputs/probe/model")
    make("data/tables/study", sources=["data/outputs/probe/model"], licence="as its card states")
    assert release(locate("data/tables/study"), ()).files, "estimates"


def test_who_knows_what_words_stand_for_says_so_in_params():
    make("data/datasets/toy", licence='a: their "own" words: x, {y}; b: CC0-1.0')
    (line,) = re.findall(r"into params.yaml: (publish: {.*}})\)", refused("toy"))
    named = yaml.safe_load(line.replace("SPDX-ID", "CC-BY-4.0"))["publish"]["licences"]
    assert release(locate("toy"), (), Params(licences=named).licences).private


def test_so_they_do_of_what_engines_suggest():
    stated = f"{LICENCE}; choenni2021: MIT"
    make("data/datasets/toy", licence=stated)
    words = LICENCE.removeprefix("suggestions: ")
    assert repr(words) in refused("toy")
    assert words in (TOP / "docs/howto/publishing.md").read_text("utf-8")
    assert release(locate("toy"), (), {words: "CC0-1.0"}).files


def test_a_licence_in_words_stands_for_none():
    with pytest.raises(ValidationError, match="their own words"):
        Params(licences={"their own words": "their own words"})


def test_a_card_that_asks_its_readers_gates_the_repository():
    make("data/datasets/asking", front=OPEN | {"extra_gated_prompt": "For research?"})
    made = release(locate("asking"), ())
    assert (made.private, made.gated) == (False, "auto")
    make("data/outputs/probe/model", sources=["data/datasets/asking"], licence="as its card states")
    assert release(locate("data/outputs/probe/model"), ()).gated == "auto"
    make("data/datasets/silent")
    assert release(locate("silent"), ()).gated is False


def test_just_the_files_go_that_the_build_wrote():
    where = make("data/outputs/probe/model")
    (where / ".part-dump").write_text("u/somebody", "utf-8")
    (where / ".more").mkdir()
    (where / ".more/note").touch()
    files = release(locate("data/outputs/probe/model"), ()).files
    assert sorted(files) == ["README.md", "build.json", "en.parquet"]
    for name in ("note.txt", "more/0.parquet", "link"):
        (where / "more").mkdir(exist_ok=True)
        path = where / name
        path.symlink_to("/etc") if name == "link" else path.touch()
        assert name in refused("data/outputs/probe/model")
        path.unlink()


def test_what_somebody_asked_to_be_taken_out_of_is_refused_until_it_is():
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


def test_neither_is_what_was_made_of_them_until_it_is_made_again():
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


def test_an_unvalidated_a_failed_and_a_changed_dataset_are_refused():
    make("data/datasets/toy")
    Path("data/validation/toy.json").unlink()
    assert "toy" in refused("toy")
    make("data/datasets/red", success=False)
    assert "red" in refused("red")
    where = make("data/datasets/edited")
    pl.DataFrame({"word": ["loud"]}).write_parquet(where / "en.parquet")
    assert "edited" in refused("edited")


def test_tables_of_a_dataset_that_failed_are_refused_at_any_distance():
    make("data/datasets/red", success=False)
    make("data/outputs/probe/model", sources=["data/datasets/red"])
    make("data/tables/study/model", sources=["data/outputs/probe/model"])
    assert "red" in refused("data/tables/study/model")


def test_rows_that_are_not_redistributable_are_counted_and_refused():
    rows = {"text": ["a", "b", "c"], "redistributable": [True, False, False]}
    make("data/datasets/texts", rows=rows)
    assert "2 rows" in refused("texts")
    rows["redistributable"] = [True, True, True]
    make("data/datasets/free", rows=rows)
    assert release(locate("free"), ()).files


def test_answers_to_closed_rows_are_refused_and_estimates_from_them_are_not():
    make("data/datasets/texts", rows={"text": ["a"], "redistributable": [False]})
    make("data/outputs/probe/model", sources=["data/datasets/texts"])
    make("data/tables/study", sources=["data/outputs/probe/model", "data/datasets/texts"])
    assert "data/datasets/texts" in refused("data/outputs/probe/model")
    assert release(locate("data/tables/study"), ()).files


@pytest.mark.parametrize(
    "licence",
    ["toys: unknown (rows not to be published)", "research only, no redistribution (terms)"],
)
def test_a_source_whose_licence_forbids_redistribution_is_refused(licence):
    make("data/datasets/toy", licence=licence)
    assert licence in refused("toy")


def test_a_licence_of_the_card_itself_that_forbids_is_refused():
    make("data/datasets/toy", front={"license": "other", "license_name": "no-redistribution"})
    assert "no-redistribution" in refused("toy")


def test_a_manifest_that_says_redistribute_false_is_refused():
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
def test_partisan_texts_are_refused_until_acknowledged_and_then_private_and_by_hand(name):
    make(f"data/datasets/{name}")  # an open licence changes nothing
    assert name in refused(name)
    assert name in refused(name, "pretrained/tiny")
    made = release(locate(name), (name,))
    assert (made.private, made.gated) == (True, "manual")


def test_acknowledged_partisan_texts_that_a_source_forbids_are_refused_all_the_same():
    make("data/datasets/corpora", licence="herald: theirs (rows not to be published)")
    assert "not to be published" in refused("corpora", "corpora")


def test_a_partisan_checkpoint_is_refused_until_acknowledged_and_then_a_private_model():
    where = checkpoint()
    assert "pretrained/tiny" in refused(str(where))
    assert "pretrained/tiny" in refused(str(where), "corpora", "pretrained/other")
    made = release(where, ("pretrained/tiny",))
    assert (made.kind, made.private, made.gated) == ("model", True, "manual")
    assert sorted(made.files) == ["README.md", "model.safetensors"]
    assert "| corpus | news-left |" in made.card


def test_a_checkpoint_that_is_not_the_one_listed_is_refused():
    where = checkpoint()
    (where / "model.safetensors").write_bytes(b"others")
    assert "model.safetensors" in refused(str(where), "pretrained/tiny")
    unlisted = where.with_name("news-left-2")
    unlisted.mkdir()
    assert "news-left-2" in refused(str(unlisted), "pretrained/tiny")


def test_only_partisan_things_can_be_acknowledged():
    assert Params().acknowledged == ()
    names = ["corpora", "outlets", "pretrained/tiny"]
    assert Params.model_validate({"acknowledged": names}).acknowledged == tuple(names)
    for name in ("words", "pretrained", "pretrained/", "*"):
        with pytest.raises(ValidationError):
            Params.model_validate({"acknowledged": [name]})


@pytest.mark.parametrize(
    "named",
    ["data/raw/toys", "/etc", "../x", "data/", "data/outputs/x", "data/datasets/../x"],
)
def test_other_folders_are_not_published(named):
    assert named in refused(named)


def test_a_folder_of_several_cards_names_them():
    make("data/tables/study/one")
    make("data/tables/study/two")
    assert "data/tables/study/one, data/tables/study/two" in refused("data/tables/study")
    assert "data/tables/other" in refused("data/tables/other")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what DVC needs
def test_a_folder_that_is_not_what_dvc_lock_says_is_refused():
    where = make("data/tables/study")
    (where / "a").mkdir()
    (where / "a.b").mkdir()
    for name in ("a/.x", "a.b/.x", ".z"):
        (where / name).write_text(name, "utf-8")
    (added,) = Repo.init(no_scm=True).add(str(where))  # DVC's own hash
    md5 = added.outs[0].hash_info.value
    stage = {"cmd": "x", "outs": [{"path": str(where), "hash": "md5", "md5": md5}]}
    Path("dvc.lock").write_text(yaml.safe_dump({"stages": {"study": stage}}), "utf-8")
    assert release(where, ()).files
    (where / ".z").unlink()
    assert "dvc.lock" in refused("data/tables/study")
