"""Write the generated parts of the docs; with ``--check``, report which are out of date.

docs/params.md is made from the classes of the params, docs/commands.md from the commands' own help,
docs/reference.md (all datasets, outputs and tables with their columns) from the schemas, and the
error rates in the page on calibration from its tables.
"""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import polars as pl
from pydantic import BaseModel

CALIBRATION = "docs/methods/calibration.md"
TOP = Path(__file__).parent.parent
RATES = TOP / "data/tables/calibration"
sys.path.insert(0, str(TOP))

from calibration import headlines  # noqa: E402
from calibration.calibrate import FILE as OF_CALIBRATION  # noqa: E402
from calibration.calibrate import Settings, simulated_analyses  # noqa: E402
from plumbline.builders import DATASETS  # noqa: E402
from plumbline.builders.core.params import BESIDE, STUDIES, parse  # noqa: E402
from plumbline.builders.core.schema import Column, Schema  # noqa: E402
from plumbline.builders.release.facts import CARDS, GENERATED, read_page  # noqa: E402
from plumbline.probes import ACROSS, ALL, EACH, OF_GROUPS, PROBES, module_of  # noqa: E402
from plumbline.probes.commands.check_params import sections  # noqa: E402
from plumbline.probes.models.params import Model  # noqa: E402
from plumbline.probes.report import error_rates  # noqa: E402
from plumbline.probes.stats.estimate import estimates  # noqa: E402
from plumbline.probes.stereotypes import waves  # noqa: E402
from worlds.plant import FILE as OF_WORLDS  # noqa: E402
from worlds.plant import SETTINGS  # noqa: E402

COMMON = (  # descriptions of columns that many outputs and tables share
    Column("model", "string", "name of the model in params.yaml"),
    Column("revision", "string", "commit of the model on the Hub, or hash of a trained one"),
    *estimates(cluster="see the table", method="see the table", null="see the table"),
    Column("family", "int64", "tests in the family that p_bh is taken over"),
)
COMMANDS = (
    ["builders"],
    ["builders", "fetch"],
    ["builders", "cards"],
    ["builders", "prune"],
    ["builders", "removed"],
    ["builders", "publish"],
    ["builders", "trace"],
    ["builders", "diff"],
    ["validation"],
    ["probes"],
    ["probes", "check"],
    ["probes", "use"],
    ["probes", "pin"],
    ["probes", "weights"],
    ["probes", "pretrain"],
    *(["probes", name] for name in PROBES),
    ["probes", "annotate"],
    ["probes", "waves"],
    ["probes", "import"],
    ["probes", "plan"],
    ["probes", "recovery"],
    ["calibration"],
    ["worlds"],
)
OUTSIDE = ("calibration", "worlds")  # folders that are not part of the installed package


