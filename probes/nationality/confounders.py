"""Effects of countries beside what goes with them: how long and how frequent names are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.readers.name_lists import KINDS
from plumbline.probes.stats.estimate import Estimate, adjusted, finite, rounded
from plumbline.probes.stats.linear import centred, dummies, mixed

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.nationality.cases import Case

TERMS = ("tokens", "log rank")


def effects(case: Case, ranks: NDArray[np.float64], confidence: float) -> pl.DataFrame:
    """Return the effects of countries beside those of tokens and frequency.

    Source texts are swept out, names have random intercepts. Countries are coded as distances from
    their mean.
    """
    response = 100 * case.change[:, 0]
    known = ~np.isnan(ranks)
    rank = np.where(known, ranks, ranks[known].mean() if known.any() else 0.0)
    labels = [case.countries[c] for c in case.country]
    coded = dummies(labels, [case.countries[-1], *case.countries[:-1]])
    if len(case.countries) > 1:
        coded = coded - (case.country == len(case.countries) - 1)[:, None]
    extra = np.column_stack([case.tokens, rank])
    extra = extra[:, centred(extra, case.sentence).std(axis=0) > 1e-9]
    terms = [
        name
        for name, column in zip(TERMS, (case.tokens, rank), strict=True)
        if centred(column, case.sentence).std() > 1e-9
    ]
    design = centred(np.column_stack([coded.reshape(len(labels), -1), extra]), case.sentence)
    first = [name.split(" ", 1)[0] for name in case.names]
    units = {name: i for i, name in enumerate(sorted(set(first)))}
    group = np.array([units[name] for name in first], dtype=np.int64)
    if not design.shape[1] or np.linalg.matrix_rank(design) < design.shape[1]:
        return (
            pl.DataFrame()
        )  # names of one country alone, or a covariate that says what the countries say
    outcome = centred(response, case.sentence)
    if outcome.std() < 1e-9:
        return pl.DataFrame()  # a classifier that ignores names
    fitted = mixed(outcome, design, group, confidence, absorbed=len(case.sentences))
    found = fitted.coefficients
    names = [*(f"country {c}" for c in case.countries[:-1]), *terms]
    rest: dict[str, Any] = {
        "rows": len(labels),
        "sd_names": finite(np.sqrt(fitted.between)),
        "sd_rest": finite(np.sqrt(fitted.residual)),
        "cluster": "first word of a name",
    }
    method = "t of a mixed model (REML), source texts swept out, names random"
    rows = [
        Estimate(found.value[i], found.low[i], found.high[i], len(units), method).row(
            term=name,
            null="0: the mean of the countries" if i < len(names) - len(terms) else "0",
            **rest,
        )
        | {"p": float(found.p[i])}
        for i, name in enumerate(names)
    ]
    return rounded(adjusted(pl.DataFrame(rows, infer_schema_length=None)))


def confounders(model: str, folder: Path) -> pl.DataFrame:
    """Return into how many tokens the names of countries are cut."""
    if not folder.is_dir():
        return pl.DataFrame()
    table = pl.concat([pl.read_parquet(p) for p in sorted(folder.glob("*.parquet"))])
    found = table.group_by("country", "kind").agg(
        names=pl.len(), tokens=pl.col("tokens").mean(), longest=pl.col("tokens").max()
    )
    named = pl.col("kind").replace_strict(dict(enumerate(KINDS)), return_dtype=pl.String)
    found = rounded(found.sort("country", "kind"), ("tokens",), p=())
    return found.with_columns(model=pl.lit(model), kind=named)
