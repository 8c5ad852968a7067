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
    (section,), _ = shown(data, values.STUDY, "values")
    (group,) = section.groups
    (block,) = group.blocks
    assert block.title == "m, xx, values"
    figures = [part.figure for part in block.parts if part.figure]
    assert len(figures) == 3  # the scatter with its line, and values in both readings
    assert all(figure.count("<svg") == 1 for figure in figures)
    gender = {(row[0], row[2]): row[3] for row in listed(section, "gender")}
    assert gender["trade", "faithful"] == "different"
    assert gender["order", "corrected"] == "equivalent"
    assert gender["calibration", "faithful"] == "equivalent"
    told = pl.read_parquet(data / "tables/values/calibration.parquet")
    told = told.filter(measure="slope", reading=0, fitted=0).sort("gender")["value"]
    kinds = ("feminine", "masculine")
    wanted = [["faithful", "by gender", kind, "said", "plain", "slope"] for kind in kinds]
    rows = listed(section, "calibration")
    assert [r[6] for r in rows if r[:6] in wanted] == [f"{slope:.3f}" for slope in told]
    standing = {tuple(row[:3]): row for row in listed(section, "standing among respondents")}
    order = standing["order", "feminine", "faithful"]
    assert order[3:5] == ["simulated", "no"]
    assert order[6:] == ["4.00", "0.00", "15"]  # all women who are not infected are at 4
    assert listed(section, "does the model agree with itself?")


def test_values_are_held_against_those_of_the_gender_who_are_not_infected():
    kinds = [(g, i) for g in ("female", "male", "all") for i in ("all", "no", "yes")]
    rows = [
        {"survey": "s", "simulated": True, "scale": "values", "axis": "order", "gender": g}
        | {"infected": i, "quartile_high": float(n)}
        for n, (g, i) in enumerate(kinds)
    ]
    people, about = values.reference(pl.DataFrame(rows), "values")
    assert about == "respondents not infected, of the SIMULATED survey 's'"
    got = {line: row["quartile_high"] for line, row in people.items()}
    assert got == {"order, feminine": 1, "order, masculine": 4}
    unknown = [row for row in rows if row["infected"] == "all"]
    people, about = values.reference(pl.DataFrame(unknown), "values")
    assert about == "respondents of the SIMULATED survey 's'"
    assert people["order, masculine"]["quartile_high"] == 3
    assert values.reference(pl.DataFrame(rows), "PI34") == ({}, "")
    assert values.reference(pl.DataFrame(), "values") == ({}, "")
