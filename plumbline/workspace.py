"""A folder that the pipeline's own code runs in, for one model: no checkout, no DVC.

It is laid out as the project is: params, samples, datasets, outputs, tables. Datasets of the
samples, which come with the package, are built and validated once, and shared.
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
# A checkout has at its top what an installed package has inside.
FOLDERS = {
    name: Path(importlib.import_module(f"plumbline.{name}").__path__[0])
    for name in ("builders", "probes", "validation")
}
# params.yaml and data/samples
PROJECT = next(p for p in (PACKAGE / "project", PACKAGE.parent) if (p / "params.yaml").is_file())
# the datasets of the samples that passed their validation, by the sha256 of their bytes
VALIDATED = PROJECT / "data/samples/validated.json"
HOME = "PLUMBLINE_HOME"
LOCK = threading.RLock()  # all threads of a process share its working folder
LOCKED = ".building.lock"
BROUGHT = "brought.json"  # sha256 of the datasets that a user named
SHARED = ("data/datasets", "data/validation")
# where a name that is set may be new; elsewhere it must be there
NAMED = (["models"], ["assignments"], ["training", "pretrain", "corpora"])


def home() -> Path:
    """Return the folder of datasets, outputs and tables: PLUMBLINE_HOME, or the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(HOME) or Path(cache) / "plumbline").absolute()


class Workspace:
    """A folder with params for one model."""

    def __init__(
        self,
        folder: Path,
        tree: Mapping[str, Any],
        datasets: Mapping[str, str | Path] | None = None,
    ) -> None:
        """Lay it out, or bring it up to date.

        Parameters
        ----------
        tree
            What is laid over the params of the package: dotted keys and values.
        datasets
            Folders of built datasets, or ids of published ones, in place of the samples.
        """
        self.folder = folder.absolute()
        self.own = {name: _absolute(where) for name, where in (datasets or {}).items()}
        if unknown := sorted(set(self.own) - {*DATASETS}):
            raise UserError(f"datasets: no dataset {unknown[0]}; there are {', '.join(DATASETS)}")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write_params(self.folder, tree)
            _link(PROJECT / "data/samples", self.folder / "data/samples")
            for name in SHARED:
                if not self.own:
                    shared = _shared() / name
                    shared.mkdir(parents=True, exist_ok=True)
                    _link(shared, self.folder / name)
                elif (self.folder / name).is_symlink():
                    (self.folder / name).unlink()
                (self.folder / name).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be written ({error.strerror}); name another with `into`, or set "
                f"{HOME}"
            ) from error

    def prepare(self, names: tuple[str, ...]) -> None:
        """Build or fetch datasets that are missing, with their inputs, and validate them.

        Raises
        ------
        UserError
            If one is missing, or fails its validation.
        """
        with entered(self.folder), FileLock(parquet.DATASETS / LOCKED):  # others may build them too
            self._forget()
            for name in names:
                self._have(name)

    def _forget(self) -> None:
        """Remove the datasets here if the user's have changed."""
        if not self.own:
            return
        note = Path("data") / BROUGHT
        digests = {name: parquet.fingerprint(_found(name, at)) for name, at in self.own.items()}
        if note.is_file() and json.loads(note.read_text("utf-8")) == digests:
            return
        for path in (*parquet.DATASETS.iterdir(), *parquet.VALIDATION.iterdir()):
            if path.name != LOCKED:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        write_bytes(note, json.dumps(digests, sort_keys=True).encode())

    def _have(self, name: str) -> None:
        """Make a dataset unless it is here, validated."""
        try:
            parquet.require_validated(name)
        except UserError:
            self._make(name)

    def _make(self, name: str) -> None:
        folder = parquet.DATASETS / name
        if name in self.own:
            source = _found(name, self.own[name])
            shutil.copytree(source, parquet.fresh(folder), dirs_exist_ok=True)
            parquet.finish(folder)
        else:
            from plumbline.builders.core.build import build

            module = importlib.import_module(f"plumbline.builders.datasets.{name}.build")
            for needed in getattr(module, "INPUTS", ()):
                self._have(needed)
            build(name, module)
            made = parquet.fingerprint(folder)
            if VALIDATED.is_file() and made == json.loads(VALIDATED.read_text("utf-8")).get(name):
                report = {"dataset": name, "success": True, "fingerprint": made}
                write_bytes(parquet.VALIDATION / f"{name}.json", json.dumps(report).encode())
                return
        from plumbline.validation.run import validate

        validate(name)


@contextlib.contextmanager
def entered(folder: Path) -> Iterator[None]:
    """Work in a folder, as a command of the project does in the project's."""
    with LOCK, contextlib.chdir(folder):
        yield


def _shared() -> Path:
    """Return the folder of the datasets of the samples: another for every version of the code."""
    code = [*FOLDERS["builders"].rglob("*.py"), *FOLDERS["builders"].rglob("*.yaml")]
    code += [*FOLDERS["validation"].rglob("*.*"), *PROJECT.glob("data/samples/*/*/manifest.json")]
    sums = [hashlib.sha256(path.read_bytes()).digest() for path in sorted(code) if path.is_file()]
    return home() / f"datasets-{hashlib.sha256(b''.join(sums)).hexdigest()[:12]}"


def _write_params(folder: Path, tree: Mapping[str, Any]) -> None:
    """Write the params of the package, with some of them changed."""
    whole = params.parse(PROJECT / "params.yaml")
    changed: dict[Path, dict[str, Any]] = {folder / "params.yaml": whole}
    for pattern in params.BESIDE:
        top, _, rest = pattern.partition("/")
        for path in FOLDERS[top].glob(rest):
            changed[folder / top / path.relative_to(FOLDERS[top])] = params.parse(path)
    for key, value in tree.items():
        *above, last = key.split(".")
        for file in changed.values():
            node: Any = file
            for part in above:
                node = node.get(part) if isinstance(node, dict) else None
            if isinstance(node, dict) and (last in node or above in NAMED):
                node[last] = value
                break
        else:
            raise UserError(f"{key}: no such setting; docs/params.md has all of them")
    for path, own in changed.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(own, allow_unicode=True, sort_keys=False)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _link(source: Path, at: Path) -> None:
    """Make a folder appear elsewhere: as a link, or copied where links are not allowed."""
    source = source.resolve()
    at.parent.mkdir(parents=True, exist_ok=True)
    if at.is_symlink():
        if at.resolve() == source:
            return
        at.unlink()
    elif at.is_dir():
        shutil.rmtree(at)
    try:
        at.symlink_to(source, target_is_directory=True)
    except OSError:
        shutil.copytree(source, at)


def _absolute(where: str | Path) -> str:
    """Return the absolute path of a folder, or an id of the Hub unchanged."""
    folder = Path(where).expanduser().absolute()
    return str(folder if folder.is_dir() or isinstance(where, Path) else where)


def _found(name: str, where: str) -> Path:
    """Return the folder of a built dataset, or of a published one, fetched."""
    folder = Path(where).expanduser()
    if not folder.is_dir() and where.count("/") == 1 and not where.startswith((".", "~")):
        from plumbline.builders.release import hub

        repo, _, revision = where.partition("@")
        folder = hub.fetch(repo, revision or "main", os.environ.get("HF_TOKEN"))
    if not (folder / front_matter.CARD).is_file() or not any(folder.glob("*.parquet")):
        raise UserError(
            f"datasets: {name}: {folder} is no built dataset, with {front_matter.CARD} and "
            "parquet files; name such a folder, or the id of a published one"
        )
    return folder
