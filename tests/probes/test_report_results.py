"""The section of an analysis, which is made from a table and its schema."""

from xml.etree import ElementTree as ET

import polars as pl
import pytest
from page_read import put

from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.leaning.page import draw_compass
from plumbline.probes.politicians.page import draw_clusters
from plumbline.probes.report import error_rates, results
from plumbline.probes.report.tables import Tables
from plumbline.probes.report.view import Study
from plumbline.probes.stereotypes.page import draw_recall, draw_similarity

STUDY = Study("s", "S", "", "", {"values": "A note."}, (), ())
NUMBERS = tuple(Column(name, "float64", "a number", nullable=True) for name in ("value", "low"))
NUMBERS += (Column("high", "float64", "a number", nullable=True),)


def shown(folder, rows, *more, study=STUDY):
    """Return the parts of a table whose key is model, reading and word."""
    key = [Column(name, "string", "a key") for name in ("model", "reading", "word")]
    schema = Schema.keyed(key, *NUMBERS, *more)
    put(folder / "tables/values", {"words": schema}, {"words": pl.DataFrame(rows)})
    section = results.section(study, "values", Tables(folder))
    (group,) = section.groups
    assert (section.note, group.name) == ("A note.", "values-words")
    return group.parts


def row(word, value, reading="corrected", model="m", **more):
    ends = {"value": value, "low": value - 0.5, "high": value + 0.5}
    return {"model": model, "reading": reading, "word": word} | ends | more


P = (Column("p", "float64", "p"), Column("p_bh", "float64", "adjusted"))


def test_section_draws_the_clearest_rows_by_p(tmp_path):
    rows = [row(f"w{i:02}", 1.0, p=(i + 1) / 100, p_bh=(i + 1) / 100) for i in range(30)]
    (part,) = shown(tmp_path, rows, *P)
    texts = [text.text for text in ET.fromstring(part.figure).iter("text")]
    assert sorted(text for text in texts if text.startswith("w")) == [f"w{i:02}" for i in range(15)]
    (table,) = part.tables
    assert table.words == ("word",)
    assert table.numbers == ("value", "95% interval", "p", "adjusted p")
    assert table.rows[0] == ["w00", "1.00", "0.500 to 1.50", "0.010", "0.010"]
    assert len(table.rows) == 30
    assert "5 filled" in part.figure


def test_section_takes_only_the_columns_that_a_schema_has(tmp_path):
    rows = [row("a", 2.0, count=3), row("b", -3.0, count=4)]
    (part,) = shown(tmp_path, rows, Column("count", "int64", "lists"))
    assert part.tables[0].numbers == ("value", "95% interval", "count")
    assert [cells[0] for cells in part.tables[0].rows] == ["b", "a"]  # by size


def test_section_ranked_rows_keep_their_ranks(tmp_path):
    rows = [row("a", 2.0, rank=2), row("b", 0.0, rank=1) | dict.fromkeys(("value", "low", "high"))]
    (part,) = shown(tmp_path, rows, Column("rank", "int64", "rank by size"))
    assert [cells[0] for cells in part.tables[0].rows] == ["b", "a"]


def test_sortable_key_may_be_named_interval():
    rows = pl.DataFrame([row("a", 2.0, interval="t"), row("b", -3.0, interval="jackknife")])
    table = results.sortable(rows, ["word", "interval"], ["model", "reading"], 9)
    assert table.rows[0] == ["b", "jackknife", "-3.00", "-3.50 to -2.50"]
    rows = rows.insert_column(0, pl.Series("missing", [0.1, 0.2]))  # in the order of the columns
    assert results.sortable(rows, ["word"], ["model", "reading"], 9).numbers[0] == "missing"


def test_section_puts_readings_side_by_side_and_models_apart(tmp_path):
    readings = ("faithful", "corrected")
    rows = [row("a", 1.0, reading, model) for model in ("m", "n") for reading in readings]
    parts = shown(tmp_path, rows)
    assert [part.title for part in parts] == ["m", "n"]
    assert "Marks: faithful, corrected" in parts[0].figure


def test_section_names_the_sides_of_a_difference(tmp_path):
    study = STUDY._replace(directions={"values/words": ["men", "women"]})
    (part,) = shown(tmp_path, [row("a", 1.0)], study=study)
    assert "← men      women →" in part.figure


