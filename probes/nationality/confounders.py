"""Effects of countries beside what goes with them: how long and how frequent names are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.stats.estimate import adjusted, finite, rounded
from plumbline.probes.stats.linear import centred, dummies, mixed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

TERMS = ("tokens", "log rank")
VARIES = 1e-9  # standard deviations below are rounding
METHOD = "t of a mixed model (REML), source texts swept out, names random"


def effects(case: Case, ranks: NDArray[np.float64], confidence: float) -> pl.DataFrame:
    """Return the effects of countries beside those of tokens and frequency.

    Source texts are swept out, names have random intercepts. Countries are coded as distances from
    their mean.
    """
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
    first, group = np.unique([name.split(" ", 1)[0] for name in case.names], return_inverse=True)
    fitted = mixed(outcome, design, group, confidence, absorbed=len(case.sentences))
    found = fitted.coefficients
    null = "0: the mean of the countries"
    terms = {f"country {c}": null for c in case.countries[:-1]}
    terms |= {term: "0" for term, kept in zip(TERMS, varies, strict=True) if kept}
    columns = dict(zip(("value", "low", "high", "p"), found[:4], strict=True))
    table = pl.DataFrame({"term": list(terms), "null": list(terms.values())} | columns)
    table = table.with_columns(
        rows=pl.lit(len(labels)),
        sd_names=pl.lit(finite(np.sqrt(fitted.between))),
        sd_rest=pl.lit(finite(np.sqrt(fitted.residual))),
        n=pl.lit(len(first)),
        cluster=pl.lit("first word of a name"),
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
