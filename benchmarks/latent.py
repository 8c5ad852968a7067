"""Compare the batched latent-variable model with a Python loop over fits with autograd.

    python benchmarks/latent.py [WORDS [STEPS [PAIRS]]]

Both compute the 40 fits of the grid for 800 words and two genders, with 200 steps of Adam in
float64 on one thread, starting from the minimum without L1. Loop and batch run in turn in one
process, and the ratio is that of processor times. For both, the script prints the largest excess
over the lower of the two objectives: the subgradient of the loop leaves no value exactly 0.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

TOP = Path(__file__).parent.parent
sys.path.insert(0, str(TOP))

import numpy as np  # noqa: E402
import torch  # noqa: E402

from plumbline.probes.politicians import latent, latent_model  # noqa: E402

GOAL = 15.0


def main() -> None:
    given = [int(word) for word in sys.argv[1:]]
    words, steps, pairs = given + [800, 200, 3][len(given) :]
    torch.set_num_threads(1)
    rng = np.random.default_rng(1)
    counts = rng.integers(1, 200, (words, 2)).astype(np.float64)
    q = rng.dirichlet([1.0, 1.0, 1.0], words)
    l1, posterior = latent_model.grid(latent.L1, latent.POSTERIOR)
    start = latent_model.begin(counts[None], q)
    schedule = latent_model.Schedule(steps, 0.05)

    def batched() -> latent_model.Fits:
        return latent_model.fit(counts[None], q, l1, posterior, schedule)

    def loop() -> np.ndarray:
        each = zip(l1, posterior, strict=True)
        return np.array([eager(counts, q, a, b, start, steps if a else 0, 0.05) for a, b in each])

    ours, theirs = batched(), loop()  # also a warm-up of both
    lower = np.minimum(ours.objective, theirs)
    over = ((of / lower - 1).max() for of in (ours.objective, theirs))
    print(f"{words} words, {steps} steps, 40 fits")
    print("largest excess of an objective: batched {:.1e}, loop {:.1e}".format(*over))
    print("| loop, s | batched, s | ratio |")
    print("|---:|---:|---:|")
    ratios = []
    for _ in range(pairs):
        seconds = []
        for work in (loop, batched):
            begun = time.process_time()
            work()
            seconds.append(time.process_time() - begun)
        ratios.append(seconds[0] / seconds[1])
        print(f"| {seconds[0]:.2f} | {seconds[1]:.3f} | {ratios[-1]:.1f} |", flush=True)
    print(f"median {statistics.median(ratios):.1f}, goal {GOAL:g}")


def eager(counts, q, l1: float, posterior: float, start, steps: int, rate: float) -> float:
    """Fit one model in the usual way, with autograd and torch's Adam; return its objective."""
    parameters = [
        torch.tensor(part[0], dtype=torch.float64, requires_grad=True)
        for part in (start.eta, start.sigma, start.phi)
    ]
    shares = torch.from_numpy(counts.T / counts.sum())
    m, target = torch.log(shares.sum(dim=0)), torch.from_numpy(q.T)
    optimiser = torch.optim.Adam(parameters, rate, latent_model.BETAS, latent_model.EPSILON)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, steps))
    for _ in range(steps):
        optimiser.zero_grad()
        objective(parameters, shares, m, target, l1, posterior).backward()
        optimiser.step()
        schedule.step()
    with torch.no_grad():
        return float(objective(parameters, shares, m, target, l1, posterior))


def objective(parameters, shares, m, q, l1: float, posterior: float) -> torch.Tensor:
    eta, sigma, phi = parameters
    joint = (
        torch.log_softmax(m + eta, dim=2)
        + torch.log_softmax(sigma, dim=0)[..., None]
        + torch.log_softmax(phi, dim=0)[None, :, None]
    )
    cross_entropy = -(shares * torch.logsumexp(joint, dim=0)).sum()
    of_word = torch.log_softmax(torch.logsumexp(joint, dim=1), dim=0)
    divergence = torch.nn.functional.kl_div(of_word, q, reduction="sum")
    penalty = sum(part.abs().sum() for part in parameters)
    return cross_entropy + posterior * divergence + l1 * penalty


if __name__ == "__main__":
    main()
