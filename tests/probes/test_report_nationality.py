"""The section of names and nationality, from tables of a classifier that answers as planted."""

import re

import polars as pl
import pytest
from page_read import listed, put, shown
from passports import answered
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
    _, text, _ = page
    assert text.count("<svg") == 2
    first = text[text.index("<svg") : text.index("</svg>")]
    assert "faithful" in re.sub(r"<[^>]+>", "", first) or "faithful" in first


def test_every_country_has_its_change_and_interval(page):
    data, text, _ = page
    delta = pl.read_parquet(data / "tables/nationality/delta.parquet")
    own = delta.filter(
        (pl.col("measure") == "positive minus negative")
        & (pl.col("gender") == 0)
        & (pl.col("reading") == 1)
    )
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))
    for row in own.to_dicts():
        shown = (
            f"{row['country']} corrected {row['value']:.2f} {row['low']:.2f} to {row['high']:.2f}"
        )
        assert shown in plain


def test_predictions_mixed_model_and_correlations_are_there(page):
    _, text, _ = page
    for what in ("predictions by country", "length and frequency", "perplexity and probabilities"):
        assert what in text
    assert "log rank" in text
    assert "within" in text


def test_local_correlations_are_there_by_country_as_code_and_paper_have_them(page):
    data, _, own = page
    caption = "by country, local: in the code (subtracted) and the text (within) of the paper"
    shown_rows = {tuple(row[:4]): row[4] for row in listed(own, caption)}
    table = pl.read_parquet(data / "tables/nationality/correlations.parquet")
    countries = set(table["country"]) - {"all"}
    kinds = {(p, s) for p in ("original mean", "original sum") for s in ("subtracted", "within")}
    assert {key[0] for key in shown_rows} == countries | {"all"}
    assert {key[2:] for key in shown_rows} == kinds
