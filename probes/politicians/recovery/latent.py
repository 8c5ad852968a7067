"""Recovery of ``latent``: words by gender and sentiment."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.words.build import POS
from plumbline.probes.politicians.recovery.control import Control, contrast


def latent_rows(control: Control) -> None:
    """Add how words, tilts and discoveries of the latent model go with what was planted."""
    latent, words = control.read("latent"), control.truth.words
    if latent.is_empty():
        return
    if not control.null:
        both = pl.concat(
            contrast(part).join(words.filter(pl.col("pos") == POS[pos]), on="word")
            for (pos,), part in control.read("latent", "words").group_by("pos", maintain_order=True)
        )
        control.relation(both, "log p(w|g), female less male")
    for row in control.read("latent", "tilt").iter_rows(named=True):
        title = "log-ratio female to male of p(positive|g), less that of p(negative|g)"
        null = f"{control.truth.world.sentiment_effect:.3f}: planted in the words"
        control.copy(row, f"{POS[row['pos']]}: {title}", null)
    null = "at most this: nominal" if control.null else "no nominal value: many are planted"
    for column, limit in (("p_bh", control.params.false_discovery_rate), ("p", 0.05)):
        control.discoveries(latent[column], limit, "word, sentiment and gender", null)
