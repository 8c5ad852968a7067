"""Responses of a model as weights of the four options, in every reading, and as arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.choices import Choice, choice, refused
from plumbline.probes.leaning.schemas import KEY as CHECKPOINT
from plumbline.probes.leaning.scoring import (
    DECIMALS,
    OPTIONS,
    STANCES,
    UNCLEAR,
    stance,
    weights,
)
from plumbline.probes.prompts.leaning import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Array, Scale
    from plumbline.probes.leaning.scoring import Reading as Rounding

    Words = NDArray[np.str_]
    Masses = tuple[str, pl.DataFrame, tuple[Array, Array], Words]

Rows = list[dict[str, Any]]
PLAIN, NEGATED, PARAPHRASE, PRIOR = FORMS
ANSWERED, REFUSED, NOT_CLEAR, UNLISTED = "answered", "refused", "unclear", "unlisted"
QUESTION = ("questionnaire", "id", "prompt", "form", "variant")
WEIGHTS = ("w0", "w1", "w2", "w3")  # of the options; null: no answer
COLUMNS = (*CHECKPOINT, "steps", *QUESTION, "order", "sample", "odds", *WEIGHTS, "kind")
NATS = "agree_nats", "disagree_nats"
SIDES = "entailed_nats", "contradicted_nats"


class State(NamedTuple):
    """What a model was trained on, without the seed of the training."""

    corpus: str
    period: str
    share: float
    epoch: int


STATE = State._fields
ITSELF = State("", "all", 0.0, 0)
MISSING_MAX = 0.2  # share of the statements of an axis; above it there is no coordinate
EVERY = (slice(None), slice(None))  # trainings and prompts


class Trained(NamedTuple):
    """Mean responses of a model in one state to the plain statements of a questionnaire."""

    seeds: tuple[int, ...]  # of the trainings
    steps: float  # mean number of its trainings
    weights: Array  # (seeds, prompts, statements, options), missing ones 0
    missing: Array  # share, (seeds, prompts, statements)
    odds: Array  # log-odds of agreeing, (seeds, prompts, statements); nan without a mask


class Reading(NamedTuple):
    """Responses of a model to a questionnaire in one reading; tables have :data:`COLUMNS`."""

    format: str
    name: str
    scale: Scale
    answers: pl.DataFrame  # one for each prompt, and order of the options or sample that counts
    single: pl.DataFrame  # every sample by itself
    prompts: tuple[str, ...]
    states: dict[State, Trained]

    @property
    def rounded(self) -> str:
        """Return which constants of the compass belong to it."""
        return "faithful" if self.name in ("faithful", "paper") else "corrected"

    @property
    def in_nats(self) -> bool:
        """Tell whether shifts are of log-odds: of masks, which have them, where axes have sides."""
        masked = (self.format, self.name) == ("mask", "corrected")
        return masked and bool(np.isfinite(self.scale.slopes()).all())

    def leaned(self, state: State) -> Array:
        """Return what log-odds add to an axis, nats, (seeds, prompts, axes, statements).

        No threshold hides a shift or makes one, and no prior has to be taken out, which differs
        between trainings by more than what they learn: any habit of a prompt cancels.
        """
        return np.asarray(self.states[state].odds[:, :, None] * self.scale.slopes())

    def about(self, state: State) -> dict[str, Any]:
        """Return the columns that its rows share."""
        return {
            **state._asdict(),
            "questionnaire": self.scale.name,
            "response_format": self.format,
            "reading": self.name,
        }

    def added(
        self, state: State, at: tuple[slice, slice] = EVERY, points: Array | None = None
    ) -> Array:
        """Return what responses add beyond random ones, (seeds, prompts, axes, statements).

        ``points`` is what a missing response adds, (axes, statements). By default it is the mean
        over the other prompts; the weight of a statement without any response is redistributed over
        the others of the same training, in proportion to theirs (:meth:`Scale.reach`), so that a
        sum is unbiased where responses are missing at random; and an axis of which more than
        :data:`MISSING_MAX` is missing is nan.
        """
        trained, middle = self.states[state], self.scale.middle()
        missing = trained.missing[at][:, :, None]
        added: Array = np.einsum("spik,aik->spai", trained.weights[at], self.scale.points)
        if points is not None:
            return added + missing * points - middle
        added -= (1 - missing) * middle
        prompts = (1 - missing).sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            filled = added + missing * (added.sum(axis=1, keepdims=True) / prompts)
            reach = self.scale.reach()
            share = ((prompts > 0) * reach).sum(axis=-1, keepdims=True) / reach.sum(-1)[:, None]
            rescaled: Array = np.where(prompts > 0, filled, 0.0) / share
        rescaled[:, :, self.missing_shares(state, at) > MISSING_MAX] = np.nan
        return rescaled

    def missing_shares(self, state: State, at: tuple[slice, slice] = EVERY) -> Array:
        """Return the share of missing responses to the statements that move an axis, (axes,)."""
        moving = self.scale.moving()
        missing = self.states[state].missing[at].mean(axis=(0, 1))
        return np.asarray(np.round((moving * missing).sum(axis=1) / moving.sum(axis=1), DECIMALS))


def outputs(folder: Path, response_format: str) -> pl.DataFrame | None:
    """Return the outputs of a format, with ``prompt``; None where a model has none."""
    if not (folder / response_format).is_dir():
        return None
    rows = pl.read_parquet(folder / response_format / "*.parquet")
    choices, sampled = "template" in rows.columns, "seed" in rows.columns
    masked = response_format == "mask"
    counts = {
        "order": pl.col("order") if choices else pl.lit(0),
        "sample": pl.col("seed") if sampled else pl.lit(0),
    }
    return rows.with_columns(
        prompt=pl.col("template" if choices else "frame"),
        odds=pl.col(NATS[0]) - pl.col(NATS[1]) if masked else pl.lit(None, pl.Float64),
        **{name: column.cast(pl.Int64) for name, column in counts.items()},
    ).sort(*CHECKPOINT, *QUESTION, *counts)


def readings(
    response_format: str, rows: pl.DataFrame, questionnaires: dict[str, Scale], params: Params
) -> Iterator[Reading]:
    """Yield the responses in each reading to each questionnaire; samples and orders are averaged.

    A UserError if the frame of the paper, the prompts with a text without content, or responses are
    missing.
    """
    if response_format == "multiple_choice":
        tables = _choice(rows)
    else:
        tables = _averaged(response_format, rows, params)
    for name, answers, single in tables:
        for questionnaire in sorted(set(rows["questionnaire"]) - {""}):
            here = pl.col("questionnaire") == questionnaire
            own, scale = answers.filter(here), questionnaires[questionnaire]
            prompts, states = _states(own.filter(form=PLAIN, variant=""), scale)
            yield Reading(response_format, name, scale, own, single.filter(here), prompts, states)


def wordings(reading: Reading) -> Iterator[tuple[str, Reading]]:
    """Yield the reading, "" first, and by each paraphrase, in the prompts of paraphrases.

    A statement that has no such paraphrase is in it as it stands.
    """
    yield "", reading
    answers, where = reading.answers, [*CHECKPOINT, "prompt", "id"]
    others = answers.filter(form=PARAPHRASE).sort("variant", maintain_order=True)
    here = pl.col("prompt").is_in(others["prompt"].unique().to_list())
    plain = answers.filter(here, form=PLAIN, variant="")
    for (variant,), worded in others.group_by("variant", maintain_order=True):
        rest = plain.join(worded, on=where, how="anti")
        prompts, states = _states(pl.concat([worded, rest]), reading.scale)
        yield str(variant), reading._replace(prompts=prompts, states=states)


def _states(rows: pl.DataFrame, scale: Scale) -> tuple[tuple[str, ...], dict[State, Trained]]:
    """Return the prompts of some responses, and the responses as arrays.

    A UserError if a state of the model lacks the response to a statement in some prompt.
    """
    prompts = tuple(sorted(set(rows["prompt"])))
    at = [*CHECKPOINT, "prompt", "id"]
    mean = rows.group_by(at).agg(
        pl.col("steps", "odds").first(),
        *(pl.col(name).fill_null(0).mean() for name in WEIGHTS),
        missing=pl.col(WEIGHTS[0]).is_null().mean(),
    )
    states: dict[State, Trained] = {}
    for key, part in mean.sort(at).group_by(*STATE, maintain_order=True):
        table = part.sort("pretraining_seed", "prompt", "id")
        seeds = tuple(table["pretraining_seed"].unique().sort())
        shape = (len(seeds), len(prompts), len(scale.ids))
        if len(table) != np.prod(shape) or set(table["id"]) != set(scale.ids):
            raise UserError(
                f"outputs of stances: not a response to every statement of {scale.name} in every "
                f"prompt ({key[0] or 'the model itself'}); run the probe again"
            )
        columns = {
            name: table[name].fill_null(np.nan).to_numpy().reshape(shape)
            for name in ("steps", "missing", "odds")
        }
        options = table.select(WEIGHTS).to_numpy().reshape(*shape, len(WEIGHTS))
        steps = float(columns.pop("steps").mean())
        states[State(*key)] = Trained(seeds, steps, options, **columns)
    return prompts, states


def _averaged(
    response_format: str, rows: pl.DataFrame, params: Params
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield stances from the mean masses of the samples that are valid, and of each sample."""
    masses_of = _mask if response_format == "mask" else _generation
    for name, some, masses, kinds in masses_of(rows, params):
        valid = np.isin(kinds, (ANSWERED, UNLISTED))
        sides = [pl.Series(np.where(valid, mass, np.nan)).fill_nan(None) for mass in masses]
        each = some.with_columns(up=sides[0], down=sides[1], kind=pl.Series(kinds.tolist()))
        mean = each.group_by(*CHECKPOINT, *QUESTION, maintain_order=True).agg(
            pl.col("steps", "order", "kind", "odds").first(),
            pl.col("sample").min(),
            pl.col("up", "down").mean(),
        )
        yield name, _stances(name, mean, params), _stances(name, each, params)


