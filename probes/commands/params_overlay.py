"""Apply overlays to the params (``use``) and pin commits of models (``pin``), keeping comments.

An overlay under ``params/`` contains the settings that differ in a study. Each field replaces the
field of the same name in the params; the other fields of the section are unchanged, but ``models``
is replaced completely. ``DAY`` in the path of a snapshot is a placeholder for the fetch date.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from ruamel.yaml import YAML

from plumbline.builders.core.params import FILE, files, parse, read
from plumbline.builders.core.snapshot import write_bytes
from plumbline.probes.commands.check_params import LOCAL, absent_snapshots, at, problems_of, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

# depth of the fields below each top-level key; 2 for keys that are not listed
DEPTHS = {"models": 0, "assignments": 1, "controls": 1, "waves": 1, "publish": 1}
DAY = "DAY"  # placeholder for a date in the path of a snapshot
RAW = "data/raw/"
PRIVATE = re.compile(r'"(private/[^"#]+)')  # files that users provide
HATE = ("derived", "corpora", "hate")  # key of the model that filters corpora
FORM = YAML()
FORM.preserve_quotes = True  # DVC's parser rejects unquoted addresses inside braces
FORM.width = 4096  # wide enough that no line is wrapped
FORM.indent(mapping=2, sequence=4, offset=2)


def use(path: Path, day: str, *, mirror: bool = False) -> list[str]:
    """Apply an overlay to the params, and return the sources that must still be fetched.

    A field is changed in the file that contains it: params.yaml, or a params file next to the code.

    ``mirror``: True if sources are read from a mirror, for which no contact is needed.

    Raises
    ------
    UserError
        If there are problems other than missing snapshots; no file is changed in that case.
    """
    check_with(path, day, fetched=False, mirror=mirror)
    trees = {file: FORM.load(file.read_text(encoding="utf-8")) for file in files()}
    changed = set()
    for keys, value in _fields(FORM.load(path.read_text(encoding="utf-8"))):
        home = max(trees, key=lambda file: _shared(trees[file], keys))
        _put(trees[home], keys, value)
        changed.add(home)
    for file in changed:
        _date(trees[file], day)
        _write(trees[file], file)
    return unfetched(read(FILE))


def check_with(path: Path, day: str, *, fetched: bool = True, mirror: bool = False) -> None:
    """Check the params that result from an overlay.

    ``fetched``: True if all snapshots must exist. The files that users provide for missing
    snapshots are required in either case.
    ``mirror``: see :func:`use`.

    Raises
    ------
    UserError
        If there is any problem; the message lists all of them.
    """
    tree = composed(path, day)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / FILE.name
        copy.write_text(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False), "utf-8")
        problems = problems_of(copy, str(path), fetched=fetched)
    refuse(str(path), [*problems, *_missing(tree, mirror=mirror)])


def pin(path: Path) -> list[str]:
    """Write the current commit of ``main`` next to every id without one, and check other commits.

    Missing commits are thus reported before a run. Comments and layout of the file are preserved.

    Returns
    -------
    list
        Lines that report the commits written, their number, and models without safetensors.

    Raises
    ------
    UserError
        If the Hub cannot be reached or does not have an id or commit; other commits are written.
    """
    from plumbline.builders.release import hub

    read(path)  # reports syntax errors
    tree = FORM.load(path.read_text(encoding="utf-8"))
    entries = {f"models.{name}": (entry, "id") for name, entry in at(tree, "models").items()}
    entries[".".join(HATE)] = at(tree, *HATE), "model"
    client, existing = hub.client(os.environ.get("HF_TOKEN")), 0
    written, pickled, problems = list[str](), list[str](), list[str]()
    for name, (entry, key) in entries.items():
        model = entry.get(key) if isinstance(entry, dict) else None
        if not model or model.startswith(LOCAL):
            continue
        revision = entry.get("revision") or "main"
        try:
            with hub.answering(f"{model}@{revision}"):
                info: Any = client.model_info(model, revision=revision)
        except hub.Missing as problem:
            problems.append(f"{name}: {problem}")
            continue
        files = [file.rfilename for file in info.siblings or ()]
        if not entry.get("pickles") and not any(f.endswith(".safetensors") for f in files):
            pickled.append(f"{name}: no safetensors; add the line `pickles: true` (docs)")
        if entry.get("revision"):
            existing += 1
        elif not re.fullmatch(r"[0-9a-f]{40}", str(info.sha)):
            problems.append(f"{name}: {model}: the Hub reports no commit")
        else:
            entry.insert(list(entry).index(key) + 1, "revision", info.sha)
            written.append(f"{name}: {info.sha}")
    if written:
        _write(tree, path)
    refuse(str(path), problems)
    return [*written, f"{path}: {len(written)} pinned, {existing} were and are there", *pickled]


def composed(path: Path, day: str) -> dict[str, Any]:
    """Return the params with an overlay applied."""
    tree = read(FILE)
    lay(tree, parse(path))
    _date(tree, day)
    return tree


def lay(tree: Any, over: Any) -> None:
    """Insert the fields of an overlay into a tree of params, in place.

    Examples
    --------
    >>> tree = {"models": {"a": 1}, "analysis": {"pmi": {"seed": 1, "of": {"x": 1}}}}
    >>> lay(tree, {"models": {"b": 2}, "analysis": {"pmi": {"of": {"y": 2}}}})
    >>> tree
    {'models': {'b': 2}, 'analysis': {'pmi': {'seed': 1, 'of': {'y': 2}}}}
    """
    for keys, value in _fields(over):
        _put(tree, keys, value)


def _write(tree: Any, path: Path) -> None:
    text = io.StringIO()
    FORM.dump(tree, text)
    write_bytes(path, text.getvalue().encode())


def _fields(over: Any, *keys: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the keys that lead to each field in an overlay, and its value."""
    for key, value in over.items():
        inner = (*keys, key)
        if len(inner) <= DEPTHS.get(inner[0], 2) and isinstance(value, dict):
            yield from _fields(value, *inner)
        else:
            yield inner, value


