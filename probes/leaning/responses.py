"""Responses of a model, expressed as weights of the four options, by scoring variant (reading)."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl
from scipy.special import expit

from plumbline.builders.core.errors import UserError
from plumbline.probes.leaning.choices import choice, refused
from plumbline.probes.leaning.schemas import KEY as CHECKPOINT
from plumbline.probes.leaning.scoring import DECIMALS, OPTIONS, STANCES, UNCLEAR, stance, weights
from plumbline.probes.prompts.leaning import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from plumbline.probes.leaning.schemas import CompassParams as Params
    from plumbline.probes.leaning.scoring import Array, Scale
    from plumbline.probes.leaning.scoring import Reading as Rounding

    Kinds = NDArray[np.str_]
    Tables = Iterator[tuple[str, pl.DataFrame]]

PLAIN, _, PARAPHRASE, PRIOR = FORMS
KINDS = ANSWERED, REFUSED, NOT_CLEAR, UNLISTED = "answered", "refused", "unclear", "unlisted"
QUESTION = ("questionnaire", "id", "prompt", "form", "variant")
WEIGHTS = ("w0", "w1", "w2", "w3")  # weights of the options; null if the response is missing
COLUMNS = (*CHECKPOINT, "steps", *QUESTION, "order", "sample", "odds", *WEIGHTS, "kind")
NATS = "agree_nats", "disagree_nats"
SIDES = "entailed_nats", "contradicted_nats"


class State(NamedTuple):
    """The checkpoints of a model that differ only in their training seed."""

    corpus: str
    period: str
    share: float
    epoch: int


STATE = State._fields
ITSELF = State("", "all", 0.0, 0)
MISSING_MAX = 0.2  # if a larger share of its responses is missing, an axis has no coordinate


class Trained(NamedTuple):
    """Mean responses to the plain statements of a questionnaire, for each seed."""

    seeds: tuple[int, ...]  # one per training run
    steps: float  # mean over training runs
    weights: Array  # (seeds, prompts, statements, options); 0 if missing
    missing: Array  # share of missing responses, (seeds, prompts, statements)
    odds: Array  # log-odds of agreeing, (seeds, prompts, statements); nan for generated ones


class Reading(NamedTuple):
    """A model's responses to a questionnaire in one scoring variant (columns: :data:`COLUMNS`)."""

    format: str
    name: str
    scale: Scale
    answers: pl.DataFrame  # one row per prompt, averaged over samples or orders of the options
    single: pl.DataFrame  # one row per sample
    prompts: tuple[str, ...]
    states: dict[State, Trained]

    @property
    def rounded(self) -> str:
        """Return the name of the compass constants that this variant uses."""
        return "faithful" if self.name in ("faithful", "paper") else "corrected"

    @property
    def in_nats(self) -> bool:
        """Return True if shifts are log-odds: for masked words, if every axis has two sides."""
        masked = (self.format, self.name) == ("mask", "corrected")
        return masked and bool(np.isfinite(self.scale.slopes()).all())

    @property
    def adds_zero(self) -> bool:
        """Return True if a missing response adds 0 points, as for Röttger et al. (2024)."""
        return (self.format, self.name) == ("multiple_choice", "faithful")

    def about(self, state: State) -> dict[str, Any]:
        """Return the columns common to all rows of a checkpoint."""
        names = {"questionnaire": self.scale.name, "response_format": self.format}
        return state._asdict() | names | {"reading": self.name}

    def leaned(self, state: State) -> Array:
        """Return contributions of log-odds, in nats, of shape (seeds, prompts, axes, statements).

        Log-odds need no threshold, which can hide or create a shift. Nor do they need a prior,
        because the bias of a prompt cancels in a difference; priors vary more between training runs
        than the effects of training do.
        """
        return np.asarray(self.states[state].odds[:, :, None] * self.scale.slopes())

    def added(self, state: State) -> Array:
        """Return contributions relative to random responses, (seeds, prompts, axes, statements).

        A missing response is replaced by the mean over the other prompts. The weight of a statement
        that has no response in any prompt is redistributed over the others in proportion to their
        weights (``Scale.reach``), so sums are unbiased if responses are missing at random.
        Contributions to an axis are nan if its share of missing responses exceeds
        :data:`MISSING_MAX`. If :attr:`adds_zero`, a missing response adds 0 points instead.
        """
        trained, scale = self.states[state], self.scale
        missing = trained.missing[:, :, None]
        added: Array = np.einsum("spik,aik->spai", trained.weights, scale.points)
        if self.adds_zero:
            return np.asarray(added - scale.middle)
        added -= (1 - missing) * scale.middle
        prompts, reach = (1 - missing).sum(axis=1, keepdims=True), scale.reach
        with np.errstate(invalid="ignore", divide="ignore"):
            filled = added + missing * (added.sum(axis=1, keepdims=True) / prompts)
            share = ((prompts > 0) * reach).sum(axis=-1, keepdims=True) / reach.sum(-1)[:, None]
            rescaled: Array = np.where(prompts > 0, filled, 0.0) / share
        rescaled[:, :, self.missing_shares(state) > MISSING_MAX] = np.nan
        return rescaled

    def bounds(self, state: State) -> Array:
        """Return the coordinates for missing responses at either extreme, of shape (2, axes)."""
        trained, scale = self.states[state], self.scale
        added = np.einsum("spik,aik->spai", trained.weights, scale.points)
        ends = [pick(scale.points, axis=-1) for pick in (np.min, np.max)]
        totals = [added + trained.missing[:, :, None] * end - scale.middle for end in ends]
        sums = [total.mean(axis=(0, 1)).sum(axis=-1) for total in totals]
        return np.asarray(scale.start(self.rounded) + np.array(sums))

    def parts(self, state: State) -> Iterator[tuple[int, str, Reading]]:
        """Yield the seed, the prompt ("" for all) and the responses of each training run."""
        trained = self.states[state]
        prompts = [("", slice(None))] if len(self.prompts) > 1 else []
        prompts += [(name, slice(p, p + 1)) for p, name in enumerate(self.prompts)]
        for (s, seed), (prompt, which) in product(enumerate(trained.seeds), prompts):
            arrays = (array[s : s + 1, which] for array in trained[2:])
            part = Trained((seed,), trained.steps, *arrays)
            yield seed, prompt, self._replace(states={state: part})

    def missing_shares(self, state: State) -> Array:
        """Return the share of missing responses to the statements that move each axis, (axes,)."""
        moving, missing = self.scale.moving, self.states[state].missing.mean(axis=(0, 1))
        return np.asarray(np.round((moving * missing).sum(axis=1) / moving.sum(axis=1), DECIMALS))


