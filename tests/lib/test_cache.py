"""DVC's cache: an output that it lacks is an error, and the next run saves it."""

import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import yaml
from lib import traced

from plumbline.builders.dvc import cache
from plumbline.builders.dvc.lock import entries, here

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
    place = MD5 / cache.md5_of(path)[:2]
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
    assert all(cache.stored(out) for stage in here() for out in stage.outs)
    assert Path("builders/dvc.lock").read_bytes() == locked
    pl.DataFrame({"word": ["of another commit"]}).write_parquet(built)
    shutil.rmtree(MD5)
    Path("private").mkdir()
    Path("private/removed.txt").write_text("Q760", "utf-8")
    done = look()
    assert done.returncode == 0, "what is locked is not here"
    assert "Q760" in done.stderr, "no dataset has it"


def test_entries_tells_outputs_that_dvc_does_not_cache():
    stages = {"count": {"outs": [{"facts": {"cache": False}}, "rows", {"more": {"persist": True}}]}}
    locked = {"count": {"outs": [{"path": n, "md5": n} for n in ("facts", "rows", "more")]}}
    text, pipeline = (yaml.safe_dump({"stages": tree}) for tree in (locked, stages))
    (stage,) = entries("probes/dvc.lock", text, pipeline)
    assert [out.path for out in stage.outs if out.path in stage.plain] == ["probes/facts"]


def test_fetch_into_full_cache_is_an_error_until_it_fits():
    Path("groups.csv").write_text("category,group,name,kind\nage,old,old,people\n", "utf-8")
    groups = {"files": {"en": "groups.csv"}, "licence": "CC0-1.0", "citation": "tests"}
    polite = {"contact": "tests@example.org"}
    tree = {"sources": {"politeness": polite, "social_groups": groups}}
    Path("params.yaml").write_text(yaml.safe_dump(tree), "utf-8")
    words = [sys.executable, "-m", "plumbline.builders", "fetch", "social_groups"]
    full = fill(Path("groups.csv"))
    done = traced.run(*words, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "data/raw/social_groups/" in done.stderr
    full.unlink()
    assert traced.run(*words).returncode == 0
    assert (full / cache.md5_of(Path("groups.csv"))[2:]).is_file()
