"""Rates of tests over replicates, against counts by hand and tests whose rates are known."""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr

from calibration.rates import at_detectable, rate, rows, smallest
from calibration.tally import tally
from calibration.truth import COLUMNS, NULL, PLANTED, outcome
from plumbline.probes.commands import power
from plumbline.probes.report import error_rates
from plumbline.probes.stats.estimate import DETECTABLE, benjamini_hochberg
from plumbline.probes.stats.intervals import wilson

SEED = 20261123


def seen(effect, p, *, value=1.0, adjusted=None, family="all", target=None, ends=(0.0, 2.0)):
    """Return a row of outcomes."""
    own = (effect, target, family, value, *ends, p, adjusted, None, None, True)
    return dict(zip(COLUMNS, own, strict=True))


def counted(*outcomes):
    schema = dict.fromkeys(COLUMNS, pl.Float64) | {"family": pl.String, "by_mean": pl.Boolean}
    found = tally(pl.DataFrame(outcomes, schema=schema))
    return {row["effect"]: row for row in found.to_dicts()}


def test_a_tally_by_hand():
    found = counted(
        seen(0.0, 0.04, adjusted=0.08, family="a", target=0.5),
        seen(0.0, 0.005, adjusted=0.02, family="a", target=2.5),
        seen(0.0, 0.5, adjusted=0.9, family="b", target=0.0, ends=(None, 0.2)),
        seen(0.0, None, family="c"),  # of no test
        seen(None, 0.001, adjusted=0.001, family="a"),  # neither null nor planted
        seen(0.4, 0.01, adjusted=0.03, family="a", value=-1.0),
        seen(-0.4, 0.02, adjusted=0.2, family="a", value=-1.0),
        seen(0.4, 0.5, adjusted=0.6, family="b", value=-1.0),
    )
    null, planted = found[0.0], found[0.4]
    assert (null["tests"], null["p05"], null["p01"]) == (3, 2, 1)
    assert (null["families"], null["false_families"]) == (2, 1)
    assert (null["intervals"], null["covered"]) == (3, 2)  # an end that is null has no end
    assert (null["widths"], null["width"]) == (2, 4.0)
    assert (planted["tests"], planted["p05"], planted["adjusted05"]) == (3, 2, 1)
    assert planted["wrong_sign"] == 1  # of those found, the one of -1.0 where +.4 was planted
    assert np.isnan(null["false_share"])  # what was adjusted with these rows is not here
    assert planted["families"] == planted["false_share"] == 0


def test_false_findings_are_a_share_of_those_of_whole_families():
    p = {"a": [0.001, 0.01, 0.02, 0.6], "b": [0.3, 0.02]}
    effects = {"a": [0.4, 0.0, None, 0.0], "b": [0.0, 0.4]}
    rows = [
        seen(effect, own, adjusted=float(f"{adjusted:.6g}"), family=family)
        for family, of in p.items()
        for effect, own, adjusted in zip(
            effects[family], of, benjamini_hochberg(np.array(of)), strict=True
        )
    ]
    # of a one of three findings is false; of b none
    assert counted(*rows)[0.0]["false_share"] == pytest.approx((1 / 3 + 0) / 2)
    without = [row for row in rows if row["p"] != 0.02 or row["family"] == "b"]
    assert counted(*without)[0.0]["false_share"] == 0  # of b alone: a is not all there


def test_tests_that_are_counted_together_have_the_counts_that_they_have_alone():
    rng = np.random.default_rng(SEED)
    frames = {}
    for name in ("one", "two"):
        p = rng.random(40) ** 3
        table = pl.DataFrame({"value": rng.normal(size=40), "p": p, "low": p - 1, "high": p + 1})
        table = table.with_columns(
            p_bh=benjamini_hochberg(p), detectable=pl.lit(1.0), detectable_bh=pl.lit(2.0)
        )
        effect = pl.Series(rng.choice([0.0, 1.0, -2.0], 40))
        frames[name] = outcome(table, effect=effect, target=effect)
    both = tally(pl.concat([own.with_columns(test=pl.lit(n)) for n, own in frames.items()]))
    for name, own in frames.items():
        part = both.filter(test=name).drop("test").sort("effect")
        assert part.equals(tally(own).sort("effect"))


