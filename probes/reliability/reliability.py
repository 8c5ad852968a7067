"""Analysis ``reliability``: sources of variance in the scores of all five studies.

Recorded responses yield variance components, the agreement of templates, seeds and models, and
shares of valid responses. If a facet has fewer than three levels, a reason replaces the estimate;
invalid responses are not imputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.probes.reliability.scores import FACETS, READ, scores
from plumbline.probes.stats.estimate import Estimate, Table, estimates, finite
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.reliability import FLAT, FORMS, LEAST, alpha, icc
from plumbline.probes.stats.variance_parts import parts_of, reml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Row = dict[str, Any]

DATASETS = ("lexica", "emotions", "statements", "counterfactuals")
OUTPUTS = ("associations",)
BESIDE = ("completions", "agreement", "stances", "classification")  # probes run on other models
NONE = Estimate(float("nan"), float("nan"), float("nan"), 0)
ENOUGH = 0.5  # minimum share of valid responses
POOLED = ("model", "language")  # facets that only estimates over all models or all languages have
ALPHA = "alpha"


class Params(Section):
    """Settings for the intervals of variance components."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    confidence: float = Field(0.95, gt=0.5, lt=1, description="level of the intervals")
    seed: int = Field(1, ge=0, description="seed of the draws")
    draws: int = Field(1000, ge=100, description="number of draws of pivotal quantities")
    reml_scores: int = Field(800, ge=0, description="maximum scores for REML; 0 for no REML")


PLACE = (
    Column("probe", "string", "probe of the scored responses"),
    Column("measure", "string", "kind of score, see docs/methods/reliability.md"),
    Column("scale", "string", "questionnaire and axis, part of speech, or config; may be empty"),
    Column("language", "string", "language of the prompts; empty for all languages"),
    Column("model", "string", "name of the model in params.yaml; empty for all models"),
)
REASON = Column("reason", "string", "reason for a missing estimate; empty otherwise")
SCHEMAS = {
    "parts": Schema.keyed(
        (
            *PLACE,
            Column("term", "string", "facet, interacting facets (with x), or rest"),
        ),
        *estimates(
            cluster="level of the facet",
            method="95% generalized pivotal quantities of ANOVA, Henderson's methods I and III",
        ),
        Column("unbiased", "float64", "unbiased estimate, which may be negative", nullable=True),
        Column("share", "float64", "share of the sum of all components", nullable=True),
        Column("reml", "float64", "estimate by restricted maximum likelihood", nullable=True),
        Column("levels", "int64", "number of levels, or of cells of an interaction", minimum=0),
        REASON,
    ),
    "consistency": Schema.keyed(
        (
            *PLACE,
            Column("cases", "string", "rows of the grid: statements, models or checkpoints"),
            Column(
                "items",
                "string",
                "columns of the grid: templates, orders, seeds, models or statements",
            ),
            Column("coefficient", "category", "reliability coefficient", labels=(*FORMS, ALPHA)),
        ),
        *estimates(cluster="case", method="95% F interval, McGraw and Wong (1996)"),
        Column("n_items", "int64", "number of items", minimum=0),
        REASON,
    ),
    "valid": Schema.keyed(
        (
            *PLACE,
            Column("facet", "string", "facet; empty for all responses"),
            Column("level", "string", "template, order or seed"),
        ),
        *estimates(cluster="statement", method="95% Wilson, for the effective number of responses"),
        Column("responses", "int64", "number of responses", minimum=1),
    ),
}


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all probes, with the columns of :data:`SCHEMAS`."""
    tables = {name: Table(schema, params.confidence) for name, schema in SCHEMAS.items()}
    for probe in READ:
        table = scores(probe, inputs)
        for (measure, scale), scored in table.group_by("measure", "scale", maintain_order=True):
            key = {"probe": probe, "measure": measure, "scale": scale}
            for name, row in _rows(scored, params):
                tables[name].rows.append(key | row)
    return {name: table.frame().sort(SCHEMAS[name].key) for name, table in tables.items()}


def _rows(table: pl.DataFrame, params: Params) -> Iterator[tuple[str, Row]]:
    """Yield the rows for one measure and scale, each preceded by the name of its table."""
    itself = _common_templates(table.filter(respondent=""))
    for (language,), rows in itself.sort("language").group_by("language", maintain_order=True):
        for (model,), responses in rows.sort("model").group_by("model", maintain_order=True):
            where: Row = {"language": language, "model": model}
            yield from _valid(responses, where, params)
            yield from _parts(responses, where, FACETS, params)
            for raters in ("template", "order", "seed"):
                if raters == "template" or responses[raters].n_unique() > 1:
                    yield from _consistency(responses, where, ("statement", raters), FORMS, params)
            states = table.filter(**where)
            if states["respondent"].n_unique() > 1:
                axes = ("respondent", "statement")
                yield from _consistency(states, where, axes, (ALPHA,), params)
        answered, where = _answered(rows), {"language": language, "model": ""}
        yield from _parts(answered, where, (*FACETS, "model"), params)
        yield from _consistency(answered, where, ("statement", "model"), FORMS, params)
        yield from _consistency(answered, where, ("model", "statement"), (ALPHA,), params)
    for (model,), rows in itself.sort("model").group_by("model", maintain_order=True):
        where = {"language": "", "model": model}
        yield from _parts(_answered(rows), where, (*FACETS, "language"), params)


def _common_templates(table: pl.DataFrame) -> pl.DataFrame:
    """Drop templates that were used for fewer than half of the statements."""
    used = table.group_by("language", "template").agg(pl.col("statement").n_unique())
    total = table.group_by("language").agg(all=pl.col("statement").n_unique())
    common = used.join(total, on="language").filter(2 * pl.col("statement") >= pl.col("all"))
    return table.join(common, on=["language", "template"], how="semi", maintain_order="left")


def _answered(table: pl.DataFrame) -> pl.DataFrame:
    """Drop each model in languages for which it has too few valid responses."""
    valid = pl.col("score").is_not_null().mean().over("language", "model")
    return table.filter(valid >= ENOUGH)


def _too_few(number: int, name: str) -> str:
    return f"{number} level{'s' * (number != 1)} of {name}: {LEAST} are needed"


def _parts(
    table: pl.DataFrame, where: Row, facets: Sequence[str], params: Params
) -> Iterator[tuple[str, Row]]:
    """Yield variance components, or the reasons why they are missing."""

    def row(term: str, levels: int, part: Estimate = NONE, reason: str = "") -> Row:
        key = {"term": term, "levels": levels, "reason": reason}
        return where | key | part.row() | {"unbiased": None, "share": None, "reml": None}

    valid = table.drop_nulls("score")
    levels = {name: valid[name].n_unique() for name in facets}
    few = {name: number for name, number in levels.items() if number < LEAST}
    pooled = [name for name in POOLED if name in facets and name in few]
    for name in pooled or few:
        yield "parts", row(name, levels[name], reason=_too_few(levels[name], name))
    if pooled or "statement" in few:
        return
    varied = [name for name in facets if levels[name] > 1]
    codes = {name: valid[name].rank("dense").cast(pl.Int64).to_numpy() - 1 for name in varied}
    values = valid["score"].to_numpy()
    reason, share = "", len(valid) / len(table)
    if share < ENOUGH:
        reason = f"{share:.0%} of the responses are valid: {ENOUGH:.0%} are needed"
    elif np.ptp(values) <= FLAT * np.abs(values).max():
        reason = "scores do not vary"
    else:
        try:
            parts = parts_of(values, codes, draws=params.draws, seed=params.seed)
        except ValueError as error:
            reason = str(error)
    if reason:
        yield "parts", row("rest", len(valid), reason=reason)
        return
    small = len(valid) <= params.reml_scores
    restricted = reml(values, codes) if small else np.full(len(parts.terms), np.nan)
    total = np.maximum(parts.value, 0).sum()
    for index, term in enumerate(parts.terms):
        if set(term) & set(few):  # such terms are not in the residual, but have too few levels
            continue
        value, low, high = parts.interval(np.eye(len(parts.terms))[index], params.confidence)
        number = int(parts.levels[index])
        more = {
            "unbiased": finite(parts.value[index]),
            "share": finite(value / total) if total else None,
            "reml": finite(restricted[index]),
        }
        part = Estimate(value, low, high, number)
        yield "parts", row(" x ".join(term) or "rest", number, part) | more


def _consistency(
    table: pl.DataFrame,
    where: Row,
    axes: tuple[str, str],
    coefficients: Sequence[str],
    params: Params,
) -> Iterator[tuple[str, Row]]:
    """Yield the agreement of items (columns) over cases (rows); incomplete cases are excluded."""
    cases, items = axes
    means = table.pivot(items, index=cases, values="score", aggregate_function="mean").sort(cases)
    grid = means.select(sorted(means.columns[1:])).cast(pl.Float64).drop_nulls().to_numpy()
    key = where | {"cases": cases, "items": items, "n_items": grid.shape[1]}
    for number, label in zip(grid.shape[::-1], (items, f"{cases}, complete"), strict=True):
        if number < LEAST:
            reason = {"coefficient": coefficients[0], "reason": _too_few(number, label)}
            yield "consistency", key | NONE.row() | reason
            return
    if ALPHA in coefficients:
        results = {ALPHA: alpha(grid, params.confidence)}
    else:
        results = icc(grid, params.confidence)
    for name, estimate in results.items():
        flat = "" if np.isfinite(estimate.value) else f"scores, or means of a {cases}, do not vary"
        yield "consistency", key | estimate.row() | {"coefficient": name, "reason": flat}


def _valid(table: pl.DataFrame, where: Row, params: Params) -> Iterator[tuple[str, Row]]:
    """Yield the share of responses with a score, in total and by level of each facet."""
    for facet in ("", "template", "order", "seed"):
        if facet and table[facet].n_unique() < 2:
            continue
        level = pl.col(facet) if facet else pl.lit("")
        for (name,), part in table.group_by(level.alias("level"), maintain_order=True):
            counts = part.group_by("statement").agg(pl.col("score").count(), total=pl.len())
            hits, totals = counts["score"].to_numpy(), counts["total"].to_numpy()
            share, low, high = (float(x) for x in clustered(hits, totals, params.confidence))
            key = {"facet": facet, "level": name, "responses": len(part)}
            yield "valid", where | key | Estimate(share, low, high, len(counts)).row()
