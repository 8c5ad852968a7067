"""The site of a small run, in which every table with rows has a section."""

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from page_read import Page

from plumbline.builders.core.errors import UserError
from plumbline.probes import ACROSS, ALL, EACH, STUDIES
from plumbline.probes.report.view import number
from plumbline.probes.site import build

TOP = Path(__file__).parents[2]
BY_NAME = {study.name: study for study in build.STUDIES}


@pytest.fixture(scope="module")
def site(finished):
    """Return the text of every page."""
    pages = (finished / "data/report").glob("*.html")
    return {path.stem: path.read_text(encoding="utf-8") for path in pages}


@pytest.fixture(scope="module")
def pages(site):
    return {name: Page(text) for name, text in site.items()}


def sections(text):
    """Return the sections of a page by their id."""
    found = re.findall(r'<section id="(\w+)"[^>]*>(.*?)</section>', text, re.DOTALL)
    return {name: Page(body) for name, body in found}


def test_every_analysis_is_on_the_page_of_one_study():
    analyses = [analysis for study in build.STUDIES for analysis in study.analyses]
    assert sorted(analyses) == sorted({*EACH, *ALL, "waves"})
    assert list(BY_NAME) == [*STUDIES, *ACROSS]


def test_every_table_with_rows_has_a_section(pages, finished):
    shown = 0
    for study in build.STUDIES:
        for analysis in study.analyses:
            paths = list((finished / "data/tables" / analysis).rglob("*.parquet"))
            for table in {path.stem for path in paths}:
                same = [path for path in paths if path.stem == table]
                rows = sum(len(pl.read_parquet(path)) for path in same)
                name = f"{analysis}-{table}"
                assert (name in pages[study.name].ids) == (rows > 0), name
                if rows:
                    assert f"{analysis}/{table} ({rows:,} rows)" in pages[study.name].headings
                    shown += 1
    assert shown > 20


def test_pages_have_their_sections_in_order_and_every_element_closed(pages):
    assert set(pages) == {"index", "datasets", *BY_NAME}
    order = ["results", "controls", "contents", "versions", "studies"]
    assert [i for i in pages["index"].ids if i in order] == order
    for name, study in BY_NAME.items():
        order = [*study.analyses, "versions"]
        assert [i for i in pages[name].ids if i in order] == order
    assert {"headlines", "controls", "downloads"} <= {*pages["politicians"].ids}
    assert [name for name, page in pages.items() if page.open] == []


def test_a_section_shows_the_clearest_rows_with_their_numbers(site, finished):
    table = pl.read_parquet(finished / "data/tables/pmi/tiny/pmi.parquet")
    some = table.filter(language="en", pos="ADJ", gender="male", reading="smoothed").drop_nulls("p")
    row = some.sort("p", maintain_order=True).row(0, named=True)
    rows = [cells for cells in sections(site["politicians"])["pmi"].rows if row["word"] in cells]
    cells = {cell for cells in rows for cell in cells}
    assert number(row["value"]) in cells
    assert f"{number(row['low'])} to {number(row['high'])}" in cells


def test_downloads_are_the_tables_as_parquet_and_as_csv_with_labels(site, finished):
    links = re.findall(r'href="(tables/[^"]+)"', site["politicians"])
    report, data = finished / "data/report", finished / "data"
    assert {Path(link).suffix for link in links} == {".parquet", ".csv"}
    for link in links:
        if link.endswith(".parquet"):
            assert (report / link).read_bytes() == (data / link).read_bytes()
    read = pl.read_csv(report / "tables/subgroups/tiny/differences.csv")
    assert set(read["sentiment"]) == {"negative", "neutral", "positive"}


def test_without_tables_a_section_names_the_command_and_the_site_is_an_error(copied):
    shutil.rmtree(copied / "data/tables/latent")
    build.write()
    text = Path("data/report/politicians.html").read_text(encoding="utf-8")
    latent = sections(text)["latent"]
    assert latent.tables == []
    assert "make repro STAGE=latent" in latent.words
    shutil.rmtree(copied / "data/tables/pmi")
    with pytest.raises(UserError, match="make repro"):
        build.write()


def test_a_model_that_is_no_longer_assigned_is_not_shown(copied, change):
    def drop(tree):
        for probe in ("associations", "words"):
            tree["assignments"][probe].remove("tiny")

    change(drop)
    build.write()
    text = Path("data/report/politicians.html").read_text(encoding="utf-8")
    assert "world-null" in sections(text)["pmi"].words
    assert "tiny" not in sections(text)["pmi"].words


def test_datasets_show_their_counts_fingerprints_and_warnings(pages, site, finished):
    for name in ("politicians", "words"):
        report = pl.read_json(finished / f"data/validation/{name}.json")
        assert report["fingerprint"][0][:16] in site["datasets"]
        rows = pl.read_parquet(finished / f"data/datasets/{name}/hi.parquet")
        assert ["hi", f"{len(rows):,}"] in pages["datasets"].rows
    assert "1 warning(s): en: expect_rows word." in site["datasets"]


def test_a_page_makes_no_request_and_runs_its_own_script_alone(pages, site, finished):
    for name, page in pages.items():
        text = site[name]
        targets = [t.partition("#")[0] for t in page.requests if not t.startswith("#")]
        beside = [target for target in targets if target != "data:,"]  # the icon
        assert len(beside) >= len(build.PAGES)
        assert [t for t in beside if not (finished / "data/report" / t).is_file()] == []
        assert not {"iframe", "img", "object", "embed", "form"} & set(page.tags)
        assert "@import" not in text
        (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"script-src 'sha256-{digest}'" in text


def test_tracked_metrics_are_those_of_the_site_without_trained_weights(finished):
    tracked, whole = finished / "data/headlines", finished / "data/report"
    files = sorted(path.relative_to(tracked).as_posix() for path in tracked.rglob("*.*"))
    assert files == ["metrics.json", "plots/controls.csv", "plots/headlines.csv"]
    for path in files:
        assert (tracked / path).read_bytes() == (whole / path).read_bytes()


@pytest.mark.slow
def test_two_runs_write_the_same_bytes(copied, finished):
    subprocess.run(
        [sys.executable, "-m", "plumbline.probes", "report"],
        env=os.environ | {"PYTHONPATH": str(TOP), "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
    )
    files = {path.relative_to(finished): path for path in (finished / "data/report").rglob("*.*")}
    assert len(files) > 20
    assert {path: path.read_bytes() for path in Path("data/report").rglob("*.*")} == {
        path: file.read_bytes() for path, file in files.items()
    }
