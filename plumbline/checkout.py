"""Tables, datasets and outputs of a checkout as files that R, pandas, Stata and LaTeX read.

Labels are strings in all of them. Nothing is computed here: rows are those of ``data``.
"""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

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
LONGEST = 80  # letters of the name of a figure


class Source(NamedTuple):
    """A table of an analysis, or a config of a dataset or of outputs."""

    path: str  # of its files below the folder, without a suffix
    frame: pl.LazyFrame  # labels as strings
    schema: Schema


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
        tables (of analyses), datasets, or outputs (of probes).
    names
        Of analyses, datasets or probes; none: all that are there.
    formats
        Some of :data:`FORMATS`; none: all of the kind.
    width
        Of figures, in centimetres.
    selection
        Columns and rows of tables in LaTeX.

    Raises
    ------
    UserError
        If something named is not there, or the folder cannot be written; before a file is.
    """
    into, top = Path(into).expanduser(), Path(data) / kind
    formats = [known(f, FORMATS[kind], "format") for f in formats] or FORMATS[kind]
    check_width(width)
    if {"pdf", "png"} & {*formats} and not importlib.util.find_spec("typst"):
        raise UserError(
            "PDF and PNG need typst: run pip install 'plumbline[report]', or leave them out "
            "with --formats csv,parquet,svg"
        )
    there = sorted(p.name for p in top.glob("[!.]*") if any(p.rglob(front_matter.FACTS)))
    if not there:
        raise UserError(f"{top}: nothing there; run `make repro` first, or name another --data")
    wanted = [known(name, there, kind[:-1] if kind != "tables" else "analysis") for name in names]
    sources = [source for name in wanted or there for source in _sources(top, name)]
    texts = _latex(sources, selection) if "tex" in formats else {}
    kinds = [f for f in formats if f in FIGURES]
    tables = Tables(Path(data))
    drawn = {name: list(figures(tables, name)) for name in (wanted or there) if kinds}
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{into}: cannot be written ({error.strerror}); name another") from error
    for source in sources:
        yield from _rows(source, into, formats)
        if source.path in texts:
            yield _text(into / f"{source.path}.tex", texts[source.path])
    yield from _codebooks(sources, into)
    for name, found in drawn.items():
        yield from _figures(found, into / name, kinds, width)


def _sources(top: Path, name: str) -> Iterator[Source]:
    """Yield the tables below a folder; those of all models are one, with a column ``model``."""
    models = top.name == "outputs" or name in EACH
    found: dict[str, list[tuple[Path, front_matter.Built]]] = {}
    for facts in sorted((top / name).rglob(front_matter.FACTS)):
        folder = facts.parent
        inside = name if models else folder.relative_to(top).as_posix()
        if not any(part.startswith(".") for part in folder.relative_to(top).parts):
            found.setdefault(inside, []).append((folder, front_matter.read(facts)))
    for inside, folders in found.items():
        for config in sorted({config for _, built in folders for config in built.schemas}):
            those = [(folder, built) for folder, built in folders if config in built.schemas]
            each = models and those[0][0].name != POOLED
            frames = [_frame(folder, built, config, each) for folder, built in those]
            schema = those[0][1].schemas[config]
            if each and MODEL.name not in {column.name for column in schema.columns}:
                schema = Schema((MODEL, *schema.columns), (MODEL.name, *schema.key))
            yield Source(f"{inside}/{config}", pl.concat(frames, how="vertical"), schema)


def _frame(folder: Path, built: front_matter.Built, config: str, models: bool) -> pl.LazyFrame:
    codes = labels(folder / front_matter.FACTS).get(config, {})
    frame = labelled(pl.scan_parquet(folder / built.files.format(config=config)), codes)
    names = [column.name for column in built.schemas[config].columns]
    frame = frame.select(names).with_columns(pl.selectors.enum().cast(pl.String))
    own = models and "model" not in names
    return frame.select(pl.lit(folder.name).alias("model"), *names) if own else frame


def _rows(source: Source, into: Path, formats: Collection[str]) -> Iterator[Path]:
    if "csv" in formats:
        with writing(into / f"{source.path}.csv") as part:
            _flat(source.frame).sink_csv(part)
        yield into / f"{source.path}.csv"
    if "parquet" in formats:
        with writing(into / f"{source.path}.parquet") as part:
            source.frame.sink_parquet(part, compression="zstd")
        yield into / f"{source.path}.parquet"


def _flat(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return a frame without lists: they are written as JSON."""
    lists = [n for n, kind in frame.collect_schema().items() if isinstance(kind, pl.List)]
    return frame.with_columns(
        pl.when(pl.col(n).is_not_null()).then(
            pl.struct(n).struct.json_encode().str.strip_prefix(f'{{"{n}":').str.strip_suffix("}")
        )
        for n in lists
    )


def _latex(sources: Sequence[Source], selection: Selection) -> dict[str, str]:
    """Return the tables in which rows are selected as LaTeX, by path."""
    columns = sorted({name for source in sources for name in source.frame.collect_schema()})
    for name in (*selection.columns, *selection.where):
        known(name, columns, "column")
    if selection.rows < 1:
        raise UserError(f"--rows {selection.rows}: one at least")
    tables = {s.path: latex.estimates(s.frame.collect(), s.schema.key, selection) for s in sources}
    if selection.where and not any(tables.values()):
        raise UserError(f"--where {dict(selection.where)}: no table has such rows")
    return {path: table for path, table in tables.items() if table}


def _text(path: Path, text: str) -> Path:
    write_bytes(path, text.encode())
    return path


def _codebooks(sources: Sequence[Source], into: Path) -> Iterator[Path]:
    """Write the descriptions of columns next to the tables."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for source in sources:
        folder, _, table = source.path.rpartition("/")
        for column in source.schema.columns:
            kind = f"one of {', '.join(column.labels)}" if column.labels else column.kind
            row = (table, column.name, kind, column.description)
            rows.setdefault(folder, []).append(row)
    for folder, own in rows.items():
        frame = pl.DataFrame(own, COLUMNS, orient="row")
        yield _text(into / folder / "columns.csv", frame.write_csv())


def figures(tables: Tables, analysis: str) -> Iterator[tuple[str, str]]:
    """Yield the title and the SVG of each figure that the report has of an analysis."""
    from plumbline.probes.site.build import STUDIES, analysis_section

    for study in STUDIES:
        if analysis in study.analyses:
            for group in analysis_section(study, analysis, tables).groups:
                for block in group.blocks:
                    yield from (
                        (f"{group.name}, {block.title}", part.figure)
                        for part in block.parts
                        if part.figure
                    )


def _figures(
    drawn: Sequence[tuple[str, str]], into: Path, kinds: Sequence[str], width: float
) -> Iterator[Path]:
    """Write figures, named by their titles."""
    used: Counter[str] = Counter()
    for title, svg in drawn:
        stem = re.sub(r"\W+", "-", title.lower()).strip("-")[:LONGEST]
        used[stem] += 1
        stem += f"-{used[stem]}" if used[stem] > 1 else ""
        figure = Figure(svg, width)
        for kind in kinds:
            write_bytes(path := into / "figures" / f"{stem}.{kind}", figure.encode(kind))
            yield path


def known(name: str, names: Collection[str], what: str) -> str:
    """Return a name that is among others, or raise an error with the nearest."""
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    raise UserError(f"no {what} {name!r}; {meant}")
