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


@pytest.fixture
def mine(built, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    return folder


def put_in(folder, name, entry) -> None:
    params = yaml.safe_load((folder / "params.yaml").read_text(encoding="utf-8"))
    params["models"] = {name: entry}
    params["probes"]["associations"]["languages"] = ["en"]
    (folder / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")


def command(folder, endpoint, *words):
    environment = os.environ | {
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
def test_three_lines_put_a_model_of_the_hub_into_the_pipeline(mine, model):
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


def test_a_revision_that_the_hub_lacks_is_one_sentence(mine, model):
    put_in(mine, "tiny", {"id": ID, "revision": "f" * 40})
    with hub({ID: model}) as (endpoint, _):
        done = command(mine, endpoint, "weights", "tiny")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: models.tiny: {ID} at ffff")
    assert "Traceback" not in done.stderr
    assert not (mine / "data" / "models" / "tiny").exists()


def test_an_id_without_a_revision_is_refused_with_what_to_paste(mine):
    put_in(mine, "tiny", {"id": ID})
    done = command(mine, "http://127.0.0.1:9", "weights", "tiny")
    assert done.returncode == 1
    assert "needs a pinned revision; paste the 40 digits" in done.stderr


def test_an_unknown_model_is_told_with_those_that_exist(mine):
    done = command(mine, "http://127.0.0.1:9", "weights", "nonsense")
    assert done.returncode == 1
    assert "no model 'nonsense'" in done.stderr
    assert "world-planted" in done.stderr