def test_a_rate_has_the_interval_of_independent_replicates_and_not_of_tests():
    rng = np.random.default_rng(SEED)
    inside = {"alone": 0, "together": 0, "as if alone": 0}
    for _ in range(400):
        alone = (rng.random((100, 10)) < 0.05).sum(axis=1)
        together = 10 * (rng.random(100) < 0.05)
        for name, hits in (("alone", alone), ("together", together)):
            found = rate(hits.astype(float), np.full(100, 10.0))
            inside[name] += found.low <= 0.05 <= found.high
        hits = float(together.sum())
        naive = wilson(hits, 1000)  # what takes the tests of a replicate for independent
        inside["as if alone"] += naive.low <= 0.05 <= naive.high
    assert 0.92 <= inside["alone"] / 400 <= 0.99
    assert 0.92 <= inside["together"] / 400 <= 0.99
    assert inside["as if alone"] / 400 < 0.7


def test_a_rate_of_none_is_as_wide_as_its_replicates_are_few():
    found = rate(np.zeros(20), np.full(20, 500.0))
    assert (found.value, found.low, found.n) == (0.0, 0.0, 20)
    assert found.high == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-3)  # Wilson, 0 of 20


def test_a_rate_of_ten_replicates_is_held_as_often_as_is_said():
    rng = np.random.default_rng(SEED)
    held = []
    for _ in range(1000):
        hits = rng.binomial(40, rng.beta(2, 8, size=10)).astype(float)
        found = rate(hits, np.full(10, 40.0))
        held.append(found.low <= 0.2 <= found.high)
    assert 0.92 <= np.mean(held) <= 0.98


def test_the_smallest_effect_of_a_z_test():
    effects, exact = np.array([1.0, 2.0, 4.0]), 1.959964 + 0.841621
    many = np.full(3, 1000)
    found = smallest(effects, ndtr(effects - 1.959964), many)
    assert found == pytest.approx(exact, abs=1e-4)
    assert np.isnan(smallest(effects, np.array([0.06, 0.1, 0.2]), many))
    assert smallest(effects, np.array([0.95, 1.0, 1.0]), many) == 1.0  # none smaller was tried


@pytest.mark.parametrize("tables", [50, 200, 1000])
def test_what_all_tables_find_does_not_make_the_smallest_effect_too_small(tables):
    # as many tables as rarely miss the larger one: .99 is found of 4.29
    effects = np.array([2.0, 4.29])
    seen = np.array([ndtr(2.0 - 1.959964), 1.0])
    exact = 1.959964 + 0.841621
    assert abs(smallest(effects, seen, np.full(2, tables)) - exact) < 0.25


def z_tests(
    kind,
    effects,
    *,
    seed,
    replicates=300,
    tests=20,
    inflate=1.0,
    swapped=1.0,
    told=2.801585,
    known=True,
    alike=False,
    vary=0.0,
    untold=0.0,
):
    """Return tallies of z tests whose statistics are larger than they should be by a factor.

    ``alike``: effects are told as of one size, whatever they are, and negative ones have another
    unit.
    ``vary``: SD of what is told as detectable, in that.
    ``untold``: share of tests that tell nothing as detectable; their values are so much larger
    that the mean is larger by 1.
    """
    rng = np.random.default_rng(seed)
    effect = np.tile(np.resize(effects, tests), (replicates, 1))
    z = swapped * effect + inflate * rng.normal(size=effect.shape)
    p = 2 * ndtr(-np.abs(z))
    adjusted = np.array([benjamini_hochberg(own) for own in p])
    columns = {"value": z, "low": z - 1.959964, "high": z + 1.959964, "p": p, "p_bh": adjusted}
    table = pl.DataFrame({name: own.ravel() for name, own in columns.items()}).with_columns(
        effect=effect.ravel(),
        detectable=told * (1 + vary * rng.normal(size=z.size)),
        detectable_bh=pl.lit(told),
    )
    without = rng.random(z.size) < untold
    table = table.with_columns(
        value=z.ravel() + without / max(untold, 1e-9),
        detectable=pl.when(pl.Series(~without)).then("detectable"),
    )
    if alike:
        unit = pl.when(pl.col("effect") < 0).then(10.0).otherwise(1.0)
        table = table.with_columns(pl.col("value", "low", "high", *DETECTABLE) * unit)
    target = pl.col("effect") if known else None
    level = pl.col("effect") if known else 100 * pl.col("effect")  # of another scale
    level = level.sign() if alike else level
    own = outcome(table, effect=level, target=target)
    number = np.repeat(np.arange(replicates), tests)
    counts = tally(own.with_columns(test=number)).rename({"test": "replicate"})
    same = {"test": "z", "shape": "s", "truth": kind, "kind": kind}
    return counts.with_columns(**{key: pl.lit(value) for key, value in same.items()})


def measured(tallies):
    table = rows("a", tallies)
    return {(row["measure"], row["effect"]): row for row in table.to_dicts()}


