"""Analysis ``values``: the political values that a model seems to have, and what gender does to it.

Al Ali and Libovický (2024): agreement with political statements beyond the habit of agreeing, which
statements about nothing political tell; rated from 1 to 5 and held against a survey.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.estimate import (
    LEVEL,
    TESTED_ERROR,
    adjusted,
    finite,
    typed,
    with_detectable_correlations,
)
from plumbline.probes.stats.intervals import rank_correlations
from plumbline.probes.stats.tests import permutation_p
from plumbline.probes.values import ratings as rows_of
from plumbline.probes.values.calibration import each, fit
from plumbline.probes.values.ratings import Reading, estimate
from plumbline.probes.values.responses import answers, block, statements
from plumbline.probes.values.schemas import CALIBRATION, SCHEMAS, VERDICTS, Params
from plumbline.probes.values.survey import baselines, respondents, standing, surveys

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.values.responses import Array, Block

    Rows = Iterator[dict[str, Any]] | pl.DataFrame

DATASETS = ("statements", "survey")
OUTPUTS = ("agreement",)
TABLES = ()
METHODS = {"faithful": ("together", "sequence"), "corrected": ("l2r", "sequence")}
LEAST = 2  # statements for calibration: one has no spread about its line
FEW = 2.5  # independent statements, less 3: of fewer no correlation is known to be found
OPTIONAL = ("respondents", "standing")  # tables that may have no row
FAMILIES = {  # columns that are equal in tests that are adjusted together
    "values": ("model", "language", "scale", "reading"),
    "gender": ("model", "language", "scale", "reading", "fitted", "checked"),
    "calibration": ("model", "language", "reading"),
    "consistency": ("model", "language", "scale"),
}
__all__ = ["SCHEMAS", "Params"]

Side = tuple[str, "Array"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Returns
    -------
    dict
        Columns as in :data:`SCHEMAS`.

    Raises
    ------
    UserError
        If a language has fewer than two statements for calibration, or none that bear on a value.
    """
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    every = statements(inputs.datasets["statements"])
    people = surveys(inputs.datasets["survey"], every)
    languages = set()
    for model in inputs.models:
        outputs = inputs.outputs("agreement", model)
        for language in sorted(p.name for p in outputs.iterdir() if p.is_dir()):
            languages.add(language)
            about = every.filter(pl.col("language") == language)
            own = {"model": pl.lit(model), "language": pl.lit(language)}
            for name, part in _model(answers(outputs, language), about, params):
                rows = pl.DataFrame(part, infer_schema_length=None)
                found[name].append(rows.with_columns(**own) if len(rows) else rows)
    found["standing"] = [standing(table, people) for table in found["values"]]
    found["respondents"] = [respondents(people, params)]
    found["baselines"] = [baselines(every, name, params) for name in sorted(languages)]
    return {
        name: _table(pl.concat(full, how="diagonal_relaxed") if full else None, name, params)
        for name, parts in found.items()
        for full in ([part for part in parts if len(part)],)
        if full or name not in OPTIONAL
    }


def _table(table: pl.DataFrame | None, name: str, params: Params) -> pl.DataFrame:
    """Return a table with adjusted p, each row once, in the order of its key."""
    schema = SCHEMAS[name]
    if table is None:
        raise UserError(f"analysis.values: no row of {name}; does any model have outputs?")
    table = table.unique(schema.key, keep="last", maintain_order=True)  # of several scales
    if name == "gender":  # a check of the calibration is no finding, and loosens no other test
        table = table.with_columns(checked=pl.col("axis") == CALIBRATION)
    if name in FAMILIES:
        table = adjusted(table, over=FAMILIES[name])
    if name == "consistency":
        table = with_detectable_correlations(table)
    if name == "gender":
        table = adjusted(table, "p_equivalence", FAMILIES[name])
        differs, equal = (
            (pl.col(p) <= LEVEL).fill_null(value=False) for p in ("p_bh", "p_equivalence_bh")
        )
        verdict = 2 * differs.cast(pl.Int64) + equal.cast(pl.Int64)
        table = table.with_columns(verdict=verdict.replace_strict(dict(enumerate(VERDICTS))))
    return typed(table, schema, params.confidence).sort(schema.key)