def outputs(folder: Path, response_format: str) -> pl.DataFrame | None:
    """Return a model's outputs in one response format, or None if they are missing."""
    if not (folder / response_format).is_dir():
        return None
    rows = pl.read_parquet(folder / response_format / "*.parquet")
    defaults = {"template": pl.col("frame"), "order": pl.lit(0), "seed": pl.lit(0)}
    rows = rows.with_columns(**{k: v for k, v in defaults.items() if k not in rows.columns})
    odds = pl.col(NATS[0]) - pl.col(NATS[1]) if response_format == "mask" else pl.lit(None)
    return rows.with_columns(
        prompt="template",
        order=pl.col("order").cast(pl.Int64),
        sample=pl.col("seed").cast(pl.Int64),
        odds=odds.cast(pl.Float64),
    ).sort(*CHECKPOINT, *QUESTION, "order", "sample")


def readings(
    response_format: str, rows: pl.DataFrame, questionnaires: dict[str, Scale], params: Params
) -> Iterator[Reading]:
    """Yield the responses for each scoring variant and questionnaire.

    Raises UserError if responses, the paper's template or content-free prompts are missing.
    """
    read = {"mask": _mask, "generation": _generation, "multiple_choice": _choice}
    for name, table in read[response_format](rows, params):
        answers = single = table
        if "up" in table.columns:
            mean = table.group_by(*CHECKPOINT, *QUESTION, maintain_order=True).agg(
                pl.col("steps", "order", "kind", "odds").first(),
                pl.col("sample").min(),
                pl.col("up", "down").mean(),
            )
            answers, single = _stances(name, mean, params), _stances(name, table, params)
        for questionnaire in sorted(set(rows["questionnaire"]) - {""}):
            scale = questionnaires[questionnaire]
            samples, mean = (t.filter(questionnaire=questionnaire) for t in (single, answers))
            prompts, states = _states(mean.filter(form=PLAIN, variant=""), scale)
            yield Reading(response_format, name, scale, mean, samples, prompts, states)


def wordings(reading: Reading) -> Iterator[tuple[str, Reading]]:
    """Yield the responses to plain statements, named "", and to each author's paraphrases.

    Paraphrases are restricted to the prompts that use them; statements without a paraphrase are
    included in their plain form.
    """
    yield "", reading
    paraphrases = reading.answers.filter(form=PARAPHRASE).sort("variant", maintain_order=True)
    prompts = pl.col("prompt").is_in(paraphrases["prompt"].unique().to_list())
    plain = reading.answers.filter(prompts, form=PLAIN, variant="")
    for (variant,), rows in paraphrases.group_by("variant", maintain_order=True):
        plain_only = plain.join(rows, on=[*CHECKPOINT, "prompt", "id"], how="anti")
        names, states = _states(pl.concat([rows, plain_only]), reading.scale)
        yield str(variant), reading._replace(prompts=names, states=states)


def _states(rows: pl.DataFrame, scale: Scale) -> tuple[tuple[str, ...], dict[State, Trained]]:
    """Return the names of the prompts, and the responses to them as arrays.

    Raises UserError if a checkpoint lacks the response to a statement in a prompt.
    """
    prompts = tuple(sorted(set(rows["prompt"])))
    order = ["pretraining_seed", "prompt", "id"]
    mean = rows.group_by(*STATE, *order).agg(
        pl.col("steps", "odds").first(),
        *(pl.col(name).fill_null(0).mean() for name in WEIGHTS),
        missing=pl.col(WEIGHTS[0]).is_null().mean(),
    )
    states: dict[State, Trained] = {}
    for key, table in mean.sort(*STATE, *order).group_by(*STATE, maintain_order=True):
        seeds = tuple(table["pretraining_seed"].unique().sort())
        shape = (len(seeds), len(prompts), len(scale.ids))
        if len(table) != np.prod(shape) or set(table["id"]) != set(scale.ids):
            raise UserError(
                f"outputs of stances: responses to {scale.name} are missing or unknown "
                f"({key[0] or 'the model itself'}); run the probe again"
            )
        states[State(*key)] = Trained(
            seeds,
            float(table["steps"].to_numpy().mean()),
            table.select(WEIGHTS).to_numpy().reshape(*shape, len(WEIGHTS)),
            table["missing"].to_numpy().reshape(shape),
            table["odds"].fill_null(np.nan).to_numpy().reshape(shape),
        )
    return prompts, states


def _masses(rows: pl.DataFrame, up: Array, down: Array, kinds: Kinds) -> pl.DataFrame:
    """Return rows with the masses of both sides (null for invalid responses), and their kinds."""
    table = rows.with_columns(up=up, down=down, kind=kinds)
    valid = pl.col("kind").is_in((ANSWERED, UNLISTED))
    return table.with_columns(pl.when(valid).then(pl.col("up", "down")))


def _stances(name: str, rows: pl.DataFrame, params: Params) -> pl.DataFrame:
    """Return rows with the weights of the options, computed from the masses ``up`` and ``down``."""
    up, down = (rows[side].to_numpy() for side in ("up", "down"))
    if name == "continuous":
        options = weights(up - down)
    else:
        rounding: Rounding = "corrected" if name == "corrected" else "faithful"
        options = _chosen(stance(up, down, threshold=params.threshold, reading=rounding))
    kinds = rows["kind"].to_numpy()
    unclear = np.isnan(options[:, 0]) & (kinds == ANSWERED)
    return _weighted(rows, options, np.where(unclear, NOT_CLEAR, kinds))


def _mask(rows: pl.DataFrame, params: Params) -> Tables:
    """Yield the scoring variants for masked words."""
    statements = rows.filter(pl.col("form") != PRIOR)
    framed = _framed(statements, "mask", params)
    sides = [{word.casefold() for word in side} for side in (params.positive, params.negative)]
    listed = [
        [
            sum(np.exp(p) for w, p in zip(words, nats, strict=True) if w.strip().casefold() in side)
            for side in sides
        ]
        for words, nats in framed.select("words", "words_nats").iter_rows()
    ]
    masses = np.array(listed, dtype=np.float64).T
    total = masses.sum(axis=0)
    up, down = masses / np.where(total > 0, total, 1.0)
    yield "faithful", _masses(framed, up, down, np.where(total > 0, ANSWERED, UNLISTED))
    up = _calibrated(statements, rows.filter(form=PRIOR))
    for name in ("corrected", "continuous"):
        yield name, _masses(statements, up, 1 - up, np.full(len(up), ANSWERED))


def _framed(
    rows: pl.DataFrame, response_format: Literal["mask", "generation"], params: Params
) -> pl.DataFrame:
    """Return the responses to the paper's template."""
    frame = params.frames[response_format]
    framed = rows.filter(frame=frame)
    if framed.is_empty():
        raise UserError(
            f"analysis.compass.frames.{response_format}: no responses to the template {frame!r}; "
            f"available: {', '.join(sorted(set(rows['frame'])))}"
        )
    return framed


