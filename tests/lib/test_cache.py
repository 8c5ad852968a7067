"""DVC's cache: an output that it lacks is an error, and the next run saves it."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dvc.lock import Lock
from lib.traced import dvc, run

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import write_manifest
from plumbline.builders.dvc.lock import HELD, here, is_cached
from plumbline.builders.dvc.track import track

MD5 = Path(".dvc/cache/files/md5")
OUTPUT = Path("data/datasets/toy")
PIPELINE = f"""
stages:
  build:
    wdir: ..
    cmd: mkdir -p {OUTPUT} && echo a word > {OUTPUT}/en.csv
    params: [words]
    outs: [{OUTPUT}]
"""


def look() -> subprocess.CompletedProcess[str]:
    """Run what `make repro` runs after DVC."""
    return run(sys.executable, "-m", "plumbline.builders.dvc.track", check=False)


def test_full_cache_is_an_error_until_the_output_is_saved(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("git", "init", "--quiet")
    dvc("init", "--quiet")
    Path("builders").mkdir()
    Path("builders/dvc.yaml").write_text(PIPELINE, "utf-8")
    Path("params.yaml").write_text("words: 3", "utf-8")
    dvc("repro", "builders/dvc.yaml")
    assert (look().returncode, look().stderr) == (0, "")
    for folder in (OUTPUT, ".dvc/cache"):
        shutil.rmtree(folder)
    full = MD5 / hashlib.md5(b"a word\n").hexdigest()[:2]
    full.parent.mkdir(parents=True)
    full.symlink_to("/nonexistent/disk")  # takes no copy of the file
    dvc("repro", "builders/dvc.yaml")  # DVC ends with status 0
    done = look()
    assert (done.returncode, done.stdout) == (1, "")
    assert str(OUTPUT) in done.stderr.splitlines()[-1]
    full.unlink()
    locked = Path("builders/dvc.lock").read_bytes()
    Path("params.yaml").write_text("words: 1", "utf-8")  # changed since
    assert look().returncode == 0
    assert all(is_cached(out) for stage in here() for out in stage.outs)
    assert Path("builders/dvc.lock").read_bytes() == locked
    (OUTPUT / "en.csv").write_text("of another commit")
    shutil.rmtree(MD5)
    Path("private").mkdir()
    Path("private/removed.txt").write_text("Q760", "utf-8")
    done = look()
    assert done.returncode == 0, "what is locked is not here"
    assert "Q760" in done.stderr, "no dataset has it"
    facts = dict.fromkeys(("source", "address", "retrieved", "licence", "citation"), "x")
    write_manifest(OUTPUT, facts | {"request": {"x": 1}, "counts": {}})
    with Lock(str(HELD)), pytest.raises(UserError, match="lock"):
        track(OUTPUT)  # while another process of DVC is at work
