"""What may be published of what lies under data/, and how open: judged from the folder itself.

The page names the licence and ``build.json`` the sources, column ``redistributable`` and the
manifests of the snapshots say what others forbid, ``data/validation`` and ``dvc.lock`` whether the
bytes are sound.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import yaml

from plumbline.builders.core import front_matter
from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD, FACTS
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import MANIFEST
from plumbline.builders.dvc import cache, lock
from plumbline.builders.release import model_card
from plumbline.builders.release.facts import page_of, read_page

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

DEPTHS = {"datasets": (1,), "outputs": (2,), "tables": (1, 2), "pretrained": (2,)}
PRETRAINED = "pretrained"
MADE = ("datasets", "outputs", "tables")
PARTISAN = ("corpora", "outlets")  # texts of political sides, and what models are trained on
# Of the Hub's licences, those under which nobody knows yet who may have the data.
CLOSED = ("other", "unknown", "")
FORBIDS = re.compile(
    r"not (to )?(be )?(redistributed|published|passed on|shared)|no[- ]redistribution"
    r"|redistribution (is )?(not|forbidden|prohibited)",
    re.IGNORECASE,
)
# What sources state that lets anybody have the data; all else is for a person to read.
OPEN = re.compile(
    r"(CC0|CC[- ]BY|MIT|Apache|BSD|L?GPL|ODbL|ODC|PDDL|public domain)(?!.*\bND\b)"
    r"|as (its card|the model's own card) states",
    re.IGNORECASE,
)
ASKS = "extra_gated_"  # of a card: what its readers see, and must fill in

Gated = Literal["auto", "manual", False]


@dataclass(frozen=True)
class Release:
    """A folder as it would stand on the Hub."""

    folder: Path
    kind: Literal["dataset", "model"]
    files: dict[str, Path | bytes]  # by path in the repository; bytes: written for the Hub
    private: bool
    gated: Gated
    why: tuple[str, ...]  # sentences: how open it is, and for what reason

    @property
    def card(self) -> str:
        """The card's text."""
        there = self.files[CARD]
        return there.decode() if isinstance(there, bytes) else there.read_text(encoding="utf-8")


def folder_of(named: str, kinds: Collection[str] = tuple(DEPTHS)) -> Path:
    """Return the folder under data/ that a name or path stands for, whether it is there or not.

    Raises
    ------
    UserError
        If it can be none of these kinds.
    """
    folder = Path(named)
    if folder.is_absolute() and folder.is_relative_to(Path.cwd()):
        folder = folder.relative_to(Path.cwd())
    if len(folder.parts) == 1 and folder.parts != ("data",):
        folder = store.DATASETS / folder
    elif folder.parts and folder.parts[0] in DEPTHS:
        folder = "data" / folder
    top, kind, *inner = (*folder.parts, "", "")
    depth = len(folder.parts) - 2
    if top != "data" or kind not in kinds or ".." in inner or depth not in DEPTHS[kind]:
        ways = {
            "datasets": "a dataset",
            "outputs": "outputs/PROBE/MODEL",
            "tables": "tables/ANALYSIS[/MODEL]",
            PRETRAINED: f"{PRETRAINED}/MODEL/CHECKPOINT",
        }
        raise UserError(f"{named}: not a folder for this; name {', '.join(ways[k] for k in kinds)}")
    return folder


def locate(named: str) -> Path:
    """Return the folder to be published that a name or path stands for.

    Raises
    ------
    UserError
        If it is nothing that can be published, or is not there.
    """
    folder = folder_of(named)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; make it with `make repro`, or `dvc pull` it")
    inner = sorted(p.parent.as_posix() for p in folder.glob(f"*/{FACTS}"))
    if folder.parts[1] != PRETRAINED and not (folder / FACTS).is_file():
        hint = f"name one of {', '.join(inner)}" if inner else "make it anew with `make repro`"
        raise UserError(f"{folder}: no {FACTS} there; {hint}")
    return folder


def release(folder: Path, acknowledged: tuple[str, ...]) -> Release:
    """Judge a folder from :func:`locate`.

    Parameters
    ----------
    acknowledged
        Partisan things that may be published, privately: names of datasets, ``pretrained/MODEL``.

    Raises
    ------
    UserError
        If it may not be published: the first reason, in one sentence.
    """
    partisan = _partisan(folder)
    if partisan and partisan not in acknowledged:
        raise UserError(
            f"{folder}: partisan texts and the models trained on them are not published; if you "
            f"must, put {partisan} under publish.acknowledged in params.yaml: then privately only"
        )
    _as_locked(folder)
    stated: list[str] = []
    if folder.parts[1] == PRETRAINED:
        store.require_validated("corpora")
        files = model_card.files(folder)
        front: dict[str, Any] = yaml.safe_load(bytes(files[CARD]).decode().split("---\n")[1])
    else:
        for name in sorted(_datasets(folder)):
            store.require_validated(name)
        parts = sorted({folder, *_held(folder)})
        for part in parts:
            _forbidden(part, folder)
        stated = [licence for part in parts for licence in _licences(part)]
        files = dict(_files(folder))
        front = _front(folder)
        for part in parts:  # whoever holds rows of a gated dataset is gated too
            front |= {key: value for key, value in _front(part).items() if key.startswith(ASKS)}
    private, gated, why = _openness(front, stated, partisan)
    kind: Literal["dataset", "model"] = "model" if folder.parts[1] == PRETRAINED else "dataset"
    return Release(folder, kind, files, private, gated, why)


