"""Changing params.yaml by a command, its comments and its form kept: ``use`` and ``set``.

A file under ``params/`` has what a study sets otherwise than params.yaml. It is laid over it field
by field: a field that is given replaces the field, all others of its section stay, and ``models``
is replaced as a whole. ``DAY`` in the path of a snapshot stands for the day of the fetch.
"""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.params import FILE, Reader, read
from plumbline.builders.core.snapshot import MANIFEST, write_bytes
from plumbline.probes.commands.check_params import check, named_snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTHS = {
    "models": 0,
    "assignments": 1,
    "controls": 1,
    "drift": 1,
    "publish": 1,
}  # of a field; 2 elsewhere
DAY = "DAY"  # in the path of a snapshot
RAW = "data/raw/"
OWN = "private/"  # where a user's own files are looked for
PAGES = {"reddit": "corpora", "news": "outlets"}  # of a source that is not named as its dataset


def use(path: Path, day: str) -> list[str]:
    """Lay a file over params.yaml, and return the sources that are still to be fetched.

    Raises
    ------
    Problem
        With all that is wrong with the outcome, snapshots that are to be fetched left out;
        params.yaml is then as it was.
    """
    check_with(path, day, fetched=False)
    tree = _round_trip(FILE)
    lay(tree, _round_trip(path))
    _date(tree, day)
    into = io.StringIO()
    _yaml().dump(tree, into)
    _write(into.getvalue())
    return unfetched(read(FILE))


def put(given: list[str]) -> None:
    """Set single keys of params.yaml, each given as ``KEY=VALUE`` with a value in YAML.

    Raises
    ------
    Problem
        If a key is not there, a value cannot be read, or the outcome has problems.
    """
    read(FILE)  # tells in one sentence what is wrong with it
    text = FILE.read_text(encoding="utf-8")
    for setting in given:
        key, equals, value = setting.partition("=")
        if not equals:
            raise Problem(f"{setting}: not of the form KEY=VALUE, such as analysis.pmi.seed=2")
        text = _spliced(text, key, value)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / FILE.name
        copy.write_text(text, encoding="utf-8")
        check(copy)
    _write(text)


def _spliced(text: str, key: str, value: str) -> str:
    """Return a text of YAML with another value in the place of one, all else to the letter."""
    node: Any = yaml.compose(text, Loader=Reader)
    name: Any = None
    for part in key.split("."):
        inner = node.value if isinstance(node, yaml.MappingNode) else []
        name, node = next((pair for pair in inner if pair[0].value == part), (None, None))
        if node is None:
            raise Problem(f"{key}: no such key in {FILE}; docs/params.md has all of them")
    lines = text.splitlines(keepends=True)
    start, stop, behind = (
        sum(map(len, lines[: mark.line])) + mark.column
        for mark in (node.start_mark, node.end_mark, name.end_mark)
    )
    # An alias has the marks of what it stands for; a block would take in the comments behind it.
    alias = text[behind:start].strip(" ") != ":"
    if alias or (isinstance(node, yaml.CollectionNode) and not node.flow_style):
        raise Problem(f"{key}: not a value on a line of its own; edit it in {FILE}")
    try:
        wanted = yaml.load(value, Loader=Reader)  # noqa: S506 - a safe loader
        found = yaml.load(f"{text[:start]}{value}{text[stop:]}", Loader=Reader)  # noqa: S506
    except yaml.YAMLError as error:
        raise Problem(f"{key}: {value!r} is not YAML; quote it") from error
    for part in key.split("."):
        found = found[part]
    if found != wanted:
        raise Problem(f"{key}: {value!r} is read as {found!r} there; quote it")
    return f"{text[:start]}{value}{text[stop:]}"


def check_with(path: Path, day: str, *, fetched: bool = True) -> dict[str, Any]:
    """Check params.yaml as it would be with a file laid over it, and return it.

    Parameters
    ----------
    fetched
        Whether all snapshots must be there already. Where they need not be, the user's own files
        that they are to be made of must, and the keys of models behind an address.

    Raises
    ------
    Problem
        One message with all problems.
    """
    tree = composed(path, day)
    problems = [] if fetched else [*_contact(tree), *_own_files(tree), *_keys(tree)]
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / FILE.name
        copy.write_text(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False), "utf-8")
        try:
            check(copy, source=str(path), fetched=fetched)
        except Problem as problem:
            problems = [*str(problem).splitlines()[1:], *problems]
    if problems:
        raise Problem("\n".join([f"{path}: {len(problems)} problem(s) to mend:", *problems]))
    return tree


