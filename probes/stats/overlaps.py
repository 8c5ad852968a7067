"""Shares of groups among things that may be of several groups, such as words of two genders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import Estimate
from plumbline.probes.stats.tests import permutation_p

if TYPE_CHECKING:
    from numpy.typing import NDArray

PRIOR = 0.5  # Jeffreys, of each pattern
METHOD = "Dirichlet percentile over words, clusters held"


class Overlap(NamedTuple):
    """The share of one group in one part."""

    share: Estimate
    expected: float  # its share in all parts together
    p: float  # nan where no other outcome is possible


def overlaps(
    members: NDArray[np.bool_],
    parts: NDArray[np.int64],
    draws: int,
    permutations: int,
    seed: int,
    confidence: float,
) -> list[list[Overlap]]:
    """Return how the groups share each part, a thing of several groups counting in each of them.

    The shares of a part sum to 1. Interval: how many things of a part have each pattern of groups
    is multinomial; percentiles of the shares under the Dirichlet posterior with Jeffreys' prior,
    1/2 to every pattern (Jeffreys 1946, Proc. R. Soc. A 186, p. 453). Test: the patterns permuted
    over all things, so that those of a part are multivariate hypergeometric; two-sided by the
    distance from the mean share then.

    Parameters
    ----------
    members : (things, groups) array
        Of which groups a thing is, of one at least.
    parts : (things,) array
        From 0 without gaps.
    draws, permutations, seed
        Of the posterior and of the test.

    Examples
    --------
    Two parts of which one is of both groups, the other of the first alone:

    >>> members = np.array([[1, 1]] * 20 + [[1, 0]] * 20).astype(bool)
    >>> found = overlaps(members, np.repeat([0, 1], 20), 99, 999, 1, 0.95)
    >>> [[one.share.value for one in part] for part in found], found[1][0].p
    ([[0.5, 0.5], [1.0, 0.0]], 0.001)
    """
    groups = members.shape[1]
    patterns = (np.arange(1, 2**groups)[:, None] >> np.arange(groups) & 1).astype(np.float64)
    code = (members << np.arange(groups)).sum(axis=1) - 1
    if (code < 0).any():
        raise ValueError("a thing is of no group")

    def shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        found = counts @ patterns
        return np.asarray(found / found.sum(axis=-1, keepdims=True))

    whole = np.bincount(code, minlength=len(patterns))
    rng = np.random.default_rng(seed)
    found = []
    for part in range(int(parts.max()) + 1):
        seen = np.bincount(code[parts == part], minlength=len(patterns))
        size = int(seen.sum())
        value = shares(seen.astype(np.float64))
        low, high = percentiles(shares(rng.dirichlet(seen + PRIOR, draws)).T, confidence)
        null = shares(rng.multivariate_hypergeometric(whole, size, permutations).astype(np.float64))
        middle = null.mean(axis=0)
        open_ = (whole > 0).sum() > 1 and size < len(code)
        found.append(
            [
                Overlap(
                    # a share of 0 or 1 is an end of its own interval
                    Estimate(
                        float(value[g]),
                        float(min(low[g], value[g])),
                        float(max(high[g], value[g])),
                        size,
                        METHOD,
                    ).at(confidence),
                    float(shares(whole.astype(np.float64))[g]),
                    permutation_p(value[g] - middle[g], null[:, g] - middle[g])
                    if open_
                    else float("nan"),
                )
                for g in range(groups)
            ]
        )
    return found
