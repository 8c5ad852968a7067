"""Analysis ``rsa``: similarity of models in the emotions that social groups evoke.

Choenni et al. (2021), representational similarity of emotion profiles: the cosines of the groups
of a category in one model, against those in another; as published, and without the diagonal.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import (
    DF,
    TESTED_ERROR,
    Table,
    estimates,
    finite,
    least_p,
)
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.similarity import METHOD, compare
from plumbline.probes.stereotypes.typicality import EVERY, GroupTests, number, sort_by_key

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("emotions",)
WITHOUT_FEAR = [name for name in AFFECTS if name != "fear"]
AFFECTS_OF = {"faithful": WITHOUT_FEAR, "released": AFFECTS, "corrected": AFFECTS}
READINGS = tuple(AFFECTS_OF)
GROUP = ["category", "group"]
RSA = Schema.keyed(
    (
        typicality.LANGUAGE,
        Column("first", "string", "name of a model in params.yaml"),
        Column("second", "string", "name of another, later in the alphabet"),
        typicality.RANKING,
        typicality.TOP_K,
        Column(
            "reading",
            "category",
            "faithful: diagonal, without fear; released: diagonal; corrected: neither",
            labels=READINGS,
        ),
        typicality.CATEGORY,
    ),
    *estimates(
        cluster="group",
        method=METHOD,
        null="groups of the second model relabelled within categories, with mean `expected`",
    ),
    number(
        "expected",
        "mean under the null hypothesis; of a category with the diagonal and without ties "
        "3 / (n + 1); of all it includes what categories have in common",
    ),
)
SCHEMAS = {"rsa": RSA}


class Params(GroupTests):
    """How intervals and tests are made."""


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models in all categories; of one model there are no rows."""
    emotions = pl.read_parquet(inputs.tables("emotions") / "emotions.parquet")
    emotions = emotions.filter(level="group")
    table = Table(RSA, params.confidence)
    table.adjust("p", ("language", "ranking", "reading"), least_p(params.n_permutations))
    keys = ("language", "reading", "top_k")
    for (language, ranking, top_k), part in emotions.group_by(keys, maintain_order=True):
        models = {str(model): profiles(rows) for (model,), rows in part.group_by(["model"])}
        for first, second in combinations(sorted(models), 2):
            both = models[first].join(models[second], on=GROUP, maintain_order="left")
            pair = {"language": language, "first": first, "second": second}
            _compare(table, pair | {"ranking": ranking, "top_k": top_k}, both, params)
    return {"rsa": sort_by_key(table.frame(), RSA)}


def profiles(table: pl.DataFrame) -> pl.DataFrame:
    """Return category, group and share of each affect, sorted, from one model's rows of groups.

    Groups of whose words none is in the lexicon are left out, and those of whose words none
    carries any affect: they have no direction.
    """
    words = pl.col("n")
    share = (pl.col("value") * words).round() / words  # without the table's rounding
    covered = table.filter(words > 0).select(*GROUP, "affect", share.alias("share"))
    wide = covered.pivot(on="affect", index=GROUP, values="share").select(*GROUP, *AFFECTS)
    return wide.filter(pl.any_horizontal(pl.col(WITHOUT_FEAR) > 0)).sort(GROUP)


def _compare(table: Table, pair: dict[str, Any], both: pl.DataFrame, params: Params) -> None:
    """Add a row for each category and reading, for the groups that both models have."""
    for category in [*both["category"].unique().sort(), EVERY]:
        groups = both.filter((pl.col("category") == category) | (category == EVERY))
        strata = groups["category"].rank("dense").cast(pl.Int64).to_numpy()
        for reading, affects in AFFECTS_OF.items():
            similarity = compare(
                groups.select(affects).to_numpy(),
                groups.select(f"{name}_right" for name in affects).to_numpy(),
                diagonal=reading != "corrected",
                n_permutations=params.n_permutations,
                seed=params.seed,
                confidence=params.confidence,
                strata=strata,
            )
            table.add(
                similarity.estimate,
                p=similarity.p,
                **pair,
                category=category,
                reading=reading,
                expected=finite(similarity.expected),
                **{TESTED_ERROR: finite(similarity.error), DF: len(groups) - 1},
            )
