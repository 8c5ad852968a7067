"""Analysis ``compass``: coordinates of models on the axes of a political questionnaire.

Feng et al. (2023) score a model's stances on statements as they would those of a person, from a
masked word or a generated response, before and after further training on partisan texts. Röttger et
al. (2024) use multiple choice, and measure the stability of stances under changes of the prompt.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import ndtr
from scipy.stats import foldnorm

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning import responses, schemas
from plumbline.probes.leaning.responses import ITSELF, State, outputs, readings, wordings
from plumbline.probes.leaning.schemas import SCHEMAS
from plumbline.probes.leaning.schemas import CompassParams as Params
from plumbline.probes.leaning.scoring import NATS_UNIT, STANCES, moved, scales
from plumbline.probes.stats.crossed import estimated, of_difference, of_mean, of_total
from plumbline.probes.stats.estimate import (
    DECIMALS,
    DF,
    TESTED_ERROR,
    Estimate,
    adjusted,
    finite,
    least_p,
    typed,
)
from plumbline.probes.stats.intervals import wilson
from plumbline.probes.stats.tests import permutation_p, shuffled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.leaning.responses import Reading
    from plumbline.probes.leaning.scoring import Array, Scale

    Integers = NDArray[np.int64]
    Row = dict[str, Any]
    Rows = list[Row]

DATASETS = ("statements",)
OUTPUTS = ("stances",)
OPTIONAL = ("shifts", "stability", "magnitudes")  # tables that may have no rows
FAMILY = ("model", "questionnaire", "response_format", "reading")
GRADED = ("continuous", "expected")  # stances may lie between options; other variants choose one
REACH = 1.959963984540054  # .975 quantile of the normal distribution
TURNED = ("negated", "opposites")  # comparisons that reverse the side
FORMS = {"negated": "negated", "paraphrases": "paraphrase"}  # each is compared with the plain form
# the only column that differs between the compared prompts
FREE = {"prompts": "prompt", "suffixes": "prompt", "order": "order", "seeds": "sample"}
PROMPTING = (*responses.STATE, "pretraining_seed", "prompt", "form", "variant", "order", "sample")
FEWEST_MODELS = 5  # with fewer models in a family, families are not tested
EPSILON = 1e-9
SIDES_MIN = 6  # minimum number of random sides; five are equal with probability .0625
__all__ = ["SCHEMAS", "Params"]


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compute the tables of all models.

    Raises UserError if responses are missing or a questionnaire has no axes.

    The columns are those of :data:`SCHEMAS`. The table ``shifts`` requires checkpoints, and
    ``stability`` requires repeated prompts.
    """
    rows: dict[str, Rows] = {name: [] for name in SCHEMAS}
    questionnaires: dict[str, Scale] = {}
    for model, response_format in product(inputs.models, schemas.FORMATS):
        table = outputs(inputs.outputs("stances", model), response_format)
        if table is None:
            continue
        names = set(table["questionnaire"]) - {"", *questionnaires}
        questionnaires |= scales(inputs.datasets["statements"], names)
        for reading in readings(response_format, table, questionnaires, params):
            # stances on statements, and hence the other tables, are those of the reading `named`
            others = () if reading.adds_zero else (items, shifts, stability, answered)
            for rows_of in (coordinates, runs, *others):
                rows[rows_of.__name__] += [{"model": model} | r for r in rows_of(reading, params)]
    rows["baselines"] = [row for scale in questionnaires.values() for row in baselines(scale)]
    if rows["coordinates"]:
        rows["shifts"] += families(rows["coordinates"], params)
        rows["magnitudes"] = magnitudes(rows["coordinates"], rows["shifts"], questionnaires)
    tables = {}
    for name, records in rows.items():
        if records:
            frame = pl.DataFrame(records, infer_schema_length=None)
            if "p" in frame.columns:
                smallest = {"stability": least_p(params.n_permutations_stability)}
                frame = adjusted(frame, "p", FAMILY, smallest.get(name, 0.0))
            schema = SCHEMAS[name]
            labels = {key: schema[key].labels for key in schema.key}
            order = (pl.col(k).cast(pl.Enum(v)) if v else pl.col(k) for k, v in labels.items())
            tables[name] = typed(frame, schema, params.confidence).sort(*order)
        elif name not in OPTIONAL:
            raise UserError(f"analysis.compass: no rows of {name}; run a probe first")
    return tables


