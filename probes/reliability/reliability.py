"""Analysis ``reliability``: what scores of all five studies vary with, and how far to trust them.

From responses that probes have recorded: parts of variance, agreement of templates, seeds and
models, chances that ranks swap, and shares of valid responses. With fewer than three levels of a
facet there is a reason, and no number; what is not valid is never imputed.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.reliability.schemas import (
    ALPHA,
    COEFFICIENTS,
    HALVES,
    RANDOM,
    SCHEMAS,
    Params,
)
from plumbline.probes.reliability.scores import FACETS, READ, scores
from plumbline.probes.stats.estimate import Estimate, finite, typed
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.reliability import (
    FLAT,
    FORMS,
    LEAST,
    alpha,
    complete,
    icc,
    split_halves,
    swap_chance,
)
from plumbline.probes.stats.variance_parts import ANOVA, parts_of, reml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Row = dict[str, Any]

DATASETS = ("lexica", "emotions", "statements", "counterfactuals")
OUTPUTS = ("associations",)
BESIDE = ("completions", "agreement", "stances", "classification")  # probes of other models
GROUP = ["measure", "scale"]
NONE = Estimate(float("nan"), float("nan"), float("nan"), 0, "none")
ENOUGH = 0.5  # share of valid responses with which it is told what scores vary with
NUMBERS = ("value", "low", "high", "p", "p_bh")
POOLED = ("model", "language")  # facets where all of them are taken together
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all probes.

    Returned: columns as in :data:`SCHEMAS`.
    """
    found: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for probe in READ:
        table = scores(probe, inputs)
        for (measure, scale), own in table.group_by(GROUP, maintain_order=True):
            place = {"probe": probe, "measure": measure, "scale": scale}
            for name, row in _rows(own, params):
                found[name].append(place | row)
    return {name: _table(rows, name, params.confidence) for name, rows in found.items()}


def _table(rows: list[Row], name: str, confidence: float) -> pl.DataFrame:
    schema = SCHEMAS[name]
    if not rows:
        return pl.DataFrame(pl.from_arrow(schema.arrow().empty_table()))
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = table.with_columns(pl.col(NUMBERS).cast(pl.Float64))  # of which there may be none
    return typed(table, schema, confidence).sort(schema.key)


def _rows(every: pl.DataFrame, params: Params) -> Iterator[tuple[str, Row]]:
    """Yield the rows of one measure on one scale, each with its table."""
    itself = _asked_of_most(every.filter(pl.col("respondent") == ""))
    languages, models = (sorted(set(itself[name])) for name in ("language", "model"))
    for language in languages:
        own = itself.filter(pl.col("language") == language)
        for model in sorted(set(own["model"])):
            of, where = own.filter(pl.col("model") == model), _where(language, model)
            yield from _valid(of, where, params)
            yield from _varying(of, where, FACETS, params)
            for raters in ("template", "order", "seed"):
                if raters == "template" or of[raters].n_unique() > 1:
                    yield from _consistent(of, where, ("statement", raters), FORMS, params)
            states = every.filter(pl.col("language") == language, pl.col("model") == model)
            if states["respondent"].n_unique() > 1:
                yield from _consistent(
                    states, where, ("respondent", "statement"), (ALPHA, HALVES), params
                )
        own, where = _answered(own), _where(language, "")
        yield from _varying(own, where, (*FACETS, "model"), params)
        yield from _consistent(own, where, ("statement", "model"), FORMS, params)
        yield from _consistent(own, where, ("model", "statement"), (ALPHA, HALVES), params)
        for first, second in combinations(sorted(set(own["model"])), 2):
            yield from _swaps(own, language, (first, second))
    for model in models:
        own, where = itself.filter(pl.col("model") == model), _where("", model)
        yield from _varying(_answered(own), where, (*FACETS, "language"), params)


def _where(language: str, model: str) -> dict[str, str]:
    return {"language": language, "model": model}


