"""Recovery of ``lexicon_evaluation``: texts that were written to have a sentiment.

A corpus whose labels were dealt out to the texts of another at random is called after that one,
with ``-null`` behind: its labels go with no word. In the other they are what the texts were written
to be. Both have as many texts of each of three labels: of labels that say nothing a third is right,
whatever the lexicon, and macro-F1 is no larger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.controls.recovery import covered, discoveries
from plumbline.probes.stats.intervals import wilson

if TYPE_CHECKING:
    from plumbline.probes.core.run_analysis import Inputs
    from plumbline.probes.politicians.recovery.control import Params
    from plumbline.probes.stats.estimate import Table

DEALT = "-null"
CHANCE = 1 / 3
ACCURACY, MAJORITY = 0, "majority class"  # code of the measure


def lexicon_rows(inputs: Inputs, params: Params, table: Table) -> None:
    """Add how lexica do where labels were planted, and where they were dealt out."""
    path = inputs.tables("lexicon_evaluation") / "agreement.parquet"
    if not path.is_file():
        return
    every = pl.read_parquet(path).filter(pl.col("lexicon") != MAJORITY).drop_nulls("value")
    level, cluster = params.confidence, "lexicon and measure"
    for language, null in every.select("language", "source").unique().sort(pl.all()).rows():
        planted = null.removesuffix(DEALT)
        if planted == null:
            continue
        here = every.filter(language=language)
        own = here.filter(source=planted)
        key = {"language": language, "model": planted, "world": 0}
        above = wilson(int((own["value"] > CHANCE).sum()), len(own), level)
        title = "share of measures with the sign of what was planted: above chance"
        table.add(above, cluster=cluster, null="0.5: coin", measure=title, **key)
        for column, limit in (("p_bh", params.false_discovery_rate), ("p", 0.05)):
            for source, world, nominal in (
                (planted, 0, "no nominal value: all are planted"),
                (null, 1, f"at most {limit:g}: nominal"),
            ):
                p = here.filter(source=source)[column].drop_nulls().to_numpy()
                title = f"share of tests with {column} at or below {limit:g}"
                at = key | {"model": source, "world": world, "measure": title}
                table.add(discoveries(p, limit, level), cluster=cluster, null=nominal, **at)
        held = here.filter(measure=ACCURACY, source=null)
        title = (
            f"share of {level:.0%} intervals of accuracy with what labels that are dealt out give"
        )
        at = {"language": language, "model": null, "world": 1, "measure": title}
        nominal = f"{level:g}: nominal, of one deal: lexica err in the same texts"
        found = covered(held.with_columns(true=pl.lit(CHANCE)), level)
        table.add(found, cluster="lexicon", null=nominal, **at)
