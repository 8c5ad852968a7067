"""Words by gender and sentiment: the analysis ``latent``, as the paper's Tables 4 and 6."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from plumbline.probes.politicians import latent
from plumbline.probes.report.view import (
    Block,
    Group,
    Part,
    Section,
    Table,
    files,
    interval,
    labelled,
    number,
    parts,
    ranking,
)

if TYPE_CHECKING:
    from pathlib import Path

NOTE = (
    "Deviations eta (nats) of the latent-variable model: the words that go most with a gender, for "
    "each sentiment, means over the grid of both weights and over seeds. Compare words within a "
    "gender and sentiment. Intervals: Bayesian bootstrap over names, refitted. p: gender labels "
    "permuted over names, refitted; of k permutations no p is below 1 / (1 + k), so that few words "
    "among many cannot pass; adjusted by Benjamini-Hochberg over all words, sentiments, "
    "genders, parts of speech and languages of the model."
)


def section(data: Path) -> Section:
    """Return the words of largest deviation of each gender and sentiment."""
    groups = []
    for path in files(data, "latent", "latent"):
        name = path.parent.name
        best = labelled(latent.best(pl.read_parquet(path)), latent.LATENT)
        shares = labelled(pl.read_parquet(path.parent / "shares.parquet"), latent.SHARES)
        blocks = [
            Block(f"{name}, {language}, {pos}", _parts(part, shares, language, pos))
            for (language, pos), part in parts(best, "language", "pos")
        ]
        groups.append(Group(name, blocks))
    title = "Words by gender and sentiment (Tables 4 and 6)"
    return Section("latent", title, NOTE, groups, "latent")


def _parts(best: pl.DataFrame, shares: pl.DataFrame, language: str, pos: str) -> list[Part]:
    found = []
    for (gender,), own in parts(best, "gender"):
        rankings = (
            ranking(rows.sort("rank").to_dicts(), sentiment, "deviation")
            for (sentiment,), rows in parts(own, "sentiment")
        )
        found.append(Part(f"{gender} ({own['people'][0]:,} people)", tables=tuple(rankings)))
    here = shares.filter((pl.col("language") == language) & (pl.col("pos") == pos))
    rows = [
        [r["gender"], r["sentiment"], number(r["value"]), interval(r), f"{r['n']:,}"]
        for r in here.sort("gender", "sentiment").to_dicts()
    ]
    numbers = ("p(s|g)", "interval", "names")
    table = Table("Sentiments of the genders in the model", ("gender", "sentiment"), numbers, rows)
    return [*found, Part(tables=(table,))]
