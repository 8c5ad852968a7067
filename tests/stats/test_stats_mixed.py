import warnings

import numpy as np
import pytest
from scipy.stats import t
from statsmodels.regression.linear_model import OLS
from statsmodels.regression.mixed_linear_model import MixedLM

from plumbline.probes.stats.linear import centred, mixed

SEED = 20261121


def sample(groups=40, each=6, sd=1.5, seed=SEED):
    print("seed", seed)
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), each)
    between = rng.normal(size=groups)[group]
    design = np.column_stack([np.ones(len(group)), between, rng.normal(size=len(group))])
    response = design @ [2.0, 0.5, -1.0] + rng.normal(0, sd, groups)[group]
    return response + rng.normal(size=len(group)), design, group


def test_it_agrees_with_statsmodels():
    response, design, group = sample()
    found = mixed(response, design, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = MixedLM(response, design, group).fit(reml=True)
    np.testing.assert_allclose(found.coefficients.value, other.fe_params, atol=1e-4)
    half = (found.coefficients.high - found.coefficients.low) / 2
    se = half / t.ppf(0.975, found.coefficients.freedom)
    np.testing.assert_allclose(se, other.bse_fe, rtol=1e-3)
    assert found.between == pytest.approx(float(other.cov_re[0, 0]), rel=1e-2)
    assert found.residual == pytest.approx(other.scale, rel=1e-2)


def test_without_differences_between_groups_it_is_least_squares():
    response, design, group = sample(sd=0.0, seed=SEED + 3)
    flat = response - centred_means(response - design @ [2.0, 0.5, -1.0], group)
    found = mixed(flat, design, group)
    np.testing.assert_allclose(found.coefficients.value, OLS(flat, design).fit().params, atol=1e-3)
    assert found.between < 1e-4


def centred_means(values, group):
    return values - centred(values, group)


def test_centring_takes_away_what_a_text_has_in_common():
    rng = np.random.default_rng(SEED)
    group = np.repeat(np.arange(5), 4)
    values = rng.normal(size=(20, 2))
    shifted = values + rng.normal(0, 100, (5, 2))[group]
    np.testing.assert_allclose(centred(values, group), centred(shifted, group), atol=1e-9)
    assert np.abs(np.bincount(group, weights=centred(values, group)[:, 0])).max() < 1e-9


@pytest.mark.slow
def test_intervals_hold_effects_between_groups_at_their_nominal_rate():
    held = []
    for i in range(200):
        found = mixed(*sample(groups=20, seed=SEED + i)).coefficients
        held.append(found.low[1] <= 0.5 <= found.high[1])
    assert 0.90 <= np.mean(held) <= 0.985
