"""Analysis ``anova``: the shares in ``sentiment`` by architecture, size and language.

Stańczak et al. (2023), Tables 5 and 8, fit linear models with treatment coding: two-way designs for
monolingual and three-way designs for multilingual models, which never share a design. Only main
effects are fitted, since interactions would leave no residual degrees of freedom with one model per
architecture and size.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.words import word_counts
from plumbline.probes.politicians.words.sentiment_shares import DEVIATIONS, READINGS
from plumbline.probes.politicians.words.word_counts import (
    CONTROLS,
    MODELS,
    RESPONSES,
    category,
    with_difference,
)
from plumbline.probes.stats.estimate import (
    Estimate,
    adjusted,
    estimates,
    finite,
    significant,
    typed,
)
from plumbline.probes.stats.linear import drop, dummies, estimable, jackknife, least_squares

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Floats = NDArray[np.float64]

Kind = Literal["two-way", "three-way"]
TABLES = ("sentiment",)
DESIGNS: dict[Kind, tuple[str, ...]] = {
    "two-way": ("family", "size"),
    "three-way": ("family", "size", "language"),
}
GROUPS = ("monolingual", "multilingual")
FACTORS = ("intercept", "family", "size", "language", "all")
REASONS = {
    "confounded": "these models do not separate the factor from others",
    "saturated": "there are as many coefficients as rows",
    "one level": "the factor has one level",
    "one model": "the estimate is based on one model",
    "no residuals": "the residuals are all 0",
    "repeated": "rows of one model are not independent",
    "twice": "only two sentiments occur, and the test repeats that of the first",
}
REASON = category(
    "reason",
    tuple(REASONS),
    "reason for a missing value or p: " + "; ".join(map(": ".join, REASONS.items())),
    nullable=True,
)
PLACE = (
    category("models", MODELS, "models, worlds (control models) or null worlds; never pooled"),
    category("design", tuple(DESIGNS), "factors: family and size, and language if three-way"),
    category("group", GROUPS, "models of one language, or of several languages"),
    Column("language", "string", "language of a two-way design; `all` in a three-way design"),
    word_counts.PART,
    category("deviation", DEVIATIONS, "deviation that ranks words, as in `sentiment`"),
    category("reading", READINGS, "ranked units, as in `sentiment`"),
    category("response", RESPONSES, "gender whose share (percent) is modelled, or the difference"),
    category("sentiment", SENTIMENTS, "sentiment of the share"),
    category(
        "factor", FACTORS, "factor; intercept: all at reference levels; all: all factors together"
    ),
)
COEFFICIENTS = Schema.keyed(
    (
        *PLACE,
        Column("level", "string", "level of the factor; empty for the intercept"),
        category(
            "interval",
            ("least squares", "jackknife"),
            "least squares, as in the paper; or jackknife over models, valid for clustered errors",
        ),
    ),
    Column("reference", "string", "reference level"),
    Column("df", "float64", "degrees of freedom of the t distribution", minimum=0),
    *estimates(
        cluster="least squares: share; jackknife: model",
        method="95% t",
        null="0: equal to the reference level",
    ),
    REASON,
)
TESTS = Schema.keyed(
    PLACE,
    Column("df", "int64", "degrees of freedom of the factor, given the other factors", minimum=0),
    Column("residual_df", "int64", "residual degrees of freedom", minimum=0),
    Column("f", "float64", "F statistic; null if undefined", nullable=True, minimum=0),
    word_counts.share("p", "p of the F test, for normal errors of equal variance", nullable=True),
    word_counts.share("p_bh", "p, Benjamini-Hochberg", nullable=True),
    REASON,
)
SCHEMAS = {"coefficients": COEFFICIENTS, "tests": TESTS}


class Params(Section):
    """Reference levels and confidence level."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    references: dict[Kind, dict[Literal["family", "size", "language"], str]] = Field(
        description="reference levels by design; by default, the first level in alphabetical order"
    )
    confidence: float = Field(gt=0.5, lt=1, description="confidence level of the intervals")


