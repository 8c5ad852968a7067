"""The house as it is meant to stand, held by tests."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml
from imports import TOP, closure, derived, imported, names, stages, wanted

PARAMS = yaml.safe_load((TOP / "params.yaml").read_text(encoding="utf-8"))
STAGES = yaml.safe_load((TOP / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
DATASETS = sorted(PARAMS["datasets"] | PARAMS["derived"])
OURS = [
    p for package in ("builders", "validation", "probes") for p in (TOP / package).rglob("*.py")
]


def body(stage: str) -> dict:
    return STAGES[stage].get("do", STAGES[stage])


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_the_deps_of_a_stage_name_the_code_that_it_runs(stage):
    named = {d for d in body(stage)["deps"] if d.endswith(".py")}
    assert sorted(named) == wanted(stage), "python tests/imports.py prints them"


def test_a_dataset_made_of_datasets_is_a_stage_that_names_them():
    import importlib

    assert derived() == sorted(PARAMS["derived"])
    for dataset in derived():
        module = importlib.import_module(f"builders.{dataset}")
        inputs, deps = getattr(module, "INPUTS", ()), set(STAGES[dataset]["deps"])
        for source in getattr(module, "SOURCES", ()):
            assert f"${{derived.{dataset}.snapshots.{source}}}" in deps
        assert {f"data/datasets/{name}" for name in inputs} <= deps
        assert {f"data/validation/{name}.json" for name in inputs} <= deps


def test_every_stage_is_known_to_the_import_walk():
    assert set(STAGES) == set(stages())


def test_probes_depend_on_the_validation_of_their_datasets():
    for stage, deps in ((stage, body(stage)["deps"]) for stage in STAGES):
        for dataset in DATASETS:
            if f"data/datasets/{dataset}" in deps and stage != "validate":
                assert f"data/validation/{dataset}.json" in deps, stage


def made(entry: dict) -> int:
    """Return how many stages an entry of dvc.yaml stands for."""
    found = PARAMS
    for key in entry.get("foreach", "").strip("${}").split("."):
        found = found[key] if key else [None]
    return len(found)


def test_no_more_stages_than_dvc_makes_in_seconds():
    assert made(STAGES["build"]) == len(PARAMS["datasets"])
    assert made(STAGES["report"]) == 1
    assert sum(map(made, STAGES.values())) < 90  # to find nothing new takes a second for five


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_dataset_has_module_checks_page_test_and_floors_under_one_name(dataset):
    for path in (
        f"builders/{dataset}.py",
        f"validation/{dataset}.py",
        f"docs/datasets/{dataset}.md",
        f"tests/builders/test_{dataset}.py",
    ):
        assert (TOP / path).is_file(), path
    assert dataset in PARAMS["validation"]


@pytest.mark.parametrize("probe", sorted(PARAMS["probes"]))
def test_a_probe_has_module_page_and_test_under_one_name(probe):
    for path in (f"probes/{probe}.py", f"docs/probes/{probe}.md"):
        assert (TOP / path).is_file(), path
    assert list((TOP / "tests/probes").glob(f"test_*{probe}.py"))  # a dataset may have its name


@pytest.mark.parametrize("analysis", sorted(PARAMS["analysis"]))
def test_an_analysis_has_module_page_and_test_under_one_name(analysis):
    assert (TOP / f"probes/analysis/{analysis}.py").is_file()
    assert (TOP / f"docs/analyses/{analysis}.md").is_file()
    assert list((TOP / "tests/probes").glob(f"test_*{analysis}.py"))


@pytest.mark.parametrize("source", sorted(set(PARAMS["sources"]) - {"politeness"}))
def test_a_source_has_client_and_test_under_one_name(source):
    assert (TOP / f"builders/sources/{source}.py").is_file()
    assert (TOP / f"tests/sources/test_{source}.py").is_file()


def test_nothing_is_in_the_tree_that_params_do_not_name():
    assert names("builders") == DATASETS
    assert names("validation") == sorted(PARAMS["validation"])
    assert names("builders/sources") == sorted(set(PARAMS["sources"]) - {"politeness"})
    assert names("probes/analysis") == sorted(PARAMS["analysis"])


def test_there_is_no_drawer_for_odds_and_ends():
    assert not [p for p in OURS if p.stem in ("utils", "common", "helpers", "registry")]


# SentiVAE is a model of data, not one under study: building a dataset fits it. Torch is imported
# inside the fit, so that every other build and command does without.
# The latent-variable model of words is one of tables: torch runs its 40 fits in one program.
# A corpus is cleared of hate by a classifier that the user names; by default by none.
FITS_DATA = (
    "builders/lib/hate.py",
    "builders/lib/sentivae.py",
    "probes/stats/latent_program.py",
)


def inside(file) -> str:
    return file.relative_to(TOP).as_posix()


@pytest.mark.parametrize("file", OURS, ids=inside)
def test_imports_go_one_way(file):
    path, found = inside(file), imported(file)
    ours = {m.split(".")[0] for m in found}
    if path.startswith("builders/lib/"):
        reached = {m for m in found if m.split(".")[0] in ("builders", "validation", "probes")}
        assert all(m.startswith("builders.lib") for m in reached)
    elif path.startswith("builders/"):
        assert not ours & {"validation", "probes"}
    elif path.startswith("validation/"):
        assert "probes" not in ours
    if not path.startswith(("probes/models/", "probes/world/")) and path not in FITS_DATA:
        assert not ours & {"torch", "transformers"}
    if not path.startswith("validation/"):
        assert "great_expectations" not in ours
    if path.startswith("probes/stats/"):
        assert not [m for m in found if m.startswith(("probes", "builders")) and ".stats" not in m]


def test_builders_know_no_paths_clocks_or_network():
    for dataset in DATASETS:
        found = {m.split(".")[0] for m in imported(TOP / f"builders/{dataset}.py")}
        assert not found & {"requests", "urllib", "socket", "time", "os", "random", "subprocess"}


@pytest.mark.parametrize("command", ["builders", "validation", "probes"])
def test_help_answers_at_once(command):
    code = (
        "import sys, runpy\n"
        f"sys.argv = ['x', '--help']\n"
        f"try: runpy.run_module('{command}', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'polars', 'pandas', 'great_expectations', 'requests',"
        " 'pyarrow', 'datasets'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_generated_docs_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_params_of_the_default_run_have_no_problem(monkeypatch):
    from probes.check import check

    monkeypatch.chdir(TOP)
    check()


def test_the_sources_of_a_closure_are_found_through_functions_too():
    assert "builders/lib/treebank.py" in closure("builders.words")
    assert "probes/world/train.py" in closure("probes.models.weights")
    assert "probes/world/train.py" not in closure("probes.outputs")


def test_every_target_of_the_makefile_says_what_it_does():
    lines = (TOP / "Makefile").read_text(encoding="utf-8").splitlines()
    targets = [line for line in lines if re.match(r"^[a-z-]+:", line)]
    assert targets
    assert not [line for line in targets if "##" not in line]


def test_every_make_target_in_the_readme_exists():
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"`?make ([a-z-]+)`?\n?", (TOP / page).read_text("utf-8")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{page}: make {target}"


def test_direct_dependencies_are_pinned():
    import tomllib

    pins = {
        line.split("==")[0].lower().replace("_", "-")
        for line in (TOP / "constraints.txt").read_text("utf-8").splitlines()
        if "==" in line
    }
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [d for ds in project["optional-dependencies"].values() for d in ds]
    direct = {re.split(r"[\[<>=]", d)[0].lower() for d in [*project["dependencies"], *extras]}
    assert not {d.replace("_", "-") for d in direct} - pins
    assert "torch==2.13.0" in project["dependencies"]


def test_the_lock_was_made_with_the_code_that_is_here():
    import hashlib

    lock = yaml.safe_load((TOP / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    for name, stage in lock.items():
        for dep in stage["deps"]:
            if dep["path"].endswith(".py"):
                here = hashlib.md5((TOP / dep["path"]).read_bytes()).hexdigest()
                assert here == dep["md5"], f"{name}: {dep['path']}; run make repro, commit dvc.lock"


def test_the_lock_names_what_the_pipeline_names():
    # `dvc repro` leaves a stage alone that lost a dependency, and its lock keeps the old list: a
    # run from nothing would then write another lock.
    from dvc.repo import Repo

    lock = yaml.safe_load((TOP / "dvc.lock").read_text(encoding="utf-8"))["stages"]
    with Repo(str(TOP)) as repo:
        stages = {stage.addressing: stage for stage in repo.index.stages}
    assert set(stages) == set(lock)
    for name, stage in stages.items():
        for kind in ("deps", "outs"):
            named = {o.def_path for o in getattr(stage, kind) if not hasattr(o, "params")}
            locked = {o["path"] for o in lock[name].get(kind, [])}
            assert named == locked, f"{name}: {kind} {named ^ locked}; run dvc commit -f {name}"
