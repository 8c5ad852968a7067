"""Controls of the controls: an analysis that is broken is told as broken by its simulation.

Here those of politicians; ``test_breakages_studies.py`` has the others, for another process.
"""

import pytest
from breakages import BREAKAGES, POLITICIANS, SEED
from breaking import run, seen, shown, truths, whole

from calibration.calibrate import those

pytestmark = pytest.mark.slow
OURS = [broken for broken in BREAKAGES if broken.analysis in POLITICIANS]


@pytest.mark.parametrize("broken", OURS, ids=lambda b: f"{b.analysis}: {b.name}")
def test_a_broken_analysis_is_seen(broken, monkeypatch):
    found = shown(broken, monkeypatch)
    print(*found, sep="\n")
    assert found


def test_an_analysis_that_is_whole_is_not_seen_as_broken():
    for analysis in ("pmi", "values", "reliability"):
        for truth in truths(analysis):
            with pytest.MonkeyPatch.context() as patch:
                again = run(analysis, truth, None, patch, SEED + 1)
            assert seen(whole(analysis, truth), again) == []


def test_every_analysis_is_broken_somehow():
    assert {broken.analysis for broken in BREAKAGES} == set(those())
