"""Multiway cluster-robust variances of group means, with rows that share texts and names.

A text has rows in all groups (countries), and a name has rows for many texts. The variance is
V(text) + V(name) - V(text and name), where each term is a sum over clusters of squared sums of
residuals. Memory use is proportional to the number of rows, since there are no replicates.

Cameron, Gelbach and Miller (2011), Robust inference with multiway clustering, Journal of Business
and Economic Statistics 29(2), p. 238-249; residuals are scaled (CR2) as in Bell and McCaffrey
(2002), Survey Methodology 28(2); degrees of freedom are as in Satterthwaite (1946), Biometrics
Bulletin 2(6).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from plumbline.probes.stats.intervals import t_half_width, two_sided

Floats = NDArray[np.float64]
Integers = NDArray[np.signedinteger[Any]]

METHOD = "t interval over source texts and names (two-way clusters)"
FLAT = 1e-9  # smaller standard errors are rounding errors
LARGEST = 2**62  # maximum code
LEAST_NAMES = 5  # effective number of names; with 2 to 4, the familywise error rate is .1 to .33


class Tested(NamedTuple):
    """Standard errors and degrees of freedom, of equal shape; nan if they are not estimable."""

    se: Floats
    freedom: Floats
    shared: Floats  # variance component of names in addition to that of texts

    def half(self, confidence: float) -> Floats:
        """Return half the width of the t interval."""
        return t_half_width(self.se, self.freedom, confidence)

    def p(self, estimate: Floats) -> Floats:
        """Return two-sided p-values for 0; if the error is 0, 1 for an estimate of 0, else nan."""
        flat = self.se <= FLAT
        with np.errstate(divide="ignore", invalid="ignore"):
            result = two_sided(estimate / np.where(flat, np.nan, self.se), self.freedom)
        return np.where(flat & (np.abs(estimate) <= FLAT), 1.0, result)


class _Units(NamedTuple):
    """Combinations of unit and group (cells); a unit is a text, a name, or a name in a text."""

    cell: Integers  # (rows,)
    unit: Integers  # (cells,), increasing
    group: Integers  # (cells,)
    rows: Integers  # (cells,)
    freedom: Floats  # (groups,): effective number of units minus 1


def two_way(
    values: Floats,
    groups: Integers,
    texts: Integers,
    names: Sequence[Integers],
    contrasts: Floats,
    *,
    texts_alike: bool = True,
) -> Tested:
    """Return standard errors for contrasts of group means, of shape (contrasts, measures).

    The variance component of names is truncated at zero.

    Parameters
    ----------
    values : (rows, measures) array
    groups, texts : (rows,) arrays
        Codes from 0. A group without rows, or with only one text or name, has no standard error.
    names : sequence of (rows,) arrays
        Names of one or several kinds: rows with equal codes share a name.
    contrasts : (contrasts, groups) array
        Weight of each group, such as 1 for one group and -1 for another.
    texts_alike
        If True, text effects are removed before the name component is estimated, by subtracting the
        mean of a text's rows in other groups. If False, effects of the texts in which a name occurs
        are attributed to the name.

    Examples
    --------
    With one text and one name per row, the result is the usual s / sqrt(n).

    >>> rows = np.arange(4)
    >>> values = np.array([[1.0], [2.0], [3.0], [6.0]])
    >>> found = two_way(values, 0 * rows, rows, [rows], np.ones((1, 1)))
    >>> round(float(found.se[0, 0]), 4), round(float(values.std(ddof=1)) / 2, 4)
    (1.0801, 1.0801)
    """
    number = contrasts.shape[1]
    size = np.bincount(groups, minlength=number).astype(np.float64)
    of_texts = _units(texts, groups, size)
    total = _variance(_products(_distances(values, groups, size), of_texts, size), contrasts)
    per_text = _together(of_texts, size, contrasts)[:, None]
    spent = total**2 / np.maximum(per_text, 1)
    residuals = _distances(values, groups, size, texts if texts_alike else None)
    shared, name_terms = np.zeros_like(total), np.zeros_like(total)
    estimable = ((contrasts == 0) | (of_texts.freedom > 0)).all(axis=1)[:, None]
    for many in range(1, len(names) + 1):
        for chosen in combinations(names, many):
            sign, code = (-1) ** (many + 1), _joint(chosen, number)
            of_names = _units(code, groups, size)
            products = _products(residuals, of_names, size)
            joint = _units(_joint((code, texts), number), groups, size)
            within = _products(residuals, joint, size)
            shared += sign * _variance(products - within, contrasts)
            if many == 1:
                free = of_names.freedom
                squares = np.diagonal(products, axis1=1, axis2=2).T ** 2  # (groups, measures)
                name_terms += contrasts**4 @ (squares / np.maximum(free, 1)[:, None])
                estimable &= ((contrasts == 0) | (free > 0)).all(axis=1)[:, None]
    shared = np.maximum(shared, 0)
    variance = total + shared
    spent += np.where(shared > 0, name_terms, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(spent > 0, variance**2 / spent, per_text).clip(1)
    return Tested(*(np.where(estimable, x, np.nan) for x in (np.sqrt(variance), freedom, shared)))


def _distances(
    values: Floats, groups: Integers, size: Floats, texts: Integers | None = None
) -> Floats:
    """Return residuals from the group mean, divided by group size, of shape (rows, measures).

    ``texts``: text of each row; the mean of a text's rows in other groups is subtracted first.
    """
    result, number = np.empty(values.shape), len(size)
    for m, column in enumerate(values.T):
        adjusted = column
        if texts is not None:
            cell = texts * number + groups
            shape = int(texts.max()) + 1, number
            counts = np.bincount(cell, minlength=shape[0] * number).reshape(shape)
            sums = np.bincount(cell, column, shape[0] * number).reshape(shape)
            mean = sums.sum(axis=1, keepdims=True) - sums
            mean /= np.maximum(counts.sum(axis=1, keepdims=True) - counts, 1)
            adjusted = column - mean.ravel()[cell]
        means = np.bincount(groups, adjusted, number) / np.maximum(size, 1)
        result[:, m] = (adjusted - means[groups]) / size[groups]
    return result


def _products(distances: Floats, units: _Units, size: Floats) -> Floats:
    """Return sums over units of products of group sums, of shape (measures, groups, groups)."""
    number, share = len(size), units.rows / size[units.group]
    with np.errstate(divide="ignore"):
        scale = np.where(share < 1, 1 / np.sqrt(1 - share), 0)  # CR2
    shared = np.bincount(units.unit) > 1  # true for few names, and never for (name, text) pairs
    in_several = shared[units.unit]
    row = (np.cumsum(shared) - 1)[units.unit[in_several]]
    across = np.zeros((int(shared.sum()), number))
    result = np.zeros((distances.shape[1], number, number))
    for m in range(len(result)):
        sums = np.bincount(units.cell, distances[:, m], len(units.unit)) * scale
        across[row, units.group[in_several]] = sums[in_several]
        alone = np.where(in_several, 0, sums**2)
        result[m] = across.T @ across + np.diag(np.bincount(units.group, alone, number))
    return result


def replicated(
    groups: Integers,
    texts: Integers,
    names: Sequence[Integers],
    number: int,
    least: float = LEAST_NAMES,
) -> NDArray[np.bool_]:
    """Return a mask of the groups with at least two texts, and enough names of each kind to test.

    ``least``: minimum effective number of names (1 / sum of squared shares of the group's rows).
    """
    size = np.bincount(groups, minlength=number).astype(np.float64)
    of_texts, *kinds = (_units(code, groups, size) for code in (texts, *names))
    result: NDArray[np.bool_] = of_texts.freedom > 0
    for kind in kinds:
        squares = np.bincount(kind.group, (kind.rows / size[kind.group]) ** 2, number)
        result &= (kind.freedom > 0) & (squares * least <= 1 + FLAT)
    return result


def between_names(freedom: Floats, groups: Integers, names: Sequence[Integers]) -> Floats:
    """Return the degrees of freedom of group means (groups, measures), bounded by those of names.

    This applies to comparisons of names on two sides, where names dominate the error: their
    variance component can be truncated at zero, which would leave the degrees of freedom of texts.
    The bounds are the minimum and the sum over both sides of the effective number of names minus 1.
    """
    size = np.bincount(groups, minlength=len(freedom)).astype(np.float64)
    by_kind = np.stack([_units(code, groups, size).freedom for code in names])[..., None]
    return freedom.clip(by_kind.min(axis=0).clip(1), by_kind.sum(axis=0).clip(1))


def _joint(codes: Sequence[Integers], number: int) -> Integers:
    """Return a code for each row's combination of codes; code numbers may have gaps.

    The result is small enough to be combined with group codes without overflow.
    """
    result = codes[0].astype(np.int64)
    for code in codes[1:]:
        width = int(code.max()) + 1
        if (int(result.max()) + 1) * width * number > LARGEST:
            result = np.unique(result, return_inverse=True)[1]
        result = result * width + code
    return result


def _units(code: Integers, groups: Integers, size: Floats) -> _Units:
    number = len(size)
    keys = code.astype(np.int64) * number + groups
    keys, cell, rows = np.unique(keys, return_inverse=True, return_counts=True)
    unit, group = np.divmod(keys, number)
    unit = np.unique(unit, return_inverse=True)[1]  # without gaps
    share = rows / size[group]
    second, fourth = (np.bincount(group, share**k, number) for k in (2, 4))
    freedom = second**2 / np.where(fourth > 0, fourth, np.inf) - 1
    return _Units(cell, unit, group, rows, np.where(freedom > FLAT, freedom, 0))


def _together(units: _Units, size: Floats, contrasts: Floats) -> Floats:
    """Return the effective number of units in each contrast, minus 1.

    A unit contributes the square of its share of each group times the group's squared weight, so a
    group with few units reduces the number according to its weight. For one group, or for groups
    that share all units evenly, the result is that of a single group.
    """
    length, number = int(units.unit.max()) + 1, contrasts.shape[1]
    squares = np.zeros((number, length))
    np.add.at(squares, (units.group, units.unit), (units.rows / size[units.group]) ** 2)
    added = contrasts**2 @ squares
    fourth = (added**2).sum(axis=1)
    result: Floats = added.sum(axis=1) ** 2 / np.where(fourth > 0, fourth, np.inf) - 1
    return np.where(result > FLAT, result, 0)


def _variance(products: Floats, contrasts: Floats) -> Floats:
    """Return the variances of contrasts, of shape (contrasts, measures)."""
    result: Floats = ((contrasts @ products) * contrasts).sum(axis=2).T
    return result
