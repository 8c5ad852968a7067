"""The section of names and nationality, from tables of a classifier that answers as planted."""

import re

import polars as pl
import pytest
from page_read import listed, plain, put, shown
from passports import COUNTRIES, answered
from test_analysis_nationality import PARAMS, SEED

from plumbline.probes.nationality import nationality
from plumbline.probes.nationality import page as section
from plumbline.probes.nationality.schemas import SCHEMAS


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    there = answered(folder, 0.25, noise=0.02, seed=SEED)
    found = nationality.run(there.inputs, PARAMS)
    put(folder / "data/tables/nationality", SCHEMAS, found)
    (own,), text = shown(folder / "data", section.STUDY, "nationality")
    return folder / "data", text, own


def test_countries_are_ranked_in_a_figure_for_each_reading(page):
    data, text, _ = page
    figures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(figures) == 2
    delta = pl.read_parquet(data / "tables/nationality/delta.parquet").filter(gender=0)
    delta = delta.filter(measure="positive minus negative").sort("value", descending=True)
    for reading, name in enumerate(("faithful", "corrected")):
        ranked = delta.filter(reading=reading)["country"].to_list()
        assert len(ranked) == len(COUNTRIES)
        assert name in figures[reading]
        lines = re.findall(r'<text [^>]*y="([\d.]+)"[^>]*>([a-f]{2})</text>', figures[reading])
        assert [country for _, country in sorted(lines, key=lambda at: float(at[0]))] == ranked
        told = delta.filter(reading=reading)["detectable"].median()
        note = f"Half of these tests miss effects under {told:.2g} ("
        assert note in plain(text.split(figures[reading])[1])[:400]


def test_every_country_has_its_change_and_interval(page):
    data, text, _ = page
    delta = pl.read_parquet(data / "tables/nationality/delta.parquet")
    own = delta.filter(measure="positive minus negative", gender=0, reading=1)
    assert len(own) == len(COUNTRIES)
    words = plain(text)
    for row in own.to_dicts():
        told = f"{row['value']:.2f} {row['low']:.2f} to {row['high']:.2f}"
        assert f"{row['country']} corrected {told}" in words


def test_predictions_mixed_model_and_correlations_are_there(page):
    own = page[2]
    assert len(listed(own, "how much more often a class is predicted")) >= len(COUNTRIES)
    mixed = listed(own, "source texts swept out, names random")
    assert "log rank" in {cell for row in mixed for cell in row}
    assert listed(own, "of all countries")


def test_what_tests_of_predictions_miss_is_told_of_increases_and_decreases(page):
    data, text, _ = page
    table = pl.read_parquet(data / "tables/nationality/changes.parquet")
    more = table.filter(pl.col("reading") < 2, gender=0)["detectable"].drop_nulls().median()
    less = 100 * (1 - 1 / (1 + more / 100))
    after = plain(text.split("how much more often a class is predicted")[1])
    assert f"miss increases under {float(f'{more:.2g}'):g}% (adjusted: " in after
    assert f"decreases under {less:.2g}% (adjusted: " in after


def test_local_correlations_are_there_by_country_as_code_and_paper_have_them(page):
    data, _, own = page
    caption = "by country, local: in the code (subtracted) and the text (within) of the paper"
    shown_rows = {tuple(row[:4]): row[4] for row in listed(own, caption)}
    table = pl.read_parquet(data / "tables/nationality/correlations.parquet")
    countries = set(table["country"]) - {"all"}
    kinds = {(p, s) for p in ("original mean", "original sum") for s in ("subtracted", "within")}
    assert {key[0] for key in shown_rows} == countries | {"all"}
    assert {key[2:] for key in shown_rows} == kinds