def test_z_tests_have_the_rates_that_theory_gives():
    null = measured(z_tests(NULL, [0.0], seed=SEED))
    for measure, true in (
        ("size at .05", 0.05),
        ("size at .01", 0.01),
        ("coverage of intervals", 0.95),
        ("families with a false finding", 0.05),
    ):
        row = null[measure, 0.0]
        assert row["low"] <= true <= row["high"], measure
    assert null["size at .05", 0.0]["tests"] == 6000
    assert null["width of intervals", 0.0]["value"] == pytest.approx(3.919928)
    planted = measured(z_tests(PLANTED, [0.0, 2.0, 2.801585, 4.0], seed=SEED))
    for effect in (2.0, 2.801585, 4.0):
        row = planted["found at .05", effect]
        assert row["low"] <= ndtr(effect - 1.959964) <= row["high"]
    assert planted["smallest effect found", None]["value"] == pytest.approx(2.8, abs=0.15)
    assert planted["found at the effect told as detectable", None]["value"] == pytest.approx(
        0.8, abs=0.04
    )
    assert planted["false among findings", 0.0]["high"] < 0.05


def test_what_is_wrong_with_a_test_is_seen():
    """A control of the harness itself: tests that are broken are told as broken."""
    liberal = error_rates.lines(rows("a", z_tests(NULL, [0.0], seed=SEED, inflate=1.5)))
    assert [text.partition(" is")[0] for text in liberal[0]["outside"]] == [
        "size at .05",
        "size at .01",
        "families with a false finding",
        "coverage of intervals",
    ]
    dead = error_rates.lines(rows("a", z_tests(NULL, [0.0], seed=SEED, inflate=0.3)))
    assert any("below 0.03" in text for text in dead[0]["outside"])
    right = error_rates.lines(rows("a", z_tests(NULL, [0.0], seed=SEED)))
    assert right[0]["outside"] == []


def test_what_is_not_outside_is_inside_only_where_the_tables_are_many():
    for replicates, told in ((30, "not outside"), (1500, "inside")):
        drawn = z_tests(NULL, [0.0], seed=SEED, replicates=replicates)
        # of families at most .05 is right, at which z tests are: half of the interval is above it
        of = rows("a", drawn).filter(pl.col("measure") != error_rates.FAMILIES)
        assert error_rates.lines(of)[0]["verdict"] == told


@pytest.mark.parametrize(("told", "found"), [(2.801585, 0.8), (1.9, 0.476), (4.2, 0.987)])
def test_a_detectable_effect_that_is_too_small_or_too_large_is_seen(told, found):
    drawn = z_tests(PLANTED, [0.0, 1.5, 2.5, 3.5, 4.5], seed=SEED, told=told)
    number, share = at_detectable(drawn, "detectable")
    assert number >= 3000
    assert share.low - 0.01 <= found <= share.high + 0.01
    assert share.high - share.low < 0.05
    (line,) = error_rates.lines(rows("a", drawn))
    assert line[error_rates.DETECTABLE][0] == pytest.approx(share.value, abs=1e-6)
    assert any(error_rates.DETECTABLE in text for text in line["outside"]) == (told != 2.801585)


@pytest.mark.parametrize(("told", "found"), [(2.801585, 0.8), (1.9, 0.476), (4.2, 0.987)])
def test_where_what_is_true_is_not_known_it_is_the_mean_of_what_is_said(told, found):
    effects = [0.0, 1.5, -2.5, 3.5, -4.5]
    drawn = z_tests(PLANTED, effects, seed=SEED, told=told, known=False)
    number, share = at_detectable(drawn, "detectable")
    known = at_detectable(z_tests(PLANTED, effects, seed=SEED, told=told), "detectable")
    assert number >= 3000
    assert share.low - 0.01 <= found <= share.high + 0.01
    assert share.value == pytest.approx(known[1].value, abs=0.02)


def test_the_mean_is_of_one_row_where_rows_of_one_size_say_different_things():
    drawn = z_tests(PLANTED, [0.0, 1.6, -4.0], seed=SEED, known=False, alike=True)
    number, share = at_detectable(drawn, "detectable")
    assert number >= 3000
    # at their common mean, which is what is told, less would seem to be found
    assert (ndtr(1.6 - 1.96) + ndtr(4.0 - 1.96)) / 2 < 0.7 < share.low < 0.8 < share.high