def _model(
    answered: pl.DataFrame, about: pl.DataFrame, params: Params
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of one model in one language, each time with their table."""
    there = answered["method"].unique().to_list()
    neutral = about.filter(pl.col("polarity").is_not_null())
    bearing = about.filter(pl.col("axis") != "")
    for lacking, missing in (
        (len(neutral) < LEAST, f"fewer than {LEAST} statements for calibration"),
        (bearing.is_empty(), "no statements that bear on a value"),
    ):
        if lacking:
            raise UserError(
                f"datasets.statements.configs: {missing} in a language of the outputs; name a "
                "questionnaire with them"
            )
    for scale in sorted(set(bearing["scale"])):
        pair = (neutral, bearing.filter(pl.col("scale") == scale))
        for name, methods in METHODS.items():
            method = next(m for m in methods if m in there)
            cells = [(params.frame, "plain")] if name == "faithful" else None
            blocks = [block(answered, part, method, params, cells) for part in pair]
            reading = Reading(name, blocks[0], blocks[1], params)
            yield "values", rows_of.values(reading)
            yield "gender", rows_of.gender(reading)
            yield "calibration", rows_of.lines(reading)
            yield "answers", rows_of.answers(reading)
            yield "points", rows_of.points(reading)
        sides = [
            {m: block(answered, part, m, params) for m in sorted(there, reverse=True)}
            for part in pair
        ]
        for own in sides:
            yield "consistency", consistency(own, sides[0], params)


def consistency(
    blocks: Mapping[str, Block], calibration: Mapping[str, Block], params: Params
) -> Iterator[dict[str, Any]]:
    """Yield correlations of residuals, each by method, in all frames and forms."""
    err = {m: each(b, fit(calibration[m], replicates=1)) for m, b in blocks.items()}
    first = next(iter(blocks.values()))
    for comparison, (one, own), (other, whose) in _pairs(first, err):
        kept = np.isfinite(own) & np.isfinite(whose)
        n = len(np.unique(first.place[kept]))
        if n < 3:
            continue
        x, y = own[kept], whose[kept]
        p, error = shuffled_p(x, y, first.place[kept], params)
        yield estimate(
            correlation(x, y, first.drawn[kept]),
            n,
            params,
            p=p,
            **{TESTED_ERROR: error},
            scale=str(first.about["scale"][0]),
            comparison=comparison,
            first=one,
            second=other,
            spearman=finite(float(rank_correlations(x, y))),
        )


def _pairs(block: Block, err: Mapping[str, Array]) -> Iterator[tuple[str, Side, Side]]:
    """Yield what is compared and both sides, (statements,) each."""
    own = err[next(iter(err))]
    both = own.mean(axis=1)  # of the genders
    plain = [c for c, (_, form) in enumerate(block.cells) if form == "plain"]
    for a, b in combinations(plain, 2):
        yield "frames", (block.cells[a][0], both[:, a]), (block.cells[b][0], both[:, b])
    for a in plain:
        frame = block.cells[a][0]
        for c, cell in enumerate(block.cells):
            if cell == (frame, "negated"):
                yield "denied", (frame, both[:, a]), (f"{frame}, denied", -both[:, c])
    whole = both[:, plain].mean(axis=1)
    row = {name: i for i, name in enumerate(block.about["id"])}
    opposite = np.full(len(whole), np.nan)
    for i, (name, other) in enumerate(block.about.select("id", "opposite").iter_rows()):
        if other in row and name < other:  # each pair once
            opposite[i] = -whole[row[other]]
    yield "opposites", ("statement", whole), ("opposite", opposite)
    sides = [(name, own[:, g][:, plain].mean(axis=1)) for g, name in enumerate(GENDERS)]
    yield "genders", sides[0], sides[1]
    means = {method: part.mean(axis=1)[:, plain].mean(axis=1) for method, part in err.items()}
    for one, other in combinations(means.items(), 2):
        yield "methods", one, other


def correlation(x: Array, y: Array, weights: Array) -> Array:
    """Return Pearson correlations of (n,) arrays under (n, replicates) weights."""
    total = weights.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mx, my = x @ weights / total, y @ weights / total
        xy = (x * y) @ weights / total - mx * my
        xx, yy = x**2 @ weights / total - mx**2, y**2 @ weights / total - my**2
        found = xy / np.sqrt(xx * yy)
    return np.asarray(np.clip(found, -1, 1), dtype=np.float64)


def shuffled_p(
    x: Array, y: Array, place: NDArray[np.int64], params: Params
) -> tuple[float | None, float | None]:
    """Return the two-sided p of a correlation with one side shuffled, and the error of its z.

    A statement and its opposite are moved together, and change places with each other: values of
    both sides are alike in a pair whether or not the sides are related.

    The error is that of Fisher's z, 1 / sqrt(n - 3), of as many independent statements as would
    correlate like the shuffled ones, whose correlations have a variance of 1 / (n - 1). These are
    around 0, but where statements with and without opposites have other means: what is detectable
    is a distance from where they are.
    """
    x, y = x - x.mean(), y - y.mean()
    if not (x.any() and y.any()):
        return None, None
    rng = np.random.default_rng(params.seed)
    order = np.tile(np.arange(len(x)), (params.n_permutations, 1))
    size = np.bincount(place)[place]
    for number in np.unique(size):
        rows = np.flatnonzero(size == number)
        pairs = rows[np.argsort(place[rows], kind="stable")].reshape(-1, number)
        moved = rng.permuted(np.tile(np.arange(len(pairs)), (len(order), 1)), axis=1)
        order[:, pairs.ravel()] = rng.permuted(pairs[moved], axis=2).reshape(len(order), -1)
    drawn = x[order] @ y
    spread = float(drawn.var())  # singles and pairs of other means are shuffled around those
    left = float((x @ x) * (y @ y)) / spread - 2 if spread > 0 else 0.0  # n - 3
    error = left**-0.5 if left > FEW else None
    return float(permutation_p(x @ y, drawn, relative=True)), error
