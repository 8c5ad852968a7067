"""``pin``: the commits of models on the Hub, looked up and written into a file with models.

Commits that the file has are looked up too, so that a missing one is known before anything runs.
"""

from __future__ import annotations

import io
import os
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import read
from plumbline.builders.core.snapshot import write_bytes
from plumbline.builders.release import hub
from plumbline.probes.commands.check_params import LOCAL, at
from plumbline.probes.commands.params_overlay import FORM

if TYPE_CHECKING:
    from pathlib import Path

HATE = ("derived", "corpora", "hate")  # the filter of corpora, a model too
COMMIT = re.compile(r"[0-9a-f]{40}")


class Pinned(NamedTuple):
    """Models of a file after pinning."""

    written: dict[str, str]  # new commit by model
    there: list[str]  # models whose commit the Hub has
    pickled: list[str]  # models without safetensors at their commit, and without `pickles: true`


def pin(path: Path) -> Pinned:
    """Write the commit of ``main`` next to every id without one, and look up all others.

    Comments and layout of the file are preserved.

    Raises
    ------
    UserError
        If the Hub cannot be reached, or lacks an id or commit; the other commits are written.
    """
    read(path)  # reports what is wrong with it
    tree = FORM.load(path.read_text(encoding="utf-8"))
    entries = {f"models.{name}": (entry, "id") for name, entry in at(tree, "models").items()}
    entries[".".join(HATE)] = at(tree, *HATE), "model"
    pinned, problems, client = Pinned({}, [], []), [], hub.client(os.environ.get("HF_TOKEN"))
    for name, (entry, key) in entries.items():
        model = entry.get(key) if isinstance(entry, dict) else None
        if not model or model.startswith(LOCAL):
            continue
        revision = entry.get("revision") or "main"
        try:
            with hub.answering(f"{model}@{revision}"):
                info: Any = client.model_info(model, revision=revision)
        except hub.Missing as problem:
            problems.append(f"  {name}: {problem}")
            continue
        commit, files = str(info.sha), [file.rfilename for file in info.siblings or ()]
        if not COMMIT.fullmatch(commit):
            problems.append(f"  {name}: {model}: the Hub states no commit")
            continue
        if not entry.get("pickles") and not any(f.endswith(".safetensors") for f in files):
            pinned.pickled.append(name)
        if entry.get("revision"):
            pinned.there.append(name)
        else:
            entry.insert(list(entry).index(key) + 1, "revision", commit)
            pinned.written[name] = commit
    if pinned.written:
        text = io.StringIO()
        FORM.dump(tree, text)
        write_bytes(path, text.getvalue().encode())
    if problems:
        raise UserError("\n".join([f"{path}: {len(problems)} problem(s) to mend:", *problems]))
    return pinned
