"""Analysis ``reliability``: sources of variance of the scores of all five studies.

From responses that probes have recorded: parts of variance, agreement of templates, seeds and
models, and shares of valid responses. With fewer than three levels of a facet there is a reason,
and no number; a response that is not valid is never imputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.probes.reliability.schemas import ALPHA, SCHEMAS, Params
from plumbline.probes.reliability.scores import FACETS, READ, scores
from plumbline.probes.stats.estimate import Estimate, finite, typed
from plumbline.probes.stats.intervals import clustered
from plumbline.probes.stats.reliability import FLAT, FORMS, LEAST, alpha, complete, icc
from plumbline.probes.stats.variance_parts import parts_of, reml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

    Array = NDArray[np.float64]
    Row = dict[str, Any]

DATASETS = ("lexica", "emotions", "statements", "counterfactuals")
OUTPUTS = ("associations",)
BESIDE = ("completions", "agreement", "stances", "classification")  # probes of other models
NONE = Estimate(float("nan"), float("nan"), float("nan"), 0)
ENOUGH = 0.5  # share of valid responses below which there are no parts
POOLED = ("model", "language")  # facets of rows over all models or languages
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all probes; columns as in :data:`SCHEMAS`."""
    rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for probe in READ:
        table = scores(probe, inputs)
        for (measure, scale), own in table.group_by("measure", "scale", maintain_order=True):
            place = {"probe": probe, "measure": measure, "scale": scale}
            for name, row in _rows(own, params):
                rows[name].append(place | row)
    return {name: _table(own, name, params.confidence) for name, own in rows.items()}


def _table(rows: list[Row], name: str, confidence: float) -> pl.DataFrame:
    schema = SCHEMAS[name]
    if not rows:
        return pl.DataFrame(pl.from_arrow(schema.arrow().empty_table()))
    table = pl.DataFrame(rows, infer_schema_length=None)
    return typed(table, schema, confidence).sort(schema.key)


def _rows(table: pl.DataFrame, params: Params) -> Iterator[tuple[str, Row]]:
    """Yield the rows of one measure on one scale, each with the name of its table."""
    itself = _common_templates(table.filter(pl.col("respondent") == ""))
    for language in sorted(set(itself["language"])):
        own = itself.filter(pl.col("language") == language)
        for model in sorted(set(own["model"])):
            one, where = own.filter(pl.col("model") == model), _where(language, model)
            yield from _valid(one, where, params)
            yield from _parts(one, where, FACETS, params)
            for raters in ("template", "order", "seed"):
                if raters == "template" or one[raters].n_unique() > 1:
                    yield from _consistency(one, where, ("statement", raters), FORMS, params)
            states = table.filter(pl.col("language") == language, pl.col("model") == model)
            if states["respondent"].n_unique() > 1:
                axes = ("respondent", "statement")
                yield from _consistency(states, where, axes, (ALPHA,), params)
        own, where = _answered(own), _where(language, "")
        yield from _parts(own, where, (*FACETS, "model"), params)
        yield from _consistency(own, where, ("statement", "model"), FORMS, params)
        yield from _consistency(own, where, ("model", "statement"), (ALPHA,), params)
    for model in sorted(set(itself["model"])):
        own, where = itself.filter(pl.col("model") == model), _where("", model)
        yield from _parts(_answered(own), where, (*FACETS, "language"), params)


def _where(language: str, model: str) -> dict[str, str]:
    return {"language": language, "model": model}


def _common_templates(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out templates that were used for less than half of the statements."""
    used = table.group_by("language", "template").agg(pl.col("statement").n_unique())
    total = table.group_by("language").agg(all=pl.col("statement").n_unique())
    common = used.join(total, on="language").filter(2 * pl.col("statement") >= pl.col("all"))
    return table.join(common, on=["language", "template"], how="semi", maintain_order="left")


def _answered(table: pl.DataFrame) -> pl.DataFrame:
    """Leave out models in languages in which too few of their responses are valid."""
    valid = pl.col("score").is_not_null().mean().over("language", "model")
    return table.filter(valid >= ENOUGH)


def _too_few(number: int, what: str) -> str:
    return f"{number} level{'s' * (number != 1)} of {what}: {LEAST} are needed"


def _parts(
    table: pl.DataFrame, where: Row, facets: Sequence[str], params: Params
) -> Iterator[tuple[str, Row]]:
    """Yield parts of variance, or the reasons why there are none."""

    def row(term: str, levels: int, part: Estimate = NONE, reason: str = "") -> Row:
        own = part.row()
        key = {"term": term, "levels": levels, "reason": reason}
        return where | key | own | {"unbiased": None, "share": None, "reml": None}

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
    for place, term in enumerate(parts.terms):
        if set(term) & set(few):  # separated from the rest, but no sample
            continue
        value, low, high = parts.interval(np.eye(len(parts.terms))[place], params.confidence)
        number = int(parts.levels[place])
        part = Estimate(value, low, high, number)
        more = {
            "unbiased": finite(parts.value[place]),
            "share": finite(value / total) if total else None,
            "reml": finite(restricted[place]),
        }
        yield "parts", row(" x ".join(term) or "rest", number, part) | more


def _grid(table: pl.DataFrame, axes: Sequence[str]) -> Array:
    """Return mean valid scores over two axes, nan where there is none."""
    mean = table.drop_nulls("score").group_by(axes).agg(pl.col("score").mean())
    levels = [sorted(set(table[name])) for name in axes]
    grid = np.full([len(names) for names in levels], np.nan)
    places = tuple(
        mean[axis].replace_strict({level: at for at, level in enumerate(names)}).to_numpy()
        for axis, names in zip(axes, levels, strict=True)
    )
    grid[places] = mean["score"].to_numpy()
    return grid


def _consistency(
    table: pl.DataFrame,
    where: Row,
    axes: tuple[str, str],
    coefficients: Sequence[str],
    params: Params,
) -> Iterator[tuple[str, Row]]:
    """Yield the agreement of items (columns) about cases (rows); incomplete cases are left out."""
    cases, items = axes
    grid = complete(_grid(table, axes))
    key = where | {"cases": cases, "items": items, "n_items": grid.shape[1]}
    for number, what in zip(grid.shape[::-1], (items, f"{cases}, complete"), strict=True):
        if number < LEAST:
            reason = {"reason": _too_few(number, what)}
            row = reason | {"coefficient": coefficients[0]}
            yield "consistency", key | NONE.row() | row
            return
    estimates = icc(grid, params.confidence)
    if ALPHA in coefficients:
        estimates = {ALPHA: alpha(grid, params.confidence)}
    for name, estimate in estimates.items():
        flat = f"scores, or means of a {cases}, do not vary"
        row = {
            "coefficient": name,
            "reason": "" if np.isfinite(estimate.value) else flat,
        }
        yield "consistency", key | estimate.row() | row


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
            hits, total = each["hits"].to_numpy(), each["of"].to_numpy()
            share, low, high = (float(x) for x in clustered(hits, total, params.confidence))
            row = Estimate(share, low, high, len(each)).row()
            key = {"facet": facet, "level": name, "responses": len(own)}
            yield "valid", where | key | row