def composed(path: Path, day: str) -> dict[str, Any]:
    """Return params.yaml with a file laid over it."""
    tree = read(FILE)
    lay(tree, read(path))
    _date(tree, day)
    return tree


def lay(tree: Any, over: Any) -> None:
    """Put the fields of a file into a tree.

    Examples
    --------
    >>> tree = {"models": {"a": 1}, "analysis": {"pmi": {"seed": 1, "of": {"x": 1}}}}
    >>> lay(tree, {"models": {"b": 2}, "analysis": {"pmi": {"of": {"y": 2}}}})
    >>> tree
    {'models': {'b': 2}, 'analysis': {'pmi': {'seed': 1, 'of': {'y': 2}}}}
    """
    for top, value in over.items():
        _join(tree, top, value, DEPTHS.get(top, 2))


def _join(tree: Any, key: str, value: Any, depth: int) -> None:
    there = tree.get(key)
    if depth and isinstance(there, dict) and isinstance(value, dict):
        for inner, found in value.items():
            _join(there, inner, found, depth - 1)
    else:
        tree[key] = value


def _date(tree: Any, day: str) -> None:
    """Put the day into the paths of snapshots."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else []:
        if isinstance(value, str) and value.startswith(RAW) and value.endswith(f"/{DAY}"):
            tree[key] = f"{value.removesuffix(DAY)}{day}"
        else:
            _date(value, day)


def unfetched(tree: dict[str, Any]) -> list[str]:
    """Return the sources of which a snapshot is named that is not there, sorted."""
    return sorted(
        {
            folder.removeprefix(RAW).split("/")[0]
            for folder in named_snapshots(tree).values()
            if isinstance(folder, str) and folder.startswith(RAW) and not _whole(folder)
        }
    )


def _whole(folder: str) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def _contact(tree: dict[str, Any]) -> Iterator[str]:
    """Tell that nobody is named whom the services could turn to."""
    politeness = tree.get("sources", {}).get("politeness", {})
    if unfetched(tree) and not politeness.get("contact"):
        yield "  sources.politeness.contact: empty; write your e-mail or address into params.yaml"


def _own_files(tree: dict[str, Any]) -> Iterator[str]:
    """Tell the user's own files that a snapshot is to be made of and that are not there."""
    for source in unfetched(tree):
        for key, text in _texts(f"sources.{source}", tree.get("sources", {}).get(source)):
            file = text.split("#", maxsplit=1)[0]
            if file.startswith(OWN) and not Path(file).is_file():
                page = PAGES.get(source, source)
                yield f"  {key}: no file {file}; docs/datasets/{page}.md says what it has to hold"


def _texts(key: str, node: Any) -> Iterator[tuple[str, str]]:
    if isinstance(node, str):
        yield key, node
    elif isinstance(node, dict):
        for name, value in node.items():
            yield from _texts(f"{key}.{name}", value)
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _texts(f"{key}.{number}", value)


def _keys(tree: dict[str, Any]) -> Iterator[str]:
    """Tell the models behind an address whose key is not in the environment."""
    for name, entry in tree.get("models", {}).items():
        endpoint = entry.get("endpoint") if isinstance(entry, dict) else None
        key = endpoint.get("key") if isinstance(endpoint, dict) else None
        if key and not os.environ.get(str(key)):
            yield (
                f"  models.{name}.endpoint.key: {key} is not set in the environment; export it, or "
                "take the model out of models, assignments and training.pretrain.corpora"
            )


def _yaml() -> YAML:
    form = YAML()
    form.preserve_quotes = True  # DVC's reader refuses bare addresses inside of braces
    form.width = 4096  # a line stays one line
    form.indent(mapping=2, sequence=4, offset=2)
    return form


def _round_trip(path: Path) -> Any:
    read(path)  # tells in one sentence what is wrong with it
    return _yaml().load(path.read_text(encoding="utf-8"))


def _write(text: str) -> None:
    """Write params.yaml, if DVC can read it: its reader refuses more than ours does."""
    try:
        YAML(typ="safe").load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = text.splitlines()[mark.line].strip()[:80] if mark else "?"
        raise Problem(f"DVC cannot read this: {line}; quote what has a colon in braces") from error
    write_bytes(FILE, text.encode())
