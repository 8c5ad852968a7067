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
    odds: Array  # log-odds of agreeing, (seeds, prompts, statements); nan of no mask


class Reading(NamedTuple):
    """Responses of a model to a questionnaire in one reading; a table has :data:`COLUMNS`."""

    asked: str
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
        masked = (self.asked, self.name) == ("mask", "corrected")
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
            "response_format": self.asked,
            "reading": self.name,
        }

    def added(
        self, state: State, at: tuple[slice, slice] = EVERY, lacking: Array | None = None
    ) -> Array:
        """Return what responses add beyond random ones, (seeds, prompts, axes, statements).

        ``lacking`` is what a missing response adds, (axes, statements). By default it is the mean
        over the other prompts; the weight of a statement without any response is redistributed over
        the others of the same training, in proportion to theirs (:meth:`Scale.reach`), so that a
        sum is unbiased where responses are missing at random; and an axis of which more than
        :data:`MISSING_MAX` is missing is nan.
        """
        own, middle = self.states[state], self.scale.middle()
        missing = own.missing[at][:, :, None]
        added: Array = np.einsum("spik,aik->spai", own.weights[at], self.scale.points)
        if lacking is not None:
            return added + missing * lacking - middle
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


def outputs(folder: Path, asked: str) -> pl.DataFrame | None:
    """Return the outputs of a config, with ``prompt``; None where a model has none."""
    if not (folder / asked).is_dir():
        return None
    found = pl.read_parquet(folder / asked / "*.parquet")
    prompt, order, sample = pl.col("frame"), pl.lit(0), pl.lit(0)
    masked = asked == "mask"
    odds = pl.col(NATS[0]) - pl.col(NATS[1]) if masked else pl.lit(None, pl.Float64)
    if "template" in found.columns:
        prompt, order = pl.col("template"), pl.col("order")
    if "seed" in found.columns:
        sample = pl.col("seed")
    added = {"order": order.cast(pl.Int64), "sample": sample.cast(pl.Int64)}
    return found.with_columns(prompt=prompt, odds=odds, **added).sort(
        *CHECKPOINT, *QUESTION, *added
    )


def readings(
    asked: str, found: pl.DataFrame, known: dict[str, Scale], params: Params
) -> Iterator[Reading]:
    """Yield the responses in each reading to each questionnaire.

    A UserError if the frame of the paper, the prompts with a text without content, or responses are
    not there.
    """
    read = _choice(found) if asked == "multiple_choice" else _averaged(asked, found, params)
    for name, answers, single in read:
        for scale in sorted(set(found["questionnaire"]) - {""}):
            own = (t.filter(pl.col("questionnaire") == scale) for t in (answers, single))
            yield _reading(asked, name, known[scale], *own)


def _averaged(
    asked: str, found: pl.DataFrame, params: Params
) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield stances from the mean masses of the samples that are valid, and of each sample."""
    for name, own, masses, kinds in (_mask if asked == "mask" else _generation)(found, params):
        valid = np.isin(kinds, (ANSWERED, UNLISTED))
        sides = [pl.Series(np.where(valid, mass, np.nan)).fill_nan(None) for mass in masses]
        rows = own.with_columns(up=sides[0], down=sides[1], kind=pl.Series(kinds.tolist()))
        mean = rows.group_by(*CHECKPOINT, *QUESTION, maintain_order=True).agg(
            pl.col("steps", "order", "kind", "odds").first(),
            pl.col("sample").min(),
            pl.col("up", "down").mean(),
        )
        yield name, _stances(name, mean, params), _stances(name, rows, params)


def _stances(name: str, rows: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return rows with the weights of the options that two masses, ``up`` and ``down``, are for."""
    up, down = (rows[side].fill_null(np.nan).to_numpy() for side in ("up", "down"))
    told = weights(up - down)
    if name != "continuous":
        given = ~np.isnan(up)
        how: Rounding = "corrected" if name == "corrected" else "faithful"
        sides = (np.where(given, side, 0.5) for side in (up, down))
        read = stance(*sides, threshold=params.threshold, reading=how)
        told = _optioned(np.where(given, read, UNCLEAR))
    kinds = rows["kind"].to_numpy()
    lost = np.isnan(told[:, 0]) & (kinds == ANSWERED)
    return _rows(rows, told, np.where(lost, NOT_CLEAR, kinds))


def _mask(found: pl.DataFrame, params: Params) -> Iterator[Masses]:
    """Yield readings of masked words: responses, both masses, and what kind of response each is."""
    real = found.filter(pl.col("form") != PRIOR)
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
    beyond = _beyond(real, found.filter(pl.col("form") == PRIOR))
    for name in ("corrected", "continuous"):
        yield name, real, beyond, np.full(len(real), ANSWERED)


def _framed(
    found: pl.DataFrame, asked: Literal["mask", "generation"], params: Params
) -> pl.DataFrame:
    """Return the responses in the frame of the paper."""
    frame = params.frames[asked]
    own = found.filter(pl.col("frame") == frame)
    if own.is_empty():
        there = ", ".join(sorted(set(found["frame"]))) or "none"
        raise UserError(
            f"analysis.compass.frames.{asked}: no answer in the frame {frame!r}; there are {there}"
        )
    return own


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


