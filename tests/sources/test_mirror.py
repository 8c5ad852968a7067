"""Mirrors: the names of their files are wget's; triples and answers of engines are read as well."""

import gzip
import importlib
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from samples import (
    DAY,
    FACTS,
    POLITE,
    SAMPLES,
    TOP,
    files,
    wikidata_params,
)

from plumbline.builders import client_of
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, Snapshot
from plumbline.builders.datasets.politicians import fetch as wikidata
from plumbline.builders.fetch.http import Reading, find, get

SHARED = TOP.parent / "shared" / "data"
DECLARED = yaml.safe_load((TOP / "benchmarks/shared.yaml").read_text("utf-8"))["sources"]


def everything(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (MANIFEST, "request.json", ".request.json")
    }


@pytest.mark.skipif(not shutil.which("wget"), reason="wget is not installed")
@pytest.mark.parametrize(
    "asked", ["list.csv", "a%20b/list.csv", "list.csv?q=why%20so&hl=en", "%C3%A9"]
)
def test_find_files_that_wget_wrote(tmp_path, asked):
    site = tmp_path / "site"
    for name in ("list.csv", "a b/list.csv", "a b/index.html", "index.html", "é"):
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(f"this is {name}", "utf-8")
    with files(site) as address:
        url = f"{address}/{asked}"
        expected = get(url, POLITE, lambda _: None)
        words = f"wget --quiet --force-directories --directory-prefix {tmp_path}/m"
        subprocess.run([*words.split(), url], check=True)
    assert find(tmp_path / "m", url).read_bytes() == expected
    assert get(url, Reading(mirror=tmp_path / "m"), lambda _: None) == expected


@pytest.mark.parametrize(
    "url", ["a.example/../../secret", "a.example/%2e%2e/%2e%2e/secret", "../secret"]
)
def test_find_stays_inside_the_mirror(tmp_path, url):
    (tmp_path / "secret").write_text("x", "utf-8")
    (tmp_path / "mirror" / "a.example").mkdir(parents=True)
    with pytest.raises(UserError):
        find(tmp_path / "mirror", f"https://{url}")


def test_wikidata_is_read_from_triples(tmp_path):
    folder, into = tmp_path / "mirror" / "query.invalid" / "sparql", tmp_path / DAY
    folder.mkdir(parents=True)
    for path in FACTS:
        (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    params = wikidata_params("https://query.invalid/sparql")
    wikidata.fetch(params, Reading(mirror=tmp_path / "mirror"), into)
    assert everything(into) == everything(SAMPLES / "wikidata" / DAY)
    manifest = Snapshot.open(into).manifest
    assert manifest["address"] == "https://query.invalid/sparql"
    assert manifest["request"]["mirror"] is True


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="no shared data beside the checkout")
@pytest.mark.parametrize("source", sorted({*DECLARED} - {"wikidata", "news"}))
def test_fetch_real_inputs_from_a_mirror(tmp_path, source):
    (tmp_path / "mirror").mkdir()
    (tmp_path / "mirror" / "shared").symlink_to(SHARED.parent)
    module = importlib.import_module(client_of(source))
    params = module.Params(**DECLARED[source])
    module.fetch(params, Reading(mirror=tmp_path / "mirror"), tmp_path / DAY)
    found = Snapshot.open(tmp_path / DAY).manifest
    assert found["request"]["mirror"] is True
    assert found["files"]
