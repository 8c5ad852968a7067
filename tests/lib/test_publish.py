"""Publishing a dataset to a Hub on loopback through the real client, and loading it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from imports import TOP
from lib.hub_server import TOKEN, serving

REPO = "example/words"


@pytest.fixture
def mine(built, tmp_path):
    folder = tmp_path / "project"
    shutil.copytree(built, folder)
    return folder


@pytest.fixture
def hub():
    with serving() as served:
        yield served


def run(folder, hub, *words, token=TOKEN):
    environment = {k: v for k, v in os.environ.items() if k != "HF_TOKEN"} | {
        "PYTHONPATH": str(TOP),
        "HF_HOME": str(folder / "hf"),
        "HF_ENDPOINT": hub.endpoint,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment | ({"HF_TOKEN": token} if token else {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def publish(folder, hub, *words, what="words", version="1.2.0", token=TOKEN):
    at = ("--repo", REPO, "--version", version)
    return run(folder, hub, "-m", "builders", "publish", what, *at, *words, token=token)


LOAD = """
import sys
from datasets import load_dataset
stream = list(load_dataset("example/words", "en", revision="1.2.0", split="train", streaming=True))
whole = load_dataset("example/words", "en", revision="1.2.0", split="train")
here = load_dataset("data/datasets/words", "en", split="train", cache_dir="other-cache")
assert list(whole) == stream == list(here) and whole.features == here.features
print(len(whole))
"""


def test_a_dataset_goes_to_the_hub_in_one_commit_and_loads_by_name_and_version(mine, hub):
    done = publish(mine, hub)
    assert done.returncode == 0, done.stderr
    repo = hub.repos[f"datasets/{REPO}"]
    assert [message for _, message, _ in repo.commits] == ["initial commit", "Version 1.2.0"]
    sha, _, files = repo.commits[-1]
    assert repo.tags == {"1.2.0": sha}
    folder = mine / "data/datasets/words"
    assert sorted(files) == [".gitattributes", *sorted(p.name for p in folder.iterdir())]
    for path in folder.iterdir():
        assert hub.blobs[files[path.name]] == path.read_bytes()
    assert repo.private  # the card's licence is `other`
    assert repo.gated is False
    assert TOKEN not in done.stdout + done.stderr
    done = run(mine, hub, "-c", LOAD)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10


def test_a_dry_run_prints_every_file_and_the_diff_of_the_card_and_sends_nothing(mine, hub):
    assert publish(mine, hub, version="1.1.0").returncode == 0
    folder = mine / "data/datasets/words"
    card = folder / "README.md"
    card.write_text(card.read_text("utf-8").replace("## Rebuild", "## How to rebuild"), "utf-8")
    hub.repos[f"datasets/{REPO}"].commits[-1][2]["old.parquet"] = sorted(hub.blobs)[0]
    before = hub.state()
    asked = len(hub.asked)
    done = publish(mine, hub, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert hub.state() == before
    assert {method for method, _, _ in hub.asked[asked:]} <= {"GET", "HEAD"}
    said = done.stdout.splitlines()
    for path in folder.iterdir():
        change = "changed" if path == card else "same"
        assert [change, f"{path.stat().st_size:,}", path.name] in [line.split() for line in said]
    assert ["removed", "-", "old.parquet"] in [line.split() for line in said]
    assert "-## Rebuild" in said
    assert "+## How to rebuild" in said
    assert "private: yes; gated: no" in said
