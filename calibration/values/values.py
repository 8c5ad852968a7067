"""Analysis ``values`` on simulated responses.

Planted effects are stated in points of the rating and converted into nats by a closed form: E Phi(e
+ m) = Phi(m / sqrt(1 + v)) for a normal e with mean 0 and variance v. Simplifications: lines go
through 0, log-odds are normally distributed, and all statements have the same weight. The effect on
the responses to a method is planted for the reading (method variant) that uses it. There is no
interval for the values of respondents who always agree or always disagree.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.special import ndtr, ndtri

from calibration.truth import Array, Drawn, Generator, Tables, Truth, outcomes_by
from calibration.values import answers
from calibration.values.answers import AXES, FRAMES, NEUTRAL, SCALE, Convictions
from plumbline.probes.values.schemas import ALL, CALIBRATION

READINGS = ("faithful", "corrected")
PLAIN = "corrected, plain"  # `corrected` in plain statements only, used for agreement
FITTED = ("by gender", "pooled", "by gender, likely half")
GENDERS = ("feminine", "masculine")
MARGIN = 0.2
NEAR = 1e-9
SIDES = (0.5, -0.5)  # share of a gender effect in feminine and in masculine templates
PLACES = np.linspace(answers.NEAR, answers.FAR, 101) / answers.MIDDLE  # places on the line
MEAN = PLACES.mean() / (PLACES**2).mean()  # slope of a line through 0 fitted to a constant 1
ABOVE = "likely above unlikely"
Shape = answers.AnswersShape
SHAPES = {
    "6 pairs a value, r .65": Shape(),
    "12 pairs a value, unrelated": Shape(pairs=12, opposite=0, denied=0, gender=0.3),
    "34 statements, no opposites": Shape(pairs=0, single=34),
}
# values, gender, women: rating points by value; likely: probability that a likely statement is
# above an unlikely one, by method; others: SDs of log-odds
TRUTHS = {
    # statements differ, but not by value, gender or likelihood
    "nothing differs": Truth("null"),
    # responses to templates, negations, genders and methods are independent
    "nothing is related": Truth("null", unrelated=True),
    # the gender differences in values and agreement are at the margin
    "gender at the margin": Truth(
        "null", gender=(MARGIN,) * 4, women=(MARGIN,) * 4, likely=(0.62, 0.62)
    ),
    # rating points by value; templates, negations and methods are weakly correlated
    "values differ": Truth(
        "planted",
        values=(0, 0.4, -0.7, 1.0),
        likely=(0.58, 0.68),
        shape={"frame": 0.35, "denied": 0.2, "method": 0.5},
    ),
    # templates, negations, opposites, genders and methods are less correlated
    "less is related": Truth(
        "planted",
        likely=(0.55, 0.54),
        shape={"frame": 0.6, "denied": 0.45, "opposite": 0.6, "gender": 0.6, "method": 0.9},
    ),
    # gender differences in rating points, by value
    "genders differ": Truth("planted", gender=(0, 0.1, -0.22, 0.55), likely=(0.64, 0.6)),
    # agreement with all political statements, 1 SD
    "political is agreed with": Truth("decoy", shift=1.0),
    # women agree more with all statements, 1 SD
    "women agree": Truth("decoy", habit=1.0),
    # the feminine part varies three times as much
    "women are louder": Truth("decoy", louder=3.0),
}
PARAMS: dict[str, Any] = {
    "n_bootstrap": 300,
    "n_permutations": 199,
    "frame": FRAMES[0],
    "equivalence_margin": MARGIN,
}


class Spread(NamedTuple):
    """Standard deviations of log-odds in one variant, nats."""

    genders: Array  # (2,): SD of a statement in feminine and masculine templates
    both: float  # SD of the mean over both genders
    neutral: Array  # (2,): SD of apolitical statements, including likelihood
    line: float  # SD around the line for both genders


class Known(NamedTuple):
    """True parameters of a replicate."""

    shape: Shape
    kind: str
    model: Convictions
    spreads: tuple[Spread, ...]  # by reading, and for PLAIN
    random: Array  # (axes,): mean of the random answers


def draw(folder: Path, truth: Truth, shape: Shape, rng: Generator) -> Drawn:
    """Write one replicate."""
    model = planted(shape, truth)
    inputs = answers.write(folder, shape, model, rng)
    items = answers.statements(shape)["axis"].value_counts().rows_by_key("axis", unique=True)
    random = [1 + 4 * rng.random(items[axis]).mean() for axis in AXES[: shape.axes]]
    return Drawn(inputs, Known(shape, truth.kind, model, spreads(shape, model), np.array(random)))


def spreads(shape: Shape, model: Convictions) -> tuple[Spread, ...]:
    """Return the spread of one plain template, of all with reversed negations, and of all plain."""
    frames = shape.frame + (1 - shape.frame) / shape.frames  # for the mean over templates
    common = np.array([1.0, frames * (1 - shape.denied) / 2, frames]) * (not model.unrelated)
    part = np.array([1.0, 1 / (2 * shape.frames), 1 / shape.frames])
    part = part * (1 if model.unrelated else shape.gender**2)
    louder = np.array([model.louder, 1.0]) ** 2
    result = []
    for r in range(3):
        genders = shape.noise * np.sqrt(common[r] + part[r] * louder)
        both = shape.noise * np.sqrt(common[r] + part[r] * louder.sum() / 4)
        neutral = np.hypot(genders, model.likely[min(r, 1)])
        habit = (r != 1) * model.habit / 2 * PLACES  # negations remove the habit
        line = np.sqrt((neutral**2).mean() + (habit**2).mean())
        result.append(Spread(genders, float(both), neutral, float(line)))
    return tuple(result)


def planted(shape: Shape, truth: Truth) -> Convictions:
    """Return the distribution of responses, in nats."""
    settings = truth.settings
    model = answers.convictions(shape)._replace(
        shift=shape.noise * settings.get("shift", 0.0),
        habit=shape.noise * settings.get("habit", 0.0),
        louder=settings.get("louder", 1.0),
        unrelated=settings.get("unrelated", False),
    )
    distance = np.sqrt(2) * ndtri(np.array(settings.get("likely", (0.5, 0.5))))  # in SDs
    likely = distance / 2 * np.array([s.both for s in spreads(shape, model)[:2]])
    model = model._replace(likely=likely)
    wide = np.array([np.hypot(s.line, s.genders) for s in spreads(shape, model)])
    wide = 1 / (1 / wide).mean(axis=1)  # half of a difference is planted in each gender
    wide, plain = wide[:2], wide[::2]  # agreement is measured in plain statements
    points = {
        name: np.array(settings.get(name, (0.0,) * shape.axes)[: shape.axes])
        for name in ("values", "gender", "women")
    }
    return model._replace(
        values=np.outer(wide, ndtri(0.5 + points["values"] / 4)),
        gender=np.outer(wide, 2 * ndtri(0.5 + points["gender"] / 8)),
        women=np.outer(plain, 2 * ndtri(0.5 + points["women"] / 8)),
    )


def likely_sigma(spread: Spread, model: Convictions, reading: int, gender: int) -> float:
    """Return the spread of likely statements around their own line through 0."""
    left = model.likely[reading] * (1 - MEAN * PLACES)
    return float(np.sqrt(spread.genders[gender] ** 2 + (left**2).mean()))


def ratings(record: Known) -> pl.DataFrame:
    """Return the true mean rating of statements by value, direction, gender and line."""
    shape, model = record.shape, record.model
    rows = []
    groups = answers.statements(shape).group_by("axis", "reversed").len()
    for axis, reverse, items in groups.sort("axis", "reversed").iter_rows():
        for name, spread in zip((*READINGS, PLAIN), record.spreads, strict=True):
            reading = int(name != READINGS[0])  # index of the method
            for g, side in enumerate(SIDES):
                nats = np.zeros((1, 1))
                if axis:
                    codes = AXES.index(axis)
                    faced = model.values[reading, codes] + side * model.gender[reading, codes]
                    nats += (-faced if reverse else faced) + side * model.women[reading, codes]
                    nats += 0.0 if name == READINGS[1] else model.shift
                else:
                    nats = nats + model.likely[reading] * np.array([1, -1])
                habit = side * model.habit * (name != READINGS[1]) * PLACES[:, None]
                lines = (spread.neutral[g], spread.line, likely_sigma(spread, model, reading, g))
                # a separate line removes a habit, that of likely statements also their mean
                moved = (0.0, habit, -(model.likely[reading] * MEAN * PLACES)[:, None])
                for fitted, line, removed in zip(FITTED, lines, moved, strict=True):
                    p = ndtr((nats + removed) / np.hypot(line, spread.genders[g])).mean()
                    key = (axis, reverse, items, name, GENDERS[g], fitted)
                    rows.append((*key, float(4 * p + 1)))
    names = ("axis", "reversed", "items", "reading", "gender", "fitted", "rating")
    return pl.DataFrame(rows, names, orient="row", infer_schema_length=None)


def _mean(table: pl.DataFrame, value: str, *by: str) -> pl.DataFrame:
    """Return weighted means of a column, with the items as weights."""
    mean = (pl.col(value) * pl.col("items")).sum() / pl.col("items").sum()
    return table.group_by(by, maintain_order=True).agg(target=mean)


def true_values(record: Known) -> pl.DataFrame:
    """Return the true values, with the columns reading, fitted, axis, gender and target."""
    table = ratings(record).filter(pl.col("axis") != "", pl.col("reading") != PLAIN)
    faced = pl.when("reversed").then(6 - pl.col("rating")).otherwise("rating")
    table = table.with_columns(faced=faced)
    both = table.with_columns(gender=pl.lit("both"))
    return _mean(pl.concat([table, both]), "faced", "reading", "fitted", "axis", "gender")


def true_differences(record: Known) -> pl.DataFrame:
    """Return the true differences, with the columns reading, fitted, measure, axis and target."""
    key = ["reading", "fitted", "axis", "reversed", "items"]
    wide = ratings(record).pivot(on="gender", index=key, values="rating")
    wide = wide.with_columns(apart=pl.col(GENDERS[0]) - pl.col(GENDERS[1]))
    values = wide.filter(pl.col("axis") != "", pl.col("reading") != PLAIN)
    plain = wide.filter(pl.col("reading") != READINGS[1])
    plain = plain.with_columns(pl.col("reading").replace(PLAIN, READINGS[1]))
    neutral, political = plain.filter(axis=""), plain.filter(pl.col("axis") != "")
    parts = [neutral.with_columns(measure=pl.lit("agreement"), axis=pl.lit(CALIBRATION))]
    signed = pl.when("reversed").then(-pl.col("apart")).otherwise("apart")
    values = values.with_columns(apart=signed)
    for measure, table in (("value", values), ("agreement", political)):
        rows = table.with_columns(measure=pl.lit(measure))
        parts += [rows, rows.with_columns(axis=pl.lit(ALL))]
    return _mean(pl.concat(parts), "apart", "reading", "fitted", "measure", "axis")


def true_correlations(record: Known) -> dict[tuple[str, str], float | None]:
    """Return the true correlations of residuals, by scale and comparison."""
    shape, model = record.shape, record.model
    related = not model.unrelated
    frame, number = shape.frame * related, shape.frames
    by_gender = np.array([model.louder**2, 1.0]) * (shape.gender**2 if related else 1.0)
    over_frames, gender_part = (frame + (1 - frame) / number) * related, by_gender.sum() / 4
    result: dict[tuple[str, str], float | None] = {}
    for scale in (NEUTRAL, SCALE):
        likely = model.likely / shape.noise * (scale == NEUTRAL)
        wide = over_frames + likely**2  # variance of the mean over templates, by method
        of_methods = np.sqrt((wide + gender_part / number).prod())
        total = related + likely[0] ** 2 + gender_part
        correlations = {
            "frames": (frame + likely[0] ** 2) / total,
            "denied": (likely[0] ** 2 - shape.denied * related) / total,
            "opposites": -shape.opposite,
            "genders": wide[0] / np.sqrt((wide[0] + by_gender / number).prod()),
            "methods": (shape.method * frame + likely.prod()) / of_methods,
        }
        clear = scale == NEUTRAL or not any(part.any() for part in model[:3])
        for name, value in correlations.items():
            result[scale, name] = float(value) if clear else None
    return result


def outcomes(tables: Tables, sample: Drawn) -> Tables:
    """Return the rows of each test by variant and, for gender, by line and measure."""
    record: Known = sample.known
    result: Tables = {}
    if not record.model.unrelated:
        result |= _values(tables["values"], record) | _gender(tables["gender"], record)
        result |= _calibration(tables["calibration"], record) | _people(tables, record)
    return result | _consistency(tables["consistency"], record)


def _values(table: pl.DataFrame, record: Known) -> Tables:
    key = ["reading", "fitted", "axis", "gender"]
    table = table.join(true_values(record), on=key, how="left", maintain_order="left")
    names = dict(zip(FITTED, ("", ", pooled", ", likely half"), strict=True))
    table = table.with_columns(line=pl.col("fitted").replace_strict(names))
    effect = 0.0 if record.kind == "decoy" else (pl.col("target") - 3).round(2)
    return outcomes_by(table, "values, {reading}{line}", effect=effect, target="target")


def _gender(table: pl.DataFrame, record: Known) -> Tables:
    key = ["reading", "fitted", "measure", "axis"]
    table = table.join(true_differences(record), on=key, how="left", maintain_order="left")
    neutral, target = pl.col("axis") == CALIBRATION, pl.col("target")
    part = pl.when(neutral).then(pl.lit(CALIBRATION)).otherwise("measure")
    table = table.with_columns(checked=neutral, part=part)
    decoy = record.kind == "decoy"
    # the null hypothesis of equivalence holds at the margin; outside, the effect is unknown
    inside = (MARGIN - target.abs()).round(2) + 0.0
    inside = pl.when((inside >= 0) & (not decoy)).then(inside)
    several = (pl.col("axis") == ALL) & (not decoy) & (target.abs() > NEAR)
    agreement, pooled = pl.col("measure") == "agreement", pl.col("fitted") == "pooled"
    habit = agreement & pooled & (record.model.habit != 0)  # a habit changes agreement
    gap = pl.when(~several & ~habit).then(pl.lit(0.0) if decoy else target.round(2))
    family = ["reading", "fitted", "checked"]
    equivalence: dict[str, Any] = {"interval": ["value", "equivalence_low", "equivalence_high"]}
    tested: dict[str, Any] = {"p": "p_equivalence", "p_adjusted": "p_equivalence_bh"}
    result: Tables = {}
    both = table.filter(pl.col("fitted").is_in(FITTED[:2]))
    single = ("gender, {reading}, {fitted}, {part}", both, target)
    for test, rows, true in (("gender", table, None), single):
        result |= outcomes_by(rows, f"{test}: difference", effect=gap, target=true, family=family)
        name = f"{test}: equivalence"
        result |= outcomes_by(rows, name, effect=inside, family=family, **equivalence, **tested)
        name = f"{test}: equivalence, 90% interval"
        result |= outcomes_by(rows, name, effect=gap, target=true, p="", **equivalence)
    return result


def _calibration(table: pl.DataFrame, record: Known) -> Tables:
    names = ("reading", "fitted", "gender", "frame", "form", "measure")
    true = [_line(record, *row) for row in table.select(names).iter_rows()]
    table = table.with_columns(
        target=pl.Series(true, dtype=pl.Float64), kind=pl.col("measure").str.slice(0, 5)
    )
    lines = table.filter(pl.col("kind").is_in(["slope", "sigma"]))
    effect = 0.0 if record.kind == "decoy" else (pl.col("target") - 0.5).round(2)
    above = table.filter(measure=ABOVE)
    return outcomes_by(lines, "calibration: {kind}", effect=0.0, target="target") | outcomes_by(
        above, "calibration: {measure}, {reading}", effect=effect, target="target"
    )


def _line(
    record: Known, reading: str, fitted: str, gender: str, frame: str, form: str, measure: str
) -> float:
    """Return the true value of a parameter of a line."""
    r, negated = READINGS.index(reading), form == "negated"
    spread, likely = record.spreads[r], record.model.likely[r]
    alone, half = gender in GENDERS, fitted == FITTED[-1]
    g = GENDERS.index(gender) if alone else 0
    if measure == "slope":
        slope = float(answers.slopes(record.shape)[r, FRAMES.index(frame), int(negated)])
        slope -= SIDES[g] * record.model.habit / answers.MIDDLE if alone else 0.0
        return float(slope - half * (-1 if negated else 1) * likely * MEAN / answers.MIDDLE)
    if measure == ABOVE:
        return float(ndtr(np.sqrt(2) * likely / (spread.genders[g] if alone else spread.both)))
    if half:
        return likely_sigma(spread, record.model, r, g)
    return float(spread.neutral[g]) if alone else spread.line


def _consistency(table: pl.DataFrame, record: Known) -> Tables:
    true = true_correlations(record)
    targets = [true[key] for key in table.select("scale", "comparison").iter_rows()]
    table = table.with_columns(target=pl.Series(targets, dtype=pl.Float64))
    differs = record.model.gender.any()
    stated = record.kind == "null" or (record.kind == "planted" and not differs)  # of correlations
    effect = pl.col("target").round(2) + 0.0 if stated else None
    result: Tables = {}
    for test, target in (("consistency", None), ("consistency, {comparison}", "target")):
        result |= outcomes_by(table, test, effect=effect, target=target, family=["scale"])
    return result


def _people(tables: Tables, record: Known) -> Tables:
    """Return the mean answers of respondents and the means of random answers, with true values."""
    women, men = answers.survey_means(record.shape)
    means = {"female": women, "male": men, ALL: (women + men) / 2}
    people = tables["respondents"]
    drawn = tables["baselines"].filter(baseline="random answers")
    rows = [
        (g, axis, value)
        for g, values in means.items()
        for axis, value in zip(AXES, values, strict=False)
    ]
    truth = pl.DataFrame(rows, ["gender", "axis", "target"], orient="row")
    people = people.join(truth, on=["gender", "axis"], maintain_order="left")
    random = pl.col("axis").replace_strict(dict(zip(AXES, record.random.tolist(), strict=False)))
    result = outcomes_by(people, "respondents", effect=0.0, target="target", p="")
    test = "baselines: random answers"
    return result | outcomes_by(drawn, test, effect=0.0, target=random, p="")
