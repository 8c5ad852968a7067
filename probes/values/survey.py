"""Respondents of surveys by value, and where models stand among them; answers of no conviction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.survey.responses import GENDERS, INFECTED
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.stats.estimate import finite, rounded
from plumbline.probes.values.ratings import estimate, random_means
from plumbline.probes.values.schemas import ALL, BASELINES, OWN

if TYPE_CHECKING:
    from pathlib import Path

    from plumbline.probes.values.responses import Array
    from plumbline.probes.values.schemas import Params

RESPONDENTS_OF = {"feminine": "female", "masculine": "male"}
KIND = ("survey", "simulated", "scale", "axis", "gender", "infected")


def surveys(folder: Path, statements: pl.DataFrame) -> pl.DataFrame:
    """Return the respondents of all surveys, a row for each value and kind of respondents.

    Kinds are gender and infection status, ``all`` among the values of both.

    Parameters
    ----------
    statements
        Of all languages: columns scale, id, axis, bearing.

    Returns
    -------
    DataFrame
        :data:`KIND`, and lists of equal length: ``respondent``, sorted, and ``score``, the mean of
        a respondent's answers, turned round where that is due.

    Raises
    ------
    UserError
        If no statement of a survey is in the dataset ``statements``.
    """
    columns = ["scale", "id", "axis", "bearing"]
    known = statements.select(columns).filter(pl.col("axis") != "").unique().sort(columns)
    found = []
    for config in parquet.configs(folder):
        frame = pl.read_parquet(folder / f"{config}.parquet")
        joined = frame.join(known, left_on=["scale", "item"], right_on=["scale", "id"])
        if joined.is_empty() and frame["scale"][0] in set(known["scale"]):
            raise UserError(
                f"{folder / config}.parquet: answers to none of the statements of "
                f"{frame['scale'][0]!r}; the heads of its columns must be their ids"
            )
        found.append(joined.with_columns(survey=pl.lit(config)))
    load, answer = pl.col("bearing").abs(), pl.col("answer")
    value = pl.when(pl.col("bearing") < 0).then(6 - answer).otherwise(answer)
    scores = pl.concat(found).group_by(*KIND, "respondent", maintain_order=True)
    every = scores.agg(score=(value * load).sum() / load.sum())
    for name, labels in (("gender", GENDERS), ("infected", INFECTED)):
        codes = dict(enumerate(labels))
        own = every.with_columns(pl.col(name).replace_strict(codes, return_dtype=pl.String))
        every = pl.concat([own, own.with_columns(pl.lit(ALL).alias(name))])
    every = every.sort("respondent")
    return every.group_by(KIND, maintain_order=True).agg("respondent", "score")


def respondents(people: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return mean, spread and quartiles of every kind of respondents."""
    rows = []
    for kind in people.iter_rows(named=True):
        names, score = kind.pop("respondent"), np.array(kind.pop("score"))
        drawn = poisson(bits(keys(names), params.n_bootstrap, params.seed))
        with np.errstate(invalid="ignore"):
            draws = np.r_[score.mean(), score @ drawn / drawn.sum(axis=0)]
        low, median, high = map(finite, np.quantile(score, [0.25, 0.5, 0.75]))
        about = kind | {"median": median, "quartile_low": low, "quartile_high": high}
        about |= {"sd": finite(score.std(ddof=1)) if len(score) > 1 else None}
        rows.append(estimate(draws, len(score), params, **about))
    return pl.DataFrame(rows, infer_schema_length=None)


def standing(values: pl.DataFrame, people: pl.DataFrame) -> pl.DataFrame:
    """Return where the values of a gender's frames stand among its respondents.

    As in the paper: respondents who are not infected; all of them where a survey does not say.
    """
    known = people.filter(infected="no")
    rest = people.filter(infected=ALL).join(known, on="survey", how="anti")
    people = pl.concat([known, rest]).rename({"gender": "kind"})
    kind = pl.col("gender").replace_strict(RESPONDENTS_OF, return_dtype=pl.String, default=None)
    own = values.filter(fitted=OWN).with_columns(kind=kind).drop_nulls("kind")
    rows = []
    for row in own.join(people, on=["scale", "axis", "kind"]).iter_rows(named=True):
        score = np.array(row.pop("score"))
        row |= {"respondents": len(score), "median": finite(float(np.median(score)))}
        share = None if row["value"] is None else finite(percentile(row["value"], score))
        rows.append(row | {"percentile": share})
    return pl.DataFrame(rows, infer_schema_length=None)


def baselines(statements: pl.DataFrame, language: str, params: Params) -> pl.DataFrame:
    """Return the values of random responses, and of agreeing or disagreeing with everything."""
    rows = []
    own = statements.filter((pl.col("language") == language) & (pl.col("axis") != ""))
    for (scale, axis), part in sorted(own.group_by("scale", "axis"), key=lambda each: each[0]):
        bearing = part["bearing"].to_numpy()
        load, agrees = np.abs(bearing), np.where(bearing < 0, 1.0, 5.0)
        ends = np.quantile(random_means(load, params), [0.025, 0.975])
        told = [(3.0, *ends, 4 / np.sqrt(12))]
        for rated in (agrees, 6 - agrees):
            value = (rated * load).sum() / load.sum()
            told.append((value, value, value, rated.std(ddof=1) if len(part) > 1 else 0.0))
        rows += [
            (scale, axis, len(part), name, *numbers)
            for name, numbers in zip(BASELINES, told, strict=True)
        ]
    names = ["scale", "axis", "items", "baseline", "value", "low", "high", "sd"]
    table = pl.DataFrame(rows, names, orient="row").with_columns(language=pl.lit(language))
    return rounded(table, names[4:], p=())


def percentile(value: float, answers: Array) -> float:
    """Return twice the smaller of the shares of answers strictly below and strictly above.

    The paper's representativeness (section 3.3): 1 at a median that nobody shares, 0 outside all
    answers and where all others say the same.

    Examples
    --------
    >>> [percentile(3.2, np.arange(1, 6)), percentile(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    """
    answers = np.asarray(answers, dtype=np.float64)
    if answers.ndim != 1 or not len(answers):
        raise ValueError("needs a vector of answers")
    return 2 * float(min((answers < value).mean(), (answers > value).mean()))
