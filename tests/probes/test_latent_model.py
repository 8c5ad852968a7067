import numpy as np
import pytest
import torch

from plumbline.probes.politicians import latent_model
from plumbline.probes.politicians.latent import L1, POSTERIOR
from plumbline.probes.politicians.latent_model import (
    Schedule,
    average,
    fit,
    grid,
    refit,
    tilt,
)

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


def test_fit_objective_of_the_equations():
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


def test_fit_without_l1_meets_counts_and_lexicon():
    words = 120
    counts, q = tables(words)
    known = ~np.isnan(q).any(axis=1)
    shares = counts / counts.sum()
    for posterior in (0.0, 1.0, 100.0):
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


def test_fit_swapped_labels():
    counts, q = tables(41)
    l1, posterior = grid(L1, POSTERIOR)
    both = [fit(table[None], q, l1, posterior, SHORT) for table in (counts, counts[:, ::-1])]
    assert (both[0].eta == both[1].eta[:, :, ::-1]).all()
    assert (both[0].sigma == both[1].sigma[:, :, ::-1]).all()
    assert (both[0].phi == both[1].phi[:, ::-1]).all()
    assert (both[0].divergence == both[1].divergence).all()


def test_growing_l1_gives_zeros_and_at_last_nothing_else():
    counts, q = tables(40)
    weights = np.array([0.0, 1e-4, 1e-3, 3e-3, 0.1])
    found = fit(counts[None], q, weights, np.zeros(5), SETTLE)
    zeros = (found.eta == 0).mean(axis=(1, 2, 3))
    assert zeros[0] == 0
    assert 0 < zeros[1] < zeros[2] < zeros[3]
    assert zeros[4] == 1
    assert (found.cross_entropy[1:] >= found.cross_entropy[:-1]).all()


def test_fit_conditions_of_a_minimum():
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


def test_fit_large_posterior_weight():
    counts, q = tables(30)
    weights = np.array([0.0, 1e-3, 0.1, 10.0, 100.0])
    found = fit(counts[None], q, np.full(5, 1e-3), weights, SETTLE)
    assert (np.diff(found.divergence) < 0).all()
    assert found.divergence[0] > 5
    assert found.divergence[-1] < 1e-4


def test_fit_batched(monkeypatch):
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


def test_refit():
    counts, q = tables(11)
    more = np.stack([counts, counts[::-1], counts + 3])
    weights = grid((0.0, 1e-3), (0.01, 1.0))
    found = refit(more, q, *weights, SHORT)
    for i, table in enumerate(more):
        alone = average(fit(table[None], q, *weights, SHORT), 4)
        for ours, theirs in zip(found, alone, strict=True):
            assert (ours[i] == theirs[0]).all()
    assert found.sentiments.sum(axis=1) == pytest.approx(np.ones((3, 2)))


def test_fit_planted_model():
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


@pytest.mark.parametrize("counts", [[[1, 0], [2, 0]], [[1, -1], [2, 3]], [[1, np.nan], [2, 3]]])
def test_fit_rejects_counts(counts):
    table = np.array(counts, dtype=float)
    with pytest.raises(ValueError):
        one(table, np.full((2, 3), np.nan))


def test_contrast_three_genders():
    eta = np.array([[1.0], [2.0], [6.0]])
    assert latent_model.contrast(eta)[:, 0] == pytest.approx([-3, -1.5, 4.5])
