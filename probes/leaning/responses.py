"""Responses of a model as weights of the four options, in every reading, and as arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.schemas import FORMATS, READINGS
from plumbline.probes.leaning.schemas import KEY as CHECKPOINT
from plumbline.probes.leaning.scoring import (
    OPTIONS,
    REFUSALS,
    STANCES,
    UNCLEAR,
    Choice,
    choice,
    stance,
    weights,
)
from plumbline.probes.prompts.leaning import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Reading, Scale

    Array = NDArray[np.float64]

Rows = list[dict[str, Any]]
CLUSTER = "statement, with its opposite"
PLAIN, NEGATED, PARAPHRASE, PRIOR = range(len(FORMS))
ANSWERED, REFUSED, NOT_CLEAR, UNLISTED = "answered", "refused", "unclear", "unlisted"
QUESTION = ("questionnaire", "id", "prompt", "form", "variant")
WEIGHTS = ("w0", "w1", "w2", "w3")  # of the options; null: no answer
COLUMNS = (*CHECKPOINT, "texts", *QUESTION, "order", "sample", *WEIGHTS, "kind")
NATS = "agree_nats", "disagree_nats"
ALONE = "agree_response_nats", "disagree_response_nats"


class Judged(NamedTuple):
    """Responses in one reading; a table has :data:`COLUMNS`."""

    reading: str
    answers: pl.DataFrame  # one for each prompt, and order of the options or sample that counts
    single: pl.DataFrame  # every sample by itself


def outputs(folder: Path, asked: str) -> pl.DataFrame | None:
    """Return the outputs of a config, with ``prompt``; None where a model has none."""
    if not (folder / asked).is_dir():
        return None
    found = pl.read_parquet(folder / asked / "*.parquet")
    prompt, order, sample = pl.col("frame"), pl.lit(0), pl.lit(0)
    if "template" in found.columns:
        prompt, order = pl.col("template"), pl.col("order")
    if "seed" in found.columns:
        sample = pl.col("seed")
    added = {"order": order.cast(pl.Int64), "sample": sample.cast(pl.Int64)}
    return found.with_columns(prompt=prompt, **added).sort(*CHECKPOINT, *QUESTION, *added)


def readings(asked: str, found: pl.DataFrame, params: Params) -> Iterator[Judged]:
    """Yield the responses in each reading.

    Raises
    ------
    UserError
        If the frame of the paper, or the prompts with a text without content, are not there.
    """
    yield from {"mask": _mask, "generation": _generation, "multiple_choice": _choice}[asked](
        found, params
    )


def _mask(found: pl.DataFrame, params: Params) -> Iterator[Judged]:
    real = found.filter(pl.col("form") != PRIOR)
    first = _framed(real, params.frames["mask"], "mask")
    up, down = _listed(first, params)
    total = np.where(up + down > 0, up + down, 1.0)
    read = stance(up / total, down / total, threshold=params.threshold, reading="faithful")
    kinds = np.where(up + down > 0, ANSWERED, UNLISTED)
    told = _rows(first, _optioned(read), kinds)
    yield Judged("faithful", told, told)
    up, down = _beyond(real, found.filter(pl.col("form") == PRIOR))
    read = stance(up, down, threshold=params.threshold)
    kinds = np.where(read == UNCLEAR, NOT_CLEAR, ANSWERED)
    told = _rows(real, _optioned(read), kinds)
    yield Judged("corrected", told, told)
    told = _rows(real, weights(up - down), np.full(len(real), ANSWERED))
    yield Judged("continuous", told, told)


def _framed(found: pl.DataFrame, frame: str, asked: str) -> pl.DataFrame:
    own = found.filter(pl.col("frame") == frame)
    if own.is_empty():
        there = ", ".join(sorted(set(found["frame"]))) or "none"
        raise UserError(
            f"analysis.compass.frames.{asked}: no answer in the frame {frame!r}; there are {there}"
        )
    return own


def _listed(found: pl.DataFrame, params: Params) -> tuple[Array, Array]:
    """Return the mass of both lists among the ten tokens, (rows,) each."""
    rows = list(zip(found["words"].to_list(), found["words_nats"].to_list(), strict=True))
    up, down = (
        np.array(
            [
                sum(
                    np.exp(p) for w, p in zip(*row, strict=True) if str(w).strip().casefold() in own
                )
                for row in rows
            ],
            dtype=np.float64,
        )
        for own in ({w.casefold() for w in side} for side in (params.positive, params.negative))
    )
    return up, down


def _beyond(found: pl.DataFrame, prior: pl.DataFrame) -> tuple[Array, Array]:
    """Return both masses over those under prompts without content, their sum 1, (rows,) each."""
    if prior.is_empty():
        raise UserError(
            "outputs of stances: no prompt with a text without content, by which the reading "
            "`corrected` takes habits out; name some under probes.stances and run the probe again"
        )
    at = [*CHECKPOINT, "prompt"]
    habits = prior.group_by(at).agg(*(pl.col(n).exp().mean().alias(f"prior_{n}") for n in NATS))
    both = found.select(*at, *NATS).join(habits, on=at, how="left", maintain_order="left")
    if both["prior_agree_nats"].null_count():
        raise UserError(
            "outputs of stances: a frame has no response to a text without content; run the probe "
            "again"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        # a ratio of ratios: computed as a logit, masses of e-300 are no trouble
        apart = both["agree_nats"] - both["prior_agree_nats"].log()
        apart = apart - (both["disagree_nats"] - both["prior_disagree_nats"].log())
        up = 1 / (1 + np.exp(-apart.to_numpy()))
    if not np.isfinite(up).all():
        raise UserError(
            "outputs of stances: a list has no mass at all in some prompt, so that habits cannot "
            "be taken out; does the model know a word of each as one token?"
        )
    return up, 1 - up


def _generation(found: pl.DataFrame, params: Params) -> Iterator[Judged]:
    first = _framed(found, params.frames["generation"], "generation")
    one = first.filter(pl.col("sample") == pl.col("sample").min().over(CHECKPOINT))
    up, down = _masses(one, NATS)
    read = stance(up, down, threshold=params.threshold, reading="faithful")
    told = _rows(one, _optioned(read), np.full(len(one), ANSWERED))
    yield Judged("faithful", told, told)
    up, down = _masses(first, NATS)
    yield _averaged("paper", first, (up, down), _sure(up, down, params), params)
    up, down = _masses(found, ALONE)
    said = found["response"].to_list()
    kinds = np.array([_kind(text) for text in said])
    kinds = np.where(kinds == ANSWERED, _sure(up, down, params), kinds)
    yield _averaged("corrected", found, (up, down), kinds, params)
    yield _averaged("continuous", found, (up, down), kinds, params)


def _masses(found: pl.DataFrame, names: Sequence[str]) -> tuple[Array, Array]:
    one, two = (np.exp(found[name].to_numpy().astype(np.float64)) for name in names)
    return one, two


def _kind(response: str) -> str:
    if REFUSALS.search(response):
        return REFUSED
    return ANSWERED if response.strip() else NOT_CLEAR


def _sure(up: Array, down: Array, params: Params) -> NDArray[np.str_]:
    return np.where(np.maximum(up, down) >= params.min_confidence, ANSWERED, NOT_CLEAR)


def _averaged(
    name: str,
    found: pl.DataFrame,
    masses: tuple[Array, Array],
    kinds: NDArray[np.str_],
    params: Params,
) -> Judged:
    """Return stances from the mean masses of the samples that are valid responses."""
    kept = kinds == ANSWERED
    up, down = (np.where(kept, mass, np.nan) for mass in masses)
    mean = (
        found.with_columns(up=pl.Series(up).fill_nan(None), down=pl.Series(down).fill_nan(None))
        .group_by(*CHECKPOINT, *QUESTION, maintain_order=True)
        .agg(pl.col("texts", "order").first(), pl.col("sample").min(), pl.col("up", "down").mean())
    )
    tables = []
    every = mean["up"].to_numpy(), mean["down"].to_numpy(), np.full(len(mean), ANSWERED)
    for rows, (one, two, own) in ((mean, every), (found, (up, down, kinds))):
        given = ~np.isnan(one)
        how: Reading = "faithful" if name == "paper" else "corrected"
        sides = (np.where(given, side, 0.5) for side in (one, two))
        read = stance(*sides, threshold=params.threshold, reading=how)
        read = np.where(given, read, UNCLEAR)
        told = weights(np.where(given, one - two, np.nan))
        told = told if name == "continuous" else _optioned(read)
        there = ~np.isnan(told[:, 0])
        tables.append(_rows(rows, told, np.where(there | (own == REFUSED), own, NOT_CLEAR)))
    return Judged(name, tables[0], tables[1])


def _choice(found: pl.DataFrame, params: Params) -> Iterator[Judged]:  # noqa: ARG001
    read = [
        _named(text, tuple(options))
        for text, options in found.select("response", "options").iter_rows()
    ]
    options = np.array([UNCLEAR if each.option is None else each.option for each in read])
    told = _rows(found, _optioned(options), np.array([each.kind for each in read]))
    yield Judged("named", told, told)
    given = found["option_nats"].list.len().to_numpy() == len(OPTIONS)
    if not given.any():
        return
    own = found.filter(pl.Series(given))
    nats = np.array(own["option_nats"].to_list(), dtype=np.float64)
    kinds = np.full(len(own), ANSWERED)
    told = _rows(own, _optioned(nats.argmax(axis=1)), kinds)
    yield Judged("likeliest", told, told)
    odds = np.exp(nats - nats.max(axis=1, keepdims=True))
    told = _rows(own, odds / odds.sum(axis=1, keepdims=True), kinds)
    yield Judged("expected", told, told)


@cache
def _named(response: str, offered: tuple[str, ...]) -> Choice:
    """Return the option that a response names, by its place in ``OPTIONS``."""
    if not offered:  # an open question
        return choice(response, OPTIONS)
    places = [option.strip().casefold() for option in offered]
    if sorted(places) != sorted(OPTIONS):
        raise UserError(
            f"outputs of stances: offered {', '.join(offered)}; only {', '.join(OPTIONS)} are "
            "scored"
        )
    found = choice(response, places)
    if found.option is None:
        return found
    return Choice(found.kind, OPTIONS.index(places[found.option]))


def _optioned(options: NDArray[np.int64]) -> Array:
    """Return weights of chosen options, (rows, options); nan where none is."""
    stances = np.where(options == UNCLEAR, np.nan, np.array(STANCES)[options])
    return weights(stances)


def _rows(found: pl.DataFrame, told: Array, kinds: NDArray[np.str_]) -> pl.DataFrame:
    own = {name: pl.Series(told[:, k]).fill_nan(None) for k, name in enumerate(WEIGHTS)}
    return found.with_columns(**own, kind=pl.Series(kinds.tolist(), dtype=pl.String)).select(
        COLUMNS
    )


class State(NamedTuple):
    """What a model was trained on, without the seed of the training."""

    corpus: str
    period: int
    share: float
    epoch: int


STATE = State._fields
ITSELF = State("", 0, 0.0, 0)


class Answers(NamedTuple):
    """Mean responses of one model in one reading."""

    scale: Scale
    prompts: tuple[str, ...]
    seeds: dict[State, tuple[int, ...]]  # trainings
    texts: dict[State, float]  # mean number that it was trained on
    weights: dict[State, Array]  # (seeds, prompts, statements, options), missing ones 0
    missing: dict[State, Array]  # share, (seeds, prompts, statements)

    def added(self, state: State, lacking: Array | None = None) -> Array:
        """Return what responses add beyond random ones, (seeds, prompts, axes, statements).

        ``lacking`` is what a missing response adds, (axes, statements); by default the middle.
        """
        middle = self.scale.middle()
        instead = middle if lacking is None else lacking
        told = np.einsum("spik,aik->spai", self.weights[state], self.scale.points)
        found: Array = told + self.missing[state][:, :, None] * instead - middle
        return found


def answers(found: pl.DataFrame, scale: Scale) -> Answers:
    """Return the plain statements of a questionnaire; samples and orders are averaged.

    Raises
    ------
    UserError
        If a state of the model lacks the response to a statement in some prompt.
    """
    plain = (pl.col("form") == PLAIN) & (pl.col("variant") == "")
    own = found.filter((pl.col("questionnaire") == scale.name) & plain)
    prompts = tuple(sorted(set(own["prompt"])))
    if set(own["id"]) - set(scale.ids):
        raise UserError(
            f"outputs of stances: a response to a statement that {scale.name} does not have; run "
            "the probe again"
        )
    mean = own.group_by(*CHECKPOINT, "prompt", "id").agg(
        pl.col("texts").first(),
        *(pl.col(name).fill_null(0).mean() for name in WEIGHTS),
        missing=pl.col(WEIGHTS[0]).is_null().mean(),
    )
    result = Answers(scale, prompts, {}, {}, {}, {})
    shape = (-1, len(prompts), len(scale.ids))
    states = mean.sort(*CHECKPOINT, "prompt", "id").group_by(*STATE, maintain_order=True)
    for key, some in states:
        state, part = State(*key), some.sort("pretraining_seed", "prompt", "id")
        seeds = part["pretraining_seed"].unique().sort()
        if len(part) != len(seeds) * len(prompts) * len(scale.ids):
            raise UserError(
                f"outputs of stances: not every statement of {scale.name} has a response in every "
                f"prompt{' after ' + state.corpus if state.corpus else ''}; run the probe again"
            )
        result.seeds[state] = tuple(seeds)
        result.texts[state] = float(part["texts"].to_numpy().mean())
        result.weights[state] = part.select(WEIGHTS).to_numpy().reshape(*shape, len(WEIGHTS))
        result.missing[state] = part["missing"].to_numpy().reshape(shape)
    return result


class ModelReading(NamedTuple):
    """Responses of a model in one reading, and the key of its rows."""

    asked: str
    name: str
    answers: Answers

    @property
    def rounded(self) -> str:
        """Return which constants of the compass belong to it."""
        return "faithful" if self.name in ("faithful", "paper") else "corrected"

    def about(self, state: State) -> dict[str, Any]:
        """Return the columns that its rows share."""
        return {
            **state._asdict(),
            "questionnaire": self.answers.scale.name,
            "response_format": FORMATS.index(self.asked),
            "reading": READINGS.index(self.name),
        }
