"""Writing ``data/report`` from what is on disk: a page for each study, and what they lead to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import Problem
from plumbline.probes.report.view import files
from plumbline.probes.site import (
    controls_page,
    datasets,
    downloads,
    metrics,
    overview,
    readings,
    versions,
)
from plumbline.probes.site.controls import checks
from plumbline.probes.site.page import TITLE, Link, Page, render
from plumbline.probes.site.studies import STUDIES, Study

if TYPE_CHECKING:
    from plumbline.probes.report.view import Section

DATA = Path("data")
REPORT = DATA / "report"
PAGES = (
    Link("index", "Overview"),
    *(Link(study.name, study.title, study.about) for study in STUDIES),
    Link("datasets", "Datasets", "What everything was made of: rows, rejects and validation."),
)
OVERVIEW = (
    "What language models make of people, measured with versioned data: whether the probes can see "
    "it at all, then each study in its faithful and its corrected reading, with intervals."
)


def write() -> Path:
    """Write the site and return the path of its first page.

    Raises
    ------
    Problem
        If there are no tables yet.
    """
    if not list(files(DATA, "pmi", "pmi")):
        raise Problem(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    found = checks(DATA)
    partial = parquet.fresh(REPORT)
    every = versions.packages()
    pages = {
        "index": render(
            [overview.controls(found), overview.contents(DATA)],
            Page("index", TITLE, OVERVIEW, PAGES, PAGES[1:], (), (every,)),
        ),
        "datasets": render(
            [datasets.section(DATA)],
            Page("datasets", "Datasets", PAGES[-1].about, PAGES, (), (), (every,)),
        ),
    }
    for study in STUDIES:
        given = downloads.downloads(DATA, study.analyses)
        downloads.put(DATA, given, partial)
        made = (
            versions.datasets(DATA, study.datasets),
            versions.models(DATA, study.probes),
            every,
        )
        about = f"{study.about} After {study.paper}."
        page = Page(study.name, study.title, about, PAGES, (), given, made)
        pages[study.name] = render(sections(study), page)
    for name, text in pages.items():
        (partial / f"{name}.html").write_text(text, encoding="utf-8")
    metrics.write(DATA, found, partial)
    parquet.finish(REPORT)
    return REPORT / "index.html"


def sections(study: Study) -> list[Section]:
    """Return what a study's page has: its controls, its readings, then step by step."""
    return [
        controls_page.section(DATA, study.analyses),
        readings.section(DATA, study.name),
        *(module.section(DATA) for module in study.sections),
    ]
