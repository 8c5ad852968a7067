from __future__ import annotations

from pathlib import Path

import polars as pl
import respondents
from samples import DAY, SAMPLES

from plumbline.builders.core.build import build
from plumbline.builders.datasets.survey import build as survey
from plumbline.builders.release.card import render


def test_build_simulated_survey(project):
    counts = build("survey", survey)
    frame = pl.read_parquet("data/datasets/survey/simulated.parquet")
    lacking = sum(counts.rejects.values())
    assert len(frame) + lacking == respondents.PEOPLE * 48
    assert 0 < lacking < 200
    assert frame["simulated"].all()
    assert frame["respondent"].str.starts_with("simulated-").all()
    assert set(frame["source"]) == {"simulated by the project: nobody was asked"}
    card = render(Path("data/datasets/survey"))["README.md"].decode()
    assert "| simulated | yes |" in card
    for column in survey.SCHEMA.columns:  # told in every column
        assert "at random" in column.description, column.name


def test_sample_survey_is_reproducible():
    questionnaire = (SAMPLES / "statements" / DAY / "values-cs.csv").read_bytes()
    drawn = (SAMPLES / "survey" / DAY / "simulated.csv").read_bytes()
    assert respondents.survey_file(questionnaire) == drawn
