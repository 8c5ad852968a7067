"""Which files of the project a module imports, and which of them the deps of its stage cover."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import yaml

from plumbline.builders import DATASETS
from plumbline.probes import ALL, EACH, PROBES, STUDIES, module_of

TOP = Path(__file__).parent.parent
PACKAGE = "plumbline."
OUTSIDE = ("calibration", "worlds")  # use the package, which never uses them
# What tells of a run, or says how it is started, but changes no byte of what a stage writes.
NEUTRAL = {
    "builders/fetch/files.py",
    "builders/fetch/http.py",
    "builders/fetch/sparql.py",
    "builders/core/cli.py",
    "builders/core/errors.py",
    "builders/core/params.py",  # the values that a stage reads stand in its params
    "probes/core/assignments.py",
    "probes/core/ray_runner.py",
}


def ours() -> list[Path]:
    """Return the files of all modules of the package."""
    tops = ("builders", "validation", "probes", "plumbline", *OUTSIDE)
    return [file for top in tops for file in (TOP / top).rglob("*.py")]


@cache
def pipelines() -> dict[str, dict[str, dict]]:
    """Return the stages as written, by the path of the ``dvc.yaml`` that they stand in."""
    files = [TOP / "dvc.yaml", *sorted((TOP / "probes").glob("*/dvc.yaml"))]
    return {
        file.relative_to(TOP).as_posix(): yaml.safe_load(file.read_text("utf-8"))["stages"]
        for file in files
    }


@cache
def file_of(module: str) -> Path | None:
    """Return the file of one of our modules, or None for a foreign one."""
    if not module.startswith((PACKAGE, *OUTSIDE)):
        return None
    path = Path(*module.removeprefix(PACKAGE).split("."))
    alone = path.with_suffix(".py")
    for file in (alone, path / "__init__.py", "plumbline" / alone):
        if (TOP / file).is_file():
            return TOP / file
    return None


@cache
def imported(file: Path, *, types: bool = False) -> set[str]:
    """Return the dotted names that a file imports when it runs, in functions too."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if not types and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}: a relative import is not followed"
            assert node.module
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(file.read_text(encoding="utf-8")))
    return found


def closure(*modules: str) -> set[str]:
    """Return the paths of all files of ours behind some modules, faces of packages left out."""
    todo, seen = list(modules), set()
    while todo:
        file = file_of(todo.pop())
        if file is None or file in seen:
            continue
        seen.add(file)
        todo += imported(file)
    return {f.relative_to(TOP).as_posix() for f in seen if f.name != "__init__.py"}


@cache
def graph(*, types: bool) -> dict[str, set[str]]:
    """Return which files of ours each file of ours imports, for circles with types alone too."""
    found = {}
    for file in ours():
        targets = {file_of(module) for module in imported(file, types=types)}
        found[file.relative_to(TOP).as_posix()] = {
            t.relative_to(TOP).as_posix()
            for t in targets
            if t is not None and t != file and t.name != "__init__.py"
        }
    return found


def entries(stage: str) -> list[str]:
    """Return the modules that a stage runs."""
    name = stage.partition("@")[0].removesuffix("-controls").removesuffix("-pooled")
    builders, validation, probes = (f"{PACKAGE}{p}" for p in ("builders", "validation", "probes"))
    own = {
        "cards": [f"{builders}.release.card"],
        "weights": [f"{probes}.models.load"],
        "pretrain": [f"{probes}.training.pretrain"],
        "report": [
            f"{probes}.site.build",
            *(f"{probes}.{study}.page" for study in ("politicians", "stereotypes", "leaning")),
        ],
        "recovery": [
            f"{probes}.controls.compare",
            *(f"{probes}.{study}.recovery" for study in STUDIES),
        ],
        "waves": [f"{probes}.stereotypes.waves"],
    }
    if name in own:
        return own[name]
    if name == "build":
        return [f"{builders}.core.build"]
    if name in DATASETS and name not in {*PROBES, *EACH, *ALL}:
        return [f"{builders}.core.build", f"{builders}.datasets.{name}.build"]
    if name.startswith("validate"):
        return [f"{validation}.run", *(f"{validation}.datasets.{d}" for d in DATASETS)]
    runner = "run_probe" if name in PROBES else "run_analysis"
    return [f"{probes}.core.{runner}", module_of(name)]


def uncovered(stage: str, deps: list[str]) -> set[str]:
    """Return the files that a stage runs and that no dep of its, file or folder, covers."""
    behind = closure(*entries(stage)) - NEUTRAL
    if stage.startswith("validate-"):  # these validate some datasets alone
        named = {d for d in deps if d.startswith("validation/datasets/")}
        behind = {f for f in behind if not f.startswith("validation/datasets/") or f in named}
    return {
        file
        for file in behind
        if not any(file == dep or file.startswith(f"{dep}/") for dep in deps)
    }


if __name__ == "__main__":
    for path, written in pipelines().items():
        for stage, entry in written.items():
            lacking = uncovered(stage, entry.get("do", entry)["deps"])
            if lacking:
                print(path, stage, *sorted(lacking), sep="\n  ")
