"""Analysis ``values``: political values of a model, and the effect of gender on them.

Al Ali and Libovický (2024): agreement with political statements is corrected for the bias towards
agreement that is estimated from apolitical statements, expressed as a rating from 1 to 5, and
compared with a survey.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.survey import responses as survey
from plumbline.probes.prompts.opinions import GENDERS
from plumbline.probes.stats.bootstrap import bits, correlation, keys, poisson
from plumbline.probes.stats.estimate import (
    LEVEL,
    TESTED_ERROR,
    adjusted,
    finite,
    rounded,
    typed,
    with_detectable_correlations,
)
from plumbline.probes.stats.tests import permutation_p, shuffled
from plumbline.probes.values import ratings as rows_of
from plumbline.probes.values import schemas
from plumbline.probes.values.calibration import block, fit, statements
from plumbline.probes.values.ratings import Reading, estimate
from plumbline.probes.values.schemas import SCHEMAS, Params

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.values.calibration import Array, Block

    Rows = Iterator[dict[str, Any]] | pl.DataFrame

DATASETS = ("statements", "survey")
OUTPUTS = ("agreement",)
METHODS = {"faithful": ("together", "sequence"), "corrected": ("l2r", "sequence")}
LEAST = 2  # minimum number of statements for calibration, as a single one has no residual spread
FEW = 2.5  # smallest n - 3, for n independent statements, at which power is computed
OPTIONAL = ("respondents", "standing")  # tables that may have no rows
FAMILIES = {  # columns whose combinations define the families of tests
    "values": ("model", "language", "scale", "reading"),
    "gender": ("model", "language", "scale", "reading", "fitted", "checked"),
    "calibration": ("model", "language", "reading"),
    "consistency": ("model", "language", "scale"),
}
RESPONDENTS_OF = {"feminine": "female", "masculine": "male"}
KIND = ("survey", "simulated", "scale", "axis", "gender", "infected")
COMPARED = (  # a column of `standing`, what the model is compared with, and its weights
    ("percentile", "score", "weight"),
    ("percentile_answers", "answers", "answer_weight"),
)
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models, with the columns of :data:`SCHEMAS`.

    Raises UserError if a language has fewer than two statements for calibration or none on a value.
    """
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in SCHEMAS}
    about = statements(inputs.datasets["statements"])
    people = surveys(inputs.datasets["survey"], about)
    languages = set()
    for model in inputs.models:
        folder = inputs.outputs("agreement", model)
        for language in sorted(path.name for path in folder.iterdir() if path.is_dir()):
            languages.add(language)
            key = {"model": pl.lit(model), "language": pl.lit(language)}
            answered = pl.read_parquet(folder / language / "*.parquet")
            for name, rows in _model(answered, about.filter(language=language), params):
                table = pl.DataFrame(rows, infer_schema_length=None)
                parts[name].append(table.with_columns(**key) if len(table) else table)
    parts["standing"] = [standing(table, people) for table in parts["values"]]
    parts["respondents"] = [respondents(people, params)]
    parts["baselines"] = [baselines(about, name, params) for name in sorted(languages)]
    tables = {}
    for name, frames in parts.items():
        if filled := [part for part in frames if len(part)]:
            tables[name] = _table(pl.concat(filled, how="diagonal_relaxed"), name, params)
        elif name not in OPTIONAL:
            raise UserError(f"analysis.values: no rows of {name}; run a probe first")
    return tables


def _table(table: pl.DataFrame, name: str, params: Params) -> pl.DataFrame:
    """Return a table of distinct rows with adjusted p, sorted by key."""
    schema = SCHEMAS[name]
    table = table.unique(schema.key, keep="last", maintain_order=True)  # scales share some rows
    if name == "gender":  # checks of the calibration form a separate family
        table = table.with_columns(checked=pl.col("axis") == schemas.CALIBRATION)
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
        table = table.with_columns(
            verdict=verdict.replace_strict(dict(enumerate(schemas.VERDICTS)))
        )
    return typed(table, schema, params.confidence).sort(schema.key)


def _model(
    answered: pl.DataFrame, about: pl.DataFrame, params: Params
) -> Iterator[tuple[str, Rows]]:
    """Yield the names and rows of the tables for one model and language."""
    neutral = about.filter(pl.col("polarity").is_not_null())
    bearing = about.filter(pl.col("axis") != "")
    if len(neutral) < LEAST or bearing.is_empty():
        raise UserError(
            "datasets.statements.configs: a language lacks value or calibration items; add some"
        )
    answered_by = sorted(answered["method"].unique(), reverse=True)
    for scale in sorted(set(bearing["scale"])):
        pair = (neutral, bearing.filter(scale=scale))
        for name, methods in METHODS.items():
            method = next(m for m in methods if m in answered_by)
            cells = [(params.frame, "plain")] if name == "faithful" else None
            lines, items = (block(answered, part, method, params, cells) for part in pair)
            reading = Reading(name, lines, items, params)
            yield "values", rows_of.values(reading)
            yield "gender", rows_of.gender(reading)
            yield "calibration", rows_of.lines(reading)
            yield "answers", rows_of.answers(reading)
            yield "points", rows_of.points(reading)
        sides = [{m: block(answered, part, m, params) for m in answered_by} for part in pair]
        for blocks_of in sides:
            yield "consistency", consistency(blocks_of, sides[0], params)


