"""Decide whether a folder under data/ may be published, and who may read it.

The page states the licence, and ``build.json`` the sources; the column ``redistributable`` and the
manifests of the snapshots state the restrictions of third parties.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from plumbline.builders.core import front_matter, private
from plumbline.builders.core import parquet as store
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.front_matter import CARD, FACTS
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import MANIFEST, digest
from plumbline.builders.readers.declared import is_open, split_licences
from plumbline.builders.release.card import template
from plumbline.builders.release.facts import limited, origins, page_of, read_page
from plumbline.builders.release.params import PARTISAN, PRETRAINED, publishing

DEPTHS = {"datasets": (1,), "outputs": (2,), "tables": (1, 2), "pretrained": (2,)}
MADE = ("datasets", "outputs", "tables")
WAYS = {
    "datasets": "a dataset",
    "outputs": "outputs/PROBE/MODEL",
    "tables": "tables/ANALYSIS[/MODEL]",
    PRETRAINED: f"{PRETRAINED}/MODEL/CHECKPOINT",
}
# Names that builds, probes and analyses give to inputs, whose licences are checked separately.
# Sources of snapshots have other names.
OURS = re.compile(r"(dataset|made by|model) .+|tables")
# Licence names on the Hub that do not state who may access the data.
CLOSED = ("other", "unknown", "")
FORBIDS = re.compile(
    r"not (to )?(be )?(redistributed|published|passed on|shared)|no[- ]redistribution"
    r"|redistribution (is )?(not|forbidden|prohibited)",
    re.IGNORECASE,
)
CLOSED_SOURCE = re.compile(r'"redistribute":(?!\s*true\b)')  # at any level of a manifest
CHECKPOINTS = "checkpoints.json"  # list of a model's checkpoints, written by training
ASKS = "extra_gated_"  # prefix of the keys that define an access form in a card

Gated = Literal["auto", "manual", False]


@dataclass(frozen=True)
class Release:
    """A folder as it will be published."""

    folder: Path
    kind: Literal["dataset", "model"]
    files: dict[str, Path | bytes]  # by path in the repository; bytes if generated for the Hub
    private: bool
    gated: Gated
    why: str  # reason for the values of private and gated

    @property
    def card(self) -> str:
        """The card's text."""
        body = self.files[CARD]
        return body.decode() if isinstance(body, bytes) else body.read_text(encoding="utf-8")


def folder_of(named: str, kinds: Collection[str] = tuple(DEPTHS)) -> Path:
    """Return the folder under data/ that a name or path denotes; it need not exist.

    Raises UserError if it is not a folder of one of these kinds.
    """
    parts = Path(os.path.relpath(named or ".")).parts
    parts = ("datasets", *parts) if len(parts) == 1 and parts != ("data",) else parts
    top, *inner = parts[parts[:1] == ("data",) :] or ("",)
    if top not in kinds or ".." in inner or len(inner) not in DEPTHS[top]:
        ways = ", ".join(WAYS[kind] for kind in kinds)
        raise UserError(f"{named}: not a folder that this command accepts; name {ways}")
    return Path("data", top, *inner)


def locate(named: str) -> Path:
    """Return the folder to be published, given its name or path.

    Raises UserError if it cannot be published, or does not exist.
    """
    folder = folder_of(named)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; make it with `make repro`, or `dvc pull` it")
    if folder.parts[1] != PRETRAINED and not (folder / FACTS).is_file():
        inner = sorted(p.parent.as_posix() for p in folder.glob(f"*/{FACTS}"))
        hint = f"name one of {', '.join(inner)}" if inner else "make it with `make repro`"
        raise UserError(f"{folder}: contains no {FACTS}; {hint}")
    return folder


def release(
    folder: Path, acknowledged: tuple[str, ...], stated: Mapping[str, str] | None = None
) -> Release:
    """Decide whether and how a folder from :func:`locate` may be published.

    ``acknowledged``: partisan datasets and models (``pretrained/MODEL``) that may be
    published privately.
    ``stated``: SPDX ids of open licences, by the words with which sources state them.

    Raises a UserError that states the first reason why the folder may not be published.
    """
    kind, name = folder.parts[1:3]
    partisan = name if kind == "datasets" and name in PARTISAN else ""
    partisan = f"{PRETRAINED}/{name}" if kind == PRETRAINED else partisan
    why = "partisan texts: the owner admits each reader"
    if partisan and partisan not in acknowledged:
        raise UserError(
            f"{folder}: partisan texts and models trained on them are not published; to publish "
            f"privately, put {partisan} under publish.acknowledged in params.yaml"
        )
    if kind == PRETRAINED:
        _nobody_removed(store.require_validated("corpora"))
        return Release(folder, "model", _checkpoint(folder), True, "manual", why)
    datasets = _datasets(folder)
    for dataset in sorted(datasets):
        store.require_validated(dataset)
    # tables contain estimates only, and responses contain no partisan texts
    excluded = {"tables": datasets, "outputs": set(PARTISAN)}.get(kind, set())
    parts = sorted({folder, *(store.DATASETS / dataset for dataset in datasets - excluded)})
    fronts = {part: limited(read_page(page_of(part), part)[0], part) for part in parts}
    for part, front in fronts.items():
        _allowed(part, front, folder, stated or {})
    for part in sorted({folder, *(store.DATASETS / dataset for dataset in datasets)}):
        _nobody_removed(part)
    files = _files(folder)
    if partisan:
        return Release(folder, "dataset", files, True, "manual", why)
    licence = str(fronts[folder].get("license") or "")
    # outputs are gated if a dataset used in their prompts is gated
    asks = any(key.startswith(ASKS) for front in fronts.values() for key in front)
    why = f"the card's licence is {licence or 'not stated'}"
    return Release(folder, "dataset", files, licence in CLOSED, "auto" if asks else False, why)


