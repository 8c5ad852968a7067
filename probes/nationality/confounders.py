"""Effects of countries beside what goes with them: how long and how frequent names are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.probes.stats.estimate import DF, adjusted, finite, rounded
from plumbline.probes.stats.linear import centred, mixed
from plumbline.probes.stats.two_way import METHOD as TWO_WAY
from plumbline.probes.stats.two_way import Tested, replicated, two_way

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

    Floats = NDArray[np.float64]

TERMS = ("tokens", "log rank")
MOST = 0.9  # leverage of a row
ALONE = "none: names of one first or last word, or in one text; not in the model"
BLOCK = 20_000  # rows of the design held at once
AT_ONCE = 4  # coefficients whose parts of all rows are
RANK = 1e-12  # eigenvalues below, of columns of length 1, are none
VARIES = 1e-9  # standard deviations below are rounding
METHOD = f"mixed model (REML), source texts swept out, names random; {TWO_WAY}"


def effects(case: Case, ranks: NDArray[np.float64], confidence: float) -> pl.DataFrame:
    """Return the effects of countries beside those of tokens and frequency.

    Source texts are swept out, names have random intercepts. Countries are coded as distances from
    their mean. Names of some countries may vary more than those of others, and texts may do
    something with a country: standard errors are of sums over texts and names.
    """
    usable = replicated(case.country, case.sentence, case.units(), len(case.countries))
    left_out = [c for c, kept in zip(case.countries, usable, strict=True) if not kept]
    if left_out:
        ranks = ranks[usable[case.country]]
        case = case.of_countries(usable)
    if not case.countries:
        return pl.DataFrame()
    extra, varies = _covariates(case, ranks)
    after, before = (case.scores.values[rows, 0] for rows in (case.row, case.compared))
    outcome = centred(100 * (after - before), case.sentence)
    del after, before, ranks
    # a name of two countries is one of each: else they would be compared by what they share
    first = case.units()[0] * len(case.countries) + case.country
    names, group = np.unique(first, return_inverse=True)
    group = group.astype(np.int32)
    del first
    model = _Model(case, extra, outcome, group)
    # none: one country alone, a covariate that says what countries say, a classifier without effect
    if not model.full_rank() or outcome.std() < VARIES:
        return pl.DataFrame()
    fitted = mixed(model.sums, model.squares, model.sizes, case.sentences)
    # what each row adds to a coefficient: rows with one name weigh less than others together
    ratio = fitted.between / fitted.residual if fitted.residual else 0.0
    value, free = fitted.coefficients, len(case.countries) - 1
    inverse, mean = model.weighted(ratio)
    # the last country's is what the others lack to 0
    inverse = np.insert(inverse, free, -inverse[:, :free].sum(axis=1), axis=1)
    number = np.bincount(case.country)
    units, each = case.units(), []
    left = outcome - model.times(value)
    left *= number[case.country]
    del outcome
    for start in range(0, inverse.shape[1], AT_ONCE):
        some = range(inverse.shape[1])[start : start + AT_ONCE]
        added = np.empty((len(left), len(some)), order="F")
        for place, column in enumerate(some):
            added[:, place] = model.weights(inverse[:, column], mean, group)
            if column > free:
                added[:, place] /= _rest(added[:, place], case, group)
            added[:, place] *= left
        at = case.country, case.sentence, units
        each.append(two_way(added, *at, np.ones((1, len(number))), texts_alike=False))
    tested = Tested(*(np.concatenate(part, axis=1) for part in zip(*each, strict=True)))
    value = np.insert(value, free, -value[:free].sum())
    half = tested.half(confidence)[0]
    null = "0: the mean of the countries"
    terms = {f"country {c}": null for c in case.countries}
    terms |= {term: "0" for term, kept in zip(TERMS, varies, strict=True) if kept}
    columns = {"value": value, "low": value - half, "high": value + half}
    columns["p"] = tested.p(value[None])[0]
    columns[DF] = tested.freedom[0]
    table = pl.DataFrame({"term": list(terms), "null": list(terms.values())} | columns)
    alone = pl.DataFrame({"term": [f"country {c}" for c in left_out]}, {"term": pl.String})
    table = pl.concat([table, alone.with_columns(null=pl.lit(ALONE))], how="diagonal")
    table = table.fill_nan(None).with_columns(
        rows=pl.lit(len(left)),
        sd_names=pl.lit(finite(np.sqrt(fitted.between))),
        sd_rest=pl.lit(finite(np.sqrt(fitted.residual))),
        n=pl.lit(len(names)),
        cluster=pl.lit("first word of a name, of a country"),
        method=pl.lit(METHOD),
    )
    return rounded(adjusted(table), ("value", "low", "high"))


def _rest(weights: Floats, case: Case, group: NDArray[np.int32]) -> Floats:
    """Return the root of 1 - how far each row pulls what it is compared with to itself, (rows,).

    The mean of its text and, with the rows of its name, that of its country, and the slope.
    """
    square, size = np.bincount(group, weights**2), np.bincount(group)
    country = np.zeros(len(size), np.int32)
    country[group] = case.country
    pulled = square / square.sum() + size / np.bincount(case.country)[country]
    found: Floats = (1 / np.bincount(case.sentence))[case.sentence]
    found += pulled[group]
    found.clip(max=MOST, out=found)
    np.subtract(1, found, out=found)
    return np.sqrt(found, out=found)


def _covariates(case: Case, ranks: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return tokens and log ranks, texts swept out, where they vary, and which do."""
    known = ~np.isnan(ranks)
    rank = np.where(known, ranks, ranks[known].mean() if known.any() else 0.0)
    extra = centred(np.column_stack([case.tokens, rank]), case.sentence)
    varies = extra.std(axis=0) > VARIES
    return extra if varies.all() else extra[:, varies], varies


