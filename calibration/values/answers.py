"""Simulated outputs of ``agreement``, statements and a survey, from known parameters.

The deviations of the log-odds of agreement from a line through 0 are normal. The effect of a
statement has a part shared between templates, a part shared with its negation, and a part specific
to each gender, all correlated with those of its opposite. Effects of values change sign with the
direction of a statement and with its negation; acquiescence, a habit of agreeing, does not.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field
from scipy.special import ndtr

from calibration.truth import Array, Generator
from plumbline.builders.core.params import Params
from plumbline.builders.datasets.survey.responses import GENDERS as PEOPLE
from plumbline.builders.datasets.survey.responses import HIGHEST, INFECTED, LOWEST
from plumbline.probes.core.run_analysis import Inputs
from plumbline.probes.prompts.opinions import FORMS, GENDERS, METHODS

LANGUAGE, MODEL = "xx", "m"
AXES = ("order", "trade", "care", "faith", "land", "work")
FRAMES = ("said", "wrote", "asked", "thought")
SCALE, NEUTRAL = "values", "calibration"
SOURCE = {"source": "simulated", "licence": "CC0-1.0"}
NEAR, MIDDLE, FAR = 2.0, 4.0, 6.0  # nats; the log-probability of disagreement is uniform
TASTE, BETWEEN = 0.9, 0.6  # SD of answers within people, and between them


class AnswersShape(Params):
    """Shape of a model's responses and of a survey."""

    axes: int = Field(4, description="values")
    pairs: int = Field(6, description="number of pairs of opposite statements per value")
    single: int = Field(0, description="total of statements without opposites, none reversed")
    neutral: int = Field(100, description="number of apolitical statements, half of them likely")
    frames: int = Field(3, description="templates")
    noise: float = Field(0.3, description="SD of the log-odds of agreement, nats")
    opposite: float = Field(0.65, description="correlation between a statement and its opposite")
    frame: float = Field(0.8, description="correlation between templates")
    denied: float = Field(0.9, description="correlation between a statement and its negation")
    method: float = Field(0, description="correlation between methods")
    gender: float = Field(0.1, description="gender-specific SD, relative to the noise")
    people: int = Field(120, description="number of respondents in the survey")


class Convictions(NamedTuple):
    """Distribution of responses, in nats; the first method is ``together``."""

    values: Array  # (methods, axes): agreement with statements in favour of a value
    gender: Array  # (methods, axes): difference in this agreement, feminine minus masculine
    women: Array  # (methods, axes): this difference for statements in either direction
    likely: Array  # (methods,): agreement with likely and disagreement with unlikely statements
    shift: float = 0.0  # agreement with political statements
    # acquiescence at the middle of the line, feminine minus masculine
    habit: float = 0.0
    louder: float = 1.0  # factor that multiplies the feminine part of the noise
    unrelated: bool = False  # True if templates, genders and methods are independent


def convictions(shape: AnswersShape) -> Convictions:
    """Return the parameters of a model without effects."""
    nothing = np.zeros((2, shape.axes))
    return Convictions(nothing, nothing, nothing, np.zeros(2))


@lru_cache(maxsize=8)
def statements(shape: AnswersShape) -> pl.DataFrame:
    """Return the statements: apolitical ones, then pairs, then those without an opposite."""
    rows: list[tuple[Any, ...]]
    rows = [(f"c{i:02d}", "", "", False, i % 2, NEUTRAL) for i in range(shape.neutral)]
    for axis, i, reverse in product(AXES[: shape.axes], range(shape.pairs), (False, True)):
        names = [f"{axis}-{i}{'-r' * back}" for back in (reverse, not reverse)]
        rows.append((names[0], axis, names[1], reverse, None, SCALE))
    for i in range(shape.single):
        axis = AXES[i % shape.axes]
        rows.append((f"{axis}-s{i}", axis, "", False, None, SCALE))
    names = ["id", "axis", "opposite", "reversed", "polarity", "scale"]
    table = pl.DataFrame(rows, names, schema_overrides={"polarity": pl.Int64}, orient="row")
    return table.with_columns(
        text=pl.format("statement {}", pl.int_range(pl.len())),
        language=pl.lit(LANGUAGE),
        weight=pl.lit(1.0),
        **{name: pl.lit(value) for name, value in SOURCE.items()},
    )


def odds(shape: AnswersShape, model: Convictions, x: Array, rng: Generator) -> Array:
    """Draw deviations from the line, (statements, methods, frames, forms, genders), nats.

    Acquiescence is a separate slope; ``x``, (statements,), are log-probabilities of disagreement.
    """
    cells = (2, shape.frames, 2, 2)

    def drawn(*size: int) -> Array:
        """Return standard normal variates, (statements, *size), correlated within pairs."""
        paired = 2 * shape.pairs * shape.axes
        result = rng.standard_normal((shape.neutral + paired + shape.single, *size))
        part, rho = result[shape.neutral :][:paired], shape.opposite
        part[1::2] = rho * part[::2] + np.sqrt(1 - rho**2) * part[1::2]
        return result

    def mixed(r: float, one: Array, other: Array) -> Array:
        result: Array = np.sqrt(r) * one + np.sqrt(1 - r) * other
        return result

    part = drawn(*cells) * np.array([model.louder, 1.0])
    if model.unrelated:
        result = part
    else:
        of_method = mixed(shape.method, drawn(1, 1), drawn(2, 1))
        plain = mixed(shape.frame, of_method, drawn(2, shape.frames))
        again = mixed(shape.frame, drawn(2, 1), drawn(2, shape.frames))
        denied = shape.denied * plain + np.sqrt(1 - shape.denied**2) * again
        result = np.stack([plain, denied], axis=-1)[..., None] + shape.gender * part
    items, side = statements(shape), np.array([0.5, -0.5])  # feminine, masculine
    bears = np.array([items["axis"] == axis for axis in AXES[: shape.axes]], dtype=np.float64).T
    faces = bears * np.where(items["reversed"], -1.0, 1.0)[:, None]
    likely = 1 - 2 * items["polarity"].fill_null(0.5).cast(pl.Float64).to_numpy()
    likely = np.where(items["axis"] == "", likely, 0.0)
    means = (faces @ model.values.T + np.outer(likely, model.likely))[..., None]
    means = means + (faces @ model.gender.T + bears @ model.women.T)[..., None] * side
    # statements, methods, 1, forms, genders
    signed = means[:, :, None, None] * np.array([1.0, -1.0])[:, None]
    habit = model.habit * np.outer(x / -MIDDLE, side)  # (statements, genders)
    shift = model.shift * bears.sum(axis=1)[:, None] + habit
    total: Array = shape.noise * result + signed + shift[:, None, None, None]
    return total


