"""Analysis ``anova``: how the shares of ``sentiment`` go with architecture, size and language.

Stańczak et al. (2023), Tables 5 and 8: linear models with treatment coding, two-way for the models
of one language, three-way for those of several; the two kinds of models are never in one design.
Main effects only: a model is one architecture of one size, so that interactions would leave nothing
to judge them by.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.errors import UserError
from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.politicians.person import GENDERS
from plumbline.probes.models.params import model as params_of
from plumbline.probes.politicians.words import columns
from plumbline.probes.politicians.words.sentiment_shares import CORRECTED, DEVIATIONS, READINGS
from plumbline.probes.stats.estimate import (
    DECIMALS,
    DETECTABLE,
    ESTIMATE,
    LEAST_DF,
    LEVEL,
    NEEDED,
    POWER,
    Estimate,
    adjusted,
    finite,
    significant,
    typed,
)
from plumbline.probes.stats.linear import (
    detectable_f,
    drop,
    dummies,
    estimable,
    jackknife,
    least_squares,
)

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
NAMES = tuple(DESIGNS)
GROUPS = ("monolingual", "multilingual")
FACTORS = ("intercept", "family", "size", "language", "all")
WHOLE = FACTORS.index("all")
UNITS = ("share", "word")
MODELS = ("models", "worlds", "null worlds")
RESPONSES = (*GENDERS, "male minus female")
INTERVALS = ("least squares", "jackknife")
LEAST_SQUARES = 0
CONFOUNDED = "not told apart from other factors by the models there are"
SATURATED = "no residual degrees of freedom: as many coefficients as rows"
REPEATED = "no p: rows of one model are not independent of each other"
UNSOUND = "no p: by latent-corrected genders differ where there is no difference, see `sentiment`"
TWICE = "no p: there are two sentiments, and the test of the first one is this one"
OF_WORDS = "no p: words of one model are not independent of each other"
PLACE = (
    Column("models", "label", "real models, worlds, null ones: never mixed", labels=MODELS),
    Column("design", "label", "factors: family, size, and language", labels=NAMES),
    Column("group", "label", "models of one language, or of several", labels=GROUPS),
    Column("language", "string", "the one language of a two-way design, else `all`"),
    columns.PART,
    Column("deviation", "label", "as in `sentiment`", labels=DEVIATIONS),
    Column("reading", "label", "as in `sentiment`", labels=READINGS),
    Column("response", "label", "whose share, in percent, or the difference", labels=RESPONSES),
    Column("sentiment", "label", "of which sentiment", labels=SENTIMENTS),
)
COEFFICIENTS = Schema(
    columns=(
        *PLACE,
        Column("factor", "label", "of which factor; intercept: all at reference", labels=FACTORS),
        Column("level", "string", "level of the factor; empty for the intercept"),
        Column("reference", "string", "level that it is compared with"),
        Column(
            "interval",
            "label",
            "least squares: as the paper; jackknife: over models, for unequal and clustered errors",
            labels=INTERVALS,
        ),
        Column("rows", "int64", "shares that the model was fitted to", minimum=0),
        Column("df", "float64", "degrees of freedom of t", minimum=0),
        *ESTIMATE,
        columns.REASON,
        columns.TESTED,
    ),
    key=(*(c.name for c in PLACE), "factor", "level", "interval"),
)
TESTS = Schema.keyed(
    (
        *PLACE,
        Column("factor", "label", "tested given the others (type II); or all", labels=FACTORS),
        Column("unit", "label", "rows of the fit: shares, or each word of them", labels=UNITS),
    ),
    Column("levels", "int64", "levels of the factor there are; of all: levels tested", minimum=0),
    Column("rows", "int64", "shares, or words, that the model was fitted to", minimum=0),
    Column("df", "int64", "degrees of freedom of the factor", minimum=0),
    Column("residual_df", "int64", "residual degrees of freedom", minimum=0),
    Column("f", "float64", "F statistic; null where it cannot be had", nullable=True, minimum=0),
    columns.share("p", "of F, errors normal and equal", nullable=True),
    columns.share("p_bh", "Benjamini-Hochberg", nullable=True),
    Column(
        "detectable",
        "float64",
        "effects of the factor, in points, that p would find at .05 with power .8: their root mean "
        "square over shares, less what other factors explain; null where there is no test, or "
        "with fewer than 5 residual degrees of freedom",
        nullable=True,
        minimum=0,
    ),
    Column(
        "detectable_bh",
        "float64",
        "the same of p_bh, at the level that one more finding of this family needs",
        nullable=True,
        minimum=0,
    ),
    columns.REASON,
    columns.TESTED,
)
SCHEMAS = {"coefficients": COEFFICIENTS, "tests": TESTS}


class Params(Section):
    """Reference levels, and how intervals are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    references: dict[Kind, dict[Literal["family", "size", "language"], str]] = Field(
        description="reference levels of each design; where one is not there, the first by the "
        "alphabet"
    )
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")


