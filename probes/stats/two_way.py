"""Variances of means over groups of rows that share texts and names: clustered several ways.

A text has rows in all groups (countries), a name has rows in many texts. The variance is that over
texts, and what names have in common beyond the text: V(text) + V(name) - V(text and name), each a
sum over clusters of squared sums of residuals. Nothing of the size of rows by replicates is made.

Cameron, Gelbach and Miller (2011), Robust inference with multiway clustering, Journal of Business
and Economic Statistics 29(2), p. 238-249; residuals are scaled as by Bell and McCaffrey (2002),
Survey Methodology 28(2), CR2; degrees of freedom by Satterthwaite (1946), Biometrics Bulletin 2(6).
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
FLAT = 1e-9  # standard errors below are rounding
LARGEST = 2**62  # of numbers


class Tested(NamedTuple):
    """Standard errors with degrees of freedom, arrays of one shape; nan where nothing is known."""

    se: Floats
    freedom: Floats
    shared: Floats  # part of the variance that names have in common beyond texts

    def half(self, confidence: float) -> Floats:
        """Return half the width of the t interval."""
        return t_half_width(self.se, self.freedom, confidence)

    def p(self, estimate: Floats) -> Floats:
        """Return two-sided p of a true 0: nan without spread, unless the estimate is 0 too."""
        flat = self.se <= FLAT
        with np.errstate(divide="ignore", invalid="ignore"):
            result = two_sided(estimate / np.where(flat, np.nan, self.se), self.freedom)
        return np.where(flat & (np.abs(estimate) <= FLAT), 1.0, result)


class _Units(NamedTuple):
    """The cells of units (names, or names in texts) by groups."""

    cell: Integers  # (rows,)
    unit: Integers  # (cells,), rising
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
    """Return standard errors of contrasts of the means of groups, (contrasts, measures).

    What names have in common is 0 where it comes out negative.

    Parameters
    ----------
    values : (rows, measures) array
    groups, texts : (rows,) arrays
        Numbers from 0. A group without rows, or of one text or name, has no standard error.
    names : sequence of (rows,) arrays
        Names of one kind or several: rows share a name where the numbers are equal.
    contrasts : (contrasts, groups) array
        Weights of the groups, such as 1 for one and -1 for another.
    texts_alike
        Whether what is common to the rows of a text is taken off, as the mean of its rows in other
        groups, before names are looked at: a name that happens to stand in some texts and not in
        others would else seem to have what those have.

    Examples
    --------
    Rows that are a text and a name each: the usual s / sqrt(n).

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
    """Return distances of rows from the mean of their group, over its rows, (rows, measures).

    ``texts``: (rows,), where the mean of a text's rows in other groups is taken off before.
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
    """Return sums over units of products of their sums in groups, (measures, groups, groups)."""
    number, share = len(size), units.rows / size[units.group]
    with np.errstate(divide="ignore"):
        scale = np.where(share < 1, 1 / np.sqrt(1 - share), 0)  # CR2
    shared = np.bincount(units.unit) > 1  # most names are of one group, and no text with one name
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
    groups: Integers, texts: Integers, names: Sequence[Integers], number: int, least: float = 0.0
) -> NDArray[np.bool_]:
    """Return which of the groups have rows of two texts, and of two names of each kind.

    The others have no standard error, nor has a contrast in which they have weight. ``least``: the
    effective number of names, 1 / sum of squared shares of the group's rows, that they must have.
    """
    size = np.bincount(groups, minlength=number).astype(np.float64)
    of_texts, *kinds = (_units(code, groups, size) for code in (texts, *names))
    result: NDArray[np.bool_] = of_texts.freedom > 0
    for kind in kinds:
        squares = np.bincount(kind.group, (kind.rows / size[kind.group]) ** 2, number)
        result &= (kind.freedom > 0) & (squares * least <= 1 + FLAT)
    return result


def between_names(freedom: Floats, groups: Integers, names: Sequence[Integers]) -> Floats:
    """Return degrees of freedom of the means of groups, (groups, measures), bounded by names.

    Where names on two sides are compared and most of the error is theirs: their variance is a
    difference of sums, by luck 0, and degrees of freedom were then those of texts. There are no
    more than the effective numbers of names on both sides, each less 1, and no fewer than on one.
    """
    size = np.bincount(groups, minlength=len(freedom)).astype(np.float64)
    by_kind = np.stack([_units(code, groups, size).freedom for code in names])[..., None]
    return freedom.clip(by_kind.min(axis=0).clip(1), by_kind.sum(axis=0).clip(1))


def _joint(codes: Sequence[Integers], number: int) -> Integers:
    """Return numbers of the combinations of several codes, (rows,), with gaps.

    They stay small enough to be numbered by group too.
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
    """Return the effective number of units behind contrasts minus 1, (contrasts,).

    A unit adds its squared share of each group by the squared weight of the group: a group of few
    units makes them few as far as it has weight. Of one group, and of groups that share all their
    units evenly, it is that of the group.
    """
    length, number = int(units.unit.max()) + 1, contrasts.shape[1]
    squares = np.zeros((number, length))
    np.add.at(squares, (units.group, units.unit), (units.rows / size[units.group]) ** 2)
    added = contrasts**2 @ squares
    fourth = (added**2).sum(axis=1)
    result: Floats = added.sum(axis=1) ** 2 / np.where(fourth > 0, fourth, np.inf) - 1
    return np.where(result > FLAT, result, 0)


def _variance(products: Floats, contrasts: Floats) -> Floats:
    """Return the variances of contrasts, (contrasts, measures)."""
    result: Floats = ((contrasts @ products) * contrasts).sum(axis=2).T
    return result
