"""Analysis ``rsa``: how alike models are in the emotions that social groups evoke.

Choenni et al. (2021), representational similarity of emotion profiles: the cosines of the groups
of a category in one model, against those in another; as published, and without the diagonal.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from plumbline.builders.core.params import Params as Section
from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.bootstrap import percentiles
from plumbline.probes.stats.estimate import (
    ESTIMATE,
    Estimate,
    benjamini_hochberg,
    finite,
    significant,
    typed,
)
from plumbline.probes.stereotypes.emotions import EMOTIONS, LEVELS
from plumbline.probes.stereotypes.similarity import compare, relabelled, rsa
from plumbline.probes.stereotypes.typicality import READINGS as RANKINGS
from plumbline.probes.worlds.recovery import RECOVERY, Resampling, planted, recovery_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from plumbline.probes.core.run_analysis import Inputs

EACH = False
DATASETS = ()
OUTPUTS = ()
TABLES = ("emotions",)
EVERY = "all"  # categories together
FEAR = AFFECTS.index("fear")
READINGS = ("faithful", "released", "corrected")
RSA = Schema(
    columns=(
        Column("language", "string", "language of the lists"),
        Column("first", "string", "name of a model in params.yaml"),
        Column("second", "string", "name of another, later in the alphabet"),
        Column("ranking", "label", "what lists are ranked by", labels=RANKINGS),
        Column("k", "int64", "words taken of each template's list", minimum=1),
        Column(
            "reading",
            "label",
            "faithful: diagonal, without fear; released: diagonal; corrected: neither",
            labels=READINGS,
        ),
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
SCHEMAS = {"rsa": RSA, "recovery": RECOVERY}


class Params(Section):
    """How intervals and tests are made."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="version of the tables")
    permutations: int = Field(ge=99, description="relabellings of the groups of one model")
    bootstrap: int = Field(ge=100, description="bootstrap replicates over groups")
    confidence: float = Field(gt=0.5, lt=1, description="of the intervals")
    seed: int = Field(ge=0, description="of the resampling")

    def resampling(self) -> Resampling:
        """Return how groups are resampled."""
        return Resampling(self.bootstrap, self.seed, self.confidence)


