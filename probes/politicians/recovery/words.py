"""Recovery of words and genders: ``pmi`` and ``supersenses``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from plumbline.builders.datasets.lexica.build import SENTIMENTS
from plumbline.builders.datasets.supersenses.build import CLASSES
from plumbline.probes.controls.recovery import discoveries, signs
from plumbline.probes.politicians.recovery.control import (
    FEMALE,
    LEAST,
    MALE,
    MANY,
    SMOOTHED,
    Control,
    contrast,
    planted_difference,
)
from plumbline.probes.stats.intervals import spearman

if TYPE_CHECKING:
    from numpy.typing import NDArray


def pmi_rows(control: Control) -> None:
    """Add order, signs, coverage and discoveries of PMI."""
    pmi, params = control.read("pmi"), control.params
    if pmi.is_empty():
        return
    rate, cluster = params.false_discovery_rate, "word and gender"
    smoothed = pmi.filter(reading=SMOOTHED)
    if control.null:
        least = discoveries(np.array([smoothed["p_bh"].min()]), rate, params.confidence)
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
        control.discoveries(
            smoothed[column].drop_nulls(), limit, cluster, none if control.null else MANY
        )


def supersense_rows(control: Control) -> None:
    """Add order, signs, coverage and discoveries of differences of classes.

    By PMI; and by the contrast of genders in the latent-variable model, within all sentiments. What
    has the largest deviations within one, the paper's ranking, its genders have in common.
    """
    found, pmi = control.read("supersenses"), control.read("pmi")
    if found.is_empty() or pmi.is_empty():
        return
    found = found.filter(first=FEMALE, second=MALE, counting=0).sort("sentiment", "supersense")
    classes = control.read("supersenses", "words").rename({"supersense": "class"})
    held = pl.col("supersense").is_in(classes["class"].unique().implode())
    for deviation, of in ((0, ""), (2, "latent contrast: ")):
        parts = [
            part.with_columns(true=pl.Series(_planted(control, part, pmi, classes)))
            for part in found.filter(held, deviation=deviation).partition_by("pos", "sentiment")
        ]
        if parts:
            _classes(control, pl.concat(parts), of)


def _planted(
    control: Control, lists: pl.DataFrame, pmi: pl.DataFrame, classes: pl.DataFrame
) -> NDArray[np.float64]:
    """Return the planted differences of the classes of one part of speech and sentiment."""
    if control.null:
        return np.zeros(len(lists))
    pos, sentiment = lists["pos"][0], lists["sentiment"][0]
    words = control.true_pmi(pmi.filter(pl.col("pos") == pos))[pos]
    size = max(lists["words_first"][0], lists["words_second"][0])
    parts = classes.filter(pl.col("pos") == pos).select("word", "class", "share")
    if sentiment:  # 0: whatever it is, of words above 0
        words = words.filter(sentiment=SENTIMENTS[sentiment - 1])
    else:
        words = words.filter(pl.col("value") > 0)
    true = planted_difference(words, parts, size, (FEMALE, MALE), len(CLASSES))
    planted: NDArray[np.float64] = true[lists["supersense"].to_numpy()]
    return planted


def _classes(control: Control, compared: pl.DataFrame, of: str) -> None:
    """Add what one deviation says of the classes, beside the column ``true``."""
    expected, value = (compared[column].to_numpy() for column in ("true", "value"))
    level = control.params.confidence
    decided = (expected != 0) & (value != 0)
    if not control.null and len(value) >= LEAST:
        title = f"{of}Spearman correlation of planted and measured differences of shares"
        control.add(spearman(expected, value, level), title, "class", "0: no relation")
    if not control.null and decided.any():
        title = f"{of}share of classes whose measured sign is the planted one, where neither is 0"
        control.add(signs(expected[decided], value[decided], level), title, "class", "0.5: coin")
    for suffix, kind, note in (
        ("", "", ""),
        ("_words", " over words", ", or more: lists are no random draws of words"),
    ):
        if of and not suffix:
            continue  # names are not drawn again
        ends = {"low": pl.col(f"low{suffix}"), "high": pl.col(f"high{suffix}")}
        title = f"{of}share of {level:.0%} intervals{kind} with the planted difference"
        control.coverage(compared.with_columns(**ends), title, "class", note)
    null = "at most 0.05: nominal" if control.null else MANY
    tests = "classes by latent contrast" if of else "classes"
    control.discoveries(compared["p"], 0.05, "class", null, tests)
    if control.null:  # of effects of usual size one class in thirty is found: its share is no sign
        least = discoveries(np.array([compared["p_bonferroni"].min()]), 0.05, level)
        title = f"{of}p_bonferroni at or below 0.05: 1 if there is any, as all are false"
        control.add(least, title, "world", "0.05: nominal mean over worlds")
    else:
        control.discoveries(compared["p_bonferroni"], 0.05, "class", null, tests)
