"""Writing ``data/report`` from what is on disk: a page for each study, and what they lead to."""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.probes import ALL, EACH, PROBES
from plumbline.probes.leaning import page as leaning
from plumbline.probes.nationality import page as nationality
from plumbline.probes.politicians import page as politicians
from plumbline.probes.report.tables import Tables
from plumbline.probes.report.view import (
    Block,
    Group,
    Listing,
    Part,
    Section,
    Study,
    Table,
    listed,
    section,
)
from plumbline.probes.site import controls, metrics, readings, versions
from plumbline.probes.stereotypes import page as stereotypes
from plumbline.probes.values import page as values

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
DATA = Path("data")
REPORT = DATA / "report"
STUDIES = tuple(module.STUDY for module in (politicians, stereotypes, values, nationality, leaning))
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
LARGEST = 96 * 1024  # bytes of a table that is put beside the page; larger ones are named alone


class Link(NamedTuple):
    """An entry of the navigation."""

    name: str  # of the page
    title: str
    about: str = ""


class Download(NamedTuple):
    """A table, and where it is."""

    table: str  # its path in the project
    link: str  # from the page; "" where it is too large for the site
    rows: int
    size: int  # bytes


class Page(NamedTuple):
    """What a page has besides its sections."""

    name: str = "index"
    title: str = TITLE
    about: str = ""
    pages: Sequence[Link] = ()  # of the site
    studies: Sequence[Link] = ()  # that the page leads to
    downloads: Sequence[Download] = ()
    versions: Sequence[Table] = ()


PAGES = (
    Link("index", "Overview"),
    *(Link(study.name, study.title, study.about) for study in STUDIES),
    Link("datasets", "Datasets", "What everything was made of: rows, rejects and validation."),
)


def write() -> Path:
    """Write the site and return the path of its first page.

    Raises
    ------
    UserError
        If there are no tables yet.
    """
    tables = Tables(DATA)
    if tables.read("pmi/pmi").is_empty():
        raise UserError(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    found, run = controls.checks(tables), versions.Versions(tables)
    partial = parquet.fresh(REPORT)
    every = versions.packages()
    first = Page("index", TITLE, OVERVIEW, PAGES, PAGES[1:], (), (every,))
    last = Page("datasets", "Datasets", PAGES[-1].about, PAGES, (), (), (every,))
    pages = {
        "index": render([controls.overview(found, STUDIES), contents(run)], first),
        "datasets": render([versions.datasets_section(run)], last),
    }
    for study in STUDIES:
        given = downloads(tables, study, partial)
        made = (run.datasets(study.datasets), run.models(study.probes), every)
        about = f"{study.about} After {study.paper}."
        page = Page(study.name, study.title, about, PAGES, (), given, made)
        pages[study.name] = render(sections(study, tables), page)
    for name, text in pages.items():
        (partial / f"{name}.html").write_text(text, encoding="utf-8")
    metrics.write(tables, STUDIES, found, partial)
    parquet.finish(REPORT)
    return REPORT / "index.html"


def sections(study: Study, tables: Tables) -> list[Section]:
    """Return what a study's page has: its controls, its readings, then step by step."""
    return [
        controls.section(tables, study),
        readings.section(tables, study.readings),
        *(section(step, tables) for step in study.steps),
    ]


def contents(run: versions.Versions) -> Section:
    """Return the models, the datasets and the analyses of the run."""
    analyses = [
        {"study": study.name, "analysis": analysis}
        | {"what": (EACH | ALL).get(analysis, "waves of suggestions compared")}
        for study in STUDIES
        for analysis in study.analyses
    ]
    listing = Listing("study; analysis; what=what it estimates")
    parts = [
        Part(tables=(run.models(tuple(PROBES)),)),
        Part(tables=(run.datasets(run.validated()),)),
        Part(tables=(listed(listing, analyses, "Analyses"),)),
    ]
    note = "Which probes run on which model, and what their prompts are made of."
    groups = [Group("", [Block("", parts)])]
    return Section("contents", "What is in this run", note, groups, "validate")


def downloads(tables: Tables, study: Study, into: Path) -> list[Download]:
    """Copy the tables of a study that are small enough into the site, and return them all."""
    found = []
    for analysis in study.analyses:
        own = [path for folder in tables.folders(analysis) for path in folder.glob("*.parquet")]
        for path in sorted([*own, *controls.recovery_files(tables, analysis)]):
            inside, size = path.relative_to(tables.data).as_posix(), path.stat().st_size
            link = inside if size <= LARGEST else ""
            found.append(Download(f"data/{inside}", link, versions.rows(path), size))
            if link:
                target = into / link
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
    return found


def render(shown: list[Section], page: Page | None = None) -> str:
    """Return the page of some sections: HTML without any request to another server."""
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    return TEMPLATES.get_template("page.html").render(
        page=page or Page(),
        site=TITLE,
        largest=LARGEST // 1024,
        sections=shown,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )
