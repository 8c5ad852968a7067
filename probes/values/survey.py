"""Respondents of surveys by value, and where models and baselines stand among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core import parquet
from plumbline.builders.core.errors import UserError
from plumbline.builders.datasets.survey.responses import GENDERS, INFECTED
from plumbline.probes.stats.bootstrap import bits, keys, poisson
from plumbline.probes.stats.estimate import finite
from plumbline.probes.values.ratings import Rows, estimate, random_means
from plumbline.probes.values.schemas import ALL, BASELINES, PLACE, STATUS, WHO

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.values.schemas import Params

    Array = NDArray[np.float64]

RESPONDENTS_OF = {"feminine": "female", "masculine": "male", "both": ALL}


class Survey(NamedTuple):
    """What respondents of one survey answered, by value."""

    name: str
    simulated: bool
    scale: str
    scores: pl.DataFrame  # respondent, gender, infected, axis, score

    def of(self, axis: str, gender: str = ALL, infected: str = ALL) -> pl.DataFrame:
        """Return the respondents of a kind who answered to a value."""
        own = self.scores.filter(pl.col("axis") == axis)
        if gender != ALL:
            own = own.filter(pl.col("gender") == gender)
        if infected != ALL:
            own = own.filter(pl.col("infected") == infected)
        return own.sort("respondent")


def surveys(folder: Path, statements: pl.DataFrame) -> list[Survey]:
    """Return every survey, its answers turned round where that is due and averaged by value.

    Parameters
    ----------
    statements
        Of all languages: columns scale, id, axis, bearing.

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
        scale, simulated = frame["scale"][0], frame["simulated"][0]
        if joined.is_empty():
            if scale not in set(known["scale"]):
                continue  # a survey of a questionnaire that is not asked
            raise UserError(
                f"{folder / config}.parquet: answers to none of the statements of {scale!r}; the "
                "heads of its columns must be their ids"
            )
        load, answer = pl.col("bearing").abs(), pl.col("answer")
        value = pl.when(pl.col("bearing") < 0).then(6 - answer).otherwise(answer)
        scores = joined.group_by("respondent", "gender", "infected", "axis").agg(
            score=(value * load).sum() / load.sum()
        )
        scores = scores.with_columns(
            pl.col(name).replace_strict(dict(enumerate(labels)), return_dtype=pl.String)
            for name, labels in (("gender", GENDERS), ("infected", INFECTED))
        )
        found.append(Survey(config, simulated, scale, scores))
    return found


def respondents(survey: Survey, params: Params) -> Rows:
    """Return mean, spread and quartiles of the respondents, by value, gender and infection."""
    rows = []
    for axis in survey.scores["axis"].unique().sort():
        for gender in (ALL, *GENDERS):
            for infected in STATUS:
                own = survey.of(axis, gender, infected)
                if own.is_empty():
                    continue
                score = own["score"].to_numpy()
                drawn = poisson(bits(keys(own["respondent"]), params.n_bootstrap, params.seed))
                with np.errstate(invalid="ignore"):
                    means = score @ drawn / drawn.sum(axis=0)
                low, median, high = np.quantile(score, [0.25, 0.5, 0.75])
                rows.append(
                    estimate(
                        np.r_[score.mean(), means],
                        len(own),
                        params,
                        cluster="respondent",
                        null="none",
                        survey=survey.name,
                        simulated=survey.simulated,
                        scale=survey.scale,
                        axis=axis,
                        gender=gender,
                        infected=STATUS.index(infected),
                        sd=finite(score.std(ddof=1)) if len(own) > 1 else None,
                        median=finite(median),
                        quartile_low=finite(low),
                        quartile_high=finite(high),
                    )
                )
    return rows


