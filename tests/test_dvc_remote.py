"""Holding data on S3: pushed from one clone and pulled into another, with nothing left to run.

The store is moto's server on loopback; DVC and dvc-s3 are the real ones, and so is a stage.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
import requests
import whole
from imports import TOP
from moto.server import ThreadedMotoServer

pytestmark = pytest.mark.slow
BUCKET = "study"
WHERE = f"s3://{BUCKET}/plumbline"
STAGES = """
stages:
  build:
    cmd: python -m plumbline.builders social_groups
    params: [datasets.social_groups]
    deps: [data/samples/social_groups]
    outs: [data/datasets/social_groups]
  count:
    cmd: wc -c data/datasets/social_groups/en.parquet > data/count.txt
    deps: [data/datasets/social_groups]
    outs: [data/count.txt]
"""
OUTS = ("datasets/social_groups", "count.txt")
SECRET = "b8f1-known-to-nobody"


@pytest.fixture
def store(monkeypatch):
    """An S3 with an empty bucket, as its address."""
    for name in [n for n in os.environ if n.startswith("AWS_") or n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    client(address).create_bucket(Bucket=BUCKET)
    yield address
    requests.post(f"{address}/moto-api/reset", timeout=10)  # what it holds outlives the server
    server.stop()


def client(address):
    return boto3.client(
        "s3",
        endpoint_url=address,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


def run(folder, *words, status=0):
    """Run a command as a person with keys in the environment would; return what it prints."""
    environment = os.environ | {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(TOP),
        "HOME": str(folder.parent),  # no configuration of whoever runs the tests
        **{f"GIT_{who}_NAME": "A" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "a@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    if words[0] == "dvc":
        words = (sys.executable, "-m", *words)
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def ready(once):
    """A project of one person, built; not to be changed."""

    def make(folder):
        (folder / "first" / "data").mkdir(parents=True)
        here = folder / "first"
        whole.write(here)
        shutil.copytree(TOP / "docs" / "datasets", here / "docs" / "datasets")
        samples = Path("data/samples/social_groups")
        shutil.copytree(TOP / samples, here / samples)
        (here / "dvc.yaml").write_text(STAGES, encoding="utf-8")
        run(here, "git", "init", "--quiet", "--initial-branch", "main")
        run(here, "dvc", "init", "--quiet")
        (here / ".dvc" / "config").write_text("[core]\n    analytics = false\n", "utf-8")
        run(here, "dvc", "repro", "--quiet")

    return once("held", make)


@pytest.fixture
def first(ready, tmp_path):
    return Path(shutil.copytree(ready / "first", tmp_path / "first"))


def clone(first):
    """Commit what there is, and return another person's clone of it."""
    run(first, "git", "add", "--all")
    run(first, "git", "commit", "--quiet", "--message", "Built")
    run(first.parent, "git", "clone", "--quiet", "first", "second")
    return first.parent / "second"


def files(folder):
    data = folder / "data"
    found = [path for out in OUTS for path in [data / out, *sorted((data / out).rglob("*"))]]
    return {path.relative_to(data): path.read_bytes() for path in found if path.is_file()}


def test_push_and_pull_through_s3(first, store):
    run(first, "dvc", "remote", "add", "--default", "study", WHERE)
    run(first, "dvc", "remote", "modify", "--local", "study", "endpointurl", store)
    for key, value in (("access_key_id", "somebody"), ("secret_access_key", SECRET)):
        run(first, "dvc", "remote", "modify", "--local", "study", key, value)
    run(first, "dvc", "push")
    there = client(store).list_objects_v2(Bucket=BUCKET)["Contents"]
    assert all(entry["Key"].startswith("plumbline/files/md5/") for entry in there)

    other = clone(first)
    assert WHERE in (other / ".dvc" / "config").read_text(encoding="utf-8")
    for own in (SECRET, store):  # of one person: neither is committed
        run(other, "git", "grep", "--quiet", own, status=1)
    assert files(other) == {}
    run(other, "dvc", "remote", "modify", "--local", "study", "endpointurl", store)
    run(other, "dvc", "pull", "data/count.txt")
    assert list(files(other)) == [Path("count.txt")]
    run(other, "dvc", "pull")
    assert files(other) == files(first)
    assert Path("datasets/social_groups/en.parquet") in files(other)
    assert "Data and pipelines are up to date." in run(other, "dvc", "status")
    said = run(other, "dvc", "repro")
    assert "Running stage" not in said
    assert "Data and pipelines are up to date." in said
    assert run(other, "git", "status", "--porcelain") == ""