def _files(folder: Path) -> dict[str, Path | bytes]:
    """Return the files that the build of a folder wrote, by relative path."""
    built = front_matter.read(folder / FACTS)
    patterns = {built.files.format(config=config) for config in built.schemas}
    paths = {path for pattern in patterns for path in folder.glob(pattern)}
    paths |= {folder / name for name in (CARD, FACTS, store.REJECTS)}
    return {p.relative_to(folder).as_posix(): p for p in sorted(paths) if p.is_file()}


def _checkpoint(folder: Path) -> dict[str, Path | bytes]:
    """Return the files of a checkpoint, and its card, by name.

    Raises UserError if the model's list lacks the checkpoint, or a file differs from the list.
    """
    path = folder.parent / CHECKPOINTS
    entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    facts = next((e for e in entries if e["name"] == folder.name), None)
    if facts is None:
        raise UserError(f"{path}: contains no checkpoint {folder.name!r}; run `make repro` first")
    files: dict[str, Path | bytes] = {name: folder / name for name in sorted(facts["files"])}
    for name, sha256 in facts["files"].items():
        if not (folder / name).is_file() or digest(folder / name) != sha256:
            raise UserError(f"{folder / name}: differs from {path}; `dvc checkout` the model")
    model = (read().get("models") or {}).get(folder.parts[2]) or {}
    pinned = "/" in str(model.get("id") or "") and model.get("revision")
    text = template("model_card.md.j2").render(
        model=folder.parts[2],
        base_model=model["id"] if pinned else "",
        revision=model.get("revision"),
        facts=facts,
        contact=publishing().contact,
    )
    return files | {CARD: text.encode()}


def _nobody_removed(folder: Path) -> None:
    if number := private.held(folder, private.removed()):
        raise UserError(
            f"{folder}: {number:,} rows are on the removal list; run `make repro` to remove them"
        )


def _ours(source: Mapping[str, Any]) -> bool:
    return bool(OURS.fullmatch(str(source.get("source"))))


def _datasets(folder: Path) -> set[str]:
    """Return the datasets from which a folder was derived, including itself.

    Raises UserError if one of them has changed since the folder was built.
    """
    datasets = {folder.parts[2]} if folder.parts[1] == "datasets" else set()
    for source, _ in origins(folder):
        part = Path(source["address"])
        if not _ours(source) or part.parts[:1] != ("data",) or part.parts[1] not in MADE:
            continue
        if front_matter.source(part, "")["retrieved"] != source["retrieved"]:
            raise UserError(f"{folder}: was built from another version of {part}; run `make repro`")
        datasets |= {part.parts[2]} if part.parts[1] == "datasets" else set()
    return datasets


def _allowed(part: Path, front: dict[str, Any], folder: Path, spdx: Mapping[str, str]) -> None:
    """Raise UserError if the card, sources, manifests or rows of a part forbid publishing it.

    A licence permits it only if its text, or the id to which ``spdx`` maps the text, is the SPDX
    id of an open licence.
    """
    tree = read() if part.parts[1] == "datasets" else {}
    entries = [(tree.get(top) or {}).get(part.name) or {} for top in ("datasets", "derived")]
    named = [n for e in entries for n in (e.get("snapshot"), *(e.get("snapshots") or {}).values())]
    paths = [path for n in named if n and (path := Path(n) / MANIFEST).is_file()]
    manifests = {path: path.read_text(encoding="utf-8") for path in paths}
    facts_of = [
        *front_matter.read(part / FACTS).origin.sources,
        *map(json.loads, manifests.values()),
    ]
    stated = [str(facts.get("licence")) for facts in facts_of if not _ours(facts)]
    card = f"{front.get('license') or ''} {front.get('license_name') or ''}".strip()
    texts = (card, *stated)
    wrong = [f"its licence forbids redistribution ({t})" for t in texts if FORBIDS.search(t)]
    closed = (path for path, text in manifests.items() if CLOSED_SOURCE.search(text))
    wrong += [f"{path} has a redistribute that is not true" for path in closed]
    words = [word for text in stated for word in split_licences(spdx.get(text, text))]
    licences = (spdx.get(word, word) for word in words)
    wrong += [
        f"the licence of a source, {licence!r}, is not the SPDX id of an open licence (if it means "
        "one, write into params.yaml: publish: "
        f"{{licences: {{{json.dumps(licence, ensure_ascii=False)}: SPDX-ID}}}})"
        for licence in licences
        if not is_open(licence)
    ]
    if not wrong and (number := _closed_rows(part)):
        wrong = [f"{number:,} rows are not redistributable"]
    if wrong:
        about = f"{folder}" if part == folder else f"{folder}, derived from {part}"
        raise UserError(f"{about}: {wrong[0]}; publish the recipe instead")


def _closed_rows(part: Path) -> int:
    import polars as pl

    closed = ~pl.col("redistributable").fill_null(value=False)
    frames = (pl.scan_parquet(path) for path in part.rglob("*.parquet"))
    stating = (frame for frame in frames if "redistributable" in frame.collect_schema())
    return sum(frame.select(closed.sum()).collect().item() for frame in stating)