class Design(NamedTuple):
    """The rows of one linear model, and the columns of its design."""

    rows: pl.DataFrame  # model, family, size, language, and a share in percent for each sentiment
    matrix: Floats
    columns: tuple[tuple[str, str, str], ...]  # factor, level, reference
    levels: dict[str, tuple[str, ...]]  # of each factor, reference first


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Fit all designs, into ``coefficients`` and ``tests``; columns as in :data:`SCHEMAS`.

    Raises UserError if no model has a family and a size.
    """
    shares = pl.read_parquet(inputs.tables("sentiment") / "shares.parquet")
    facts = [(name, params_of(name, inputs.data)) for name in inputs.models]
    controls = (None, "positive", "negative")  # as MODELS
    described = pl.DataFrame(
        [
            {
                "model": n,
                "family": f.family,
                "size": f.size,
                "models": controls.index(f.control),
                "declared": len(f.languages or ()),
            }
            for n, f in facts
            if f.family and f.size
        ]
    )
    if described.is_empty():
        raise UserError(
            "models: none has family and size; give them to those that analysis.anova is to compare"
        )
    asked = pl.max_horizontal("declared", pl.col("language").n_unique().over("model"))
    table = wide(shares).join(described, on="model").with_columns(group=(asked > 1).cast(pl.Int64))
    found: dict[str, list[dict[str, Any]]] = {"coefficients": [], "tests": []}
    keys = ["models", "pos", "deviation", "reading", "response"]
    for values, part in table.sort(*keys).group_by(*keys, maintain_order=True):
        place = dict(zip(keys, values, strict=True))
        for number, group, language, rows in _designs(part, worlds=place["models"] > 0):
            at = place | {"design": number, "group": group, "language": language}
            design = NAMES[number]
            built = build(rows, DESIGNS[design], params.references.get(design, {}))
            lacking = {s: n for s in SENTIMENTS if (n := rows[s].null_count())}
            there = [s for s in SENTIMENTS if s not in lacking]
            twice = len(there) == 2 and {*lacking.values()} == {len(rows)}
            for sentiment in there:  # those that words of all rows can have
                y = rows[sentiment].to_numpy().astype(np.float64)
                own = at | {"sentiment": SENTIMENTS.index(sentiment), "rows": len(y)}
                none = TWICE if twice and sentiment == there[1] else None
                none = UNSOUND if place["deviation"] == CORRECTED else none
                each = _coefficients(built, y, params.confidence), _tests(built, y)
                for name, rows_of in zip(found, each, strict=True):
                    for row in rows_of:
                        no_p = {"p": None, "reason": row["reason"] or none} if none else {}
                        found[name].append(own | row | no_p)
    tables: dict[str, pl.DataFrame] = {}
    for name, by in (("coefficients", ["interval"]), ("tests", [])):
        # a family is all tests of a deviation and reading; intercepts are no tests
        fitted = pl.DataFrame(found[name], infer_schema_length=None)
        fitted = fitted.with_columns(test=pl.when(pl.col("factor") > 0).then("p"))
        fitted = adjusted(fitted, "test", over=["models", "deviation", "reading", *by])
        fitted = _with_detectable(fitted) if name == "tests" else fitted
        tested = pl.when(pl.col("test").is_not_null()).then("family_test").otherwise(0)
        fitted = fitted.with_columns(p_bh="test_bh", tested=tested)
        tables[name] = typed(fitted, SCHEMAS[name], params.confidence)
    _assert_sums(tables["coefficients"])
    return tables


def wide(shares: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each share triple: percent of each sentiment, for each response.

    And ``words``, how many the shares are of; null of the difference, which is of two lists.

    ``shares``: the table ``shares`` of ``sentiment``.
    """
    keys = ["model", "language", "pos", "deviation", "reading"]
    percent = [
        (100 * pl.col("hits") / pl.col("top_k"))
        .filter(pl.col("sentiment") == s)
        .first()
        .alias(name)
        for s, name in enumerate(SENTIMENTS)
    ]
    words = pl.col("top_k").first().alias("words")
    each = shares.group_by(*keys, "gender").agg(*percent, words).rename({"gender": "response"})
    men, women = (
        each.filter(pl.col("response") == GENDERS.index(g)).drop("response")
        for g in ("male", "female")
    )
    apart = men.join(women, on=keys, suffix="_women").select(
        *keys,
        pl.lit(RESPONSES.index("male minus female"), dtype=pl.Int64).alias("response"),
        *(pl.col(s) - pl.col(f"{s}_women") for s in SENTIMENTS),
        pl.lit(None, dtype=each.schema["words"]).alias("words"),
    )
    return pl.concat([each.select(apart.columns), apart]).sort(*keys, "response")


