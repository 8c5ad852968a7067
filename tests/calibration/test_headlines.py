"""The simulation of the summaries of studies: cases, planted effects and counts."""

import pytest

from calibration import headlines
from calibration.truth import Truth
from plumbline.probes.site.headlines import HEADLINES

SMALL = next(n for n, case in enumerate(headlines.CASES) if case.study == "nationality")


def test_cases_are_all_studies_at_both_scales():
    for scale in ("small", "full"):
        studies = {case.study for case in headlines.CASES if case.scale == scale}
        assert studies == set(HEADLINES) == set(headlines.PLANTED)


def test_estimate_moves_by_the_planted_effect():
    case, (null, plant, _) = headlines.CASES[SMALL], headlines.PLANTED["nationality"]
    tables = [
        headlines.headline(case, 1, Truth("planted", **null, **plant(size))) for size in (0, 0.5)
    ]
    before, after = (headlines.estimate(case, rows) for rows in tables)
    # .5 units of 5 points; another country has the opposite effect, so the mean does not move
    assert after - before == pytest.approx(0.5 * 5, rel=0.02)


@pytest.mark.slow
def test_count_finds_planted_effects_and_no_others(monkeypatch):
    row = headlines.count(SMALL, 3)
    assert (row["null"], row["detected"]) == (0, 3)
    monkeypatch.setattr(headlines, "LEVEL", 1.0)  # every test is a finding
    assert headlines.count(SMALL, 2)["null"] == 2
