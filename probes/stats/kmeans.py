"""k-means: partitions, their quality and stability, and a null distribution from one normal cloud.

Lloyd (1982), Least squares quantization in PCM, IEEE Trans. Inf. Theory 28(2), with k-means++
initialization (Arthur & Vassilvitskii 2007), as in scikit-learn. Computations are single-threaded,
because summation order across threads changes the last digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_samples
from threadpoolctl import ThreadpoolController

Floats = NDArray[np.float64]
CELLS = 4_000_000  # maximum number of distances in memory (32 MB)
TOLERANCE = 1e-9  # shorter principal axes, relative to the longest one, are rounding errors
ITERATIONS = 300  # maximum iterations of Lloyd's algorithm, as in scikit-learn


class Partition(NamedTuple):
    """The best of several k-means runs on n points, and the agreement between runs."""

    labels: NDArray[np.int64]  # (n,) clusters in the run with the lowest inertia; 0 is the largest
    inertia: Floats  # (seeds,) sum of squared distances to the nearest centre
    agreement: Floats  # (pairs of seeds,) adjusted Rand index of two runs
    widths: Floats  # (n,) silhouettes in the run with the lowest inertia

    @property
    def silhouette(self) -> float:
        """Return the mean silhouette of all points."""
        return float(self.widths.mean())


class Null(NamedTuple):
    """Null distributions for points drawn from one normal cloud."""

    log_inertia: Floats  # (draws,) natural logarithm of the best run's inertia
    silhouette: Floats  # (draws,)


def principal(points: Floats) -> Floats:
    """Return principal component scores, of shape (n, min(n, d)), for points of shape (n, d).

    Distances are preserved. The sign of an axis is chosen such that the farthest point is positive.
    """
    vectors, sizes, _ = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    scores = vectors * sizes
    far = scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])]
    return np.asarray(scores * np.where(far < 0, -1.0, 1.0))


def partition(points: Floats, k: int, seeds: Sequence[int]) -> Partition:
    """Partition points into k clusters for each seed; at least k + 1 points must be distinct."""
    if len(np.unique(points, axis=0)) <= k:
        raise ValueError(f"partition: {k} clusters need more than {k} distinct points")
    with _pools().limit(limits=1):
        runs = [KMeans(k, n_init=1, random_state=seed).fit(points) for seed in seeds]
        inertia = np.array([run.inertia_ for run in runs])
        # among runs that differ only by rounding, take the first
        best = int(np.flatnonzero(inertia <= inertia.min() * (1 + 1e-9))[0])
        labels = numbered(runs[best].labels_)
        pairs = combinations([run.labels_ for run in runs], 2)
        agreement = np.array([adjusted_rand_score(a, b) for a, b in pairs])
        widths = silhouette_samples(points, labels)
    return Partition(labels, inertia, agreement, widths)


def numbered(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Renumber labels from 0 by decreasing cluster size; ties are ordered by their first point.

    >>> numbered(np.array([7, 3, 3, 5, 5, 3])).tolist()
    [2, 0, 0, 1, 1, 0]
    """
    _, first, codes, sizes = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    return np.argsort(np.lexsort((first, -sizes)))[codes]


