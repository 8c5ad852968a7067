"""What a run could find, from simulated tests."""

import polars as pl
from test_rates import SEED, z_tests

from plumbline.probes.calibration.rates import rows
from plumbline.probes.calibration.truth import NULL, PLANTED
from plumbline.probes.commands import power


def test_the_smallest_effects_stand_beside_the_tests(tmp_path):
    print("seed", SEED)
    assert power.table(tmp_path) == ""
    strong = z_tests(PLANTED, [0.0, 1.0, 4.0], seed=SEED, replicates=100)
    for name, tallies in (
        ("pmi", pl.concat([z_tests(NULL, [0.0], seed=SEED, replicates=20), strong])),
        ("values", z_tests(PLANTED, [0.0, 0.2], seed=SEED, replicates=20)),
    ):
        (tmp_path / name).mkdir()
        rows(name, tallies).write_parquet(tmp_path / name / "calibration.parquet")
    lines = power.table(tmp_path).splitlines()
    told = {line.split(" | ")[0]: line.strip("| ").split(" | ")[3:] for line in lines[4:]}
    found, adjusted = map(float, told["| pmi"])
    assert abs(found - 2.8) < 0.3  # of a z test: 1.96 + .84
    assert adjusted > found
    assert told["| values"] == ["above all tried", "above all tried"]
