"""Changes of a model by trainings: mean over groups, and difference from a control's trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import DF, TESTED_ERROR, Estimate, finite
from plumbline.probes.stats.intervals import half_of_mean, t_half_width, two_sided
from plumbline.probes.stereotypes import similarity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Bools = NDArray[np.bool_]
    Weights = NDArray[np.float32]

APART = 0.05  # of the larger number of articles: corpora further apart are not compared
DIFFERENCES = ("difference", "low_difference", "high_difference")
NEAR = 1e-12  # standard errors below are rounding


class Corpus(NamedTuple):
    """Measures after the trainings on a corpus."""

    seeds: list[int]
    values: Array  # (seeds, groups, outcomes)
    articles: float  # mean of the trainings

    def select(self, inside: Bools) -> Corpus:
        """Return the values of some groups."""
        return self._replace(values=self.values[:, inside])

    def matching(self, control: Corpus) -> Corpus:
        """Return the control's trainings with the same seeds; all, if it has none of them.

        Welch's test of two against six has p at or below .05 in .07 to .11, of two against two in
        .03.
        """
        kept = [i for i, seed in enumerate(control.seeds) if seed in self.seeds]
        if not kept:
            return control
        return control._replace(seeds=[control.seeds[i] for i in kept], values=control.values[kept])

    def comparable(self, control: Corpus) -> bool:
        """Return whether both were trained on about as many articles.

        More articles make more steps, which move a model further whatever they say.

        Examples
        --------
        >>> hundred = Corpus([1], np.zeros((1, 2, 3)), 100)
        >>> hundred.comparable(hundred._replace(articles=96))
        True
        >>> hundred.comparable(hundred._replace(articles=94))
        False
        """
        larger = max(self.articles, control.articles)
        return abs(self.articles - control.articles) <= APART * larger


class Test(NamedTuple):
    """Welch's test of each outcome, (outcomes,); nan without a test."""

    p: Array
    error: Array
    freedom: Array


def welch(trainings: Array, control: Array) -> Test:
    """Test the difference of means over trainings.

    Welch (1947), Biometrika 34(1-2), p. 28-35. All is nan with one training on either, and where
    all trainings do the same.

    Parameters
    ----------
    trainings, control : (seeds, outcomes) arrays
        The mean over groups after each training.

    Examples
    --------
    Means 2 and 0, both of variance 1 / 3, so that t is 2.449 with four degrees of freedom.

    >>> one, other = np.array([[1.0], [2.0], [3.0]]), np.array([[-1.0], [0.0], [1.0]])
    >>> [x.round(4).item() for x in welch(one, other)]
    [0.0705, 0.8165, 4.0]
    """
    if min(len(trainings), len(control)) < 2:
        return Test(*np.full((3, trainings.shape[1]), np.nan))
    parts = np.stack([x.var(axis=0, ddof=1) / len(x) for x in (trainings, control)])
    freedom = np.array([[len(trainings) - 1], [len(control) - 1]])
    error = np.sqrt(parts.sum(axis=0))
    error[error <= NEAR] = np.nan  # no spread is no evidence
    df = error**4 / (parts**2 / freedom).sum(axis=0)
    return Test(two_sided((trainings.mean(axis=0) - control.mean(axis=0)) / error, df), error, df)


def change_rows(
    base: Array,
    corpus: Corpus,
    control: Corpus | None,
    sizes: Array,
    weights: Weights,
    confidence: float,
) -> pl.DataFrame:
    """Return a row for each outcome: the mean change over groups, and that minus the control's.

    Parameters
    ----------
    base : (groups, outcomes) array
        Before the training.
    control
        Trainings that are compared; None: no comparison.
    sizes : (groups, outcomes) array
        Weight of a group in means.
    weights : (groups, replicates) array
        How often a group is drawn.
    """

    def mean_over_groups(change: Array) -> Array:
        """Return the mean with its limits, (3, outcomes)."""
        counts = np.where(np.isnan(change), 0.0, sizes)
        with np.errstate(invalid="ignore"):
            drawn = ((np.nan_to_num(change) * counts).T @ weights) / (counts.T @ weights)
        return np.stack([weighted_mean(change, counts), *percentiles(drawn, confidence)])

    change = corpus.values - base
    present = ~np.isnan(change).any(axis=0) & (sizes > 0)
    columns = {"base": weighted_mean(base, sizes * present), "n": present.sum(axis=0)}
    mean = mean_over_groups(change.mean(axis=0))
    columns |= dict(zip(("value", "low", "high"), mean, strict=True))
    difference = np.full((3, base.shape[1]), np.nan)
    test = Test(*difference)
    if control is not None:
        other = control.values - base
        apart = change.mean(axis=0) - other.mean(axis=0)
        difference = mean_over_groups(apart)
        if corpus.comparable(control):
            counts = np.where(np.isnan(apart), 0.0, sizes)
            test = welch(
                *(np.stack([weighted_mean(one, counts) for one in x]) for x in (change, other))
            )
    columns |= dict(zip(DIFFERENCES, difference, strict=True))
    columns |= {"p": test.p, TESTED_ERROR: test.error, DF: test.freedom}
    return pl.DataFrame(columns)


