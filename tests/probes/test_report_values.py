"""The section of the report about values."""

import polars as pl
import pytest
from convinced import convinced
from page_read import listed, put, shown

from plumbline.probes.values import page as values
from plumbline.probes.values import values as analysis
from plumbline.probes.values.schemas import SCHEMAS

PARAMS = analysis.Params(
    version="0.1.0",
    frame="said",
    equivalence_margin=0.3,
    n_bootstrap=100,
    n_permutations=99,
    confidence=0.95,
    seed=1,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a folder ``data`` with the tables of a model that agrees with order."""
    folder = tmp_path_factory.mktemp("report")
    inputs = convinced(folder, 10, agreement=(0.9, 0.0), gender=(0.0, 0.9), apart=0.1)
    put(inputs.data / "tables/values", SCHEMAS, analysis.run(inputs, PARAMS))
    return inputs.data


def test_a_section_shows_the_line_values_over_the_survey_and_both_tests(data):
    (section,), text = shown(data, values.STUDY, "values")
    (group,) = section.groups
    (block,) = group.blocks
    assert block.title == "m, xx, values"
    figures = [part.figure for part in block.parts if part.figure]
    assert len(figures) == 3  # the scatter with its line, and values in both readings
    assert all(figure.count("<svg") == 1 for figure in figures)
    gender = {(row[0], row[1]): row[2] for row in listed(section, "gender")}
    assert gender["trade", "faithful"] == "different"
    assert gender["order", "corrected"] == "equivalent"
    assert gender["calibration", "faithful"] == "equivalent"
    told = pl.read_parquet(data / "tables/values/calibration.parquet")
    slope = told.filter(
        pl.col("measure") == "slope", pl.col("reading") == 0, pl.col("fitted") == 0
    ).filter(~pl.col("intercept"))["value"][0]
    wanted = ["faithful", "said", "plain", "slope"]
    slopes = [row[4] for row in listed(section, "calibration") if row[:4] == wanted]
    assert slopes == [f"{slope:.3f}"]
    assert "equivalent" in text
    assert listed(section, "does the model agree with itself?")


def test_the_simulated_survey_is_called_so():
    names = {"value": [3.0], "low": [2.0], "high": [4.0], "n": [9], "sd": [1.0], "median": [3.0]}
    frame = pl.DataFrame(
        names
        | {"survey": "simulated", "simulated": True, "scale": "values", "axis": "order"}
        | {"gender": "all", "infected": "all", "quartile_low": 2.5, "quartile_high": 3.5}
    )
    people, about = values.standing(frame, "values")
    assert about == "the SIMULATED survey 'simulated'"
    assert people["order"]["quartile_high"] == 3.5
    assert values.standing(frame, "PI34") == ({}, "")
    assert values.standing(pl.DataFrame(), "values") == ({}, "")