class Design(NamedTuple):
    """Design of one linear model."""

    models: list[str]  # name of the model of each row
    matrix: Floats
    columns: tuple[tuple[str, str, str], ...]  # factor, level, reference
    levels: dict[str, tuple[str, ...]]  # levels by factor, with the reference level first


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Fit all designs, and return ``coefficients`` and ``tests`` as in :data:`SCHEMAS`.

    Raises UserError if no model declares a family and a size.
    """
    shares = pl.read_parquet(inputs.tables("sentiment") / "shares.parquet")
    facts = {name: params_of(name, inputs.data) for name in inputs.models}
    described = [
        (name, fact.family, fact.size, CONTROLS[fact.control], len(fact.languages or ()))
        for name, fact in facts.items()
        if fact.family and fact.size
    ]
    if not described:
        raise UserError(
            "models: no model declares family and size; add both to the models to compare"
        )
    columns = ["model", "family", "size", "models", "declared"]
    table = wide(shares).join(pl.DataFrame(described, columns, orient="row"), on="model")
    number = pl.max_horizontal("declared", pl.col("language").n_unique().over("model"))
    group = pl.when(number > 1).then(pl.lit(GROUPS[1])).otherwise(pl.lit(GROUPS[0]))
    table = table.with_columns(group=group)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in SCHEMAS}
    keys = ["models", "pos", "deviation", "reading", "response"]
    declared = [COEFFICIENTS[name] for name in keys]
    ordered = table.sort(pl.col(c.name).cast(pl.Enum(c.labels)) for c in declared)
    for values, part in ordered.group_by(*keys, maintain_order=True):
        cell = dict(zip(keys, values, strict=True))
        for kind, models, language, data in _designs(part, worlds=cell["models"] != MODELS[0]):
            key_of = cell | {"design": kind, "group": models, "language": language}
            design = build(data, DESIGNS[kind], params.references.get(kind, {}))
            nulls = {s: data[s].null_count() for s in SENTIMENTS}
            # sentiments with a share in every row
            sentiments = [s for s in SENTIMENTS if not nulls[s]]
            twice = len(sentiments) == 2 and max(nulls.values()) == len(data)
            for sentiment in sentiments:
                y = data[sentiment].to_numpy().astype(np.float64)
                untested = "twice" if twice and sentiment == sentiments[1] else None
                key = key_of | {"sentiment": sentiment}
                fitted = _coefficients(design, y, params.confidence), _tests(design, y)
                for name, results in zip(SCHEMAS, fitted, strict=True):
                    for row in results:
                        no_p = {"p": None, "reason": row["reason"] or untested} if untested else {}
                        rows[name].append(key | row | no_p)
    tables: dict[str, pl.DataFrame] = {}
    for name, by in (("coefficients", ["interval"]), ("tests", [])):
        # the tests of each deviation and reading form a family; intercepts are not tested
        tests = pl.DataFrame(rows[name], infer_schema_length=None)
        tests = tests.with_columns(test=pl.when(pl.col("factor") != "intercept").then("p"))
        tests = adjusted(tests, "test", over=["models", "deviation", "reading", *by])
        tests = tests.with_columns(p_bh="test_bh", family="family_test")
        tables[name] = typed(tests, SCHEMAS[name], params.confidence)
    return tables


def wide(shares: pl.DataFrame) -> pl.DataFrame:
    """Return a row per response and ranking, with the percentage of each sentiment.

    ``shares``: table ``shares`` of the analysis ``sentiment``.
    """
    keys = ["model", "language", "pos", "deviation", "reading"]
    percent = [
        # shares in the table are rounded, but the number of hits is an integer
        (100 * (pl.col("value") * pl.col("top_k")).round() / pl.col("top_k"))
        .filter(sentiment=name)
        .first()
        .alias(name)
        for name in SENTIMENTS
    ]
    single = shares.group_by(*keys, "gender").agg(percent)
    return with_difference(single, keys, SENTIMENTS).sort(*keys, "response")


def _designs(part: pl.DataFrame, *, worlds: bool) -> Iterator[tuple[Kind, str, str, pl.DataFrame]]:
    """Yield, for each design, its kind, group of models, language and rows.

    There is a two-way design per language, separately for monolingual and multilingual models, and
    a three-way design over multilingual models. Since a world (a control model) has only one
    language, the three-way design of worlds includes all worlds.
    """
    keys = ["language", "group"]
    for rows in part.sort(keys, maintain_order=True).partition_by(keys):
        yield "two-way", rows["group"][0], rows["language"][0], rows
    group = GROUPS[0] if worlds else GROUPS[1]
    multilingual = part.filter(group=group)
    if multilingual["language"].n_unique() > 1:
        yield "three-way", group, "all", multilingual


def build(rows: pl.DataFrame, factors: tuple[str, ...], references: dict[Any, str]) -> Design:
    """Build a design with an intercept and treatment coding of each factor.

    A factor with one level has no column.
    """
    parts = [np.ones((len(rows), 1))]
    columns = [("intercept", "", "")]
    levels = {}
    for factor in factors:
        order = sorted(set(rows[factor]))
        first = references.get(factor)
        order.sort(key=lambda level: (level != first, level))
        levels[factor] = tuple(order)
        if len(order) > 1:
            parts.append(dummies(rows[factor].to_list(), order))
            columns += [(factor, level, order[0]) for level in order[1:]]
    return Design(rows["model"].to_list(), np.hstack(parts), tuple(columns), levels)


def _coefficients(design: Design, y: Floats, confidence: float) -> Iterator[dict[str, Any]]:
    number = len(set(design.models))
    is_estimable, rank = estimable(design.matrix), int(np.linalg.matrix_rank(design.matrix))
    fits = {
        "least squares": (least_squares(y, design.matrix, confidence), len(y)),
        "jackknife": (jackknife(y, design.matrix, design.models, confidence), number),
    }
    for interval, (fit, n) in fits.items():
        for c, (factor, level, reference) in enumerate(design.columns):
            value, low, high, p = (float(x[c]) for x in fit[:4])
            reasons = {
                "confounded": not is_estimable[c],
                "saturated": rank == len(y),
                "one model": np.isnan(low),
                "repeated": interval == "least squares" and number < len(y),
            }
            reason = next((name for name, holds in reasons.items() if holds), None)
            key: dict[str, Any] = {"interval": interval, "factor": factor, "level": level}
            key |= {"reference": reference, "reason": reason}
            key["df"] = finite(fit.freedom[c]) or 0.0
            yield Estimate(value, low, high, n).row(p=None if reason == "repeated" else p, **key)
        for factor, levels in design.levels.items():
            if len(levels) == 1:  # such a factor has no column
                key = {"interval": interval, "factor": factor, "level": levels[0]}
                key |= {"reference": levels[0], "reason": "one level", "df": 0.0}
                yield Estimate(math.nan, math.nan, math.nan, n).row(**key)


def _tests(design: Design, y: Floats) -> Iterator[dict[str, Any]]:
    """Yield the F test of each factor, and of all factors together."""
    factors = {name: len(levels) for name, levels in design.levels.items()}
    factors["all"] = 1 + sum(levels - 1 for levels in factors.values())
    for factor, levels in factors.items():
        tested = [i > 0 and factor in (name, "all") for i, (name, *_) in enumerate(design.columns)]
        test = drop(y, design.matrix, np.flatnonzero(tested))
        reasons = {
            "one level": levels < 2,
            "confounded": not test.freedom,
            "saturated": test.residual < 1,
            "no residuals": np.isnan(test.f),
            "repeated": len(set(design.models)) < len(y),
        }
        reason = next((name for name, holds in reasons.items() if holds), None)
        row = {"factor": factor, "df": test.freedom, "residual_df": test.residual}
        p = None if reason else significant(test.p)
        yield row | {"f": finite(test.f), "p": p, "reason": reason}
