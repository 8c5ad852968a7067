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
    permutation_p,
    refit,
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


def one(counts, q, l1=0.0, posterior=0.0, schedule=SETTLE, scale=0.01, start=None):
    start = start or begin(counts, 3, SEED, scale)
    return fit(counts[None], q, np.array([l1]), np.array([posterior]), start, schedule)


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


def random_model(counts, scale=1.0):
    rng = np.random.default_rng(SEED)
    words, genders = counts.shape
    start = begin(counts, 3, SEED, scale)
    return start._replace(
        eta=rng.normal(0, scale, (1, 3, genders, words)),
        sigma=rng.normal(0, scale, (1, 3, genders)),
        phi=rng.normal(0, scale, (1, genders)),
    )


@pytest.mark.parametrize(("genders", "posterior"), [(2, 0.0), (2, 3.0), (3, 0.7)])
@pytest.mark.parametrize("learn", [False, True])
def test_the_gradient_is_that_of_the_equations(genders, posterior, learn):
    counts, q = tables(7, genders)
    start = random_model(counts)
    weights = np.array([0.0]), np.array([posterior])
    program = latent_model.Program(
        counts[None], q, *weights, start, Schedule(1, 0.1, "proximal", learn)
    )
    program.backward()
    parts = [torch.tensor(part[0], requires_grad=True) for part in start[:4]]
    objective(*parts, counts, q, 0.0, posterior).backward()
    found = program._views(program.gradient)
    for ours, part in zip(found, parts, strict=False):
        assert ours.reshape(part.shape).numpy() == pytest.approx(part.grad.numpy(), abs=1e-13)
    assert len(found) == 3 + learn


def test_what_is_reported_is_the_objective_of_the_equations():
    counts, q = tables(9)
    found = one(counts, q, 1e-3, 0.4, SHORT)
    parts = [torch.from_numpy(part[0]) for part in found[:4]]
    whole = float(objective(*parts, counts, q, 1e-3, 0.4))
    size = sum(np.abs(part).sum() for part in found[:3])
    ours = found.cross_entropy[0] + 0.4 * found.divergence[0] + 1e-3 * size
    assert ours == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("genders", [2, 3])
def test_without_weights_deviations_are_pmi_up_to_a_constant_of_the_gender(genders):
    counts, q = tables(25, genders)
    found = one(counts, q, scale=0.0, schedule=LONG)
    for s in range(3):
        apart = found.eta[0, s].T - pmi(counts)
        assert apart == pytest.approx(np.tile(apart[0], (25, 1)), abs=1e-6)
    shares = counts / counts.sum()
    entropy = -(shares * np.log(shares)).sum()
    assert found.cross_entropy[0] == pytest.approx(entropy, abs=1e-9)


def test_without_weights_words_are_pmi_from_any_start():
    counts, q = tables(25)
    found = average(one(counts, q, scale=0.5, schedule=LONG), 1).words[0].T
    assert found == pytest.approx(pmi(counts), abs=1e-6)


@pytest.mark.parametrize("penalty", ["proximal", "subgradient"])
def test_swapping_the_labels_swaps_the_columns_bit_by_bit(penalty):
    counts, q = tables(41)
    l1, posterior = grid(L1, POSTERIOR)
    schedule = Schedule(30, 0.1, penalty)
    both = [
        fit(table[None], q, l1, posterior, begin(table, 3, SEED, 0.1), schedule)
        for table in (counts, counts[:, ::-1])
    ]
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
    q[:] = np.nan
    weights = np.array([0.0, 1e-4, 1e-3, 3e-3, 0.1])
    start = begin(counts, 3, SEED, 0.01)
    found = fit(counts[None], q, weights, np.zeros(5), start, SETTLE)
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
    assert found.residual[0] < 1e-4


def test_subgradient_leaves_no_zero_and_about_the_same_fit():
    counts, q = tables(15)
    found = one(counts, q, 1e-3, 0.05, SETTLE)
    other = one(counts, q, 1e-3, 0.05, SETTLE._replace(penalty="subgradient"))
    assert not (other.eta == 0).any()
    assert other.cross_entropy[0] == pytest.approx(found.cross_entropy[0], abs=1e-3)


