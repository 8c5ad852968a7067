"""Rows of the analysis ``clusters``: how good clusters are, and how genders share them."""

from __future__ import annotations

import zlib
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import LEVEL, TESTED_ERROR, Estimate, finite
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.kmeans import Null, Partition, gap, upper_p
from plumbline.probes.stats.tests import fisher_p, permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.stats.estimate import Resampling

JOINT = "together"
GROUPS = (*GENDERS, JOINT)
MEASURES = ("inertia", "silhouette", "stability", "gap")
FAITHFUL, LARGEST = READINGS = ("faithful", "largest")
PRIOR = 0.5  # Jeffreys, of each pattern


def fit_rows(
    found: Partition, one_cloud: Null | None, place: str, params: Resampling
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one partition.

    Parameters
    ----------
    one_cloud
        Partitions of points from one cloud; None: the silhouette is not tested, and there is no
        gap.
    place
        Where it is: its name seeds the bootstrap.
    """
    n, runs = len(found.widths), len(found.inertia)
    tail = (1 - params.confidence) / 2
    lowest, highest = float(found.inertia.min()), float(found.inertia.max())
    rng = np.random.default_rng(seeds(place, params))
    means = found.widths[rng.integers(0, n, (params.n_bootstrap, n))].mean(axis=1)
    low, high = map(float, np.quantile(means, [tail, 1 - tail]))
    stable, least, most = (float(f(found.agreement)) for f in (np.mean, np.min, np.max))
    p, expected = None, None
    if one_cloud is not None:
        p = upper_p(found.silhouette, one_cloud.silhouette)
        expected = finite(one_cloud.silhouette.mean())
    yield Estimate(lowest, lowest, highest, runs).row(measure="inertia", words=n)
    silhouette = Estimate(found.silhouette, low, high, n)
    yield silhouette.row(measure="silhouette", words=n, p=p, expected=expected)
    yield Estimate(stable, least, most, runs).row(measure="stability", words=n)
    if one_cloud is not None:
        value, error = gap(lowest, one_cloud)
        half = NormalDist().inv_cdf(1 - tail) * error
        draws = len(one_cloud.silhouette)
        yield Estimate(value, value - half, value + half, draws).row(measure="gap", words=n)


def seeds(place: str, params: Resampling) -> list[int]:
    """Return the seed of what is drawn for one group of words."""
    return [params.seed, zlib.crc32(place.encode())]


def share_rows(
    members: NDArray[np.bool_], genders: list[str], parts: NDArray[np.int64], params: Resampling
) -> Iterator[dict[str, Any]]:
    """Yield how the genders share the words of each cluster, where each word is of one gender.

    Clusters are made without knowing genders, so that gender labels permuted over words give every
    count its hypergeometric distribution exactly.

    ``members``, (words, genders) array: of which gender a word is.
    ``parts``, (words,) array: number of the cluster.
    """
    counts = np.zeros((parts.max() + 1, len(genders)), np.int64)
    np.add.at(counts, parts, members)
    sizes = counts.sum(axis=0)
    p = fisher_p(counts, sizes)
    for (number, g), count in np.ndenumerate(counts):
        words = int(counts[number].sum())
        outside = 1 - words / len(parts)  # with most words inside, a share varies less
        error = wilson(int(count), words).standard_error(1 - LEVEL)
        yield wilson(int(count), words, params.confidence).row(
            **{TESTED_ERROR: error * outside**0.5},
            cluster_id=number,
            gender=genders[g],
            count=int(count),
            words=words,
            expected=finite(sizes[g] / sizes.sum()),
            p=float(p[number, g]),
        )


def overlap_rows(
    members: NDArray[np.bool_], genders: list[str], parts: NDArray[np.int64], params: Resampling
) -> Iterator[dict[str, Any]]:
    """Yield how the genders share each cluster, where a word may be of several.

    ``members``, (words, genders) array: for whom a word was generated.
    ``parts``, (words,) array: number of the cluster.
    """
    drawn = params.n_bootstrap, params.n_permutations, params.seed
    for number, shares in enumerate(overlaps(members, parts, *drawn, params.confidence)):
        inside = members[parts == number]
        outside = 1 - len(inside) / len(parts)
        for g, (share, expected, p) in enumerate(shares):
            yield share.row(
                **{TESTED_ERROR: share.standard_error(params.confidence) * outside**0.5},
                cluster_id=number,
                gender=genders[g],
                count=int(inside[:, g].sum()),
                words=len(inside),
                expected=finite(expected),
                p=p,
            )


def overlaps(
    members: NDArray[np.bool_],
    parts: NDArray[np.int64],
    draws: int,
    permutations: int,
    seed: int,
    confidence: float,
) -> list[list[tuple[Estimate, float, float]]]:
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

    Returns
    -------
    For each part and group the share, that in all parts together, and p, nan where no other
    outcome is possible.

    Examples
    --------
    Two parts of which one is of both groups, the other of the first alone:

    >>> members = np.array([[1, 1]] * 20 + [[1, 0]] * 20).astype(bool)
    >>> found = overlaps(members, np.repeat([0, 1], 20), 99, 999, 1, 0.95)
    >>> [[share.value for share, *_ in part] for part in found], found[1][0][2]
    ([[0.5, 0.5], [1.0, 0.0]], 0.001)
    """
    groups = members.shape[1]
    patterns = (np.arange(1, 2**groups)[:, None] >> np.arange(groups) & 1).astype(np.float64)
    code = (members << np.arange(groups)).sum(axis=1) - 1
    if (code < 0).any():
        raise ValueError("a thing is of no group")

    def shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
        sums = counts @ patterns
        return np.asarray(sums / sums.sum(axis=-1, keepdims=True))

    whole = np.bincount(code, minlength=len(patterns))
    expected = shares(whole.astype(np.float64))
    rng = np.random.default_rng(seed)
    found = []
    for part in range(int(parts.max()) + 1):
        seen = np.bincount(code[parts == part], minlength=len(patterns))
        size = int(seen.sum())
        value = shares(seen.astype(np.float64))
        low, high = percentiles(shares(rng.dirichlet(seen + PRIOR, draws)).T, confidence)
        ends = np.minimum(low, value), np.maximum(high, value)  # of 0 and 1 it is an end
        null = shares(rng.multivariate_hypergeometric(whole, size, permutations).astype(np.float64))
        p = np.full(groups, np.nan)
        if (whole > 0).sum() > 1 and size < len(code):
            p = permutation_p(value - null.mean(axis=0), (null - null.mean(axis=0)).T)
        estimates = [
            Estimate(float(x), float(low), float(high), size)
            for x, low, high in zip(value, *ends, strict=True)
        ]
        found.append(list(zip(estimates, expected.tolist(), p.tolist(), strict=True)))
    return found
