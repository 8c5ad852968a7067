"""Answers of all states of a model to a questionnaire, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.errors import Problem
from plumbline.probes.leaning.responses import CHECKPOINT, PLAIN, WEIGHTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.leaning.scale import Scale

    Array = NDArray[np.float64]


class State(NamedTuple):
    """What a model was trained on, without the seed of the training."""

    corpus: str
    period: int
    share: float
    epoch: int

    def facts(self) -> dict[str, object]:
        """Return its columns."""
        return self._asdict()


ITSELF = State("", 0, 0.0, 0)


class Answers(NamedTuple):
    """Mean answers of one model in one reading."""

    scale: Scale
    prompts: tuple[str, ...]
    seeds: dict[State, tuple[int, ...]]  # trainings
    texts: dict[State, float]  # mean number that it was trained on
    weights: dict[State, Array]  # (seeds, prompts, statements, options), missing ones 0
    missing: dict[State, Array]  # share, (seeds, prompts, statements)

    def added(self, state: State, lacking: Array | None = None) -> Array:
        """Return what answers add beyond answers at random, (seeds, prompts, axes, statements).

        ``lacking`` is what a missing answer adds, (axes, statements); by default the middle.
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
    Problem
        If a state of the model was not asked every statement in every prompt.
    """
    plain = (pl.col("form") == PLAIN) & (pl.col("variant") == "")
    own = found.filter((pl.col("questionnaire") == scale.name) & plain)
    prompts = tuple(sorted(set(own["prompt"])))
    mean = own.group_by(*CHECKPOINT, "prompt", "id").agg(
        pl.col("texts").first(),
        *(pl.col(name).fill_null(0).mean() for name in WEIGHTS),
        missing=pl.col(WEIGHTS[0]).is_null().mean(),
    )
    by: dict[State, dict[int, pl.DataFrame]] = {}
    for key, part in mean.sort(*CHECKPOINT).group_by(*CHECKPOINT, maintain_order=True):
        corpus, period, share, seed, epoch = key
        by.setdefault(State(corpus, period, share, epoch), {})[seed] = part
    place = {(p, i): (a, b) for a, p in enumerate(prompts) for b, i in enumerate(scale.ids)}
    told: dict[State, Array] = {}
    lost: dict[State, Array] = {}
    for state, parts in by.items():
        shape = (len(parts), len(prompts), len(scale.ids))
        told[state] = np.full((*shape, len(WEIGHTS)), np.nan)
        lost[state] = np.zeros(shape)
        for number, part in enumerate(parts.values()):
            at = [place.get(pair) for pair in part.select("prompt", "id").iter_rows()]
            if None in at:
                raise Problem(
                    f"outputs of leaning: an answer to a statement that {scale.name} does not "
                    "have; run the probe again"
                )
            where = tuple(np.array(at).T)
            told[state][(number, *where)] = part.select(WEIGHTS).to_numpy()
            lost[state][(number, *where)] = part["missing"].to_numpy()
        if np.isnan(told[state]).any():
            raise Problem(
                f"outputs of leaning: not every statement of {scale.name} was asked in every "
                f"prompt{' after ' + state.corpus if state.corpus else ''}; run the probe again"
            )
    return Answers(
        scale,
        prompts,
        {state: tuple(parts) for state, parts in by.items()},
        {s: float(np.mean([p["texts"][0] for p in parts.values()])) for s, parts in by.items()},
        told,
        lost,
    )