def _partisan(folder: Path) -> str:
    """Return the name under which a partisan thing is acknowledged; empty for all else."""
    if folder.parts[1] == PRETRAINED:
        return f"{PRETRAINED}/{folder.parts[2]}"
    return folder.name if folder.parts[1] == "datasets" and folder.name in PARTISAN else ""


def _openness(
    front: dict[str, Any], stated: list[str], partisan: str
) -> tuple[bool, Gated, tuple[str, ...]]:
    if partisan:
        why = f"{partisan} is partisan: it is private, and each reader is let in by hand, always"
        return True, "manual", (why,)
    licence = str(front.get("license") or "")
    asks = sorted(key for key in front if key.startswith(ASKS))
    closed = [one for text in stated for one in _each(text) if not OPEN.match(one)]
    why = f"the card's licence is {licence or 'not stated'}"
    why += f", that of a source: {closed[0]}" if closed else ""
    why += f"; readers are asked ({', '.join(asks)})" if asks else "; readers are asked nothing"
    return licence in CLOSED or bool(closed), "auto" if asks else False, (why,)


def _each(stated: str) -> list[str]:
    """Return the licences in what a source states of several things: ``a: MIT; b: CC0-1.0``."""
    return [re.sub(r"^[\w.-]+: ", "", one.strip()) for one in re.split(r"; | AND ", stated)]


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in inside.parts):
            yield inside.as_posix(), path


def _front(folder: Path) -> dict[str, Any]:
    return read_page(page_of(folder), folder)[0]


def _sources(folder: Path) -> list[dict[str, Any]]:
    """Return what a folder was made of, as its build recorded it."""
    path = folder / FACTS
    return front_matter.read(path).origin.sources if path.is_file() else []


def _datasets(folder: Path, seen: frozenset[Path] = frozenset()) -> set[str]:
    """Return the datasets that a folder was made of, itself among them, at any distance."""
    if folder in seen:
        return set()
    own = {folder.parts[2]} if folder.parts[1] == "datasets" else set()
    parts = (Path(source["address"]) for source in _sources(folder))
    made_of = [p for p in parts if p.parts[0] == "data" and p.parts[1] in MADE]
    return own.union(*(_datasets(part, seen | {folder}) for part in made_of))


def _held(folder: Path) -> set[Path]:
    """Return the datasets whose rows a folder may hold.

    Tables hold estimates. What a model generates after training on texts holds none of these texts.
    """
    if folder.parts[1] == "tables":
        return set()
    names = _datasets(folder)
    if folder.parts[1] == "outputs":
        names -= set(PARTISAN)
    return {store.DATASETS / name for name in names}


def _forbidden(part: Path, folder: Path) -> None:
    """Refuse what the card, the snapshots or the rows of one part forbid."""
    front = _front(part)
    own = f"{front.get('license') or ''} {front.get('license_name') or ''}".strip()
    instead = "publish the recipe instead: the builder and the addresses of the sources"
    about = f"{folder}" if part == folder else f"{folder}, made of {part}"
    for licence in [own, *_licences(part)]:
        if FORBIDS.search(licence):
            raise UserError(f"{about}: its licence forbids redistribution ({licence}); {instead}")
    for path, facts in _manifests(part):
        if _says_no(facts):
            raise UserError(f"{about}: {path} has redistribute: false; {instead}")
    number = _closed_rows(part)
    if number:
        raise UserError(f"{about}: {number:,} rows are not redistributable; {instead}")


def _licences(part: Path) -> list[str]:
    """Return what the sources of one part state, to its build and in the manifests."""
    stated = [str(source["licence"]) for source in _sources(part)]
    return stated + [str(facts.get("licence")) for _, facts in _manifests(part)]


def _manifests(part: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the manifests of the snapshots that params name for a dataset, those that are here."""
    if part.parts[1] != "datasets":
        return
    tree = read()
    for top in ("datasets", "derived"):
        entry = (tree.get(top) or {}).get(part.name) or {}
        named = [entry.get("snapshot"), *(entry.get("snapshots") or {}).values()]
        for path in (Path(n) / MANIFEST for n in named if n):
            if path.is_file():
                yield path, json.loads(path.read_text(encoding="utf-8"))


def _says_no(facts: Any) -> bool:
    """Tell whether ``redistribute: false`` stands anywhere in a manifest."""
    if isinstance(facts, dict):
        return facts.get("redistribute") is False or any(map(_says_no, facts.values()))
    return isinstance(facts, list) and any(map(_says_no, facts))


def _closed_rows(part: Path) -> int:
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    closed = 0
    for path in sorted(part.rglob("*.parquet")):
        if "redistributable" in pq.read_schema(path).names:
            column = pq.read_table(path, columns=["redistributable"])["redistributable"]
            closed += len(column) - int(pc.sum(column).as_py() or 0)
    return closed


def _as_locked(folder: Path) -> None:
    """Refuse a folder that is not what dvc.lock says, where a dvc.lock names it."""
    for entry in lock.here(needed=False):
        for out in entry.outs:
            where = Path(out.path)
            if where in (folder, folder.parent) and cache.digest(cache.listed(where)) != out.md5:
                raise UserError(
                    f"{where}: not what {entry.lock} has for {entry.name}; `make repro` or `dvc "
                    "checkout` first, so that what is published can be made again"
                )