def _designs(part: pl.DataFrame, *, worlds: bool) -> Iterator[tuple[int, int, str, pl.DataFrame]]:
    """Yield design, group of models, language and rows.

    Two-way in each language, of the models of one language and of those of several apart; three-way
    over the models of several. A world has one language: the three-way design is over all of them.
    """
    keys = ["language", "group"]
    for rows in part.sort(keys, maintain_order=True).partition_by(keys):
        yield 0, rows["group"][0], rows["language"][0], rows
    group = 0 if worlds else 1
    several = part.filter(group=group)
    if several["language"].n_unique() > 1:
        yield 1, group, "all", several


def build(rows: pl.DataFrame, factors: tuple[str, ...], references: dict[Any, str]) -> Design:
    """Return the design of some rows: an intercept, and treatment coding of each factor.

    A factor with one level has no column.
    """
    parts = [np.ones((len(rows), 1))]
    columns = [("intercept", "", "")]
    levels = {}
    for factor in factors:
        there = sorted(set(rows[factor]))
        first = references.get(factor)
        there.sort(key=lambda level: (level != first, level))
        levels[factor] = tuple(there)
        if len(there) > 1:
            parts.append(dummies(rows[factor].to_list(), there))
            columns += [(factor, level, there[0]) for level in there[1:]]
    return Design(rows, np.hstack(parts), tuple(columns), levels)


def _coefficients(design: Design, y: Floats, confidence: float) -> Iterator[dict[str, Any]]:
    models = design.rows["model"].to_list()
    there, rank = estimable(design.matrix), int(np.linalg.matrix_rank(design.matrix))
    alone = [  # factors of one level have no column
        (factor, found[0], found[0]) for factor, found in design.levels.items() if len(found) == 1
    ]
    fits = (
        (least_squares(y, design.matrix, confidence), "share", len(y)),
        (jackknife(y, design.matrix, models, confidence), "model", len(set(models))),
    )
    for (i, (fit, cluster, n)), (c, column) in product(
        enumerate(fits), enumerate([*design.columns, *alone])
    ):
        factor, level, reference = column
        numbers, freedom = [float("nan")] * 4, 0.0
        reason: str | None = f"the factor has one level, {level}"
        if c < len(there):
            numbers, reason = [float(x[c]) for x in fit[:4]], None
            freedom = finite(fit.freedom[c]) or 0.0
            if not there[c]:
                reason = CONFOUNDED
            elif rank == len(y):
                reason = SATURATED
            elif np.isnan(numbers[1]):
                reason = "rests on one model"
            elif i == LEAST_SQUARES and len(set(models)) < len(y):
                numbers[3], reason = float("nan"), REPEATED
        value, low, high, p = numbers
        yield (
            Estimate(value, low, high, n, f"t, {INTERVALS[i]}")
            .at(confidence)
            .row(
                factor=FACTORS.index(factor),
                level=level,
                reference=reference,
                interval=i,
                df=freedom,
                reason=reason,
                cluster=cluster,
                null="0: as the reference" if factor != "intercept" else "0",
                p=p,
            )
        )


