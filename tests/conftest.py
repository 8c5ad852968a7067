"""What all tests share: a project of one's own, built from the samples."""

from __future__ import annotations

import gc
import json
import os
import shutil
from pathlib import Path

import pytest
import whole
from filelock import FileLock

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("PLUMBLINE_CORES", "1")  # tests are side by side themselves, and stop things
TOP = Path(__file__).parent.parent
gc.set_threshold(100_000, 50, 100)  # seldom: what tests make is mostly gone without it
LONG = {  # minutes each: begun last, one process would be left with them and the other with nothing
    *("test_corruptions.py", "test_breakages.py", "test_breakages_studies.py"),
    *("test_controls_break.py", "test_benchmarks.py", "test_plant.py"),
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the files that take longest begin first."""
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Let garbage collection pass over what was imported: it is a sixth of the time of tests."""
    gc.freeze()


def copy_project(folder: Path) -> Path:
    """Copy what the commands read: params, pages, samples."""
    whole.write(folder)
    shutil.copytree(TOP / "docs", folder / "docs")
    samples = TOP / "data" / "samples"
    shutil.copytree(
        samples,
        folder / "data" / "samples",
        ignore=lambda at, names: ["worlds"] if Path(at) == samples else [],
    )
    link_worlds(folder)
    return folder


def link_worlds(folder: Path) -> None:
    """Put the planted worlds into a project, as links: none of them can be planted over."""
    (folder / "data" / "samples" / "worlds").mkdir()
    for world in (TOP / "data" / "samples" / "worlds").iterdir():
        (folder / "data" / "samples" / "worlds" / world.name).symlink_to(world)


def link_samples(folder: Path) -> None:
    """Put the samples into a project, as links, without the planted worlds."""
    (folder / "data" / "samples" / "worlds").mkdir(parents=True)
    for sample in (TOP / "data" / "samples").iterdir():
        if sample.name != "worlds":
            (folder / "data" / "samples" / sample.name).symlink_to(sample)


@pytest.fixture(autouse=True)
def _seeds(request):
    """Tell the seeds of a file, which are shown where a test of it fails."""
    for name, value in vars(request.module).items():
        if name.startswith("SEED"):
            print(name, value)


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """Return what makes a folder once for all processes that run tests side by side."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def made(name, make):
        folder, ready = shared / name, shared / f"{name}.ready"
        with FileLock(shared / f"{name}.lock"):
            if not ready.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                before = Path.cwd()
                os.chdir(folder)
                try:
                    make(folder)
                finally:
                    os.chdir(before)
                ready.touch()
        return folder

    return made


@pytest.fixture(scope="session")
def copying():
    """Return what copies a project of one's own into a folder, for fixtures of a wider scope."""
    return copy_project


@pytest.fixture(scope="session")
def linking():
    """Return what links the samples into a folder, without the planted worlds."""
    return link_samples


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty project with the samples, as the working folder."""
    monkeypatch.chdir(copy_project(tmp_path))
    return tmp_path


@pytest.fixture(scope="session")
def sample(once):
    """Return what builds a dataset of the sample, once, and returns its folder as it is."""
    import building

    from plumbline.builders.core import parquet
    from plumbline.builders.core.build import build

    def folder(name):
        def make(project):
            whole.write(project)
            link_samples(project)
            for needed in getattr(building.builder(name), "INPUTS", ()):
                made = shutil.copytree(folder(needed), project / parquet.DATASETS / needed)
                report = {"success": True, "fingerprint": parquet.fingerprint(made)}
                (project / parquet.VALIDATION).mkdir(parents=True, exist_ok=True)
                (project / parquet.VALIDATION / f"{needed}.json").write_text(json.dumps(report))
            build(name, building.builder(name))

        return once(f"sample-{name}", make) / parquet.DATASETS / name

    return folder


@pytest.fixture(scope="session")
def built(once):
    """A project in which some datasets are built and validated; not to be changed."""
    from plumbline.builders.core.build import build
    from plumbline.builders.datasets.emotions import build as emotions
    from plumbline.builders.datasets.politicians import build as politicians
    from plumbline.builders.datasets.supersenses import build as supersenses
    from plumbline.builders.datasets.words import build as words
    from plumbline.validation.run import validate

    def make(folder):
        copy_project(folder)
        for module in (emotions, politicians, supersenses, words):
            name = module.__name__.split(".")[-2]
            build(name, module)
            validate(name)

    return once("project", make)
