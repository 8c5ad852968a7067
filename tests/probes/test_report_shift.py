"""The section on shifts: what the tables say, and nothing where there are none."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import polars as pl
import pytest
from page_read import Page
from trained import trained

from plumbline.builders.core import parquet
from plumbline.probes.report import figures_shift
from plumbline.probes.site.page import render
from plumbline.probes.stereotypes import page_shift
from plumbline.probes.stereotypes import shift as analysis
from plumbline.probes.stereotypes.schemas import MEASURES
from plumbline.probes.stereotypes.shift import Params

PARAMS = Params(
    version="0.1.0",
    k={"probability": 12},
    top=15,
    recall=[5],
    flagged=True,
    flips=999,
    swaps=199,
    bootstrap=200,
    confidence=0.95,
    seed=1,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shift")
    there = trained(folder, 311, {"herald": 2.0, "post": -2.0, "control": 0.0})
    into = folder / "data/tables/shift"
    into.mkdir(parents=True)
    for name, table in analysis.run(there.inputs, PARAMS).items():
        parquet.write_table(table, analysis.SCHEMAS[name].arrow(), into / f"{name}.parquet")
    return folder / "data"


@pytest.fixture(scope="module")
def page(data):
    return Page(render([page_shift.section(data)]))


def test_emotions_are_shown_beside_the_control_with_p(data, page):
    table = pl.read_parquet(data / "tables/shift/shifts.parquet")
    shown = [row for rows in page.tables for row in rows]
    for corpus in ("herald", "post"):
        for category in ("all", "liked"):
            (r,) = table.filter(
                pl.col("corpus") == corpus,
                pl.col("category") == category,
                pl.col("outcome") == "positive",
                pl.col("share") == 1.0,
            ).to_dicts()
            first = f"{100 * r['difference']:.1f} ({100 * r['low_difference']:.1f} to "
            found = [row for row in shown if row[:2] == ["positive", corpus] and first in row[5]]
            assert found
            assert found[0][6:] == [f"{r['p']:.4f}", f"{r['p_bh']:.3f}"]


def test_categories_that_no_outlet_moves_are_left_out(page):
    assert "Emotions, liked: 14 groups" in page.words
    assert "Emotions, other" not in page.words


def test_similarities_are_shown_by_corpus_share_and_category(data, page):
    table = pl.read_parquet(data / "tables/shift/shifts.parquet")
    shown = [row for rows in page.tables for row in rows]
    part = table.filter(
        pl.col("measure") == MEASURES.index("rsa corrected"),
        pl.col("corpus") == "herald",
        pl.col("share") == 0.5,
    )
    by = {r["category"]: r["value"] for r in part.to_dicts()}
    cells = [f"{by[name]:.2f}" for name in ("liked", "other", "all")]
    rows = [row for row in shown if row[:2] == ["herald", "50%"] and len(row) == 5]
    assert cells in [[cell.strip("*") for cell in row[2:]] for row in rows]


def test_the_fates_of_words_are_counted(data, page):
    table = pl.read_parquet(data / "tables/shift/attributes.parquet")
    own = table.filter(pl.col("corpus") == "post", pl.col("category") == "other")
    counts = [str((own["fate"] == fate).sum()) for fate in (1, 2, 0)]  # kept, removed, added
    shown = [row for rows in page.tables for row in rows]
    assert any(row[:2] == ["other", "post"] and row[2:5] == counts for row in shown)


def test_words_are_drawn_before_and_after_kept_ones_joined():
    words = [("b", "kept", 1, 2.0), ("a", "removed", 2, None), ("c", "added", None, 1.0)]
    rows = [
        {"corpus": corpus, "word": w, "fate": f, "place_before": x, "place_after": y}
        for corpus in ("one", "two")
        for w, f, x, y in words
    ]
    drawn = figures_shift.attributes(rows, ["one", "two"], "a list")
    assert drawn == figures_shift.attributes(rows, ["one", "two"], "a list")
    ids = [g.get("id") or "" for g in ET.fromstring(drawn).iter("{http://www.w3.org/2000/svg}g")]
    assert sum(name.startswith("line2d") for name in ids) == 2  # one kept word in each panel
    assert figures_shift._lines(rows[:3]) == [[1, 2]]


def test_without_tables_the_section_says_how_to_make_them(tmp_path):
    found = page_shift.section(tmp_path)
    assert found.groups == []
    assert "make repro STAGE=shift" in Page(render([found])).words