def _tests(design: Design, y: Floats) -> Iterator[dict[str, Any]]:
    """Yield F of each factor, and of all together, of shares and of their words one by one.

    The paper's one p a column can only be of all factors, and of more rows than it has models:
    eleven leave its eight coefficients three residual degrees of freedom.
    """
    known = design.rows["words"]
    factors = [(FACTORS.index(name), len(levels)) for name, levels in design.levels.items()]
    factors.append((WHOLE, 1 + sum(len(levels) - 1 for levels in design.levels.values())))
    units: list[tuple[Floats | None, float]] = [(None, 0.0)]
    if not known.null_count():
        sizes = known.to_numpy().astype(np.float64)
        units.append((sizes, float((sizes * y * (100 - y)).sum())))
    for (unit, (each, within)), (factor, levels) in product(enumerate(units), factors):
        own = np.array([factor in (FACTORS.index(c[0]), WHOLE) for c in design.columns])
        own[0] = False  # the intercept
        found = drop(y, design.matrix, np.flatnonzero(own), each, within)
        p, reason = None, None
        if levels < 2:
            reason = "the factors have one level each"
            if factor != WHOLE:
                reason = f"the factor has one level, {design.levels[FACTORS[factor]][0]}"
        elif not found.freedom:
            reason = CONFOUNDED
        elif found.residual < 1:
            reason = SATURATED
        elif np.isnan(found.f):
            reason = "the residuals are all 0"
        elif unit:
            reason = OF_WORDS
        elif design.rows["model"].n_unique() < len(y):
            reason = REPEATED
        else:
            p = significant(found.p)
        yield {
            "factor": factor,
            "unit": unit,
            "levels": levels,
            "rows": len(y) if each is None else int(each.sum()),
            "df": found.freedom,
            "residual_df": found.residual,
            "f": finite(found.f),
            "error": finite(found.error),
            "p": p,
            "reason": reason,
        }


def _with_detectable(tests: pl.DataFrame) -> pl.DataFrame:
    """Add what F tests would find, in the units of the response; see :func:`detectable_f`."""
    keys, told = TESTS.key, pl.col("p").is_not_null() & (pl.col("residual_df") >= LEAST_DF)
    some = tests.filter(told)
    error = some["error"].to_numpy()
    df, residual, rows = (some[name].to_numpy() for name in ("df", "residual_df", "rows"))
    levels = (np.full(len(some), LEVEL), some[NEEDED].to_numpy())
    found = {
        name: pl.Series(detectable_f(df, residual, rows, level, POWER) * error)
        .fill_nan(None)
        .round(DECIMALS)
        for name, level in zip(DETECTABLE, levels, strict=True)
    }
    own = some.select(keys).with_columns(**found)
    return tests.drop(NEEDED).join(own, on=keys, how="left", maintain_order="left")


def _assert_sums(table: pl.DataFrame) -> None:
    """Hold that shares sum to 100: so do the intercepts; all other coefficients sum to 0."""
    keys = [name for name in COEFFICIENTS.key if name != "sentiment"]
    sums = table.drop_nulls("value").group_by(keys).agg(pl.col("value").sum(), number=pl.len())
    sums = sums.filter(number=len(SENTIMENTS))
    whole = (pl.col("factor") == 0) & (pl.col("response") < len(GENDERS))
    off = pl.col("value") - pl.when(whole).then(100.0).otherwise(0.0)
    wrong = sums.filter(off.abs() >= 1e-4)
    assert wrong.is_empty(), wrong
