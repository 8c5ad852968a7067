"""Set up a folder in which the pipeline runs for one model, without a checkout or DVC.

The folder has the layout of the project: params, samples, datasets, outputs and tables. Datasets of
the bundled samples are built and validated once, and shared by all such folders.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from filelock import FileLock

from plumbline.builders import DATASETS
from plumbline.builders.core import front_matter, params, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import write_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PACKAGE = Path(__file__).parent
# These are top-level folders in a checkout, but belong to the installed package.
FOLDERS = {
    name: Path(importlib.import_module(f"plumbline.{name}").__path__[0])
    for name in ("builders", "probes", "validation")
}
# the folder that contains params.yaml and data/samples
PROJECT = next(p for p in (PACKAGE / "project", PACKAGE.parent) if (p / "params.yaml").is_file())
SAMPLES = PROJECT / "data/samples"
WORLDS = SAMPLES / "worlds"  # contains one folder for each control model
# the sha256 of each sample dataset that passed its validation
VALIDATED = SAMPLES / "validated.json"
HOME = "PLUMBLINE_HOME"
LOCK = threading.RLock()  # the threads of a process share its working directory
BUILDING = ".building.lock"
DIGESTS = Path("data/brought.json")  # the sha256 of each dataset supplied by the user
# sections to which keys may be added; elsewhere a key must exist
OPEN = (["models"], ["assignments"], ["training", "pretrain", "corpora"])


def home() -> Path:
    """Return the folder for datasets, outputs and tables: PLUMBLINE_HOME or the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(HOME) or Path(cache) / "plumbline").absolute()


class Workspace:
    """A folder whose params select one model.

    Parameters
    ----------
    folder
        Folder to create or update.
    changes
        Params that differ from the package's defaults, by dotted key.
    datasets
        Folders of built datasets, or ids of published ones, used instead of the samples.
    """

    def __init__(
        self,
        folder: Path,
        changes: Mapping[str, Any],
        datasets: Mapping[str, str | Path] | None = None,
    ) -> None:
        self.folder = folder.absolute()
        self.sources: dict[str, str] = {}
        for name, where in (datasets or {}).items():
            if name not in DATASETS:
                raise UserError(f"datasets: unknown {name!r}; available: {', '.join(DATASETS)}")
            path = Path(where).expanduser().absolute()
            is_folder = path.is_dir() or isinstance(where, Path)
            self.sources[name] = str(path if is_folder else where)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_params(self.folder, changes)
            _link(SAMPLES, self.folder / "data/samples")
            for part in ("data/datasets", "data/validation"):
                shared, path = _shared() / part, self.folder / part
                if not self.sources:
                    shared.mkdir(parents=True, exist_ok=True)
                    _link(shared, path)
                elif path.is_symlink():
                    path.unlink()
                path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be written ({error.strerror}); name another with `into`, or set "
                f"{HOME}"
            ) from error

    def prepare(self, names: tuple[str, ...]) -> None:
        """Build or fetch the missing datasets and their inputs, and validate them.

        Raises
        ------
        UserError
            If a dataset is missing or fails its validation.
        """
        with entered(self.folder), FileLock(parquet.DATASETS / BUILDING):  # across processes
            if self.sources:
                self._drop_outdated()
            for name in names:
                self._require(name)

    def _drop_outdated(self) -> None:
        """Remove all datasets if a dataset supplied by the user has changed."""
        digests = {n: parquet.fingerprint(_fetched(n, path)) for n, path in self.sources.items()}
        if DIGESTS.is_file() and json.loads(DIGESTS.read_text("utf-8")) == digests:
            return
        for path in (*parquet.DATASETS.iterdir(), *parquet.VALIDATION.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != BUILDING:
                path.unlink()
        write_bytes(DIGESTS, json.dumps(digests, sort_keys=True).encode())

    def _require(self, name: str) -> None:
        """Build or copy a dataset and validate it, unless it has already been validated."""
        with contextlib.suppress(UserError):
            parquet.require_validated(name)
            return
        folder = parquet.DATASETS / name
        if name in self.sources:
            source = _fetched(name, self.sources[name])
            shutil.copytree(source, parquet.fresh(folder), dirs_exist_ok=True)
            parquet.finish(folder)
        else:
            from plumbline.builders.core.build import build

            module = importlib.import_module(f"plumbline.builders.datasets.{name}.build")
            for needed in getattr(module, "INPUTS", ()):
                self._require(needed)
            build(name, module)
            digest = parquet.fingerprint(folder)
            if VALIDATED.is_file() and digest == json.loads(VALIDATED.read_text("utf-8")).get(name):
                report = {"dataset": name, "success": True, "fingerprint": digest}
                write_bytes(parquet.VALIDATION / f"{name}.json", json.dumps(report).encode())
                return
        from plumbline.validation.run import validate

        validate(name)


@contextlib.contextmanager
def entered(folder: Path) -> Iterator[None]:
    """Make a folder the working directory within the context."""
    with LOCK, contextlib.chdir(folder):
        yield


def _shared() -> Path:
    """Return the folder for datasets built from the samples; its name depends on the code."""
    code = [*FOLDERS["builders"].rglob("*.py"), *FOLDERS["builders"].rglob("*.yaml")]
    code += [*FOLDERS["validation"].rglob("*.*"), *SAMPLES.glob("*/*/manifest.json")]
    sums = [hashlib.sha256(path.read_bytes()).digest() for path in sorted(code) if path.is_file()]
    return home() / f"datasets-{hashlib.sha256(b''.join(sums)).hexdigest()[:12]}"


def _write_params(folder: Path, changes: Mapping[str, Any]) -> None:
    """Write the package's params with the changes applied."""
    trees = {folder / "params.yaml": params.parse(PROJECT / "params.yaml")}
    for pattern in params.BESIDE:
        top, _, glob = pattern.partition("/")
        for path in FOLDERS[top].glob(glob):
            trees[folder / top / path.relative_to(FOLDERS[top])] = params.parse(path)
    for key, value in changes.items():
        *above, last = key.split(".")
        for tree in trees.values():
            node: Any = tree
            for part in above:
                node = node.get(part) if isinstance(node, dict) else None
            if isinstance(node, dict) and (last in node or above in OPEN):
                node[last] = value
                break
        else:
            raise UserError(f"{key}: unknown setting; docs/params.md lists all settings")
    for path, tree in trees.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    """Link a folder, or copy it if the system does not allow links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_symlink():
        if target.resolve() == source.resolve():
            return
        target.unlink()
    elif target.is_dir():
        shutil.rmtree(target)
    try:
        target.symlink_to(source.resolve(), target_is_directory=True)
    except OSError:
        shutil.copytree(source, target)


def _fetched(name: str, where: str) -> Path:
    """Return the folder of a built dataset; a published dataset is fetched first."""
    folder = Path(where).expanduser()
    if not folder.is_dir() and where.count("/") == 1 and not where.startswith((".", "~")):
        from plumbline.builders.release import hub

        repo, _, revision = where.partition("@")
        folder = hub.fetch(repo, revision or "main", os.environ.get("HF_TOKEN"))
    if not (folder / front_matter.CARD).is_file() or not any(folder.glob("*.parquet")):
        raise UserError(
            f"datasets: {name}: {folder} must contain a built dataset ({front_matter.CARD} "
            "and parquet files); name such a folder, or the id of a published dataset"
        )
    return folder