def test_a_large_posterior_weight_brings_the_divergence_to_nothing():
    counts, q = tables(30)
    weights = np.array([0.0, 1e-3, 0.1, 10.0, 100.0])
    start = begin(counts, 3, SEED, 0.01)
    found = fit(counts[None], q, np.full(5, 1e-3), weights, start, SETTLE)
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
    start = begin(counts, 3, SEED, 0.1)
    batched = fit(counts[None], q, l1, posterior, start, SHORT)
    for i in range(40):
        alone = fit(counts[None], q, l1[i : i + 1], posterior[i : i + 1], start, SHORT)
        assert (alone.eta[0] == batched.eta[i]).all(), i
        assert alone.residual[0] == batched.residual[i]
    monkeypatch.setattr(latent_model, "BLOCK", 500)
    blocks = fit(counts[None], q, l1, posterior, start, SHORT)
    assert (blocks.eta == batched.eta).all()


def test_threads_change_no_bit():
    counts, q = tables(7000)
    weights = np.array([1e-4, 0.0]), np.array([0.1, 10.0])
    start = begin(counts, 3, SEED, 0.1)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(fit(counts[None], q, *weights, start, Schedule(5, 0.1)))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    for one_, other in zip(*found, strict=True):
        assert (one_ == other).all()


def test_refits_are_fits_of_each_table():
    counts, q = tables(11)
    more = np.stack([counts, counts[::-1], counts + 3])
    weights = grid((0.0, 1e-3), (0.01, 1.0))
    start = begin(counts, 3, SEED, 0.1)
    found = refit(more, q, *weights, start, SHORT)
    for i, table in enumerate(more):
        alone = average(fit(table[None], q, *weights, start, SHORT), 4)
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
    found = fit(
        counts[None], known, np.array([1e-5]), np.array([1.0]), begin(counts, 3, 1, 0.01), SETTLE
    )
    averaged = average(found, 1)
    planted = np.log(p / p.sum(axis=1, keepdims=True)) - np.log(p.sum(axis=0))
    assert averaged.words[0] == pytest.approx(planted, abs=0.1)
    contrast = averaged.words[0, 1] - averaged.words[0, 0]
    assert np.corrcoef(contrast, planted[1] - planted[0])[0, 1] > 0.99
    assert found.divergence[0] < 1e-3
    odds = np.log(averaged.sentiments[0, 0] / averaged.sentiments[0, 1])
    assert odds[1] - odds[0] > 1  # planted: 2 log 2.5 = 1.8


def test_m_can_be_learned():
    counts, q = tables(15)
    kept = one(counts, q, 1e-3, 0.1)
    learned = one(counts, q, 1e-3, 0.1, SETTLE._replace(learn_background=True))
    assert kept.background[0] == pytest.approx(np.log(counts.sum(axis=1) / counts.sum()))
    assert (learned.background != kept.background).any()

    def whole(found):
        size = sum(np.abs(part).sum() for part in found[:3])
        return found.cross_entropy[0] + 0.1 * found.divergence[0] + 1e-3 * size

    assert whole(learned) < whole(kept)


@pytest.mark.parametrize(
    "counts", [[[1, 2], [0, 0]], [[1, 0], [2, 0]], [[1, -1], [2, 3]], [[1, np.nan], [2, 3]]]
)
def test_counts_that_cannot_be_fitted_are_refused(counts):
    table = np.array(counts, dtype=float)
    start = begin(np.ones((2, 2)), 3, 1, 0.1)
    with pytest.raises(ValueError, match=r"counts must|needs a count"):
        one(table, np.full((2, 3), np.nan), start=start)


def test_p_counts_permutations_at_least_as_far():
    seen = np.array([[1.0], [0.0]])  # one word, two genders: contrast 1
    permuted = np.array([[[0.0], [1.0]], [[0.5], [0.0]], [[0.0], [0.0]], [[2.0], [0.0]]])
    assert permutation_p(seen, permuted).tolist() == [[3 / 5], [3 / 5]]


def test_contrast_of_three_genders_is_against_the_mean_of_the_others():
    eta = np.array([[1.0], [2.0], [6.0]])
    assert latent_model.contrast(eta)[:, 0] == pytest.approx([-3, -1.5, 4.5])