def consistency(
    blocks: Mapping[str, Block], calibration: Mapping[str, Block], params: Params
) -> Iterator[dict[str, Any]]:
    """Yield correlations between residuals of templates, forms, opposites, genders and methods."""
    first = next(iter(blocks.values()))
    err = {}  # by method, (statements, genders, cells)
    for method, part in blocks.items():
        lines = fit(calibration[method], replicates=1)
        err[method] = part.agree - lines.slope[..., 0] * part.disagree
    for comparison, sides in _pairs(first, err):
        (name, x), (second, y) = sides.items()
        mask = np.isfinite(x) & np.isfinite(y)
        n = len(np.unique(first.clusters[mask]))
        if n < 3:
            continue
        x, y = x[mask], y[mask]
        p, error = shuffled_p(x, y, first.clusters[mask], params)
        draws = correlation(x, y, first.weights[mask])
        about = {"scale": first.about["scale"][0], "comparison": comparison, TESTED_ERROR: error}
        yield estimate(draws, n, params, p=p, **about, first=name, second=second)


def _pairs(block: Block, err: Mapping[str, Array]) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield each comparison with its two named sides, arrays of shape (statements,)."""
    plain = [c for c, (_, form) in enumerate(block.cells) if form == "plain"]
    residual = err[next(iter(err))]
    by_cell = dict(zip(block.cells, residual.mean(axis=1).T, strict=True))
    frames = {frame: side for (frame, form), side in by_cell.items() if form == "plain"}
    for pair in combinations(frames, 2):
        yield "frames", {frame: frames[frame] for frame in pair}
    for frame, side in frames.items():
        if (frame, "negated") in by_cell:
            yield "denied", {frame: side, f"{frame}, denied": -by_cell[frame, "negated"]}
    means = {method: part[:, :, plain].mean(axis=(1, 2)) for method, part in err.items()}
    statement = means[next(iter(means))]
    reverse = dict(zip(block.about["id"], -statement, strict=True))
    pairs = block.about.select("id", "opposite").iter_rows()
    opposite = [reverse.get(b, np.nan) if a < b else np.nan for a, b in pairs]  # each pair once
    yield "opposites", {"statement": statement, "opposite": np.array(opposite)}
    by_gender = residual[:, :, plain].mean(axis=2).T
    yield "genders", dict(zip(GENDERS, by_gender, strict=True))
    for pair in combinations(means, 2):
        yield "methods", {method: means[method] for method in pair}


def shuffled_p(
    x: Array, y: Array, clusters: NDArray[np.int64], params: Params
) -> tuple[float | None, float | None]:
    """Return a correlation's two-sided permutation p, and the standard error of its Fisher z.

    Pairs of a statement and its opposite are permuted as units, and the statements also within each
    pair, because their values are similar under the null hypothesis too.

    The standard error is that of Fisher's z, 1 / sqrt(n - 3), for the effective number n of
    independent statements, which follows from the variance 1 / (n - 1) of permuted correlations.
    Their mean is 0 unless statements with and without opposites have different means; detectable
    effects are distances from this mean.
    """
    x, y = x - x.mean(), y - y.mean()
    if not (x.any() and y.any()):
        return None, None
    products = x[shuffled(clusters, params.n_permutations, params.seed)] @ y
    variance = float(products.var())  # about the mean, which is not 0 if singles and pairs differ
    freedom = float((x @ x) * (y @ y)) / variance - 2 if variance > 0 else 0.0  # n - 3
    error = freedom**-0.5 if freedom > FEW else None
    return float(permutation_p(x @ y, products, relative=True)), error


def surveys(folder: Path, statements: pl.DataFrame) -> pl.DataFrame:
    """Return the respondents of all surveys, with a row for each value and kind of respondent.

    Kinds are combinations of gender and infection status, each including the level ``all``. The
    columns are :data:`KIND` and lists: ``respondent``, sorted, with ``score``, the mean response in
    the direction of the value, and ``weight``; and ``answers``, the single responses in this
    direction, with ``answer_weight``. Raises UserError if none of a survey's items is a known
    statement.

    ``statements``: the columns scale, id, axis and bearing, for all languages.
    """
    columns = ["scale", "id", "axis", "bearing"]
    bearing = statements.select(columns).filter(pl.col("axis") != "").unique().sort(columns)
    tables = []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        joined = frame.join(bearing, left_on=["scale", "item"], right_on=["scale", "id"])
        if joined.is_empty() and frame["scale"][0] in set(bearing["scale"]):
            raise UserError(
                f"{folder / config}.parquet: no answers to statements of {frame['scale'][0]!r}; "
                "name the columns after the ids of the statements"
            )
        tables.append(joined.with_columns(survey=pl.lit(config)))
    load, answer = pl.col("bearing").abs(), pl.col("answer")
    value = pl.when(pl.col("bearing") < 0).then(6 - answer).otherwise(answer)
    scores = pl.concat(tables).group_by(*KIND, "respondent", "weight", maintain_order=True)
    people = scores.agg(score=(value * load).sum() / load.sum(), answers=value)
    for name, labels in (("gender", survey.GENDERS), ("infected", survey.INFECTED)):
        codes = dict(enumerate(labels))
        people = people.with_columns(pl.col(name).replace_strict(codes, return_dtype=pl.String))
        people = pl.concat([people, people.with_columns(pl.lit(schemas.ALL).alias(name))])
    people = people.sort("respondent")
    each = pl.col("weight").repeat_by(pl.col("answers").list.len()).explode()
    lists = {"answers": pl.col("answers").explode(), "answer_weight": each}
    return people.group_by(KIND, maintain_order=True).agg("respondent", "score", "weight", **lists)


def respondents(people: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return the weighted mean and standard deviation for every kind of respondent."""
    rows = []
    for kind in people.drop("answers", "answer_weight").iter_rows(named=True):
        names = kind.pop("respondent")
        score, load = (np.array(kind.pop(name)) for name in ("score", "weight"))
        weights = poisson(bits(keys(names), params.n_bootstrap, params.seed))
        mean, n = np.average(score, weights=load), len(score)
        with np.errstate(invalid="ignore"):
            draws = np.r_[mean, (score * load) @ weights / (load @ weights)]
        variance = np.average((score - mean) ** 2, weights=load) * n / max(n - 1, 1)
        rows.append(estimate(draws, n, params, **kind, sd=finite(variance**0.5) if n > 1 else None))
    return pl.DataFrame(rows, infer_schema_length=None)