def slopes(shape: AnswersShape) -> Array:
    """Return the slopes of the lines, an array of shape (methods, frames, forms)."""
    by_frame = np.add.outer(0.9 + 0.05 * np.arange(shape.frames), [0.0, 0.03])
    return np.stack([by_frame, by_frame])


@lru_cache(maxsize=8)
def _questions(shape: AnswersShape) -> pl.DataFrame:
    """Return the questions in the order of the log-odds."""
    items = statements(shape).select(
        "scale", "id", questionnaire=pl.col("scale") + f"-{LANGUAGE}", text="text"
    )
    names = ("method", "frame", "form", "gender")
    cells = [*product(METHODS[:2], FRAMES[: shape.frames], FORMS, GENDERS)]
    questions = pl.DataFrame(cells, schema=names, orient="row")
    return items.join(questions, how="cross", maintain_order="left_right")


def write(
    folder: Path, shape: AnswersShape, model: Convictions, rng: Generator, *, causal: bool = False
) -> Inputs:
    """Write statements, a survey and a model's responses, and return the inputs of the analysis."""
    datasets = {name: folder / name for name in ("statements", "survey")}
    inputs = Inputs((MODEL,), datasets, folder / "data")
    empty = pl.DataFrame({"config": [], "reason": [], "number": []})
    empty.write_parquet(datasets["statements"] / "rejects.parquet", mkdir=True)
    items = statements(shape)
    for scale in (NEUTRAL, SCALE):
        part = items.filter(scale=scale)
        part.write_parquet(datasets["statements"] / f"{scale}-{LANGUAGE}.parquet", mkdir=True)
    survey(shape, rng).write_parquet(datasets["survey"] / "simulated.parquet", mkdir=True)
    disagree = -rng.uniform(NEAR, FAR, len(items))
    err, x = odds(shape, model, disagree, rng), disagree[:, None, None, None, None]
    rows = _questions(shape).with_columns(
        agree_nats=pl.Series((slopes(shape)[..., None] * x + err).ravel()),
        disagree_nats=pl.Series(np.broadcast_to(x, err.shape).ravel()),
    )
    if causal:
        rows = rows.filter(method=METHODS[0]).with_columns(method=pl.lit("sequence"))
    rows.write_parquet(inputs.outputs("agreement", MODEL) / LANGUAGE / "00000.parquet", mkdir=True)
    return inputs


def centres(shape: AnswersShape) -> Array:
    """Return the mean values of women and men minus 3, an array of shape (2, axes)."""
    axes = np.arange(shape.axes)
    return np.stack([0.6 - 0.3 * axes, 0.4 - 0.2 * axes])


def survey(shape: AnswersShape, rng: Generator) -> pl.DataFrame:
    """Draw answers: women and men alternate, 30% are infected, 1% of the answers is missing."""
    items = statements(shape).filter(scale=SCALE)
    index = np.array([AXES.index(axis) for axis in items["axis"]])
    man = np.arange(shape.people) % 2
    value = centres(shape)[man] + BETWEEN * rng.standard_normal((shape.people, shape.axes))
    taste = value[:, index] * np.where(items["reversed"], -1, 1)
    taste = taste + TASTE * rng.standard_normal(taste.shape)
    codes = {
        "gender": man * (PEOPLE.index("male") - PEOPLE.index("female")) + PEOPLE.index("female"),
        "infected": np.where(rng.random(shape.people) < 0.3, *map(INFECTED.index, ("yes", "no"))),
    }
    names = pl.DataFrame({"respondent": [f"p{n:04d}" for n in range(shape.people)]} | codes)
    return (
        names.join(items.select("scale", item="id"), how="cross", maintain_order="left_right")
        .with_columns(
            answer=pl.Series(np.clip(np.rint(3 + taste), LOWEST, HIGHEST).ravel().astype(np.int32)),
            simulated=pl.lit(value=True),
            weight=pl.lit(1.0),
            **{name: pl.lit(value) for name, value in SOURCE.items()},
        )
        .filter(rng.random(taste.size) >= 0.01)
    )


def survey_means(shape: AnswersShape) -> Array:
    """Return the true mean answers of women and men, reversed if required, (2, axes)."""
    spread = np.hypot(BETWEEN, TASTE)
    edges = np.arange(LOWEST, HIGHEST) + 0.5 - 3  # limits between adjacent answers
    result: Array = LOWEST + ndtr((centres(shape)[..., None] - edges) / spread).sum(axis=-1)
    return result
