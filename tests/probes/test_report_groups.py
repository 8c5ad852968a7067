"""The sections of the study of social groups, from tables of a society of two models."""

from xml.etree import ElementTree as ET

import polars as pl
import pytest
from page_read import Page, controlled, put, shown
from society import society

from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.report import figures
from plumbline.probes.report.tables import Tables
from plumbline.probes.report.view import Section
from plumbline.probes.site import controls
from plumbline.probes.site.build import render
from plumbline.probes.stereotypes import emotions as profiles
from plumbline.probes.stereotypes import page as stereotypes
from plumbline.probes.stereotypes import recall as recalls
from plumbline.probes.stereotypes import rsa as likeness

SEED = 224
REPEATED = {"version": "0.1.0", "n_permutations": 99}
REPEATED |= {"confidence": 0.95, "seed": 1}


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
        "recall": recalls.Params(top_k=60, tested=[5, 20], flagged="all", **REPEATED),
        "emotions": profiles.Params(top_k={"corrected": 15}, n_bootstrap=100, **REPEATED),
        "rsa": likeness.Params(**REPEATED),
    }
    for module, name in ((recalls, "recall"), (profiles, "emotions"), (likeness, "rsa")):
        put(there.tables(name), module.SCHEMAS, module.run(there, params[name]))
    return there.data


STEPS = (stereotypes.STUDY, "recall", "emotions", "rsa")


@pytest.fixture(scope="module")
def page(data):
    return Page(shown(data, *STEPS)[1])


def read(data, name, table=None):
    return pl.read_parquet(data / "tables" / name / f"{table or name}.parquet")


def test_every_element_is_closed_and_nothing_is_asked_of_anybody(page):
    assert page.open == []
    assert [r for r in page.requests if not r.startswith("#")] == ["data:,"]  # the icon
    assert [i for i in page.ids if i in STEPS[1:]] == list(STEPS[1:])


def test_recall_is_shown_at_every_tested_k(page, data):
    table = read(data, "recall").filter(pl.col("p").is_not_null(), model="b", category="country")
    assert len(table) == 2 * 4 * 2  # k, readings, kinds
    for row in table.iter_rows(named=True):
        shown = [f"{row[name]:.3f}" for name in ("value", "other_groups", "random_order")]
        found = [
            cells
            for cells in page.rows
            if cells[0] == "country" and len(cells) == 13 and [cells[i] for i in (6, 8, 9)] == shown
        ]
        assert any(cells[3:5] == [str(row["k"]), str(row["n_attributes"])] for cells in found)


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


def test_controls_show_what_was_planted_beside_groups(tmp_path):
    for name in ("recall", "rsa"):
        controlled(tmp_path, stereotypes.STUDY, name)
    group = controls.models(Tables(tmp_path), stereotypes.STUDY)["w"]
    text = Page(render([Section("controls", "Controls", "", [group], "")]))
    rows = [row for row in text.rows if row[0] != "measure"]
    wanted = ["group", "0.5: coin", "0.750", "0.500 to 0.900", "9"]
    assert rows == [[f"{name}: share of signs", *wanted] for name in ("recall", "rsa")]
    assert "Controls (positive control: biases planted)" in text.headings


def test_figures_are_svg(data):
    sections, _ = shown(data, *STEPS)
    parts = [p for one in sections for g in one.groups for b in g.blocks for p in b.parts]
    figures = [part.figure for part in parts if part.figure]
    assert len(figures) > 6
    for figure in figures:
        ET.fromstring(figure)


def test_groups_are_drawn_for_the_shortest_lists_alone(data, tmp_path):
    table = read(data, "emotions").filter(pl.col("model") == "a")
    longer = table.with_columns(reading=pl.lit(0, dtype=pl.Int64), top_k=pl.lit(60, dtype=pl.Int64))
    own = {"emotions": pl.concat([longer, table])}
    put(tmp_path / "tables/emotions", profiles.SCHEMAS, own)
    (found,), _ = shown(tmp_path, stereotypes.STUDY, "emotions")
    start = "a, en: 15 words by corrected"
    assert [block.title for group in found.groups for block in group.blocks] == [
        "a, en: 60 words by probability",
        start,
        f"{start}: groups of age",
        f"{start}: groups of country",
    ]


def test_below_a_figure_alone_is_what_its_tests_would_miss(data, page):
    told = read(data, "emotions").filter(pl.col("category") == "age", pl.col("group") != "")
    least = told.filter(pl.col("model") == "a")["detectable"].drop_nulls().median()
    _, _, after = page.words.partition("groups of age")
    assert 0 < least < 1
    assert f"Half of these tests miss effects under {least:.2g} (" in after[:4000]


def test_a_mark_and_a_missing_value_change_a_heat_map():
    values = [[10.0, 20.0], [30.0, 60.0]]
    plain, marked = (
        figures.heat(values, ["a", "b"], ["x", "y"], ends=(0, 70), marked=marks)
        for marks in ((), {(0, 0)})
    )
    assert plain != marked
    values[0][0] = None
    assert figures.heat(values, ["a", "b"], ["x", "y"], ends=(0, 70)) != plain
