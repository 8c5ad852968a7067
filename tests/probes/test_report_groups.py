"""The sections of the study of social groups, from tables of a society of two models."""

from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from page_read import Page
from society import society

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.report import figures_groups
from plumbline.probes.site import controls_page
from plumbline.probes.site.page import render
from plumbline.probes.site.studies import STUDIES
from plumbline.probes.stereotypes import emotions as profiles
from plumbline.probes.stereotypes import page_emotions, page_recall, page_rsa, page_shift
from plumbline.probes.stereotypes import recall as recalls
from plumbline.probes.stereotypes import rsa as likeness

SEED = 224
REPEATED = {"version": "0.1.0", "permutations": 99, "bootstrap": 100, "confidence": 0.95, "seed": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    there = society(
        tmp_path_factory.mktemp("groups"),
        SEED,
        2.0,
        models=("a", "b"),
        emotion=1.0,
        categories={"age": 6, "country": 9},
    ).inputs
    params = {
        "recall": recalls.Params(depth=60, tested=[5, 20], flagged=True, **REPEATED),
        "emotions": profiles.Params(k={"corrected": 15}, **REPEATED),
        "rsa": likeness.Params(**REPEATED),
    }
    for module, name in ((recalls, "recall"), (profiles, "emotions"), (likeness, "rsa")):
        folder = there.tables(name)
        folder.mkdir(parents=True)
        for table, frame in module.run(there, params[name]).items():
            frame.write_parquet(folder / f"{table}.parquet")
    return there.data


@pytest.fixture(scope="module")
def page(data):
    return Page(render([module.section(data) for module in (page_recall, page_emotions, page_rsa)]))


def read(data, name, table=None):
    return pl.read_parquet(data / "tables" / name / f"{table or name}.parquet")


def figures(section):
    blocks = [block for group in section.groups for block in group.blocks]
    return [part.figure for block in blocks for part in block.parts if part.figure]


def test_every_element_is_closed_and_nothing_is_asked_of_anybody(page):
    assert page.open == []
    assert [r for r in page.requests if not r.startswith("#")] == ["data:,"]  # the icon
    assert [i for i in page.ids if i in ("recall", "emotions", "rsa")] == [
        "recall",
        "emotions",
        "rsa",
    ]


def test_the_sections_are_on_the_page_of_the_study():
    (study,) = (study for study in STUDIES if study.name == "stereotypes")
    assert study.sections == (page_recall, page_emotions, page_rsa, page_shift)


def test_recall_is_shown_at_every_tested_k(page, data):
    table = read(data, "recall").filter(pl.col("p").is_not_null(), model="b", category="country")
    assert len(table) == 2 * 4 * 2  # k, readings, kinds
    for row in table.iter_rows(named=True):
        shown = [f"{row[name]:.3f}" for name in ("value", "exchanged", "chance")]
        found = [
            cells
            for cells in page.rows
            if cells[0] == "country" and len(cells) == 13 and [cells[i] for i in (6, 8, 9)] == shown
        ]
        assert any(cells[3:5] == [str(row["k"]), str(row["sought"])] for cells in found)


def test_largest_differences_of_emotions_are_shown_first(page, data):
    table = read(data, "emotions").filter(pl.col("model") == "a", pl.col("level") == 0)
    top = table.sort(pl.col("difference").abs(), descending=True).row(0, named=True)
    shown = [cells for cells in page.rows if cells[0] == top["group"] and len(cells) == 9]
    assert any(
        cells[2] == AFFECTS[top["affect"]] and cells[4] == f"{top['difference']:.2f}"
        for cells in shown
    )


def test_likeness_of_models_is_shown_in_all_readings(page, data):
    table = read(data, "rsa")
    shown = [tuple(c[:4]) for c in page.rows if c[0] == "a" and c[1] == "b"]
    assert sorted(shown) == sorted(
        ("a", "b", row["category"], likeness.READINGS[row["reading"]])
        for row in table.iter_rows(named=True)
    )


def test_controls_show_what_was_planted_beside_groups(data):
    text = Page(render([controls_page.section(data)]))
    for name in ("recall", "emotions", "rsa"):
        for row in read(data, name, "recovery").iter_rows(named=True):
            assert any(row["measure"] == cells[0] for cells in text.rows), row["measure"]


def test_without_tables_sections_say_so(tmp_path):
    text = render([module.section(tmp_path) for module in (page_recall, page_emotions, page_rsa)])
    assert text.count("No tables yet") == 3


def test_figures_are_svg_and_the_same_again(data):
    for module in (page_recall, page_emotions, page_rsa):
        drawn = [figures(module.section(data)) for _ in range(2)]
        assert drawn[0]
        assert drawn[0] == drawn[1]
        for figure in drawn[0]:
            ET.fromstring(figure)


def test_groups_are_drawn_for_the_shortest_lists_alone(data, tmp_path):
    table = read(data, "emotions").filter(pl.col("model") == "a")
    longer = table.with_columns(reading=pl.lit(0, dtype=pl.Int64), k=pl.lit(60, dtype=pl.Int64))
    home = tmp_path / "tables/emotions"
    home.mkdir(parents=True)
    pl.concat([longer, table]).write_parquet(home / "emotions.parquet")
    titles = [b.title for g in page_emotions.section(tmp_path).groups for b in g.blocks]
    start = "a, en: 15 words by corrected"
    assert titles == [
        "a, en: 60 words by probability",
        start,
        f"{start}: groups of age",
        f"{start}: groups of country",
    ]


def test_a_mark_and_a_missing_value_change_a_heat_map():
    values = np.array([[10.0, 20.0], [30.0, 60.0]])
    none = np.zeros((2, 2), dtype=bool)
    plain = figures_groups.heat(values, ["a", "b"], ["x", "y"], none, "t")
    marked = figures_groups.heat(values, ["a", "b"], ["x", "y"], ~none, "t")
    assert plain != marked
    values[0, 0] = np.nan
    assert figures_groups.heat(values, ["a", "b"], ["x", "y"], none, "t") != plain
