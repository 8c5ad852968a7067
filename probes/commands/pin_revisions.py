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
from plumbline.probes.commands.check_params import LOCAL, lacks_commit

if TYPE_CHECKING:
    from pathlib import Path

MAIN = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")


class Pinned(NamedTuple):
    """What became of a file."""

    written: dict[str, str]  # commit by model: those that were put in
    there: list[str]  # models that had a commit, and the Hub has it
    pickled: list[str]  # models without safetensors at their commit, and without `pickles: true`


def pin(path: Path) -> Pinned:
    """Write the commit of ``main`` below every id without one, and look up all others.

    A UserError if the Hub is out of reach, or has not all of the ids and commits; what it has is
    written.
    """
    read(path)  # says in one sentence what is wrong with it
    text = path.read_text(encoding="utf-8")
    models = YAML().load(text).get("models") or {}
    of_hub: dict[str, Any] = {
        name: entry
        for name, entry in models.items()
        if isinstance(entry, dict) and entry.get("id") and not entry["id"].startswith(LOCAL)
    }
    found, client = Pinned({}, [], []), hub.client(os.environ.get("HF_TOKEN"))
    lines, problems = text.splitlines(keepends=True), []
    for name, entry in sorted(of_hub.items(), key=lambda item: -item[1].lc.key("id")[0]):
        if lacks_commit(entry) and entry.fa.flow_style():
            problems.append(f"  models.{name}: give each key of it a line of its own")
            continue
        revision = entry.get("revision") or MAIN
        try:
            with hub.answering(f"{entry['id']}@{revision}"):
                there: Any = client.model_info(entry["id"], revision=revision)
        except hub.Missing as problem:
            problems.append(f"  models.{name}: {problem}")
            continue
        commit, files = str(there.sha), [file.rfilename for file in there.siblings or ()]
        if not COMMIT.fullmatch(commit):
            problems.append(f"  models.{name}: {entry['id']}: the Hub states no commit")
            continue
        if not entry.get("pickles") and not any(f.endswith(".safetensors") for f in files):
            found.pickled.append(name)
        if lacks_commit(entry):
            line, column = entry.lc.key("id")
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
