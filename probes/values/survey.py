"""Survey respondents by value, the standing of models among them, and baselines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.survey.responses import GENDERS, INFECTED
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.stats.estimate import finite, rounded
from plumbline.probes.values.ratings import estimate
from plumbline.probes.values.schemas import ALL, BASELINES, OWN

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.values.calibration import Array
    from plumbline.probes.values.schemas import Params

RESPONDENTS_OF = {"feminine": "female", "masculine": "male"}
KIND = ("survey", "simulated", "scale", "axis", "gender", "infected")


def surveys(folder: Path, statements: pl.DataFrame) -> pl.DataFrame:
    """Return the respondents of all surveys, a row for each value and kind of respondents.

    Kinds are combinations of gender and infection status, each with the level ``all``. The columns
    are :data:`KIND`, and lists of equal length: ``respondent``, sorted, and ``score``, the mean
    response after reversal. Raises UserError if a survey has no known statement.

    ``statements``: columns scale, id, axis and bearing, for all languages.
    """
    columns = ["scale", "id", "axis", "bearing"]
    bearing = statements.select(columns).filter(pl.col("axis") != "").unique().sort(columns)
    tables = []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        joined = frame.join(bearing, left_on=["scale", "item"], right_on=["scale", "id"])
        if joined.is_empty() and frame["scale"][0] in set(bearing["scale"]):
            raise UserError(
                f"{folder / config}.parquet: answers to none of the statements of "
                f"{frame['scale'][0]!r}; the heads of its columns must be their ids"
            )
        tables.append(joined.with_columns(survey=pl.lit(config)))
    load, answer = pl.col("bearing").abs(), pl.col("answer")
    value = pl.when(pl.col("bearing") < 0).then(6 - answer).otherwise(answer)
    scores = pl.concat(tables).group_by(*KIND, "respondent", maintain_order=True)
    people = scores.agg(score=(value * load).sum() / load.sum())
    for name, labels in (("gender", GENDERS), ("infected", INFECTED)):
        codes = dict(enumerate(labels))
        people = people.with_columns(pl.col(name).replace_strict(codes, return_dtype=pl.String))
        people = pl.concat([people, people.with_columns(pl.lit(ALL).alias(name))])
    people = people.sort("respondent")
    return people.group_by(KIND, maintain_order=True).agg("respondent", "score")


def respondents(people: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return mean and standard deviation of every kind of respondents."""
    rows = []
    for kind in people.iter_rows(named=True):
        names, score = kind.pop("respondent"), np.array(kind.pop("score"))
        weights = poisson(bits(keys(names), params.n_bootstrap, params.seed))
        with np.errstate(invalid="ignore"):
            draws = np.r_[score.mean(), score @ weights / weights.sum(axis=0)]
        sd = finite(score.std(ddof=1)) if len(score) > 1 else None
        rows.append(estimate(draws, len(score), params, **kind, sd=sd))
    return pl.DataFrame(rows, infer_schema_length=None)


def standing(values: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Return the percentiles of a gender's values among the respondents of that gender.

    As in the paper, respondents are uninfected, or all if infection is not recorded.
    """
    healthy = people.filter(infected="no")
    unknown = people.filter(infected=ALL).join(healthy, on="survey", how="anti")
    people = pl.concat([healthy, unknown]).rename({"gender": "kind"})
    kind = pl.col("gender").replace_strict(RESPONDENTS_OF, return_dtype=pl.String, default=None)
    rated = values.filter(fitted=OWN).with_columns(kind=kind).drop_nulls("kind")
    rows = []
    for row in rated.join(people, on=["scale", "axis", "kind"]).iter_rows(named=True):
        score, value = np.array(row.pop("score")), row["value"]
        share = None if value is None else finite(percentile(value, score))
        rows.append(row | {"percentile": share})
    return pl.DataFrame(rows, infer_schema_length=None)


def baselines(statements: pl.DataFrame, language: str, params: Params) -> pl.DataFrame:
    """Return the values of random responses, and of constant agreement or disagreement.

    Random responses have P uniform on (0, 1), as if exchangeable with apolitical statements.
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
        for name, ends in zip(BASELINES, [*numbers, *constant], strict=True):
            rows.append((scale, axis, name, *ends))
    names = ["scale", "axis", "baseline", "value", "low", "high"]
    table = pl.DataFrame(rows, names, orient="row").with_columns(language=pl.lit(language))
    return rounded(table, names[3:], p=())


def percentile(value: float, answers: Array) -> float:
    """Return twice the smaller share of answers, strictly below or strictly above.

    This is the paper's representativeness (section 3.3): 1 at a median without ties, 0 outside the
    range of answers or if all answers are equal.

    Examples
    --------
    >>> [percentile(3.2, np.arange(1, 6)), percentile(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    """
    answers = np.asarray(answers, dtype=np.float64)
    if answers.ndim != 1 or not len(answers):
        raise ValueError("needs a vector of answers")
    return 2 * float(min((answers < value).mean(), (answers > value).mean()))
