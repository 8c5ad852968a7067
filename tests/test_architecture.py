"""The house as it is meant to stand, held by tests."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache

import networkx as nx
import pytest
import whole
import yaml
from imports import (
    NEUTRAL,
    OUTSIDE,
    TOP,
    closure,
    graph,
    imported,
    ours,
    pipelines,
    reading,
    uncovered,
)

from plumbline.builders import DATASETS
from plumbline.probes import ACROSS, ALL, ASIDE, EACH, PROBES, STUDIES, module_of

PARAMS = whole.tree()
PIPELINES = pipelines()
STAGES = {name: entry for written in PIPELINES.values() for name, entry in written.items()}
OURS = ours()
# A folder may import those on its own floor's line and below. A line is a floor.
FLOORS = (
    ("builders/core",),
    ("builders/readers", "builders/fetch", "builders/dvc"),
    ("builders/datasets",),
    ("builders/release", "validation"),
    ("builders/versions",),
    ("builders/__main__.py", "probes/models/kernels"),
    ("probes/models",),
    ("probes/training",),
    ("probes/core",),
    ("probes/prompts", "probes/stats", "probes/report"),
    ("probes/controls",),
    tuple(f"probes/{study}" for study in STUDIES),
    tuple(f"probes/{folder}" for folder in (*ACROSS, *ASIDE)),
    ("probes/site", "probes/commands"),
    ("probes/__main__.py",),
    ("plumbline",),
    OUTSIDE,
)
# Folders of more than 15 files, faces of packages and locks left out. A number may only fall.
LARGE = {"plumbline": 18, "probes/leaning": 19, "probes/politicians": 17, "probes/stereotypes": 17}


def body(stage: str) -> dict:
    return STAGES[stage].get("do", STAGES[stage])


def inside(file) -> str:
    return file.relative_to(TOP).as_posix()


def test_the_deps_of_a_stage_cover_the_code_that_it_runs():
    lacking = {stage: uncovered(stage, body(stage)["deps"]) for stage in STAGES}
    assert {k: v for k, v in lacking.items() if v} == {}, "python tests/imports.py lists them"


def test_the_deps_of_a_stage_are_there_and_no_page_of_docs_but_for_the_cards():
    deps = [(stage, dep) for stage in STAGES for dep in body(stage)["deps"]]
    of_git = [(s, d) for s, d in deps if not d.startswith("data/") and "$" not in d]
    assert [(s, d) for s, d in of_git if not (TOP / d).exists()] == []
    assert {s for s, d in deps if d.startswith("docs")} <= {"cards"}


def test_what_no_stage_depends_on_is_ignored_by_dvc():
    ignored = (TOP / ".dvcignore").read_text("utf-8").splitlines()
    assert {f"/{path}" for path in NEUTRAL} <= set(ignored)


def test_probes_depend_on_the_validation_of_their_datasets():
    for stage in STAGES:
        deps = body(stage)["deps"]
        for dataset in DATASETS:
            if f"data/datasets/{dataset}" in deps and not stage.startswith("validate"):
                assert f"data/validation/{dataset}.json" in deps, stage


def test_the_pipeline_is_short():
    written = sum(len((TOP / path).read_text("utf-8").splitlines()) for path in PIPELINES)
    locks = sum(
        len((TOP / path).with_suffix(".lock").read_text("utf-8").splitlines()) for path in PIPELINES
    )
    assert written <= 600
    assert locks <= 6_000
    assert len((TOP / "params.yaml").read_text("utf-8").splitlines()) <= 200


def test_a_name_is_that_of_one_stage_in_one_file():
    assert sum(map(len, PIPELINES.values())) == len(STAGES)


def test_make_finds_the_file_that_a_stage_stands_in():
    asked = "--force pmi-controls@sample build validate report probes/leaning/dvc.yaml:compass"
    command = ["make", "--no-print-directory", "--dry-run", "--assume-old=.venv/ready", "repro"]
    command.append(f"STAGE={asked}")
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=True)
    *_, repro, look = done.stdout.splitlines()
    assert look == "python -m plumbline.builders.dvc.track"  # DVC does not report a full cache
    assert repro == (
        "dvc repro --force probes/politicians/dvc.yaml:pmi-controls@sample dvc.yaml:build"
        " dvc.yaml:validate dvc.yaml:report probes/leaning/dvc.yaml:compass"
    )


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_dataset_has_folder_checks_page_test_and_floors_under_one_name(dataset):
    for path in (
        f"builders/datasets/{dataset}/build.py",
        f"validation/datasets/{dataset}.py",
        f"docs/datasets/{dataset}.md",
        f"tests/builders/test_{dataset}.py",
    ):
        assert (TOP / path).is_file(), path
    assert dataset in PARAMS["validation"]
    assert dataset in PARAMS["datasets"] | PARAMS["derived"]


def test_a_probe_or_analysis_is_a_module_of_a_study_with_a_stage():
    for name in (*PROBES, *EACH, *ALL):
        assert importlib.import_module(module_of(name)).SCHEMAS, name
        assert name in STAGES


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_has_its_page_params_stages_and_recovery(study):
    folder = TOP / "probes" / study
    for path in ("page.py", "params.yaml", "dvc.yaml"):
        assert (folder / path).is_file(), path
    assert (folder / "recovery.py").is_file() or (folder / "recovery/recovery.py").is_file()
    assert (TOP / f"docs/studies/{study}.md").is_file()
    assert f"probes/{study}/page.yaml" in body("report")["deps"], "what is shown hangs on it"


def floor(path: str) -> int:
    for number, names in enumerate(FLOORS):
        if any(path == name or path.startswith(f"{name}/") for name in names):
            # a longer name has the file: probes/models/kernels before probes/models
            return number
    return -1  # the face of a package


def test_every_module_has_a_floor():
    assert [p for p in map(inside, OURS) if floor(p) < 0 and not p.endswith("__init__.py")] == []


def test_arrows_go_down_only():
    arrows = [(a, b) for a, to in graph(types=True).items() if floor(a) >= 0 for b in to]
    assert [(a, b) for a, b in arrows if floor(b) > floor(a)] == []
    rooms = [(a, b, {a.split("/")[1], b.split("/")[1]}) for a, b in arrows]
    assert [(a, b) for a, b, of in rooms if len(of) > 1 and of <= {*STUDIES}] == []


def test_there_are_no_import_circles():
    drawn = nx.DiGraph([(a, b) for a, targets in graph(types=True).items() for b in targets])
    assert [c for c in nx.strongly_connected_components(drawn) if len(c) > 1] == []


def test_an_analysis_reaches_no_model_and_no_control():
    for name in (*EACH, *ALL):
        behind = closure(module_of(name))
        behind -= {"probes/models/scorer.py", "probes/models/params.py"}  # contracts, without torch
        assert not {p for p in behind if p.startswith(("probes/models/", "worlds/"))}, name
        assert not {p for p in behind if "/recovery" in p}, name


def test_recovery_shares_no_number_with_what_it_controls():
    arrows = graph(types=False)
    for study in STUDIES:
        behind = closure(f"plumbline.probes.{study}.recovery")
        own = {p for p in behind if p.startswith(f"probes/{study}/")}
        own -= {p for p in own if p.startswith(f"probes/{study}/recovery/")}
        free = {f"probes/{study}/{name}.py" for name in ("recovery", "schemas")}  # declarations
        # schemas of leaning have labels of scoring, which no recovery imports itself
        assert own - free <= {"probes/leaning/scoring.py"}, study
        assert not {b for a in arrows if "/recovery" in a for b in arrows[a]} & (own - free), study


def test_a_folder_is_small_and_a_file_a_whole_step():
    files = (f for folder in {p.parent for p in OURS} for f in folder.iterdir())
    files = (f for f in files if f.is_file() and f.name not in ("__init__.py", "dvc.lock"))
    held = Counter(inside(f.parent) for f in files)
    held.pop("validation/datasets")  # a file of checks for each dataset
    assert {folder: n for folder, n in held.items() if n > 15} == LARGE
    assert not [p for p in OURS if re.match("_[a-z]", p.stem)]
    assert not [p for p in OURS if p.stem in ("utils", "common", "helpers", "registry")]


# one over all studies reads columns of outputs alone: who reads it needs no probe and no builder
@pytest.mark.parametrize("analysis", [a for a in (*EACH, *ALL) if a not in ACROSS])
def test_an_analysis_is_read_in_25_modules(analysis):
    assert len(reading(analysis)) <= 25


# SentiVAE and the latent-variable model are models of data, not ones under study. A corpus is
# cleared of hate by a classifier that the user names; by default by none.
FITS_DATA = ("corpora/hate_filter.py", "lexica/sentivae.py", "politicians/latent_model.py")


def test_heavy_libraries_stand_where_they_work():
    models = ("probes/models/", "probes/training/", "worlds/", "probes/commands/cost.py")
    outside = {"requests", "urllib", "socket", "time", "os", "random", "subprocess"}
    for file in OURS:
        path, found = inside(file), {m.split(".")[0] for m in imported(file)}
        refused = set()
        if not path.startswith(models) and not path.endswith(FITS_DATA):
            refused |= {"torch", "transformers"}
        if not path.startswith("validation/"):
            refused |= {"great_expectations"}
        if path.startswith("builders/datasets/") and path.endswith("/build.py"):
            refused |= outside  # a builder knows no paths, clocks or network
        assert found & refused == set(), path


@pytest.mark.parametrize("command", ["builders", "validation", "probes"])
def test_help_answers_at_once(command):
    code = (
        "import sys, runpy\n"
        "sys.argv = ['x', '--help']\n"
        f"try: runpy.run_module('plumbline.{command}', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'polars', 'pandas', 'great_expectations', 'requests',"
        " 'pyarrow', 'datasets'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_params_of_the_default_run_have_no_problem(monkeypatch):
    from plumbline.probes.commands.check_params import check

    monkeypatch.chdir(TOP)
    check()


def test_a_closure_goes_through_functions_too():
    assert "builders/datasets/words/conllu.py" in closure("plumbline.builders.datasets.words.build")
    assert "probes/core/ray_runner.py" in closure("plumbline.probes.core.run_probe")


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


def pins(*names: str) -> set[str]:
    found: set[str] = set()
    for name in names:
        text = (TOP / f"requirements/{name}.txt").read_text("utf-8")
        assert all("--hash=sha256:" in entry for entry in re.split(r"\n(?=\S)", text.strip()))
        found |= {n.lower() for n in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    return found


UNLOCKED = ("lm-eval",)  # of users alone: no job of ours installs it
LOCKS = {"segmentation": "test", "remote": "test"}  # of extras that another lock has
CORE = ("nationality", "report", "fetch", "pipeline")  # extras that a checkout has in its main lock


def test_what_is_declared_is_locked_with_hashes_and_the_main_job_has_no_test_tools():
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]

    def direct(names):
        return {re.sub(r"[._]", "-", re.split(r"[\[<>=]", name)[0].lower()) for name in names}

    assert direct(project["dependencies"]) <= pins("main")
    for extra in project["optional-dependencies"].keys() - set(UNLOCKED):
        names = project["optional-dependencies"][extra]
        lock = ("main",) if extra in CORE else ("main", LOCKS.get(extra, extra))
        assert direct(names) - {"plumbline"} <= pins(*lock), extra
    assert not pins("main") & {"pytest", "ray", "moto", "boto3", "botocore", "mypy", "zensical"}


def test_the_bill_of_materials_has_every_locked_package_and_the_same_bytes():
    command = [sys.executable, "requirements/sbom.py"]
    bills = [subprocess.run(command, cwd=TOP, capture_output=True, check=True) for _ in "ab"]
    assert bills[0].stdout == bills[1].stdout
    listed = {one["name"]: one for one in json.loads(bills[0].stdout)["components"]}
    names = pins(*(path.stem for path in (TOP / "requirements").glob("*.txt")))
    assert {re.sub(r"[._]", "-", name) for name in names} == set(listed)
    assert all("plumbline:sha256" in str(one["properties"]) for one in listed.values())


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
    for name, stage in locked().items():
        for dep in stage["deps"]:
            if dep["path"].endswith((".py", ".yaml")):
                here = hashlib.md5((TOP / dep["path"]).read_bytes()).hexdigest()
                assert here == dep["md5"], f"{name}: {dep['path']}; run make repro, commit dvc.lock"


@pytest.mark.filterwarnings("ignore:_NoneStep:DeprecationWarning")  # of pygtrie
def test_the_lock_names_what_the_pipeline_names():
    # `dvc repro` leaves a stage alone that lost a dependency, and its lock keeps the old list: a
    # run from nothing would then write another lock.
    from dvc.repo import Repo

    lock = locked()
    with Repo(str(TOP)) as repo:
        stages = {f"{stage.path_in_repo}:{stage.name}": stage for stage in repo.index.stages}
        drawn = repo.index.graph
    assert set(stages) == set(lock)
    assert len(stages) <= 55
    for name, stage in stages.items():
        for kind in ("deps", "outs"):
            named = {o.def_path for o in getattr(stage, kind) if not hasattr(o, "params")}
            written = {o["path"] for o in lock[name].get(kind, [])}
            assert named == written, f"{name}: {kind} {named ^ written}; run dvc commit -f {name}"
    # `dvc repro` runs the dvc.yaml at the top and what it needs: that must be everything.
    top = {stage for name, stage in stages.items() if name.startswith("dvc.yaml:")}
    run = top.union(*(nx.descendants(drawn, stage) for stage in top))
    assert run == set(stages.values())
