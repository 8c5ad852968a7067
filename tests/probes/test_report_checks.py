"""What the report makes of the controls, on numbers of which the answer is known."""

import json

import pytest
from page_read import Page, shown

from plumbline import probes
from plumbline.probes import ACROSS, ALL, EACH
from plumbline.probes.report.tables import Tables
from plumbline.probes.report.view import Limit
from plumbline.probes.site import controls as checks
from plumbline.probes.site import metrics as compare
from plumbline.probes.site.build import STUDIES


def row(measure, value, low=None, high=None, null="0.5: coin", world=0, n=9):
    told = {"measure": measure, "value": value, "low": low, "high": high, "null": null}
    return told | {"world": world, "n": n, "model": "w"}


FOUND = "share of words whose measured sign is the planted one"
HOLD = "share of 95% intervals with the planted difference"
ALIKE = "with another, of the same words by half, above that of unrelated"
RECALL = "faithful: recall@10 minus that of typicality as planted, mean over groups"
SPEARMAN = "Spearman correlation of planted and measured"
TESTS = "share of tests with p_bh at or below 0.05"
WORDS = "way of speaking: positive minus negative words, the way it speaks of a group"


@pytest.mark.parametrize(
    ("given", "question", "verdict"),
    [
        (row(FOUND, 0.9, 0.8, 0.95), checks.FOUND, "yes"),
        (row(FOUND, 0.7, 0.4, 0.9), checks.FOUND, "unclear"),  # chance is inside
        (row(FOUND, 0.5, 0.4, 0.6), checks.FOUND, "no"),
        (row(FOUND, 1.0), checks.FOUND, "unclear"),  # without an interval
        (row(SPEARMAN, 0.3, 0.1, 0.5), checks.ORDER, "yes"),
        (row(SPEARMAN, -0.3, -0.5, 0.1), checks.ORDER, "no"),
        (row(HOLD, 0.83, 0.44, 0.97), checks.HOLD, "yes"),  # 0.95 is inside
        (row(HOLD, 0.83, 0.7, 0.94), checks.HOLD, "no"),
        (row(HOLD, 1.0, 0.6, 1.0, world=1), checks.HOLD, "yes"),
        (row(TESTS, 0.0, 0.0, 0.3, null="0", world=1), checks.SILENT, "yes"),
        (row(TESTS, 0.3, 0.1, 0.5, null="0", world=1), checks.SILENT, "no"),
        (row(f"corrected: {WORDS}", 0.2, 0.1, 0.3, "0: as the control"), checks.FOUND, "yes"),
        (row(f"corrected: {WORDS}", 0.2, 0.1, 0.3, "0: as", world=1), checks.SILENT, "no"),
        (row(ALIKE, 0.5, 0.3, 0.7, "0: unrelated"), checks.FOUND, "yes"),
        (row(ALIKE, 0.5, -0.1, 1, "0: unrelated"), checks.FOUND, "unclear"),
        (row(RECALL, 0.03, -0.02, 0.08, "0: as planted"), checks.FOUND, "yes"),
        (row(RECALL, 0.03, -0.02, 0.13, "0: as planted"), checks.FOUND, "unclear"),
        (row(RECALL, -0.3, -0.4, -0.2, "0: as planted"), checks.FOUND, "no"),
        (row("planted differences that are found", 0.0, 0.0, 0.4), checks.FOUND, "no"),
    ],
)
def test_a_number_answers_a_question_and_is_judged_by_its_interval(given, question, verdict):
    check = checks.judged("a", given)
    assert (check["question"], check["verdict"]) == (question, verdict)


@pytest.mark.parametrize(
    "given",
    [
        row(TESTS, 0.7, 0.6, 0.8, null="no nominal value: many effects are planted"),
        row("ADJ: log-ratio female to male of p(positive|g)", 0.2, 0.1, 0.3, world=1),
        row("corrected: feminine minus masculine, all", 0.2, 0.1, 0.3, null="0"),
    ],
)
def test_a_number_that_no_control_is_judged_by_is_left_out(given):
    assert checks.judged("a", given) is None