class _Model:
    """Countries, texts swept out, and what else there is; in blocks of rows, which may be many."""

    def __init__(
        self, case: Case, extra: Floats, outcome: Floats, group: NDArray[np.int32]
    ) -> None:
        texts, countries = case.shape
        cell = case.sentence * countries + case.country
        share = np.bincount(cell, minlength=texts * countries).reshape(texts, countries)
        self.share: Floats = share / np.maximum(share.sum(axis=1, keepdims=True), 1)
        self.case, self.extra = case, extra
        self.sizes = np.bincount(group).astype(np.float64)
        width = countries - 1 + extra.shape[1] + 1
        self.squares, self.sums = np.zeros((width, width)), np.zeros((len(self.sizes), width))
        for rows, x in self.blocks():
            both = np.column_stack([x, outcome[rows]])
            self.squares += both.T @ both
            np.add.at(self.sums, group[rows], both)

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield the design of some rows after the other, (rows, columns)."""
        for start in range(0, len(self.extra), BLOCK):
            rows = slice(start, start + BLOCK)
            coded: Floats = -self.share[self.case.sentence[rows]]
            coded[np.arange(len(coded)), self.case.country[rows]] += 1
            yield rows, np.column_stack([coded[:, :-1] - coded[:, -1:], self.extra[rows]])

    def times(self, of: Floats) -> Floats:
        """Return the design times a vector of its columns, (rows,)."""
        free = self.share.shape[1] - 1
        country = np.append(of[:free], -of[:free].sum())
        found: Floats = country[self.case.country]
        found -= (self.share @ country)[self.case.sentence]
        for extra, weight in zip(self.extra.T, of[free:], strict=True):
            found += weight * extra
        return found

    def weights(self, of: Floats, mean: Floats, group: NDArray[np.int32]) -> Floats:
        """Return by how much each row moves a coefficient, (rows,).

        ``of``: its column of the inverse of the weighted squares.
        """
        found = self.times(of)
        found -= (mean @ of)[group]
        return centred(found, self.case.sentence)  # it moves the mean of its text too

    def full_rank(self) -> bool:
        """Return whether the columns do not determine each other."""
        inner = self.squares[:-1, :-1]
        size = np.sqrt(np.diag(inner))
        if not len(size) or not size.all():
            return False
        return int(np.linalg.matrix_rank(inner / np.outer(size, size), RANK, True)) == len(size)

    def weighted(self, ratio: float) -> tuple[Floats, Floats]:
        """Return the inverse of the design's weighted squares, and what is taken off by name."""
        sums = self.sums[:, :-1]
        part = 1 - 1 / (1 + ratio * self.sizes)
        mean: Floats = (part / self.sizes)[:, None] * sums
        inner = self.squares[:-1, :-1] - mean.T @ sums
        inverse: Floats = np.linalg.inv(inner).astype(np.float64)
        return inverse, mean
