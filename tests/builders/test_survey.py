from __future__ import annotations

import shutil
from pathlib import Path

import building
import polars as pl
import pytest
import respondents
from samples import DAY, SAMPLES

from plumbline.builders.core.build import build
from plumbline.builders.core.errors import UserError
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.survey import build as survey
from plumbline.builders.datasets.survey.responses import respondents as read
from plumbline.builders.release.card import render

HEAD = "respondent,gender,infected,a,b\n"


def test_the_simulated_survey_says_what_it_is(project):
    counts = build("survey", survey)
    frame = pl.read_parquet("data/datasets/survey/simulated.parquet")
    lacking = sum(counts.rejects.values())
    assert len(frame) + lacking == respondents.PEOPLE * 48
    assert 0 < lacking < 200
    assert frame["simulated"].all()
    assert frame["respondent"].str.starts_with("simulated-").all()
    assert set(frame["source"]) == {"simulated by the project: nobody was asked"}
    card = render(Path("data/datasets/survey"))["README.md"].decode()
    assert "yes: nobody answered" in card
    for column in survey.SCHEMA.columns:  # told in every column
        assert "at random" in column.description, column.name


def test_the_sample_is_what_its_program_draws():
    questionnaire = (SAMPLES / "statements" / DAY / "values-cs.csv").read_bytes()
    drawn = (SAMPLES / "survey" / DAY / "simulated.csv").read_bytes()
    assert respondents.survey_file(questionnaire) == drawn


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("respondent,gender\n", "line 1: not the columns respondent, gender, infected"),
        ("respondent,gender,infected\n", "line 1: no item"),
        ("respondent,gender,infected,a,a\n", "one that another has"),
        (HEAD, "no respondent in it"),
        (HEAD + "r1,female,no,1,5", "cut short"),
        (HEAD + "r1,female,no,1\n", "line 2 has 4 columns, not 5"),
        (HEAD + "r1,woman,no,1,5\n", "line 2: gender is none of female, male, unstated"),
        (HEAD + "r1,female,maybe,1,5\n", "line 2: infected is none of no, yes, unknown"),
        (HEAD + "r1,female,no,1,6\n", "line 2: the answer to b is not 1 to 5"),
        (HEAD + "r1,female,no,1,2.5\n", "the answer to b is not"),
        (HEAD + "r1,female,no,1,5\n" * 2, "line 3: a respondent has no name, or a second line"),
    ],
)
def test_a_file_that_is_no_survey_is_refused_with_the_line(text, wrong):
    with pytest.raises(ValueError, match=wrong):
        read(text.encode())


def test_an_empty_answer_is_none():
    (person,) = read((HEAD + "r1,unstated,unknown,,4\n").encode())
    assert person.answers == {"a": None, "b": 4}


def test_a_survey_that_is_not_there_is_named_with_the_layout():
    params = survey.Params(version="0.1.0", snapshot="x", configs=["kopecky2022"])
    with pytest.raises(UserError, match="no survey 'kopecky2022'; only a simulated one is shipped"):
        list(survey.build(Snapshot.open(SAMPLES / "survey" / DAY), params))


def test_respondents_of_two_genders_fail_the_checks(sample, tmp_path):
    folder = shutil.copytree(sample("survey"), tmp_path / "survey")
    path = folder / "simulated.parquet"
    frame = pl.read_parquet(path)
    odd = pl.when(pl.int_range(pl.len()) == 0).then(1 - pl.col("gender")).otherwise("gender")
    frame.with_columns(gender=odd).select(frame.columns).write_parquet(path)
    assert "one_gender" in building.failing("survey", folder)
