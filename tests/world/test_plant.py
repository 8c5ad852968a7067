"""Planted worlds as inputs: what stands in data/samples/worlds, and that it can be planted anew."""

import importlib
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from safetensors.torch import load_file

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import digest
from plumbline.probes.models.load import revision
from plumbline.probes.models.params import Model
from plumbline.validation.run import validate
from worlds.plant import KINDS, checked, entries, plant
from worlds.tiny_model import GRID

WORLDS = Path(__file__).parents[2] / "data" / "samples" / "worlds"
NAMES = sorted(entries())
# masked, classifier, causal: one loop trains
EACH = ("world-small", "world-names", "world-writing")
# Between kinds of processors 2.5% of the weights of one world differed, by two steps of the grid at
# most, and 0.5% or fewer of the others; another seed changes nearly all of them by many steps.
FLIPPED, STEPS = 0.05, 3


def manifest(name):
    return json.loads((WORLDS / name / "manifest.json").read_text("utf-8"))


def test_entries_are_the_worlds_in_git():
    assert sorted(path.name for path in WORLDS.iterdir()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_manifest_is_that_of_settings_and_files(name):
    facts = manifest(name)
    world, params, of_model = checked(name, entries()[name])
    assert (facts["world"], facts["model"]) == (world, of_model)
    assert facts["parameters"] == params.model_dump(mode="json", exclude_none=True)
    there = {path.name: digest(path) for path in (WORLDS / name).iterdir()}
    there.pop("manifest.json")
    assert facts["files"] == there
    assert facts["revision"] == revision(there)
    assert facts["id"] == f"data/samples/worlds/{name}"
    assert set(facts["datasets"]) <= set(KINDS[world].datasets)
    assert Model.model_validate({"id": "./x", **facts["model"]}).control is not None


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"world": "weather"}, "world"),
        ({"world": "groups", "noise": 0}, "noise"),
        ({"world": "groups", "dtype": "int8"}, "dtype"),
        ({"world": "nations", "kind": "causal"}, "causal"),
    ],
)
def test_plant_refuses_wrong_settings(settings, key):
    with pytest.raises(UserError, match=key):
        plant("x", settings)


@pytest.fixture(scope="module")
def land(once, copying):
    """Return a project with the datasets that worlds are made of."""

    def make(folder):
        copying(folder)
        needed = ["politicians", "words", "lexica", "supersenses", "social_groups", "stereotypes"]
        needed += ["emotions", "statements", "names", "targets", "counterfactuals"]
        for name in needed:
            build(name, importlib.import_module(f"plumbline.builders.datasets.{name}.build"))
            validate(name)

    return once("land", make)


PLANT = """
import json, sys
from pathlib import Path
import torch
from worlds.plant import plant
torch.set_num_threads(int(sys.argv[1]))
torch.set_num_threads = lambda _: None  # training must not fall back to one thread
plant(sys.argv[2], json.loads(sys.argv[3]), Path(sys.argv[4]))
"""


@pytest.mark.slow
def test_plant_in_another_process_writes_the_same_bytes(land, tmp_path):
    name = "world-small"
    given = json.dumps(entries()[name] | {"steps": 6, "hidden": 32, "words_max": 20})
    runs = []
    for threads in (1, 2):
        into = tmp_path / ("deep/" * threads)
        command = [sys.executable, "-c", PLANT, str(threads), name, given, str(into)]
        environment = os.environ | {
            "PYTHONPATH": str(WORLDS.parents[2]),
            "PYTHONHASHSEED": str(threads),
            "OMP_NUM_THREADS": str(threads),
        }
        subprocess.run(command, env=environment, cwd=land, check=True, capture_output=True)
        files = {path.name: path.read_bytes() for path in (into / name).iterdir()}
        files.pop("manifest.json")  # which says where the world is
        runs.append(files)
    assert runs[0] == runs[1]
    assert {"model.safetensors", "tokenizer.json", "world.json", "planted.parquet"} < set(runs[0])
    today = datetime.now(UTC).strftime("%Y-%m-%d").encode()
    for name, body in runs[0].items():
        for private in (str(tmp_path).encode(), str(WORLDS.parents[2]).encode(), today):
            assert private not in body, name


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH)
def test_plant_again_is_the_same_up_to_rounding(name, land, tmp_path, monkeypatch):
    monkeypatch.chdir(land)
    again, before = plant(name, into=tmp_path), WORLDS / name
    assert {p.name for p in again.iterdir()} == {p.name for p in before.iterdir()}
    for path in again.iterdir():
        if path.suffix == ".parquet":
            assert_frame_equal(
                pl.read_parquet(path), pl.read_parquet(before / path.name), rel_tol=0, abs_tol=1e-9
            )
        elif path.name not in ("manifest.json", "model.safetensors"):
            assert path.read_bytes() == (before / path.name).read_bytes(), path.name
    one, two = (load_file(folder / "model.safetensors") for folder in (before, again))
    apart = torch.cat([((one[key] - two[key]) / GRID).abs().flatten() for key in one])
    print(f"{int((apart > 0).sum())} of {len(apart)} weights differ")
    assert apart.max() <= STEPS
    assert (apart > 0).double().mean() <= FLIPPED
    facts = json.loads((again / "manifest.json").read_text("utf-8"))
    told = ("model", "parameters", "world")
    assert [facts[key] for key in told] == [manifest(name)[key] for key in told]
