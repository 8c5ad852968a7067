"""What holds of every dataset of the sample."""

from __future__ import annotations

import json
import shutil
import subprocess

import building
import datasets
import polars as pl
import pytest
import whole
from samples import TOP

from plumbline.builders import DATASETS
from plumbline.builders.core import parquet
from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot

TYPES = {kind: datasets.Value(kind) for kind in ("string", "bool", "int32", "int64", "float64")}
TYPES |= {"date32": datasets.Value("date32"), "strings": datasets.List(datasets.Value("string"))}
TYPES |= {"integers": datasets.List(datasets.Value("int32"))}
TYPES |= {"floats": datasets.List(datasets.Value("float64"))}
SLOW = {"lexica"}  # to train
every = pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in DATASETS]
)


@pytest.mark.slow
@every
def test_sample_passes_its_checks(sample, name):
    folder = sample(name)
    floors = whole.tree()["validation"][name]
    warned = {"seeds_agree"}  # of lexica: a few steps of training leave the seeds apart
    assert set(building.failing(name, folder)) <= warned
    for config, least in floors["rows_min"].items():
        assert len(pl.read_parquet(folder / f"{config}.parquet")) >= least
    assert set(floors["rows_min"]) <= set(parquet.configs(folder))


@every
def test_load_dataset_has_the_declared_features(sample, tmp_path, name):
    folder, schema = sample(name), building.builder(name).SCHEMA
    config = json.loads((folder / "build.json").read_text("utf-8"))["configs"].popitem()[0]
    found = datasets.load_dataset(str(folder), config, split="train", cache_dir=str(tmp_path))
    assert list(found.features) == [column.name for column in schema.columns]
    for column in schema.columns:
        typed = datasets.ClassLabel(names=list(column.labels)) if column.labels else None
        assert found.features[column.name] == (typed or TYPES[column.kind]), column.name
    frame = pl.read_parquet(folder / f"{config}.parquet")
    assert len(frame) == len(found) == frame.select(schema.key).n_unique()


@pytest.mark.parametrize("name", sorted({*DATASETS} - {"lexica", "counterfactuals"}))  # seconds
def test_two_builds_have_the_same_bytes(sample, linking, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    whole.write(tmp_path)
    linking(tmp_path)
    build(name, building.builder(name))
    build(name, building.builder(name))  # over what is there
    first, again = sample(name), tmp_path / parquet.DATASETS / name
    contents = [{p.name: p.read_bytes() for p in f.iterdir()} for f in (first, again)]
    assert contents[0] == contents[1]


def test_build_refuses_a_snapshot_of_another_source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = whole.tree()
    for name, entry in tree["datasets"].items():
        other = "names" if name == "words" else "ud"
        entry["snapshot"] = str(TOP / "data/samples" / other / "2026-11-21")
    own = tree["derived"]["corpora"]["snapshots"]
    own["news"], own["reddit"] = (str(TOP / own[name]) for name in ("reddit", "news"))
    (tmp_path / "params.yaml").write_text(json.dumps(tree), "utf-8")
    for name in sorted({*DATASETS} - {"counterfactuals"}):
        with pytest.raises(UserError):
            build(name, building.builder(name))
    assert not list(tmp_path.glob("data/datasets/*"))


def test_build_refuses_an_edited_snapshot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = tmp_path / "data/samples"
    shutil.copytree(TOP / "data/samples/ud", samples / "ud")
    whole.write(tmp_path)
    (samples / "ud/2026-11-21/fr/fr_sample-ud-test.conllu").write_text("<html>moved</html>\n")
    with pytest.raises(UserError):
        build("words", building.builder("words"))


@pytest.mark.skipif(not (TOP / ".git").exists(), reason="not in a clone")
def test_clone_with_windows_line_ends_has_the_bytes_of_the_manifests(tmp_path):
    """Git for Windows sets core.autocrlf, with which text files get other line ends."""

    def git(*words):
        subprocess.run(["git", *words], check=True, cwd=tmp_path, capture_output=True)

    git("clone", "-c", "core.autocrlf=true", "--no-checkout", str(TOP), "clone")
    git("-C", "clone", "checkout", "HEAD", "--", ".gitattributes", "data/samples")
    manifests = sorted((tmp_path / "clone/data/samples").glob("*/2026-*/manifest.json"))
    assert len(manifests) > 10
    for manifest in manifests:
        for name in Snapshot.open(manifest.parent).names(""):
            Snapshot.open(manifest.parent).read(name)  # compares the sha256
