from __future__ import annotations

import pytest
from samples import DAY, POLITE, SAMPLES, files, survey_params

from plumbline.builders.core.errors import Problem
from plumbline.builders.core.snapshot import Snapshot
from plumbline.builders.datasets.survey import fetch as survey
from sources.misbehaving import always, half, misbehaving, web_page

FOLDER = SAMPLES / "survey" / DAY


def test_answers_are_kept_as_they_are(tmp_path):
    with files(FOLDER) as address:
        survey.fetch(survey_params(address), POLITE, tmp_path / DAY)
    kept = (tmp_path / DAY / "simulated.csv").read_bytes()
    assert kept == (FOLDER / "simulated.csv").read_bytes()
    assert Snapshot.open(tmp_path / DAY).manifest["counts"] == {"surveys": 1, "respondents": 120}


def test_a_missing_file_a_web_page_and_a_half_are_told(tmp_path):
    with pytest.raises(Problem, match=r"simulated\.csv: no such file of answers; docs"):
        survey.fetch(survey_params(str(tmp_path)), POLITE, tmp_path / "a")
    with files(FOLDER) as address:
        for wrong, told in (
            (web_page, "a web page in place of the file"),
            (half, r"cut short|columns"),
        ):
            with misbehaving(address, always(wrong)) as server:
                into = tmp_path / told[:3]
                with pytest.raises(Problem, match=told):
                    survey.fetch(survey_params(server.address), POLITE, into)


def test_other_parameters_are_refused_when_a_fetch_is_continued(tmp_path):
    survey.fetch(survey_params(str(FOLDER)), POLITE, tmp_path / DAY)
    with pytest.raises(Problem, match="begun with other parameters"):
        survey.fetch(survey_params(str(FOLDER), scale="PI34"), POLITE, tmp_path / DAY)
