"""Simulations of sentiments, the latent model, anova, clusters and lexica: no test is left out."""

from __future__ import annotations

import importlib
import re

import numpy as np
import polars as pl
import pytest

from calibration.calibrate import simulated
from calibration.truth import NULL, PLANTED
from plumbline.builders.core.params import section
from plumbline.probes import module_of

pytestmark = pytest.mark.slow

SEED = 23
SMALL = {  # shapes of few words and names
    "sentiment": {"men": 60, "women": 40, "words": 60},
    "latent": {"men": 50, "women": 50, "words": 24, "length": 8, "shared": 0},
    "clusters": {"men": 16, "women": 14, "width": 8},
    "anova": {
        "alone": {"BERT": 2, "ALBERT": 1},
        "of_many": {"XLM": 2, "XLM-R": 2},
        "languages": ["en", "es"],
    },
    "lexicon_evaluation": {"tuning": 200, "testing": 300, "fours": 30},
}
FEW = {
    "sentiment": {"n_bootstrap": 40, "n_permutations": 39},
    "latent": {"n_bootstrap": 20, "n_permutations": 39, "steps": 20},
    "clusters": {"n_simulations": 39},
    "lexicon_evaluation": {"n_bootstrap": 40, "n_permutations": 39},
}
TESTED = {  # tables whose p are told
    "sentiment": ["differences"],
    "latent": ["latent"],
    "clusters": ["fits", "shares"],
    "anova": ["coefficients", "tests"],
    "lexicon_evaluation": ["agreement", "differences"],
}
INTERVALS = {  # tables whose intervals are told
    "sentiment": ["differences", "shares"],
    "latent": ["latent", "words", "shares", "tilt"],
    "clusters": ["shares"],
    "anova": ["coefficients"],
    "lexicon_evaluation": ["agreement", "differences"],
}
NAMES = tuple(SMALL)


def replicate(analysis, folder, kind):
    """Return tables and outcomes of one replicate of the first truth of a kind."""
    print(f"{analysis}, {kind}: seed {SEED}")
    module = simulated(analysis)
    truth = next(t for t in module.TRUTHS.values() if t.kind == kind)
    shape = module.Shape.model_validate(SMALL[analysis])
    drawn = module.draw(folder, truth, shape, np.random.default_rng(SEED))
    of = importlib.import_module(module_of(analysis))
    given = section(f"analysis.{analysis}", of.Params).model_dump()
    given |= module.PARAMS | FEW.get(analysis, {}) | drawn.params
    tables = of.run(drawn.inputs, of.Params.model_validate(given))
    return tables, module.outcomes(tables, drawn)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    done = {}

    def get(analysis, kind):
        if (analysis, kind) not in done:
            folder = tmp_path_factory.mktemp(analysis)
            done[analysis, kind] = replicate(analysis, folder, kind)
        return done[analysis, kind]

    return get


@pytest.mark.parametrize("analysis", NAMES)
def test_every_p_and_interval_of_the_tables_has_its_row(run, analysis):
    tables, found = run(analysis, NULL)
    for name, whole in tables.items():
        table = whole
        if "factor" in whole.columns:
            table = whole.filter(pl.col("factor") > 0)  # nobody asks whether an intercept is 0
        if "lexicon" in whole.columns:
            table = whole.filter(pl.col("lexicon") != "majority class")  # exact
        # tests that are looked at by the number of clusters too are counted once
        each = {key: rows for key, rows in found.items() if not key.endswith(" clusters")}
        told = [rows for key, rows in each.items() if re.split("[:,]", key)[0] == name]
        p = table["p"].count() if "p" in table.columns else 0
        assert sum(rows["p"].count() for rows in told) == p, name
        assert (p > 0) == (name in TESTED[analysis]), name
        if name in INTERVALS[analysis]:
            assert sum(rows["low"].count() for rows in told) == table["low"].count() > 0, name


@pytest.mark.parametrize("analysis", NAMES)
def test_nothing_is_planted_in_the_null(run, analysis):
    _, found = run(analysis, NULL)
    for name, rows in found.items():
        assert set(rows["effect"].drop_nulls()) <= {0.0}, name


@pytest.mark.parametrize("analysis", NAMES)
def test_what_is_planted_is_found_with_its_sign_and_has_three_sizes(run, analysis):
    _, found = run(analysis, PLANTED)
    known = pl.concat(rows.filter(pl.col("effect") != 0).drop_nulls("p") for rows in found.values())
    known = known.filter(pl.col("value") != 0)  # F has none
    assert known["effect"].abs().n_unique() == 3
    most = known.filter(pl.col("effect").abs() == known["effect"].abs().max())
    found_there = most.filter(pl.col("p") <= 0.1)
    assert len(found_there)
    assert (found_there["value"] * found_there["effect"] > 0).mean() > 0.8
