"""The wheel outside of a checkout, with its core dependencies only."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import PathDistribution, distribution, packages_distributions
from pathlib import Path

import pytest
from imports import TOP
from packaging.requirements import Requirement

pytestmark = pytest.mark.slow
BLOCKER = """
from importlib.machinery import PathFinder
names, find = frozenset({names!r}), PathFinder.find_spec
def found(name, path=None, target=None):
    return None if name.partition(".")[0] in names else find(name, path, target)
PathFinder.find_spec = found
"""


def told(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements):
    """Return the distributions that some requirements need, including extras."""
    found, todo = set(), [Requirement(text) for text in requirements]
    while todo:
        wanted = todo.pop()
        if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
            continue
        if (name := told(wanted.name)) in found:
            continue
        found.add(name)
        try:
            todo += [Requirement(text) for text in distribution(name).requires or ()]
        except Exception:  # noqa: BLE001 - of another platform
            continue
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return a folder with the wheel, and one with modules that hide packages outside the core."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", str(TOP), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *build], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    into = ["install", "--no-deps", "--target", str(folder / "site"), str(wheel)]
    subprocess.run([*pip, *into], check=True, capture_output=True)
    (facts,) = (folder / "site").glob("*.dist-info")
    core = closure(PathDistribution(facts).requires)
    owners = packages_distributions()
    absent = {
        module
        for module, owned in owners.items()
        if not {told(name) for name in owned} & {*core, "plumbline", "pip", "setuptools"}
    }
    assert {"dvc", "great_expectations", "spacy", "datasets", "matplotlib"} <= absent
    (folder / "blocked").mkdir()
    text = BLOCKER.format(names=sorted(absent))
    (folder / "blocked/sitecustomize.py").write_text(text, encoding="utf-8")
    return folder


def run(installed, *words, core=True):
    places = [installed / "site", *([installed / "blocked"] if core else [])]
    here = {"PYTHONPATH": os.pathsep.join(map(str, places))}
    command = [sys.executable, "-m", "plumbline", *words]
    return subprocess.run(
        command, env=os.environ | here, capture_output=True, text=True, check=False
    )


def test_it_has_every_sample_and_the_params_of_a_checkout(installed):
    inside = installed / "site/plumbline"
    listed = subprocess.run(
        ["git", "ls-files", "data/samples"], cwd=TOP, capture_output=True, text=True, check=True
    ).stdout.split()
    kept = [path for path in listed if not Path(path).name.startswith(".")]
    assert len(kept) > 200
    for path in kept:
        copy = inside / "project" / path
        assert copy.read_bytes() == (TOP / path).read_bytes(), path
    for path in ("probes/politicians/params.yaml", "validation/params.yaml"):
        assert (inside / path).read_bytes() == (TOP / path).read_bytes()
    tops = {path.name for path in (installed / "site").iterdir()}
    outside = {"builders", "probes", "validation", "tests", "calibration", "worlds"}
    assert not tops & outside


@pytest.mark.parametrize(
    ("study", "model"), [("stereotypes", "world-groups"), ("leaning", "world-leaning")]
)
def test_the_core_alone_answers(installed, study, model, elsewhere):
    done = run(installed, "run", study, "--model", model)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{model}: ")
    assert str(elsewhere) in done.stdout


def test_what_an_extra_has_is_named_where_it_is_missing(installed):
    done = run(installed, "run", "nationality", "--model", "world-names")
    assert done.returncode == 1
    wanted = "error: nationality: spacy is not installed; run pip install 'plumbline[nationality]'"
    assert done.stderr.splitlines()[-1] == wanted
    done = run(installed, "export", "politicians", "-m", "world-planted", "--to", "paper")
    assert done.stderr.splitlines()[-1].endswith("run pip install 'plumbline[report]'")
    done = run(installed, "data", "diff", "words", "0.1.0", "0.1.0")
    assert "Traceback" not in done.stderr


def test_with_its_extras_it_answers_the_study_of_names(installed):
    done = run(installed, "run", "nationality", "--model", "world-names", core=False)
    assert done.returncode == 0, done.stderr