def test_table_without_estimates_has_rows_and_no_figure(tmp_path):
    schema = Schema.keyed([Column("word", "string", "a key")], Column("rank", "int64", "its rank"))
    tables = {"ranks": pl.DataFrame({"word": ["a", "b"], "rank": [1, 2]})}
    put(tmp_path / "tables/values", {"ranks": schema}, tables)
    (group,) = results.section(STUDY, "values", Tables(tmp_path)).groups
    (part,) = group.parts
    assert (part.figure, part.tables[0].rows) == ("", [["a", "1"], ["b", "2"]])


def test_calibration_shows_size_familywise_error_and_coverage(tmp_path):
    rates = {
        "size at .05": (0.10, 0.08, 0.12),
        "families with a false finding": (0.04, 0.02, 0.06),
        "coverage of intervals": (0.94, 0.92, 0.96),
        "found at .05": (0.8, 0.7, 0.9),
    }
    base = {"test": "t", "shape": "100 names", "truth": "", "effect": 0.0, "replicates": 200}
    rows = [
        base | {"kind": "null", "measure": measure, "value": value, "low": low, "high": high}
        for measure, (value, low, high) in rates.items()
    ]
    path = tmp_path / "tables/calibration/values/calibration.parquet"
    path.parent.mkdir(parents=True)
    pl.DataFrame(rows).write_parquet(path)
    (group,) = error_rates.groups(Tables(tmp_path), "values")
    (table,) = group.parts[0].tables
    assert table.rows == [
        [
            *("t", "100 names", "200", "0.100 (0.080 to 0.120)", "0.040 (0.020 to 0.060)"),
            *("0.940 (0.920 to 0.960)", "size at .05 0.100"),
        ]
    ]


def test_recall_curves_have_a_panel_a_category():
    base = {"low": 0.2, "high": 0.4, "random_order": 0.1, "other_groups": 0.2}
    rows = [
        base | {"category": category, "reading": reading, "k": k, "value": k / 100}
        for category in ("age", "all")
        for reading in ("faithful", "corrected")
        for k in (10, 20)
    ]
    drawn = draw_recall(pl.DataFrame(rows), "m", None)
    assert "a panel for each of all, age" in drawn
    lines = {"faithful", "corrected", "random order", "other groups"}
    assert lines == {t.text for t in ET.fromstring(drawn).iter("text")} & lines


def test_similarity_matrix_is_symmetric_with_ones():
    table = pl.DataFrame({"first": ["a"], "second": ["b"], "value": [0.25]})
    texts = [t.text for t in ET.fromstring(draw_similarity(table, "m", None)).iter("text")]
    assert (texts.count("1.00"), texts.count("0.25")) == (2, 2)


def test_clusters_have_a_mark_a_gender_and_a_shade_a_cluster():
    words = {"word": ["a", "b"], "cluster_id": [0, 1], "gender": ["male", "female"]}
    drawn = draw_clusters(pl.DataFrame(words | {"x": [0.0, 1.0], "y": [1.0, 0.0]}), "m", None)
    assert "cluster 0, male (1)" in drawn
    assert "cluster 1, female (1)" in drawn


class Baselines:
    """The baselines of a questionnaire with two axes."""

    def read(self, source):
        assert source == "compass/baselines"
        base = {"questionnaire": "q", "constants": "corrected", "sd": 1.0}
        values = {"random answers": 0.0, "--": -2.0, "-": -1.0, "+": 1.0, "++": 2.0}
        return pl.DataFrame(
            [
                base | {"axis": axis, "baseline": name, "value": value}
                for axis in ("economic", "social")
                for name, value in values.items()
            ]
        )


@pytest.mark.parametrize(("axes", "drawn"), [(2, True), (1, False)])
def test_compass_draws_states_in_the_plane_of_two_axes(axes, drawn):
    base = {"questionnaire": "q", "response_format": "mask", "period": "all"}
    rows = [
        base
        | {"axis": axis, "corpus": corpus, "reading": reading, "share": 1.0, "epoch": epoch}
        | {"value": value, "low": value - 1, "high": value + 1}
        for axis in ("economic", "social")[:axes]
        for reading in ("faithful", "corrected")
        for corpus, epoch, value in (("", 0, 0.0), ("news-left", 1, -2.0), ("news-left", 2, -3.0))
    ]
    figure = draw_compass(pl.DataFrame(rows), "m", Baselines())
    assert ("news-left" in figure and "the model itself" in figure) == drawn