def _asked_of_most(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out templates that were put to less than half of the statements."""
    asked = table.group_by("language", "template").agg(pl.col("statement").n_unique())
    least = table.group_by("language").agg(all=pl.col("statement").n_unique())
    kept = asked.join(least, on="language").filter(2 * pl.col("statement") >= pl.col("all"))
    return table.join(kept, on=["language", "template"], how="semi", maintain_order="left")


def _answered(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out models in languages in which too few of their responses are valid."""
    valid = pl.col("score").is_not_null().mean().over("language", "model")
    return table.filter(valid >= ENOUGH)


def _row(found: Estimate, *, cluster: str, null: str = "", reason: str = "", **key: Any) -> Row:
    return found.row(cluster=cluster, null=null, **key) | {"reason": reason}


def _too_few(number: int, what: str) -> str:
    return f"{number} level{'s' * (number != 1)} of {what}: {LEAST} are needed"


def _varying(
    table: pl.DataFrame, where: Row, facets: Sequence[str], params: Params
) -> Iterator[tuple[str, Row]]:
    """Yield parts of variance."""
    valid = table.drop_nulls("score")
    levels = {name: valid[name].n_unique() for name in facets}
    few = {name: number for name, number in levels.items() if number < LEAST}
    null = "0: scores do not vary with it"
    pooled = [name for name in POOLED if name in facets and name in few]
    for name in pooled or few:
        reason = _too_few(levels[name], name)
        yield "parts", _part(where, name, levels[name], NONE, null, reason)
    if pooled or "statement" in few:
        return
    if len(valid) < ENOUGH * len(table):
        reason = (
            f"{len(valid) / len(table):.0%} of the responses are valid: {ENOUGH:.0%} are needed"
        )
        yield "parts", _part(where, "rest", len(valid), NONE, null, reason)
        return
    varied = [name for name in facets if levels[name] > 1]
    codes = {name: valid[name].rank("dense").cast(pl.Int64).to_numpy() - 1 for name in varied}
    given = valid["score"].to_numpy()
    if np.ptp(given) <= FLAT * np.abs(given).max():
        yield "parts", _part(where, "rest", len(valid), NONE, null, "scores do not vary")
        return
    try:
        parts = parts_of(given, codes, draws=params.draws, seed=params.seed)
    except ValueError as error:
        yield "parts", _part(where, "rest", len(valid), NONE, null, str(error))
        return
    small = len(valid) <= params.reml_scores
    restricted = reml(given, codes) if small else np.full(len(parts.terms), np.nan)
    total = np.maximum(parts.value, 0).sum()
    for place, term in enumerate(parts.terms):
        if set(term) & set(few):  # told apart from the rest, but not of what it is a sample
            continue
        one = np.eye(len(parts.terms))[place]
        value, low, high = parts.interval(one, params.confidence)
        number = int(parts.levels[place])
        found = Estimate(value, low, high, number, f"{params.confidence:.0%} {ANOVA}")
        yield (
            "parts",
            _part(where, " x ".join(term) or "rest", number, found, null)
            | {
                "unbiased": finite(parts.value[place]),
                "share": finite(value / total) if total else None,
                "reml": finite(restricted[place]),
            },
        )


def _part(where: Row, term: str, levels: int, found: Estimate, null: str, reason: str = "") -> Row:
    row = _row(found, cluster="level", null=null, reason=reason, term=term, levels=levels)
    return where | row | {"unbiased": None, "share": None, "reml": None}


def _cube(table: pl.DataFrame, axes: Sequence[str]) -> tuple[Array, list[list[str]]]:
    """Return mean valid scores over axes, nan where there is none, and the levels of each."""
    mean = table.drop_nulls("score").group_by(axes).agg(pl.col("score").mean())
    levels = [sorted(set(table[name])) for name in axes]
    found = np.full([len(own) for own in levels], np.nan)
    places = tuple(
        mean[name].replace_strict({level: at for at, level in enumerate(own)}).to_numpy()
        for name, own in zip(axes, levels, strict=True)
    )
    found[places] = mean["score"].to_numpy()
    return found, levels


def _consistent(
    table: pl.DataFrame,
    where: Row,
    axes: tuple[str, str],
    coefficients: Sequence[str],
    params: Params,
) -> Iterator[tuple[str, Row]]:
    """Yield how items, columns, agree about cases, rows; cases that lack a score are left out."""
    cases, items = axes
    grid = complete(_cube(table, axes)[0])
    key = where | {"cases": cases, "items": items, "n_items": grid.shape[1]}
    null = "0: what tells cases apart is chance"
    for number, what in zip(grid.shape[::-1], (items, f"{cases}, complete"), strict=True):
        if number < LEAST:
            first = COEFFICIENTS.index(coefficients[0])
            row = _row(NONE, cluster=cases, null=null, reason=_too_few(number, what))
            yield "consistency", key | row | {"coefficient": first}
            return
    found = icc(grid, params.confidence)
    if ALPHA in coefficients:
        halves = (params.splits, params.n_bootstrap, params.seed, params.confidence)
        found = {ALPHA: alpha(grid, params.confidence), HALVES: split_halves(grid, *halves)}
    for name, one in found.items():
        known = "" if np.isfinite(one.value) else f"scores, or means of a {cases}, do not vary"
        row = _row(one, cluster=cases, null=null, reason=known)
        yield "consistency", key | row | {"coefficient": COEFFICIENTS.index(name)}


def _swaps(table: pl.DataFrame, language: str, pair: tuple[str, str]) -> Iterator[tuple[str, Row]]:
    """Yield the chance that a run like this one ranks two models the other way round."""
    own = table.filter(pl.col("model").is_in(pair))
    several = own["seed"].n_unique() >= LEAST
    axes = ("model", "statement", "template", *(["seed"] if several else []))
    grid, _ = _cube(own, axes)
    apart = grid[0] - grid[1]
    for axis in range(1, apart.ndim):  # what one of them has no valid answer to at all
        rest = tuple(a for a in range(apart.ndim) if a != axis)
        apart = apart.compress(np.isfinite(apart).any(axis=rest), axis=axis)
    apart = apart[np.isfinite(apart).reshape(len(apart), -1).all(axis=1)]
    for drawn in range(len(RANDOM)):
        few = _too_few(apart.shape[1], "template") if apart.shape[1] < LEAST else ""
        few = _too_few(len(apart), "statement") if len(apart) < LEAST else few
        again = (bool(drawn), *[True] * (apart.ndim - 1))
        found = NONE if few else swap_chance(apart, drawn=again)
        if not few and np.isnan(found.value):
            few = "differences do not vary"
        key = {"language": language, "first": pair[0], "second": pair[1], "random_facets": drawn}
        row = _row(found, cluster="level", null="0.5: ranks are chance", reason=few)
        yield "ranks", key | row | {"difference": finite(apart.mean()) if len(apart) else None}


def _valid(table: pl.DataFrame, where: Row, params: Params) -> Iterator[tuple[str, Row]]:
    """Yield the share of responses that have a score, of all and by level of a facet."""
    for facet in ("", "template", "order", "seed"):
        if facet and table[facet].n_unique() < 2:
            continue
        level = pl.col(facet) if facet else pl.lit("")
        for (name,), own in table.group_by(level.alias("level"), maintain_order=True):
            each = own.group_by("statement").agg(
                hits=pl.col("score").is_not_null().sum(), of=pl.len()
            )
            found = _share(each["hits"].to_numpy(), each["of"].to_numpy(), params.confidence)
            row = found.row(cluster="statement", null="1: every response is valid")
            key = {"facet": facet, "level": name, "responses": len(own)}
            yield "valid", where | key | row


def _share(hits: Array, of: Array, confidence: float) -> Estimate:
    """Return a share with Wilson's interval of as many independent responses as vary like it."""
    share, low, high = (float(x) for x in clustered(hits, of, confidence))
    method = f"{confidence:.0%} Wilson score of the effective number of responses"
    return Estimate(share, low, high, len(of), method)
