"""A model of the Hub by its three lines in params.yaml, through the real client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import polars as pl
import pytest
import yaml
from hub import REVISION, hub
from imports import TOP
from models.tiny import bert, wordpiece

ID = "example/tiny"


@pytest.fixture
def model(tmp_path):
    """A randomly initialised model that knows a few words of the sample, and none of its names."""
    folder = tmp_path / "tiny"
    tokenizer = wordpiece(["a honest calm promised"])
    tokenizer.save_pretrained(folder)
    bert(tokenizer).save_pretrained(folder)
    return folder


def put_in(folder, name, entry):
    path = folder / "params.yaml"
    params = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {"probes": {}}
    params["models"] = {name: entry}
    params["probes"].setdefault("associations", {})["languages"] = ["en"]
    path.write_text(yaml.safe_dump(params), encoding="utf-8")
    return folder


def command(folder, endpoint, *words):
    environment = {key: value for key, value in os.environ.items() if key != "HF_TOKEN"} | {
        "PYTHONPATH": str(TOP),
        "HF_HOME": str(folder / "hf"),
        "HF_ENDPOINT": endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "plumbline.probes", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_weights_and_probe_of_a_hub_model(built, tmp_path, model):
    mine = shutil.copytree(built, tmp_path / "project")
    put_in(mine, "tiny", {"id": ID, "revision": REVISION})
    with hub({ID: model}) as (endpoint, asked):
        done = command(mine, endpoint, "weights", "tiny")
        assert done.returncode == 0, done.stderr
        assert any(REVISION in path for path in asked)
        done = command(mine, endpoint, "associations", "tiny")
        assert done.returncode == 0, done.stderr
    pointer = json.loads((mine / "data/models/tiny/model.json").read_text(encoding="utf-8"))
    assert pointer["id"] == ID
    assert pointer["revision"] == REVISION
    assert "model.safetensors" in pointer["files"]
    assert [p.name for p in (mine / "data/models/tiny").iterdir()] == ["model.json"]
    outputs = pl.read_parquet(mine / "data/outputs/associations/tiny/en/00000.parquet")
    assert (outputs["unknown_pieces"] > 0).all()  # it has no capitals, so it sees no name whole
    done = command(mine, "http://127.0.0.1:9", "pmi", "tiny")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("revision", "closed", "said"),
    [
        ("f" * 40, {}, f"{ID} at ffff"),
        (REVISION, {ID: "gated"}, f"{ID} is gated"),
        (REVISION, {ID: "forbidden"}, f"{ID} is gated"),
        (REVISION, {ID: "private"}, f"{ID} is gated, private"),
    ],
)
def test_weights_that_the_hub_refuses(tmp_path, model, revision, closed, said):
    mine = put_in(tmp_path, "tiny", {"id": ID, "revision": revision})
    with hub({ID: model}, closed) as (endpoint, _):
        done = command(mine, endpoint, "weights", "tiny")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: models.tiny: {said}")
    assert "Traceback" not in done.stderr
    assert not (mine / "data/models/tiny").exists()
