"""Params: each section is a frozen pydantic model, and all problems are reported together.

``params.yaml`` contains the settings that users change. Other settings are in the files
of :data:`BESIDE`, next to the code that reads them. Together the files form one tree, and no key
may be in more than one file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plumbline.builders.core.errors import SECRET, UserError

FILE = Path("params.yaml")
STUDIES = ("politicians", "stereotypes", "values", "nationality", "leaning")
BESIDE = (  # relative to the folder of params.yaml
    "builders/datasets/*/sources.yaml",
    "builders/datasets/*/params.yaml",
    "validation/params.yaml",
    *(f"probes/{study}/params.yaml" for study in STUDIES),
    "probes/reliability/params.yaml",
    "probes/comparison/params.yaml",
    "probes/prompts/*.yaml",
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml, if installed, is six times faster
BOOL = "tag:yaml.org,2002:bool"
DEEPEST, COPIED = 100, 100_000


def yaml_of(text: str | bytes, loader: Any = LOADER) -> Any:
    """Parse YAML. Tags that construct arbitrary objects are refused.

    Raises yaml.YAMLError if the text is not valid YAML, is nested more than :data:`DEEPEST` levels
    deep (libyaml overflows the stack), or has aliases whose copies contain more than :data:`COPIED`
    values, as a few lines can that repeat each other.
    """
    sizes: dict[str | None, int] = {}  # number of values in each anchor, with its copies
    open_anchors: list[str | None] = []
    counts, copied = [0], 0  # number of values in each open collection, and of copied values
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            open_anchors.append(event.anchor)
            counts.append(1)
        elif isinstance(event, yaml.CollectionEndEvent):
            size = sizes[open_anchors.pop()] = counts.pop()
            counts[-1] += size
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1
            counts[-1] += 1
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, 0)
            counts[-1] += size
            copied += size
        if len(counts) > DEEPEST or copied > COPIED:
            wrong = "nested too deeply" if len(counts) > DEEPEST else "its aliases copy too much"
            place: Any = event.start_mark
            raise yaml.composer.ComposerError(None, None, wrong, place)
    return yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader


class Reader(LOADER):  # type: ignore[misc,valid-type]
    """Reader of YAML 1.2, like DVC's: yes, no (a language code), on and off are strings."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        """Reject a mapping in which a key is repeated, since one of its values would be lost."""
        names = [key.value for key, _ in node.value if isinstance(key.value, str)]
        if twice := next((name for name, n in Counter(names).items() if n > 1), None):
            reason = f"{twice!r} appears twice"
            raise yaml.constructor.ConstructorError(None, None, reason, node.start_mark)
        return super().construct_mapping(node, deep)

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, form) for tag, form in resolvers if tag != BOOL]
        for first, resolvers in LOADER.yaml_implicit_resolvers.items()
    }


Reader.add_implicit_resolver(BOOL, re.compile("^(?:true|false)$", re.IGNORECASE), list("tTfF"))


class Params(BaseModel):
    """Base class of all sections, which are immutable and reject unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetParams(Params):
    """Base class of a dataset's section."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the dataset")

    def required_configs(self) -> list[str]:
        """Return the configs that must have rows after a build."""
        return list(getattr(self, "languages", ()) or getattr(self, "configs", ()))


class SnapshotParams(DatasetParams):
    """Base class for the section of a dataset that is built from one snapshot."""

    snapshot: str = Field(description="folder of the snapshot")


class LanguageParams(SnapshotParams):
    """The snapshot from which a dataset is built, and the languages of its configs."""

    languages: list[str] = Field(min_length=1, description="languages, each of which has a config")


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]  # name of a corpus, list or config
P = TypeVar("P", bound=Params)


def files(path: Path = FILE) -> list[Path]:
    """Return the paths of a params file and of those in :data:`BESIDE`, in reading order."""
    top = path.parent
    return [path, *(file for pattern in BESIDE for file in sorted(top.glob(pattern)))]


def read(path: Path = FILE) -> dict[str, Any]:
    """Parse a params file and those in :data:`BESIDE` into one tree.

    Raises UserError if the file is missing, a file is not a YAML mapping, or two files contain
    the same key.
    """
    tree: dict[str, Any] = {}
    for file in files(path):
        _merge(tree, parse(file), file, "")
    return tree


def parse(path: Path) -> dict[str, Any]:
    """Parse one file.

    Raises UserError if the file is missing, is not a YAML mapping, or contains a secret.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such file; run the command in the project's top folder")
    try:
        text = path.read_text(encoding="utf-8")
        tree = deepcopy(_loaded(text))  # a copy, since sections are merged in place
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8; save it as UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        wrong = getattr(error, "problem", None) or "not valid YAML"
        raise UserError(f"{path}{line}: {wrong}; fix the indentation or quoting") from error
    if secret := SECRET.search(text):
        raise UserError(
            f"{path}, line {text.count(chr(10), 0, secret.start()) + 1}: contains a password, a "
            "token or a signature, which would be written to manifests; put it into the environment"
        )
    if not isinstance(tree, dict):
        raise UserError(f"{path}: expected a mapping of sections, found {type(tree).__name__}")
    return tree


@lru_cache(maxsize=128)
def _loaded(text: str) -> Any:
    """Parse a text once, since commands read the same files for every section and model."""
    return yaml_of(text, Reader)


def _merge(tree: dict[str, Any], more: dict[str, Any], file: Path, above: str) -> None:
    for name, value in more.items():
        key = f"{above}{name}"
        if name not in tree:
            tree[name] = value
        elif isinstance(tree[name], dict) and isinstance(value, dict):
            _merge(tree[name], value, file, f"{key}.")
        else:
            raise UserError(f"{file}: {key} is also in another params file; keep it in only one")


def check(schema: Mapping[str, type[Params]], path: Path = FILE) -> dict[str, Params]:
    """Validate and return the sections in ``schema``, e.g. ``{"datasets.words": words.Params}``.

    Raises UserError with one message that lists every problem in every section.
    """
    tree, problems = read(path), []
    sections: dict[str, Params] = {}
    for key, model in schema.items():
        try:
            sections[key] = model.model_validate(_descend(tree, key))
        except KeyError as error:
            problems.append(f"{key}: missing (no key {error.args[0]!r})")
        except ValidationError as error:
            problems += [
                f"{'.'.join([key, *map(str, e['loc'])])}: {_say(e)}" for e in error.errors()
            ]
    if problems:
        lines = "\n  ".join(problems)
        raise UserError(f"{path}: {len(problems)} problem(s) to fix:\n  {lines}")
    return sections


def section(key: str, model: type[P], path: Path = FILE) -> P:
    """Validate and return one section; see :func:`check`."""
    return cast("P", check({key: model}, path)[key])


def entry(key: str) -> Any:
    """Return one section as it is written in the params; :func:`section` also validates it."""
    return _descend(read(), key)


def _descend(tree: Any, key: str) -> Any:
    for part in key.split("."):
        if not isinstance(tree, dict) or part not in tree:
            raise KeyError(part)
        tree = tree[part]
    return {} if tree is None else tree


def _say(item: Any) -> str:
    if item["type"] == "extra_forbidden":
        return "unknown key; docs/params.md lists the valid keys"
    value = item.get("input")
    secret = "endpoint" in item["loc"]  # the value may contain an API key
    shown = "" if secret or isinstance(value, dict) else f" (found {value!r})"
    return f"{item['msg']}{shown}"