def _shared(tree: Any, keys: tuple[str, ...]) -> int:
    """Return the number of leading keys of a field that exist in a tree."""
    if not keys or not isinstance(tree, dict) or keys[0] not in tree:
        return 0
    return 1 + _shared(tree[keys[0]], keys[1:])


def _put(tree: Any, keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value


def _date(tree: Any, day: str) -> None:
    """Replace the placeholder in the paths of snapshots with a date, in place."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else []:
        if isinstance(value, str) and value.startswith(RAW) and value.endswith(f"/{DAY}"):
            tree[key] = f"{value.removesuffix(DAY)}{day}"
        else:
            _date(value, day)


def unfetched(tree: dict[str, Any]) -> list[str]:
    """Return the sorted names of the sources whose snapshot is missing."""
    absent = (folder for folder in absent_snapshots(tree).values() if folder.startswith(RAW))
    return sorted({folder.removeprefix(RAW).split("/")[0] for folder in absent})


def _missing(tree: dict[str, Any], *, mirror: bool) -> Iterator[str]:
    """Yield problems with users' inputs: a missing contact, files, or keys of remote models."""
    sources = unfetched(tree)
    if sources and not mirror and not at(tree, "sources", "politeness").get("contact"):
        yield "sources.politeness.contact: empty; write your e-mail address or URL into params.yaml"
    for source in sources:
        settings = json.dumps(at(tree, "sources").get(source), ensure_ascii=False, default=str)
        for file in dict.fromkeys(PRIVATE.findall(settings)):
            if not Path(file).is_file():
                yield f"sources.{source}: no file {file}; docs/datasets describes its layout"
    for name in at(tree, "models"):
        variable = at(tree, "models", name, "endpoint").get("key")
        if variable and not os.environ.get(str(variable)):
            yield f"models.{name}.endpoint.key: {variable} is not set in the environment; export it"
