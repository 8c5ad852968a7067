"""Variance components of a score, for crossed facets and their interactions.

A score is the sum of a mean, random effects for levels of each facet (statement, template, seed),
for pairs of levels of two facets, and a residual. Facets are crossed; scores may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

REST: tuple[str, ...] = ()  # name of the residual term
WIDEST, SMALL = 2000, 1e-9  # maximum cells in a fit, relative tolerance for zero eigenvalues
STEPS, NEAR = 100, 1e-9  # maximum iterations of REML, tolerance for its log-likelihood


class Parts(NamedTuple):
    """Variance components, one per term; the last is the residual."""

    terms: tuple[tuple[str, ...], ...]  # facets of each term
    value: Floats  # (terms,), unbiased estimates, which may be negative
    draws: Floats  # (draws, terms), generalized pivotal quantities
    levels: NDArray[np.int64]  # (terms,)
    n: int  # number of scores

    def interval(self, weights: Floats, confidence: float) -> tuple[float, float, float]:
        """Return a weighted sum of components and its interval, both truncated at zero."""
        tails = (1 - confidence) / 2, (1 + confidence) / 2
        ends = np.quantile(self.draws @ weights, tails)
        value, low, high = (max(0.0, float(x)) for x in (self.value @ weights, *ends))
        return value, low, high


def terms_of(facets: Sequence[str], order: int = 2) -> tuple[tuple[str, ...], ...]:
    """Return the facets and their interactions up to an order, then the residual term.

    Examples
    --------
    >>> terms_of(["statement", "template"])
    (('statement',), ('template',), ())
    """
    sizes = range(1, min(order, max(1, len(facets) - 1)) + 1)
    return (*(term for size in sizes for term in combinations(facets, size)), REST)


def parts_of(
    scores: Floats,
    facets: Mapping[str, Codes],
    *,
    order: int = 2,
    draws: int = 1000,
    seed: int = 1,
) -> Parts:
    """Estimate variance components by ANOVA, with intervals from generalized pivotal quantities.

    The sums of squares are those of Henderson's method I, which equal ANOVA's for complete data; if
    scores are missing, method III is used for the residual and the interactions. The components are
    the values for which the sums of squares equal their expectations. The pivotal quantities solve
    the same equations with each sum of squares divided by a chi-squared draw instead of its degrees
    of freedom; their quantiles are the limits of the interval, which has exact coverage for the
    residual and close to nominal coverage for other terms.

    Parameters
    ----------
    scores : (n,) array
        Without missing values.
    facets
        Arrays (n,) of codes of each facet's levels, of which there must be at least two.
    order
        Highest order of interaction; interactions of higher order are part of the residual.

    References
    ----------
    Henderson (1953), Estimation of variance and covariance components, Biometrics 9(2), p. 226-252;
    Searle, Casella and McCulloch (1992), Variance Components, section 5.3; Weerahandi (1993),
    Generalized confidence intervals, JASA 88(423), p. 899-905.

    Examples
    --------
    For three statements in two templates, the mean squares are 19 / 6, 6 and 0.5.

    >>> codes = {"statement": np.array([0, 0, 1, 1, 2, 2]), "template": np.array([0, 1] * 3)}
    >>> parts_of(np.array([1.0, 3, 2, 5, 4, 5]), codes).value.round(4).tolist()
    [1.3333, 1.8333, 0.5]
    """
    terms = terms_of(list(facets), order)
    cells = [_cells(facets, term) for term in terms[:-1]]
    n = len(scores)
    centred = np.asarray(scores, dtype=np.float64) - np.mean(scores)
    # uncorrected sums of squares of the terms; that of the mean is 0
    raw = [(np.bincount(codes, centred) ** 2 / np.bincount(codes)).sum() for codes in cells]
    raw.append((centred**2).sum())
    shared = np.empty((len(cells) + 2, len(cells) + 1))  # coefficients; those of the mean are last
    for a, row_codes in enumerate(cells):
        for b, column_codes in enumerate(cells):
            shared[a, b] = _coefficient(row_codes, column_codes)
        shared[a, -1] = row_codes.max() + 1
        shared[-1, a] = (np.bincount(row_codes).astype(np.float64) ** 2).sum() / n
    shared[-2], shared[-1, -1] = n, 1
    contrast = _contrasts(terms)
    squares, expected = contrast[:, :-1] @ np.array(raw), contrast @ shared
    if not _whole(facets) and sum(codes.max() + 1 for codes in cells) <= WIDEST:
        for index, square, coefficient, free in _adjusted(centred, cells, terms):
            squares[index], expected[index] = square, 0
            expected[index, index] = coefficient
            expected[index, -1] = free
    df = expected[:, -1].copy()
    if (df < 1 - 1e-9).any():
        raise ValueError("too few scores to separate the terms")
    solve = np.linalg.pinv(expected)  # solves for sums of squares, not mean squares
    rng = np.random.default_rng(seed)
    # a Latin hypercube needs few draws, because each quantile of each term occurs once
    places = rng.permuted(np.tile(np.arange(draws) + 0.5, (len(df), 1)), axis=1).T / draws
    pivots = np.maximum(squares, 0) / chdtri(df, places) * df
    levels = np.array([*(codes.max() + 1 for codes in cells), n], dtype=np.int64)
    return Parts(terms, solve @ squares, pivots @ solve.T, levels, n)


def _cells(facets: Mapping[str, Codes], term: Iterable[str]) -> Codes:
    """Return the cell of each score in a term, as codes from 0."""
    joint = np.zeros_like(next(iter(facets.values())))
    for codes in (facets[name] for name in term):
        joint = np.unique(joint * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return joint


def _whole(facets: Mapping[str, Codes]) -> bool:
    """Return True if all combinations of levels have the same number of scores."""
    count = np.bincount(_cells(facets, facets))
    all_ = np.prod([int(codes.max()) + 1 for codes in facets.values()])
    return len(count) == all_ and bool((count == count[0]).all())


def _adjusted(
    values: Floats, cells: Sequence[Codes], terms: Sequence[tuple[str, ...]]
) -> Iterator[tuple[int, float, float, int]]:
    """Yield index, sum of squares, coefficient and df for the residual and each interaction.

    The sum of squares of the residual is that of a least-squares fit of all cells; that of an
    interaction is its reduction by the interaction, given all other terms (Henderson's method III).
    """
    from scipy.sparse import csr_array, hstack

    n = len(values)
    designs = [csr_array((np.ones(n), (np.arange(n), codes))) for codes in cells]

    def fit(chosen: Sequence[int]) -> tuple[float, int, Floats]:
        design = hstack([csr_array(np.ones((n, 1))), *(designs[index] for index in chosen)]).tocsr()
        roots, vectors = np.linalg.eigh((design.T @ design).toarray())
        positive = roots > SMALL * roots[-1]
        basis = design @ (vectors[:, positive] / np.sqrt(roots[positive]))
        return float(values @ values - ((basis.T @ values) ** 2).sum()), int(positive.sum()), basis

    indices = range(len(designs))
    residual, rank, _ = fit(indices)
    yield -1, residual, 0.0, n - rank
    for index in indices:
        if len(terms[index]) > 1:
            without, fewer, basis = fit([i for i in indices if i != index])
            inside = float(((designs[index].T @ basis) ** 2).sum())
            yield index, without - residual, n - inside, rank - fewer


def _coefficient(target: Codes, source: Codes) -> float:
    """Return the coefficient of the ``source`` component in the ``target`` sum of squares."""
    key = target * (int(source.max()) + 1) + source
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    return float((count.astype(np.float64) ** 2 / np.bincount(target)[target[first]]).sum())


def _contrasts(terms: tuple[tuple[str, ...], ...]) -> Floats:
    """Return contrasts of uncorrected sums of squares that give the corrected ones, mean last."""
    number = len(terms)
    result = np.zeros((number, number + 1))
    for row, term in enumerate(terms[:-1]):
        for column, part in enumerate(terms[:-1]):
            if set(part) <= set(term):
                result[row, column] = (-1) ** (len(term) - len(part))
        result[row, -1] = (-1) ** len(term)
    result[-1, -2] = 1
    result[-1, -1] = -1
    result[-1] -= result[:-1].sum(axis=0)
    return result


def reml(scores: Floats, facets: Mapping[str, Codes], *, order: int = 2) -> Floats:
    """Estimate non-negative components, one per term, by restricted maximum likelihood.

    Uses Fisher scoring with the full covariance matrix of the scores, for a few thousand scores at
    most. For complete data and positive components, the estimates equal those of ANOVA.

    Patterson and Thompson (1971), Biometrika 58(3), p. 545-554; Searle, Casella and McCulloch
    (1992), Variance Components, section 6.6.
    """
    from scipy.sparse import csr_array

    terms = terms_of(list(facets), order)
    n = len(scores)
    cells = [*(_cells(facets, term) for term in terms[:-1]), np.arange(n)]
    designs = [csr_array((np.ones(n), (np.arange(n), codes))) for codes in cells]
    values = np.asarray(scores, dtype=np.float64)
    spread = float(values.var()) or 1.0
    theta = np.maximum(parts_of(values, facets, order=order, draws=2).value, 0.02 * spread)
    likelihood, projection = _restricted(theta, designs, values)
    for _ in range(STEPS):
        moved, sided = projection @ values, [design.T @ projection for design in designs]
        blocks = [[product @ design for design in designs] for product in sided]
        information = np.array([[(block**2).sum() for block in row] for row in blocks]) / 2
        squares = np.array([((design.T @ moved) ** 2).sum() for design in designs])
        score = (squares - [np.trace(row[a]) for a, row in enumerate(blocks)]) / 2
        free = (theta > NEAR * spread) | (score > 0)
        step = np.zeros_like(theta)
        step[free] = np.linalg.lstsq(information[np.ix_(free, free)], score[free], rcond=None)[0]
        before = likelihood
        for halved in range(12):
            tried = np.maximum(theta + step / 2**halved, 0)
            tried[-1] = max(tried[-1], NEAR * spread)
            result = _restricted(tried, designs, values)
            if result[0] >= before - NEAR:
                theta, (likelihood, projection) = tried, result
                break
        if abs(likelihood - before) < NEAR * (1 + abs(before)):
            break
    return np.asarray(np.where(theta > 1e-7 * spread, theta, 0.0))


def _restricted(theta: Floats, designs: Sequence[object], values: Floats) -> tuple[float, Floats]:
    """Return the restricted log-likelihood and the (n, n) projection matrix P."""
    n = len(values)
    covariance = np.zeros((n, n))
    for part, design in zip(theta[:-1], designs[:-1], strict=True):
        if part:
            covariance += part * (design @ design.T).toarray()  # type: ignore[attr-defined]
    covariance[np.diag_indices(n)] += theta[-1]
    lower = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(covariance)
    sums = inverse.sum(axis=0)
    total = float(sums.sum())
    projection = inverse - np.outer(sums, sums) / total
    result = 2 * np.log(np.diag(lower)).sum() + np.log(total) + values @ projection @ values
    return float(-result / 2), projection
