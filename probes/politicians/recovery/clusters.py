"""Recovery of ``clusters``: in worlds a word's state goes with what was planted."""

from __future__ import annotations

import polars as pl

from plumbline.builders.datasets.words.build import POS
from plumbline.probes.controls.recovery import signs
from plumbline.probes.politicians.recovery.control import FEMALE, LEAST, MALE, MANY, Control
from plumbline.probes.stats.intervals import spearman

READINGS = ("faithful", "largest")


def cluster_rows(control: Control) -> None:
    """Add how words' genders and clusters go with what was planted, and discoveries.

    The model predicts a word by the product of a prompt's state and the word's own embedding, and
    the state of a word alone goes with that embedding. So words that were planted for women lie
    apart from those for men; where nothing was planted, no cluster is a gender's.
    """
    words, shares = control.read("clusters", "words"), control.read("clusters", "shares")
    if shares.is_empty():
        return
    level, rate = control.params.confidence, control.params.false_discovery_rate
    joint = words.filter(pl.col("group") == words["group"].max())
    women = shares.filter(pl.col("gender") == FEMALE)
    planted = control.truth.words.select(
        "word", "log_ratio_nats", pos=pl.col("pos").replace_strict(POS, range(len(POS)))
    )
    keys = ["pos", "word"]
    of_cluster = women.select("pos", "reading", "cluster_id", women="value")
    every = joint.join(planted, on=keys).join(of_cluster, on=["pos", "reading", "cluster_id"])
    for (reading,), both in every.group_by("reading", maintain_order=True):
        if control.null or len(both) < LEAST:
            continue
        own = both.filter(pl.col("gender").is_in([MALE, FEMALE]))
        side = (own["gender"] == FEMALE).cast(pl.Float64) * 2 - 1
        same = signs(own["log_ratio_nats"].to_numpy(), side.to_numpy(), level)
        title = f"{READINGS[reading]}: share of words of one gender whose planted sign it is"
        control.add(same, title, "word", "0.5: coin")
        found = spearman(both["log_ratio_nats"].to_numpy(), both["women"].to_numpy(), level)
        title = f"{READINGS[reading]}: Spearman correlation of planted log-ratio of a word and "
        control.add(found, title + "women's share of its cluster", "word", "0: no relation")
    null = "at most 0.05: nominal" if control.null else MANY
    for (reading,), part in women.group_by("reading", maintain_order=True):
        for column, limit in (("p", 0.05), ("p_bh", rate)):
            p = part[column].drop_nulls()
            if len(p):
                control.discoveries(p, limit, "cluster", null, f"{READINGS[reading]} clusters")
