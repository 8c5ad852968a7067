"""Effects of countries beside what goes with them: how long and how frequent names are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.nationality.cases import of_countries
from plumbline.probes.stats.estimate import adjusted, finite, rounded
from plumbline.probes.stats.linear import centred, dummies, mixed
from plumbline.probes.stats.two_way import METHOD as TWO_WAY
from plumbline.probes.stats.two_way import estimable, two_way

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

TERMS = ("tokens", "log rank")
MOST = 0.9  # leverage of one name
ALONE = "none: names of one first or last word, or in one text; not in the model"
VARIES = 1e-9  # standard deviations below are rounding
METHOD = f"mixed model (REML), source texts swept out, names random; {TWO_WAY}"


def effects(case: Case, ranks: NDArray[np.float64], confidence: float) -> pl.DataFrame:
    """Return the effects of countries beside those of tokens and frequency.

    Source texts are swept out, names have random intercepts. Countries are coded as distances from
    their mean. Names of some countries may vary more than those of others, and texts may do
    something with a country: standard errors are of sums over texts and names.
    """
    usable = estimable(case.country, case.sentence, case.units(), len(case.countries))
    left_out = [c for c, kept in zip(case.countries, usable, strict=True) if not kept]
    if left_out:
        ranks = ranks[usable[case.country]]
        case = of_countries(case, usable)
    if not case.countries:
        return pl.DataFrame()
    known = ~np.isnan(ranks)
    rank = np.where(known, ranks, ranks[known].mean() if known.any() else 0.0)
    labels = [case.countries[c] for c in case.country]
    coded = dummies(labels, [case.countries[-1], *case.countries[:-1]])
    if len(case.countries) > 1:
        coded = coded - (case.country == len(case.countries) - 1)[:, None]
    extra = centred(np.column_stack([case.tokens, rank]), case.sentence)
    varies = extra.std(axis=0) > VARIES
    coded = centred(coded.reshape(len(labels), -1), case.sentence)
    design = np.column_stack([coded, extra[:, varies]])
    outcome = centred(100 * case.change[:, 0], case.sentence)
    # none: one country alone, a covariate that says what countries say, a classifier without effect
    if (
        not design.shape[1]
        or np.linalg.matrix_rank(design) < design.shape[1]
        or outcome.std() < VARIES
    ):
        return pl.DataFrame()
    # a name of two countries is one of each: else they would be compared by what they share
    words = [name.split(" ", 1)[0] for name in case.names]
    pairs = [f"{label} {word}" for label, word in zip(labels, words, strict=True)]
    first, group = np.unique(pairs, return_inverse=True)
    sentences = len(np.unique(case.sentence))
    fitted = mixed(outcome, design, group, confidence, absorbed=sentences)
    # what each row adds to a coefficient: rows with one name weigh less than others together
    ratio = fitted.between / fitted.residual if fitted.residual else 0.0
    part = 1 - 1 / (1 + ratio * np.bincount(group))[group, None]
    weighted = design - part * (design - centred(design, group))
    value = fitted.coefficients.value
    inside = weighted @ np.linalg.inv(design.T @ weighted)
    added = inside * (outcome - design @ value)[:, None]
    free = len(case.countries) - 1
    for column in range(free, len(value)):  # names far from the others pull the line to themselves
        weight = np.bincount(group, inside[:, column] ** 2)
        added[:, column] /= np.sqrt(1 - (weight / weight.sum()).clip(max=MOST))[group]
    # the last country's is what the others lack to 0
    value, added = (
        np.insert(a, free, -a[..., :free].sum(axis=-1), axis=-1) for a in (value, added)
    )
    number = np.bincount(case.country)
    tested = two_way(
        *(added * number[case.country, None], case.country, case.sentence, case.units()),
        np.ones((1, len(number))),
        texts_alike=False,
    )
    half = tested.half(confidence)[0]
    null = "0: the mean of the countries"
    terms = {f"country {c}": null for c in case.countries}
    terms |= {term: "0" for term, kept in zip(TERMS, varies, strict=True) if kept}
    columns = {"value": value, "low": value - half, "high": value + half}
    columns["p"] = tested.p(value[None])[0]
    table = pl.DataFrame({"term": list(terms), "null": list(terms.values())} | columns)
    alone = pl.DataFrame({"term": [f"country {c}" for c in left_out]}, {"term": pl.String})
    table = pl.concat([table, alone.with_columns(null=pl.lit(ALONE))], how="diagonal")
    table = table.fill_nan(None).with_columns(
        rows=pl.lit(len(labels)),
        sd_names=pl.lit(finite(np.sqrt(fitted.between))),
        sd_rest=pl.lit(finite(np.sqrt(fitted.residual))),
        n=pl.lit(len(first)),
        cluster=pl.lit("first word of a name, of a country"),
        method=pl.lit(METHOD),
    )
    return rounded(adjusted(table), ("value", "low", "high"))


def confounders(folder: Path) -> pl.DataFrame:
    """Return into how many tokens the names of countries are cut."""
    if not folder.is_dir():
        return pl.DataFrame()
    table = pl.concat([pl.read_parquet(p) for p in sorted(folder.glob("*.parquet"))])
    found = table.group_by("country", "kind").agg(
        names=pl.len(), tokens=pl.col("tokens").mean(), longest=pl.col("tokens").max()
    )
    named = pl.col("kind").replace_strict(dict(enumerate(KINDS)), return_dtype=pl.String)
    return rounded(found.sort("country", "kind"), ("tokens",), p=()).with_columns(kind=named)
