from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import respondents
from samples import DAY, SAMPLES

from plumbline.builders.core.build import build
from plumbline.builders.datasets.survey import build as survey
from plumbline.builders.datasets.survey import responses
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


HEAD = "respondent,gender,infected"
BODY = "a,female,no,4,0.5,1\nb,male,no,2,3.25,2\n"


def test_respondents_items_are_declared():
    text = f"{HEAD},i1,weight,i2\n{BODY}".encode()
    first, second = responses.respondents(text, ["i*"], "weight")
    assert (first.answers, first.weight) == ({"i1": 4, "i2": 1}, 0.5)
    assert (second.answers, second.weight) == ({"i1": 2, "i2": 2}, 3.25)
    for items, weight, named in (
        (["i*"], "", "weight"),
        ([], "weight", "i1"),
        (["i1"], "weight", "i2"),
        (["i*", "j1"], "weight", "j1"),
    ):
        with pytest.raises(ValueError, match="line 1") as error:
            responses.respondents(text, items, weight)
        assert repr(named) in str(error.value)
    with pytest.raises(ValueError, match="line 1"):
        responses.respondents(text, ["i*", "weight"], "weights")


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "", "heavy"])
def test_respondents_weight_is_a_positive_number(weight):
    text = f"{HEAD},i1,w\na,female,no,4,1\nb,male,no,2,{weight}\n".encode()
    with pytest.raises(ValueError, match="line 3") as error:
        responses.respondents(text, ["i1"], "w")
    assert weight not in str(error.value) or weight in "01"  # cells may identify people
