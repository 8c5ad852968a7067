"""Export the tables, datasets and outputs of a checkout to files for R, pandas, Stata and LaTeX.

Labels become strings; the rows are copied from ``data`` without further computation.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from plumbline import latex
from plumbline.builders.core import front_matter
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.core.snapshot import write_bytes, writing
from plumbline.figure import FORMATS as FIGURES
from plumbline.figure import Figure, check_width
from plumbline.latex import Selection
from plumbline.probes import EACH, POOLED
from plumbline.probes.report.tables import Tables, labelled, labels

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

ROWS = ("csv", "parquet")
FORMATS = {"tables": (*ROWS, "tex", *FIGURES), "datasets": ROWS, "outputs": ROWS}
MODEL = Column("model", "string", "name of the model")
COLUMNS = ("table", "column", "type", "about")
LONGEST = 80  # maximum length of the title in a figure's file name, in letters


# relative path of the exported files without suffix, rows with labels as strings, and schema
Source = tuple[str, pl.LazyFrame, Schema]


def export(
    kind: str,
    names: Sequence[str],
    into: str | Path,
    *,
    data: str | Path = "data",
    formats: Sequence[str] = (),
    width: float = 12,
    selection: Selection = Selection(),  # noqa: B008 - a tuple, which nobody changes
) -> Iterator[Path]:
    """Write files for other programs, and yield their paths.

    Parameters
    ----------
    kind
        ``tables`` (of analyses), ``datasets``, or ``outputs`` (of probes).
    names
        Names of analyses, datasets or probes; by default, all that exist.
    formats
        Names from :data:`FORMATS`; by default, all formats available for the kind.
    width
        Width of the figures, in centimetres.
    selection
        Columns and rows that LaTeX tables show.

    Raises
    ------
    UserError
        If a name is unknown (no file is then written), or the folder cannot be written.
    """
    into, top = Path(into).expanduser(), Path(data) / kind
    formats = [nearest(f, FORMATS[kind], "format") for f in formats] or FORMATS[kind]
    check_width(width)
    existing = sorted(p.name for p in top.glob("[!.]*") if any(p.rglob(front_matter.FACTS)))
    if not existing:
        raise UserError(f"{top}: contains no results; run `make repro` first, or set --data")
    names = [nearest(name, existing, kind) for name in names] or existing
    sources = [source for name in names for source in _sources(top, name)]
    texts = _latex(sources, selection) if "tex" in formats else {}
    kinds = [f for f in formats if f in FIGURES]
    for stem, frame, _ in sources:
        for suffix in (f for f in ROWS if f in formats):
            with writing(path := into / f"{stem}.{suffix}") as part:
                if suffix == "csv":
                    _lists_as_json(frame).sink_csv(part)
                else:
                    frame.sink_parquet(part, compression="zstd")
            yield path
    files = {f"{path}.tex": text.encode() for path, text in texts.items()} | _codebooks(sources)
    for name in names if kinds else ():
        for stem, svg in _figures(Tables(Path(data)), name).items():
            figure = Figure(svg, width)
            files |= {f"{name}/figures/{stem}.{kind}": figure.encode(kind) for kind in kinds}
    for name, body in files.items():
        write_bytes(into / name, body)
        yield into / name


def _sources(top: Path, name: str) -> Iterator[Source]:
    """Yield a folder's tables; join the tables of single models and add a column ``model``."""
    by_model = top.name == "outputs" or name in EACH
    stored: dict[tuple[str, str], list[tuple[Path, front_matter.Built]]] = {}  # by path and config
    for facts in sorted((top / name).rglob(front_matter.FACTS)):
        inside = facts.parent.relative_to(top)
        if not any(part.startswith(".") for part in inside.parts):
            built, path = front_matter.read(facts), name if by_model else inside.as_posix()
            for config in built.schemas:
                stored.setdefault((path, config), []).append((facts.parent, built))
    for (path, config), parts in sorted(stored.items()):
        schema = parts[0][1].schemas[config]
        names = [column.name for column in schema.columns]
        added = by_model and parts[0][0].name != POOLED and MODEL.name not in names
        frames = []
        for folder, built in parts:
            frame = pl.scan_parquet(folder / built.files.format(config=config))
            codes = labels(folder / front_matter.FACTS).get(config, {})
            model = [pl.lit(folder.name).alias(MODEL.name)] if added else []
            frame = labelled(frame, codes).select(*model, *names)
            frames.append(frame.with_columns(pl.selectors.enum().cast(pl.String)))
        if added:
            schema = Schema((MODEL, *schema.columns), (MODEL.name, *schema.key))
        yield f"{path}/{config}", pl.concat(frames, how="vertical"), schema


def _lists_as_json(frame: pl.LazyFrame) -> pl.LazyFrame:
    lists = [n for n, kind in frame.collect_schema().items() if isinstance(kind, pl.List)]
    return frame.with_columns(
        pl.when(pl.col(n).is_not_null()).then(
            pl.struct(n).struct.json_encode().str.strip_prefix(f'{{"{n}":').str.strip_suffix("}")
        )
        for n in lists
    )


def _latex(sources: Sequence[Source], selection: Selection) -> dict[str, str]:
    """Return, by path, the LaTeX code of each table that has selected rows."""
    columns = sorted({name for _, frame, _ in sources for name in frame.collect_schema()})
    for name in (*selection.columns, *selection.where):
        nearest(name, columns, "columns")
    if selection.rows < 1:
        raise UserError(f"--rows {selection.rows}: must be at least 1")
    tables = {p: latex.estimates(f.collect(), s.key, selection) for p, f, s in sources}
    if selection.where and not any(tables.values()):
        raise UserError(f"--where {dict(selection.where)}: no table has matching rows")
    return {path: table for path, table in tables.items() if table}


def _codebooks(sources: Sequence[Source]) -> dict[str, bytes]:
    """Return, by path, one CSV file per folder of tables, which describes their columns."""
    rows = []
    for folder, _, table, schema in ((*path.rpartition("/"), s) for path, _, s in sources):
        for column in schema.columns:
            kind = f"one of {', '.join(column.labels)}" if column.labels else column.kind
            rows.append((folder, table, column.name, kind, column.description))
    frame = pl.DataFrame(rows, ["folder", *COLUMNS], orient="row")
    parts = frame.partition_by("folder", as_dict=True, include_key=False, maintain_order=True)
    return {f"{folder}/columns.csv": part.write_csv().encode() for (folder,), part in parts.items()}


def _figures(tables: Tables, analysis: str) -> dict[str, str]:
    """Return the SVG of the report's figures for an analysis, keyed by number and title."""
    from plumbline.probes.site.build import STUDIES, analysis_section

    svgs: dict[str, str] = {}
    for study in (study for study in STUDIES if analysis in study.analyses):
        for group in analysis_section(study, analysis, tables).groups:
            for part in (part for part in group.parts if part.figure):
                stem = re.sub(r"\W+", "-", f"{group.name}, {part.title}".lower())
                svgs[f"{len(svgs) + 1:03d}-{stem.strip('-')[:LONGEST]}"] = part.figure
    return svgs


def nearest(name: str, names: Collection[str], kind: str) -> str:
    """Return the name if it exists; otherwise, raise a UserError that suggests the nearest one."""
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"available: {', '.join(names)}"
    raise UserError(f"{kind}: no {name!r}; {hint}")