def coordinates(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the coordinates of every checkpoint of the model, tested against random responses.

    Under the null hypothesis, each answered statement, together with its opposite, has a random
    side, as if responses were random; the standard error is the root of the sum of their squared
    contributions. Both sides of an axis have half of the weight in the test, so that agreement with
    all statements, which the coordinate contains, is no finding (:meth:`Scale.balance`). If fewer
    than :data:`SIDES_MIN` statements or pairs are answered, there is no p. If too many responses
    are missing, only bounds are reported (:meth:`Reading.added`). There is neither an interval nor
    a test if missing responses add 0 points (:attr:`Reading.adds_zero`).
    """
    scale = reading.scale
    start, ends = scale.start(reading.rounded), scale.ends(reading.rounded)
    for state, trained in reading.states.items():
        added = reading.added(state)
        missing = (trained.missing.min(axis=(0, 1)) == 1) & (not reading.adds_zero)
        shares, bounds = reading.missing_shares(state), reading.bounds(state)
        enough = shares <= responses.MISSING_MAX
        for a, axis in enumerate(scale.axes):
            moving = scale.moving[a] & ~(missing & enough[a])
            sums = moved(scale, a, added[:, :, a], moving=moving)
            parts = of_total(sums.totals), of_mean(sums.sides[0])
            value, low, high = np.add(estimated(sums.value, parts, params.confidence)[:3], start[a])
            value, (low, high) = np.clip(value, *bounds[:, a]), np.clip([low, high], *ends[a])
            lean = moved(scale, a, added[:, :, a] * scale.balance(a, moving), moving=moving)
            error = float(np.linalg.norm(lean.totals))
            enough_sides = len(lean.totals) >= SIDES_MIN
            p = 2 * float(ndtr(-abs(lean.value) / max(error, EPSILON))) if enough_sides else np.nan
            if reading.adds_zero:
                low = high = p = float("nan")
            more = {"axis": axis, "unit": scale.unit, TESTED_ERROR: error}
            more["share_missing"] = finite(shares[a])
            more["reach"] = max(abs(end - start[a]) for end in ends[a])
            more |= dict(zip(("bound_low", "bound_high"), map(finite, bounds[:, a]), strict=True))
            estimate = Estimate(float(value), low, high, len(sums.totals))
            yield estimate.row(p=p, **reading.about(state), **more)


def runs(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the coordinates of every training run for each prompt and each paraphrase."""
    for variant, worded in wordings(reading):
        for state in worded.states:
            for seed, prompt, part in worded.parts(state):
                for row in coordinates(part, params):
                    yield row | {"pretraining_seed": seed, "prompt": prompt, "variant": variant}


def shifts(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the differences between checkpoints on the same statements and prompts.

    Shifts of masked models in the variant `corrected` are differences in log-odds; see
    :meth:`plumbline.probes.leaning.responses.Reading.leaned`.

    Checkpoints are not tested if their numbers of steps differ too much, because more steps shift a
    model further, whatever the texts. Training runs are not tested against the model itself if
    responses are sampled, because the model itself contributes only one sample (type I error .15 to
    .26). Nor are they tested in variants that choose an option: the model's distance from the
    thresholds between options is arbitrary, and any training moves responses towards the same mean
    (type I error .12 to .26 with ten runs).
    """
    scale, nats = reading.scale, reading.in_nats
    choices = reading.format == "generation" or not (nats or reading.name in GRADED)
    width = np.ptp(scale.ends(reading.rounded), axis=1)  # no shift exceeds the range of the scale
    for contrast, state, others in contrasts(reading, params):
        states, itself = (state, *others), others == (ITSELF,)
        added = [(reading.leaned if nats else reading.added)(side) for side in states]
        steps = [reading.states[side].steps for side in states]
        unequal = not itself and params.unequal(min(steps), max(steps))
        for a, axis in enumerate(scale.axes):
            sums = moved(scale, a, *(side[:, :, a] for side in added))
            parts = [of_mean(sums.sides[0])] if itself else of_difference(*sums.sides)
            parts = parts if all(part.df for part in parts) else []
            value, low, high, p, error, df = estimated(sums.value, parts, params.confidence)
            reasons = {
                "unequal steps": unequal,
                "missing responses": np.isnan(value),
                "single model": itself and choices,
                "single training": np.isnan(p),
            }
            reason = next((name for name, holds in reasons.items() if holds), None)
            if not nats:
                most = width[a] * (2 if len(states) > 2 else 1)
                low, high = np.clip([low, high], -most, most)
            more: Row = {"contrast": contrast, "axis": axis, "reason": reason}
            more["baseline"] = "before" if contrast == "period" else others[-1].corpus
            more["unit"] = NATS_UNIT if nats else scale.unit
            # the error cannot be derived from the interval, which is clipped to the scale
            more |= {DF: finite(df), TESTED_ERROR: finite(error)}
            estimate = Estimate(value, low, high, len(sums.sides[0]))
            yield estimate.row(p=None if reason else p, **reading.about(state), **more)


def contrasts(reading: Reading, params: Params) -> Iterator[tuple[str, State, tuple[State, ...]]]:
    """Yield each contrast with its checkpoint, and the one or three checkpoints compared with it.

    Polarisation in the paper is the increase after 2017 in the distance between two corpora, that
    is, a difference of differences between four checkpoints.
    """
    for state in reading.states:
        if state == ITSELF:
            continue
        control = state._replace(corpus=params.against(state.corpus))
        opposite = state._replace(corpus=params.contrasts.get(state.corpus, state.corpus))
        others: dict[str, tuple[State, ...]] = {"base model": (ITSELF,)}
        others |= {"control": (control,), "corpora": (opposite,)}
        if state.period == "from":
            earlier = [side._replace(period="before") for side in (state, opposite)]
            others |= {"period": (earlier[0],), "polarisation": (earlier[0], opposite, earlier[1])}
        for contrast, compared in others.items():
            if state not in compared and set(compared) <= set(reading.states):
                yield contrast, state, compared


def families(coordinates: Rows, params: Params) -> Iterator[Row]:
    """Yield the difference between the mean coordinates of two families of models.

    The clusters of the t test are models before further training that have a coordinate, from masks
    or generated text. There is no p with fewer than :data:`FEWEST_MODELS` models in a family.
    """
    key, named = ("questionnaire", "reading", "axis", "unit"), params.families or {}
    table = pl.DataFrame(coordinates, infer_schema_length=None).drop_nulls("value")
    table = table.filter(pl.col("response_format") != "multiple_choice", corpus="")
    for about, part in table.group_by(key, maintain_order=True):
        sides = [part.filter(pl.col("model").is_in(models)) for models in named.values()]
        fewest = min(map(len, sides), default=0)
        if fewest > 1:
            first, second = values = [side["value"].to_numpy() for side in sides]
            difference, parts = float(first.mean() - second.mean()), of_difference(*values)
            value, low, high, p, error, df = estimated(difference, parts, params.confidence)
            more: Row = dict(zip(key, about, strict=True)) | ITSELF._asdict()
            more |= zip(("model", "baseline"), named, strict=True)
            more |= {"contrast": "families", "response_format": sides[0]["response_format"][0]}
            few = "few models" if fewest < FEWEST_MODELS else None
            more |= {"reason": few, DF: df, TESTED_ERROR: error}
            yield Estimate(value, low, high, sum(map(len, sides))).row(p=None if few else p, **more)


def items(reading: Reading, _: Params) -> Iterator[Row]:
    """Yield the stance of every checkpoint on every statement."""
    for state, trained in reading.states.items():
        weights, missing = trained.weights.mean(axis=(0, 1)), trained.missing.mean(axis=(0, 1))
        for name, shares, absent in zip(reading.scale.ids, weights, missing, strict=True):
            value = shares @ STANCES / (1 - absent) if absent < 1 else float("nan")
            shares_of = {"share_agreed": shares[2:].sum(), "share_missing": absent}
            bounded = {column: finite(min(1.0, share)) for column, share in shares_of.items()}
            yield reading.about(state) | {"id": name, "value": finite(value)} | bounded


def baselines(scale: Scale) -> Iterator[Row]:
    """Yield the coordinates of random responses and of constant responses."""
    spread = scale.spread()
    for constants, (a, axis) in product(schemas.ROUNDED, enumerate(scale.axes)):
        constant = scale.constants[constants][a] + scale.points[a].sum(axis=0)  # (options,)
        places = [(scale.start(constants)[a], spread[a]), *((value, 0.0) for value in constant)]
        for baseline, (value, sd) in zip(schemas.BASELINES, places, strict=True):
            about = {"questionnaire": scale.name, "language": scale.language, "axis": axis}
            ends = {"low": value - REACH * sd, "high": value + REACH * sd}
            numbers = {k: finite(x) for k, x in ({"value": value, "sd": sd} | ends).items()}
            yield about | {"constants": constants, "baseline": baseline} | numbers


def magnitudes(coordinates: Rows, shifts: Rows, questionnaires: dict[str, Scale]) -> Rows:
    """Return the mean distance of models from the middle, and the mean absolute shift.

    These are the summaries in section 4.1 of the paper: the distance is averaged over all models
    for each axis, the shift over a domain's corpora for each model. Distances exceed 0 by chance,
    so ``chance`` gives their mean for random responses, from a folded normal distribution.
    """
    chances = []
    for scale in questionnaires.values():
        center = 50.0 if scale.unit == "percent" else 0.0
        far, sd = np.abs(scale.start("corrected") - center), scale.spread()
        about = {"questionnaire": scale.name, "axis": scale.axes, "center": center}
        chances.append(pl.DataFrame(about | {"chance": foldnorm.mean(far / sd, scale=sd)}))
    untrained = pl.DataFrame(coordinates, infer_schema_length=None).filter(corpus="")
    untrained = untrained.join(pl.concat(chances), on=["questionnaire", "axis"])
    distance = pl.col("value") - pl.col("center")
    kinds = [untrained.with_columns(distance, model=pl.lit(""), domain=pl.lit(""))]
    if shifts:
        trained = pl.DataFrame(shifts, infer_schema_length=None)
        trained = trained.filter(period="all", contrast="base model")
        for name in ("share", "epoch"):
            trained = trained.filter(pl.col(name) == pl.col(name).max().over("model", "corpus"))
        kinds.append(
            trained.with_columns(
                domain=pl.col("corpus").str.split("-").list.first(), chance=pl.lit(None, pl.Float64)
            )
        )
    key, value = SCHEMAS["magnitudes"].key, pl.col("value").abs()
    distances = pl.concat([table.select(*key, "chance", "value") for table in kinds])
    table = distances.drop_nulls("value").group_by(*key, "chance", maintain_order=True)
    sizes = table.agg(value=value.mean(), sd=value.std(), n=value.count())
    return sizes.with_columns(pl.col("value", "sd", "chance").round(DECIMALS)).to_dicts()


def stability(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield the share of statements whose side is stable under each change of the prompt."""
    scale = reading.scale
    averaged, single = (_sides(table, scale) for table in (reading.answers, reading.single))
    for comparison in schemas.COMPARISONS:
        pairs = _pairs(comparison, single if comparison == "seeds" else averaged)
        for state, rows in pairs.group_by(responses.STATE, maintain_order=True):
            first, second = (np.array(rows[side].to_list()) for side in ("side", "side_other"))
            clusters = scale.clusters
            if comparison == "opposites":
                columns = np.array(list(scale.opposites), dtype=np.int64)
                second = second[:, list(scale.opposites.values())]
                first, clusters = first[:, columns], clusters[columns]
            if (first * second).any():
                row = _agreement(comparison, first, second, clusters, params)
                yield reading.about(State(*state)) | row


def _sides(table: pl.DataFrame, scale: Scale) -> pl.DataFrame:
    """Return a row for each prompt of a training run, with the side taken on every statement.

    The column ``side`` lists 1 (agrees), -1 (disagrees) or 0 (no stance) for every statement;
    ``template`` is the name of the prompt without its forced-choice suffix, the part after the last
    slash.
    """
    terms = [pl.col(name) * value for name, value in zip(responses.WEIGHTS, STANCES, strict=True)]
    stance = pl.sum_horizontal(terms, ignore_nulls=False)
    side = pl.when(stance.abs() > EPSILON).then(stance.sign()).otherwise(0.0)
    rows = table.select(*PROMPTING, "id", side=side)
    grid = rows.select(PROMPTING).unique().join(pl.DataFrame({"id": scale.ids}), how="cross")
    full = grid.join(rows, on=[*PROMPTING, "id"], how="left").sort(*PROMPTING, "id")
    sides = full.group_by(PROMPTING, maintain_order=True).agg(pl.col("side").fill_null(0.0))
    return sides.with_columns(template=pl.col("prompt").str.replace(r"(?s)^(.+)/[^/]+$", "$1"))


def _pairs(comparison: str, promptings: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of prompts; ``side_other`` contains the sides taken in the second prompt."""
    plain = promptings.filter(form=responses.PLAIN)
    if comparison == "opposites":
        return plain.with_columns(side_other="side")
    if comparison in FORMS:
        shared = [name for name in PROMPTING if name not in ("form", "variant")]
        others = promptings.filter(form=FORMS[comparison])
        return plain.join(others, on=shared, suffix="_other", maintain_order="left_right")
    free = FREE[comparison]
    shared = [name for name in PROMPTING if name != free]
    shared += ["template"] if comparison != "prompts" else []
    pairs = plain.join(plain, on=shared, suffix="_other", maintain_order="left_right")
    return pairs.filter(pl.col(free) < pl.col(f"{free}_other"))


def _agreement(
    comparison: str, first: Array, second: Array, names: NDArray[np.str_], params: Params
) -> Row:
    """Return the share of statements with the same side, or opposite sides for :data:`TURNED`.

    ``first``, ``second``: sides, of shape (pairs, statements); ``names``: statements' clusters.
    """
    sign = -1.0 if comparison in TURNED else 1.0
    counted = np.abs(first * second)
    agreed = (counted + sign * first * second) / 2
    value = float(agreed.sum() / counted.sum())
    clusters = np.unique(names, return_inverse=True)[1]
    hits, total = (np.bincount(clusters, x.sum(axis=0)) for x in (agreed, counted))
    hits, total = hits[total > 0], total[total > 0]
    number = len(total)
    interval = wilson(float((hits / total).sum()), number, params.confidence)
    # The standard error of a ratio of totals: Kish (1965), Survey Sampling, section 6.5.
    residual = hits - value * total
    error = float((residual @ residual * number / max(1, number - 1)) ** 0.5 / total.sum())

    product, mass = sign * first.T @ second, np.abs(first).T @ np.abs(second)
    rows = np.arange(len(clusters))
    orders = _orders(tuple(clusters.tolist()), params.n_permutations_stability, params.seed)
    masses = mass[rows, orders].sum(axis=1)
    null = product[rows, orders].sum(axis=1)[masses > 0] / masses[masses > 0]
    sizes = np.bincount(clusters)[clusters]
    exchanged = sizes[:, None] == sizes
    mean, mean_mass = ((x * exchanged / exchanged.sum(axis=1)).sum() for x in (product, mass))
    chance = float(mean / mean_mass) if mean_mass else float("nan")
    low, high = min(interval.low, value), max(interval.high, value)
    p = float(permutation_p(2 * value - 1 - chance, null - chance))
    more = {"comparison": comparison, "chance": finite((1 + chance) / 2), "reach": 1.0}
    more[TESTED_ERROR] = error if error > EPSILON else None
    return Estimate(value, low, high, number).row(p=p, **more)


@lru_cache(maxsize=2)  # all checkpoints of a model have the same statements
def _orders(clusters: tuple[int, ...], draws: int, seed: int) -> Integers:
    orders = shuffled(np.array(clusters), draws, seed)
    orders.flags.writeable = False
    return orders


def answered(reading: Reading, params: Params) -> Iterator[Row]:
    """Yield counts of valid, refused, unclear and unlisted responses, in total and by prompt."""
    plain = reading.single.filter(form=responses.PLAIN, variant="")
    pooled = plain.filter(pl.col("prompt").n_unique().over(responses.STATE) > 1)
    rows = pl.concat([pooled.with_columns(prompt=pl.lit("")), plain])
    valid, *others = responses.KINDS
    for (*state, prompt), part in rows.group_by(*responses.STATE, "prompt", maintain_order=True):
        shares = part.group_by("id").agg((pl.col("kind") == valid).mean())["kind"]
        counts = {kind: (part["kind"] == kind).sum() for kind in others}
        about = reading.about(State(*state)) | {"prompt": prompt, "answers": len(part)} | counts
        yield wilson(float(shares.sum()), len(shares), params.confidence).row(**about)