def weighted_mean(values: Array, counts: Array) -> Array:
    """Return the mean of the groups, (outcomes,), weighted by counts; nan where all are 0."""
    with np.errstate(invalid="ignore"):
        return np.asarray((np.nan_to_num(values) * counts).sum(axis=0) / counts.sum(axis=0))


class Similarity(NamedTuple):
    """Similarity of profiles in a category, by training."""

    seeds: list[int]
    values: Array  # (seeds,)
    parts: Array  # (seeds, groups) of their errors, see :func:`similarity.jackknife`

    @classmethod
    def compare(
        cls, one: dict[int, Array], other: dict[int, Array], *, diagonal: bool
    ) -> Similarity:
        """Compare profiles, by seed, after the trainings with one seed."""
        seeds = sorted(one.keys() & other.keys())
        pairs = [(one[seed], other[seed]) for seed in seeds]
        values = [similarity.rsa(*pair, diagonal=diagonal) for pair in pairs]
        parts = [similarity.jackknife(*pair, diagonal=diagonal) for pair in pairs]
        return cls(seeds, np.array(values), np.array(parts))

    def matching(self, seeds: list[int]) -> Similarity:
        """Return the trainings with the same seeds, see :meth:`Corpus.matching`."""
        kept = [i for i, seed in enumerate(self.seeds) if seed in seeds]
        kept = kept or [*range(len(self.seeds))]
        return Similarity([self.seeds[i] for i in kept], self.values[kept], self.parts[kept])

    def estimate(self, confidence: float) -> Estimate:
        """Return the mean over trainings with the interval over groups."""
        value, parts = float(self.values.mean()), self.parts.mean(axis=0)
        return Estimate(value, *similarity.limits(value, parts, confidence), len(parts))

    def minus(self, other: Similarity, confidence: float) -> tuple[float, float, float]:
        """Return the difference of two means, for the same groups, with its limits."""
        value = float(self.values.mean() - other.values.mean())
        parts = self.parts.mean(axis=0) - other.parts.mean(axis=0)
        error = float(np.linalg.norm(parts))
        half = float(t_half_width(error, len(parts) - 1, confidence))
        half = half if error > similarity.NEAR else np.nan
        return value, value - half, value + half


def similarity_rows(
    outlet: Sequence[Similarity], control: Sequence[Similarity] | None, confidence: float
) -> Iterator[tuple[Estimate, float, dict[str, Any]]]:
    """Yield estimate, p and comparison with a control, of each category and of their mean.

    The mean of categories has the t interval over them, whatever their sizes.
    """
    estimates = [part.estimate(confidence) for part in outlet]
    value, low, high = _mean([estimate.value for estimate in estimates], confidence)
    estimates.append(Estimate(value, max(low, -1.0), min(high, 1.0), len(outlet)))
    differences = np.full((len(estimates), 3), np.nan)
    test = Test(*np.full((3, len(estimates)), np.nan))
    if control is not None:
        both = zip(outlet, control, strict=True)
        limits = [one.minus(other, confidence) for one, other in both]
        differences = np.array([*limits, _mean([value for value, *_ in limits], confidence)])
        test = welch(*(_with_mean(side) for side in (outlet, control)))
    for i, estimate in enumerate(estimates):
        columns = dict(zip(DIFFERENCES, map(finite, differences[i]), strict=True))
        columns |= {TESTED_ERROR: finite(test.error[i]), DF: finite(test.freedom[i])}
        yield estimate, float(test.p[i]), columns


def _mean(values: Sequence[float], confidence: float) -> tuple[float, float, float]:
    mean, half = float(np.mean(values)), half_of_mean(np.array(values), confidence)
    return mean, mean - half, mean + half


def _with_mean(categories: Sequence[Similarity]) -> Array:
    """Return the similarity in each category and their mean, (seeds, categories + 1)."""
    values = np.stack([category.values for category in categories], axis=1)
    return np.column_stack([values, values.mean(axis=1)])
