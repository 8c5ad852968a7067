"""Writing ``data/report`` from what is on disk: a page for each study, and what they lead to."""

from __future__ import annotations

import base64
import hashlib
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl
import polars.selectors as cs
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
    link,
    listed,
    section,
)
from plumbline.probes.site import controls, headlines, metrics, models, readings, versions
from plumbline.probes.site.calibrated import calibrated
from plumbline.probes.stereotypes import page as stereotypes
from plumbline.probes.values import page as values

if TYPE_CHECKING:
    from collections.abc import Mapping

HERE = Path(__file__).parent
DATA = Path("data")
REPORT = DATA / "report"
HEADLINES = DATA / "headlines"  # what git keeps
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
LONG = 10  # rows of a table that is not folded
FILES = Listing("table; csv=CSV", "rows; size:1=KiB")
FILES_NOTE = (
    "The tables behind this page as parquet, byte for byte those of the project, in which labels "
    "are integers (the README.md in their folder says what each column is), and as CSV with labels "
    f"as strings. Tables of more than {LARGEST // 1024} KiB ({LARGEST_CSV // 1024} as CSV) are in "
    "the project alone, under the same path. All of them, with LaTeX and the figures as SVG, PDF "
    "and PNG of a given width, come from `plumbline export tables ANALYSIS --to FOLDER`."
)


class Link(NamedTuple):
    """An entry of the navigation."""

    name: str  # of the page
    title: str
    about: str = ""


LAST = Link("datasets", "Datasets", "What everything was made of: rows, rejects and validation.")
PAGES = (Link("index", "Overview"), *STUDIES, LAST)
BARE: dict[str, Any] = {"name": "index", "title": TITLE, "about": "", "root": ""}
BARE |= {"before": "", "pages": (), "studies": ()}


def write() -> Path:
    """Write the site, and what runs are compared by, and return the path of its first page.

    A UserError if there are no tables yet.
    """
    tables = Tables(DATA)
    if tables.read("pmi/pmi").is_empty():
        raise UserError(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    found, run, known = controls.checks(tables), versions.Versions(tables), worlds()
    told = headlines.headlines(tables, {name: own.control for name, own in known.items()})
    steps = {
        study.name: [calibrated(section(step, tables), tables) for step in study.steps]
        for study in STUDIES
    }
    names = [row["name"] for row in run.of(PROBES)]
    names.sort(key=lambda name: (name in known, name))
    shown = models.shown(names)
    partial, packages = parquet.fresh(REPORT), versions.packages()
    (partial / models.FOLDER).mkdir()

    def page(name: str, sections: list[Section], **more: Any) -> None:
        text = render(sections, name=name, pages=PAGES, **more)
        (partial / f"{name}.html").write_text(text, encoding="utf-8")

    overview = [
        headlines.section(told, found, STUDIES, shown),
        controls.section(found, STUDIES, shown),
        contents(run, shown),
        versions.section(packages),
    ]
    page("index", overview, about=OVERVIEW, studies=PAGES[1:])
    datasets = [versions.datasets_section(run), versions.section(packages)]
    page("datasets", datasets, title=LAST.title, about=LAST.about)
    for study in STUDIES:
        first = []
        if study.readings:
            rows = headlines.section(told, found, [study], shown, "headlines")
            first = [rows] if rows.groups else []
            first.append(controls.section(found, [study], shown))
            first.append(readings.section(tables, study.readings, shown))
        within = [models.left(study, step, names) for step in steps[study.name]]
        made = (run.datasets(study.datasets), run.models(study.probes, shown), packages)
        last = [*downloads(tables, study, partial), versions.section(*made)]
        about = f"{study.about} After {study.paper}."
        page(study.name, [*first, *within, *last], title=study.title, about=about)
    alone = {study.name: of_models(tables, study) for study in STUDIES}
    for row in run.of(PROBES):
        name = row["name"]
        rows = headlines.section(told, found, STUDIES, {}, "headlines", name)
        sections = [rows] if rows.groups else []
        for study in STUDIES:
            sections += models.moved(study, alone[study.name], steps[study.name], name)
        about = models.about(row, known)
        page(f"{models.FOLDER}/{name}", sections, title=name, about=about, root="../")
    metrics.write(tables, STUDIES, found, told, partial)
    kept = parquet.fresh(HEADLINES)
    metrics.write(tables, STUDIES, found, told, kept, metrics.TRAINED)
    parquet.finish(HEADLINES)
    parquet.finish(REPORT)
    return REPORT / "index.html"


def of_models(tables: Tables, study: Study) -> list[dict[str, Group]]:
    """Return by model what stands on its page before the steps of a study."""
    if study.readings is None:
        return []
    return [controls.models(tables, study), readings.models(tables, study.readings)]


def contents(run: versions.Versions, shown: Mapping[str, str]) -> Section:
    """Return the models, the datasets and the analyses of the run."""
    analyses = [
        {"study": study.name, "analysis": analysis}
        | {"what": (EACH | ALL).get(analysis, "waves of suggestions compared")}
        for study in STUDIES
        for analysis in study.analyses
    ]
    listing = Listing("study; analysis; what=what it estimates")
    parts = [
        Part(tables=(run.models(PROBES, shown),)),
        Part(tables=(run.datasets(run.validated),)),
        Part(tables=(listed(listing, analyses, "Analyses"),)),
    ]
    note = "Which probes run on which model, and what their prompts are made of."
    groups = [Group("", [Block("", parts)])]
    return Section("contents", "What is in this run", note, groups, "validate")


def downloads(tables: Tables, study: Study, into: Path) -> list[Section]:
    """Copy the tables of a study that are small enough into the site, and return what names all.

    Beside a table is itself as CSV, with labels as strings.
    """
    found = []
    for analysis in study.analyses:
        own = [path for folder in tables.folders(analysis) for path in folder.glob("*.parquet")]
        for path in sorted([*own, *controls.recovery_files(tables, analysis)]):
            inside, size = path.relative_to(tables.data).as_posix(), path.stat().st_size
            name, text = f"data/{inside}", ""
            if size <= LARGEST:
                target = into / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                codes = labels(path.parent / front_matter.FACTS).get(path.stem, {})
                flat = cs.list().cast(pl.List(pl.String)).list.join("; ")
                table = labelled(pl.read_parquet(path), codes).with_columns(flat)
                written = table.write_csv().encode()
                if len(written) <= LARGEST_CSV:
                    target.with_suffix(".csv").write_bytes(written)
                    text = link(Path(inside).with_suffix(".csv").as_posix(), "CSV")
                name = link(inside, name)
            else:
                name += " (in the project)"
            of = {"table": name, "csv": text or "–", "rows": versions.rows(path)}
            found.append(of | {"size": size / 1024})
    parts = [Part(tables=(listed(FILES, found, "Tables"),))]
    groups = [Group("", [Block("", parts)])]
    return [Section("downloads", "Downloads", FILES_NOTE, groups, "")] if found else []


def render(shown: list[Section], **page: Any) -> str:
    """Return the page of some sections: HTML without any request to another server.

    ``page``: its name, title and about; HTML before the sections; all pages, and studies that it
    leads to; the way from it to the root of the site.
    """
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = hashlib.sha256(script.encode()).digest()
    return TEMPLATES.get_template("page.html").render(
        page=BARE | page,
        site=TITLE,
        longest=LONG,
        sections=shown,
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(digest).decode(),
    )