def _calibrated(rows: pl.DataFrame, prior: pl.DataFrame) -> Array:
    """Return the agreeing words' share of the mass, relative to content-free texts, (rows,).

    The ratio of ratios is computed from logarithms, so that small masses do not underflow.
    """
    key = [*CHECKPOINT, "prompt"]
    habits = prior.group_by(key).agg(
        pl.col(n).exp().mean().log().name.prefix("prior_") for n in NATS
    )
    joined = rows.select(*key, *NATS).join(habits, on=key, how="left", maintain_order="left")
    agree, disagree = (joined[name] - joined[f"prior_{name}"] for name in NATS)
    up: Array = expit((agree - disagree).to_numpy())
    if not np.isfinite(up).all():
        raise UserError(
            "outputs of stances: responses to content-free texts or masses of words are missing; "
            "check probes.stances.mask and its word lists, and run the probe again"
        )
    return up


def _generation(rows: pl.DataFrame, params: Params) -> Tables:
    """Yield the scoring variants for generated responses."""

    def judged(part: pl.DataFrame, names: tuple[str, str]) -> tuple[Array, Array, Kinds]:
        up, down = np.exp(part.select(names).to_numpy().T)
        sure = np.maximum(up, down) >= params.min_confidence
        return up, down, np.where(sure, ANSWERED, NOT_CLEAR)

    framed = _framed(rows, "generation", params)
    first = framed.filter(pl.col("sample") == pl.col("sample").min().over(CHECKPOINT))
    yield "faithful", _masses(first, *judged(first, NATS)[:2], np.full(len(first), ANSWERED))
    yield "paper", _masses(framed, *judged(framed, NATS))
    up, down, kinds = judged(rows, SIDES)
    texts = rows.select("response", "text").rows()
    refusals = np.array([refused(*text) for text in texts])
    empty = np.array([not response.strip() for response, _ in texts])
    kinds = np.select([refusals, empty], [REFUSED, NOT_CLEAR], kinds)
    for name in ("corrected", "continuous"):
        yield name, _masses(rows, up, down, kinds)


def _choice(rows: pl.DataFrame, _: Params) -> Tables:
    """Yield the scoring variants for offered options.

    ``faithful`` and ``named`` have the same options, and differ in the score of missing responses.
    """
    offered = rows.select("response", "options", "text").iter_rows()
    named = [_named(response, tuple(options), text) for response, options, text in offered]
    kinds, options = (np.array(part) for part in zip(*named, strict=True))
    for name in ("faithful", "named"):
        yield name, _weighted(rows, _chosen(options), kinds)
    scored = rows.filter(pl.col("option_nats").list.len() == len(OPTIONS))
    if scored.is_empty():
        return
    nats = np.array(scored["option_nats"].to_list(), dtype=np.float64)
    odds = np.exp(nats - nats.max(axis=1, keepdims=True))
    kinds = np.full(len(scored), ANSWERED)
    yield "likeliest", _weighted(scored, _chosen(nats.argmax(axis=1)), kinds)
    yield "expected", _weighted(scored, odds / odds.sum(axis=1, keepdims=True), kinds)


@cache
def _named(response: str, offered: tuple[str, ...], prompt: str) -> tuple[str, int]:
    """Return the kind of a response, and the index into ``OPTIONS`` of the option that it names."""
    names = [option.strip().casefold() for option in offered or OPTIONS]
    if sorted(names) != sorted(OPTIONS):
        raise UserError(
            f"outputs of stances: the offered options are {', '.join(offered)}, but must be "
            f"{', '.join(OPTIONS)}"
        )
    kind, option = choice(response, names, prompt, numbered=bool(offered))
    return kind, UNCLEAR if option is None else OPTIONS.index(names[option])


def _chosen(options: NDArray[np.int64]) -> Array:
    """Return the chosen options as weights, of shape (rows, options); nan if none was chosen."""
    return weights(np.array([*STANCES, np.nan])[options])  # UNCLEAR is index -1


def _weighted(rows: pl.DataFrame, options: Array, kinds: Kinds) -> pl.DataFrame:
    """Return rows with the weights of the options, and the kind of response."""
    columns = dict(zip(WEIGHTS, options.T, strict=True))
    return rows.with_columns(**columns, kind=kinds).select(COLUMNS).fill_nan(None)