def _place(survey: Survey, score: Array, value: float) -> dict[str, Any]:
    return {
        "survey": survey.name,
        "simulated": survey.simulated,
        "respondents": len(score),
        "median": finite(float(np.median(score))),
        "percentile_tails": finite(percentile_tails(value, score)),
        "percentile_distance": finite(percentile_distance(value, score)),
    }


def standing(rows: Rows, found: list[Survey]) -> Rows:
    """Return where values of the default variant stand among respondents of the same gender."""
    placed = []
    shared = ("model", "language", "scale", "reading", "axis", "gender")
    for row in rows:
        if row["fitted"] or row["intercept"] or row["spread"]:
            continue
        for survey in (s for s in found if s.scale == row["scale"]):
            for infected in STATUS:
                gender = RESPONDENTS_OF[WHO[row["gender"]]]
                score = survey.of(row["axis"], gender, infected)["score"].to_numpy()
                if len(score):
                    placed.append(
                        {name: row[name] for name in shared}
                        | {"value": row["value"], "infected": STATUS.index(infected)}
                        | _place(survey, score, row["value"])
                    )
    return placed


def baselines(about: pl.DataFrame, language: str, found: list[Survey], params: Params) -> Rows:
    """Return the values of random responses, and of agreeing or disagreeing with everything.

    Parameters
    ----------
    about
        Statements of a language that bear on a value.
    """
    rows = []
    for (scale, axis), own in sorted(about.group_by("scale", "axis"), key=lambda part: part[0]):
        bearing = own["bearing"].to_numpy()
        load, agrees = np.abs(bearing), np.where(bearing < 0, 1.0, 5.0)
        drawn = random_means(load, params)
        ends = {
            BASELINES[0]: (3.0, *np.quantile(drawn, [0.025, 0.975]), 4 / np.sqrt(12)),
            BASELINES[1]: _always(agrees, load),
            BASELINES[2]: _always(6 - agrees, load),
        }
        for name, (value, low, high, sd) in ends.items():
            about_it = {
                "language": language,
                "scale": scale,
                "baseline": BASELINES.index(name),
                "axis": axis,
                "items": len(own),
                "value": finite(value),
                "low": finite(low),
                "high": finite(high),
                "sd": finite(sd),
            }
            rows += [about_it | place for place in _places(found, scale, axis, value)]
    return rows


def _places(found: list[Survey], scale: str, axis: str, value: float) -> Rows:
    """Return where a value stands among all respondents of each survey of a scale."""
    own = [s for s in found if s.scale == scale]
    if not own:
        return [dict.fromkeys(column.name for column in PLACE) | {"survey": "", "respondents": 0}]
    return [_place(survey, survey.of(axis)["score"].to_numpy(), value) for survey in own]


def _always(ratings: Array, load: Array) -> tuple[float, float, float, float]:
    value = float((ratings * load).sum() / load.sum())
    return value, value, value, float(ratings.std(ddof=1)) if len(ratings) > 1 else 0.0


def percentile_tails(value: float, answers: Array) -> float:
    """Return twice the smaller of the shares of answers strictly below and strictly above.

    1 at a median that nobody shares, 0 outside all answers and where all others say the same.

    Examples
    --------
    >>> [percentile_tails(3.2, np.arange(1, 6)), percentile_tails(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    """
    answers = _answers(answers)
    return 2 * float(min((answers < value).mean(), (answers > value).mean()))


def percentile_distance(value: float, answers: Array) -> float:
    """Return the share of answers that are strictly farther from their median than a value.

    Examples
    --------
    >>> [percentile_distance(3.2, np.arange(1, 6)), percentile_distance(2.5, np.arange(1, 5))]
    [0.8, 1.0]
    """
    answers = _answers(answers)
    middle = float(np.median(answers))
    return float((np.abs(answers - middle) > abs(value - middle)).mean())


def _answers(answers: Array) -> Array:
    found = np.asarray(answers, dtype=np.float64)
    if found.ndim != 1 or not len(found):
        raise ValueError("needs a vector of answers")
    return found
