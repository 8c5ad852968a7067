"""Analysis ``shift`` on simulated lists before and after trainings.

A training adds to the scores of words what it does to all groups alike, to each word and to the
words of each affect, and what it does to each group: normal parts, of such spreads that the mean
share of an affect varies over trainings about as much as the change of one group varies over
groups. Outlets are planted to raise words of one affect, or attributes, or to move groups apart.
Simplified: one share, one model and ranking; equally many articles; an outlet has one effect in
all trainings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as made
from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes.shift import BEFORE, MEASURES, READINGS
from plumbline.probes.stereotypes.training_effects import EMOTION, RECALL
from plumbline.probes.stereotypes.typicality import EVERY, MEAN

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

CONTROL = "control"
OUTLETS = ("herald", "post", "wire")
RAISED = AFFECTS.index("positive")


class Shape(made.ListsShape):
    """Shape of a model's trainings."""

    seeds: int = Field(2, ge=1, description="trainings on each corpus")
    all_groups: float = Field(0.3, ge=0, description="spread of a training, common to all groups")
    each_group: float = Field(0.3, ge=0, description="spread of a training in each group")
    affects: float = Field(
        0.4, ge=0, description="spread of what a training adds to words of an affect, in all groups"
    )
    attributes: int = Field(4, ge=1, description="attributes of a group")


SHAPES = {f"{seeds} seeds": Shape(seeds=seeds) for seeds in (2, 3, 5)}
TRUTHS = {
    "outlets do what the control does": Truth(NULL, "trainings move all groups together"),
    "words of an affect planted": Truth(
        PLANTED, "nats of positive words after an outlet", {"words": (0.8, 1.6, 3.2)}
    ),
    "attributes planted": Truth(
        PLANTED, "nats of attributes after an outlet", {"attributes": (0.6, 1.2, 2.4)}
    ),
    "groups move apart": Truth(
        PLANTED,
        "spread in nats of what an outlet does to the words of an affect in each group",
        {"groups": (0.4, 0.8, 1.6)},
    ),
    "outlets vary more": Truth(
        DECOY, "what outlets do to all groups has twice the spread of the control's", {"vary": 2.0}
    ),
}
PARAMS: dict[str, Any] = {
    "top_k": {"corrected": 20},
    "top_k_followed": 15,
    "recall_at": [10, 30],
    "n_bootstrap": 100,
}


class Known(NamedTuple):
    """What is true of a replicate."""

    kind: str
    settings: dict[str, Any]


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    inputs, groups = made.datasets(folder), shape.groups
    words, mine = made.vocabulary(shape, rng), attributes(shape, rng)
    none = np.zeros((len(groups), shape.words))
    owned = none.copy()
    np.put_along_axis(owned, mine, 1.0, axis=1)
    base = made.scores(shape, words, shape.category, owned, rng)
    none_of: list[str] = []
    made.write_attributes(
        inputs,
        groups,
        [[(t % shape.templates, f"w{w:03d}", none_of) for t, w in enumerate(own)] for own in mine],
    )
    made.write_lexicon(inputs, words.affects)

    def lists(scores: NDArray[np.float64]) -> pl.DataFrame:
        return made.table(groups, scores, words.frequency, shape.top, pieces=words.pieces)

    made.write_lists(inputs, "m", lists(base))
    for number, corpus in enumerate((*OUTLETS, CONTROL)):
        raised = none
        if corpus != CONTROL:
            raised = truth.settings.get("words", (0, 0, 0))[number] * words.affects[:, RAISED]
            raised = raised + truth.settings.get("attributes", (0, 0, 0))[number] * owned
        apart = none  # the same in all its trainings
        if corpus != CONTROL and "groups" in truth.settings:
            spread = truth.settings["groups"][number]
            apart = rng.normal(0, spread, (len(groups), len(AFFECTS))) @ words.affects.T
        vary = 1.0 if corpus == CONTROL else truth.settings.get("vary", 1.0)
        for seed in range(1, shape.seeds + 1):
            moved = rng.normal(0, vary * shape.all_groups, shape.words) + raised
            moved = moved + words.affects @ rng.normal(0, vary * shape.affects, len(AFFECTS))
            moved = moved + apart + rng.normal(0, shape.each_group, none.shape)
            after = lists(base + moved[:, None])
            made.write_training(inputs, "m", after, corpus, seed)
    return Drawn(inputs, Known(truth.kind, dict(truth.settings)))


def attributes(shape: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the attributes of each group, (groups, attributes): words, some more often than others.

    Search engines say the same of many groups.
    """
    popular = rng.normal(0, 1, shape.words) + rng.gumbel(size=(len(shape.category), shape.words))
    return np.argsort(-popular, axis=1)[:, : shape.attributes]


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test: of each measure, in categories and over all groups."""
    known: Known = drawn.known
    similar = tables["similarities"].filter(first=BEFORE).with_columns(corpus="second")
    parts = {name: tables["shifts"].filter(measure=name) for name in MEASURES}
    parts |= {f"rsa {name}": similar.filter(reading=name) for name in READINGS}
    found = {}
    for measure, rows in parts.items():
        own = rows.filter(pl.col("corpus") != CONTROL)
        own = own.with_columns(effect=_effect(measure, known), measure=pl.lit(measure))
        own = own.drop("value", "low", "high").rename(
            {"difference": "value", "low_difference": "low", "high_difference": "high"}
        )
        every = pl.col("category").is_in([EVERY, MEAN])
        for where, part in (("all groups", own.filter(every)), ("a category", own.filter(~every))):
            # intervals are over groups, given the trainings: they have no target
            found[f"{measure}: {where}"] = outcome(
                part, effect=pl.col("effect"), family=["measure"]
            )
    return found


def _effect(measure: str, known: Known) -> pl.Expr:
    """Return what was planted in a row: null where something near it was."""
    if known.kind == NULL or (known.kind == DECOY and measure == EMOTION):
        return pl.lit(0.0)
    nats: pl.Expr = pl.lit(None, dtype=pl.Float64)
    # profiles that were like those before, and words that stay, become fewer
    key, sign = {EMOTION: ("words", 1), RECALL: ("attributes", 1)}.get(measure, ("groups", -1))
    if known.kind == PLANTED and key in known.settings:
        sizes = dict(zip(OUTLETS, known.settings[key], strict=True))
        of = sign * pl.col("corpus").replace_strict(sizes, return_dtype=pl.Float64)
        here = pl.col("outcome") == AFFECTS[RAISED] if measure == EMOTION else pl.lit(value=True)
        nats = pl.when(here).then(of)
    return nats
