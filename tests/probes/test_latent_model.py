import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import torch

from plumbline.probes.politicians import latent_model
from plumbline.probes.politicians.latent import L1, POSTERIOR
from plumbline.probes.politicians.latent_model import (
    Schedule,
    average,
    begin,
    fit,
    grid,
    refit,
    tilt,
)
from plumbline.probes.stats.pmi import pmi

SEED = 271
SETTLE = Schedule(1000, 0.1)
LONG = Schedule(2000, 0.05)
SHORT = Schedule(30, 0.1)


def tables(words, genders=2, low=1):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    counts = rng.integers(low, 40, (words, genders)).astype(float)
    q = rng.dirichlet([1.0, 1.0, 1.0], words)
    q[:: max(2, words // 3)] = np.nan  # in no lexicon
    return counts, q


def one(counts, q, l1=0.0, posterior=0.0, schedule=SETTLE, tilted=None):
    return fit(counts[None], q, np.array([l1]), np.array([posterior]), schedule, tilted)


def objective(eta, sigma, phi, m, counts, q, l1, posterior):
    """Equations 10 to 13, written down as they stand."""
    shares = torch.from_numpy(counts / counts.sum())
    p = (
        torch.softmax(m + eta, dim=2)
        * torch.softmax(sigma, dim=0)[..., None]
        * torch.softmax(phi, dim=0)[None, :, None]
    )
    total = -(shares * torch.log(p.sum(dim=0)).T).sum()
    given = p.sum(dim=1) / p.sum(dim=(0, 1))
    for w in np.flatnonzero(~np.isnan(q).any(axis=1)):
        target = torch.from_numpy(q[w])
        total = total + posterior * (target * torch.log(target / given[:, w])).sum()
    return total + l1 * (eta.abs().sum() + sigma.abs().sum() + phi.abs().sum())


@pytest.mark.parametrize(("genders", "posterior"), [(2, 0.0), (2, 3.0), (3, 0.7)])
def test_the_gradient_is_that_of_the_equations(genders, posterior):
    counts, q = tables(7, genders)
    rng = np.random.default_rng(SEED)
    start = begin(counts[None], q)
    start = start._replace(
        eta=rng.normal(0, 1, start.eta.shape),
        sigma=rng.normal(0, 1, start.sigma.shape),
        phi=rng.normal(0, 1, start.phi.shape),
    )
    program = latent_model.Program(counts[None], q, np.array([0.0]), np.array([posterior]), start)
    program.backward()
    parts = [torch.tensor(part[0], requires_grad=True) for part in start[:4]]
    objective(*parts, counts, q, 0.0, posterior).backward()
    for ours, part in zip(program.derivatives, parts[:3], strict=True):
        assert ours.reshape(part.shape).numpy() == pytest.approx(part.grad.numpy(), abs=1e-13)


def test_what_is_reported_is_the_objective_of_the_equations():
    counts, q = tables(9)
    found = one(counts, q, 1e-3, 0.4, SHORT)
    parts = [torch.from_numpy(part[0]) for part in found[:4]]
    whole = float(objective(*parts, counts, q, 1e-3, 0.4))
    size = sum(np.abs(part).sum() for part in found[:3])
    ours = found.cross_entropy[0] + 0.4 * found.divergence[0] + 1e-3 * size
    assert ours == pytest.approx(whole, abs=1e-12)
    assert found.objective[0] == pytest.approx(whole, abs=1e-12)


def slope(counts, found):
    """Of fitted on observed log-ratios of words."""
    words = average(found, 1).words[0]
    return np.polyfit(np.log(counts[:, 1] / counts[:, 0]), words[1] - words[0], 1)[0]


@pytest.mark.parametrize("words", [120, 1000])
def test_without_l1_counts_and_lexicon_are_met_whatever_the_posterior_weighs(words):
    counts, q = tables(words)
    known = ~np.isnan(q).any(axis=1)
    shares = counts / counts.sum()
    for posterior in (0.0, 1e-5, 1.0, 10.0, 100.0):
        for tilted in (None, tilt(1, 1.0, (3, 2, words))):
            found = one(counts, q, 0.0, posterior, SHORT, tilted)
            assert slope(counts, found) == pytest.approx(1, abs=1e-6)
            entropy = -(shares * np.log(shares)).sum()
            assert found.cross_entropy[0] == pytest.approx(entropy, abs=1e-9)
            assert found.divergence[0] == pytest.approx(0, abs=1e-7)
            joint = np.exp(found.background[0] + found.eta[0])
            joint /= joint.sum(axis=2, keepdims=True)
            sentiments = np.exp(found.sigma[0]) / np.exp(found.sigma[0]).sum(axis=0)
            joint *= (sentiments * np.exp(found.phi[0]) / np.exp(found.phi[0]).sum())[..., None]
            inside = joint.sum(axis=1) / joint.sum(axis=(0, 1))
            assert inside.T[known] == pytest.approx(q[known], abs=1e-5)
            assert pytest.approx(shares, abs=1e-9) == joint.sum(axis=0).T


@pytest.mark.parametrize("genders", [2, 3])
def test_the_start_is_the_pmi_of_words_and_of_sentiments_up_to_a_constant(genders):
    counts, q = tables(25, genders)
    known = ~np.isnan(q).any(axis=1)
    eta = begin(counts[None], q).eta[0]
    for s in range(3):
        apart = (eta[s].T - pmi(counts) - np.log(q[:, s])[:, None])[known]
        assert apart == pytest.approx(np.tile(apart[0], (len(apart), 1)), abs=1e-9)
    assert np.median(eta, axis=2) == pytest.approx(np.zeros((3, genders)), abs=1e-12)


def test_words_are_those_counted_while_their_deviations_hang_on_the_start():
    counts, q = tables(25)
    first, second = (one(counts, q, tilted=tilt(n, 1.0, (3, 2, 25))) for n in (1, 2))
    assert pytest.approx(pmi(counts), abs=1e-9) == average(first, 1).words[0].T
    assert np.abs(first.eta - second.eta).mean() > 0.1


def test_independent_starts_agree_where_l1_decides():
    """A word's 6 deviations have 4 conditions: without L1 the rest is the start's."""
    counts, q = tables(60)
    starts = [tilt(n, 1.0, (3, 2, 60)) for n in (1, 2)]
    apart = {}
    for l1 in (0.0, 1e-3):
        first, second = (one(counts, q, l1, 1.0, LONG, tilted) for tilted in starts)
        contrasts = [fits.eta[0, :, 1] - fits.eta[0, :, 0] for fits in (first, second)]
        apart[l1] = np.corrcoef(*(one.ravel() for one in contrasts))[0, 1]
        assert first.objective[0] == pytest.approx(second.objective[0], abs=2e-3)
    assert apart[0.0] < 0.6
    assert apart[1e-3] > 0.9


def test_fits_are_near_what_a_long_run_finds_and_never_worse_than_their_start():
    counts, q = tables(60)
    weights = grid((1e-4, 1e-2), (1e-2, 1.0, 100.0))
    start, few, many = (
        fit(counts[None], q, *weights, Schedule(*how)).objective
        for how in ((1, 0.0), (250, 0.2), (2000, 0.2))
    )
    assert (few <= start).all()
    left = few - many
    assert left[weights[1] <= 1] == pytest.approx(np.zeros(4), abs=0.02)
    assert left[-1] < (start - many)[-1] / 4  # the hardest pair of all


def test_swapping_the_labels_swaps_the_columns_bit_by_bit():
    counts, q = tables(41)
    l1, posterior = grid(L1, POSTERIOR)
    both = [fit(table[None], q, l1, posterior, SHORT) for table in (counts, counts[:, ::-1])]
    assert (both[0].eta == both[1].eta[:, :, ::-1]).all()
    assert (both[0].sigma == both[1].sigma[:, :, ::-1]).all()
    assert (both[0].phi == both[1].phi[:, ::-1]).all()
    assert (both[0].divergence == both[1].divergence).all()


def test_labels_that_tell_nothing_get_equal_columns():
    counts, q = tables(20)
    found = one(np.repeat(counts[:, :1], 2, axis=1), q, 1e-4, 0.1)
    assert (found.eta[0, :, 0] == found.eta[0, :, 1]).all()


def test_growing_l1_gives_zeros_and_at_last_nothing_else():
    counts, q = tables(40)
    weights = np.array([0.0, 1e-4, 1e-3, 3e-3, 0.1])
    found = fit(counts[None], q, weights, np.zeros(5), SETTLE)
    zeros = (found.eta == 0).mean(axis=(1, 2, 3))
    assert zeros[0] == 0
    assert 0 < zeros[1] < zeros[2] < zeros[3]
    assert zeros[4] == 1
    assert (found.cross_entropy[1:] >= found.cross_entropy[:-1]).all()


def test_where_l1_leaves_nothing_the_words_have_their_frequency():
    counts, q = tables(30)
    found = one(counts, np.full_like(q, np.nan), 0.1)
    shares = counts / counts.sum()
    independent = np.log(shares.sum(axis=1, keepdims=True) / 2) + np.zeros((1, 2))
    assert found.cross_entropy[0] == pytest.approx(-(shares * independent).sum(), abs=1e-9)


def test_a_proximal_fit_fulfils_the_conditions_of_a_minimum():
    counts, q = tables(15)
    found = one(counts, q, 1e-3, 0.05, Schedule(4000, 0.1))
    parts = [torch.tensor(part[0], requires_grad=True) for part in found[:3]]
    m = torch.from_numpy(found.background[0])
    objective(*parts, m, counts, q, 0.0, 0.05).backward()
    assert (found.eta == 0).any()
    for part in parts:
        value, slope = part.detach().numpy(), part.grad.numpy()
        assert (np.abs(slope[value == 0]) <= 1e-3 + 1e-5).all()
        away = value != 0
        assert slope[away] == pytest.approx(-1e-3 * np.sign(value[away]), abs=1e-5)


def test_a_large_posterior_weight_brings_the_divergence_to_nothing():
    counts, q = tables(30)
    weights = np.array([0.0, 1e-3, 0.1, 10.0, 100.0])
    found = fit(counts[None], q, np.full(5, 1e-3), weights, SETTLE)
    assert (np.diff(found.divergence) < 0).all()
    assert found.divergence[0] > 5
    assert found.divergence[-1] < 1e-4


def test_words_without_a_q_have_no_posterior_term():
    counts, q = tables(12)
    q[:] = np.nan
    without, heavy = one(counts, q), one(counts, q, posterior=100.0)
    assert (without.eta == heavy.eta).all()
    assert heavy.divergence[0] == 0


def test_batched_is_one_by_one_bit_by_bit(monkeypatch):
    counts, q = tables(23)
    l1, posterior = grid(L1, POSTERIOR)
    batched = fit(counts[None], q, l1, posterior, SHORT)
    for i in range(40):
        alone = fit(counts[None], q, l1[i : i + 1], posterior[i : i + 1], SHORT)
        assert (alone.eta[0] == batched.eta[i]).all(), i
        assert alone.objective[0] == batched.objective[i]
    monkeypatch.setattr(latent_model, "BLOCK", 500)
    blocks = fit(counts[None], q, l1, posterior, SHORT)
    assert (blocks.eta == batched.eta).all()


def test_threads_change_no_bit():
    counts, q = tables(7000)
    weights = np.array([1e-4, 0.0]), np.array([0.1, 10.0])
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(fit(counts[None], q, *weights, Schedule(5, 0.1)))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    for one_, other in zip(*found, strict=True):
        assert (one_ == other).all()


def test_refits_are_fits_of_each_table():
    counts, q = tables(11)
    more = np.stack([counts, counts[::-1], counts + 3])
    weights = grid((0.0, 1e-3), (0.01, 1.0))
    found = refit(more, q, *weights, SHORT)
    for i, table in enumerate(more):
        alone = average(fit(table[None], q, *weights, SHORT), 4)
        for ours, theirs in zip(found, alone, strict=True):
            assert (ours[i] == theirs[0]).all()
    assert found.sentiments.sum(axis=1) == pytest.approx(np.ones((3, 2)))


def test_the_grid_is_that_of_the_paper():
    l1, posterior = grid(L1, POSTERIOR)
    want = product((0, 1e-5, 1e-4, 1e-3, 1e-2), (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100))
    assert set(zip(l1.tolist(), posterior.tolist(), strict=True)) == set(want)
    assert len(l1) == 40


def test_a_planted_model_is_recovered_from_large_samples():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    words = 60
    m = rng.normal(0, 0.5, words)
    q = np.eye(3)[np.arange(words) % 3] * 0.94 + 0.02
    eta = rng.normal(0, 0.7, (2, words))
    tilt = np.array([[0.2, 0.5], [0.5, 0.2], [0.3, 0.3]])  # p(s | g)
    given = np.exp(m + eta)[None] * q.T[:, None]
    given /= given.sum(axis=2, keepdims=True)
    p = (given * tilt[..., None]).sum(axis=0) * np.array([[0.6], [0.4]])
    counts = rng.multinomial(5_000_000, p.ravel()).reshape(2, words).T.astype(float)
    mixed = given * tilt[..., None] * np.array([0.6, 0.4])[:, None]
    known = (mixed.sum(axis=1) / mixed.sum(axis=(0, 1))).T  # p(s | w) of the planted model
    found = fit(counts[None], known, np.array([1e-5]), np.array([1.0]), SETTLE)
    averaged = average(found, 1)
    planted = np.log(p / p.sum(axis=1, keepdims=True)) - np.log(p.sum(axis=0))
    assert averaged.words[0] == pytest.approx(planted, abs=0.1)
    contrast = averaged.words[0, 1] - averaged.words[0, 0]
    assert np.corrcoef(contrast, planted[1] - planted[0])[0, 1] > 0.99
    assert found.divergence[0] < 1e-3
    odds = np.log(averaged.sentiments[0, 0] / averaged.sentiments[0, 1])
    assert odds[1] - odds[0] > 1  # planted: 2 log 2.5 = 1.8


@pytest.mark.parametrize(
    "counts", [[[1, 2], [0, 0]], [[1, 0], [2, 0]], [[1, -1], [2, 3]], [[1, np.nan], [2, 3]]]
)
def test_counts_that_cannot_be_fitted_are_refused(counts):
    table = np.array(counts, dtype=float)
    with pytest.raises(ValueError, match=r"counts must be finite and above 0"):
        one(table, np.full((2, 3), np.nan))


def test_contrast_of_three_genders_is_against_the_mean_of_the_others():
    eta = np.array([[1.0], [2.0], [6.0]])
    assert latent_model.contrast(eta)[:, 0] == pytest.approx([-3, -1.5, 4.5])


HASHED = """
from plumbline.probes.core.run_analysis import same_arithmetic

same_arithmetic()
import hashlib
import numpy as np
from plumbline.probes.politicians.latent_model import Schedule, fit, tilt
rng = np.random.default_rng(5)
counts, q = rng.integers(1, 40, (1, 120, 2)).astype(float), rng.dirichlet([1.0, 1.0, 1.0], 120)
weights = np.array([0.0, 1e-4, 1e-2]), np.array([1.0, 1.0, 100.0])
found = [fit(counts, q, *weights, Schedule(250, 0.2), t) for t in (None, tilt(1, 1.0, (3, 2, 120)))]
print(hashlib.sha256(b"".join(part.eta.tobytes() for part in found)).hexdigest())
"""
KINDS: list[dict[str, str]] = [
    {},
    {  # what a processor with AVX2 and without AVX-512 would compute with
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
        "ATEN_CPU_CAPABILITY": "avx2",
        "MKL_CBWR": "AVX2",
    },
    {  # what may be asked for
        "ATEN_CPU_CAPABILITY": "default",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OMP_NUM_THREADS": "1",
    },
]


@pytest.mark.slow
def test_every_kind_of_processor_fits_the_same_bytes():
    """The default run's weights, which do not settle: a last digit of a start would show."""
    run = [sys.executable, "-W", "ignore", "-c", HASHED]
    found = {
        subprocess.run(run, env=os.environ | kind, capture_output=True, check=True).stdout.strip()
        for kind in KINDS
    }
    (one,) = found
    assert len(one) == 64
