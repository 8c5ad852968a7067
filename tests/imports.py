"""Which files of the project a module really imports, read from its source."""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path

import yaml

from plumbline.probes import ALL, EACH, PROBES

TOP = Path(__file__).parent.parent
PACKAGES = ("builders", "validation", "probes")


@cache
def pipelines() -> dict[str, dict[str, dict]]:
    """Return the stages as written, by the path of the ``dvc.yaml`` that they stand in."""
    files = [p for package in PACKAGES for p in sorted((TOP / package).rglob("dvc.yaml"))]
    return {
        file.relative_to(TOP).as_posix(): yaml.safe_load(file.read_text("utf-8"))["stages"]
        for file in [TOP / "dvc.yaml", *files]
    }


@cache
def file_of(module: str) -> Path | None:
    """Return the file of one of our modules, or None for a foreign one."""
    if module.split(".", maxsplit=1)[0] not in PACKAGES:
        return None
    path = TOP.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.is_file():
            return file
    return None


@cache
def imported(file: Path) -> set[str]:
    """Return the dotted names that a file imports when it runs, in functions too."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(file.read_text(encoding="utf-8")))
    return found


def closure(*modules: str) -> set[str]:
    """Return the paths of all files of ours behind some modules, empty ``__init__`` left out."""
    todo, seen = list(modules), set()
    while todo:
        file = file_of(todo.pop())
        if file is None or file in seen:
            continue
        seen.add(file)
        todo += imported(file)
    return {
        file.relative_to(TOP).as_posix()
        for file in seen
        if file.name != "__init__.py" or imported(file)
    }


def names(folder: str) -> list[str]:
    """Return the modules of a folder that are neither private nor the folder's machinery."""
    machinery = {"run", "suite"}
    found = (p.stem for p in (TOP / folder).glob("*.py"))
    return sorted(n for n in found if not n.startswith("_") and n not in machinery)


@cache
def derived() -> list[str]:
    """Return the datasets made of datasets or of several snapshots: each is a stage of its own."""
    modules = {d: importlib.import_module(f"builders.{d}") for d in names("builders")}
    return [d for d, m in modules.items() if hasattr(m, "INPUTS") or hasattr(m, "SOURCES")]


@cache
def stages() -> dict[str, dict[str, set[str]]]:
    """Return for every stage, and every dataset it is made for, the files that it runs."""
    datasets = names("builders")
    return {
        "build": {
            d: closure("builders.lib.dataset", f"builders.{d}")
            for d in datasets
            if d not in derived()
        },
        **{d: {"": closure("builders.lib.dataset", f"builders.{d}")} for d in derived()},
        "validate": {
            d: closure("validation.run", f"validation.{d}", f"builders.{d}") for d in datasets
        },
        "drift": {"": closure("builders.lib.drift", "builders.stereotypes")},
        "weights": {"": closure("probes.models.weights")},
        "pretrain": {"": closure("probes.pretrain")},
        **{p: {"": closure("probes.outputs", f"probes.{p}")} for p in PROBES},
        **{a: {"": closure("probes.tables", f"probes.analysis.{a}")} for a in [*EACH, *ALL]},
        "report": {"": closure("probes.report")},
    }


def wanted(stage: str) -> list[str]:
    """Return the code that a stage's deps must name: a dataset's own module as ``${key}``."""
    lines: set[str] = set()
    for dataset, files in stages()[stage].items():
        own = {f"builders/{dataset}.py", f"validation/{dataset}.py"}
        lines |= {f.replace(f"{dataset}.py", "${key}.py") if f in own else f for f in files}
    return sorted(lines)


if __name__ == "__main__":
    for stage in stages():
        where = [path for path, written in pipelines().items() if stage in written]
        print(stage, *where, *(f"        - {file}" for file in wanted(stage)), sep="\n")