def test_readings_and_ways_of_asking_are_told_apart():
    assert checks.parted("probability, 200 words, faithful: with another") == (
        *("faithful", "probability, 200 words"),
        "with another",
    )
    assert checks.parted("ADJ: share") == ("", "", "ADJ: share")


def every():
    rows = [row(FOUND, 0.9, 0.8, 0.95), row(FOUND, 0.7, 0.4, 0.9), row(HOLD, 0.5, 0.4, 0.6)]
    rows.append(row(TESTS, 0.02, 0.0, 0.1, null="0", world=1))
    return [checks.judged("pmi", given) for given in rows]


def test_one_table_says_of_every_probe_how_many_numbers_are_as_they_should():
    table = checks.section(every(), STUDIES, {}).groups[0].blocks[0].parts[1].tables[0]
    assert table.words == ("analysis", "study", *checks.QUESTIONS)
    assert table.rows == [
        ["pmi", "politicians", "1 of 2; 1 unclear", "no measure", "0 of 1; 1 no", "yes (1 of 1)"]
    ]


def test_what_failed_is_named_with_its_limit_or_as_not_explained():
    limit = Limit("pmi", "intervals with the planted", "Few words & many lists.")
    limited = [s._replace(limits=[limit]) if s.name == "politicians" else s for s in STUDIES]
    of = [s for s in limited if s.name == "politicians"]
    linked = '<a href="politicians.html#controls">a known limit</a>'
    for studies, said in ((STUDIES, "not explained"), (limited, linked), (of, limit.about)):
        failed = checks.failed(every(), studies)
        assert failed.caption == (
            "Of 4 numbers 2 are as they should be, 1 unclear, 1 not: these failed."
        )
        ((study, analysis, model, what, _, limits, *numbers),) = failed.tables[0].rows
        assert (study, analysis, model, what, limits) == ("politicians", "pmi", "w", HOLD, said)
        assert numbers == ["0.500", "0.400 to 0.600", "9"]
    none = checks.failed(every()[:2], STUDIES)
    assert (none.tables, none.caption.endswith("0 not.")) == ((), True)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_limit_is_of_an_analysis_that_the_study_has(study):
    assert {limit.analysis for limit in study.limits} <= set(study.analyses)


def test_metrics_are_means_of_the_controls_numbers():
    told = compare.metrics(every())
    means = {"found": 0.8, "coverage": 0.5, "false_discoveries": 0.02}
    assert told == {"controls": {"pmi": {"all": means}}, "as_it_should": {"of": 4, "yes": 2}}
    assert json.loads(json.dumps(told)) == told


def test_metrics_leave_analyses_out(tmp_path):
    compare.write(Tables(tmp_path), (), every(), (), tmp_path, ("pmi",))
    told = json.loads((tmp_path / "metrics.json").read_text())
    assert told == {"as_it_should": {"of": 0, "yes": 0}, "controls": {}, "models": {}}
    assert len((tmp_path / "plots/controls.csv").read_text().splitlines()) == 1


def test_the_figure_of_controls_says_what_it_shows():
    assert "2 as it should be, 1 unclear, 1 not as it should be" in checks.figure(every())


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_without_tables_every_step_is_empty_and_says_how_to_make_them(study, tmp_path):
    found, text = shown(tmp_path, study, *(step.name for step in study.steps))
    assert [step.name for step in found if step.groups] == []
    assert text.count("No tables yet") == len(study.steps)
    words = Page(text).words
    assert [step for step in study.steps if f"make repro STAGE={step.stage}" not in words] == []


def test_every_analysis_is_on_one_page():
    shown = [analysis for study in STUDIES for analysis in study.analyses]
    assert sorted(shown) == sorted({*EACH, *ALL, "waves"})
    assert [study.name for study in STUDIES] == [*probes.STUDIES, *ACROSS]