class Profile(NamedTuple):
    """Profiles of some groups of a model, sorted by category and group."""

    categories: list[str]
    groups: list[str]
    shares: NDArray[np.float64]  # (groups, affects)


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models in all categories.

    Returns
    -------
    dict
        ``rsa``, without rows where there is one model, and with a world ``recovery``; columns as
        in :data:`SCHEMAS`.
    """
    table = pl.read_parquet(inputs.tables("emotions") / "emotions.parquet")
    table = table.filter(pl.col("level") == LEVELS.index("group"))
    rows: list[dict[str, Any]] = []
    recovery: list[dict[str, Any]] = []
    keys = ("language", "reading", "k")
    for (language, ranking, k), part in table.group_by(keys, maintain_order=True):
        found = {
            str(model): profile(own)
            for (model,), own in part.group_by("model", maintain_order=True)
        }
        place = {"language": language, "ranking": ranking, "k": k}
        for first, second in combinations(sorted(found), 2):
            pair = place | {"first": first, "second": second}
            rows += [pair | row for row in _rows(found[first], found[second], params)]
        for model, own in found.items():
            what = f"{RANKINGS[int(str(ranking))]}, {k} words"
            recovery += _recovery(inputs, model, str(language), what, own, params)
    tables = {"rsa": _adjusted(rows)}
    if recovery:
        tables["recovery"] = typed(pl.DataFrame(recovery, infer_schema_length=None), RECOVERY)
    return tables


def profile(table: pl.DataFrame) -> Profile:
    """Return the profiles of one model in one ranking, from rows of ``emotions`` for groups.

    Groups of whose words none is in the lexicon are left out, and those of whose words none
    carries any affect: they have no direction.
    """
    counts = table.sort("category", "group", "affect").filter(pl.col("covered") > 0)
    if tuple(EMOTIONS["affect"].labels) != AFFECTS or len(counts) % len(AFFECTS):
        raise ValueError("not a row for each affect of a group")
    shares = (counts["carrying"] / counts["covered"]).to_numpy().reshape(-1, len(AFFECTS))
    kept = (np.delete(shares, FEAR, axis=1) > 0).any(axis=1)
    names = counts.select("category", "group")[:: len(AFFECTS)].filter(pl.Series(kept))
    return Profile(names["category"].to_list(), names["group"].to_list(), shares[kept])


def _rows(first: Profile, second: Profile, params: Params) -> list[dict[str, Any]]:
    """Return a row for each category and reading, of the groups that both have."""
    names = list(zip(first.categories, first.groups, strict=True))
    others = {n: i for i, n in enumerate(zip(second.categories, second.groups, strict=True))}
    both = [(i, others[name]) for i, name in enumerate(names) if name in others]
    rows = []
    for category in [*sorted({names[i][0] for i, _ in both}), EVERY]:
        own = [(i, j) for i, j in both if category in (names[i][0], EVERY)]
        a, b = first.shares[[i for i, _ in own]], second.shares[[j for _, j in own]]
        weights = params.resampling().weights([names[i][1] for i, _ in own])
        for reading in READINGS:
            x, y = (_dimensions(z, reading) for z in (a, b))
            found = compare(
                x,
                y,
                weights,
                diagonal=reading != "corrected",
                permutations=params.permutations,
                seed=params.seed,
                confidence=params.confidence,
            )
            rows.append(
                {name: finite(getattr(found, name)) for name in ("value", "low", "high")}
                | {"category": category, "reading": READINGS.index(reading)}
                | {"dimensions": x.shape[1], "n": found.groups, "p": found.p}
                | {"expected": finite(found.expected), "shift": finite(found.value - 1)}
            )
    return rows


def _dimensions(shares: NDArray[np.float64], reading: str) -> NDArray[np.float64]:
    return np.delete(shares, FEAR, axis=1) if reading == "faithful" else shares


def _adjusted(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Adjust p over all pairs and categories of one language, ranking and reading."""
    if not rows:
        empty = pl.from_arrow(RSA.arrow().empty_table())
        assert isinstance(empty, pl.DataFrame)
        return empty
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        cluster=pl.lit("group"),
        method=pl.lit("bootstrap percentile (Poisson weights), no copies compared"),
        null=pl.lit("groups of the second model relabelled; see expected"),
    )
    parts = []
    for part in table.partition_by("language", "ranking", "reading", maintain_order=True):
        adjusted = benjamini_hochberg(part["p"].to_numpy())
        parts.append(
            part.with_columns(
                p=pl.Series([significant(p) for p in part["p"]]),
                p_bh=pl.Series([significant(p) for p in adjusted]),
                family=pl.lit(len(part)),
            )
        )
    return typed(pl.concat(parts).sort(RSA.key), RSA)


def _recovery(
    inputs: Inputs, model: str, language: str, what: str, own: Profile, params: Params
) -> list[dict[str, Any]]:
    """Return what the measure gives a world's model with itself, and with its rows mixed up."""
    world = planted(inputs.weights(model))
    if world is None:
        return []
    rows = []
    for reading in READINGS:
        shares, diagonal = _dimensions(own.shares, reading), reading != "corrected"
        value, n = rsa(shares, shares, diagonal=diagonal), len(shares)
        if np.isnan(value):
            continue
        nothing = float("nan")
        itself = Estimate(value, nothing, nothing, n, "none: no estimate")
        mixed = relabelled(
            shares, shares, diagonal=diagonal, permutations=params.permutations, seed=params.seed
        )
        limits = percentiles(mixed[None], params.confidence)
        middle = Estimate(
            float(mixed.mean()),
            float(limits.low[0]),
            float(limits.high[0]),
            n,
            f"range of {params.confidence:.0%} of {params.permutations} orders",
        )
        inflated = f"{3 / (n + 1):.3f}: the diagonal, 3 / (n + 1)" if diagonal else "0: no relation"
        for measure, estimate, null in (
            ("with itself", itself, "1: the same"),
            ("with its rows in random orders, mean", middle, inflated),
        ):
            told = f"{what}, {reading}: {measure}"
            rows.append(recovery_row(model, language, world, told, estimate, null))
    return rows
