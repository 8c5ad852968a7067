"""Parts of variance, balanced and not, against statsmodels and planted truth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from plumbline.probes.stats.variance_parts import parts_of, reml

SEED = 11
# the world of the controls: what a score varies with, and how much
PLANTED = {
    ("statement",): 1.0,
    ("template",): 0.3,
    ("seed",): 0.0,
    ("statement", "template"): 0.5,
    ("statement", "seed"): 0.0,
    ("template", "seed"): 0.0,
    (): 0.2,
}


def world(rng, shape, planted=PLANTED, missing=0.0):
    """Return scores and codes of statements, templates and seeds; some are missing."""
    every = dict(zip(("statement", "template", "seed"), np.indices(shape), strict=True))
    codes = {name: own.ravel() for name, own in every.items()}
    sizes = dict(zip(codes, shape, strict=True))
    scores = np.zeros(np.prod(shape))
    for term, part in planted.items():
        levels = [sizes[name] for name in term] or [len(scores)]
        place = tuple(codes[name] for name in term) or np.arange(len(scores))
        scores += rng.normal(0, part**0.5, levels)[place]
    kept = rng.random(len(scores)) >= missing
    return scores[kept], {name: own[kept] for name, own in codes.items()}


def test_complete_data_have_the_parts_of_mean_squares():
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    scores, codes = world(np.random.default_rng(SEED), (8, 4, 3))
    table = pd.DataFrame({"y": scores, **codes})
    fit = ols("y ~ (C(statement) + C(template) + C(seed)) ** 2", table).fit()
    s, t, r, st, sr, tr, e = anova_lm(fit).mean_sq
    known = {
        (): e,
        ("statement", "template"): (st - e) / 3,
        ("statement", "seed"): (sr - e) / 4,
        ("template", "seed"): (tr - e) / 8,
        ("statement",): (s - st - sr + e) / 12,
        ("template",): (t - st - tr + e) / 24,
        ("seed",): (r - sr - tr + e) / 32,
    }
    found = parts_of(scores, codes)
    for term, value in zip(found.terms, found.value, strict=True):
        assert value == pytest.approx(known[term]), term
    assert found.levels.tolist() == [8, 4, 3, 32, 24, 12, 96]


def test_reml_of_unbalanced_data_is_that_of_statsmodels():
    import pandas as pd
    from statsmodels.regression.mixed_linear_model import MixedLM

    planted = PLANTED | {("template",): 0.6, (): 0.5}
    scores, codes = world(np.random.default_rng(SEED), (12, 6, 3), planted, missing=0.25)
    codes.pop("seed")
    table = pd.DataFrame({"y": scores, "all": 1, **codes})
    formulas = {
        "a": "0 + C(statement)",
        "b": "0 + C(template)",
        "c": "0 + C(statement):C(template)",
    }
    model = MixedLM.from_formula(
        "y ~ 1", groups="all", re_formula="0", vc_formula=formulas, data=table
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = model.fit(reml=True)
    parts = dict(zip(known.model.exog_vc.names, known.vcomp, strict=True))
    expected = [parts["a"], parts["b"], parts["c"], known.scale]
    assert len(reml(scores, codes, order=3)) == 3  # two facets: their interaction is the rest
    joint = codes | {"cell": codes["statement"] * 6 + codes["template"]}
    found = reml(scores, joint, order=1)
    assert found == pytest.approx(expected, rel=2e-3)
    near = parts_of(scores, joint, order=1).value
    assert near == pytest.approx(expected, abs=0.4)


def test_reml_of_complete_data_is_anova_where_all_parts_are_positive():
    planted = PLANTED | {("seed",): 0.8, ("statement", "seed"): 0.6, ("template", "seed"): 0.6}
    scores, codes = world(np.random.default_rng(SEED), (10, 6, 5), planted)
    found = parts_of(scores, codes).value
    assert (found > 0).all()
    assert reml(scores, codes) == pytest.approx(found, rel=1e-4)


def test_reml_is_0_where_mean_squares_are_below_0():
    scores, codes = world(np.random.default_rng(SEED), (8, 4, 3), PLANTED | {("template",): 0})
    below = parts_of(scores, codes).value < 0
    assert below.any()
    assert (reml(scores, codes)[below] == 0).all()
    assert (reml(scores, codes)[~below] >= 0).all()


def test_too_few_scores_are_an_error():
    with pytest.raises(ValueError, match="too few"):
        parts_of(np.arange(3.0), {"a": np.array([0, 1, 2]), "b": np.array([0, 0, 1])})