def standing(values: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Return the percentiles of each gender's values among respondents of that gender.

    As in the paper, only those not infected are used, or all if infection is not recorded. The
    paper's "set of survey answers" may be respondents' means or single answers; both are reported.
    """
    healthy = people.filter(infected="no")
    unknown = people.filter(infected=schemas.ALL).join(healthy, on="survey", how="anti")
    people = pl.concat([healthy, unknown]).rename({"gender": "kind"})
    kind = pl.col("gender").replace_strict(RESPONDENTS_OF, return_dtype=pl.String, default=None)
    rated = values.filter(fitted=schemas.OWN).with_columns(kind=kind).drop_nulls("kind")
    rows = []
    for row in rated.join(people, on=["scale", "axis", "kind"]).iter_rows(named=True):
        for column, *lists in COMPARED:
            compared, load = (np.array(row.pop(name)) for name in lists)
            value = row["value"]
            row[column] = None if value is None else finite(percentile(value, compared, load))
        rows.append(row)
    return pl.DataFrame(rows, infer_schema_length=None)


def baselines(statements: pl.DataFrame, language: str, params: Params) -> pl.DataFrame:
    """Return the values of random responses, and of constant agreement or disagreement.

    In random responses, P is uniform on (0, 1), as for statements exchangeable with apolitical
    ones.
    """
    rows = []
    political = statements.filter(pl.col("axis") != "", language=language)
    for (scale, axis), part in political.sort("scale", "axis").group_by("scale", "axis"):
        bearing = part["bearing"].to_numpy()
        load, agrees = np.abs(bearing), np.where(bearing < 0, 1.0, 5.0)
        rng = np.random.default_rng(params.seed)
        means = 4 * rng.random((params.n_permutations, len(load))) @ (load / load.sum()) + 1
        numbers = [(3.0, *np.quantile(means, [0.025, 0.975]))]
        constant = ((rated @ load / load.sum(),) * 3 for rated in (agrees, 6 - agrees))
        for name, ends in zip(schemas.BASELINES, [*numbers, *constant], strict=True):
            rows.append((scale, axis, name, *ends))
    names = ["scale", "axis", "baseline", "value", "low", "high"]
    table = pl.DataFrame(rows, names, orient="row").with_columns(language=pl.lit(language))
    return rounded(table, names[3:], p=())


def percentile(value: float, answers: Array, weights: Array | None = None) -> float:
    """Return twice the weighted share of answers strictly below or above a value, the smaller one.

    This is the paper's representativeness (section 3.3). It is 1 at a median without ties, and 0
    outside the range of answers or if all answers equal the value.

    Examples
    --------
    >>> [percentile(3.2, np.arange(1, 6)), percentile(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    """
    answers = np.asarray(answers, dtype=np.float64)
    if answers.ndim != 1 or not len(answers):
        raise ValueError("answers must be a nonempty vector")
    sides = answers < value, answers > value
    return 2 * float(min(np.average(side.astype(float), weights=weights) for side in sides))
