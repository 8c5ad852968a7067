"""Controls of the controls, as in ``test_breakages.py``: those of the other studies."""

import pytest
from breakages import BREAKAGES, POLITICIANS
from breaking import shown

pytestmark = pytest.mark.slow
OURS = [broken for broken in BREAKAGES if broken.analysis not in POLITICIANS]


@pytest.mark.parametrize("broken", OURS, ids=lambda b: f"{b.analysis}: {b.name}")
def test_a_broken_analysis_is_seen(broken, monkeypatch):
    found = shown(broken, monkeypatch)
    print(*found, sep="\n")
    assert found
