"""The house as it is meant to stand, held by tests."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import pytest
import yaml
from imports import TOP, closure, derived, imported, names, pipelines, stages, wanted

PARAMS = yaml.safe_load((TOP / "params.yaml").read_text(encoding="utf-8"))
PIPELINES = pipelines()
STAGES = {name: entry for written in PIPELINES.values() for name, entry in written.items()}
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
    """Return how many stages an entry of a dvc.yaml stands for."""
    found = PARAMS
    for key in entry.get("foreach", "").strip("${}").split("."):
        found = found[key] if key else [None]
    return len(found)


def test_no_lock_is_so_long_that_to_write_it_takes_longer_than_most_stages():
    # After each stage that ran, DVC reads and writes the dvc.lock beside its dvc.yaml: in pure
    # Python, half a second for a thousand lines. A file with more stages is split by folder.
    assert made(STAGES["build"]) == len(PARAMS["datasets"])
    assert made(STAGES["report"]) == 1
    for path, written in PIPELINES.items():
        assert sum(map(made, written.values())) < 50, path


def test_a_name_is_that_of_one_stage_in_one_file():
    assert sum(map(len, PIPELINES.values())) == len(STAGES)


@pytest.mark.parametrize("path", sorted(PIPELINES))
def test_stages_run_at_the_top_and_read_its_params(path):
    up = "/".join([".."] * path.count("/"))
    tree = yaml.safe_load((TOP / path).read_text("utf-8"))
    assert tree.get("vars", []) == ([f"{up}/params.yaml"] if up else [])
    assert {body(stage).get("wdir", "") for stage in tree["stages"]} == {up}


def test_make_finds_the_file_that_a_stage_stands_in():
    asked = "--force weights@world-null build validate@words report probes/dvc.yaml:stereotypes"
    command = ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/ready", "repro"]
    command.append(f"STAGE={asked}")
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == (
        "dvc repro --force probes/models/dvc.yaml:weights@world-null builders/dvc.yaml:build"
        " validation/dvc.yaml:validate@words dvc.yaml:report probes/dvc.yaml:stereotypes"
    )


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
    "builders/datasets/corpora/hate_filter.py",
    "builders/datasets/lexica/sentivae.py",
    "probes/politicians/latent_program.py",
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
    from plumbline.probes.commands.check_params import check

    monkeypatch.chdir(TOP)
    check()


def test_the_sources_of_a_closure_are_found_through_functions_too():
    assert "builders/datasets/words/conllu.py" in closure("builders.words")
    assert "probes/worlds/politicians.py" in closure("probes.models.weights")
    assert "probes/worlds/politicians.py" not in closure("probes.outputs")


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


@cache
def locked() -> dict[str, dict]:
    """Return the entries of all locks by the address of their stage."""
    return {
        f"{path}:{name}": entry
        for path in PIPELINES
        for name, entry in yaml.safe_load(
            (TOP / path).with_suffix(".lock").read_text(encoding="utf-8")
        )["stages"].items()
    }


def test_the_lock_was_made_with_the_code_that_is_here():
    import hashlib

    for name, stage in locked().items():
        for dep in stage["deps"]:
            if dep["path"].endswith(".py"):
                here = hashlib.md5((TOP / dep["path"]).read_bytes()).hexdigest()
                assert here == dep["md5"], (
                    f"{name}: {dep['path']}; run make repro, commit every dvc.lock"
                )


@pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # of pygtrie
def test_the_lock_names_what_the_pipeline_names():
    # `dvc repro` leaves a stage alone that lost a dependency, and its lock keeps the old list: a
    # run from nothing would then write another lock.
    import networkx as nx
    from dvc.repo import Repo

    lock = locked()
    with Repo(str(TOP)) as repo:
        stages = {f"{stage.path_in_repo}:{stage.name}": stage for stage in repo.index.stages}
        graph = repo.index.graph
    assert set(stages) == set(lock)
    for name, stage in stages.items():
        for kind in ("deps", "outs"):
            named = {o.def_path for o in getattr(stage, kind) if not hasattr(o, "params")}
            written = {o["path"] for o in lock[name].get(kind, [])}
            assert named == written, f"{name}: {kind} {named ^ written}; run dvc commit -f {name}"
    # `dvc repro` runs the dvc.yaml at the top and what it needs: that must be everything.
    top = {stages[f"dvc.yaml:{name}"] for name in PIPELINES["dvc.yaml"]}
    run = top.union(*(nx.descendants(graph, stage) for stage in top))
    assert run == set(stages.values())
