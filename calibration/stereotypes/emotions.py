"""Analysis ``emotions`` on simulated lists.

Every replicate has words of its own, with affects that are drawn for each. Planted are words of one
affect in the lists of every other group, or of all groups of a category. The true share of a
category is that of many more groups, with the same words. Simplified: one model; the affects of a
word do not depend on each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from calibration.stereotypes import completions as made
from calibration.truth import DECOY, NULL, PLANTED, Drawn, Truth, outcome
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stereotypes.emotions import LEVELS

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float64]

LARGE = 300  # groups of a category that true shares are taken of
GROUP, CATEGORY = LEVELS


class Shape(made.ListsShape):
    """Shape of lists and lexicon."""

    words: int = Field(250, ge=20, description="words that lists are made of")
    common: float = Field(0.0, ge=0, description="spread of words in a category")
    known: float = Field(0.7, gt=0, le=1, description="share of words in the lexicon")
    short: int = Field(20, ge=1, description="words of each list, by typicality")
    lift: float = Field(1.0, gt=0, description="times as much is planted in categories")


SHAPES = {
    "36 groups": Shape(),
    "36 groups, shorter lexicon": Shape(known=0.3, lift=2.0),
}
TRUTHS = {
    "affects of words say nothing of groups": Truth(NULL, "groups have words of their own"),
    "affects of groups planted": Truth(
        PLANTED, "nats of an affect's words in every other group", {"groups": (0.5, 1.0, 2.0)}
    ),
    "affects of categories planted": Truth(
        PLANTED, "nats of an affect's words in a category", {"categories": (0.15, 0.3, 0.6)}
    ),
    "words of categories": Truth(
        DECOY, "categories have words of their own, of whatever affects", {"common": 0.5}
    ),
    "frequent affects": Truth(
        DECOY, "positive words are frequent, in lists of all groups", {"frequent": 1.0}
    ),
}
PARAMS: dict[str, Any] = {"n_bootstrap": 200}


class Known(NamedTuple):
    """What is true of a replicate."""

    kind: str
    groups: pl.DataFrame  # level, category, group, affect, effect: what was planted
    shares: pl.DataFrame | None  # reading, category, affect, share, apart: of categories


def draw(folder: Path, truth: Truth, shape: Shape, rng: np.random.Generator) -> Drawn:
    """Write one replicate."""
    shape = shape.model_copy(update={"common": truth.settings.get("common", shape.common)})
    inputs, words = made.datasets(folder), made.vocabulary(shape, rng)
    tilt = truth.settings.get("frequent", 0.0) * words.affects[:, AFFECTS.index("positive")]
    words = words._replace(frequency=words.frequency + tilt)
    nats = _planted(truth, shape, rng)
    planted = nats @ words.affects.T
    scores = made.scores(shape, words, shape.category, planted, rng)
    known = np.flatnonzero(rng.random(shape.words) < shape.known)
    spelled = [made.names(shape.words)[w] for w in known]
    made.write_lexicon(inputs, words.affects[known], spelled)
    lists = made.table(shape.groups, scores, words.frequency, shape.top, pieces=words.pieces)
    made.write_lists(inputs, "m", lists)
    depth = {"probability": shape.top, "corrected": shape.short}
    shares = _shares(shape, words, nats, known, depth, rng)
    settings = {"top_k": depth}
    return Drawn(inputs, Known(truth.kind, _effects(shape, truth, nats), shares), settings)


def _planted(truth: Truth, shape: Shape, rng: np.random.Generator) -> Array:
    """Return what is planted in each group, (groups, affects) nats."""
    nats = np.zeros((len(shape.category), len(AFFECTS)))
    if sizes := truth.settings.get("groups"):
        some = np.arange(0, len(nats), 2)
        nats[some, rng.integers(0, len(AFFECTS), len(some))] = np.resize(sizes, len(some))
    if sizes := truth.settings.get("categories"):
        of = shape.lift * rng.permutation(sizes)[shape.category]
        nats[np.arange(len(nats)), rng.permutation(len(AFFECTS))[shape.category]] = of
    return nats


def _effects(shape: Shape, truth: Truth, nats: Array) -> pl.DataFrame:
    """Return the planted effect of each row; null where something else was planted nearby."""
    rows = []
    for number, (category, group) in enumerate(shape.groups):
        for affect, own in enumerate(nats[number].tolist()):
            known = own if "groups" in truth.settings and own else None
            effect = known if truth.kind == PLANTED else 0.0
            rows.append((GROUP, category, group, AFFECTS[affect], effect))
    for number, category in enumerate(shape.categories):
        first = int(np.flatnonzero(shape.category == number)[0])
        for affect, own in enumerate(nats[first].tolist()):
            known = own if "categories" in truth.settings and own else None
            effect = known if truth.kind == PLANTED else 0.0
            rows.append((CATEGORY, category, "", AFFECTS[affect], effect))
    names = ["level", "category", "group", "affect", "effect"]
    return pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)


def _shares(
    shape: Shape,
    words: made.Words,
    nats: Array,
    known: NDArray[np.int64],
    depth: dict[str, int],
    rng: np.random.Generator,
) -> pl.DataFrame | None:
    """Return true shares of each category by reading, and minus that of all other groups.

    None where groups of a category were planted with other things.
    """
    for number in range(len(shape.categories)):
        own = nats[shape.category.astype(np.int64) == number]
        if len(np.unique(own, axis=0)) > 1:
            return None
    firsts = [int(np.flatnonzero(shape.category == c)[0]) for c in range(len(shape.categories))]
    alike = not nats.any() and not shape.common
    found: dict[int, dict[str, Array]] = {}
    for number, first in enumerate(firsts):
        if alike and number:
            found[number] = found[0]
            continue
        every = np.full(LARGE, number)
        planted = np.broadcast_to(nats[first] @ words.affects.T, (LARGE, shape.words))
        scores = made.scores(shape, words, every, planted, rng)
        found[number] = _profiles(scores, words, known, depth, shape.top)
    sizes = np.array(list(shape.categories.values()))
    rows = []
    for number, category in enumerate(shape.categories):
        others = np.flatnonzero(np.arange(len(sizes)) != number)
        for name in depth:
            of_others = [found[int(o)][name] for o in others]
            mean = np.average(of_others, axis=0, weights=sizes[others])
            for affect, share in enumerate(found[number][name].tolist()):
                apart = share - float(mean[affect])
                rows.append((name, category, AFFECTS[affect], share, apart))
    names = ["reading", "category", "affect", "share", "apart"]
    return pl.DataFrame(rows, schema=names, orient="row")


def _profiles(
    scores: Array,
    words: made.Words,
    known: NDArray[np.int64],
    depth: dict[str, int],
    top: int,
) -> dict[str, Array]:
    """Return the mean share of each affect over groups, (affects,), by reading."""
    listed = np.argsort(np.argsort(-scores, axis=2), axis=2) < top
    found = {}
    for name, k in depth.items():
        kept, by = listed, scores
        if name == "corrected":
            kept = listed & ~words.pieces
            by = np.where(kept, scores - words.frequency, -np.inf)
        there = kept & (np.argsort(np.argsort(-by, axis=2), axis=2) < k)
        union = np.asarray(there.any(axis=1), dtype=np.float64)[:, known]
        found[name] = (union @ words.affects[known] / union.sum(axis=1)[:, None]).mean(axis=0)
    return found


def outcomes(tables: dict[str, pl.DataFrame], drawn: Drawn) -> dict[str, pl.DataFrame]:
    """Return the rows of each test: of groups and categories, in either reading."""
    known: Known = drawn.known
    table = tables["emotions"].join(known.groups, on=["level", "category", "group", "affect"])
    targets = pl.lit(None, dtype=pl.Float64).alias("share"), pl.lit(None, dtype=pl.Float64)
    if known.shares is None:
        table = table.with_columns(targets[0], targets[1].alias("apart"))
    else:
        table = table.join(known.shares, on=["reading", "category", "affect"])
    found = {}
    for reading in sorted(set(table["reading"].to_list())):
        for level in LEVELS:
            own = table.filter(reading=reading, level=level)
            place = f"{level}, {reading}"
            of_groups, null = level == GROUP, known.kind == NULL
            apart = own.drop("value", "low", "high").rename(
                {"difference": "value", "low_difference": "low", "high_difference": "high"}
            )
            nothing = pl.lit(None, dtype=pl.Float64)
            target = pl.lit(0.0 if null else None, dtype=pl.Float64)
            effect = pl.col("effect")
            found[f"difference: {place}"] = outcome(
                apart, effect=effect, target=target if of_groups else pl.col("apart")
            )
            carry = pl.col("affect").replace_strict(
                dict(zip(AFFECTS, made.CARRY, strict=True)), return_dtype=pl.Float64
            )
            found[f"share: {place}"] = outcome(
                own.with_columns(p=nothing, p_bh=nothing),
                effect=effect.fill_null(0.0),
                target=(carry if null else nothing) if of_groups else pl.col("share"),
            )
    return found
