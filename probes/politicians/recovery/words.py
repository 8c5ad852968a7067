"""Recovery of words and genders: ``pmi`` and ``supersenses``."""

from __future__ import annotations

import numpy as np
import polars as pl

from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.probes.politicians.recovery.control import (
    FEMALE,
    LEAST,
    MALE,
    MANY,
    Control,
    contrast,
    planted_difference,
)
from plumbline.probes.stats.intervals import spearman
from plumbline.probes.worlds.recovery import discoveries, signs


def pmi_rows(control: Control) -> None:
    """Add order, signs, coverage and discoveries of PMI."""
    pmi, params = control.read("pmi"), control.params
    if pmi.is_empty():
        return
    rate, cluster = params.false_discovery_rate, "word and gender"
    tests, smoothed = (pmi.filter(pl.col("reading") == reading) for reading in (0, 1))
    if control.null:
        least = discoveries(np.array([tests["p_bh"].min()]), rate, params.confidence)
        title = f"false discovery proportion at {rate:g}: 1 if there is any, as all are false"
        control.add(least, title, "world", f"{rate:g}: nominal mean over worlds")
    else:
        both = contrast(smoothed).join(control.truth.words, on="word")
        control.relation(both, "PMI, female minus male")
    true = pl.concat(
        part.select("word", "gender", true="value", pos=pl.lit(pos, pl.Int64))
        for pos, part in control.true_pmi(pmi).items()
    )
    held = smoothed.join(true, on=["pos", "word", "gender"])
    held = held.filter(pl.col("gender").is_in([MALE, FEMALE]))
    level = f"{params.confidence:.0%} intervals (smoothed, binary)"
    control.coverage(held, f"share of {level} with the true PMI", cluster)
    for column, limit, none in (
        ("p_bh", rate, "0: no discovery is true"),
        ("p", 0.05, "at most 0.05: nominal"),
    ):
        control.discoveries(tests[column], limit, cluster, none if control.null else MANY)


def supersense_rows(control: Control) -> None:
    """Add order, signs, coverage and discoveries of differences of classes, by PMI."""
    found, pmi = control.read("supersenses"), control.read("pmi")
    if found.is_empty() or pmi.is_empty():
        return
    compared = found.filter(
        pl.col("first") == FEMALE,
        pl.col("second") == MALE,
        pl.col("counting") == 0,
        pl.col("deviation") == 0,  # by PMI
    ).sort("supersense")
    classes = control.read("supersenses", "words").rename({"supersense": "class"})
    true = np.zeros(len(CLASSES))
    for (pos,), lists in () if control.null else compared.group_by("pos", maintain_order=True):
        words = control.true_pmi(pmi.filter(pl.col("pos") == pos))[pos]
        size = max(lists["words_first"][0], lists["words_second"][0])
        parts = classes.filter(pl.col("pos") == pos).select("word", "class", "share")
        positive = words.filter(pl.col("value") > 0)
        true += planted_difference(positive, parts, size, (FEMALE, MALE), len(CLASSES))
    compared = compared.filter(pl.col("supersense").is_in(classes["class"].unique().implode()))
    if compared.is_empty():
        return
    compared = compared.with_columns(true=pl.Series(true[compared["supersense"].to_numpy()]))
    expected, value = (compared[column].to_numpy() for column in ("true", "value"))
    level = control.params.confidence
    decided = (expected != 0) & (value != 0)
    if not control.null and len(value) >= LEAST:
        title = "Spearman correlation of planted and measured differences of shares"
        control.add(spearman(expected, value, level), title, "class", "0: no relation")
    if not control.null and decided.any():
        title = "share of classes whose measured sign is the planted one, where neither is 0"
        control.add(signs(expected[decided], value[decided], level), title, "class", "0.5: coin")
    for suffix, kind, note in (
        ("", "", ""),
        ("_words", " over words", ", or more: lists are no random draws of words"),
    ):
        ends = {"low": pl.col(f"low{suffix}"), "high": pl.col(f"high{suffix}")}
        title = f"share of {level:.0%} intervals{kind} with the planted difference"
        control.coverage(compared.with_columns(**ends), title, "class", note)
    null = "at most 0.05: nominal" if control.null else MANY
    control.discoveries(compared["p"], 0.05, "class", null, "classes")
    if control.null:  # of effects of usual size one class in thirty is found: its share is no sign
        least = discoveries(np.array([compared["p_bonferroni"].min()]), 0.05, level)
        title = "p_bonferroni at or below 0.05: 1 if there is any, as all are false"
        control.add(least, title, "world", "0.05: nominal mean over worlds")
    else:
        control.discoveries(compared["p_bonferroni"], 0.05, "class", null, "classes")