def null(
    points: Floats, ks: Sequence[int], starts: int, draws: int, seed: int | list[int]
) -> list[Null]:
    """Return null distributions of k-means for one normal cloud, for each number of clusters.

    Each draw has exactly the mean and covariance of ``points`` (n, d). For independent normal
    points with any covariance, the scores on the sample's principal axes, divided by the axis
    lengths, form a random rotation that is independent of the lengths. A draw combines a new
    rotation with these lengths, so it is exchangeable with the observed points. The best of
    ``starts`` runs is used.

    Wedderburn (1975), Random rotations and multivariate normal simulation, Rothamsted; Langsrud
    (2005), Rotation tests, Statistics and Computing 15(1), p. 53-60.
    """
    rng = np.random.default_rng(seed)
    n = len(points)
    result = np.zeros((2, len(ks), draws))
    block = max(1, CELLS // n**2)
    with _pools().limit(limits=1):
        lengths = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
        lengths = lengths[lengths > TOLERANCE * lengths[0]]  # at most n - 1 axes
        for first in range(0, draws, block):
            number = min(block, draws - first)
            clouds = rng.normal(size=(number, n, len(lengths)))
            clouds = np.linalg.qr(clouds - clouds.mean(axis=1, keepdims=True))[0] * lengths
            squares = _squares(clouds)
            for i, k in enumerate(ks):
                inertia, labels = _lloyd(clouds, squares, k, starts, rng)
                span = slice(first, first + number)
                result[:, i, span] = np.log(inertia), _silhouettes(np.sqrt(squares), labels, k)
    return [Null(result[0, i], result[1, i]) for i in range(len(ks))]


@cache
def _pools() -> ThreadpoolController:
    """Return the thread pools of NumPy and scikit-learn, cached as a search takes milliseconds."""
    return ThreadpoolController()


def _squares(clouds: Floats) -> Floats:
    """Return squared distances (clouds, n, n) between points of shape (clouds, n, d)."""
    inner = clouds @ clouds.transpose(0, 2, 1)
    size = np.diagonal(inner, axis1=1, axis2=2)
    squares: Floats = np.maximum(size[:, :, None] + size[:, None, :] - 2 * inner, 0)
    squares[:, np.arange(squares.shape[1]), np.arange(squares.shape[1])] = 0
    return squares


def _lloyd(
    clouds: Floats, squares: Floats, k: int, starts: int, rng: np.random.Generator
) -> tuple[Floats, NDArray[np.int64]]:
    """Partition clouds (clouds, n, d); return the inertia (clouds,) and the labels (clouds, n).

    Initialization is greedy k-means++ as in scikit-learn, with 2 + log k candidates per centre.
    """
    number, n, _ = clouds.shape
    rows = np.arange(number)[:, None]
    chosen = rng.integers(n, size=(number, starts, 1))
    nearest = squares[rows, chosen[:, :, 0]]
    for _ in range(1, k):
        running = nearest.cumsum(axis=2)
        thresholds = rng.random((number, starts, 2 + int(np.log(k)), 1)) * running[:, :, None, -1:]
        tried = (running[:, :, None] < thresholds).sum(axis=3).clip(0, n - 1)
        candidates = np.minimum(nearest[:, :, None], squares[rows[:, :, None], tried])
        best = candidates.sum(axis=3).argmin(axis=2)[:, :, None]
        chosen = np.concatenate([chosen, np.take_along_axis(tried, best, axis=2)], axis=2)
        nearest = np.take_along_axis(candidates, best[..., None], axis=2)[:, :, 0]
    centres = clouds[rows[:, :, None], chosen]  # (clouds, starts, k, d)
    size = (clouds**2).sum(axis=2)[:, None]
    flipped = clouds.transpose(0, 2, 1)[:, None]
    labels = np.full((number, starts, n), -1)
    for _ in range(ITERATIONS):
        far = (centres**2).sum(axis=3)[..., None] - 2 * (centres @ flipped)
        now = far.argmin(axis=2)
        if (now == labels).all():
            break
        labels = now
        member = (labels[:, :, None] == np.arange(k)[:, None]).astype(np.float64)
        count = member.sum(axis=3, keepdims=True)
        means = member @ clouds[:, None] / np.maximum(count, 1)
        centres = np.where(count > 0, means, centres)
    inertia = (far.min(axis=2) + size).sum(axis=2)
    first = np.arange(number), inertia.argmin(axis=1)  # index of the best start of each cloud
    return inertia[first], labels[first]


def _silhouettes(distances: Floats, labels: NDArray[np.int64], k: int) -> Floats:
    """Return each cloud's mean silhouette for distances (clouds, n, n) and labels (clouds, n)."""
    member = (labels[:, :, None] == np.arange(k)).astype(np.float64)
    sums, count = distances @ member, member.sum(axis=1)[:, None]
    index = labels[:, :, None]
    size = np.take_along_axis(np.broadcast_to(count, sums.shape), index, axis=2)[:, :, 0]
    inside = np.take_along_axis(sums, index, axis=2)[:, :, 0] / np.maximum(size - 1, 1)
    others = np.where((member > 0) | (count == 0), np.inf, sums / np.maximum(count, 1))
    nearest = others.min(axis=2)
    widths = np.where(size > 1, (nearest - inside) / np.maximum(nearest, inside), 0.0)
    mean: Floats = widths.mean(axis=1)
    return mean


def gap(inertia: float, one_cloud: Null) -> tuple[float, float]:
    """Return the gap statistic and its simulation standard error.

    Tibshirani, Walther & Hastie (2001), J. R. Stat. Soc. B 63(2), equations 3 and 5: the mean log
    inertia of the reference minus that of the points, and s = sd * sqrt(1 + 1 / draws). Their
    reference distribution is uniform in a box; here it is a normal cloud.
    """
    draws = one_cloud.log_inertia
    return float(draws.mean() - np.log(inertia)), float(draws.std() * np.sqrt(1 + 1 / len(draws)))


def upper_p(value: float, draws: Floats) -> float:
    """Return twice the upper-tailed Monte Carlo p-value, at most 1.

    Davison & Hinkley (1997), Bootstrap Methods, equation 4.11.

    >>> upper_p(3.0, np.array([1.0, 2.0, 3.0, 4.0, *np.zeros(15)]))
    0.3
    """
    return min(1.0, 2 * (1 + int((draws >= value).sum())) / (1 + len(draws)))
