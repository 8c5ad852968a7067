"""Mixed model: effects of countries, adjusted for the length and frequency of names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.probes.stats.estimate import DF, adjusted, rounded
from plumbline.probes.stats.linear import centred, mixed, sum_groups
from plumbline.probes.stats.two_way import replicated, two_way

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

TERMS = ("tokens", "log rank")
MAX_LEVERAGE = 0.9  # maximum leverage of a row; higher values are truncated
RANK = 1e-12  # with columns of unit length, smaller eigenvalues count as 0
VARIES = 1e-9  # smaller standard deviations are rounding errors


def effects(case: Case, ranks: Floats, confidence: float) -> pl.DataFrame:
    """Return effects of country, tokens and name frequency on P+ - P-, in percentage points.

    Source texts are fixed effects, which are swept out; names have random intercepts. Countries are
    coded as deviations from their mean; countries with fewer than five effective first or last
    words, or with one text, are omitted. Standard errors are clustered by texts and names, because
    variances may differ between countries. The result is empty if there is only one country, a
    covariate is determined by the countries, or the outcome is constant.

    ``ranks``: logarithm of the rank of each row's name; nan if the rank is unknown.
    """
    usable = replicated(case.country, case.sentence, case.units(), len(case.countries))
    ranks, case = ranks[usable[case.country]], case.of_countries(usable)
    if not case.countries:
        return pl.DataFrame()
    number, units = len(case.countries), case.units()
    outcome = centred(100 * case.change[:, 0], case.sentence)
    countries = centred(np.eye(number)[case.country], case.sentence)
    covariates, varies = _covariates(case, ranks)
    design = np.column_stack([countries[:, :-1] - countries[:, -1:], covariates])
    # a name counts once per country, else its intercept would absorb country differences
    names, group = np.unique(units[0] * number + case.country, return_inverse=True)
    matrix, sizes = np.column_stack([design, outcome]), np.bincount(group).astype(np.float64)
    sums, squares = sum_groups(matrix, group), matrix.T @ matrix
    if not _full_rank(squares[:-1, :-1]) or outcome.std() < VARIES:
        return pl.DataFrame()
    fitted = mixed(sums, squares, sizes, case.sentences)
    ratio = fitted.between / fitted.residual if fitted.residual else 0.0
    part = 1 - 1 / (1 + ratio * sizes)
    mean = (part / sizes)[:, None] * sums[:, :-1]
    inverse = np.linalg.inv(squares[:-1, :-1] - mean.T @ sums[:, :-1])
    # the last country's coefficient follows from the sum-to-zero constraint
    value, free = fitted.coefficients, number - 1
    inverse = np.insert(inverse, free, -inverse[:, :free].sum(axis=1), axis=1)
    weights = centred(design @ inverse - (mean @ inverse)[group], case.sentence)
    for column in range(number, weights.shape[1]):
        weights[:, column] /= np.sqrt(1 - _leverage(weights[:, column], case, group))
    residual = (outcome - design @ value) * np.bincount(case.country)[case.country]
    clusters = case.country, case.sentence, units
    tested = two_way(
        weights * residual[:, None], *clusters, np.ones((1, number)), texts_alike=False
    )
    value = np.insert(value, free, -value[:free].sum())
    half = tested.half(confidence)[0]
    terms = [f"country {name}" for name in case.countries]
    terms += [term for term, varying in zip(TERMS, varies, strict=True) if varying]
    columns = {"value": value, "low": value - half, "high": value + half}
    columns |= {"p": tested.p(value[None])[0], DF: tested.freedom[0]}
    table = pl.DataFrame({"term": terms, "n": len(names)} | columns).fill_nan(None)
    return rounded(adjusted(table), ("value", "low", "high"))


def _covariates(case: Case, ranks: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return centred covariates (tokens, log ranks) that vary within texts, and their mask."""
    ranked = ~np.isnan(ranks)
    rank = np.where(ranked, ranks, ranks[ranked].mean() if ranked.any() else 0.0)
    covariates = centred(np.column_stack([case.tokens, rank]), case.sentence)
    varies = covariates.std(axis=0) > VARIES
    return covariates[:, varies], varies


def _leverage(weights: Floats, case: Case, group: Integers) -> Floats:
    """Return the leverage of each row.

    It is the leverage in the mean of the text plus that of the name in country mean and slopes.
    """
    square, size = np.bincount(group, weights**2), np.bincount(group)
    country = np.zeros(len(size), np.int32)
    country[group] = case.country
    names = square / square.sum() + size / np.bincount(case.country)[country]
    texts: Floats = (1 / np.bincount(case.sentence))[case.sentence]
    pulled: Floats = np.minimum(texts + names[group], MAX_LEVERAGE)
    return pulled


def _full_rank(squares: Floats) -> bool:
    """Return True if columns with these cross products are linearly independent."""
    size = np.sqrt(np.diag(squares))
    if not len(size) or not size.all():
        return False
    rank = np.linalg.matrix_rank(squares / np.outer(size, size), RANK, hermitian=True)
    return int(rank) == len(size)
