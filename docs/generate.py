"""Writing the generated parts of the docs; with ``--check``, telling which are out of date.

docs/params.md comes from the models of params.yaml, docs/commands.md from the commands' own help,
the tables of columns in the pages of datasets, probes and analyses from their schemas, and
docs/reference.md, which lists all of these, from schemas and pages.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

if TYPE_CHECKING:
    from plumbline.builders.core.schema import Schema

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

from plumbline.builders import DATASETS  # noqa: E402
from plumbline.builders.core.params import BESIDE, parse  # noqa: E402
from plumbline.builders.release.facts import GENERATED  # noqa: E402
from plumbline.probes import ALL, EACH, PROBES, module_of  # noqa: E402
from plumbline.probes.commands.check_params import sections  # noqa: E402
from plumbline.probes.models.params import Model  # noqa: E402
from plumbline.probes.stereotypes import waves  # noqa: E402
from plumbline.probes.worlds.plant import FILE as OF_WORLDS  # noqa: E402
from plumbline.probes.worlds.plant import SETTINGS  # noqa: E402

BOUNDED = re.compile(r"Annotated\[(\w+), FieldInfo\(.*?metadata=\[[^]]*\]\)\]")
OWN = re.compile(r"\bplumbline\.(?:\w+\.)+")
COMMANDS = (
    ["builders"],
    ["builders", "fetch"],
    ["builders", "cards"],
    ["builders", "people"],
    ["builders", "prune"],
    ["builders", "publish"],
    ["builders", "trace"],
    ["builders", "diff"],
    ["validation"],
    ["probes"],
    ["probes", "check"],
    ["probes", "use"],
    ["probes", "pin"],
    ["probes", "weights"],
    ["probes", "plant"],
    ["probes", "pretrain"],
    *(["probes", name] for name in PROBES),
    ["probes", "paraphrase"],
    ["probes", "waves"],
    ["probes", "plan"],
    ["probes", "recovery"],
)


def main() -> int:
    """Write all generated parts, or compare them with what is there."""
    wanted = {"docs/params.md": params(), "docs/commands.md": commands()}
    for name in DATASETS:
        schema = importlib.import_module(f"plumbline.builders.datasets.{name}.build").SCHEMA
        where = Path("docs/datasets") / f"{name}.md"
        wanted[str(where)] = page(where, {"": schema})
    drift = Path("docs/analyses/drift.md")
    wanted[str(drift)] = page(drift, waves.SCHEMAS)
    for name in PROBES:
        schemas = importlib.import_module(module_of(name)).SCHEMAS
        wanted[f"docs/probes/{name}.md"] = page(Path(f"docs/probes/{name}.md"), schemas)
    for name in [*EACH, *ALL]:
        schemas = importlib.import_module(module_of(name)).SCHEMAS
        wanted[f"docs/analyses/{name}.md"] = page(Path(f"docs/analyses/{name}.md"), schemas)
    wanted["docs/reference.md"] = reference()
    stale = [p for p, text in wanted.items() if _read(TOP / p) != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"error: {path} is out of date; run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (TOP / path).write_text(wanted[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def params() -> str:
    """Describe every key of params.yaml, of the files beside it, and of planted worlds."""
    lines = [
        "# Parameters",
        "",
        "Generated from the models in the code by `make docs`. Each section names the files that",
        "set it; a key stands in one file alone. Unknown keys are errors;",
        "`python -m plumbline.probes check` reports all problems at once.",
    ]
    files = _files()
    for key, model in (sections() | {"models.NAME": Model}).items():
        lines += ["", f"## {key}", ""]
        found = files.get(key) or files.get(key.partition(".")[0]) or ["params.yaml"]
        lines += [f"In {', '.join(f'`{file}`' for file in found)}.", "", *_keys(model)]
    for world, model in SETTINGS.items():
        lines += ["", f"## world: {world}", ""]
        lines += [f"In `{OF_WORLDS.resolve().relative_to(TOP.resolve())}`; read by `plant`.", ""]
        lines += _keys(model)
    return "\n".join(lines) + "\n"


def _files() -> dict[str, list[str]]:
    """Return the files that set a section, by its dotted key and by its first word."""
    found: dict[str, list[str]] = {}
    for path in [TOP / "params.yaml", *(p for glob in BESIDE for p in sorted(TOP.glob(glob)))]:
        name = str(path.relative_to(TOP))
        for top, value in (parse(path) or {}).items():
            keys = [f"{top}.{key}" for key in value] if isinstance(value, dict) else []
            for key in keys if top != "controls" else [top]:
                found.setdefault(key, []).append(name)
    return found


def commands() -> str:
    """Show the help of every command."""
    lines = ["# Commands", "", "Generated from the commands' own help by `make docs`."]
    for words in COMMANDS:
        command = [sys.executable, "-m", f"plumbline.{words[0]}", *words[1:], "--help"]
        environment = os.environ | {"COLUMNS": "88", "PYTHONPATH": str(TOP)}
        done = subprocess.run(  # noqa: S603
            command, check=True, capture_output=True, text=True, env=environment, cwd=TOP
        )
        title = " ".join(words)
        lines += ["", f"## python -m plumbline.{title}", "", "```text", done.stdout.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def reference() -> str:
    """List every dataset, probe and analysis: its tables, how many columns, and what makes it."""
    lines = [
        "# Reference",
        "",
        "Generated from the schemas by `make docs`. Every name leads to its",
    ]
    lines += [
        "columns. [Commands](commands.md) and [keys of params.yaml](params.md) are beside this."
    ]
    kinds = (
        ("Datasets", "datasets", "builders", DATASETS),
        ("Outputs of probes", "probes", "probes", list(PROBES)),
        ("Tables of analyses", "analyses", "probes", [*EACH, *ALL]),
    )
    for title, folder, package, names in kinds:
        lines += ["", f"## {title}", "", "| name | what | columns by config | command |"]
        lines += ["|---|---|---|---|"]
        lines += [_listed(folder, package, name) for name in sorted(names)]
    return "\n".join(lines) + "\n"


def _listed(folder: str, package: str, name: str) -> str:
    built = f"plumbline.builders.datasets.{name}.build"
    module = importlib.import_module(built if folder == "datasets" else module_of(name))
    schemas = getattr(module, "SCHEMAS", None) or {"": module.SCHEMA}
    configs = ", ".join(f"{key or 'each'} {len(s.columns)}" for key, s in schemas.items())
    text = _read(TOP / f"docs/{folder}/{name}.md")
    found = re.search(r"^pretty_name: (.+)$", text, re.MULTILINE)
    link = f"[{name}]({folder}/{name}.md#columns)"
    model = " MODEL" if package == "probes" and name not in ALL else ""
    command = f"`python -m plumbline.{package} {name}{model}`"
    return f"| {link} | {found[1] if found else ''} | {configs} | {command} |"


def page(path: Path, schemas: dict[str, Schema]) -> str:
    """Return a page with its table of columns put in anew at the end."""
    text = GENERATED.sub("", _read(TOP / path)).rstrip() + "\n"
    lines = ["", "<!-- begin generated -->", "## Columns"]
    for name, schema in schemas.items():
        lines += ["", f"Config: {name}."] if name else []
        lines += ["", schema.table()]
    return text + "\n".join([*lines, "<!-- end generated -->"]) + "\n"


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    head = [] if prefix else ["| key | type | default | what it is |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        inner = _inner(field.annotation)
        default = "required"
        if not field.is_required():
            found = field.get_default(call_default_factory=True)
            default = "empty" if found == "" else f"`{found}`"
        kind = _kind(field.annotation).replace("|", "or")
        head.append(f"| `{prefix}{name}` | {kind} | {default} | {field.description or ''} |")
        if inner is not None:
            head += _keys(inner, f"{prefix}{name}.")
    return head


def _inner(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        if found := _inner(part):
            return found
    return None


def _kind(annotation: Any) -> str:
    text = getattr(annotation, "__name__", "") if isinstance(annotation, type) else ""
    if text and not getattr(annotation, "__args__", ()):
        return text
    plain = BOUNDED.sub(r"\1", str(annotation).replace("typing.", "").replace("datetime.", ""))
    return OWN.sub("", plain)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