def _stances(name: str, rows: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return rows with the weights of the options that two masses, ``up`` and ``down``, are for."""
    up, down = (rows[side].fill_null(np.nan).to_numpy() for side in ("up", "down"))
    options = weights(up - down)
    if name != "continuous":
        valid = ~np.isnan(up)
        rounding: Rounding = "corrected" if name == "corrected" else "faithful"
        sides = (np.where(valid, side, 0.5) for side in (up, down))
        chosen = stance(*sides, threshold=params.threshold, reading=rounding)
        options = _chosen(np.where(valid, chosen, UNCLEAR))
    kinds = rows["kind"].to_numpy()
    unclear = np.isnan(options[:, 0]) & (kinds == ANSWERED)
    return _weighted(rows, options, np.where(unclear, NOT_CLEAR, kinds))


def _mask(rows: pl.DataFrame, params: Params) -> Iterator[Masses]:
    """Yield readings of masked words: responses, both masses, and the kind of each response."""
    real = rows.filter(pl.col("form") != PRIOR)
    first = _framed(real, "mask", params)
    sides = [{word.casefold() for word in side} for side in (params.positive, params.negative)]
    listed = [
        [
            sum(np.exp(p) for w, p in zip(words, nats, strict=True) if w.strip().casefold() in side)
            for side in sides
        ]
        for words, nats in first.select("words", "words_nats").iter_rows()
    ]
    up, down = np.array(listed, dtype=np.float64).T
    total = np.where(up + down > 0, up + down, 1.0)
    yield "faithful", first, (up / total, down / total), np.where(up + down, ANSWERED, UNLISTED)
    calibrated = _calibrated(real, rows.filter(form=PRIOR))
    for name in ("corrected", "continuous"):
        yield name, real, calibrated, np.full(len(real), ANSWERED)


def _framed(
    rows: pl.DataFrame, response_format: Literal["mask", "generation"], params: Params
) -> pl.DataFrame:
    """Return the responses in the frame of the paper."""
    frame = params.frames[response_format]
    framed = rows.filter(frame=frame)
    if framed.is_empty():
        raise UserError(
            f"analysis.compass.frames.{response_format}: no answer in the frame {frame!r}; there "
            f"are {', '.join(sorted(set(rows['frame'])))}"
        )
    return framed


def _calibrated(rows: pl.DataFrame, prior: pl.DataFrame) -> tuple[Array, Array]:
    """Return both masses over those under prompts without content, their sum 1, (rows,) each.

    A ratio of ratios, computed as a logit: masses of e-300 are no trouble.
    """
    at = [*CHECKPOINT, "prompt"]
    habits = prior.group_by(at).agg(
        pl.col(n).exp().mean().log().name.prefix("prior_") for n in NATS
    )
    both = rows.select(*at, *NATS).join(habits, on=at, how="left", maintain_order="left")
    agree, disagree = (both[name] - both[f"prior_{name}"] for name in NATS)
    with np.errstate(invalid="ignore", over="ignore"):
        up = 1 / (1 + np.exp(-(agree - disagree).fill_null(np.nan).to_numpy()))
    if not np.isfinite(up).all():
        raise UserError(
            "outputs of stances: a prompt has no response to a text without content, or no mass "
            "for a list of words; set probes.stances.mask and its words, and run the probe again"
        )
    return up, 1 - up


def _generation(rows: pl.DataFrame, params: Params) -> Iterator[Masses]:
    """Yield readings of responses in words, as of masked ones."""

    def masses(some: pl.DataFrame, names: tuple[str, str]) -> tuple[tuple[Array, Array], Words]:
        one, two = (np.exp(some[name].to_numpy().astype(np.float64)) for name in names)
        sure = np.maximum(one, two) >= params.min_confidence
        return (one, two), np.where(sure, ANSWERED, NOT_CLEAR)

    framed = _framed(rows, "generation", params)
    first = framed.filter(pl.col("sample") == pl.col("sample").min().over(CHECKPOINT))
    yield "faithful", first, masses(first, NATS)[0], np.full(len(first), ANSWERED)
    yield "paper", framed, *masses(framed, NATS)
    both, kinds = masses(rows, SIDES)
    texts = rows.select("response", "text").rows()
    refusals = np.array([refused(*text) for text in texts])
    empty = np.array([not response.strip() for response, _ in texts])
    kinds = np.select([refusals, empty], [REFUSED, NOT_CLEAR], kinds)
    for name in ("corrected", "continuous"):
        yield name, rows, both, kinds


def _choice(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield readings of options that were offered: the one named, the likeliest, and all four."""
    offered = rows.select("response", "options", "text").iter_rows()
    read = [_named(response, tuple(options), text) for response, options, text in offered]
    options = np.array([UNCLEAR if each.option is None else each.option for each in read])
    named = _weighted(rows, _chosen(options), np.array([each.kind for each in read]))
    yield "named", named, named
    some = rows.filter(pl.col("option_nats").list.len() == len(OPTIONS))
    if some.is_empty():
        return
    nats = np.array(some["option_nats"].to_list(), dtype=np.float64)
    odds = np.exp(nats - nats.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    for name, each in (("likeliest", _chosen(nats.argmax(axis=1))), ("expected", shares)):
        table = _weighted(some, each, np.full(len(some), ANSWERED))
        yield name, table, table


@cache
def _named(response: str, offered: tuple[str, ...], prompt: str) -> Choice:
    """Return the option that a response names, by its place in ``OPTIONS``."""
    if not offered:  # an open question
        return choice(response, OPTIONS, prompt, numbered=False)
    names = [option.strip().casefold() for option in offered]
    if sorted(names) != sorted(OPTIONS):
        raise UserError(
            f"outputs of stances: offered {', '.join(offered)}; only {', '.join(OPTIONS)} are "
            "scored"
        )
    named = choice(response, names, prompt)
    if named.option is None:
        return named
    return Choice(named.kind, OPTIONS.index(names[named.option]))


def _chosen(options: NDArray[np.int64]) -> Array:
    """Return weights of chosen options, (rows, options); nan where none is."""
    return weights(np.where(options == UNCLEAR, np.nan, np.array(STANCES)[options]))


def _weighted(rows: pl.DataFrame, options: Array, kinds: Words) -> pl.DataFrame:
    """Return rows with the weights of options, and the kind of each response."""
    columns = {name: pl.Series(options[:, k]).fill_nan(None) for k, name in enumerate(WEIGHTS)}
    kind = pl.Series(kinds.tolist(), dtype=pl.String)
    return rows.with_columns(**columns, kind=kind).select(COLUMNS)
