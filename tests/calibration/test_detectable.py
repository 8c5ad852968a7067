"""What rows tell as detectable is found about four times of five, where that was once wrong."""

import breaking
import pytest

from plumbline.probes.calibration.summary import DETECTABLE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("analysis", "truth", "test", "replicates"),
    [
        # found in .33 to .57 by the error of one gender's deviation
        ("latent", "words planted", "latent: contrast", 12),
        # found in .41 to .63 by an interval that is not what is tested
        ("clusters", "genders apart", "shares: faithful", 12),
    ],
)
def test_what_is_told_as_detectable_is_found(monkeypatch, analysis, truth, test, replicates):
    monkeypatch.setattr(breaking, "REPLICATES", replicates)
    monkeypatch.setattr(breaking, "LONG", ())
    rates = breaking.run(analysis, truth, None, monkeypatch)
    (row,) = (r for r in rates if (r["test"], r["measure"]) == (test, DETECTABLE))
    print(row["value"], row["low"], row["high"])
    assert row["tests"] > 100
    assert 0.65 < row["value"] < 0.92
