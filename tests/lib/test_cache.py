"""DVC's cache: an output that it lacks is an error, and the next run saves it."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from lib import traced

from plumbline.builders.dvc.lock import here, is_cached

MD5 = Path(".dvc/cache/files/md5")


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    traced.start()


def look() -> subprocess.CompletedProcess[str]:
    """Run what `make repro` runs after DVC."""
    return traced.run(sys.executable, "-m", "plumbline.builders.dvc.track", check=False)


def fill(path: Path) -> Path:
    """Let DVC's cache take no copy of a file, as on a full disk."""
    place = MD5 / hashlib.md5(path.read_bytes()).hexdigest()[:2]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to("/nonexistent/disk")
    return place


def test_full_cache_is_an_error_until_the_output_is_saved():
    build, built = "builders/dvc.yaml:build@toy", Path(traced.DATASET, "en.parquet")
    traced.repro(build)
    assert (look().returncode, look().stderr) == (0, "")
    body = built.read_bytes()
    for folder in (traced.DATASET, ".dvc/cache"):
        shutil.rmtree(folder)
    Path("en.parquet").write_bytes(body)
    full = fill(Path("en.parquet"))
    traced.repro(build)  # DVC ends with status 0
    done = look()
    assert (done.returncode, done.stdout) == (1, "")
    assert traced.DATASET in done.stderr.splitlines()[-1]
    full.unlink()
    locked = Path("builders/dvc.lock").read_bytes()
    Path("params.yaml").write_text("datasets: {toy: {words: 1}}", "utf-8")  # changed since
    assert look().returncode == 0
    assert all(is_cached(out) for stage in here() for out in stage.outs)
    assert Path("builders/dvc.lock").read_bytes() == locked
    pl.DataFrame({"word": ["of another commit"]}).write_parquet(built)
    shutil.rmtree(MD5)
    Path("private").mkdir()
    Path("private/removed.txt").write_text("Q760", "utf-8")
    done = look()
    assert done.returncode == 0, "what is locked is not here"
    assert "Q760" in done.stderr, "no dataset has it"
