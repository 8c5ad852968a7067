"""Analysis ``rsa``: how alike models are in the emotions that social groups evoke.

Choenni et al. (2021), representational similarity of emotion profiles: the cosines of the groups
of a category in one model, against those in another; as published, and without the diagonal.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import ESTIMATE, Estimate, Table, finite
from plumbline.probes.stereotypes.emotions import EMOTIONS, LEVELS
from plumbline.probes.stereotypes.similarity import compare, relabelled, rsa
from plumbline.probes.stereotypes.typicality import EVERY, GroupBootstrap
from plumbline.probes.stereotypes.typicality import READINGS as RANKINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ()
OUTPUTS = ()
TABLES = ("emotions",)
FEAR = AFFECTS.index("fear")
READINGS = ("faithful", "released", "corrected")
BOUNDS = ("with itself", "with its rows in random orders, mean")
WHERE = (
    Column("ranking", "label", "what lists are ranked by", labels=RANKINGS),
    Column("top_k", "int64", "words taken of each template's list", minimum=1),
    Column(
        "reading",
        "label",
        "faithful: diagonal, without fear; released: diagonal; corrected: neither",
        labels=READINGS,
    ),
)
RSA = Schema(
    columns=(
        Column("language", "string", "language of the lists"),
        Column("first", "string", "name of a model in params.yaml"),
        Column("second", "string", "name of another, later in the alphabet"),
        *WHERE,
        Column("category", "string", f"category of social groups, or {EVERY}"),
        Column("dimensions", "int64", "affects in a profile", minimum=1),
        *ESTIMATE,
        Column(
            "expected",
            "float64",
            "mean under the null; with the diagonal and without ties 3 / (n + 1)",
            nullable=True,
        ),
        Column("shift", "float64", "value minus 1, as the paper reports it", nullable=True),
        Column("family", "int64", "tests in the family that p_bh is taken over", minimum=1),
    ),
    key=("language", "first", "second", "ranking", "reading", "category"),
)
LIMITS = Schema(
    columns=(
        Column("language", "string", "language of the lists"),
        Column("model", "string", "name of the model in params.yaml"),
        *WHERE,
        Column("compared", "label", "what the model's profiles are compared with", labels=BOUNDS),
        *ESTIMATE,
    ),
    key=("language", "model", "ranking", "reading", "compared"),
)
SCHEMAS = {"rsa": RSA, "bounds": LIMITS}


class Params(GroupBootstrap):
    """How intervals and tests are made."""


class Profile(NamedTuple):
    """Profiles of some groups of a model, sorted by category and group."""

    categories: list[str]
    groups: list[str]
    shares: NDArray[np.float64]  # (groups, affects)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models in all categories, and each with itself.

    Returns
    -------
    dict
        ``rsa``, without rows where there is one model, and ``bounds``.
    """
    table = pl.read_parquet(inputs.tables("emotions") / "emotions.parquet")
    table = table.filter(pl.col("level") == LEVELS.index("group"))
    pairs, bounds = Table(RSA), Table(LIMITS)
    pairs.adjust(over=("language", "ranking", "reading"))
    keys = ("language", "reading", "top_k")
    for (language, ranking, top_k), part in table.group_by(keys, maintain_order=True):
        found = {
            str(model): profile(own)
            for (model,), own in part.group_by("model", maintain_order=True)
        }
        place = {"language": language, "ranking": ranking, "top_k": top_k}
        for first, second in combinations(sorted(found), 2):
            pair = place | {"first": first, "second": second}
            _compare(pairs, pair, found[first], found[second], params)
        for model, own in found.items():
            _bound(bounds, place | {"model": model}, own, params)
    return {"rsa": pairs.frame().sort(RSA.key), "bounds": bounds.frame().sort(LIMITS.key)}


def profile(table: pl.DataFrame) -> Profile:
    """Return the profiles of one model in one ranking, from rows of ``emotions`` for groups.

    Groups of whose words none is in the lexicon are left out, and those of whose words none
    carries any affect: they have no direction.
    """
    counts = table.sort("category", "group", "affect").filter(pl.col("covered") > 0)
    if tuple(EMOTIONS["affect"].labels) != AFFECTS or len(counts) % len(AFFECTS):
        raise ValueError("not a row for each affect of a group")
    shares = (counts["carrying"] / counts["covered"]).to_numpy().reshape(-1, len(AFFECTS))
    directed = (np.delete(shares, FEAR, axis=1) > 0).any(axis=1)
    names = counts.select("category", "group")[:: len(AFFECTS)].filter(pl.Series(directed))
    return Profile(names["category"].to_list(), names["group"].to_list(), shares[directed])


def _compare(
    table: Table, pair: dict[str, Any], first: Profile, second: Profile, params: Params
) -> None:
    """Add a row for each category and reading, of the groups that both have."""
    names = list(zip(first.categories, first.groups, strict=True))
    others = {n: i for i, n in enumerate(zip(second.categories, second.groups, strict=True))}
    both = [(i, others[name]) for i, name in enumerate(names) if name in others]
    for category in [*sorted({names[i][0] for i, _ in both}), EVERY]:
        own = [(i, j) for i, j in both if category in (names[i][0], EVERY)]
        a, b = first.shares[[i for i, _ in own]], second.shares[[j for _, j in own]]
        weights = params.weights([names[i][1] for i, _ in own])
        for reading in READINGS:
            x, y = (_dimensions(z, reading) for z in (a, b))
            found = compare(
                x,
                y,
                weights,
                diagonal=reading != "corrected",
                n_permutations=params.n_permutations,
                seed=params.seed,
                confidence=params.confidence,
            )
            table.add(
                found.estimate,
                cluster="group",
                null="groups of the second model relabelled; see expected",
                p=found.p,
                **pair,
                category=category,
                reading=READINGS.index(reading),
                dimensions=x.shape[1],
                expected=finite(found.expected),
                shift=finite(found.estimate.value - 1),
            )


def _dimensions(shares: NDArray[np.float64], reading: str) -> NDArray[np.float64]:
    return np.delete(shares, FEAR, axis=1) if reading == "faithful" else shares


def _bound(table: Table, place: dict[str, Any], own: Profile, params: Params) -> None:
    """Add the largest similarity that there can be, and that of unrelated profiles."""
    nothing = float("nan")
    for reading in READINGS:
        shares, diagonal = _dimensions(own.shares, reading), reading != "corrected"
        value, n = rsa(shares, shares, diagonal=diagonal), len(shares)
        if np.isnan(value):
            continue
        mixed = relabelled(
            shares,
            shares,
            diagonal=diagonal,
            n_permutations=params.n_permutations,
            seed=params.seed,
        )
        low, high = (float(x[0]) for x in percentiles(mixed[None], params.confidence))
        method = f"range of {params.confidence:.0%} of {params.n_permutations} orders"
        unrelated = "the diagonal, 3 / (n + 1)" if diagonal else "no relation"
        for compared, estimate, null in (
            (0, Estimate(value, nothing, nothing, n, "none: no estimate"), "1: the same"),
            (1, Estimate(float(mixed.mean()), low, high, n, method), unrelated),
        ):
            table.add(
                estimate,
                cluster="group",
                null=null,
                **place,
                reading=READINGS.index(reading),
                compared=compared,
            )
