"""Write ``data/report`` from the stored results: an overview and one page per study."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs
from jinja2 import FileSystemLoader, StrictUndefined

from plumbline.builders.core import front_matter, params, parquet
from plumbline.builders.core.errors import UserError
from plumbline.probes import ACROSS, ALL, EACH, PROBES
from plumbline.probes.models.params import pointer, worlds
from plumbline.probes.report import error_rates, figures, results
from plumbline.probes.report.tables import Tables, labelled, labels
from plumbline.probes.report.view import Group, Part, Section, Study, Table, link, listed
from plumbline.probes.site import controls, headlines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plumbline.probes.report.view import Row

HERE = Path(__file__).parent
DATA = Path("data")
REPORT = DATA / "report"
HEADLINES = DATA / "headlines"  # this folder is tracked by git
STUDIES = tuple(
    Study(**params.parse(HERE.parent / name / "page.yaml")) for name in (*params.STUDIES, *ACROSS)
)
TITLE = "Bias in language models"
OVERVIEW = (
    "Social and political bias of language models, measured with versioned data. Each study is "
    "shown as published (faithful) and with known faults fixed (corrected), with its controls."
)
TEMPLATES = figures.TEMPLATES.overlay(loader=FileSystemLoader(HERE), undefined=StrictUndefined)
LARGEST = 256 * 1024  # maximum size in bytes of a table that is copied next to the page
LONG = 10  # maximum number of rows in an expanded table
FILES_NOTE = (
    "The tables behind this page are linked as parquet and as CSV, except large ones, which are "
    "in the project only. `plumbline export tables ANALYSIS` writes all of them, and the figures."
)
PACKAGES = (  # packages whose versions may affect results
    *("plumbline", "numpy", "polars", "pyarrow", "scipy", "scikit-learn", "statsmodels"),
    *("torch", "transformers", "tokenizers", "datasets", "great-expectations"),
)


LAST = {"name": "datasets", "title": "Datasets"}
LAST |= {"about": "The rows, rejects and validation of every dataset."}
PAGES = ({"name": "index", "title": "Overview"}, *STUDIES, LAST)  # navigation entries


def write() -> Path:
    """Write the site and the metrics of a run, and return the path of the first page.

    Raises UserError if no tables exist.
    """
    tables = Tables(DATA)
    if tables.read("pmi/pmi").is_empty():
        raise UserError(f"{DATA / 'tables/pmi'}: no tables; run `make repro`")
    checks, planted, tree = controls.checks(tables), controls.effects(tables), params.read()
    kinds = {name: model.control for name, model in worlds().items()}
    rows = headlines.headlines(tables, kinds)
    reports = sorted((DATA / "validation").glob("*.json"))
    validated = {path.stem: _dataset(path, tree) for path in reports}
    partial, packages = parquet.fresh(REPORT), _packages()
    versions = _plain("versions", "Versions", [packages])

    def page(sections: list[Section], name: str, **more: Any) -> None:
        text = render(sections, name=name, pages=PAGES, **more)
        (partial / f"{name}.html").write_text(text, encoding="utf-8")

    listing = [_models(tables, PROBES, tree), _datasets(validated.values()), _analyses()]
    note = "The models with the probes that run on them, and the datasets used in prompts."
    overview = [
        headlines.section(rows, checks, STUDIES),
        controls.section(checks, STUDIES),
        _plain("contents", "What is in this run", listing, note),
        versions,
    ]
    page(overview, "index", about=OVERVIEW, studies=PAGES[1:])
    groups = [_dataset_group(dataset) for dataset in validated.values()]
    datasets = Section("datasets", "Datasets", LAST["about"], groups, "validate")
    page([datasets, versions], **LAST)
    for study in STUDIES:
        first = headlines.section(rows, checks, [study], "headlines")
        inputs = [validated[name] for name in study.datasets if name in validated]
        made = [_datasets(inputs), _models(tables, study.probes, tree), packages]
        sections = [
            *(s for s in (first, controls.section(checks, [study], planted)) if s.groups),
            *(analysis_section(study, name, tables) for name in study.analyses),
            _downloads(tables, study, partial),
            _plain("versions", "Versions", made),
        ]
        about = f"{study.about} After {study.paper}."
        page(sections, study.name, title=study.title, about=about)
    controls.write_metrics(checks, rows, partial)
    controls.write_metrics(checks, rows, parquet.fresh(HEADLINES), controls.TRAINED)
    parquet.finish(HEADLINES)
    parquet.finish(REPORT)
    return REPORT / "index.html"


def analysis_section(study: Study, analysis: str, tables: Tables) -> Section:
    """Return the section of an analysis, including the error rates of its tests.

    A study with its own figures declares them by table, in ``DRAWINGS`` of its module ``page``.
    """
    module = f"plumbline.probes.{study.name}.page"
    drawings = import_module(module).DRAWINGS if find_spec(module) else {}
    section = results.section(study, analysis, tables, drawings)
    return section._replace(groups=[*section.groups, *error_rates.groups(tables, analysis)])


def _plain(name: str, title: str, tables: Iterable[Table], note: str = "") -> Section:
    """Return a section that contains only tables."""
    parts = [Part(tables=(table,)) for table in tables]
    return Section(name, title, note, [Group("", parts)] if parts else [])


def _analyses() -> Table:
    rows = [
        {"study": study.name, "analysis": name, "what": (EACH | ALL).get(name, "")}
        for study in STUDIES
        for name in study.analyses
    ]
    words = {"study": "study", "analysis": "analysis", "what": "what it estimates"}
    return listed(rows, words, caption="Analyses")


def _downloads(tables: Tables, study: Study, into: Path) -> Section:
    """Copy the small tables of a study as parquet and CSV, and return links to them."""
    rows = []
    folders = [folder for name in (*study.analyses, "recovery") for folder in tables.folders(name)]
    for path in (path for folder in folders for path in sorted(folder.glob("*.parquet"))):
        inside, size = path.relative_to(tables.data), path.stat().st_size
        row: Row = {"table": f"data/{inside.as_posix()} (in the project)", "csv": ""}
        if size <= LARGEST:
            target = into / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            codes = labels(path.with_name(front_matter.FACTS)).get(path.stem, {})
            flat = cs.list().cast(pl.List(pl.String)).list.join("; ")
            table = labelled(pl.read_parquet(path), codes).with_columns(flat)
            table.write_csv(target.with_suffix(".csv"))
            row["table"] = link(inside.as_posix(), f"data/{inside.as_posix()}")
            row["csv"] = link(inside.with_suffix(".csv").as_posix(), "CSV")
        rows.append(row | {"rows": _count(path), "size": size / 1024})
    words, numbers = {"table": "table", "csv": "CSV"}, {"rows": "rows", "size": "KiB"}
    listing = [listed(rows, words, numbers, "Tables")] if rows else []
    return _plain("downloads", "Downloads", listing, FILES_NOTE)


def _count(path: Path) -> int:
    """Return the number of rows of a parquet file."""
    return int(pl.scan_parquet(path).select(pl.len()).collect().item())


def _dataset(path: Path, tree: dict[str, Any]) -> Row:
    """Return the version, rows, fingerprint and source of a validated dataset."""
    name, report = path.stem, json.loads(path.read_text(encoding="utf-8"))
    entry = tree["datasets"].get(name) or tree.get("derived", {}).get(name) or {}
    origin = entry.get("snapshot") or ", ".join(entry.get("snapshots", {}).values())
    folder = DATA / "datasets" / name
    configs = {c: _count(folder / f"{c}.parquet") for c in parquet.configs(folder)}
    return {"name": name, "version": str(entry.get("version", "–")), "report": report} | {
        "validation": "passed" if report["success"] else "failed",
        "sha256": report["fingerprint"][:16],
        "origin": origin or "other datasets",
        "configs": configs,
        "rows": sum(configs.values()),
    }


def _datasets(rows: Iterable[Row]) -> Table:
    words = {"name": "dataset", "version": "version", "validation": "validation"}
    words |= {"sha256": "sha256", "origin": "made from"}
    return listed([*rows], words, {"rows": "rows"}, "Datasets")


def _dataset_group(dataset: Row) -> Group:
    """Return the counts, the rejects and the validation of a dataset."""
    tests = [(t, e) for t, r in dataset["report"]["tables"].items() for e in r["expectations"]]
    warned = [
        f"{table}: {e['expectation_type']} {e['kwargs'].get('column', '')}"
        for table, e in tests
        if not e["success"]
    ]
    about = (
        f"From {dataset['origin']}; sha256 {dataset['sha256']}. Great Expectations: {len(tests)} "
        f"expectations were checked, with {len(warned)} warning(s)"
        f"{': ' + '; '.join(warned) if warned else ''}."
    )
    by = ["config", "reason"]
    counts = [{"config": config, "rows": n} for config, n in dataset["configs"].items()]
    rejects = pl.read_parquet(DATA / "datasets" / dataset["name"] / parquet.REJECTS)
    lost = rejects.group_by(by).agg(rows=pl.sum("number")).sort(by).to_dicts()
    table = listed(counts, {"config": "config"}, {"rows": "rows"})
    rejected = listed(lost, {name: name for name in by}, {"rows": "rows"})
    parts = [Part(caption=about, tables=(table,))]
    parts.append(Part("Rejected input, by reason", tables=(rejected,)))
    return Group(f"{dataset['name']} {dataset['version']}", parts)


def _models(tables: Tables, probes: Iterable[str], tree: dict[str, Any]) -> Table:
    """Return a table of the models that the given probes run on."""
    by_probe = {probe: tables.models(probe) for probe in probes}
    rows = []
    for name in sorted({name for models in by_probe.values() for name in models}):
        path = pointer(name, DATA)
        facts = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        entry = facts.get("model") or (tree.get("models") or {}).get(name, {})
        rows.append(
            {"model": name, "kind": entry.get("kind", "masked"), "id": facts.get("id", "")}
            | {"revision": str(facts.get("revision") or entry.get("revision") or "")}
            | {"probes": ", ".join(probe for probe, models in by_probe.items() if name in models)}
        )
    words = {name: name for name in ("model", "kind", "id", "revision", "probes")}
    return listed(rows, words, caption="Models")


def _packages() -> Table:
    """Return the versions of the packages that may affect results."""
    # a suffix such as "+cpu" marks a build, not a version
    rows = [{"package": name, "version": version(name).partition("+")[0]} for name in PACKAGES]
    return listed(rows, {"package": "package", "version": "version"}, caption="Packages")


def render(sections: list[Section], **page: Any) -> str:
    """Render sections as an HTML page that makes no requests to other servers.

    ``page``: the fields of the page, such as its name and title, HTML to insert before the
    sections, and the pages that it links to.
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
