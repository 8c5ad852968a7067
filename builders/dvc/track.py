"""Add snapshots to DVC, complete its cache, and detect stale results.

If DVC cannot copy an output to its cache, it ends with status 0 and does not try again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import yaml

from plumbline.builders.core import cli, private
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import MANIFEST, write_bytes
from plumbline.builders.dvc.lock import Item, here, is_cached, items

MADE = ("data/datasets", "data/validation", "data/models", "data/outputs", "data/tables")


def track(folder: Path) -> None:
    """Add a snapshot to DVC and write its provenance into the ``.dvc`` file's ``meta``.

    Temporary files of a killed fetch are removed first, since they may contain unmasked text.

    Raises UserError if the folder contains files that are not in the manifest, DVC fails, or its
    cache is full.
    """
    manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    for path in sorted(folder.rglob(".*")):
        remove(path)
    paths = (p for p in sorted(folder.rglob("*")) if p.is_symlink() or not p.is_dir())
    inside = [path.relative_to(folder).as_posix() for path in paths]
    if others := sorted({*inside} - {*manifest["files"], MANIFEST}):
        raise UserError(
            f"{folder}: contains {', '.join(others[:5])}, not listed in its manifest; remove "
            "them, then run the same fetch again"
        )
    _dvc("add", str(folder))  # without --quiet, which suppresses the reason of a failure
    pointer = folder.with_name(f"{folder.name}.dvc")
    tree = yaml.safe_load(pointer.read_text(encoding="utf-8"))
    keys = ("source", "address", "retrieved", "licence", "citation", "counts")
    tree["meta"] = {key: manifest[key] for key in keys}
    write_bytes(pointer, yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode())
    save(_added(pointer))


def save(outs: Iterable[Item]) -> None:
    """Copy outputs to DVC's cache if they match their lock and are not in the cache.

    Raises UserError if an output cannot be copied.
    """
    missing = [o for o in outs if Path(o.path).exists() and not is_cached(o)]
    if not missing:
        return
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    with Repo() as repo:
        folder = Path(repo.cache.local_cache_dir)  # set by the project, the user or the system
        outputs = {Path(out.fs_path): out for out in repo.index.outs}
        for item in missing:
            output = outputs.get(Path.cwd() / item.path)
            if not (output and output.use_cache) or is_cached(item, folder):
                continue
            if output.changed_checksum():  # it was edited, or belongs to another commit
                continue
            with suppress(DvcException, OSError), repo.lock:
                output.commit(relink=False)  # `dvc commit` would also lock changed dependencies
            if not is_cached(item, folder):
                raise UserError(
                    f"{item.path}: could not be saved in DVC's cache ({folder}); free some space "
                    "there and run the same command again"
                )


def _added(pointer: Path) -> tuple[Item, ...]:
    """Return the files and folders that a ``.dvc`` file tracks."""
    return items(pointer.parent, yaml.safe_load(pointer.read_text(encoding="utf-8")).get("outs"))


def save_all() -> None:
    """Cache all outputs and snapshots, and warn about removal entries that match no row."""
    pointers = sorted(Path("data/raw").glob("*/*.dvc"))
    made = [out for stage in here() for out in stage.cached]
    save(made + [out for pointer in pointers for out in _added(pointer)])
    private.warn_unmatched()


def stale() -> list[Path]:
    """Return the results on disk that no stage makes.

    DVC leaves them behind when an entry is removed from a ``foreach``.
    """
    graph = _dvc("dag", "--outs", "--full", "--dot")
    made = {Path(part) for part in graph.split('"') if part.startswith("data/")}
    keep = {parent for path in made for parent in [path, *path.parents]}
    idle = []
    for root in MADE:
        for path in sorted(Path(root).rglob("*")):
            if path.name == ".gitignore" or path in keep:
                continue
            if not any(parent in made or parent in idle for parent in path.parents):
                idle.append(path)
    return idle


def remove(path: Path) -> None:
    """Remove a stale result from disk, but not from DVC's cache."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)  # its folder may already have been removed


def _dvc(*arguments: str) -> str:
    command = [sys.executable, "-m", "dvc", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    if done.returncode:
        output = " ".join(f"{done.stdout} {done.stderr}".split())[-300:]
        raise UserError(f"dvc {arguments[0]} failed: {output}; run the same command again")
    return done.stdout


if __name__ == "__main__":
    sys.exit(cli.run(argparse.Namespace(command="save"), save_all))