def _generation(found: pl.DataFrame, params: Params) -> Iterator[Masses]:
    """Yield readings of responses in words, as of masked ones."""

    def masses(rows: pl.DataFrame, names: tuple[str, str]) -> tuple[tuple[Array, Array], Words]:
        one, two = (np.exp(rows[name].to_numpy().astype(np.float64)) for name in names)
        sure = np.maximum(one, two) >= params.min_confidence
        return (one, two), np.where(sure, ANSWERED, NOT_CLEAR)

    first = _framed(found, "generation", params)
    one = first.filter(pl.col("sample") == pl.col("sample").min().over(CHECKPOINT))
    yield "faithful", one, masses(one, NATS)[0], np.full(len(one), ANSWERED)
    yield "paper", first, *masses(first, NATS)
    both, kinds = masses(found, SIDES)
    said = found.select("response", "text").rows()
    no = np.array([refused(*each) for each in said])
    empty = np.array([not response.strip() for response, _ in said])
    kinds = np.select([no, empty], [REFUSED, NOT_CLEAR], kinds)
    for name in ("corrected", "continuous"):
        yield name, found, both, kinds


def _choice(found: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame, pl.DataFrame]]:
    """Yield readings of options that were offered: the one named, the likeliest, and all four."""
    offered = found.select("response", "options", "text").iter_rows()
    read = [_named(response, tuple(options), text) for response, options, text in offered]
    options = np.array([UNCLEAR if each.option is None else each.option for each in read])
    named = _rows(found, _optioned(options), np.array([each.kind for each in read]))
    yield "named", named, named
    own = found.filter(pl.col("option_nats").list.len() == len(OPTIONS))
    if own.is_empty():
        return
    nats = np.array(own["option_nats"].to_list(), dtype=np.float64)
    odds = np.exp(nats - nats.max(axis=1, keepdims=True))
    shares = odds / odds.sum(axis=1, keepdims=True)
    for name, told in (("likeliest", _optioned(nats.argmax(axis=1))), ("expected", shares)):
        table = _rows(own, told, np.full(len(own), ANSWERED))
        yield name, table, table


@cache
def _named(response: str, offered: tuple[str, ...], prompt: str) -> Choice:
    """Return the option that a response names, by its place in ``OPTIONS``."""
    if not offered:  # an open question
        return choice(response, OPTIONS, prompt, numbered=False)
    places = [option.strip().casefold() for option in offered]
    if sorted(places) != sorted(OPTIONS):
        raise UserError(
            f"outputs of stances: offered {', '.join(offered)}; only {', '.join(OPTIONS)} are "
            "scored"
        )
    found = choice(response, places, prompt)
    if found.option is None:
        return found
    return Choice(found.kind, OPTIONS.index(places[found.option]))


def _optioned(options: NDArray[np.int64]) -> Array:
    """Return weights of chosen options, (rows, options); nan where none is."""
    return weights(np.where(options == UNCLEAR, np.nan, np.array(STANCES)[options]))


def _rows(found: pl.DataFrame, told: Array, kinds: Words) -> pl.DataFrame:
    own = {name: pl.Series(told[:, k]).fill_nan(None) for k, name in enumerate(WEIGHTS)}
    kind = pl.Series(kinds.tolist(), dtype=pl.String)
    return found.with_columns(**own, kind=kind).select(COLUMNS)


def _reading(
    asked: str, name: str, scale: Scale, found: pl.DataFrame, single: pl.DataFrame
) -> Reading:
    """Return a reading; samples and orders are averaged.

    A UserError if a state of the model lacks the response to a statement in some prompt.
    """
    own = found.filter((pl.col("form") == PLAIN) & (pl.col("variant") == ""))
    if set(own["id"]) - set(scale.ids):
        raise UserError(
            f"outputs of stances: a response to a statement that {scale.name} does not have; run "
            "the probe again"
        )
    return Reading(asked, name, scale, found, single, *_states(own, scale))


def wordings(reading: Reading) -> Iterator[tuple[str, Reading]]:
    """Yield the reading, "" first, and by each paraphrase, in the prompts of paraphrases.

    A statement that has no such paraphrase is in it as it stands.
    """
    yield "", reading
    responses, where = reading.answers, [*CHECKPOINT, "prompt", "id"]
    others = responses.filter(pl.col("form") == PARAPHRASE).sort("variant", maintain_order=True)
    here = pl.col("prompt").is_in(others["prompt"].unique().to_list())
    plain = responses.filter(here & (pl.col("form") == PLAIN) & (pl.col("variant") == ""))
    for (variant,), worded in others.group_by("variant", maintain_order=True):
        rest = plain.join(worded, on=where, how="anti")
        prompts, states = _states(pl.concat([worded, rest]), reading.scale)
        yield str(variant), reading._replace(prompts=prompts, states=states)


def _states(own: pl.DataFrame, scale: Scale) -> tuple[tuple[str, ...], dict[State, Trained]]:
    """Return the prompts of some responses, and them as arrays; see :func:`_reading`."""
    prompts = tuple(sorted(set(own["prompt"])))
    at = [*CHECKPOINT, "prompt", "id"]
    mean = own.group_by(at).agg(
        pl.col("steps", "odds").first(),
        *(pl.col(name).fill_null(0).mean() for name in WEIGHTS),
        missing=pl.col(WEIGHTS[0]).is_null().mean(),
    )
    states: dict[State, Trained] = {}
    for key, part in mean.sort(at).group_by(*STATE, maintain_order=True):
        some = part.sort("pretraining_seed", "prompt", "id")
        seeds = tuple(some["pretraining_seed"].unique().sort())
        shape = (len(seeds), len(prompts), len(scale.ids))
        if len(some) != np.prod(shape):
            after = f" after {key[0]}" if key[0] else ""
            raise UserError(
                f"outputs of stances: not every statement of {scale.name} has a response in every "
                f"prompt{after}; run the probe again"
            )
        told = some.select(WEIGHTS).to_numpy().reshape(*shape, len(WEIGHTS))
        steps, missing, odds = (
            some[name].fill_null(np.nan).to_numpy() for name in ("steps", "missing", "odds")
        )
        held = missing.reshape(shape), odds.reshape(shape)
        states[State(*key)] = Trained(seeds, float(steps.mean()), told, *held)
    return prompts, states
