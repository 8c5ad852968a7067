"""Analysis ``reliability``: what scores of all five studies vary with, and how far to trust them.

Of responses that probes have recorded: parts of variance, what other designs would give, agreement
of templates, seeds and models, items that work otherwise in a language, chances that ranks swap,
and shares of valid responses. With fewer than three levels of a facet there is a reason, and no
number; what is not valid is never imputed.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtri, stdtrit

from plumbline.probes.reliability.schemas import (
    ALPHA,
    COEFFICIENTS,
    HALVES,
    RANDOM,
    SCHEMAS,
    Params,
)
from plumbline.probes.reliability.scores import FACETS, READ, scores
from plumbline.probes.stats.estimate import DF, Estimate, adjusted, finite, typed
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.reliability import (
    FLAT,
    FORMS,
    LEAST,
    Functioning,
    Odds,
    alpha,
    complete,
    functioning,
    icc,
    odds,
    split_halves,
    swap_chance,
)
from plumbline.probes.stats.variance_parts import ANOVA, half_width, parts_of, reml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.stats.variance_parts import Parts

    Array = NDArray[np.float64]
    Row = dict[str, Any]

DATASETS = ("lexica", "emotions", "statements", "counterfactuals")
OUTPUTS = ("associations",)
BESIDE = ("completions", "agreement", "stances", "classification")  # probes of other models
GROUP = ["measure", "scale"]
FAMILY = ("probe", "measure", "scale", "model")
NONE = Estimate(float("nan"), float("nan"), float("nan"), 0, "none")
ANSWERS = ("agreement", "stances")  # probes whose scores are above 0 where a model agrees
RESPONDENTS = 10  # in each language, fewer of which seldom agree with as many statements
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
            for name, row in _rows(own, params, answers=probe in ANSWERS):
                found[name].append(place | row)
    return {name: _table(rows, name, params.confidence) for name, rows in found.items()}


def _table(rows: list[Row], name: str, confidence: float) -> pl.DataFrame:
    schema = SCHEMAS[name]
    if not rows:
        return pl.DataFrame(pl.from_arrow(schema.arrow().empty_table()))
    table = pl.DataFrame(rows, infer_schema_length=None)
    table = table.with_columns(pl.col(NUMBERS).cast(pl.Float64))  # of which there may be none
    if name in ("items", "odds"):
        table = adjusted(table, over=FAMILY)
    return typed(table, schema, confidence).sort(schema.key)


def _rows(every: pl.DataFrame, params: Params, *, answers: bool) -> Iterator[tuple[str, Row]]:
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
        yield from _items(own, where, "template", params, answers=answers)
    yield from _items(_answered(itself), _where("", ""), "model", params, answers=answers)


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
    """Yield parts of variance, and half-widths of the designs that they tell of."""
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
    if "template" not in few and not set(facets) & set(POOLED):
        for design in _designs(parts, levels, params):
            yield "designs", where | design


def _part(where: Row, term: str, levels: int, found: Estimate, null: str, reason: str = "") -> Row:
    row = _row(found, cluster="level", null=null, reason=reason, term=term, levels=levels)
    return where | row | {"unbiased": None, "share": None, "reml": None}


def _designs(parts: Parts, levels: Mapping[str, int], params: Params) -> Iterator[Row]:
    """Yield half-widths with other numbers of templates, statements and seeds."""
    observed = tuple(levels[name] for name in ("template", "statement", "seed"))
    given = (params.templates, params.statements, params.seeds if observed[2] >= LEAST else [])
    numbers = [sorted({*more, n}) for more, n in zip(given, observed, strict=True)]
    same = [name for name, number in levels.items() if number < LEAST]
    for drawn, *design_of in product(range(len(RANDOM)), *numbers):
        design = dict(zip(("template", "statement", "seed"), design_of, strict=True))
        fixed = same if drawn else [*same, "statement"]
        of = {name: design.get(name, n) for name, n in levels.items() if n > 1}
        found = half_width(parts, of, fixed, params.confidence)
        key = {"random_facets": drawn, "observed": tuple(design_of) == observed}
        key |= {f"{name}s": number for name, number in design.items()}
        yield found.row(cluster="score", null="0: every run has the same mean", **key)


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


def _items(
    table: pl.DataFrame, where: Row, conditions: str, params: Params, *, answers: bool
) -> Iterator[tuple[str, Row]]:
    """Yield for each statement and language how it works otherwise there than in the others.

    By its mean score, and where the scores are ``answers``, above 0 of who agrees, by their odds.
    """
    grid, (statements, languages, levels) = _cube(table, ("statement", "language", conditions))
    grid = grid[:, :, np.isfinite(grid).any(axis=0).all(axis=0)]  # asked in every language
    kept = np.flatnonzero(np.isfinite(grid).all(axis=(1, 2)))
    grid, names = grid[kept], [statements[place] for place in kept]
    reason = ""
    if len(languages) < 2:
        reason = "one language: two are needed"
    elif grid.shape[2] < LEAST or len(levels) < LEAST:
        reason = _too_few(grid.shape[2], f"{conditions} in all languages")
    elif len(grid) < LEAST:
        reason = _too_few(len(grid), "statement with every score")
    spread = f"scores do not vary over {conditions}s"
    found = None if reason else functioning(grid)
    told = (where, conditions, languages, names, grid.shape[2])
    method = "t interval, mean square pooled over statements"
    null = "0: as the rest of the statements differ"
    reach = 0.0 if found is None else stdtrit(found.df, (1 + params.confidence) / 2)
    method = f"{params.confidence:.0%} {method}"
    yield from _each(told, "items", reason or spread, found, float(reach), method, null)
    if not answers:
        return
    if not reason and grid.shape[2] < RESPONDENTS:
        reason = f"{grid.shape[2]} {conditions}s in all languages: {RESPONDENTS} are needed"
    of = None if reason else odds(grid > 0)
    method = f"{params.confidence:.0%} normal interval of Mantel and Haenszel's log-odds ratio"
    null = "0: who agrees with as many statements agrees as often with this one"
    reach = float(ndtri((1 + params.confidence) / 2))
    yield from _each(told, "odds", reason or spread, of, reach, method, null)


def _each(
    told: tuple[Row, str, list[str], list[str], int],
    table: str,
    reason: str,
    found: Functioning | Odds | None,
    reach: float,
    method: str,
    null: str,
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of statements and languages, or one with the reason why there are none."""
    where, cluster, languages, names, number = told
    if found is None or np.isnan(found.p).all():
        row = _row(NONE, cluster=cluster, null=null, reason=reason)
        yield table, where | {"statement": "", "anchor": False} | row
        return
    for place, name in enumerate(names):
        for at in range(1 if len(languages) == 2 else 0, len(languages)):
            value, half = found.effect[place, at], reach * found.error[place, at]
            why = "" if np.isfinite(found.p[place, at]) else "all or none agree in every band"
            one = Estimate(value, value - half, value + half, number, method)
            row = one.row(cluster=cluster, null=null, p=float(found.p[place, at]))
            key = where | {"language": languages[at], "statement": name, "reason": why}
            df = found.df if isinstance(found, Functioning) else None  # of odds: z
            yield table, key | {"anchor": bool(found.anchors[place]), DF: df} | row


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
