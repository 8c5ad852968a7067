"""Asking the Hub for the commits that models lack: ``python -m plumbline.probes pin FILE``.

What is pinned already is looked up too, so that a commit that is not there is known before anything
runs. The file stays as it is but for the lines that are put in, each below that of an id.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ruamel.yaml import YAML

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.release import hub
from plumbline.probes.commands.check_params import LOCAL, at

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "main"
HATE = ("derived", "corpora", "hate")  # the filter of corpora, a model too
COMMIT = re.compile(r"[0-9a-f]{40}")


class Pinned(NamedTuple):
    """What became of a file."""

    written: dict[str, str]  # commit by key: those that were put in
    there: list[str]  # models that had a commit, and the Hub has it
    pickled: list[str]  # models without safetensors at their commit, and without `pickles: true`


def pin(path: Path) -> Pinned:
    """Write the commit of ``main`` below every id without one, and look up all others.

    The filter of hate in ``derived.corpora`` is one of them.

    A UserError if the Hub is out of reach, or has not all of the ids and commits; what it has is
    written.
    """
    read(path)  # says in one sentence what is wrong with it
    text = path.read_text(encoding="utf-8")
    tree = YAML().load(text)
    entries = {f"models.{name}": (entry, "id") for name, entry in at(tree, "models").items()}
    entries[".".join(HATE)] = at(tree, *HATE), "model"
    of_hub: dict[str, tuple[Any, str]] = {
        name: (entry, key)
        for name, (entry, key) in entries.items()
        if isinstance(entry, dict) and entry.get(key) and not entry[key].startswith(LOCAL)
    }
    found, client = Pinned({}, [], []), hub.client(os.environ.get("HF_TOKEN"))
    lines, problems = text.splitlines(keepends=True), []
    for name, (entry, key) in sorted(of_hub.items(), key=lambda own: -own[1][0].lc.line):
        lacking = not entry.get("revision")
        if lacking and entry.fa.flow_style():
            problems.append(f"  {name}: give each key of it a line of its own")
            continue
        revision = entry.get("revision") or MAIN
        try:
            with hub.answering(f"{entry[key]}@{revision}"):
                there: Any = client.model_info(entry[key], revision=revision)
        except hub.Missing as problem:
            problems.append(f"  {name}: {problem}")
            continue
        commit, files = str(there.sha), [file.rfilename for file in there.siblings or ()]
        if not COMMIT.fullmatch(commit):
            problems.append(f"  {name}: {entry[key]}: the Hub states no commit")
            continue
        if not entry.get("pickles") and not any(f.endswith(".safetensors") for f in files):
            if key != "id":
                problems.append(f"  {name}: {entry[key]}: no safetensors, which the filter needs")
                continue
            found.pickled.append(name)
        if lacking:
            line, column = entry.lc.key(key)
            lines.insert(line + 1, f"{' ' * column}revision: {written(commit)}\n")
            found.written[name] = commit
        else:
            found.there.append(name)
    if found.written:
        write_bytes(path, "".join(lines).encode())
    if problems:
        raise UserError(
            "\n".join([f"{path}: {len(problems)} problem(s) to mend:", *problems[::-1]])
        )
    return found


def written(commit: str) -> str:
    """Return a commit as YAML has it: quoted where it would be a number.

    Examples
    --------
    >>> written("12e4")
    '"12e4"'
    """
    return f'"{commit}"' if re.fullmatch(r"\d+(e\d*)?", commit) else commit