@pytest.mark.parametrize(
    ("effects", "told"),
    [
        ([1.6], False),
        ([1.6, 30.0], False),  # what is far off tells nothing of what is near
        ([4.0, 5.0], False),
        ([4.0, 0.3], False),
        ([1.6, 3.6], True),
    ],
)
def test_effects_that_are_all_too_small_are_not_held_against_errors_that_are_so_by_chance(
    effects, told
):
    drawn = z_tests(PLANTED, effects, seed=SEED, known=False, vary=0.2)
    assert (at_detectable(drawn, "detectable") is not None) == told


def test_a_row_of_few_tables_says_nothing():
    few, more = (
        z_tests(PLANTED, [2.5, 3.1], seed=SEED, replicates=n, known=False) for n in (9, 10)
    )
    assert at_detectable(few, "detectable") is None
    assert at_detectable(more, "detectable")[0] == 200


def test_rows_that_tell_nothing_are_kept_for_the_mean():
    row = {"value": 1.0, "low": 0.0, "high": 2.0, "p": 0.1, "p_bh": 0.2}
    told = [row | {"detectable": 2.0, "detectable_bh": None}, row | dict.fromkeys(DETECTABLE)]
    counts = tally(outcome(pl.DataFrame([*told, told[1] | {"value": 9.0}]), effect=-2.0))
    values = enumerate([-1.0, -1.0, -9.0])
    each = [{"row": n, "value": value, "told": None, "found": False} for n, value in values]
    assert counts["detectable_bh_open"].to_list() == [each]
    assert counts["detectable_open"].to_list() == [[each[0] | {"told": 2.0}, *each[1:]]]


@pytest.mark.parametrize("untold", [0.05, 0.3])
def test_what_is_true_is_the_mean_of_tables_that_tell_nothing_too(untold):
    drawn = z_tests(PLANTED, [1.6, 3.6], seed=SEED, known=False, untold=untold)
    found = at_detectable(drawn, "detectable")
    if untold == 0.05:
        assert found[1].value == pytest.approx(ndtr(2.8016 - 1 - 1.96), abs=0.08)
    else:  # of what few tables tell nothing is known
        assert found is None


def test_values_without_a_sign_say_nothing_of_what_is_true():
    row = {"value": 1.0, "low": 0.0, "high": 2.0, "p": 0.1, "p_bh": 0.2}
    table = pl.DataFrame([row | dict.fromkeys(DETECTABLE, 1.0)] * 3)
    signed, unsigned = (tally(outcome(table, effect=2.0, by_mean=own)) for own in (True, False))
    each = {"value": 1.0, "told": 1.0, "found": False}
    assert signed["detectable_open"].to_list() == [[{"row": n} | each for n in range(3)]]
    assert unsigned["detectable_open"].to_list() == [[]]


def test_false_findings_beside_planted_ones_are_judged():
    wrong = z_tests(PLANTED, [0.0, 4.0], seed=SEED, inflate=2.0)
    assert any(
        error_rates.FALSE in text for text in error_rates.lines(rows("a", wrong))[0]["outside"]
    )
    right = z_tests(PLANTED, [0.0, 4.0], seed=SEED)
    assert not any(
        error_rates.FALSE in text for text in error_rates.lines(rows("a", right))[0]["outside"]
    )


def test_swapped_signs_are_seen():
    swapped = measured(z_tests(PLANTED, [0.0, 2.0], seed=SEED, swapped=-1.0))
    assert swapped["wrong sign among found", 2.0]["value"] > 0.95
    assert swapped["coverage of intervals", 2.0]["value"] < 0.1


def test_a_line_tells_the_worst_of_several_truths():
    right, wrong = (z_tests(NULL, [0.0], seed=SEED, inflate=by) for by in (1.0, 1.5))
    both = [right.with_columns(truth=pl.lit("a")), wrong.with_columns(truth=pl.lit("b"))]
    for order in (both, both[::-1]):
        (line,) = error_rates.lines(rows("a", pl.concat(order)))
        assert line["size at .05"][0] > 0.1
        assert any("size at .05" in text for text in line["outside"])


def test_a_line_has_as_many_tables_as_the_truth_with_the_fewest():
    drawn = [
        z_tests(kind, effects, seed=SEED, replicates=n).with_columns(truth=pl.lit(kind + str(n)))
        for kind, effects, n in ((NULL, [0.0], 30), (PLANTED, [0.0, 4.0], 12), (NULL, [0.0], 20))
    ]
    for order in (drawn, drawn[::-1]):
        (line,) = error_rates.lines(rows("a", pl.concat(order)))
        assert line["replicates"] == 12


def test_sentences_tell_size_and_coverage_or_that_nothing_was_simulated():
    assert "not been simulated" in error_rates.sentence([])
    found = error_rates.lines(rows("a", z_tests(NULL, [0.0], seed=SEED, replicates=50)))
    assert "nothing differs, 50 tables each: " in error_rates.sentence(found)
    more = [line | {"replicates": number} for line in found for number in (1000, 200)]
    assert "nothing differs, 200 to 1,000 tables each: " in error_rates.sentence(more)


def test_sentences_are_of_tests_that_tables_have():
    right, wrong = (
        error_rates.lines(rows("a", z_tests(NULL, [0.0], seed=SEED, inflate=by))) for by in (1, 3)
    )
    told = error_rates.sentence(right)
    for name in ("not in the tables: a reading", "shifts: p_groups"):
        others = [line | {"test": name} for line in wrong]
        assert not any(map(error_rates.decides, others))
        assert error_rates.sentence([*right, *others]) == told
    assert error_rates.sentence([*right, *wrong]) != told


@pytest.mark.parametrize(("replicates", "dead"), [(40, False), (70, True)])
def test_a_test_that_finds_nothing_whatever_the_truth_is_seen(replicates, dead):
    drawn = [
        z_tests(kind, effects, seed=SEED, replicates=replicates).with_columns(
            pl.col("p05", "p01", "adjusted05") * 0.0, truth=pl.lit(kind)
        )
        for kind, effects in ((NULL, [0.0]), (PLANTED, [4.0]))
    ]
    (line,) = error_rates.lines(rows("a", pl.concat(drawn)))
    assert any(error_rates.DEAD in text for text in line["outside"]) == dead
    alive = pl.concat([drawn[0], z_tests(PLANTED, [4.0], seed=SEED, replicates=replicates)])
    assert not any(
        error_rates.DEAD in text for text in error_rates.lines(rows("a", alive))[0]["outside"]
    )


def test_beside_another_p_is_what_that_would_find():
    row = {"value": 1.0, "low": 0.0, "high": 2.0, "p": 0.1, "p_bh": 0.2, "p_x": 0.3, "p_x_bh": 0.4}
    row |= {"detectable": 1.0, "detectable_bh": 2.0, "detectable_x": 3.0, "detectable_bh_x": 4.0}
    table, told = pl.DataFrame(row), ("p", "detectable", "detectable_bh")
    assert outcome(table, effect=1.0).select(told).row(0) == (0.1, 1.0, 2.0)
    other = outcome(table, effect=1.0, p="p_x", p_adjusted="p_x_bh")
    assert other.select(told).row(0) == (0.3, 3.0, 4.0)
    # adjusted otherwise, or without a column of its own, nothing of another test is told
    other = outcome(table, effect=1.0, p="p_x", p_adjusted="p_bh")
    assert other.select(told).row(0) == (0.3, 3.0, None)
    other = outcome(table.drop("detectable_x"), effect=1.0, p="p_x", p_adjusted="p_x_bh")
    assert other.select(told).row(0) == (0.3, None, None)


def test_the_smallest_effects_stand_beside_the_tests(tmp_path):
    assert power.table(folder=tmp_path) == ""
    strong = z_tests(PLANTED, [0.0, 1.0, 4.0], seed=SEED, replicates=100)
    for name, tallies in (
        ("pmi", pl.concat([z_tests(NULL, [0.0], seed=SEED, replicates=20), strong])),
        ("values", z_tests(PLANTED, [0.0, 0.2], seed=SEED, replicates=20)),
    ):
        (tmp_path / name).mkdir()
        rows(name, tallies).write_parquet(tmp_path / name / "calibration.parquet")
    lines = power.table(folder=tmp_path).splitlines()
    told = {line.split(" | ")[0]: line.strip("| ").split(" | ")[3:] for line in lines[4:]}
    found, adjusted = map(float, told["| pmi"])
    assert abs(found - 2.8) < 0.3  # of a z test: 1.96 + .84
    assert adjusted > found
    assert told["| values"] == ["above all tried", "above all tried"]
    (tmp_path / "clusters").mkdir()
    large = z_tests(PLANTED, [0.0, 4.0, 5.0], seed=SEED, replicates=20)
    rows("clusters", large).write_parquet(tmp_path / "clusters" / "calibration.parquet")
    (line,) = [line for line in power.table(folder=tmp_path).splitlines() if "| clusters" in line]
    assert line.endswith("| at most 4.00 | at most 4.00 |")  # smaller ones were not tried
    of_values = power.table(["agreement"], tmp_path)  # a probe of that study alone
    assert "| values |" in of_values
    assert "| pmi |" not in of_values
