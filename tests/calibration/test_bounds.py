"""The tables of calibration: what is outside of its bounds, found by a decoy, or not simulated.

Each needs a reason on the page, and each reason something that it is of.
"""

from __future__ import annotations

import sys

import polars as pl
import pytest
from documented import TOP

from calibration.calibrate import FOLDER
from plumbline.probes.report import error_rates
from plumbline.probes.report.error_rates import COVERAGE, DETECTABLE, FOUND_05, SIZE, WRONG

sys.path.insert(0, str(TOP / "docs"))
import reasons
from reasons import DECOYS, LACKING, OUTSIDE, Case, Reason

PAGE = (TOP / "docs/methods/calibration.md").read_text(encoding="utf-8")
LEAST = {OUTSIDE: 20, DECOYS: 8, LACKING: 8}  # rows, fewer of which are not all that are known


@pytest.mark.parametrize("section", LEAST)
def test_what_is_outside_or_not_simulated_has_a_reason(section):
    rows, cases = reasons.reasons(PAGE, section), reasons.cases(section, TOP / FOLDER)
    without = [case for case in cases if not any(row.explains(case) for row in rows)]
    assert cases
    assert not without


@pytest.mark.parametrize("section", LEAST)
def test_no_reason_is_of_what_is_inside_or_simulated(section):
    rows, cases = reasons.reasons(PAGE, section), reasons.cases(section, TOP / FOLDER)
    each = [(row, pattern) for row in rows for pattern in row.tests]
    dead = [(r.row(), of) for r, of in each if not any(r.explains(c, of) for c in cases)]
    assert len(rows) > LEAST[section]
    assert not dead


def test_all_rates_of_a_test_are_of_the_same_tables():
    of_all = [*error_rates.TOLD, *error_rates.OF_POWER]  # measures that are taken from all tables
    key = ["analysis", "test", "shape", "truth"]
    for path in sorted((TOP / FOLDER).glob("*/calibration.parquet")):
        table = pl.read_parquet(path)
        most = pl.col("replicates").max().over(key)
        mixed = table.filter(pl.col("measure").is_in(of_all), pl.col("replicates") != most)
        assert mixed.is_empty(), mixed.select(key).unique().rows()


def test_the_figures_of_reasons_are_those_of_the_tables():
    assert reasons.with_figures(PAGE, TOP / FOLDER) == PAGE
    row = next(row for row in reasons.reasons(PAGE, OUTSIDE) if row.figures)
    other = PAGE.replace(row.row(), row._replace(figures=".123").row())
    assert other != PAGE
    assert reasons.with_figures(other, TOP / FOLDER) == PAGE
    with pytest.raises(ValueError, match="mend the row"):
        reasons.with_figures(PAGE.replace(row.row(), row.row()[:-1] + " |"), TOP / FOLDER)


def test_a_reason_is_of_the_tests_and_the_side_that_it_names():
    reason = Reason("a", ("one, *", "two"), "size at .05, above", ".1", "why")
    assert reason.explains(Case("a", "one, more", "size at .05, above"))
    assert not reason.explains(Case("a", "one, more", "size at .05, above"), "two")
    for other in (("b", "two", reason.what), ("a", "three", reason.what), ("a", "two", "below")):
        assert not reason.explains(Case(*other))


def test_a_test_without_its_null_a_third_size_or_a_decoy_is_seen():
    rows = [
        *[("whole", SIZE, 0.0), ("whole", WRONG, 0.0), ("whole", DETECTABLE, None)],
        *[("whole", FOUND_05, size) for size in (0.1, 0.2, 0.4)],
        *[("half", FOUND_05, size) for size in (0.1, 0.2, 0.21)],
        ("half, interval", COVERAGE, 0.0),
        ("not in the tables: half", FOUND_05, 0.1),
    ]
    table = pl.DataFrame(rows, ["test", "measure", "effect"], orient="row")
    found = list(reasons.lacking(table.with_columns(analysis=pl.lit("a"))))
    assert found == [Case("a", "half", what) for what in ("null", "sizes", "decoy", "detectable")]


@pytest.mark.parametrize(("low", "seen"), [(0.06, False), (0.08, True)])
def test_what_a_decoy_makes_be_found_needs_a_reason(low, seen):
    row = {"analysis": "a", "test": "t", "truth": "d", "measure": WRONG, "value": 0.1, "low": low}
    found = list(reasons.decoys(pl.DataFrame([row])))
    assert found == [Case("a", "t", "d", 0.1)] * seen


def nulls(measure, values, test="t"):
    """Return the rows of one test under several nulls."""
    rows = [
        {"test": test, "shape": "s", "truth": f"{at}", "kind": "null", "effect": 0.0, "tests": 90}
        | {"measure": measure, "value": value, "low": value, "high": value, "replicates": 9}
        for at, value in enumerate(values)
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("turn", [1, -1])
@pytest.mark.parametrize(
    ("measure", "test", "values", "worst"),
    [
        (error_rates.FAMILIES, "t", (0.0, 0.049), 0.049),  # whose bound is .05: none is best
        (SIZE, "t", (0.04, 0.069), 0.069),
        (COVERAGE, "t", (0.94, 0.965), 0.965),
        (COVERAGE, "t, 90% interval", (0.89, 0.915), 0.915),
    ],
)
def test_of_several_nulls_the_worst_is_told(measure, test, values, worst, turn):
    (line,) = error_rates.lines(nulls(measure, values[::turn], test))
    assert line[measure][0] == worst


def test_a_table_without_size_and_coverage_is_told_so():
    (line,) = error_rates.lines(nulls(error_rates.FAMILIES, (0.01,)))
    assert "simulated yet" in error_rates.sentence([line])
    (line,) = error_rates.lines(nulls(SIZE, (0.04,)))
    assert "9 tables each: 4% of tests have p at or below .05." in error_rates.sentence([line])
