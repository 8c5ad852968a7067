"""The simulations of lists of words: what is planted is found, what is told is all there is."""

import importlib

import numpy as np
import polars as pl
import pytest

from calibration.calibrate import simulating
from calibration.politicians import lists, pooled_pmi, subgroups
from calibration.truth import DECOY, NULL, PLANTED

pytestmark = pytest.mark.slow

SEED = 17
ANALYSES = ("pmi", "pooled_pmi", "subgroups", "supersenses", "robustness")
LARGEST = {  # a test in which what is planted is seen in one replicate, and how large it is
    "pmi": ("pmi: smoothed", 1.6),
    "pooled_pmi": ("pooled_pmi: smoothed", 1.4),
    "subgroups": ("differences in a subgroup", 1.2),
    "supersenses": ("supersenses: form, fractional", 1.6),
    "robustness": ("pmi: default", 0.4),
}


@pytest.fixture(autouse=True, scope="module")
def few():
    """Let what intervals should cover be rough: it is not looked at here."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(subgroups, "SAMPLES", 3)
        patched.setattr(pooled_pmi, "TASTES", 5)
        yield


def simulated(analysis):
    return importlib.import_module(f"calibration.politicians.{analysis}")


def of_kind(module, kind):
    return next(truth for truth in module.TRUTHS.values() if truth.kind == kind)


def replicate(analysis, kind, folder):
    """Draw one replicate in the first shape, and analyse it as a whole."""
    module = simulated(analysis)
    shape = next(iter(module.SHAPES.values()))
    truth = of_kind(module, kind)
    if "sizes" in truth.settings:
        truth = truth._replace(settings={**truth.settings, "sizes": (1.0,)})
    drawn = module.draw(folder, truth, shape, np.random.default_rng(SEED))
    run, params = simulating(analysis)
    given = params.model_dump() | module.PARAMS | dict(drawn.params)
    tables = run(drawn.inputs, type(params).model_validate(given))
    return tables, module.outcomes(tables, drawn)


def number(table, column="p"):
    return table[column].is_not_null().sum()


@pytest.fixture(scope="module")
def null(few, tmp_path_factory):
    return {name: replicate(name, NULL, tmp_path_factory.mktemp(name)) for name in ANALYSES}


@pytest.mark.parametrize("analysis", ANALYSES)
def test_nothing_is_planted_in_the_null(null, analysis):
    for test, rows in null[analysis][1].items():
        assert len(rows), test
        assert rows["effect"].fill_null(0).eq(0).all(), test
        assert rows["effect"].is_not_null().any(), test


def test_every_p_is_told(null):
    for name, table in (("pmi", "pmi"), ("pooled_pmi", "pooled")):
        tables, found = null[name]
        units = [part.drop("unit") for _, part in tables[table].group_by("unit")]
        assert units[0].equals(units[1])  # each word is its own lemma
        assert sum(map(number, found.values())) == number(units[0]) > 0
    tables, found = null["subgroups"]
    parts = [found[f"differences {name}"] for name in ("in a subgroup", "between subgroups")]
    assert sum(map(number, parts)) == number(tables["differences"]) == number(found["differences"])
    assert number(found["shares"]) == number(tables["shares"]) > 0
    assert number(found["agreement"]) == number(tables["agreement"]) > 0
    tables, found = null["supersenses"]
    over_words = {name for name in found if "Bonferroni" in name}
    for names in (over_words, set(found) - over_words):
        assert sum(number(found[name]) for name in names) == number(tables["supersenses"]) > 0
    told = sum(number(found[name], "p_adjusted") for name in over_words)
    assert told == number(tables["supersenses"], "p_bonferroni")
    tables, found = null["robustness"]
    assert sum(map(number, found.values())) == number(tables["robustness"]) > 0


@pytest.mark.parametrize("analysis", ANALYSES)
def test_every_family_is_one_of_the_tables(null, analysis):
    tables, found = null[analysis]
    if analysis == "supersenses":
        tested = tables[analysis].filter(pl.col("p").is_not_null())
        sizes = tested.group_by("deviation", "unit", "counting").agg(pl.col("family").first())
        told = [rows for name, rows in found.items() if "Bonferroni" not in name]
        assert sorted(sizes["family"]) == sorted(map(len, told))
    elif analysis == "subgroups":
        assert len(found["differences"]) == tables["differences"]["family"][0]
        assert len(found["agreement"]) == tables["agreement"]["family"][0]
    elif analysis == "robustness":
        sizes = found["pmi: half"].group_by("family").len()
        assert sizes["len"].to_list() == [6, 6]  # two halves, parts of speech by sentiments
    else:
        family = next(iter(tables.values()))["family"].max()
        assert {number(rows) for rows in found.values()} == {0, family}


@pytest.mark.parametrize("analysis", ANALYSES)
def test_what_is_planted_has_its_sign(analysis, tmp_path):
    name, effect = LARGEST[analysis]
    rows = replicate(analysis, PLANTED, tmp_path)[1][name].filter(pl.col("effect").abs() == effect)
    assert len(rows)
    assert (rows["value"] * rows["effect"] < 0).mean() <= 0.2


def test_the_truth_of_a_list_is_what_draws_have_on_average():
    shape = lists.ListsShape(words=30, length=6, men=2, women=2)
    truth = of_kind(simulated("pmi"), PLANTED)
    of = lists.population(shape, truth, 0)
    rng = np.random.default_rng(SEED)
    chances = lists.expected(of, shape)
    for column, woman in enumerate((False, True)):
        drawn = lists.lists(of, np.full(40_000, woman), shape.length, rng)
        seen = np.bincount(drawn.ravel(), minlength=shape.words) / 40_000
        assert np.abs(seen - chances[:, column]).max() < 0.01
    assert chances.sum(axis=0) == pytest.approx([6, 6, 6], abs=0.05)


@pytest.mark.parametrize("analysis", ANALYSES)
def test_there_is_a_truth_of_each_kind(analysis):
    kinds = [truth.kind for truth in simulated(analysis).TRUTHS.values()]
    assert set(kinds) == {NULL, PLANTED, DECOY}
