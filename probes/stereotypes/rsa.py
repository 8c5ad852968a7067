"""Analysis ``rsa``: how alike models are in the emotions that social groups evoke.

Choenni et al. (2021), representational similarity of emotion profiles: the cosines of the groups
of a category in one model, against those in another; as published, and without the diagonal.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import polars as pl

from plumbline.builders.core.schema import Column, Schema
from plumbline.builders.datasets.emotions.build import AFFECTS
from plumbline.probes.stats.estimate import ESTIMATE, TESTED_ERROR, Table, finite, least_p
from plumbline.probes.stereotypes import typicality
from plumbline.probes.stereotypes.emotions import LEVELS
from plumbline.probes.stereotypes.similarity import compare
from plumbline.probes.stereotypes.typicality import EVERY, GroupTests, number

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs

TABLES = ("emotions",)
WITHOUT_FEAR = [name for name in AFFECTS if name != "fear"]
AFFECTS_OF = {"faithful": WITHOUT_FEAR, "released": AFFECTS, "corrected": AFFECTS}
READINGS = tuple(AFFECTS_OF)
GROUP = ["category", "group"]
WHERE = (
    typicality.RANKING,
    typicality.TOP_K,
    Column(
        "reading",
        "label",
        "faithful: diagonal, without fear; released: diagonal; corrected: neither",
        labels=READINGS,
    ),
)
RSA = Schema(
    columns=(
        typicality.LANGUAGE,
        Column("first", "string", "name of a model in params.yaml"),
        Column("second", "string", "name of another, later in the alphabet"),
        *(*WHERE, typicality.CATEGORY),
        Column("dimensions", "int64", "affects in a profile", minimum=1),
        *ESTIMATE,
        number(
            "expected",
            "mean under the null; of a category with the diagonal and without ties 3 / (n + 1); of "
            "all what categories have in common is in it",
        ),
        number("shift", "value minus 1, as the paper reports it"),
        typicality.FAMILY,
    ),
    key=("language", "first", "second", "ranking", "reading", "category"),
)
SCHEMAS = {"rsa": RSA}


class Params(GroupTests):
    """How intervals and tests are made."""


def run(inputs: Inputs, params: Params) -> dict[str, pl.DataFrame]:
    """Compare all pairs of models in all categories; of one model there are no rows."""
    table = pl.read_parquet(inputs.tables("emotions") / "emotions.parquet")
    table = table.filter(pl.col("level") == LEVELS.index("group"))
    pairs = Table(RSA, params.confidence)
    pairs.adjust("p", ("language", "ranking", "reading"), least_p(params.n_permutations))
    keys = ("language", "reading", "top_k")
    for (language, ranking, top_k), part in table.group_by(keys, maintain_order=True):
        found = {str(model): profiles(own) for (model,), own in part.group_by(["model"])}
        place = {"language": language, "ranking": ranking, "top_k": top_k}
        for first, second in combinations(sorted(found), 2):
            both = found[first].join(found[second], on=GROUP, maintain_order="left")
            _compare(pairs, place | {"first": first, "second": second}, both, params)
    return {"rsa": pairs.frame().sort(RSA.key)}


def profiles(table: pl.DataFrame) -> pl.DataFrame:
    """Return the profiles of one model in one ranking, from rows of ``emotions`` for groups.

    Groups of whose words none is in the lexicon are left out, and those of whose words none
    carries any affect: they have no direction.

    Returned: category, group, sorted, and the share of each affect.
    """
    share = (pl.col("carrying") / pl.col("covered")).alias("share")
    name = pl.col("affect").cast(pl.Int64).replace_strict(dict(enumerate(AFFECTS)))
    known = table.filter(pl.col("covered") > 0).select(*GROUP, share, affect=name)
    wide = known.pivot(on="affect", index=GROUP, values="share").select(*GROUP, *AFFECTS)
    return wide.filter(pl.any_horizontal(pl.col(WITHOUT_FEAR) > 0)).sort(GROUP)


def _compare(table: Table, pair: dict[str, Any], both: pl.DataFrame, params: Params) -> None:
    """Add a row for each category and reading, of the groups that both have."""
    for category in [*both["category"].unique().sort(), EVERY]:
        own = both.filter((pl.col("category") == category) | (category == EVERY))
        strata = own["category"].rank("dense").cast(pl.Int64).to_numpy()
        for reading, affects in AFFECTS_OF.items():
            found = compare(
                own.select(affects).to_numpy(),
                own.select(f"{name}_right" for name in affects).to_numpy(),
                diagonal=reading != "corrected",
                n_permutations=params.n_permutations,
                seed=params.seed,
                confidence=params.confidence,
                strata=strata,
            )
            table.add(
                found.estimate,
                cluster="group",
                null="groups of the second model relabelled within categories; see expected",
                p=found.p,
                critical=found.critical,
                **{TESTED_ERROR: finite(found.error)},
                **pair,
                category=category,
                reading=READINGS.index(reading),
                dimensions=len(affects),
                expected=finite(found.expected),
                shift=finite(found.estimate.value - 1),
            )
