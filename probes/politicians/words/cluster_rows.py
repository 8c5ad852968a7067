"""Rows of the analysis ``clusters``: how good clusters are, and how genders share them."""

from __future__ import annotations

import zlib
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import CRITICAL, LEVEL, TESTED_ERROR, Estimate, finite
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.kmeans import Null, Partition, gap, upper_critical, upper_p
from plumbline.probes.stats.tests import critical, fisher_critical, fisher_p, permutation_p

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.stats.estimate import Resampling

JOINT = "together"
GROUPS = (*GENDERS, JOINT)
MEASURES = ("inertia", "silhouette", "stability", "gap")
SILHOUETTE = MEASURES.index("silhouette")
READINGS = ("faithful", "largest")
FAITHFUL, LARGEST = range(len(READINGS))
PRIOR = 0.5  # Jeffreys, of each pattern
METHOD = "Dirichlet percentile over words, clusters held"
UNJUDGED = "none: the paper's number of clusters, whether there are any or not"


def fit_rows(
    found: Partition, one_cloud: Null | None, place: str, params: Resampling
) -> Iterator[dict[str, Any]]:
    """Yield the measures of one partition.

    ``one_cloud``: what k-means makes of points from one cloud; None: the silhouette is not tested,
    and there is no gap.
    ``place``: where it is: its name seeds the bootstrap.
    """
    n, runs = len(found.widths), len(found.inertia)
    tail = (1 - params.confidence) / 2
    lowest, highest = float(found.inertia.min()), float(found.inertia.max())
    spread = Estimate(lowest, lowest, highest, runs, "range over seeds, best run first")
    rng = np.random.default_rng(seeds(place, params))
    means = found.widths[rng.integers(0, n, (params.n_bootstrap, n))].mean(axis=1)
    low, high = map(float, np.quantile(means, [tail, 1 - tail]))
    method = "bootstrap percentile over words, clusters held"
    width = Estimate(found.silhouette, low, high, n, method).at(params.confidence)
    method = "mean adjusted Rand index of pairs of seeds, and its range"
    mean, low, high = (float(f(found.agreement)) for f in (np.mean, np.min, np.max))
    stable = Estimate(mean, low, high, runs, method)
    cloud: str = UNJUDGED
    of_test: dict[str, Any] = dict.fromkeys(("p", "expected", CRITICAL))
    if one_cloud is not None:
        draws = len(one_cloud.silhouette)
        cloud = f"one normal cloud of the same mean and covariance, {draws} draws"
        drawn = one_cloud.silhouette
        of_test["p"] = upper_p(found.silhouette, drawn)
        of_test |= {"expected": finite(drawn.mean()), CRITICAL: upper_critical(drawn)}
    rows = [
        (spread, "seed", "none: see gap" if one_cloud else UNJUDGED),
        (width, "word", cloud),
        (stable, "seed", "0: runs agree as by chance"),
    ]
    if one_cloud is not None:
        value, error = gap(lowest, one_cloud)
        wide = NormalDist().inv_cdf(1 - tail) * error
        method = "normal, simulation error of Tibshirani et al. (2001)"
        apart = Estimate(value, value - wide, value + wide, draws, method).at(params.confidence)
        rows.append((apart, "draw", f"0: {cloud}"))
    for measure, (estimate, cluster, judged) in enumerate(rows):
        told = {name: x if measure == SILHOUETTE else None for name, x in of_test.items()}
        yield estimate.row(cluster=cluster, null=judged, measure=measure, words=n, **told)


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
        words, rest = int(counts[number].sum()), len(parts) - int(counts[number].sum())
        share = wilson(int(count), words, params.confidence)
        sides = fisher_critical(int(sizes[g]), words, rest) if rest else (np.inf, np.inf)
        far = sides[int(count > words * sizes[g] / len(parts))] / words
        error = wilson(int(count), words).standard_error(1 - LEVEL)
        outside = rest / len(parts)  # with most words inside, a share varies less
        yield share.row(
            **{CRITICAL: far, TESTED_ERROR: error * outside**0.5},
            cluster_id=number,
            gender=GENDERS.index(genders[g]),
            count=int(count),
            words=words,
            expected=finite(sizes[g] / sizes.sum()),
            cluster="word",
            null="gender labels permuted over words, exact",
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
        for g, (share, expected, p, far) in enumerate(shares):
            error = share.standard_error(params.confidence)
            null = f"words permuted over clusters, {params.n_permutations:,} times"
            yield share.row(
                **{CRITICAL: far, TESTED_ERROR: error * outside**0.5},
                cluster_id=number,
                gender=GENDERS.index(genders[g]),
                count=int(inside[:, g].sum()),
                words=len(inside),
                expected=finite(expected),
                cluster="word",
                null="none: there is no other outcome" if np.isnan(p) else null,
                p=p,
            )


class Overlap(NamedTuple):
    """The share of one group in one part."""

    share: Estimate
    expected: float  # its share in all parts together
    p: float  # nan where no other outcome is possible
    critical: float  # distance from what is expected at which p is low enough


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

    ``members``, (things, groups) array: of which groups a thing is, of one at least.
    ``parts``, (things,) array: from 0 without gaps.
    ``draws``, ``permutations``, ``seed``: of the posterior and of the test.

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
        far, p = critical(null - middle), np.full(groups, np.nan)
        if (whole > 0).sum() > 1 and size < len(code):
            p = permutation_p(value - middle, (null - middle).T)
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
                    float(p[g]),
                    float(far[g]),
                )
                for g in range(groups)
            ]
        )
    return found