def main() -> int:
    """Write all generated parts, or compare them with the existing ones."""
    made = {"docs/params.md": params(), "docs/commands.md": commands()}
    made[CALIBRATION] = calibration(_read(TOP / CALIBRATION))
    made["docs/reference.md"] = reference()
    stale = [p for p, text in made.items() if _read(TOP / p) != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"error: {path} is out of date; run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (TOP / path).write_text(made[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


def calibration(text: str) -> str:
    """Return the page on calibration with the error rates of all simulated tests."""
    lines = ["<!-- begin generated -->", "## Rates", ""]
    for name in simulated_analyses():
        path = RATES / name / "calibration.parquet"
        rates = _rates(pl.read_parquet(path)) if path.is_file() else ["Not run yet."]
        lines += [f"### {name}", "", *rates, ""]
    if (path := RATES / headlines.FILE).is_file():
        table = pl.read_csv(path).drop("shape")
        lines += [f"### {headlines.NAME}", "", f"| {' | '.join(table.columns)} |"]
        lines += ["|---" * table.width + "|"]
        lines += [f"| {' | '.join(map(str, row))} |" for row in table.iter_rows()] + [""]
    return GENERATED.sub("", text).rstrip() + "\n\n" + "\n".join(lines) + "<!-- end generated -->\n"


def _rates(table: pl.DataFrame) -> list[str]:
    """Return a table with one line for tests of one kind, whose names share a beginning."""
    heads = ("tests", "tables", "size .05", "families", "coverage", "out of bounds")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    kinds: dict[str, list[error_rates.Line]] = {}
    for line in error_rates.lines(table):
        kind = re.split("[:,]", line["test"])[0]
        level = ", 90% interval" if line["test"].endswith("90% interval") else ""
        kinds.setdefault(kind + level, []).append(line)
    for kind, alike in kinds.items():
        cells = [kind, f"{min(line['replicates'] for line in alike):,}"]
        for measure in (error_rates.SIZE, error_rates.FAMILIES, error_rates.COVERAGE):
            values = sorted(line[measure][0] for line in alike if measure in line)
            ends = dict.fromkeys(f"{value:.3f}" for value in (values[:1] + values[-1:]))
            cells.append("–".join(ends))
        outside = sum(bool(line["outside"]) for line in alike)
        cells.append(f"{outside} of {len(alike)}" if outside else "")
        if any(cells[2:]):
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def params() -> str:
    """Describe every key of params.yaml, of the files next to the code, and of control models."""
    lines = [
        "# Parameters",
        "",
        "Generated from the models in the code by `make docs`. Each section names the files that",
        "set it; a key stands in one file alone. Unknown keys are errors;",
        "`python -m plumbline.probes check` reports all problems at once.",
    ]
    files = _files() | {"calibration": [str(OF_CALIBRATION)]}
    every = sections() | {"calibration": Settings, "models.NAME": Model}
    for key, model in every.items():
        lines += ["", f"## {key}", ""]
        found = files.get(key) or files.get(key.partition(".")[0]) or ["params.yaml"]
        lines += [f"In {', '.join(f'`{file}`' for file in found)}.", "", *_keys(model)]
    for world, model in SETTINGS.items():
        lines += ["", f"## world: {world}", ""]
        lines += [
            f"In `{OF_WORLDS.resolve().relative_to(TOP.resolve())}`; read by `python -m worlds`.",
            "",
        ]
        lines += _keys(model)
    return "\n".join(lines) + "\n"


def _files() -> dict[str, list[str]]:
    """Return the files that set a section, by its dotted key and by the key's first part."""
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
        title = " ".join(words) if words[0] in OUTSIDE else f"plumbline.{' '.join(words)}"
        command = [sys.executable, "-m", *title.split(), "--help"]
        environment = os.environ | {"COLUMNS": "88", "PYTHONPATH": str(TOP)}
        done = subprocess.run(  # noqa: S603
            command, check=True, capture_output=True, text=True, env=environment, cwd=TOP
        )
        lines += ["", f"## python -m {title}", "", "```text", done.stdout.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def reference() -> str:
    """List every dataset, probe and analysis with its source and its columns."""
    lines = [
        "# Reference",
        "",
        "Generated from the schemas by `make docs`. Every name leads to its columns.",
        "[Commands](commands.md) and [keys of the params](params.md) have pages of their own.",
    ]
    kinds = (("Datasets", "datasets"), ("Outputs", "outputs"), ("Tables", "tables"))
    for title, kind in kinds:
        lines += ["", f"## {title}", "", "| name | what | documentation | command |"]
        lines += ["|---|---|---|---|"]
        lines += [_listed(kind, name) for name in sorted(_names(kind))]
    lines += ["", "## Common columns", ""]
    lines += ["These mean the same in all outputs and tables that have them.", ""]
    lines += [Schema(COMMON, ()).table()]
    for _, kind in kinds:
        lines += ["", f"## Columns of {kind}", ""]
        for name in sorted(_names(kind)):
            common = () if kind == "datasets" else COMMON
            lines += [f"### {name} ({kind})", "", *_columns(_schemas(kind, name), common), ""]
    return "\n".join(lines).rstrip() + "\n"


def _names(kind: str, study: str = "") -> list[str]:
    """Return the datasets, or the names of the outputs or tables (of a study), by module."""
    if kind == "datasets":
        return list(DATASETS)
    modules = [module_of(name) for name in (PROBES if kind == "outputs" else [*EACH, *ALL])]
    modules += [waves.__name__] if kind == "tables" else []
    return [m.rpartition(".")[2] for m in modules if study in m.split(".") or not study]


def _module(kind: str, name: str) -> str:
    if kind == "datasets":
        return f"plumbline.builders.datasets.{name}.build"
    folders = (*STUDIES, *ACROSS)
    (study,) = [s for s in folders if (TOP / "probes" / s / f"{name}.py").is_file()]
    return f"plumbline.probes.{study}.{name}"


def _page(study: str) -> str:
    return f"{'methods' if study in ACROSS else 'studies'}/{study}.md"


def _schemas(kind: str, name: str) -> dict[str, Schema]:
    module = importlib.import_module(_module(kind, name))
    return getattr(module, "SCHEMAS", None) or {"": module.SCHEMA, **dict(module.SCHEMA.others)}


def _listed(kind: str, name: str) -> str:
    package, prose = "builders", Path(f"datasets/{name}.md")
    if kind == "datasets":
        front = read_page(TOP / "docs" / prose)[0]
    else:
        study = _module(kind, name).split(".")[2]
        package, prose = "probes", Path(_page(study))
        front = read_page(TOP / "docs" / prose)[0][CARDS][kind].get(name, {})
        prose = Path(f"{prose}#{name}")
    alone = kind == "outputs" or name in EACH
    own = " [MODEL]" if name in OF_GROUPS else " MODEL" if alone else ""
    command = f"`python -m plumbline.{package} {name}{own}`"
    what, links = front.get("pretty_name", ""), f"[page]({prose})"
    if kind == "tables" and (RATES / name / "calibration.parquet").is_file():
        links += f", [error rates]({CALIBRATION.removeprefix('docs/')}#{name})"
    return f"| [{name}](#{name}-{kind}) | {what} | {links} | {command} |"


def _columns(schemas: dict[str, Schema], common: tuple[Column, ...]) -> list[str]:
    """Return a table of columns with the configs that contain them.

    Columns with the same meaning in all outputs and tables are listed by name only.
    """
    known = {(c.name, c.kind, c.description) for c in common}
    configs: dict[Column, list[str]] = {}
    for name, schema in schemas.items():
        for column in schema.columns:
            plain = Column(
                column.name, column.kind, column.description, column.nullable, column.labels
            )
            configs.setdefault(plain, []).append(name or "all others")
    shared: dict[str, list[str]] = {}
    rows = []
    for column, names in configs.items():
        where = "all" if len(names) == len(schemas) else ", ".join(names)
        if (column.name, column.kind, column.description) in known:
            shared.setdefault(where, []).append(f"`{column.name}`")
        else:
            cells = Schema((column,), ()).table().splitlines()[-1]
            rows.append(cells if len(schemas) == 1 else cells.replace(" | ", f" | {where} | ", 1))
    for where, names in shared.items():
        cells = [", ".join(names), *([where] if len(schemas) > 1 else [])]
        rows.append(f"| {' | '.join([*cells, '', '[common columns](#common-columns)'])} |")
    head = ["column", *(["config"] if len(schemas) > 1 else []), "type", "description"]
    config = next(iter(schemas))
    lines = [f"Config: {config}.", ""] if len(schemas) == 1 and config else []
    return [*lines, f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *rows]


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
    """Return a type as it is written in code, without constraints."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is type(None):
        return "None"
    if origin is Annotated:
        return _kind(parts[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_kind, parts))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin is not None:
        inner = ", ".join("..." if part is ... else _kind(part) for part in parts)
        return f"{origin.__name__}[{inner}]"
    return str(getattr(annotation, "__name__", annotation))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main())
