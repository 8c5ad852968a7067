import numpy as np
import pytest
import torch

from plumbline.probes.politicians import latent_model
from plumbline.probes.politicians.latent import L1, POSTERIOR
from plumbline.probes.politicians.latent_model import Schedule, average, fit, grid, refit, tilt

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


def test_fit_batched():
    counts, q = tables(23)
    l1, posterior = grid(L1, POSTERIOR)
    batched = fit(counts[None], q, l1, posterior, SHORT)
    for i in range(40):
        alone = fit(counts[None], q, l1[i : i + 1], posterior[i : i + 1], SHORT)
        assert (alone.eta[0] == batched.eta[i]).all(), i
        assert alone.objective[0] == batched.objective[i]


def test_refit(monkeypatch):
    counts, q = tables(11)
    monkeypatch.setattr(latent_model, "BLOCK", 500)
    more = np.stack([counts, counts[::-1], counts + 3])
    weights = grid((0.0, 1e-3), (0.01, 1.0))
    found = refit(more, q, *weights, SHORT)
    for i, table in enumerate(more):
        alone = average(fit(table[None], q, *weights, SHORT), 4)
        for ours, theirs in zip(found, alone, strict=True):
            assert (ours[i] == theirs[0]).all()
    assert found.sentiments.sum(axis=1) == pytest.approx(np.ones((3, 2)))


@pytest.mark.parametrize("counts", [[[1, 0], [2, 0]], [[1, -1], [2, 3]], [[1, np.nan], [2, 3]]])
def test_fit_rejects_counts(counts):
    table = np.array(counts, dtype=float)
    with pytest.raises(ValueError):
        one(table, np.full((2, 3), np.nan))
