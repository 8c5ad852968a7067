"""Writing ``data/report`` from what is on disk: a page for each study, and what they lead to."""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from plumbline.builders.core import front_matter, parquet
from plumbline.builders.core.errors import UserError
from plumbline.probes import ALL, EACH, PROBES
from plumbline.probes.leaning import page as leaning
from plumbline.probes.models.params import worlds
from plumbline.probes.nationality import page as nationality
from plumbline.probes.politicians import page as politicians
from plumbline.probes.reliability import page as reliability
from plumbline.probes.report.tables import Tables, labelled, labels
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
from plumbline.probes.site import controls, headlines, metrics, readings, versions
from plumbline.probes.site.calibrated import calibrated
from plumbline.probes.stereotypes import page as stereotypes
from plumbline.probes.values import page as values

HERE = Path(__file__).parent
DATA = Path("data")
REPORT = DATA / "report"
STUDIES = tuple(
    module.STUDY for module in (politicians, stereotypes, values, nationality, leaning, reliability)
)
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
LARGEST_CSV = 256 * 1024  # and of one as CSV


class Link(NamedTuple):
    """An entry of the navigation."""

    name: str  # of the page
    title: str
    about: str = ""


LAST = Link("datasets", "Datasets", "What everything was made of: rows, rejects and validation.")
PAGES = (Link("index", "Overview"), *STUDIES, LAST)
BARE: dict[str, Any] = {"name": "index", "title": TITLE, "about": ""} | dict.fromkeys(
    ("pages", "studies", "downloads", "versions"), ()
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
    packages = versions.packages()

    def page(name: str, shown: list[Section], *made: Table, **more: Any) -> None:
        text = render(shown, name=name, pages=PAGES, versions=(*made, packages), **more)
        (partial / f"{name}.html").write_text(text, encoding="utf-8")

    told = headlines.headlines(tables, worlds())
    first = [headlines.section(told, found, STUDIES)] if told else []
    overview = [*first, controls.overview(found, STUDIES), contents(run)]
    page("index", overview, about=OVERVIEW, studies=PAGES[1:])
    page("datasets", [versions.datasets_section(run)], title=LAST.title, about=LAST.about)
    for study in STUDIES:
        shown = []
        if study.readings:
            shown = [controls.section(tables, study), readings.section(tables, study.readings)]
        page(
            study.name,
            [*shown, *(calibrated(section(step, tables), tables) for step in study.steps)],
            run.datasets(study.datasets),
            run.models(study.probes),
            title=study.title,
            about=f"{study.about} After {study.paper}.",
            downloads=downloads(tables, study, partial),
        )
    metrics.write(tables, STUDIES, found, told, partial)
    parquet.finish(REPORT)
    return REPORT / "index.html"


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
        Part(tables=(run.datasets(run.validated),)),
        Part(tables=(listed(listing, analyses, "Analyses"),)),
    ]
    note = "Which probes run on which model, and what their prompts are made of."
    groups = [Group("", [Block("", parts)])]
    return Section("contents", "What is in this run", note, groups, "validate")


def downloads(tables: Tables, study: Study, into: Path) -> list[dict[str, Any]]:
    """Copy the tables of a study that are small enough into the site, and return them all.

    Of each its path in the project, its place from the page ("" of larger ones), that of it as CSV
    with labels as strings, rows and bytes.
    """
    found = []
    for analysis in study.analyses:
        own = [path for folder in tables.folders(analysis) for path in folder.glob("*.parquet")]
        for path in sorted([*own, *controls.recovery_files(tables, analysis)]):
            inside, size = path.relative_to(tables.data).as_posix(), path.stat().st_size
            link = inside if size <= LARGEST else ""
            of = {"table": f"data/{inside}", "link": link, "rows": versions.rows(path)}
            found.append(of | {"size": size, "csv": ""})
            if link:
                target = into / link
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                codes = labels(path.parent / front_matter.FACTS).get(path.stem, {})
                text = labelled(pl.read_parquet(path), codes).write_csv().encode()
                if len(text) <= LARGEST_CSV:
                    target.with_suffix(".csv").write_bytes(text)
                    found[-1]["csv"] = Path(link).with_suffix(".csv").as_posix()
    return found


def render(shown: list[Section], **page: Any) -> str:
    """Return the page of some sections: HTML without any request to another server.

    Parameters
    ----------
    page
        Its name, title and about; tables of versions and downloads; all pages, and studies that
        it leads to.
    """
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    return TEMPLATES.get_template("page.html").render(
        page=BARE | page,
        site=TITLE,
        largest=(LARGEST // 1024, LARGEST_CSV // 1024),
        sections=shown,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )
