"""Numbers on the page of the study are those of simulations and of the tables of calibration."""

import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

TOP = Path(__file__).parents[2]
PAGE = " ".join((TOP / "docs/studies/leaning.md").read_text(encoding="utf-8").split())
TABLES = 40_000
SEED = 20261126
NUMBER = re.compile(r"(?<![\d.])(?:\.\d+|1)(?![\d.])")


@pytest.fixture
def rng():
    print("seed", SEED)
    return np.random.default_rng(SEED)


def found(rng, seeds, *sds, sides=2, shift=0.0, welch=False, texts=0.0):
    """Return how often a shift has p at most .05; ``sds`` of the corpora that are pooled."""
    drawn = rng.normal(0, np.array(sds)[:, None], (TABLES, len(sds), seeds))
    drawn += texts * rng.normal(size=(TABLES, len(sds), 1))  # in all trainings of a corpus
    variance = drawn.var(axis=2, ddof=1) / seeds
    value = shift + (drawn.mean(axis=2)[:, :sides] * [1, -1, -1, 1][:sides]).sum(axis=1)
    whole, df = variance.mean(axis=1) * sides, len(sds) * (seeds - 1)
    if welch:
        df = whole**2 / (variance**2 / (seeds - 1)).sum(axis=1)
    return float((2 * stats.t.sf(np.abs(value) / whole**0.5, df) <= 0.05).mean())


@pytest.mark.parametrize(("sides", "of"), [(2, "pairs of corpora"), (4, "two corpora grows")])
def test_sizes_and_powers_over_trainings_are_those_of_a_simulation(rng, sides, of):
    table = PAGE.partition(of)[2].partition("|---|---|---|---|---| ")[2]
    rows = [row.split("|")[1:6] for row in re.findall(r"\| (?:3|5|10) (?:\|[^|]*){4}\|", table)[:3]]
    assert [row[0].strip() for row in rows] == ["3", "5", "10"]
    alike = (1.0,) * sides
    for first, *cells in rows:
        seeds, told = int(first), [[float(n) for n in NUMBER.findall(cell)] for cell in cells]
        sizes = [found(rng, seeds, sd, *alike[1:], sides=sides) for sd in (1, 2, 3)]
        assert [*told[0], *told[1]] == pytest.approx(sizes, abs=0.006)
        for shift, (power, *by_welch) in zip((1.5, 3), told[2:], strict=True):
            assert power == pytest.approx(
                found(rng, seeds, *alike, sides=sides, shift=shift), abs=0.01
            )
            for own in by_welch:
                wanted = found(rng, seeds, *alike, shift=shift, welch=True)
                assert own == pytest.approx(wanted, abs=0.01)


def test_what_other_variances_and_the_same_texts_would_do_is_that_of_a_simulation(rng):
    text = PAGE.partition("Pooled over three corpora")[2].partition("**Control**")[0]
    *powers, three, six = map(float, NUMBER.findall(text.partition("so that is not done")[0])[:5])
    same = [float(number) for number in NUMBER.findall(text)[-3:]]
    for seeds, power, wrong in zip((3, 5, 10), powers, same, strict=True):
        assert power == pytest.approx(found(rng, seeds, 1, 1, 1, shift=1.5), abs=0.01)
        assert wrong == pytest.approx(found(rng, seeds, 1, 1, texts=1), abs=0.01)
        assert three == pytest.approx(found(rng, seeds, 2, 1, 1), abs=0.01)
        assert six == pytest.approx(found(rng, seeds, 2, 1, 1, 1, 1, 1), abs=0.01)


def short(number, digits):
    return f"{number:.{digits}f}".lstrip("0")


def test_rates_of_the_whole_analysis_are_those_of_its_calibration():
    rates = pl.read_parquet(TOP / "data/tables/calibration/compass/calibration.parquet")
    null = rates.filter(kind="null")
    at = {"shape": "masked, 5 trainings, before and from"}
    apart = at | {"test": "shifts apart, between periods: corrected"}
    sizes = null.filter(**apart, measure="size at .05")["value"]
    powers = [
        rates.filter(**apart, measure="found at .05", effect=effect)["value"].item()
        for effect in (1.5, 3.0)
    ]
    (same,) = rates.filter(**apart, truth="texts", measure="wrong findings at .05")["value"]
    told = f"size of `corrected` is {short(sizes.min(), 3)} to {short(sizes.max(), 3)}, and 1.5 and"
    told += f" 3 SD are found in {' and '.join(short(power, 2) for power in powers)}. Where all"
    told += f" trainings of a corpus and period read the same texts, it is {short(same, 2)}."
    assert told in PAGE
    held = null.filter(measure="coverage of intervals")
    of = held.group_by(pl.col("test").str.extract("^(coordinates|shifts), interval"))
    means = dict(of.agg(pl.col("value").mean()).iter_rows())
    told = f"intervals of coordinates hold the truth in {short(means['coordinates'], 2)}, those of"
    assert f"{told} shifts in {short(means['shifts'], 2)}" in PAGE
