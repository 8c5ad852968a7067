"""Writing ``data/report`` from what is on disk: a page for each study, and what they lead to."""

from __future__ import annotations

import base64
import hashlib
import shutil
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import polars.selectors as cs
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import STUDIES as FOLDERS
from plumbline.builders.core.params import parse
from plumbline.probes import ACROSS, ALL, EACH, PROBES
from plumbline.probes.models.params import worlds
from plumbline.probes.report import results
from plumbline.probes.report.tables import Tables, labelled, labels
from plumbline.probes.report.view import Block, Group, Part, Section, Study, link, listed
from plumbline.probes.site import calibrated, controls, headlines, metrics, versions

HERE = Path(__file__).parent
DATA = Path("data")
REPORT = DATA / "report"
HEADLINES = DATA / "headlines"  # what git keeps
STUDIES = tuple(Study(**parse(HERE.parent / name / "page.yaml")) for name in (*FOLDERS, *ACROSS))
TITLE = "Bias in language models"
OVERVIEW = (
    "What language models make of people, measured with versioned data: whether the probes can see "
    "it at all, then each study in its faithful and its corrected reading, with intervals."
)
TEMPLATES = Environment(
    loader=FileSystemLoader(HERE),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
LARGEST = 256 * 1024  # bytes of a table that is copied beside the page
LONG = 10  # rows of a table that is not folded
FILES_NOTE = (
    "The tables behind this page as parquet and as CSV; larger ones are in the project alone, "
    "under the same path. `plumbline export tables ANALYSIS` writes all of them, and the figures."
)


class Page(NamedTuple):
    """An entry of the navigation."""

    name: str
    title: str
    about: str = ""


LAST = Page("datasets", "Datasets", "What everything was made of: rows, rejects and validation.")
PAGES = (Page("index", "Overview"), *STUDIES, LAST)


def write() -> Path:
    """Write the site, and what runs are compared by, and return the path of its first page.

    A UserError if there are no tables yet.
    """
    tables = Tables(DATA)
    if tables.read("pmi/pmi").is_empty():
        raise UserError(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    checks, run = controls.checks(tables), versions.Versions(tables)
    kinds = {name: params.control for name, params in worlds().items()}
    rows = headlines.headlines(tables, kinds)
    partial, packages = parquet.fresh(REPORT), versions.packages()

    def page(name: str, sections: list[Section], **more: Any) -> None:
        text = render(sections, name=name, pages=PAGES, **more)
        (partial / f"{name}.html").write_text(text, encoding="utf-8")

    overview = [
        headlines.section(rows, checks, STUDIES),
        controls.section(checks, STUDIES),
        contents(run),
        versions.section(packages),
    ]
    page("index", overview, about=OVERVIEW, studies=PAGES[1:])
    datasets = [versions.datasets_section(run), versions.section(packages)]
    page("datasets", datasets, title=LAST.title, about=LAST.about)
    for study in STUDIES:
        first = [headlines.section(rows, checks, [study], "headlines")]
        first.append(controls.section(checks, [study]))
        made = (run.datasets(study.datasets), run.models(study.probes), packages)
        last = [downloads(tables, study, partial), versions.section(*made)]
        about = f"{study.about} After {study.paper}."
        sections = [section for section in first if section.groups]
        sections += [analysis_section(study, name, tables) for name in study.analyses]
        sections += last
        page(study.name, sections, title=study.title, about=about)
    metrics.write(checks, rows, partial)
    tracked = parquet.fresh(HEADLINES)
    metrics.write(checks, rows, tracked, metrics.TRAINED)
    parquet.finish(HEADLINES)
    parquet.finish(REPORT)
    return REPORT / "index.html"


def analysis_section(study: Study, analysis: str, tables: Tables) -> Section:
    """Return the section of an analysis, with the calibration of its tests.

    A study that draws figures of its own has a module ``page`` with ``DRAWINGS``, by table.
    """
    module = f"plumbline.probes.{study.name}.page"
    drawings = import_module(module).DRAWINGS if find_spec(module) else {}
    section = results.section(study, analysis, tables, drawings)
    groups = [*section.groups, *calibrated.groups(tables, analysis)]
    return section._replace(groups=groups)


def contents(run: versions.Versions) -> Section:
    """Return the models, the datasets and the analyses of the run."""
    estimated = EACH | ALL
    analyses = [
        {"study": study.name, "analysis": analysis, "what": estimated.get(analysis, "")}
        for study in STUDIES
        for analysis in study.analyses
    ]
    words = {"study": "study", "analysis": "analysis", "what": "what it estimates"}
    listing = listed(analyses, words, caption="Analyses")
    parts = [Part(tables=(t,)) for t in (run.models(PROBES), run.datasets(run.validated), listing)]
    note = "Which probes run on which model, and what their prompts are made of."
    return Section("contents", "What is in this run", note, [Group("", [Block("", parts)])], "")


def downloads(tables: Tables, study: Study, into: Path) -> Section:
    """Copy the small tables of a study into the site as parquet and CSV; return links to them."""
    rows = []
    for analysis in study.analyses:
        own = [path for folder in tables.folders(analysis) for path in folder.glob("*.parquet")]
        for path in sorted([*own, *controls.recovery_files(tables, analysis)]):
            inside, size = path.relative_to(tables.data).as_posix(), path.stat().st_size
            row = {"table": f"data/{inside} (in the project)", "csv": ""}
            if size <= LARGEST:
                target = into / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                codes = labels(path.parent / front_matter.FACTS).get(path.stem, {})
                flat = cs.list().cast(pl.List(pl.String)).list.join("; ")
                table = labelled(pl.read_parquet(path), codes).with_columns(flat)
                table.write_csv(target.with_suffix(".csv"))
                csv = link(Path(inside).with_suffix(".csv").as_posix(), "CSV")
                row = {"table": link(inside, f"data/{inside}"), "csv": csv}
            rows.append(row | {"rows": versions.rows(path), "size": size / 1024})
    words, numbers = {"table": "table", "csv": "CSV"}, {"rows": "rows", "size": "KiB"}
    parts = [Part(tables=(listed(rows, words, numbers, "Tables", digits=1),))]
    groups = [Group("", [Block("", parts)])] if rows else []
    return Section("downloads", "Downloads", FILES_NOTE, groups, "")


def render(sections: list[Section], **page: Any) -> str:
    """Return the page of some sections: HTML without any request to another server.

    ``page``: its name, title and about; HTML before the sections; all pages, and studies that it
    leads to.
    """
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    bare = {"name": "index", "title": TITLE, "about": "", "before": "", "pages": (), "studies": ()}
    return TEMPLATES.get_template("page.html").render(
        page=bare | page,
        site=TITLE,
        longest=LONG,
        sections=sections,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )
