"""The section of the controls, for numbers with known verdicts."""

import json

import pytest

from plumbline.probes.controls.measures import (
    FOUND,
    HOLD,
    MEASURES,
    NO,
    ORDER,
    SILENT,
    UNCLEAR,
    YES,
)
from plumbline.probes.site import controls
from plumbline.probes.site.build import STUDIES


def row(measure, value, low=None, high=None, world="planted"):
    numbers = {"value": value, "low": low, "high": high, "n": 9, "expected": 0.5}
    key = {"model": "w", "measure": measure, "reading": "", "item": "", "cluster": "word"}
    return key | numbers | {"world": world}


@pytest.mark.parametrize(
    ("given", "question", "verdict"),
    [
        (row("sign_agreement", 0.7, 0.4, 0.9), FOUND, UNCLEAR),  # the interval includes chance
        (row("sign_agreement", 0.5, 0.4, 0.6), FOUND, NO),
        (row("sign_agreement", 1.0), FOUND, UNCLEAR),  # the interval is missing
        (row("rank_correlation", 0.3, 0.1, 0.5), ORDER, YES),
        (row("coverage", 0.83, 0.44, 0.97), HOLD, YES),  # the interval includes 0.95
        (row("coverage", 0.83, 0.7, 0.94), HOLD, NO),
        (row("discoveries_bh", 0.0, 0.0, 0.3, "null"), SILENT, YES),
        (row("discoveries_bh", 0.3, 0.1, 0.5, "null"), SILENT, NO),
        (row("false_discoveries_bh", 0.3, 0.1, 0.5), SILENT, NO),
        (row("tone_shift", 0.2, 0.1, 0.3, "null"), SILENT, NO),
        (row("error", 0.03, -0.02, 0.08), FOUND, YES),
        (row("error", 0.03, -0.02, 0.13), FOUND, UNCLEAR),
        (row("power", 0.7, 0.6, 0.9), FOUND, UNCLEAR),
        (row("slope", 0.96, 0.92, 0.99), FOUND, YES),  # within .1 of 1
        (row("slope", 0.16, 0.11, 0.21), FOUND, NO),
    ],
)
def test_judged_by_the_interval(given, question, verdict):
    check = controls.judged("pmi", given)
    assert (check["question"], check["verdict"]) == (question, verdict)


@pytest.mark.parametrize(
    "given",
    [
        row("discoveries_bh", 0.7, 0.6, 0.8),  # with known effects
        row("estimate", 0.2, 0.1, 0.3, "null"),
        row("sign_agreement", 0.5, 0.4, 0.6, "null"),
    ],
)
def test_judged_leaves_out_what_answers_no_question(given):
    assert controls.judged("pmi", given) == {}


def checks():
    rows = [row("sign_agreement", 0.9, 0.8, 0.95), row("sign_agreement", 0.7, 0.4, 0.9)]
    rows += [row("coverage", 0.5, 0.4, 0.6), row("discoveries_bh", 0.02, 0.0, 0.1, "null")]
    return [controls.judged("pmi", given) for given in rows]


def test_section_counts_by_question_and_names_what_failed():
    parts = controls.section(checks(), STUDIES).groups[0].parts
    assert parts[0].caption == "2 of 4 numbers pass, 1 are unclear, 1 fail."
    (failed,) = parts[0].tables
    assert failed.rows[0][:2] == ["pmi", "coverage"]
    assert parts[1].tables[0].rows == [
        ["pmi", "1 of 2; 1 unclear", "no measure", "0 of 1; 1 no", "1 of 1"]
    ]
    assert "2 filled" not in parts[2].figure
    assert "Marks: yes, unclear, no" in parts[2].figure


def test_section_lists_planted_beside_measured_effects_of_its_studies():
    planted = [row("estimate", -0.4, -0.55, -0.26) | {"analysis": "pmi", "expected": -2.0}]
    parts = controls.section(checks(), STUDIES, planted).groups[0].parts
    (table,) = next(part.tables for part in parts if part.title == "Planted and measured effects")
    assert [list(map(float, cells[-3:-1])) for cells in table.rows] == [[-2.0, -0.4]]


def test_explained_by_the_columns_of_a_limit():
    (check,) = [check for check in checks() if check["verdict"] == NO]
    (study,) = [study for study in STUDIES if study.name == "politicians"]
    for measure, told in (("coverage", "Few words."), ("error", "not explained")):
        limit = {"analysis": ["pmi"], "measure": [measure], "about": "Few words."}
        limited = study._replace(limits=[limit])
        assert controls.explained(check, limited, full=True) == told
    limited = study._replace(limits=[{"analysis": ["pmi"], "about": "Few words."}])
    assert 'href="politicians.html#controls"' in controls.explained(check, limited, full=False)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_limits_are_about_analyses_and_measures_that_exist(study):
    for limit in study.limits:
        assert {*limit["analysis"]} <= {*study.analyses}
        assert {*limit["measure"]} <= {*MEASURES}


def test_metrics_are_means_of_the_controls_numbers():
    means = {"found": 0.8, "coverage": 0.5, "false_discoveries": 0.02}
    told = controls.metrics(checks())
    assert told == {"controls": {"pmi": {"all": means}}, "as_it_should": {"of": 4, "yes": 2}}


def test_metrics_leave_analyses_out(tmp_path):
    controls.write_metrics(checks(), (), tmp_path, ("pmi",))
    told = json.loads((tmp_path / "metrics.json").read_text())
    assert told == {"as_it_should": {"of": 0, "yes": 0}, "controls": {}, "models": {}}
    assert len((tmp_path / "plots/controls.csv").read_text().splitlines()) == 1
