"""The section on shifts: what the tables say, and nothing where there are none."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import polars as pl
import pytest
from page_read import Page, put, shown
from trained import trained

from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables
from plumbline.probes.stereotypes import page as stereotypes
from plumbline.probes.stereotypes import shift as analysis
from plumbline.probes.stereotypes.shift import Params
from plumbline.probes.stereotypes.shift_rows import MEASURES

PARAMS = Params(
    version="0.1.0",
    top_k={"probability": 12},
    top_k_followed=15,
    recall_at=[5],
    flagged="all",
    n_permutations=999,
    n_permutations_similarity=199,
    n_bootstrap=200,
    confidence=0.95,
    seed=1,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shift")
    there = trained(folder, 311, {"herald": 2.0, "post": -2.0, "control": 0.0}, seeds=(1, 2, 3))
    put(folder / "data/tables/shift", analysis.SCHEMAS, analysis.run(there.inputs, PARAMS))
    return folder / "data"


@pytest.fixture(scope="module")
def page(data):
    return Page(shown(data, stereotypes.STUDY, "shift")[1])


@pytest.fixture(scope="module")
def rows(page):
    return [row for table in page.tables for row in table]


def test_emotions_are_shown_beside_the_control_with_p(data, rows):
    table = pl.read_parquet(data / "tables/shift/shifts.parquet")
    for corpus in ("herald", "post"):
        for category in ("all", "liked"):
            own = {"corpus": corpus, "category": category, "outcome": "positive", "share": 1.0}
            (r,) = table.filter(**own).to_dicts()
            first = [f"{100 * r['difference']:.1f}", f"{100 * r['low_difference']:.1f} to "]
            found = [row for row in rows if row[:2] == ["positive", corpus] and row[6] == first[0]]
            assert [row for row in found if row[7].startswith(first[1])]
            assert found[0][8:] == [f"{r['p']:.4f}", f"{r['p_bh']:.3f}"]


def test_emotions_and_what_tests_of_them_would_find_are_in_percent(data):
    raw = pl.read_parquet(data / "tables/shift/shifts.parquet")
    shown_as = stereotypes.shifts(Tables(data))
    emotion = raw["measure"] == MEASURES.index("emotion")
    for name in ("difference", "detectable", "detectable_bh"):
        for where, times in ((emotion, 100), (~emotion, 1)):
            own, told = raw.filter(where)[name].drop_nulls(), shown_as.filter(where)[name]
            assert told.drop_nulls().to_list() == pytest.approx((own * times).to_list())
            assert len(own)


def test_categories_that_no_outlet_moves_are_left_out(page):
    assert "Emotions, liked: 14 groups" in page.words
    assert "Emotions, other" not in page.words


def test_similarities_are_shown_by_corpus_share_and_category(data, rows):
    table = pl.read_parquet(data / "tables/shift/shifts.parquet")
    part = table.filter(measure=MEASURES.index("rsa corrected"), corpus="herald", share=0.5)
    assert {"liked", "other", "all"} == set(part["category"])
    for r in part.to_dicts():
        said = "yes" if r["significant"] else "no"
        wanted = ["herald", "0.50", r["category"], said, str(r["n"])]
        assert f"{r['value']:.2f}" in [row[6] for row in rows if row[:5] == wanted]


def test_the_fates_of_words_are_counted(data, rows):
    table = pl.read_parquet(data / "tables/shift/attributes.parquet")
    own = table.filter(corpus="post", category="other")
    counts = [str((own["outcome"] == fate).sum()) for fate in (1, 2, 0)]  # kept, removed, added
    assert any(row[:2] == ["other", "post"] and row[2:5] == counts for row in rows)


def test_words_are_drawn_before_and_after_kept_ones_joined():
    panels = dict.fromkeys(("one", "two"), ([("b", ""), ("a", "")], [("b", ""), ("c", "")]))
    drawn = figures.slopes(panels, "a list")
    ET.fromstring(drawn)
    assert drawn.count('class="joined"') == 2  # one kept word in each panel
    assert drawn.count(">c</text>") == 2
